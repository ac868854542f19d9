/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronised batch norm.  Sums are in double and in rank order, so that all ranks get the same
 * bits. */
#include "train/sync_norm.h"

#include <math.h>

#include "op/norm.h"

enum { X, SCALE, BIAS, MEAN, VAR };

static int64_t channels_of(const struct ew_call *c)
{
    const struct ew_shape *s = &c->in[X]->shape;
    return s->dim[s->rank - 1];
}

size_t ew_norm_message_bytes(int64_t channels)
{
    return 2 * (size_t)channels * sizeof(float);
}

float *ew_norm_message(const struct ew_stop *stop, size_t *bytes)
{
    const int64_t channels = channels_of(stop->norm);
    *bytes = ew_norm_message_bytes(channels);
    return (float *)stop->norm->aux + (stop->kind == EW_STOP_SUMS ? 2 * channels : 0);
}

/* Number `at` of rank r's message. */
static double number(const struct ew_norm_messages *m, int64_t channels, int r, int64_t at)
{
    return (double)m->all[2 * channels * r + at];
}

/* The unbiased variance of n rows from 1 / std. */
static double unbiased(double rstd, double eps, double n)
{
    return (1 / (rstd * rstd) - eps) * (n > 1 ? n / (n - 1) : 1);
}

/* Chan's rule: the total variance is the weighted mean of the ranks' variances plus the squared
 * distances of their means from the total mean.  Running means are averaged with all running
 * statistics; the running variance needs the correction here, since the total variance exceeds the
 * average. */
static void merge_statistics(const struct ew_call *c, const struct ew_norm_messages *m)
{
    const struct ew_batch_norm_attr *a = c->attr;
    const int64_t channels = channels_of(c);
    const double rows = (double)ew_shape_span(&c->in[X]->shape, 0, c->in[X]->shape.rank - 1);
    float *mean = c->aux, *rstd = mean + channels, *running = c->in[VAR]->data;
    for (int64_t i = 0; i < channels; i++) {
        double middle = 0, var = 0;
        for (int r = 0; r < m->ranks; r++)
            middle += m->weights[r] * number(m, channels, r, i);
        for (int r = 0; r < m->ranks; r++) {
            const double own = number(m, channels, r, channels + i);
            const double apart = number(m, channels, r, i) - middle;
            var += m->weights[r] * (1 / (own * own) + apart * apart); /* including eps */
        }
        const double all = 1 / sqrt(var);
        running[i] +=
            (float)((1 - a->momentum) * (unbiased(all, a->eps, rows / m->weights[m->rank]) -
                                         unbiased((double)rstd[i], a->eps, rows)));
        mean[i] = (float)middle;
        rstd[i] = (float)all;
    }
}

/* Each rank's sums are means over its rows of gradients of its own mean loss: in the total they
 * weigh w_s rows_s, and this rank divides by w_r rows_r; rows are proportional to the weights w. */
static void merge_sums(const struct ew_call *c, const struct ew_norm_messages *m)
{
    const int64_t n = 2 * channels_of(c);
    float *sums = (float *)c->aux + n;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int r = 0; r < m->ranks; r++)
            sum += m->weights[r] * m->weights[r] * number(m, n / 2, r, i);
        sums[i] = (float)(sum / m->weights[m->rank]);
    }
}

void ew_norm_merge(const struct ew_stop *stop, const struct ew_norm_messages *m)
{
    if (stop->kind == EW_STOP_STATISTICS)
        merge_statistics(stop->norm, m);
    else
        merge_sums(stop->norm, m);
}
