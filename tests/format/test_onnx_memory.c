/* SPDX-License-Identifier: Apache-2.0 */
/* From reading to packing, a network from a file is in memory about once: filters that change
 * layout, or into which batch norms are folded, leave no second copy of all of them. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "edgewise.h"
#include "ew_test.h"
#include "plan/plan.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static ew_err write_file(const char *path)
{
    const struct ew_model_opts o = {.size = sizeof(o)};
    struct ew_graph *g = NULL;
    EW_TRY(ew_model_build("mc3_18", &o, &g));
    EW_TRY(ew_model_init("mc3_18", 1, g));
    EW_TRY(ew_onnx_save(g, path, NULL));
    ew_graph_free(g);
    return EW_OK;
}

/* Growth of the process's peak memory in bytes. */
static ew_err read_and_pack(const char *path, int64_t *peak)
{
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_INFER, .optimize = true, .consume = true, .backend = {.threads = 1}};
    struct rusage before, after;
    struct ew_graph *g;
    struct ew_plan *p;
    getrusage(RUSAGE_SELF, &before);
    EW_TRY(ew_onnx_load(path, NULL, &g));
    EW_TRY(ew_plan_compile(g, &o, &p));
    getrusage(RUSAGE_SELF, &after);
    *peak = (after.ru_maxrss - before.ru_maxrss) * 1024;
    return EW_OK;
}

/* In a child process: memory freed earlier would hide a part. */
static bool in_child(ew_err (*what)(const char *path, int64_t *out), const char *path, int64_t *out)
{
    int fds[2];
    if (!EW_EXPECT(pipe(fds) == 0))
        return false;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (what(path, out) != EW_OK)
            fprintf(stderr, "%s\n", ew_error_message());
        _exit(write(fds[1], out, sizeof(*out)) == (ssize_t)sizeof(*out) ? 0 : 1);
    }
    close(fds[1]);
    const ssize_t got = read(fds[0], out, sizeof(*out));
    close(fds[0]);
    waitpid(child, NULL, 0);
    return EW_EXPECT_INT(got, (int64_t)sizeof(*out));
}

static ew_err write_in_child(const char *path, int64_t *ok)
{
    *ok = write_file(path) == EW_OK;
    return *ok ? EW_OK : EW_ERR_IO;
}

static void about_once(void)
{
    if (SANITIZED)
        EW_SKIP("sanitizers have their own memory");
    const char *path = ew_test_path("mc3_18.onnx");
    const int64_t weights = INT64_C(11695440) * 4;
    int64_t written = 0, peak = 0;
    /* Some packed weights are transformed and larger: a quarter in total. */
    if (in_child(write_in_child, path, &written) && EW_EXPECT(written) &&
        in_child(read_and_pack, path, &peak)) {
        EW_EXPECT(peak > weights && peak < weights * 7 / 4);
        printf("%lld bytes of weights, a peak of %lld\n", (long long)weights, (long long)peak);
    }
    unlink(path);
}

EW_TEST_MAIN(EW_TEST(about_once))
