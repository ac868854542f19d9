/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregation of the clients' weights. */
#ifndef EW_FEDERATE_COMBINE_H
#define EW_FEDERATE_COMBINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* clang-format off */
#define EW_COMBINE_MAP(X)                                                                          \
    X(MEAN, "mean")       /* weighted by the clients' numbers of samples */                                   \
    X(MEDIAN, "median")   /* of each weight: tolerates malicious clients up to half of them */                        \
    X(TRIMMED, "trimmed") /* mean of each weight without the largest and smallest: Yin et al.,      \
                             ICML 2018 */
/* clang-format on */

enum ew_combine_kind {
#define EW_COMBINE_ENUM(id, name) EW_COMBINE_##id,
    EW_COMBINE_MAP(EW_COMBINE_ENUM)
#undef EW_COMBINE_ENUM
        EW_COMBINE_COUNT
};

extern const char *const ew_combine_names[]; /* NULL at the end */

/* The mean needs one sum for any number of clients; the others keep all vectors.
 */
struct ew_combine {
    enum ew_combine_kind kind;
    int64_t size; /* numbers of a vector */
    double trim;  /* share that is left out at each end */
    double *sum, weight;
    float *kept;   /* n vectors, one after the other */
    float *column; /* one number of each */
    int64_t n, room;
};

ew_err ew_combine_open(enum ew_combine_kind kind, int64_t size, double trim,
                       struct ew_combine *out);
void ew_combine_close(struct ew_combine *c);

/* Adds a vector, unless it has values that are not finite: *taken. */
ew_err ew_combine_add(struct ew_combine *c, const float *v, double weight, bool *taken);

/* Returns the result of at least one vector and resets the state. */
void ew_combine_finish(struct ew_combine *c, float *out);

#endif
