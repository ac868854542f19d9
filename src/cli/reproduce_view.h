/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of `edgewise reproduce`: every table and figure with its state, published values beside
 * ours, verdicts on shapes, and which network fits which board. */
#ifndef EW_CLI_REPRODUCE_VIEW_H
#define EW_CLI_REPRODUCE_VIEW_H

#include "report/figure_grid.h"
#include "report/reproduce.h"
#include "store/store.h"

/* What this machine has. */
ew_err ew_reproduce_look(struct ew_reproduce_here *out);

/* All of them; figures NULL: nothing was measured yet. */
ew_err ew_reproduce_list(const struct ew_figures *f, const struct ew_reproduce_here *here,
                         struct ew_grid *out);

/* Whose runs: of this device, or of a simulated board. */
struct ew_reproduce_whose {
    const char *unit, *simulate;        /* simulate NULL: measured ones */
    const struct ew_reproduction *only; /* of its figures; NULL: of all */
};

/* Published values beside ours with their ratio, and verdicts on the shapes, of the studies that
 * the store has. */
struct ew_reproduce_tables {
    struct ew_grid values, shapes;
};
ew_err ew_reproduce_compare(struct ew_store *s, const struct ew_reproduce_whose *w,
                            struct ew_reproduce_tables *out);

/* Table 2 of TRAIN, and the networks that NX had no room for: planned bytes by board. */
ew_err ew_reproduce_fits(struct ew_grid *out);

#endif
