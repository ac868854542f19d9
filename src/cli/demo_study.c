/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's sweeps, quantisation and report: each a command of this program in a child process. */
#include "cli/demo_study.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "study/child.h"

#define SELF "/proc/self/exe"

static ew_err call(const char *const *argv, double *seconds)
{
    struct ew_child child;
    EW_TRY(ew_child_run(argv, "", &child));
    const bool done = WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0;
    EW_CHECK(done, EW_ERR_INTERNAL, "edgewise %s: %s", argv[1],
             child.said[0] ? child.said : "ended without an error message");
    if (seconds)
        *seconds += child.wall_s;
    return EW_OK;
}

static int64_t file_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : 0;
}

ew_err ew_demo_sweep(struct ew_demo_study *d)
{
    static const char *const studies[] = {"train-workers", "train-batch"};
    for (int i = 0; i < 2; i++) {
        const char *const argv[] = {SELF, "study", studies[i], "--quick", "--only", "lenet", NULL};
        EW_TRY(call(argv, &d->sweeps_s));
    }
    return EW_OK;
}

ew_err ew_demo_shrink(struct ew_demo_study *d, const char *checkpoint)
{
    char calib[64], eval[64];
    snprintf(calib, sizeof(calib), "%s:200", d->data);
    snprintf(eval, sizeof(eval), "%s:2000", d->data);
    const char *const quantize[] = {SELF,          "quantize", checkpoint,  "--calib",
                                    calib,         "--eval",   eval,        "--db",
                                    "edgewise.db", "-o",       "int8.onnx", NULL};
    const char *const compile[] = {SELF, "compile", "int8.onnx", "-o", "lenet5.ewe", NULL};
    EW_TRY(call(quantize, NULL));
    EW_TRY(call(compile, NULL));
    d->int8_bytes = file_bytes("int8.onnx");
    d->engine_bytes = file_bytes("lenet5.ewe");
    return EW_OK;
}

ew_err ew_demo_report(struct ew_demo_study *d)
{
    const char *const argv[] = {SELF, "report",      "--title", "Edgewise demo",
                                "-o", "report.html", NULL};
    EW_TRY(call(argv, NULL));
    d->report_bytes = file_bytes("report.html");
    return EW_OK;
}
