/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes that move one block of axes past another: [b, r, c] to [b, c, r].  NCHW to NHWC and
 * back are of this kind. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/share.h"
#include "graph/layout.h"

/* perm = 0 .. p - 1, then m .. n - 1, then p .. m - 1. */
static bool resolve(const struct ew_call *c, struct ew_transpose *out)
{
    const struct ew_transpose_attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    int p = 0;
    while (p < a->perm.n && a->perm.v[p] == p)
        p++;
    if (a->perm.n != s->rank || p == s->rank)
        return false;
    const int m = (int)a->perm.v[p];
    for (int i = p; i < s->rank; i++)
        if (a->perm.v[i] != (i - p < s->rank - m ? m + i - p : i - (s->rank - m)))
            return false;
    *out = (struct ew_transpose){.batch = ew_shape_span(s, 0, p),
                                 .rows = ew_shape_span(s, p, m),
                                 .columns = ew_shape_span(s, m, s->rank)};
    return true;
}

static void tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    ew_cpu(c->be)->isa->transpose_run(c->state, begin, end);
}

static ew_err prepare(const struct ew_call *c)
{
    EW_CHECK(resolve(c, c->state), EW_ERR_INTERNAL, "%s: the transpose has changed", c->name);
    return EW_OK;
}

static ew_err run(const struct ew_call *c)
{
    struct ew_transpose *t = c->state;
    t->in = c->in[0]->data;
    t->out = c->out[0]->data;
    ew_share_run(c, ew_cpu(c->be)->isa->transpose_tiles(t), tiles);
    return EW_OK;
}

/* ---- Bytes ---- */

static void byte_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    ew_cpu(c->be)->isa->int8_transpose_run(c->state, begin, end);
}

static ew_err run_bytes(const struct ew_call *c)
{
    const struct ew_transpose *t = c->state;
    struct ew_qtranspose bytes = {.batch = t->batch,
                                  .rows = t->rows,
                                  .columns = t->columns,
                                  .in = c->in[0]->data,
                                  .out = c->out[0]->data};
    struct ew_call call = *c;
    call.state = &bytes;
    ew_share_run(&call, ew_cpu(c->be)->isa->int8_transpose_tiles(&bytes), byte_tiles);
    return EW_OK;
}

/* ---- Floats, back ---- */

/* The gradient goes back by the opposite transpose, through scratch since it is added. */
static ew_err run_backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    struct ew_transpose *t = c->state;
    struct ew_transpose back = {.batch = t->batch,
                                .rows = t->columns,
                                .columns = t->rows,
                                .in = c->dout[0]->data,
                                .out = c->fresh & 1 ? c->din[0]->data : c->scratch};
    struct ew_call call = *c;
    call.state = &back;
    ew_share_run(&call, ew_cpu(c->be)->isa->transpose_tiles(&back), tiles);
    if (c->fresh & 1)
        return EW_OK;
    const struct ew_add_map sum = {.a = c->din[0]->data, .b = c->scratch, .y = c->din[0]->data};
    ew_cpu(c->be)->isa->add_run(&sum, 0, ew_tensor_count(c->din[0]));
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_transpose t;
    const struct ew_call *c = query->c;
    const bool bytes = ew_dtype_size(c->in[0]->dtype) == 1 &&
                       query->phase == EW_PHASE_FORWARD; /* of any meaning */
    if ((c->in[0]->dtype != EW_F32 && !bytes) || !resolve(c, &t))
        return 0;
    out[0] = (struct ew_kernel){.name = "transpose",
                                .run = bytes ? run_bytes : run,
                                .prepare = prepare,
                                .state = sizeof(t)};
    if (query->phase == EW_PHASE_BACKWARD) {
        out[0].run = run_backward;
        out[0].scratch = ew_tensor_bytes(c->in[0]);
        out[0].fresh = true;
    }
    return 1;
}

const struct ew_kernel_family ew_offer_transpose = {.ops = EW_FAMILY_OPS("transpose"),
                                                    .offer = offer};
