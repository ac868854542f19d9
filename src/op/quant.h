/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised numbers: value = (q - zero point) * scale.  Where the parameters of an element are,
 * rounding and saturation, and integers without their zero points. */
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
    int64_t axis;       /* of the scales, where there is more than one */
    int64_t block_size; /* entries of the axis that share one; 0: scales are one-dimensional */
    int dtype;          /* enum ew_dtype of the output, where no zero point tells it */
};

/* clang-format off */
#define EW_QUANT_FIELDS                                                                            \
    {.name = "axis", .type = EW_FIELD_INT, .offset = offsetof(struct ew_quant_attr, axis),         \
     .def = "1", .help = "of the scales, where there is more than one"},                           \
    {.name = "block_size", .type = EW_FIELD_INT,                                                   \
     .offset = offsetof(struct ew_quant_attr, block_size), .max = INT32_MAX,                       \
     .help = "entries of the axis that share a scale; 0: scales are one-dimensional"}
/* clang-format on */

/* Where the parameters of an element are. */
struct ew_quant_grid {
    int64_t inner;   /* elements behind one entry of the axis */
    int64_t entries; /* of the axis */
    int64_t block;   /* entries that share parameters; 0: one scale for all */
    int64_t blocks;  /* in the axis */
    bool blocked;    /* the elements behind the axis have parameters of their own */
};

/* Fails where scale and zero point (NULL: none) do not fit x. */
ew_err ew_quant_resolve(const struct ew_quant_attr *a, const struct ew_tensor *x,
                        const struct ew_tensor *scale, const struct ew_tensor *zero,
                        struct ew_quant_grid *out);

/* The number of the scale of element i. */
static inline int64_t ew_quant_at(const struct ew_quant_grid *g, int64_t i)
{
    if (!g->block)
        return 0;
    const int64_t entry = i / g->inner % g->entries;
    if (!g->blocked)
        return entry;
    return (i / (g->inner * g->entries) * g->blocks + entry / g->block) * g->inner + i % g->inner;
}

/* The permute hook of both operators: parameters of one axis move with it. */
ew_err ew_quant_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);
/* Their export hook: what came with opset 21. */
ew_err ew_quant_export(const struct ew_graph *g, int node, struct ew_onnx_node *n);

/* Rounds half to even, adds the zero point and saturates to the type. */
int64_t ew_quant_round(double v, int64_t zero, enum ew_dtype dtype);

/* The scale or zero point of channel i: the only one, or its own; zero where there is none. */
static inline double ew_quant_scale(const struct ew_tensor *t, int64_t i)
{
    return ew_tensor_get(t, ew_tensor_count(t) == 1 ? 0 : i);
}

static inline int64_t ew_quant_zero(const struct ew_tensor *t, int64_t i)
{
    return t ? ew_tensor_get_int(t, ew_tensor_count(t) == 1 ? 0 : i) : 0;
}

/* in[slot] is an 8-bit tensor, and its zero point in[zero_slot] (which may be absent) is of its
 * type with one entry or `channels`. */
ew_err ew_quant_check(const struct ew_call *c, int slot, int zero_slot, int64_t channels);
/* in[slot] is a floating scale with one entry or `channels`. */
ew_err ew_quant_check_scale(const struct ew_call *c, int slot, int64_t channels);

/* t's elements less their zero points; `inner` elements in a row share one. */
void ew_quant_centre(const struct ew_tensor *t, const struct ew_tensor *zero, int64_t inner,
                     int32_t *out);

#endif
