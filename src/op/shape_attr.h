/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of the operators that move and reshape data, for code that builds graphs. */
#ifndef EW_OP_SHAPE_ATTR_H
#define EW_OP_SHAPE_ATTR_H

#include "base/field.h"

struct ew_reshape_attr {
    bool allowzero; /* 0 in the shape means 0, not "as in the input" */
    int64_t unit;   /* axes that must have one element, bit by bit: see op/axis.h; 0: none */
};

struct ew_flatten_attr {
    int64_t axis; /* the axes before it become the first dimension */
    int64_t unit; /* as above */
};

struct ew_concat_attr {
    int64_t axis;
};

struct ew_split_attr {
    int64_t axis;
};

enum ew_pad_mode { EW_PAD_CONSTANT, EW_PAD_REFLECT, EW_PAD_EDGE, EW_PAD_WRAP };

struct ew_pad_attr {
    int mode; /* enum ew_pad_mode */
};

struct ew_cast_attr {
    int to; /* enum ew_dtype */
};

struct ew_gather_attr {
    int64_t axis;
};

#endif
