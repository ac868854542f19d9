/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised numbers, real = (q - zero point) * scale: parameters by element, rounding and
 * saturation, integers without zero points. */
#ifndef EW_OP_QUANT_H
#define EW_OP_QUANT_H

#include <math.h>

#include "op/types.h"

enum {
    EW_TYPES_QUANT8 = 1 << EW_S8 | 1 << EW_U8,
    EW_TYPES_QUANT = EW_TYPES_QUANT8 | 1 << EW_S16 | 1 << EW_U16
};

/* quantize_linear, dequantize_linear */
struct ew_quant_attr {
    int64_t axis;       /* of the scales, if not scalar */
    int64_t block_size; /* blocked quantisation: entries of the axis per scale; 0: scales are 1-D */
    int dtype;          /* enum ew_dtype of the output, if there is no zero point */
};

/* clang-format off */
#define EW_QUANT_FIELDS                                                                            \
    {.name = "axis", .type = EW_FIELD_INT, .offset = offsetof(struct ew_quant_attr, axis),         \
     .def = "1", .help = "of the scales, where there is more than one"},                           \
    {.name = "block_size", .type = EW_FIELD_INT,                                                   \
     .offset = offsetof(struct ew_quant_attr, block_size), .max = INT32_MAX,                       \
     .help = "entries of the axis that share a scale; 0: scales are one-dimensional"}
/* clang-format on */

/* Mapping from elements to their parameters. */
struct ew_quant_grid {
    int64_t inner;   /* elements per entry of the axis */
    int64_t entries; /* of the axis */
    int64_t block;   /* entries that share parameters; 0: one scale for all */
    int64_t blocks;  /* in the axis */
    bool blocked;    /* blocked quantisation: positions behind the axis have separate parameters */
};

/* Fails if scale and zero point (NULL: none) do not fit x. */
ew_err ew_quant_resolve(const struct ew_quant_attr *a, const struct ew_tensor *x,
                        const struct ew_tensor *scale, const struct ew_tensor *zero,
                        struct ew_quant_grid *out);

/* Index of the scale of element i. */
static inline int64_t ew_quant_at(const struct ew_quant_grid *g, int64_t i)
{
    if (!g->block)
        return 0;
    const int64_t entry = i / g->inner % g->entries;
    if (!g->blocked)
        return entry;
    return (i / (g->inner * g->entries) * g->blocks + entry / g->block) * g->inner + i % g->inner;
}

/* Permute hook of quantize_linear and dequantize_linear: `axis` is permuted. */
ew_err ew_quant_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);
/* Their export hook: features that need opset 21. */
ew_err ew_quant_export(const struct ew_graph *g, int node, struct ew_onnx_node *n);

/* Rounds half to even, adds the zero point and saturates to the type. */
int64_t ew_quant_round(double v, int64_t zero, enum ew_dtype dtype);

/* fake_quant: the real range of its integers. */
void ew_fake_quant_range(const struct ew_call *c, double *lo, double *hi);
/* Adds quantize_linear and dequantize_linear with the inputs of a fake_quant; the latter is called
 * `name`. */
ew_err ew_fake_quant_pair(struct ew_graph *g, const int *in, const char *name, int *out);

/* ---- Requantising: from int32 sums to 8 bits
 * -----------------------------------------------------
 *
 *   y = clamp(saturate(round((float)sum * ratio) + zero))
 *
 * The sum becomes a float32 (rounding to nearest even above 2^24), is multiplied by a float32 in
 * float32, and rounded half to even; the zero point is added and the type's range saturates.  No
 * step is fused with another one, so that every instruction set gets the same bits. */

/* The ratio of an int32 sum: (x_scale * w_scale) / y_scale, each step in float32. */
float ew_quant_ratio(double x_scale, double w_scale, double y_scale);
int64_t ew_quant_sum(int32_t sum, float ratio, int64_t zero, enum ew_dtype dtype);
/* The same for an addition: round(a * a_ratio + b * b_ratio) + zero, where both products and their
 * sum are rounded to float32. */
struct ew_quant_binary {
    float a_ratio, b_ratio;
    int64_t zero;
    enum ew_dtype dtype;
};
int64_t ew_quant_add(const struct ew_quant_binary *q, int64_t a, int64_t b);

/* A clamping activation in integers: bounds of the output; those of its type if it does not clamp.
 */
struct ew_quant_clamp {
    int64_t lo, hi;
};

/* clang-format off */
#define EW_QUANT_CLAMP_FIELDS(owner, part)                                                         \
    {.name = "lo", .type = EW_FIELD_INT, .offset = offsetof(owner, part.lo), .def = "-128",        \
     .min = -128, .max = 255, .help = "least integer that is stored"},                             \
    {.name = "hi", .type = EW_FIELD_INT, .offset = offsetof(owner, part.hi), .def = "255",         \
     .min = -128, .max = 255, .help = "greatest integer that is stored"}
#define EW_QUANT_CLAMP_RENAMES "lo", NULL, "hi", NULL
/* clang-format on */

static inline int64_t ew_quant_clamp(const struct ew_quant_clamp *c, int64_t q)
{
    return q < c->lo ? c->lo : q > c->hi ? c->hi : q;
}

/* True if it does not clamp. */
static inline bool ew_quant_clamps_nothing(const struct ew_quant_clamp *c)
{
    return c->lo <= -128 && c->hi >= 255;
}

/* Scale and zero point of channel i, scalar or per channel; zero point 0 if absent. */
static inline double ew_quant_scale(const struct ew_tensor *t, int64_t i)
{
    return ew_tensor_get(t, ew_tensor_count(t) == 1 ? 0 : i);
}

static inline int64_t ew_quant_zero(const struct ew_tensor *t, int64_t i)
{
    return t ? ew_tensor_get_int(t, ew_tensor_count(t) == 1 ? 0 : i) : 0;
}

/* Checks that in[slot] is an 8-bit tensor and its optional zero point in[zero_slot] of the same
 * type, with one element or `channels`. */
ew_err ew_quant_check(const struct ew_call *c, int slot, int zero_slot, int64_t channels);
/* Checks that in[slot] is a floating scale with one element or `channels`. */
ew_err ew_quant_check_scale(const struct ew_call *c, int slot, int64_t channels);

/* out = t - zero, where `inner` consecutive elements share a zero point. */
void ew_quant_centre(const struct ew_tensor *t, const struct ew_tensor *zero, int64_t inner,
                     int32_t *out);

#endif
