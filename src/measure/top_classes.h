/* SPDX-License-Identifier: Apache-2.0 */
/* The top classes of a network's output. */
#ifndef EW_MEASURE_TOP_CLASSES_H
#define EW_MEASURE_TOP_CLASSES_H

#include "graph/tensor.h"

struct ew_top_class {
    int64_t index;
    double value, share; /* the score, and its softmax */
};

/* The top `want` elements of one row of scores, in descending order; 0 if the output is not one row
 * or contains a NaN (see ew_best_class). */
int ew_top_classes(const struct ew_tensor *t, int want, struct ew_top_class *out);

#endif
