/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's second half: what is done by other commands, as a user would call them. */
#ifndef EW_CLI_DEMO_STUDY_H
#define EW_CLI_DEMO_STUDY_H

#include <stdint.h>

#include "base/err.h"

struct ew_demo_study {
    const char *data; /* as commands take it */
    double sweeps_s;  /* both sweeps */
    int64_t int8_bytes, engine_bytes, report_bytes;
};

/* All of it works in the present folder and leaves there: edgewise.db, int8.onnx, lenet5.ewe,
 * report.html. */
ew_err ew_demo_sweep(struct ew_demo_study *d);
ew_err ew_demo_shrink(struct ew_demo_study *d, const char *checkpoint);
ew_err ew_demo_report(struct ew_demo_study *d);

#endif
