/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of one convolution between guard pages, for tests of forward and backward. */
#ifndef EW_TESTS_BACKEND_CONV_DATA_H
#define EW_TESTS_BACKEND_CONV_DATA_H

#include "kernel_test.h"
#include "ref_conv.h"

enum way { BY_SPOTS, BY_DENSE, BY_SPARSE, BY_SCATTER_GRAD };

struct data {
    const struct ew_kernels *k;
    struct ew_conv_shape s;
    float *x, *w, *bias, *dy;
    int64_t n_x, n_w, n_y;
    enum way way; /* used by test_kernel_tap_pairs.c */
    bool by_x;    /* BY_SPARSE: for the filter's gradient */
};

static inline void data_init(struct data *d, uint64_t seed)
{
    d->n_x = ref_conv_in_count(&d->s);
    d->n_w = ref_conv_filter_count(&d->s);
    d->n_y = ref_conv_out_count(&d->s);
    d->x = test_array(d->n_x, seed);
    d->w = test_array(d->n_w, seed + 1);
    d->bias = test_array(d->s.cout, seed + 2);
    d->dy = test_array(d->n_y, seed + 3);
}

static inline void data_fini(struct data *d)
{
    ew_guard_free(d->x);
    ew_guard_free(d->w);
    ew_guard_free(d->bias);
    ew_guard_free(d->dy);
}

#endif
