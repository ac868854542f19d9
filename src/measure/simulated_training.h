/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated epochs of training on another board: the plan's steps, the loader's work, the board's
 * model.  All results are marked "simulated". */
#ifndef EW_MEASURE_SIMULATED_TRAINING_H
#define EW_MEASURE_SIMULATED_TRAINING_H

#include "advise/simulated_run.h"
#include "data/data.h"
#include "record/record.h"
#include "train/options.h"

struct ew_simulated_training {
    const struct ew_simulated *board;
    const struct ew_train_opts *opts;
    struct ew_simulated_run step; /* one batch */
    struct ew_sim_work work;      /* of an epoch */
    double medium_s;              /* of an epoch that reads from its medium, beside that */
    struct ew_sim_heat heat;
    int64_t images; /* of an epoch */
    int64_t epochs; /* so far */
    double seconds; /* the same */
};

/* Borrows the board and the options.  The network is that of inference. */
ew_err ew_simulated_training_begin(struct ew_simulated *board, const struct ew_graph *net,
                                   const struct ew_dataset *data, const struct ew_train_opts *o,
                                   struct ew_simulated_training *out);
/* The next epoch, which begins as warm as the last has left the board. */
ew_err ew_simulated_training_epoch(struct ew_simulated_training *t, struct ew_sim_epoch *e,
                                   struct ew_epoch_row *row);

#endif
