/* SPDX-License-Identifier: Apache-2.0 */
/* What an output of Pad is made of, for its kernels. */
#ifndef EW_OP_PAD_H
#define EW_OP_PAD_H

#include "graph/op.h"
#include "op/shape_attr.h"

enum { EW_PAD_DATA, EW_PAD_PADS, EW_PAD_VALUE, EW_PAD_AXES, EW_PAD_INPUTS };

/* Pads before and after each axis. */
struct ew_pads {
    int64_t before[EW_MAX_RANK], after[EW_MAX_RANK];
};

ew_err ew_pads_read(const struct ew_call *c, struct ew_pads *out);

/* The source index on an axis of d elements for position i, which may be outside; -1: the constant.
 */
int64_t ew_pad_source(int mode, int64_t i, int64_t d);

#endif
