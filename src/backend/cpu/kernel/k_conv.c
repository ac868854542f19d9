/* SPDX-License-Identifier: Apache-2.0 */
/* Forward convolution and dense layers: packing, and the implicit GEMM of core.h. */
#include "backend/cpu/kernel/core.h"
#include "backend/cpu/kernel/turn.h"

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
    for (int64_t i = 0; i < k; i += LANES, out += LANES * wide)
        for (int64_t o = 0; o < wide; o += LANES) {
            vec column[LANES];
            turn_load(w + o * k + i, k, width - o, k - i, column);
            for (int64_t j = 0; j < min_i64(LANES, k - i); j++)
                store_n(out + j * wide + o, column[j], wide - o);
        }
}

int64_t EW_K(conv_pack_tiles)(const struct ew_conv_shape *s)
{
    return s->groups * div_up(s->cout / s->groups, NR);
}

void EW_K(conv_pack)(const struct ew_conv_shape *s, const float *w, float *packed, int64_t begin,
                     int64_t end)
{
    struct core c;
    EW_K(core_init)(&c, s);
    for (int64_t i = begin; i < end; i++) {
        const int64_t g = i / c.blocks, o = i % c.blocks * NR;
        pack_block(w + (g * c.og + o) * c.k, c.k, min_i64(NR, c.og - o),
                   packed + g * EW_K(core_group_size)(&c) + o * c.k);
    }
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
