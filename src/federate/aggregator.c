/* SPDX-License-Identifier: Apache-2.0 */
/* Means and medians of vectors in the order of arrival, so that equal clients give equal bits. */
#include "federate/aggregator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const ew_aggregate_names[] = {
#define EW_AGGREGATE_NAME(id, name) name,
    EW_AGGREGATE_MAP(EW_AGGREGATE_NAME)
#undef EW_AGGREGATE_NAME
        NULL};

ew_err ew_aggregator_open(enum ew_aggregate_kind kind, int64_t size, double trim,
                          struct ew_aggregator *out)
{
    *out = (struct ew_aggregator){.kind = kind, .size = size, .trim = trim};
    if (kind == EW_AGGREGATE_MEAN)
        out->sum = calloc((size_t)size + 1, sizeof(*out->sum));
    EW_CHECK(kind != EW_AGGREGATE_MEAN || out->sum, EW_ERR_MEMORY, "no memory for %lld weights",
             (long long)size);
    return EW_OK;
}

void ew_aggregator_close(struct ew_aggregator *c)
{
    free(c->sum);
    free(c->kept);
    free(c->column);
    *c = (struct ew_aggregator){0};
}

static ew_err keep(struct ew_aggregator *c, const float *v)
{
    if (c->n == c->room) {
        const int64_t room = c->room ? 2 * c->room : 8;
        float *kept = realloc(c->kept, (size_t)(room * c->size) * sizeof(*kept));
        c->kept = kept ? kept : c->kept;
        float *column = realloc(c->column, (size_t)room * sizeof(*column));
        c->column = column ? column : c->column;
        EW_CHECK(kept && column, EW_ERR_MEMORY, "no memory for the weights of %lld clients",
                 (long long)room);
        c->room = room;
    }
    memcpy(c->kept + c->n * c->size, v, (size_t)c->size * sizeof(*v));
    return EW_OK;
}

ew_err ew_aggregator_add(struct ew_aggregator *c, const float *v, double weight, bool *taken)
{
    *taken = true;
    for (int64_t i = 0; i < c->size && *taken; i++)
        *taken = isfinite(v[i]);
    if (!*taken)
        return EW_OK;
    if (c->kind != EW_AGGREGATE_MEAN)
        EW_TRY(keep(c, v));
    for (int64_t i = 0; c->sum && i < c->size; i++)
        c->sum[i] += weight * (double)v[i];
    c->weight += weight;
    c->n++;
    return EW_OK;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The mean of the sorted numbers from `cut` to n - cut; with the largest cut it is the median. */
static float middle(float *v, int64_t n, int64_t cut)
{
    double sum = 0;
    qsort(v, (size_t)n, sizeof(*v), by_value);
    for (int64_t i = cut; i < n - cut; i++)
        sum += (double)v[i];
    return (float)(sum / (double)(n - 2 * cut));
}

static void finish_kept(struct ew_aggregator *c, float *out)
{
    const int64_t most = (c->n - 1) / 2;
    const int64_t asked = (int64_t)(c->trim * (double)c->n + 1e-9);
    const int64_t cut = c->kind == EW_AGGREGATE_MEDIAN || asked > most ? most : asked;
    for (int64_t i = 0; i < c->size; i++) {
        for (int64_t k = 0; k < c->n; k++)
            c->column[k] = c->kept[k * c->size + i];
        out[i] = middle(c->column, c->n, cut);
    }
}

void ew_aggregator_finish(struct ew_aggregator *c, float *out)
{
    if (c->kind != EW_AGGREGATE_MEAN)
        finish_kept(c, out);
    for (int64_t i = 0; c->sum && i < c->size; i++) {
        out[i] = (float)(c->sum[i] / c->weight);
        c->sum[i] = 0;
    }
    c->weight = 0;
    c->n = 0;
}
