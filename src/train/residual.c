/* SPDX-License-Identifier: Apache-2.0 */
/* Residuals (error feedback) of compression in checkpoints: by parameter and rank, so that a file
 * does not depend on the division into buckets. */
#include <stdlib.h>
#include <string.h>

#include "train/exchange_impl.h"

/* Number of residuals per parameter, in slot order: the sums', then each rank's. */
static int sources(const struct ew_exchange *x)
{
    return x->o.form == EW_EXCHANGE_PLAIN ? 0 : 1 + x->size;
}

static int64_t numbers(const struct ew_exchange *x)
{
    int64_t n = 0;
    for (int i = 0; i < x->n_buckets; i++)
        n += x->buckets[i].n;
    return n;
}

int64_t ew_exchange_residual_bytes(const struct ew_exchange *x)
{
    return x ? numbers(x) * sources(x) * (int64_t)sizeof(float) : 0;
}

/* ---- To a checkpoint ---- */

/* Allocates rank 0's buffer: [bucket][source][number]. */
static ew_err make_room(struct ew_exchange *x)
{
    const size_t states = (size_t)(x->g->n_values * sources(x)) + 1;
    if (x->rank != 0 || x->residual_all)
        return EW_OK;
    x->residual_all = calloc((size_t)(numbers(x) * sources(x)) + 1, sizeof(*x->residual_all));
    x->residual_states = calloc(states, sizeof(*x->residual_states));
    EW_CHECK(x->residual_all && x->residual_states, EW_ERR_MEMORY,
             "no memory for what %d ranks have not sent yet", x->size);
    return EW_OK;
}

/* Gathers a bucket's residuals of all ranks into `to`, on rank 0. */
static ew_err gather_box(struct ew_exchange *x, const struct ew_exchange_bucket *b, float *to)
{
    const int64_t padded = b->piece * x->size;
    const size_t bytes = (size_t)b->n * sizeof(float);
    EW_CLEANUP(ew_free_ptr) float *all = calloc((size_t)(padded * x->size) + 1, sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for what %d ranks have not sent yet", x->size);
    if (b->residual_sum) /* the ranks' pieces make up the bucket */
        EW_TRY(ew_ranks_allgather_own_comm(x->ranks, b->residual_sum, all,
                                           (size_t)b->piece * sizeof(float)));
    if (x->rank == 0)
        memcpy(to, all, bytes);
    EW_TRY(ew_ranks_allgather_own_comm(x->ranks, b->residual, all, bytes));
    if (x->rank == 0)
        memcpy(to + b->n, all, bytes * (size_t)x->size);
    return EW_OK;
}

/* Lists the states of a bucket's parameters, with data in `from`. */
static int list_box(struct ew_exchange *x, int bucket, float *from, struct ew_checkpoint_state *to)
{
    const int64_t n = x->buckets[bucket].n;
    int values, count = 0;
    const int *list = ew_plan_bucket(x->plan, bucket, &values);
    for (int i = 0; i < values; i++) {
        struct ew_tensor t = *ew_plan_grad(x->plan, list[i]);
        for (int k = 0; k < sources(x); k++) {
            if (k == 0 && !x->buckets[bucket].residual_sum)
                continue;
            t.data = from + k * n;
            to[count++] = (struct ew_checkpoint_state){x->g->values[list[i]].name,
                                                       EW_RESIDUAL_SLOT_SUMS + k, t};
        }
        from += ew_tensor_count(&t);
    }
    return count;
}

ew_err ew_exchange_residuals(struct ew_exchange *x, const struct ew_checkpoint_state **out, int *n)
{
    *n = 0;
    *out = NULL;
    if (!x || sources(x) == 0)
        return EW_OK;
    EW_TRY(make_room(x));
    float *to = x->residual_all;
    for (int i = 0; i < x->n_buckets; i++) {
        EW_TRY(gather_box(x, &x->buckets[i], to));
        if (x->rank != 0)
            continue;
        *n += list_box(x, i, to, x->residual_states + *n);
        to += x->buckets[i].n * sources(x);
    }
    *out = x->residual_states;
    return EW_OK;
}

/* ---- From a checkpoint ---- */

/* Finds a parameter's bucket and offset in it; NULL: none. */
static struct ew_exchange_bucket *find_box(struct ew_exchange *x, const char *param, int64_t *at,
                                           int64_t *count)
{
    for (int i = 0; i < x->n_buckets; i++) {
        int values;
        const int *list = ew_plan_bucket(x->plan, i, &values);
        *at = 0;
        for (int k = 0; k < values; k++, *at += *count) {
            *count = ew_tensor_count(ew_plan_grad(x->plan, list[k]));
            if (strcmp(x->g->values[list[k]].name, param) == 0)
                return &x->buckets[i];
        }
    }
    return NULL;
}

/* Restores residuals [at, at + n) of the sums, as far as they are in this rank's piece. */
static void set_sums(const struct ew_exchange *x, struct ew_exchange_bucket *b, int64_t at,
                     int64_t n, const float *from)
{
    const int64_t mine = b->piece * x->rank;
    for (int64_t i = 0; b->residual_sum && i < n; i++)
        if (at + i >= mine && at + i < mine + b->piece)
            b->residual_sum[at + i - mine] = from[i];
}

static int ranks_of(const struct ew_checkpoint_state *s, int n)
{
    int64_t ranks = 0;
    for (int i = 0; i < n; i++)
        ranks = s[i].slot - EW_RESIDUAL_SLOT_RANK >= ranks ? s[i].slot - EW_RESIDUAL_SLOT_RANK + 1
                                                           : ranks;
    return (int)ranks;
}

ew_err ew_exchange_set_residuals(struct ew_exchange *x, const struct ew_checkpoint_state *s, int n)
{
    const int ranks = ranks_of(s, n);
    for (int i = 0; i < n && sources(x) > 0; i++) {
        int64_t at, count;
        if (s[i].slot < EW_RESIDUAL_SLOT_SUMS)
            continue;
        struct ew_exchange_bucket *b = find_box(x, s[i].param, &at, &count);
        EW_CHECK(b && s[i].t.dtype == EW_F32 && ew_tensor_count(&s[i].t) == count, EW_ERR_FORMAT,
                 "the checkpoint's unsent gradients of %s do not fit", s[i].param);
        const float *from = s[i].t.data;
        const bool mine =
            ranks == x->size ? s[i].slot - EW_RESIDUAL_SLOT_RANK == x->rank : x->rank == 0;
        if (s[i].slot == EW_RESIDUAL_SLOT_SUMS)
            set_sums(x, b, at, count, from);
        for (int64_t k = 0; mine && s[i].slot != EW_RESIDUAL_SLOT_SUMS && k < count; k++)
            b->residual[at + k] += from[k];
    }
    return EW_OK;
}
