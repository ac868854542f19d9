/* SPDX-License-Identifier: Apache-2.0 */
/* Every number of the four studies' texts, from share/published, which is built into the program,
 * with known errata.  Each has a `where` (table, figure or section) and a kind: stated, approx,
 * upper bound, lower bound, derived, read from a figure. */
#ifndef EW_STUDY_PUBLISHED_H
#define EW_STUDY_PUBLISHED_H

#include "base/mem.h"
#include "record/record.h"

struct ew_published_value {
    const char *file;                        /* "train": TRAIN's */
    const char *const *names, *const *cells; /* columns of that file, and what stands there */
    int n;
    const char *wrong; /* why the printed value is wrong; NULL: no erratum */
};

struct ew_published_list {
    struct ew_published_value *v;
    int n;
};

/* All of them; everything lives in the arena. */
ew_err ew_published_list_load(struct ew_arena *a, struct ew_published_list *out);

/* A column of it; "" where its file has none of this name. */
const char *ew_published_value_get(const struct ew_published_value *f, const char *column);

/* A published name and ours for it. */
struct ew_published_name {
    const char *column, *theirs, *ours;
};

/* Which published values are compared with which of our metrics: a line `rows` of a study. */
struct ew_published_rule {
    const char *file;
    const char *metric, *unit;                /* ours; unit NULL: as published */
    const char *const *settings, *const *fit; /* words */
    int n_settings, n_fit;
    const struct ew_published_name *renamed;
    int n_renamed;
};

/* Converts a value into a published row; false: the rule does not apply (another file, no match,
 * not a number). */
bool ew_published_value_row(struct ew_arena *a, const struct ew_published_value *f,
                            const struct ew_published_rule *rule, struct ew_published_row *row);

/* Rank of a kind by its trustworthiness: of two values of the same quantity the better one
 * counts. */
int ew_published_kind_rank(const char *kind);

#endif
