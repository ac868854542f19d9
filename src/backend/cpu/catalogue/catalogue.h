/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of CPU kernels: which cases each takes, what it is estimated to cost, what it fuses
 * and which test covers it.  docs/kernels.md is made of it.
 *
 * An operator's kernels are a list in order of preference.  Of a list, those kernels are offered
 * whose conditions all hold; the first is what rules choose, and the others are there for --tune.
 * An estimate takes part only where a condition compares two of them. */
#ifndef EW_BACKEND_CPU_CATALOGUE_CATALOGUE_H
#define EW_BACKEND_CPU_CATALOGUE_CATALOGUE_H

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/step/int8_step.h"

/* What conditions look at. */
struct ew_kernel_case {
    const struct ew_kernel_query *query;
    const struct ew_call *c;
    const struct ew_kernels *k;
    struct ew_conv_shape shape; /* of a convolution or dense layer, float or 8-bit */
    bool relu;                  /* in its epilogue */
    struct ew_qlayer layer;     /* 8-bit ones */
};

struct ew_kernel_rule {
    const char *says; /* "at least 16 channels on both sides" */
    bool (*holds)(const struct ew_kernel_case *c);
    bool compares; /* estimates: its own must be less than another kernel's */
};

#define EW_KERNEL_RULES 6

struct ew_kernel_entry {
    const char *name;                             /* in profiles, tune caches and engine files */
    const char *folder;                           /* under kernel/ */
    const char *fuses;                            /* NULL: nothing */
    const char *test;                             /* under tests/ */
    struct ew_kernel_rule rules[EW_KERNEL_RULES]; /* up to one without a function */
    double (*cycles)(const struct ew_kernel_case *c);      /* estimate for one core; NULL: none */
    const char *(*detail)(const struct ew_kernel_case *c); /* what else is chosen; NULL: nothing */
    struct ew_kernel (*make)(const struct ew_kernel_case *c);
    /* Instead of make: it looks at the data when it runs, and else runs the next in the list. */
    struct ew_kernel (*wrap)(const struct ew_kernel_case *c, struct ew_kernel next);
};

struct ew_kernel_list {
    const struct ew_op *const *ops; /* NULL-terminated */
    enum ew_phase phase;
    const char *needs; /* what holds for all of the list */
    /* The case of a call; false where it is none for these kernels.  NULL: a family of one kernel,
     * which offers it itself, and whose entries only describe. */
    bool (*resolve)(const struct ew_kernel_query *query, struct ew_kernel_case *out);
    const struct ew_kernel_entry *entries;
    int n;
    int most; /* offers, at most; 0: all that fit */
};

/* All lists; NULL beyond the last. */
const struct ew_kernel_list *ew_catalogue_at(int i);

/* The list with conditions for a query; NULL: there is none. */
const struct ew_kernel_list *ew_catalogue_find(const struct ew_kernel_query *query);

/* Offers of a list for a query, as an ew_kernel_family makes them. */
int ew_catalogue_offer(const struct ew_kernel_list *l, const struct ew_kernel_query *query,
                       struct ew_kernel *out);
/* The same for a case that it resolved, without kernels that look at the data. */
int ew_catalogue_offer_dense(const struct ew_kernel_list *l, const struct ew_kernel_case *c,
                             struct ew_kernel *out);

/* The CPU's part of ew_backend_candidates. */
struct ew_kernel_candidate;
int ew_cpu_candidates(const struct ew_kernel_query *query, struct ew_kernel_candidate *out,
                      int most);

/* Lists of kernels with conditions: forward and backward. */
extern const struct ew_kernel_list ew_conv_kernels[2], ew_dense_kernels[2], ew_int8_conv_kernels;
/* Families of one kernel. */
extern const struct ew_kernel_list ew_other_kernels[];
extern const int ew_other_kernels_count;

#endif
