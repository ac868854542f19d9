/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated run of a plan on another board: parsing of board and mode, and the prediction of the
 * board's model. */
#ifndef EW_ADVISE_SIMULATED_RUN_H
#define EW_ADVISE_SIMULATED_RUN_H

#include "advise/sim_load.h"
#include "advise/simulate.h"

/* The board and the setting that "BOARD[:MODE]" means. */
struct ew_simulated {
    struct ew_arena arena;
    const struct ew_profile *board;
    struct ew_mode mode;
    const char *mode_name; /* "": the highest */
};

/* Release with fini, whether it failed or not. */
ew_err ew_simulated_init(struct ew_simulated *s, const char *words);
void ew_simulated_fini(struct ew_simulated *s);

/* One run of the graph's plan, or a training step where `train` is set. */
struct ew_simulated_run {
    struct ew_sim_load load;
    struct ew_sim_epoch run; /* of one run; its energy in joules */
    enum ew_sim_software software;
};
ew_err ew_simulated_plan(struct ew_simulated *s, const struct ew_graph *g, bool train,
                         struct ew_simulated_run *out);

#endif
