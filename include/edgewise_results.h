/* SPDX-License-Identifier: Apache-2.0 */
/* What studies, and commands with --db, have measured.  Jobs of a study are processes of the
 * program: a study is run by starting `edgewise study`, and read here. */
#ifndef EDGEWISE_RESULTS_H
#define EDGEWISE_RESULTS_H

#include "edgewise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Results --------------------------------------------------------------------------------- */

/* Runs of a store, one after the other.  One thread calls. */
struct ew_result_list;

/* Opens a store for reading: runs that fulfil `where`, an SQL condition on the columns that
 * `edgewise results` shows ("command = 'bench' AND network = 'resnet18'"; NULL: all), in the order
 * of `order` ("median_ms DESC"; NULL: as they were made).  The caller closes *out. */
EW_API ew_err ew_result_list_open(const char *db, const char *where, const char *order,
                                  struct ew_result_list **out);
/* Fails where reading did on the way; NULL is fine. */
EW_API ew_err ew_result_list_close(struct ew_result_list *l);

/* The next run: 1, or 0 after the last. */
EW_API int ew_result_list_next(struct ew_result_list *l);

/* Columns: their number, their names, and which has a name (-1: none). */
EW_API int ew_result_list_columns(const struct ew_result_list *l);
EW_API const char *ew_result_list_name(const struct ew_result_list *l, int column);
EW_API int ew_result_list_find(const struct ew_result_list *l, const char *name);

/* The run's value as a number (nan: absent, or none) and as text (NULL: absent; until the next). */
EW_API double ew_result_list_number(const struct ew_result_list *l, int column);
EW_API const char *ew_result_list_text(const struct ew_result_list *l, int column);

#ifdef __cplusplus
}
#endif

#endif
