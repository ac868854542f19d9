/* SPDX-License-Identifier: Apache-2.0 */
/* Partitioning samples among clients. */
#include "federate/partition.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

#define ORDER_STREAM 0x6f7264 /* "ord" */
#define SHARE_STREAM 0x736861 /* "sha" */

const char *const ew_partition_names[] = {
#define EW_PARTITION_NAME(id, name) name,
    EW_PARTITION_MAP(EW_PARTITION_NAME)
#undef EW_PARTITION_NAME
        NULL};

struct partitioning {
    const struct ew_partition_opts *o;
    const int32_t *labels;
    int64_t n, classes;
    int64_t *order;  /* all samples, in the order in which they are dealt */
    int64_t *client; /* of each of that order */
};

/* Gamma(shape) by Marsaglia and Tsang, ACM TOMS 26(3), 2000; shapes below 1 by a power of a
 * uniform number, as its section 6 has it. */
static double draw_gamma(struct ew_rng *r, double shape)
{
    const double lift = shape < 1 ? 1 : 0, d = shape + lift - 1.0 / 3, c = 1 / sqrt(9 * d);
    double v = 0;
    for (bool taken = false; !taken;) {
        const double x = ew_rng_next_normal(r), u = 1 - ew_rng_next_uniform(r);
        v = (1 + c * x) * (1 + c * x) * (1 + c * x);
        taken = v > 0 && log(u) < 0.5 * x * x + d - d * v + d * log(v);
    }
    const double power = lift > 0 ? pow(1 - ew_rng_next_uniform(r), 1 / shape) : 1;
    return d * v * power;
}

/* Sorted by class, in a random order within each: a counting sort of the shuffled list. */
static ew_err sort_by_class(struct partitioning *d)
{
    EW_CLEANUP(ew_free_ptr) int64_t *at = calloc((size_t)d->classes + 1, sizeof(*at));
    EW_CLEANUP(ew_free_ptr) int64_t *sorted = malloc((size_t)d->n * sizeof(*sorted) + 1);
    EW_CHECK(at && sorted, EW_ERR_MEMORY, "no memory to sort %lld samples", (long long)d->n);
    for (int64_t i = 0; i < d->n; i++)
        at[d->labels[i] + 1]++;
    for (int64_t k = 0; k < d->classes; k++)
        at[k + 1] += at[k];
    for (int64_t i = 0; i < d->n; i++)
        sorted[at[d->labels[d->order[i]]]++] = d->order[i];
    int64_t *const shuffled = d->order;
    d->order = sorted;
    sorted = shuffled;
    return EW_OK;
}

static void deal_evenly(struct partitioning *d)
{
    for (int64_t i = 0; i < d->n; i++)
        d->client[i] = i * d->o->clients / d->n;
}

static void deal_by_key(struct partitioning *d)
{
    for (int64_t i = 0; i < d->n; i++)
        d->client[i] = d->o->keys[d->order[i]];
}

static ew_err deal_shards(struct partitioning *d)
{
    const int64_t n = d->o->clients * d->o->shards;
    EW_CHECK(n <= d->n, EW_ERR_ARG, "%lld clients with %lld shards each are more than %lld samples",
             (long long)d->o->clients, (long long)d->o->shards, (long long)d->n);
    EW_CLEANUP(ew_free_ptr) int64_t *owner = malloc((size_t)n * sizeof(*owner));
    EW_CHECK(owner, EW_ERR_MEMORY, "no memory for %lld shards", (long long)n);
    EW_TRY(sort_by_class(d));
    for (int64_t i = 0; i < n; i++)
        owner[i] = i / d->o->shards;
    struct ew_rng r = {.seed = d->o->seed, .stream = SHARE_STREAM};
    ew_rng_shuffle(&r, owner, (size_t)n);
    for (int64_t i = 0; i < d->n; i++)
        d->client[i] = owner[i * n / d->n];
    return EW_OK;
}

/* Deals the samples [from, to) of one class to the clients by shares drawn from the Dirichlet
 * distribution. */
static void deal_class(struct partitioning *d, struct ew_rng *r, double *upto, int64_t from,
                       int64_t to)
{
    double sum = 0;
    for (int64_t k = 0; k < d->o->clients; k++)
        upto[k] = sum += draw_gamma(r, d->o->alpha);
    int64_t k = 0;
    for (int64_t i = from; i < to; i++) {
        const double share = ((double)(i - from) + 0.5) / (double)(to - from);
        while (k + 1 < d->o->clients && upto[k] < share * sum)
            k++;
        d->client[i] = k;
    }
}

static ew_err deal_dirichlet(struct partitioning *d)
{
    EW_CLEANUP(ew_free_ptr) double *upto = malloc((size_t)d->o->clients * sizeof(*upto));
    EW_CHECK(upto, EW_ERR_MEMORY, "no memory for %lld clients", (long long)d->o->clients);
    EW_TRY(sort_by_class(d));
    struct ew_rng r = {.seed = d->o->seed, .stream = SHARE_STREAM};
    for (int64_t from = 0, to; from < d->n; from = to) {
        for (to = from; to < d->n && d->labels[d->order[to]] == d->labels[d->order[from]];)
            to++;
        deal_class(d, &r, upto, from, to);
    }
    return EW_OK;
}

/* Gives a client without samples one from the largest client, which happens rarely, with small
 * alphas. */
static void feed_the_empty(const struct partitioning *d, int64_t *count)
{
    for (int64_t k = 0; k < d->o->clients; k++) {
        if (count[k])
            continue;
        int64_t most = 0, i = 0;
        for (int64_t j = 1; j < d->o->clients; j++)
            most = count[j] > count[most] ? j : most;
        while (d->client[i] != most)
            i++;
        d->client[i] = k;
        count[most]--;
        count[k]++;
    }
}

static ew_err collect(const struct partitioning *d, struct ew_partition *out)
{
    const int64_t clients = d->o->clients;
    EW_CLEANUP(ew_free_ptr) int64_t *count = calloc((size_t)clients + 1, sizeof(*count));
    out->clients = clients;
    out->samples = malloc((size_t)d->n * sizeof(*out->samples));
    out->first = calloc((size_t)clients + 1, sizeof(*out->first));
    EW_CHECK(count && out->samples && out->first, EW_ERR_MEMORY, "no memory for %lld clients",
             (long long)clients);
    for (int64_t i = 0; i < d->n; i++)
        count[d->client[i]]++;
    feed_the_empty(d, count);
    for (int64_t k = 0; k < clients; k++)
        out->first[k + 1] = out->first[k] + count[k];
    for (int64_t k = 0; k < clients; k++)
        count[k] = out->first[k];
    for (int64_t i = 0; i < d->n; i++)
        out->samples[count[d->client[i]]++] = d->order[i];
    return EW_OK;
}

static ew_err deal(struct partitioning *d, struct ew_partition *out)
{
    struct ew_rng r = {.seed = d->o->seed, .stream = ORDER_STREAM};
    d->order = malloc((size_t)d->n * sizeof(*d->order));
    d->client = calloc((size_t)d->n, sizeof(*d->client));
    EW_CHECK(d->order && d->client, EW_ERR_MEMORY, "no memory for %lld samples", (long long)d->n);
    for (int64_t i = 0; i < d->n; i++)
        d->order[i] = i;
    ew_rng_shuffle(&r, d->order, (size_t)d->n);
    if (d->o->kind == EW_PARTITION_DIRICHLET)
        EW_TRY(deal_dirichlet(d));
    else if (d->o->kind == EW_PARTITION_SHARDS)
        EW_TRY(deal_shards(d));
    else if (d->o->kind == EW_PARTITION_KEY)
        deal_by_key(d);
    else
        deal_evenly(d);
    return collect(d, out);
}

ew_err ew_partition_make(const struct ew_partition_opts *o, const int32_t *labels, int64_t n,
                         int64_t classes, struct ew_partition *out)
{
    *out = (struct ew_partition){0};
    EW_CHECK(o->clients > 0 && o->clients <= n, EW_ERR_ARG,
             "%lld clients cannot share %lld samples; fewer clients can", (long long)o->clients,
             (long long)n);
    for (int64_t i = 0; i < n; i++)
        EW_CHECK(labels[i] >= 0 && labels[i] < classes, EW_ERR_ARG, "sample %lld has no class",
                 (long long)i);
    struct partitioning d = {.o = o, .labels = labels, .n = n, .classes = classes};
    const ew_err e = deal(&d, out);
    free(d.order);
    free(d.client);
    if (e != EW_OK)
        ew_partition_free(out);
    return e;
}

void ew_partition_free(struct ew_partition *p)
{
    free(p->samples);
    free(p->first);
    *p = (struct ew_partition){0};
}
