/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the results that studies, and commands with --db, have stored.  A study's jobs are
 * processes of the program, so it is run with `edgewise study`. */
#ifndef EDGEWISE_RESULTS_H
#define EDGEWISE_RESULTS_H

#include "edgewise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Results --------------------------------------------------------------------------------- */

/* A cursor over the runs of a store.  One thread calls. */
struct ew_result_list;

/* Opens a cursor over the runs that satisfy `where`, an SQL condition on the columns that `edgewise
 * results` shows ("command = 'bench' AND network = 'resnet18'"; NULL: all), sorted by `order`
 * ("median_ms DESC"; NULL: chronologically).  The caller closes *out. */
EW_API ew_err ew_result_list_open(const char *db, const char *where, const char *order,
                                  struct ew_result_list **out);
/* Returns the error that ended the iteration early, if there was one; NULL is fine. */
EW_API ew_err ew_result_list_close(struct ew_result_list *l);

/* Moves to the next run: 1, or 0 after the last. */
EW_API int ew_result_list_next(struct ew_result_list *l);

/* Columns: their number, name of one, and index by name (-1: none). */
EW_API int ew_result_list_columns(const struct ew_result_list *l);
EW_API const char *ew_result_list_name(const struct ew_result_list *l, int column);
EW_API int ew_result_list_find(const struct ew_result_list *l, const char *name);

/* The current run's value as a number (nan: absent, or not a number) and as text (NULL: absent;
 * valid until the next row). */
EW_API double ew_result_list_number(const struct ew_result_list *l, int column);
EW_API const char *ew_result_list_text(const struct ew_result_list *l, int column);

#ifdef __cplusplus
}
#endif

#endif
