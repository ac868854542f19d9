/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of `edgewise reproduce`: all tables and figures with their state, published values beside
 * ours, verdicts on trends, and which network fits which board. */
#ifndef EW_CLI_REPRODUCE_VIEW_H
#define EW_CLI_REPRODUCE_VIEW_H

#include "report/figure_grid.h"
#include "report/reproduce.h"
#include "store/store.h"

/* Detects what this machine has. */
ew_err ew_reproduce_look(struct ew_reproduce_here *out);

/* Lists all tables and figures; figures NULL: nothing is measured yet. */
ew_err ew_reproduce_list(const struct ew_figures *f, const struct ew_reproduce_here *here,
                         struct ew_grid *out);

/* Selects runs: of this machine, or of a simulated board. */
struct ew_reproduce_whose {
    const char *unit, *simulate;        /* simulate NULL: measured runs */
    const struct ew_reproduction *only; /* only this reproduction; NULL: all */
};

/* Published values beside ours with their ratio, and verdicts on trends, of the studies in the
 * store. */
struct ew_reproduce_tables {
    struct ew_grid values, shapes;
};
ew_err ew_reproduce_compare(struct ew_store *s, const struct ew_reproduce_whose *w,
                            struct ew_reproduce_tables *out);

/* Table 2 of TRAIN, and the networks that ran out of memory in NX: planned bytes by board. */
ew_err ew_reproduce_fits(struct ew_grid *out);

#endif
