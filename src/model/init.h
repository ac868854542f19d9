/* SPDX-License-Identifier: Apache-2.0 */
/* Weight initialisation. */
#ifndef EW_MODEL_INIT_H
#define EW_MODEL_INIT_H

#include "graph/graph.h"

/* Distribution of a weight with fan-in i and fan-out o. */
enum ew_init_rule {
    EW_INIT_DEFAULT,    /* uniform in +-1 / sqrt(i): PyTorch's default */
    EW_INIT_HE_OUT,     /* normal, variance 2 / o */
    EW_INIT_HE_IN,      /* normal, variance 2 / i */
    EW_INIT_HE_UNIFORM, /* uniform, variance 2 / i */
    EW_INIT_NORMAL_001  /* normal, standard deviation 0.01 */
};

/* Rules of a model family.  Batch norms start at gain 1, shift 0, mean 0, variance 1. */
struct ew_init {
    enum ew_init_rule conv, dense;
    enum ew_init_rule last_conv; /* of the last convolution; DEFAULT: as `conv` */
    bool zero_bias;              /* of convolutions and dense layers; else uniform as by default */
    bool zero_dense_bias;        /* of dense layers alone */
    double bn_gain;              /* 0: 1 */
};

/* Allocates and initialises every parameter and running statistic without data.  A value depends on
 * (seed, name of the parameter, element) alone, so that changing one layer leaves the others
 * unchanged. */
ew_err ew_init_weights(struct ew_graph *g, const struct ew_init *how, uint64_t seed);

#endif
