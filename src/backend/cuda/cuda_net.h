/* SPDX-License-Identifier: Apache-2.0 */
/* Whole small networks: what reading a chain of layers and laying it out share. */
#ifndef EW_BACKEND_CUDA_CUDA_NET_H
#define EW_BACKEND_CUDA_CUDA_NET_H

#include <stdbool.h>

#include "backend/cuda/kernels.h"

/* Dense layers and transposes read what stands before them one element after the other. */
static inline bool ew_cuda_reads_flat(const struct ew_cuda_layer *l)
{
    return l->kind == EW_CUDA_LAYER_DENSE || l->kind == EW_CUDA_LAYER_TRANSPOSE;
}

/* The layer's output lies transposed; for chains that are not laid out yet. */
static inline bool ew_cuda_is_turned(const struct ew_cuda_layer *l)
{
    return l->kept.channel != 0;
}

/* Where things lie, of a chain of layers; back: it goes back too.  False: shared memory is too
 * small for it. */
bool ew_cuda_lay_out(struct ew_cuda_net *net, bool back);

#endif
