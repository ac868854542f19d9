/* SPDX-License-Identifier: Apache-2.0 */
/* The best classes of a network's output. */
#ifndef EW_MEASURE_TOP_CLASSES_H
#define EW_MEASURE_TOP_CLASSES_H

#include "graph/tensor.h"

struct ew_top_class {
    int64_t index;
    double value, share; /* the score, and its share of the softmax */
};

/* The best of one row of scores, at most `want`, the largest first; 0 if the output is something
 * else or holds a NaN (see ew_best_class). */
int ew_top_classes(const struct ew_tensor *t, int want, struct ew_top_class *out);

#endif
