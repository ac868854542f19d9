/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated training epochs on another board, from the plan's steps, the loader's work and the
 * board's model.  All results are marked "simulated". */
#ifndef EW_MEASURE_SIMULATED_TRAINING_H
#define EW_MEASURE_SIMULATED_TRAINING_H

#include "advise/simulated_run.h"
#include "data/data.h"
#include "record/record.h"
#include "train/options.h"

struct ew_simulated_training {
    const struct ew_simulated *board;
    const struct ew_train_opts *opts;
    struct ew_simulated_run step; /* of one batch */
    struct ew_sim_work work;      /* of an epoch */
    double medium_s;              /* of an epoch that reads from storage: additional time */
    struct ew_sim_heat heat;
    int64_t images; /* of an epoch */
    int64_t epochs; /* epochs so far */
    double seconds; /* seconds so far */
};

/* Borrows the board and the options.  `net` is the inference network. */
ew_err ew_simulated_training_begin(struct ew_simulated *board, const struct ew_graph *net,
                                   const struct ew_dataset *data, const struct ew_train_opts *o,
                                   struct ew_simulated_training *out);
/* Simulates the next epoch; the board's temperature continues from the last one. */
ew_err ew_simulated_training_epoch(struct ew_simulated_training *t, struct ew_sim_epoch *e,
                                   struct ew_epoch_row *row);

#endif
