/* SPDX-License-Identifier: Apache-2.0 */
/* Dgrad: gradient of a convolution with respect to its input.
 *
 * Along an axis, input i = q + stride * j of phase q contributes through tap t to output j + (q +
 * pad - t * dilation) / stride, if that is an integer.  So each phase is a convolution of dy with
 * stride 1 and some of the taps in reverse order, whose outputs are `stride` apart in dx.  Each tap
 * belongs to one phase, and no inserted zeros are multiplied.  A phase without taps stores
 * zeros. */
#include "backend/cpu/kernel/gemm/implicit_gemm.h"

struct phase {
    int32_t last, step, taps; /* the highest tap, the distance between taps, their number */
    struct ew_conv_axis axis; /* of the phase's convolution of dy */
};

static void find_phase(const struct ew_conv_axis *a, int32_t q, struct phase *out)
{
    const int32_t common = gcd(a->stride, a->dilation);
    out->step = a->stride / common;
    out->last = -1;
    for (int32_t t = a->taps - 1; t >= 0 && out->last < 0; t--)
        if ((q + a->pad - t * a->dilation) % a->stride == 0)
            out->last = t;
    out->taps = out->last < 0 ? 0 : out->last / out->step + 1;
    const int32_t first = out->last < 0 ? 0 : (q + a->pad - out->last * a->dilation) / a->stride;
    out->axis =
        (struct ew_conv_axis){.in = a->out,
                              .out = a->in > q ? (a->in - q + a->stride - 1) / a->stride : 0,
                              .taps = out->taps,
                              .stride = 1,
                              .dilation = a->dilation / common,
                              .pad = -first};
}

/* With a stride beyond the axis, the other phases are empty. */
static int32_t axis_phases(const struct ew_conv_axis *a)
{
    return a->stride < a->in ? a->stride : a->in;
}

static int64_t phase_count(const struct ew_conv_shape *s)
{
    return (int64_t)axis_phases(&s->axis[0]) * axis_phases(&s->axis[1]) * axis_phases(&s->axis[2]);
}

struct part {
    struct phase phase[3];
    struct implicit_gemm core;
    int64_t offset; /* offset of its first output in dx */
};

static void find_part(const struct ew_conv_shape *s, int64_t index, struct part *out)
{
    struct implicit_gemm *c = &out->core;
    c->batch = s->batch;
    c->groups = s->groups;
    c->cg = s->cout / s->groups;
    c->og = s->cin / s->groups;
    out->offset = 0;
    struct ew_conv_axis axis[3];
    memcpy(axis, s->axis, sizeof(axis));
    EW_K(implicit_gemm_trim)(axis, &c->used);
    int64_t xs = y_step_of(s), ys = x_step_of(s);
    for (int i = 2; i >= 0; i--) {
        const struct ew_conv_axis *a = &axis[i];
        const int32_t phases = axis_phases(&s->axis[i]), q = (int32_t)(index % phases);
        index /= phases;
        find_phase(a, q, &out->phase[i]);
        c->axis[i] = out->phase[i].axis;
        c->x_step[i] = xs;
        c->y_step[i] = ys * a->stride;
        out->offset += q * ys;
        xs *= a->out;
        ys *= a->in;
    }
    c->x_image = xs;
    c->y_image = ys;
    EW_K(implicit_gemm_plan)(c);
}

size_t EW_K(conv_dgrad_pack_size)(const struct ew_conv_shape *s)
{
    size_t size = 0;
    for (int64_t i = 0; i < phase_count(s); i++) {
        struct part p;
        find_part(s, i, &p);
        size += (size_t)(s->groups * EW_K(implicit_gemm_group_size)(&p.core));
    }
    return size;
}

/* Packs a block of NR input channels of one group, from c on, as [taps in
 * reverse][outputs][width]. */
static void pack_block(const struct part *p, int64_t g, int64_t c, const float *w, float *out)
{
    const struct used *u = &p->core.used;
    const int64_t og = p->core.cg, cg = p->core.og, taps = u->all[0] * u->all[1] * u->all[2];
    const int64_t width = block_width(cg, c / NR), wide = packed_width(width);
    const struct phase *f = p->phase;
    const int64_t count = (int64_t)f[0].taps * f[1].taps * f[2].taps;
    for (int64_t i = 0; i < count; i++) {
        const int64_t t0 = u->first[0] + f[0].last - i / f[2].taps / f[1].taps * f[0].step;
        const int64_t t1 = u->first[1] + f[1].last - i / f[2].taps % f[1].taps * f[1].step;
        const int64_t t2 = u->first[2] + f[2].last - i % f[2].taps * f[2].step;
        const int64_t tap = (t0 * u->all[1] + t1) * u->all[2] + t2;
        for (int64_t o = 0; o < og; o++) {
            copy(out, w + ((g * og + o) * taps + tap) * cg + c, width);
            clear(out + width, wide - width);
            out += wide;
        }
    }
}

/* A packing tile is a block of one group for all phases. */
int64_t EW_K(conv_dgrad_pack_tiles)(const struct ew_conv_shape *s)
{
    return s->groups * block_count(s->cin / s->groups);
}

void EW_K(conv_dgrad_pack)(const struct ew_conv_shape *s, const float *w, float *packed,
                           int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < phase_count(s); i++) {
        struct part p;
        find_part(s, i, &p);
        const int64_t size = EW_K(implicit_gemm_group_size)(&p.core), blocks = p.core.blocks;
        for (int64_t tile = begin; tile < end; tile++) {
            const int64_t g = tile / blocks, c = tile % blocks * NR;
            pack_block(&p, g, c, w, packed + g * size + c * p.core.k);
        }
        packed += s->groups * size;
    }
}

int64_t EW_K(conv_dgrad_tiles)(const struct ew_conv_shape *s)
{
    int64_t tiles = 0;
    for (int64_t i = 0; i < phase_count(s); i++) {
        struct part p;
        find_part(s, i, &p);
        tiles += p.core.tiles;
    }
    return tiles;
}

size_t EW_K(conv_dgrad_scratch)(const struct ew_conv_shape *s)
{
    size_t most = 0;
    for (int64_t i = 0; i < phase_count(s); i++) {
        struct part p;
        find_part(s, i, &p);
        const size_t bytes = EW_K(implicit_gemm_scratch)(&p.core);
        most = bytes > most ? bytes : most;
    }
    return most;
}

void EW_K(conv_dgrad_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    const float *w = c->w;
    int64_t before = 0; /* tiles of the previous phases */
    for (int64_t i = 0; i < phase_count(&c->shape) && before < end; i++) {
        struct part p;
        find_part(&c->shape, i, &p);
        struct ew_epilogue e = c->end;
        if (e.add)
            e.add += p.offset;
        if (e.mask)
            e.mask += p.offset;
        const struct implicit_gemm_run run = {.core = &p.core,
                                              .x = c->x,
                                              .w = w,
                                              .y = c->y + p.offset,
                                              .end = &e,
                                              .scratch = scratch};
        EW_K(implicit_gemm_run)
        (&run, max_i64(begin - before, 0), min_i64(end - before, p.core.tiles));
        before += p.core.tiles;
        w += c->shape.groups * EW_K(implicit_gemm_group_size)(&p.core);
    }
}
