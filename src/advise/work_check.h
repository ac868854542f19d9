/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of the law of work: holds out two thirds of the measurements, or all of one network.
 */
#ifndef EW_ADVISE_WORK_CHECK_H
#define EW_ADVISE_WORK_CHECK_H

#include "advise/work_fit.h"

/* One prediction of something that was measured. */
struct ew_work_holdout {
    int run;
    double time; /* measured */
    struct ew_interval predicted;
};

struct ew_work_errors {
    struct ew_work_holdout *held_out;
    int tested, fitted;   /* predictions; measurements that the last fit had */
    double error, median; /* mean and median of |predicted / measured - 1| */
    double in50, in90;    /* shares in the intervals */
};

#define EW_WORK_SHUFFLES 8

/* Fits to a third and predicts the rest: all three thirds of EW_WORK_SHUFFLES random orders. */
ew_err ew_work_check_thirds(struct ew_arena *a, const struct ew_work_run *runs, const double *time,
                            int n, struct ew_work_errors *out);

/* Leaves out each network in turn, as if it had never been run; tested 0 where there is one. */
ew_err ew_work_check_networks(struct ew_arena *a, const struct ew_work_run *runs,
                              const double *time, int n, struct ew_work_errors *out);

#endif
