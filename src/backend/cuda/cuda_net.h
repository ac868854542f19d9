/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks in two launches: shared by recognition (cuda_net.c) and layout
 * (cuda_net_layout.c). */
#ifndef EW_BACKEND_CUDA_CUDA_NET_H
#define EW_BACKEND_CUDA_CUDA_NET_H

#include <stdbool.h>

#include "backend/cuda/kernels.h"

/* Dense layers and transposes read their input as a flat vector. */
static inline bool ew_cuda_reads_flat(const struct ew_cuda_layer *l)
{
    return l->kind == EW_CUDA_LAYER_DENSE || l->kind == EW_CUDA_LAYER_TRANSPOSE;
}

/* The layer's output is stored transposed (strides in `kept`); valid before ew_cuda_lay_out. */
static inline bool ew_cuda_is_turned(const struct ew_cuda_layer *l)
{
    return l->kept.channel != 0;
}

/* Fills in layouts, offsets and sizes of a chain; back: with backward.  False: it exceeds
 * EW_CUDA_NET_BYTES of shared memory. */
bool ew_cuda_lay_out(struct ew_cuda_net *net, bool back);

#endif
