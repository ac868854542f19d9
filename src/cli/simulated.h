/* SPDX-License-Identifier: Apache-2.0 */
/* --simulate BOARD[:MODE]: what a command would measure on a board that is not here, from the
 * plan's steps and the board's model.  All that comes of it is marked "simulated". */
#ifndef EW_CLI_SIMULATED_H
#define EW_CLI_SIMULATED_H

#include "advise/simulate.h"
#include "cli/recorded.h"

/* A row of a command's option table, for the member `simulate` of `owner`. */
#define EW_SIMULATE_FIELD(owner)                                                                   \
    {                                                                                              \
        .name = "simulate", .type = EW_FIELD_STR, .offset = offsetof(owner, simulate),             \
        .metavar = "BOARD[:MODE]",                                                                 \
        .help = "instead of running: what a board that is not here would take; MODE is one of "    \
                "its profile or CORES/CPU/GPU/MEM in MHz, default: the highest"                    \
    }

/* The board and the setting that the words mean. */
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

/* As text or JSON, and as metrics of the recording. */
ew_err ew_simulated_show(const struct ew_simulated *s, const struct ew_simulated_run *r,
                         const char *name, bool json);
ew_err ew_simulated_record(struct ew_recording *rec, const struct ew_simulated_run *r);

/* A simulated figure; and that the run as a whole is one. */
ew_err ew_simulated_metric(struct ew_recording *rec, const char *name, double value,
                           const char *unit, enum ew_better better);
ew_err ew_simulated_mark(struct ew_recording *rec);

#endif
