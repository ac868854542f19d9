/* SPDX-License-Identifier: Apache-2.0 */
/* What `predict` and `recommend` work from: measurements, the board, and the modes to consider. */
#ifndef EW_ADVISE_STORE_ADVICE_SOURCE_H
#define EW_ADVISE_STORE_ADVICE_SOURCE_H

#include "advise/holdout.h"
#include "advise/measured.h"
#include "advise/mode_grid.h"
#include "advise/predictor.h"

struct ew_advice_source {
    struct ew_arena arena;
    struct ew_measured measured; /* no rows: there is no file */
    const struct ew_profile *profiles;
    int n_profiles;
    const struct ew_profile *board; /* NULL: not known */
    bool board_given;
};

/* Reads the file (NULL: none), the profiles, and which board it is: the one given, or the one whose
 * clocks fit.  Release with ew_advice_close, whether it failed or not. */
ew_err ew_advice_open(const char *file, const char *board, struct ew_advice_source *s);
/* The same from a store that this process may have open: reading its first bytes to see what it is
 * would take SQLite's locks away (POSIX locks end with any close of the file). */
ew_err ew_advice_open_store(const char *path, struct ew_advice_source *s);
void ew_advice_close(struct ew_advice_source *s);

/* The workload of this name, or the only one where `name` is NULL. */
ew_err ew_advice_workload(const struct ew_advice_source *s, const char *name, const char **out);

/* Modes by the words of --modes: "all" (the board's; without a board all combinations of what the
 * file has), a CSV file, or a list of CORES/CPU/GPU/MEM in MHz, separated by commas.  NULL: rows
 * of the file without a time where there are some, else all. */
ew_err ew_advice_modes(struct ew_advice_source *s, const char *workload, const char *words,
                       struct ew_mode **out, int *n);

/* Settings that these modes do not have, EW_NO_... */
unsigned ew_advice_lacks(const struct ew_advice_source *s);

struct ew_holdout_board ew_advice_board(const struct ew_advice_source *s);

/* Fits one workload and warns of unusual measurements. */
ew_err ew_advice_fit(struct ew_advice_source *s, const struct ew_mode_series *m,
                     struct ew_predictor **out);

#endif
