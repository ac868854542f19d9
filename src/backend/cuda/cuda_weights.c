/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in the storage type of activations (mixed precision).
 *
 * The plan keeps float32 parameters.  A kernel that needs half-precision weights packs a copy
 * (kernel.pack); backward kernels and updates look the copy up by the parameter's address.  An
 * update writes both, so they agree. */
#include <stdlib.h>

#include "backend/cuda/cuda_backend.h"
#include "base/mem.h"

enum { FIRST = 1, LAST = 2 }; /* inputs that are weights: in conv, gemm and matmul */

static bool is_copied(const struct ew_call *c, int i)
{
    const struct ew_tensor *t = ew_call_in(c, i);
    return t && t->dtype == EW_F32 && ew_cuda_storage(c->in[0]) != EW_CUDA_F32;
}

static size_t copy_bytes(const struct ew_call *c, int i)
{
    return is_copied(c, i) ? ew_align_up((size_t)ew_tensor_count(c->in[i]) * 2) : 0;
}

/* Offset of the copy of input i in c->packed. */
static size_t copy_at(const struct ew_call *c, int i)
{
    size_t at = 0;
    for (int k = FIRST; k < i; k++)
        at += copy_bytes(c, k);
    return at;
}

void *ew_cuda_cast_of(const struct ew_cuda *be, const void *parameter)
{
    for (int i = 0; i < be->casts->n; i++)
        if (be->casts->at[i].parameter == parameter)
            return be->casts->at[i].copy;
    return NULL;
}

const void *ew_cuda_weight(const struct ew_call *c, int i)
{
    return is_copied(c, i) ? ew_cuda_cast_of(ew_cuda(c->be), c->in[i]->data)
                           : ew_cuda_data(ew_call_in(c, i));
}

static ew_err note(struct ew_cuda_cast_weights *l, const void *parameter, void *copy)
{
    int i = 0;
    while (i < l->n && l->at[i].parameter != parameter)
        i++;
    EW_TRY(ew_grow((void **)&l->at, &l->cap, i + 1, sizeof(*l->at)));
    l->at[i] = (struct ew_cuda_cast_weight){parameter, copy};
    l->n = i == l->n ? l->n + 1 : l->n;
    return EW_OK;
}

static ew_err prepare(const struct ew_call *c)
{
    for (int i = FIRST; i <= LAST; i++)
        if (is_copied(c, i))
            EW_TRY(note(ew_cuda(c->be)->casts, c->in[i]->data, (char *)c->packed + copy_at(c, i)));
    return EW_OK;
}

static ew_err pack(const struct ew_call *c)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    for (int i = FIRST; i <= LAST; i++)
        if (is_copied(c, i))
            EW_TRY(ew_cuda_check(be->cu,
                                 be->cu->cast(be->q, EW_CUDA_F32, c->in[i]->data, be->type,
                                              (char *)c->packed + copy_at(c, i),
                                              ew_tensor_count(c->in[i])),
                                 "cast"));
    return EW_OK;
}

void ew_cuda_pack_weights(const struct ew_call *c, struct ew_kernel *k)
{
    k->packed = c->recompute ? 0 : copy_at(c, LAST + 1); /* the forward step has packed them */
    if (!k->packed)
        return;
    k->prepare = prepare;
    k->pack = pack;
}

/* True if p points into the block. */
static bool within(const void *p, const char *data, size_t bytes)
{
    return (uintptr_t)p - (uintptr_t)data < bytes;
}

void ew_cuda_forget_casts(struct ew_cuda_cast_weights *l, const char *data, size_t bytes)
{
    int kept = 0;
    for (int i = 0; i < l->n; i++)
        if (!within(l->at[i].parameter, data, bytes) && !within(l->at[i].copy, data, bytes))
            l->at[kept++] = l->at[i];
    l->n = kept;
}
