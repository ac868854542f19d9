/* SPDX-License-Identifier: Apache-2.0 */
/* Forward convolution and dense layers: packing, and the implicit GEMM of core.h. */
#include "backend/cpu/kernel/core.h"

size_t EW_K(conv_pack_size)(const struct ew_conv_shape *s)
{
    struct core c;
    EW_K(core_init)(&c, s);
    return (size_t)(s->groups * EW_K(core_group_size)(&c));
}

/* Outputs [0, width) of w [og][k] to [k][packed_width]; missing outputs become zero. */
static void pack_block(const float *w, int64_t k, int64_t width, float *out)
{
    const int64_t wide = packed_width(width);
    for (int64_t i = 0; i < k; i++) {
        for (int64_t o = 0; o < width; o++)
            out[i * wide + o] = w[o * k + i];
        for (int64_t o = width; o < wide; o++)
            out[i * wide + o] = 0;
    }
}

void EW_K(conv_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    struct core c;
    EW_K(core_init)(&c, s);
    for (int64_t g = 0; g < c.groups; g++)
        for (int64_t o = 0; o < c.og; o += NR)
            pack_block(w + (g * c.og + o) * c.k, c.k, min_i64(NR, c.og - o),
                       packed + g * EW_K(core_group_size)(&c) + o * c.k);
}

int64_t EW_K(conv_tiles)(const struct ew_conv_shape *s)
{
    struct core c;
    EW_K(core_init)(&c, s);
    return c.tiles;
}

size_t EW_K(conv_scratch)(const struct ew_conv_shape *s)
{
    return CORE_SCRATCH;
}

void EW_K(conv_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    struct core core;
    EW_K(core_init)(&core, &c->shape);
    const struct core_run run = {
        .core = &core, .x = c->x, .w = c->w, .y = c->y, .end = &c->end, .scratch = scratch};
    EW_K(core_run)(&run, begin, end);
}
