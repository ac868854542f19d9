/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes.  Batched matrix transposes, [b, r, c] to [b, c, r] (NCHW to NHWC and back), use
 * register tiles; other permutations copy contiguous runs. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "graph/layout.h"
#include "graph/ops.h"

/* Matches perm = 0 ..  p - 1, m ..  n - 1, p ..  m - 1: the transpose of blocks of adjacent
 * axes. */
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
    ew_parallel_for(c, ew_cpu(c->be)->isa->transpose_tiles(t), tiles);
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
    ew_parallel_for(&call, ew_cpu(c->be)->isa->int8_transpose_tiles(&bytes), byte_tiles);
    return EW_OK;
}

/* ---- Backward, floats ---- */

/* The inverse transpose, into scratch, which is then added to the gradient. */
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
    ew_parallel_for(&call, ew_cpu(c->be)->isa->transpose_tiles(&back), tiles);
    if (c->fresh & 1)
        return EW_OK;
    const struct ew_add_map sum = {.a = c->din[0]->data, .b = c->scratch, .y = c->din[0]->data};
    ew_cpu(c->be)->isa->add_run(&sum, 0, ew_tensor_count(c->din[0]));
    return EW_OK;
}

/* ---- General permutations ---- */

/* The output's dimensions with their strides in the input; trailing axes that stay in place are one
 * run. */
static bool resolve_any(const struct ew_call *c, bool back, struct ew_permute *p)
{
    const struct ew_transpose_attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    int perm[EW_MAX_RANK];
    int64_t stride[EW_MAX_RANK], step = 1;
    if (s->rank == 0 || s->rank > EW_PERMUTE_DIMS)
        return false;
    for (int i = 0; i < s->rank; i++) {
        const int from = a->perm.n ? (int)a->perm.v[i] : s->rank - 1 - i;
        perm[back ? from : i] = back ? i : from;
    }
    const struct ew_shape *in = back ? &c->out[0]->shape : s;
    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= in->dim[i];
    }
    *p = (struct ew_permute){.run = 1};
    int last = s->rank; /* axes from here on stay in place */
    while (last > 0 && perm[last - 1] == last - 1)
        p->run *= in->dim[--last];
    for (int i = 0; i < last; i++) {
        p->dim[p->dims] = in->dim[perm[i]];
        p->step[p->dims++] = stride[perm[i]];
    }
    return p->dims > 0 && ew_tensor_count(c->in[0]) > 0;
}

static void any_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    ew_cpu(c->be)->isa->permute_run(c->state, begin, end);
}

static ew_err prepare_any(const struct ew_call *c)
{
    EW_CHECK(resolve_any(c, false, c->state), EW_ERR_INTERNAL, "%s: the transpose has changed",
             c->name);
    return EW_OK;
}

static ew_err prepare_any_back(const struct ew_call *c)
{
    EW_CHECK(resolve_any(c, true, c->state), EW_ERR_INTERNAL, "%s: the transpose has changed",
             c->name);
    return EW_OK;
}

static ew_err run_any(const struct ew_call *c)
{
    struct ew_permute *p = c->state;
    p->x = c->in[0]->data;
    p->y = c->out[0]->data;
    ew_parallel_for(c, ew_cpu(c->be)->isa->permute_tiles(p), any_tiles);
    return EW_OK;
}

static ew_err run_any_back(const struct ew_call *c)
{
    struct ew_permute *p = c->state;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    p->x = c->dout[0]->data;
    p->y = c->din[0]->data;
    p->add = !(c->fresh & 1);
    ew_parallel_for(c, ew_cpu(c->be)->isa->permute_tiles(p), any_tiles);
    return EW_OK;
}

static int offer_any(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_permute p;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    if (query->c->in[0]->dtype != EW_F32 || !resolve_any(query->c, back, &p))
        return 0;
    out[0] = (struct ew_kernel){.name = "transpose",
                                .run = back ? run_any_back : run_any,
                                .prepare = back ? prepare_any_back : prepare_any,
                                .fresh = back,
                                .state = sizeof(p)};
    return 1;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_transpose t;
    const struct ew_call *c = query->c;
    const bool bytes = ew_dtype_size(c->in[0]->dtype) == 1 &&
                       query->phase == EW_PHASE_FORWARD; /* any 8-bit type */
    if ((c->in[0]->dtype != EW_F32 && !bytes) || !resolve(c, &t))
        return offer_any(query, out);
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

const struct ew_kernel_family ew_offer_transpose = {.ops = EW_FAMILY_OPS(&ew_op_transpose),
                                                    .offer = offer};
