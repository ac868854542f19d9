/* SPDX-License-Identifier: Apache-2.0 */
/* One convolution-shaped pass over the CPU's kernels. */
#include "backend/cpu/conv_pass.h"

#include "backend/cpu/share.h"

void ew_conv_shape_of(const struct ew_conv_sizes *s, struct ew_conv_shape *out)
{
    *out = (struct ew_conv_shape){.batch = (int32_t)s->w.batch,
                                  .groups = (int32_t)s->groups,
                                  .cin = (int32_t)s->w.channels,
                                  .cout = (int32_t)s->filters};
    for (int i = 0; i < EW_WINDOW_DIMS; i++)
        out->axis[i] = (struct ew_conv_axis){.in = (int32_t)s->w.in[i],
                                             .out = (int32_t)s->w.out[i],
                                             .taps = (int32_t)s->w.kernel[i],
                                             .stride = (int32_t)s->w.stride[i],
                                             .dilation = (int32_t)s->w.dilation[i],
                                             .pad = (int32_t)s->w.pad[i]};
}

bool ew_conv_fits(const struct ew_kernels *k, enum ew_conv_method m, const struct ew_conv_shape *s)
{
    switch (m) {
    case EW_CONV_WINOGRAD:
        return k->winograd_fits(s);
    case EW_CONV_DEPTHWISE:
        return k->depthwise_fits(s);
    case EW_CONV_GEMM:
    case EW_CONV_DATA:
        break;
    }
    return true;
}

size_t ew_conv_packed_bytes(const struct ew_kernels *k, enum ew_conv_method m,
                            const struct ew_conv_shape *s)
{
    size_t (*const size[])(const struct ew_conv_shape *) = {
        k->conv_pack_size, k->winograd_pack_size, k->depthwise_pack_size, k->conv_data_pack_size};
    return size[m](s) * sizeof(float);
}

size_t ew_conv_scratch_bytes(const struct ew_kernels *k, enum ew_conv_method m,
                             const struct ew_conv_shape *s)
{
    size_t (*const size[])(const struct ew_conv_shape *) = {
        k->conv_scratch, k->winograd_scratch, k->depthwise_scratch, k->conv_data_scratch};
    return size[m](s);
}

static int64_t tiles_of(const struct ew_kernels *k, enum ew_conv_method m,
                        const struct ew_conv_shape *s)
{
    int64_t (*const tiles[])(const struct ew_conv_shape *) = {
        k->conv_tiles, k->winograd_tiles, k->depthwise_tiles, k->conv_data_tiles};
    return tiles[m](s);
}

void ew_conv_pack(const struct ew_kernels *k, const struct ew_conv_pass *p, const float *w)
{
    const struct ew_conv_shape *s = &p->conv.shape;
    switch (p->method) {
    case EW_CONV_GEMM:
        k->conv_pack(s, w, p->packed);
        break;
    case EW_CONV_WINOGRAD:
        k->winograd_pack(s, w, false, p->packed);
        break;
    case EW_CONV_DEPTHWISE:
        k->depthwise_pack(s, w, p->packed);
        break;
    case EW_CONV_DATA:
        k->conv_data_pack(s, w, p->packed);
        break;
    }
}

struct shared {
    const struct ew_call *c;
    const struct ew_conv_pass *p;
    size_t scratch;
};

static void run_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct shared *s = ctx;
    const struct ew_kernels *k = s->c->be->isa;
    void (*const run[])(const struct ew_conv *, int64_t, int64_t, void *) = {
        k->conv_run, k->winograd_run, k->depthwise_run, k->conv_data_run};
    run[s->p->method](&s->p->conv, begin, end, ew_worker_scratch(s->c, s->scratch, worker));
}

void ew_conv_pass_run(const struct ew_call *c, struct ew_conv_pass *p)
{
    const struct ew_kernels *k = c->be->isa;
    p->conv.w = p->packed;
    struct shared s = {c, p, ew_conv_scratch_bytes(k, p->method, &p->conv.shape)};
    ew_pool_run(c->be->pool, tiles_of(k, p->method, &p->conv.shape), run_tiles, &s);
}
