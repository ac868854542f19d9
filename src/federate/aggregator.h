/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregation of the clients' weights. */
#ifndef EW_FEDERATE_AGGREGATOR_H
#define EW_FEDERATE_AGGREGATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* clang-format off */
#define EW_AGGREGATE_MAP(X)                                                                        \
    X(MEAN, "mean")       /* weighted by the clients' numbers of samples */                        \
    X(MEDIAN, "median")   /* of each weight: tolerates malicious clients up to half of them */     \
    X(TRIMMED, "trimmed") /* mean of each weight without the largest and smallest: Yin et al.,     \
                             ICML 2018 */
/* clang-format on */

enum ew_aggregate_kind {
#define EW_AGGREGATE_ENUM(id, name) EW_AGGREGATE_##id,
    EW_AGGREGATE_MAP(EW_AGGREGATE_ENUM)
#undef EW_AGGREGATE_ENUM
        EW_AGGREGATE_COUNT
};

extern const char *const ew_aggregate_names[]; /* NULL at the end */

/* The mean needs one sum for any number of clients; the others keep all vectors.
 */
struct ew_aggregator {
    enum ew_aggregate_kind kind;
    int64_t size; /* numbers of a vector */
    double trim;  /* share that is left out at each end */
    double *sum, weight;
    float *kept;   /* n vectors, one after the other */
    float *column; /* one number of each */
    int64_t n, room;
};

ew_err ew_aggregator_open(enum ew_aggregate_kind kind, int64_t size, double trim,
                          struct ew_aggregator *out);
void ew_aggregator_close(struct ew_aggregator *c);

/* Adds a vector, unless it has values that are not finite: *taken. */
ew_err ew_aggregator_add(struct ew_aggregator *c, const float *v, double weight, bool *taken);

/* Returns the result of at least one vector and resets the state. */
void ew_aggregator_finish(struct ew_aggregator *c, float *out);

#endif
