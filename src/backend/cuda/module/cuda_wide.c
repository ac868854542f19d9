/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with few input channels in half types (a network's first layer), zero-padded to
 * EW_CUDA_WIDE channels: with three channels cuDNN falls back to slow kernels. */
#include "backend/cuda/module/cuda_status.h"

/* Rows of the filters as [k * taps, EW_CUDA_WIDE]. */
static int64_t filter_rows(const struct ew_cuda_window *g)
{
    return g->k * ew_cuda_taps(g);
}

int ew_cu_wide_conv(struct ew_cuda_queue *q, const struct ew_cuda_conv *p)
{
    struct ew_cuda_conv wide = *p;
    size_t at[3];
    char *base = p->scratch;
    ew_cuda_wide_bytes(&p->g, at);
    EW_CU_TRY(ew_cu_widen(q, p->x, p->g.c, base, ew_cuda_in_pixels(&p->g)));
    EW_CU_TRY(ew_cu_widen(q, p->w, p->g.c, base + at[0], filter_rows(&p->g)));
    wide.g.c = EW_CUDA_WIDE;
    wide.x = base;
    wide.w = base + at[0];
    return ew_cu_conv(q, &wide);
}

int ew_cu_wide_dw(struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p)
{
    struct ew_cuda_conv_back wide = *p;
    size_t at[3];
    char *base = (char *)p->scratch;
    ew_cuda_wide_bytes(&p->g, at);
    EW_CU_TRY(ew_cu_widen(q, p->x, p->g.c, base, ew_cuda_in_pixels(&p->g)));
    wide.g.c = EW_CUDA_WIDE;
    wide.x = base;
    wide.dw = (float *)(void *)(base + at[1]);
    wide.scratch = (float *)(void *)(base + at[0]); /* dw in the half type */
    wide.add = 0;
    EW_CU_TRY(ew_cu_conv_back(q, &wide));
    const struct ew_cuda_copy narrow = {.bytes = sizeof(float),
                                        .rank = 2,
                                        .add_type = p->add ? EW_CUDA_F32 : -1,
                                        .dim = {filter_rows(&p->g), p->g.c},
                                        .x_stride = {EW_CUDA_WIDE, 1},
                                        .y_stride = {p->g.c, 1},
                                        .x = wide.dw,
                                        .y = p->dw};
    return ew_cu_strided_copy(q, &narrow);
}
