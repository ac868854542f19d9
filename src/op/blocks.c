/* SPDX-License-Identifier: Apache-2.0 */
/* Square blocks of pixels to channels and back. */
#include "op/blocks.h"

#include "op/move.h"

ew_err ew_blocks_resolve(const struct ew_call *c, bool deep, struct ew_blocks *out)
{
    const struct ew_blocks_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape;
    char text[EW_SHAPE_TEXT];
    EW_CHECK(x->rank == 4, EW_ERR_SHAPE, "the input has %d dimensions, 4 are needed", x->rank);
    EW_CHECK(a->size >= 1 && a->size <= 1 << 10, EW_ERR_SHAPE, "the block size is %lld",
             (long long)a->size);
    *out = (struct ew_blocks){.n = x->dim[0],
                              .h = x->dim[1],
                              .w = x->dim[2],
                              .c = x->dim[3],
                              .size = a->size,
                              .mode = a->mode};
    const int64_t area = a->size * a->size;
    EW_CHECK(deep ? out->c % area == 0 : out->h % a->size == 0 && out->w % a->size == 0,
             EW_ERR_SHAPE, "the input [N, H, W, C] is %s, which blocks of %lld do not divide",
             ew_shape_text(x, text), (long long)a->size);
    out->c /= deep ? area : 1;
    out->h /= deep ? 1 : a->size;
    out->w /= deep ? 1 : a->size;
    return EW_OK;
}

/* Index in the deep tensor of element i of the wide one. */
static int64_t deep_at(const struct ew_blocks *b, int64_t i)
{
    const int64_t c = i % b->c, x = i / b->c % (b->w * b->size);
    const int64_t row = i / b->c / (b->w * b->size); /* over the whole batch */
    const int64_t by = row % b->size, bx = x % b->size;
    const int64_t pixel = row / b->size * b->w + x / b->size;
    const int64_t channel = b->mode == EW_BLOCKS_DCR ? (by * b->size + bx) * b->c + c
                                                     : (c * b->size + by) * b->size + bx;
    return pixel * b->c * b->size * b->size + channel;
}

void ew_blocks_move(const struct ew_blocks *b, const struct ew_tensor *from, struct ew_tensor *to,
                    bool widen, bool add)
{
    const int64_t count = ew_tensor_count(from);
    for (int64_t i = 0; i < count; i++) {
        const int64_t deep = deep_at(b, i), src = widen ? deep : i, dst = widen ? i : deep;
        if (add)
            ew_element_add(from, src, to, dst);
        else
            ew_element_copy(from, src, to, dst);
    }
}
