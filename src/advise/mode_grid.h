/* SPDX-License-Identifier: Apache-2.0 */
/* The modes that a board can be put into, from its profile or from what was measured. */
#ifndef EW_ADVISE_MODE_GRID_H
#define EW_ADVISE_MODE_GRID_H

#include "advise/law.h"
#include "device/profile.h"

#define EW_GRID_MODES 200000 /* at most */

/* All combinations of the profile's tables of clocks and 1 to `cores` cores; a table that is not
 * known counts as its one highest clock. */
ew_err ew_grid_of_board(struct ew_arena *a, const struct ew_profile *p, struct ew_mode **out,
                        int *n);

/* All combinations of the values that occur. */
ew_err ew_grid_of_modes(struct ew_arena *a, const struct ew_mode *modes, int n,
                        struct ew_mode **out, int *n_out);

/* The board whose tables hold all of these modes' clocks (within 2 %) and whose highest CPU clock
 * and cores are the nearest above; NULL: none. */
const struct ew_profile *ew_grid_match_board(const struct ew_profile *list, int n_list,
                                             const struct ew_mode *modes, int n);

/* The mode that words mean: one of the profile's by name, what it leaves out staying as it is in
 * `m`, or CORES/CPU/GPU/MEM in MHz, "-" for a setting that the board does not have (`p` may then be
 * NULL). */
ew_err ew_grid_mode(const struct ew_profile *p, const char *words, struct ew_mode *m);

/* Settings that a board does not have or a file has no column of.  The laws then count a clock as
 * 1 GHz, or a GPU's as the CPU's; nobody is told such a number. */
enum { EW_NO_CORES = 1, EW_NO_CPU = 2, EW_NO_GPU = 4, EW_NO_MEM = 8 };

unsigned ew_profile_lacks(const struct ew_profile *p);

#define EW_MODE_CHARS 128
/* "4/1500/-/2133", as ew_grid_mode reads it; returns `text`. */
const char *ew_mode_words(const struct ew_mode *m, unsigned lacks, char text[EW_MODE_CHARS]);
/* "4 cores, CPU 1500, memory 2133 MHz"; returns `text`. */
const char *ew_mode_text(const struct ew_mode *m, unsigned lacks, char text[EW_MODE_CHARS]);

/* Highest settings of a profile; 0 where it does not say. */
struct ew_mode ew_grid_top(const struct ew_profile *p);

#endif
