/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of the demo, done by other commands. */
#ifndef EW_CLI_DEMO_STUDY_H
#define EW_CLI_DEMO_STUDY_H

#include <stdint.h>

#include "base/err.h"

struct ew_demo_study {
    const char *data; /* the argument for --data */
    double sweeps_s;  /* duration of both sweeps */
    int64_t int8_bytes, engine_bytes, report_bytes;
};

/* Works in the current folder; leaves edgewise.db, int8.onnx, lenet5.ewe and report.html there. */
ew_err ew_demo_sweep(struct ew_demo_study *d);
ew_err ew_demo_shrink(struct ew_demo_study *d, const char *checkpoint);
ew_err ew_demo_report(struct ew_demo_study *d);

#endif
