/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of CPU kernels: the conditions, estimated cost, fusions and test of each.
 * docs/kernels.md is generated from it.
 *
 * An operator's kernels are a list in order of preference.  Kernels whose conditions all hold are
 * offered; the heuristic choice is the first, and --tune measures them all.  Estimates decide only
 * where a condition compares two of them. */
#ifndef EW_BACKEND_CPU_CATALOGUE_CATALOGUE_H
#define EW_BACKEND_CPU_CATALOGUE_CATALOGUE_H

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/step/int8_step.h"

/* One call, as conditions see it. */
struct ew_kernel_case {
    const struct ew_kernel_query *query;
    const struct ew_call *c;
    const struct ew_kernels *k;
    struct ew_conv_shape shape; /* of the convolution or dense layer, float or 8-bit */
    bool relu;                  /* the epilogue has a ReLU */
    struct ew_qlayer layer;     /* 8-bit layers only */
};

struct ew_kernel_rule {
    const char *says; /* "at least 16 channels on both sides" */
    bool (*holds)(const struct ew_kernel_case *c);
    bool compares; /* compares this kernel's estimate with another's */
};

#define EW_KERNEL_RULES 6

struct ew_kernel_entry {
    const char *name;                             /* in profiles, tune caches and engine files */
    const char *folder;                           /* under kernel/ */
    const char *fuses;                            /* NULL: nothing */
    const char *test;                             /* under tests/ */
    struct ew_kernel_rule rules[EW_KERNEL_RULES]; /* terminated by an entry without function */
    double (*cycles)(const struct ew_kernel_case *c);      /* estimate for one core; NULL: none */
    const char *(*detail)(const struct ew_kernel_case *c); /* further choices; NULL: none */
    struct ew_kernel (*make)(const struct ew_kernel_case *c);
    /* Instead of make: a kernel that inspects the data at run time and may fall back to `next`, the
     * kernel chosen among the others. */
    struct ew_kernel (*wrap)(const struct ew_kernel_case *c, struct ew_kernel next);
};

struct ew_kernel_list {
    const struct ew_op *const *ops; /* NULL-terminated */
    enum ew_phase phase;
    const char *needs; /* in words: the conditions of `resolve` */
    /* Fills the case of a call; false: unsupported by the whole list.  NULL: a family with a single
     * kernel, which its offer function selects; the entries are documentation. */
    bool (*resolve)(const struct ew_kernel_query *query, struct ew_kernel_case *out);
    const struct ew_kernel_entry *entries;
    int n;
    int most; /* most offers; 0: no limit */
};

/* All lists; NULL beyond the last. */
const struct ew_kernel_list *ew_catalogue_at(int i);

/* The list with conditions for a query; NULL: none. */
const struct ew_kernel_list *ew_catalogue_find(const struct ew_kernel_query *query);

/* Offers of a list for a query, as ew_kernel_family.offer. */
int ew_catalogue_offer(const struct ew_kernel_list *l, const struct ew_kernel_query *query,
                       struct ew_kernel *out);
/* The same for a resolved case, without kernels that inspect the data (wrap). */
int ew_catalogue_offer_dense(const struct ew_kernel_list *l, const struct ew_kernel_case *c,
                             struct ew_kernel *out);

/* The CPU's part of ew_backend_candidates. */
struct ew_kernel_candidate;
int ew_cpu_candidates(const struct ew_kernel_query *query, struct ew_kernel_candidate *out,
                      int most);

/* Lists of kernels with conditions: forward and backward. */
extern const struct ew_kernel_list ew_conv_kernels[2], ew_dense_kernels[2], ew_int8_conv_kernels;
/* Families with a single kernel. */
extern const struct ew_kernel_list ew_other_kernels[];
extern const int ew_other_kernels_count;

#endif
