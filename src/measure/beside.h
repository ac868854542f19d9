/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that run on the device concurrently with the timed one. */
#ifndef EW_MEASURE_BESIDE_H
#define EW_MEASURE_BESIDE_H

#include "measure/side.h"

#define EW_BENCH_BESIDE 15 /* at most */

struct ew_beside {
    struct ew_side sides[EW_BENCH_BESIDE];
    int n;
    struct ew_arena arena; /* for the names */
};

/* The number of networks in the list: "a,b" has two; NULL: none. */
int ew_beside_count(const char *list);

/* Loads the networks.  Release with close, also after a failure. */
ew_err ew_beside_open(const char *list, const struct ew_side_opts *o, struct ew_beside *out);
void ew_beside_close(struct ew_beside *b);

#endif
