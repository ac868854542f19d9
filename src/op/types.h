/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of element types, and the checks of them that operators' infer functions share. */
#ifndef EW_OP_TYPES_H
#define EW_OP_TYPES_H

#include "graph/op.h"

enum ew_types {
    EW_TYPES_FLOAT = 1 << EW_F32 | 1 << EW_F64 | 1 << EW_F16 | 1 << EW_BF16,
    EW_TYPES_SIGNED_INT = 1 << EW_S8 | 1 << EW_S16 | 1 << EW_S32 | 1 << EW_S64,
    EW_TYPES_UNSIGNED = 1 << EW_U8 | 1 << EW_U16 | 1 << EW_U32 | 1 << EW_U64,
    EW_TYPES_INT = EW_TYPES_SIGNED_INT | EW_TYPES_UNSIGNED,
    EW_TYPES_SIGNED = EW_TYPES_SIGNED_INT | EW_TYPES_FLOAT,
    EW_TYPES_NUMBER = EW_TYPES_INT | EW_TYPES_FLOAT,
    EW_TYPES_INDEX = 1 << EW_S32 | 1 << EW_S64,
    EW_TYPES_BOOL = 1 << EW_BOOL,
    EW_TYPES_ALL = EW_TYPES_NUMBER | EW_TYPES_BOOL
};

/* Checks that in[slot], if present, has one of the types. */
static inline ew_err ew_types_check(const struct ew_call *c, int slot, unsigned types)
{
    if (slot >= c->n_in || !c->in[slot])
        return EW_OK;
    EW_CHECK(types >> c->in[slot]->dtype & 1, EW_ERR_TYPE, "input %d cannot be %s", slot,
             ew_dtype_name(c->in[slot]->dtype));
    return EW_OK;
}

/* Checks that in[slot], if present, has in[0]'s type. */
static inline ew_err ew_types_same(const struct ew_call *c, int slot)
{
    if (slot >= c->n_in || !c->in[slot])
        return EW_OK;
    EW_CHECK(c->in[slot]->dtype == c->in[0]->dtype, EW_ERR_TYPE, "inputs are %s and %s",
             ew_dtype_name(c->in[0]->dtype), ew_dtype_name(c->in[slot]->dtype));
    return EW_OK;
}

/* An axis that infer has checked, counted from the front. */
static inline int ew_axis_of(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

/* An optional input; NULL if absent, by NULL or a shorter list. */
static inline struct ew_tensor *ew_call_in(const struct ew_call *c, int slot)
{
    return slot < c->n_in ? c->in[slot] : NULL;
}

/* An output, or NULL if it is not wanted. */
static inline struct ew_tensor *ew_call_out(const struct ew_call *c, int slot)
{
    return slot < c->n_out ? c->out[slot] : NULL;
}

#endif
