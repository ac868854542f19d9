/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce of gradients over ranks. */
#include "train/exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "graph/tensor.h"
#include "train/exchange_impl.h"
#include "train/half.h"
#include "train/sync_norm.h"

#define LANE 16        /* pieces are multiples of it */
#define BINS (1 << 16) /* one per upper or lower half of a float's bits */

const char *const ew_exchange_forms[] = {"none", "fp16", "topk", NULL};

/* An entry of a top-k message. */
struct topk_entry {
    uint32_t at;
    float value;
};

/* ---- Opening --------------------------------------------------------------------------------- */

static size_t wire_bytes(const struct ew_exchange *x)
{
    return x->o.form == EW_EXCHANGE_FP16 ? sizeof(uint16_t) : sizeof(float);
}

static bool has_statistics(const struct ew_value *v)
{
    return v->kind == EW_VALUE_STATE && v->t.dtype == EW_F32 && v->t.data;
}

static ew_err make_bucket(struct ew_exchange *x, int bucket)
{
    struct ew_exchange_bucket *b = &x->buckets[bucket];
    int n;
    const int *values = ew_plan_bucket(x->plan, bucket, &n);
    for (int i = 0; i < n; i++) {
        const struct ew_tensor *t = ew_plan_grad(x->plan, values[i]);
        EW_CHECK(t && t->dtype == EW_F32, EW_ERR_UNSUPPORTED,
                 "%s: its gradient is not float32 in this machine's memory, which ranks need",
                 x->g->values[values[i]].name);
        b->n += ew_tensor_count(t);
    }
    const int64_t each = (b->n + x->size - 1) / x->size;
    b->piece = (each + LANE - 1) / LANE * LANE;
    const size_t all = (size_t)(b->piece * x->size), bytes = wire_bytes(x);
    const bool sparse = x->o.form == EW_EXCHANGE_TOPK;
    if (sparse)
        b->entries = ew_max_i64(1, (int64_t)(x->o.share * (double)b->n));
    const size_t message = sparse ? (size_t)b->entries * sizeof(struct topk_entry) : all * bytes;
    b->sent = ew_arena_alloc(&x->arena, message);
    b->got = ew_arena_alloc(&x->arena, sparse ? message * (size_t)x->size : message);
    b->sum = ew_arena_array(&x->arena, all, sizeof(*b->sum));
    if (x->o.form != EW_EXCHANGE_PLAIN)
        b->residual = ew_arena_array(&x->arena, all, sizeof(*b->residual));
    if (x->o.form == EW_EXCHANGE_FP16)
        b->residual_sum = ew_arena_array(&x->arena, (size_t)b->piece, sizeof(*b->residual_sum));
    return EW_OK;
}

/* Allocates messages for the largest batch norm. */
static ew_err open_norms(struct ew_exchange *x)
{
    const double weight = (double)x->weight;
    x->weights = ew_arena_array(&x->arena, (size_t)x->size, sizeof(*x->weights));
    for (int i = 0; x->o.sync_norms && i < x->g->n_nodes; i++) {
        const struct ew_node *n = &x->g->nodes[i];
        if (!(n->op->flags & EW_OP_BATCH_NORM))
            continue;
        const struct ew_shape *s = &x->g->values[n->in[0]].t.shape;
        const size_t bytes = ew_norm_message_bytes(s->dim[s->rank - 1]);
        x->norm_bytes = bytes > x->norm_bytes ? bytes : x->norm_bytes;
    }
    x->norms = ew_arena_alloc(&x->arena, x->norm_bytes * (size_t)x->size);
    EW_CHECK(!x->arena.failed, EW_ERR_MEMORY, "no memory to exchange statistics");
    return ew_ranks_allgather(x->ranks, &weight, x->weights, sizeof(weight));
}

static ew_err open_all(struct ew_exchange *x)
{
    x->n_buckets = ew_plan_buckets(x->plan);
    x->buckets = ew_arena_array(&x->arena, (size_t)x->n_buckets + 1, sizeof(*x->buckets));
    EW_CHECK(x->buckets, EW_ERR_MEMORY, "no memory to exchange gradients");
    for (int i = 0; i < x->n_buckets; i++)
        EW_TRY(make_bucket(x, i));
    x->tail_bytes = EW_EXCHANGE_NUMBERS * sizeof(double);
    for (int i = 0; i < x->g->n_values; i++)
        if (has_statistics(&x->g->values[i]))
            x->tail_bytes += ew_tensor_bytes(&x->g->values[i].t);
    x->tail = ew_arena_alloc(&x->arena, x->tail_bytes);
    x->tails = ew_arena_alloc(&x->arena, x->tail_bytes * (size_t)x->size);
    if (x->o.form == EW_EXCHANGE_TOPK)
        x->bins = ew_arena_array(&x->arena, BINS, sizeof(*x->bins));
    EW_CHECK(!x->arena.failed, EW_ERR_MEMORY, "no memory to exchange gradients");
    return open_norms(x);
}

ew_err ew_exchange_open(struct ew_ranks *ranks, struct ew_plan *plan, struct ew_graph *g,
                        const struct ew_exchange_opts *o, double weight, struct ew_exchange **out)
{
    struct ew_exchange *x = calloc(1, sizeof(*x));
    EW_CHECK(x, EW_ERR_MEMORY, "no memory to exchange gradients");
    *x = (struct ew_exchange){.ranks = ranks,
                              .plan = plan,
                              .g = g,
                              .o = *o,
                              .weight = (float)weight,
                              .size = ew_ranks_size(ranks),
                              .rank = ew_ranks_rank(ranks)};
    ew_arena_init(&x->arena);
    const ew_err err = open_all(x);
    if (err != EW_OK) {
        ew_exchange_close(x);
        return err;
    }
    *out = x;
    return EW_OK;
}

void ew_exchange_close(struct ew_exchange *x)
{
    if (!x)
        return;
    ew_arena_fini(&x->arena);
    free(x->residual_all);
    free(x->residual_states);
    free(x);
}

/* ---- To and from the plan -------------------------------------------------------------------- */

/* The plan's gradient, which is const to other callers. */
static float *gradient(struct ew_exchange *x, int value, int64_t *n)
{
    const struct ew_tensor *t = ew_plan_grad(x->plan, value);
    *n = ew_tensor_count(t);
    return t->data;
}

/* b->sum = weighted gradients + residuals, zero-padded. */
static void collect(struct ew_exchange *x, int bucket)
{
    struct ew_exchange_bucket *b = &x->buckets[bucket];
    int n;
    const int *values = ew_plan_bucket(x->plan, bucket, &n);
    int64_t at = 0, count;
    for (int i = 0; i < n; i++) {
        const float *g = gradient(x, values[i], &count);
        for (int64_t k = 0; k < count; k++)
            b->sum[at + k] = x->weight * g[k];
        at += count;
    }
    memset(b->sum + at, 0, (size_t)(b->piece * x->size - at) * sizeof(float));
    for (int64_t k = 0; b->residual && k < at; k++)
        b->sum[k] += b->residual[k];
}

static void give_back(struct ew_exchange *x, int bucket, const float *sums)
{
    int n;
    const int *values = ew_plan_bucket(x->plan, bucket, &n);
    int64_t count;
    for (int i = 0; i < n; i++) {
        float *g = gradient(x, values[i], &count);
        memcpy(g, sums, (size_t)count * sizeof(float));
        sums += count;
    }
}

/* ---- Compression ----------------------------------------------------------------------------- */

/* Rounds to float16; residual = rounding error. */
static void to_half(const float *from, uint16_t *to, float *residual, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float v = fmaxf(-EW_HALF_MOST, fminf(EW_HALF_MOST, from[i]));
        to[i] = ew_half_from(v);
        residual[i] = from[i] - ew_half_to(to[i]);
    }
}

/* The bits of |f|, which are ordered like |f|. */
static uint32_t size_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u & 0x7fffffff;
}

/* The bin of the k-th largest; *k becomes its rank within the bin. */
static uint32_t find_bin(const int64_t *bins, int64_t *k)
{
    uint32_t bin = BINS - 1;
    for (; bin > 0 && *k > bins[bin]; bin--)
        *k -= bins[bin];
    return bin;
}

/* The k-th largest magnitude, by two histogram passes over its upper and lower 16 bits; *equal: how
 * many of that magnitude are among the k largest. */
static uint32_t kth_size(const float *v, int64_t n, int64_t k, int64_t *bins, int64_t *equal)
{
    memset(bins, 0, BINS * sizeof(*bins));
    for (int64_t i = 0; i < n; i++)
        bins[size_bits(v[i]) >> 16]++;
    const uint32_t upper = find_bin(bins, &k);
    memset(bins, 0, BINS * sizeof(*bins));
    for (int64_t i = 0; i < n; i++)
        if (size_bits(v[i]) >> 16 == upper)
            bins[size_bits(v[i]) & 0xffff]++;
    const uint32_t lower = find_bin(bins, &k);
    *equal = k;
    return upper << 16 | lower;
}

/* Selects the `entries` largest magnitudes, ties by position; the others become residuals. */
static void select_entries(struct ew_exchange *x, struct ew_exchange_bucket *b)
{
    struct topk_entry *out = b->sent;
    int64_t equal, n = 0;
    const uint32_t least = kth_size(b->sum, b->n, b->entries, x->bins, &equal);
    for (int64_t i = 0; i < b->n; i++) {
        const uint32_t size = size_bits(b->sum[i]);
        const bool take = size > least || (size == least && equal-- > 0);
        b->residual[i] = take ? 0 : b->sum[i];
        if (take)
            out[n++] = (struct topk_entry){(uint32_t)i, b->sum[i]};
    }
}

/* Adds every rank's entries, in rank order. */
static ew_err add_entries(struct ew_exchange *x, struct ew_exchange_bucket *b)
{
    const struct topk_entry *all = b->got;
    memset(b->sum, 0, (size_t)b->n * sizeof(float));
    for (int64_t i = 0; i < b->entries * x->size; i++) {
        EW_CHECK(all[i].at < b->n, EW_ERR_FORMAT, "%s sent a gradient beyond its end",
                 ew_ranks_name(x->ranks, (int)(i / b->entries)));
        b->sum[all[i].at] += all[i].value;
    }
    return EW_OK;
}

/* Adds this rank's piece of all ranks, in rank order, and prepares the message to all. */
static void add_pieces(struct ew_exchange *x, struct ew_exchange_bucket *b)
{
    const int64_t n = b->piece;
    if (x->o.form == EW_EXCHANGE_PLAIN) {
        const float *got = b->got;
        memcpy(b->sum, got, (size_t)n * sizeof(float));
        for (int r = 1; r < x->size; r++)
            for (int64_t i = 0; i < n; i++)
                b->sum[i] += got[r * n + i];
        return;
    }
    const uint16_t *got = b->got;
    memcpy(b->sum, b->residual_sum, (size_t)n * sizeof(float));
    for (int r = 0; r < x->size; r++)
        for (int64_t i = 0; i < n; i++)
            b->sum[i] += ew_half_to(got[r * n + i]);
    to_half(b->sum, b->got, b->residual_sum, n); /* over the first piece, which was added */
}

/* ---- Messages -------------------------------------------------------------------------------- */

static ew_err send(struct ew_exchange *x, struct ew_exchange_bucket *b)
{
    const int64_t all = b->piece * x->size;
    const size_t piece = (size_t)b->piece * wire_bytes(x);
    if (x->o.form == EW_EXCHANGE_TOPK) {
        select_entries(x, b);
        const size_t bytes = (size_t)b->entries * sizeof(struct topk_entry);
        x->sent_bytes += (int64_t)bytes * (x->size - 1);
        return ew_ranks_iallgather(x->ranks, b->sent, b->got, bytes, &b->message);
    }
    if (x->o.form == EW_EXCHANGE_FP16)
        to_half(b->sum, b->sent, b->residual, all);
    else
        memcpy(b->sent, b->sum, (size_t)all * sizeof(float));
    x->sent_bytes += 2 * (int64_t)piece * (x->size - 1); /* and the sums */
    return ew_ranks_ialltoall(x->ranks, b->sent, b->got, piece, &b->message);
}

/* All pieces have arrived: starts sending their sums. */
static ew_err gather_sums(struct ew_exchange *x, struct ew_exchange_bucket *b)
{
    if (x->o.form == EW_EXCHANGE_TOPK)
        return add_entries(x, b);
    add_pieces(x, b);
    const void *piece = x->o.form == EW_EXCHANGE_FP16 ? b->got : b->sum;
    return ew_ranks_iallgather(x->ranks, piece, b->sent, (size_t)b->piece * wire_bytes(x),
                               &b->message);
}

/* Starts sending the sums of buckets whose pieces have arrived, in order; `wait`: of all started
 * buckets. */
static ew_err advance(struct ew_exchange *x, bool wait)
{
    for (int i = 0; i < x->begun; i++)
        EW_TRY(ew_ranks_test(x->ranks, &x->buckets[i].message));
    for (; x->summed < x->begun; x->summed++) {
        struct ew_exchange_bucket *b = &x->buckets[x->summed];
        if (wait)
            EW_TRY(ew_ranks_wait(x->ranks, &b->message));
        if (b->message.request)
            return EW_OK;
        EW_TRY(gather_sums(x, b));
    }
    return EW_OK;
}

static bool is_flying(const struct ew_exchange *x)
{
    bool any = x->summed < x->begun;
    for (int i = 0; i < x->begun; i++)
        any |= x->buckets[i].message.request != NULL;
    return any;
}

/* Time between enter and leave is spent on communication.  The computation before it was overlapped
 * if a message is still in flight. */
static ew_err enter(struct ew_exchange *x, int64_t *from)
{
    *from = ew_clock_ns();
    EW_TRY(advance(x, false));
    if (x->flying && is_flying(x))
        x->hidden_ns += *from - x->left_ns;
    return EW_OK;
}

static ew_err leave(struct ew_exchange *x, int64_t from)
{
    x->left_ns = ew_clock_ns();
    x->spent_ns += x->left_ns - from;
    x->flying = is_flying(x);
    return EW_OK;
}

ew_err ew_exchange_progress(struct ew_exchange *x)
{
    int64_t from;
    EW_TRY(enter(x, &from));
    return leave(x, from);
}

ew_err ew_exchange_begin(struct ew_exchange *x, int bucket)
{
    int64_t from;
    EW_TRY(enter(x, &from));
    collect(x, bucket);
    EW_TRY(send(x, &x->buckets[bucket]));
    x->begun = bucket + 1;
    return leave(x, from);
}

ew_err ew_exchange_norm(struct ew_exchange *x, const struct ew_stop *stop)
{
    int64_t from;
    const struct ew_norm_messages all = {x->norms, x->weights, x->size, x->rank};
    size_t bytes;
    EW_TRY(enter(x, &from));
    const float *own = ew_norm_message(stop, &bytes);
    EW_CHECK(bytes <= x->norm_bytes, EW_ERR_INTERNAL, "%s has more channels than its graph",
             stop->norm->name);
    EW_TRY(ew_ranks_allgather_own_comm(x->ranks, own, x->norms, bytes));
    ew_norm_merge(stop, &all);
    x->sent_bytes += (int64_t)bytes * (x->size - 1);
    return leave(x, from);
}

static ew_err take_sums(struct ew_exchange *x, int bucket)
{
    struct ew_exchange_bucket *b = &x->buckets[bucket];
    EW_TRY(ew_ranks_wait(x->ranks, &b->message));
    const uint16_t *half = b->sent;
    if (x->o.form == EW_EXCHANGE_PLAIN)
        give_back(x, bucket, b->sent);
    for (int64_t i = 0; x->o.form == EW_EXCHANGE_FP16 && i < b->n; i++)
        b->sum[i] = ew_half_to(half[i]);
    if (x->o.form != EW_EXCHANGE_PLAIN)
        give_back(x, bucket, b->sum);
    return EW_OK;
}

ew_err ew_exchange_finish(struct ew_exchange *x)
{
    int64_t from;
    EW_TRY(enter(x, &from));
    EW_TRY(advance(x, true));
    for (int i = 0; i < x->n_buckets; i++)
        EW_TRY(take_sums(x, i));
    x->begun = x->summed = 0;
    return leave(x, from);
}

/* ---- After the updates ----------------------------------------------------------------------- */

/* Packs weighted running statistics into this rank's tail, or (`back`) unpacks their sums. */
static void move_statistics(struct ew_exchange *x, bool back)
{
    size_t at = EW_EXCHANGE_NUMBERS * sizeof(double);
    for (int i = 0; i < x->g->n_values; i++) {
        struct ew_value *v = &x->g->values[i];
        if (!has_statistics(v))
            continue;
        const int64_t n = ew_tensor_count(&v->t);
        float *data = v->t.data;
        for (int64_t k = 0; k < n; k++, at += sizeof(float)) {
            float one, sum = 0;
            for (int r = 0; back && r < x->size; r++) {
                memcpy(&one, x->tails + (size_t)r * x->tail_bytes + at, sizeof(one));
                sum += one;
            }
            if (back) {
                data[k] = sum;
            } else {
                one = x->weight * data[k];
                memcpy(x->tail + at, &one, sizeof(one));
            }
        }
    }
}

ew_err ew_exchange_numbers(struct ew_exchange *x, double *numbers, int n)
{
    const int64_t from = ew_clock_ns();
    struct ew_message m = {NULL};
    memcpy(x->tail, numbers, (size_t)n * sizeof(*numbers));
    move_statistics(x, false);
    EW_TRY(ew_ranks_iallgather(x->ranks, x->tail, x->tails, x->tail_bytes, &m));
    EW_TRY(ew_ranks_wait(x->ranks, &m));
    move_statistics(x, true);
    memset(numbers, 0, (size_t)n * sizeof(*numbers));
    for (int r = 0; r < x->size; r++)
        for (int i = 0; i < n; i++) {
            double one;
            memcpy(&one, x->tails + (size_t)r * x->tail_bytes + (size_t)i * sizeof(one),
                   sizeof(one));
            numbers[i] += one;
        }
    x->sent_bytes += (int64_t)x->tail_bytes * (x->size - 1);
    x->spent_ns += ew_clock_ns() - from;
    return EW_OK;
}

struct ew_exchange_times ew_exchange_spent(struct ew_exchange *x)
{
    const struct ew_exchange_times t = {x->spent_ns, x->hidden_ns, x->sent_bytes};
    x->spent_ns = x->hidden_ns = x->sent_bytes = 0;
    return t;
}
