/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of depth_to_space and space_to_depth: square blocks of pixels to channels and back.
 */
#ifndef EW_OP_BLOCKS_H
#define EW_OP_BLOCKS_H

#include "graph/op.h"

enum ew_blocks_mode {
    EW_BLOCKS_DCR, /* channel = (row in block, column in block, channel) */
    EW_BLOCKS_CRD  /* channel = (channel, row in block, column in block) */
};

struct ew_blocks_attr {
    int64_t size; /* side of a block */
    int mode;     /* enum ew_blocks_mode */
};

/* deep is [n, h, w, c * size * size], wide [n, h * size, w * size, c]. */
struct ew_blocks {
    int64_t n, h, w, c, size;
    int mode;
};

/* Geometry for an input that is the deep or the wide tensor; fails unless it is [N, H, W, C] and
 * divisible. */
ew_err ew_blocks_resolve(const struct ew_call *c, bool deep, struct ew_blocks *out);

/* Copies from the deep to the wide tensor if `widen`, else back; accumulates if `add` (float
 * types). */
void ew_blocks_move(const struct ew_blocks *b, const struct ew_tensor *from, struct ew_tensor *to,
                    bool widen, bool add);

#endif
