/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts run times of untried networks, batches, widths, threads, precisions and machines from
 * measured ones; the work of their plans is known without running them.
 *
 * ln of the time is the law of work with parameters for each machine, which are alike between
 * machines, plus normal effects: of the machine as a whole, of the network (part of it on every
 * machine), of its size and threads, of the kind of run (training, int8, a GPU's precision).  So a
 * network that was run here at another batch, or elsewhere, is predicted better than a new one. */
#ifndef EW_ADVISE_WORK_FIT_H
#define EW_ADVISE_WORK_FIT_H

#include "advise/predictor.h"
#include "advise/work_law.h"

#define EW_WORK_MIN      3   /* measurements, at least */
#define EW_WORK_ROWS     256 /* that are used, spread over them all */
#define EW_WORK_MACHINES 16

/* One run, measured or asked for. */
struct ew_work_run {
    const struct ew_work_load *load;
    double threads;
    double size;         /* ln of batch and of the square of the width */
    const char *network; /* runs with equal texts share an effect */
    const char *kind;    /* "": inference as it is by default */
    const char *machine; /* with its device */
};

struct ew_work_predictor;

/* Times in seconds.  All lives in the arena; runs are borrowed.  EW_ERR_ARG: fewer than
 * EW_WORK_MIN, or a time is no positive number; EW_ERR_LIMIT: more than EW_WORK_MACHINES. */
ew_err ew_work_fit(struct ew_arena *a, const struct ew_work_run *runs, const double *time, int n,
                   struct ew_work_predictor **out);

/* The time of a run. An unmeasured machine gets the mean parameters of the others. */
struct ew_interval ew_work_predict(const struct ew_work_predictor *p,
                                   const struct ew_work_run *run);

#endif
