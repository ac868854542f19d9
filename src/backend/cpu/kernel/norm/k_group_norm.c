/* SPDX-License-Identifier: Apache-2.0 */
/* Group and instance norm of channels-last images.
 *
 * Rows of an image are divided into splits of SPLIT_ROWS.  Each has two sums per channel, forward
 * of x and its square relative to the image's first pixel.  group_norm_finish adds them in double,
 * first by channel, then by group, and computes factors for each channel with which apply is a
 * linear function of x (and dy). */
#include <math.h>

#include "backend/cpu/kernel/common/vec.h"

#define SPLIT_ROWS 256
#define BLOCK      4 /* vectors of channels at a time */

static int64_t splits_of(const struct ew_group_norm *g)
{
    return max_i64(div_up(g->rows, SPLIT_ROWS), 1);
}

int64_t EW_K(group_norm_tiles)(const struct ew_group_norm *g)
{
    return g->images * splits_of(g);
}

size_t EW_K(group_norm_partial)(const struct ew_group_norm *g)
{
    return (size_t)(EW_K(group_norm_tiles)(g) * 2 * g->channels);
}

/* Rows [first, last) of an image. */
struct span {
    int64_t image, first, last;
};

static struct span span_of(const struct ew_group_norm *g, int64_t tile)
{
    const int64_t splits = splits_of(g), first = tile % splits * SPLIT_ROWS;
    return (struct span){tile / splits, first, min_i64(first + SPLIT_ROWS, g->rows)};
}

/* The values of the channels' groups. */
INLINE vec group_values(const float *of, int64_t run, int64_t c, int64_t n)
{
    vec v = {0};
    for (int64_t i = 0; i < min_i64(n, LANES); i++)
        v[i] = of[(c + i) / run];
    return v;
}

/* ---- Sums ---- */

/* Sums over the span of channels [c, c + vectors * LANES), of which n are valid: forward x - from
 * and its square, backward dy and dy (x - from) rstd. */
INLINE void add_block(const struct ew_group_norm *g, const struct span *s, int64_t c,
                      const int vectors, const bool back, float *to)
{
    const int64_t step = g->channels, at = (s->image * g->rows) * step + c;
    const int64_t groups = g->channels / g->run;
    vec from[BLOCK], rstd[BLOCK], a[BLOCK], b[BLOCK];
    UNROLL
    for (int v = 0; v < vectors; v++) {
        const int64_t n = g->channels - c - v * LANES;
        a[v] = b[v] = rstd[v] = (vec){0};
        from[v] = back ? group_values(g->mean + s->image * groups, g->run, c + v * LANES, n)
                       : load_n(g->x + at + v * LANES, n);
        if (back)
            rstd[v] = group_values(g->rstd + s->image * groups, g->run, c + v * LANES, n);
    }
    for (int64_t r = s->first; r < s->last; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++) {
            const int64_t n = g->channels - c - v * LANES, i = at + r * step + v * LANES;
            const vec x = load_n(g->x + i, n) - from[v];
            const vec d = back ? load_n(g->dy + i, n) : x;
            a[v] += d;
            b[v] += d * x;
        }
    }
    UNROLL
    for (int v = 0; v < vectors; v++) {
        const int64_t n = g->channels - c - v * LANES;
        store_n(to + c + v * LANES, a[v], n);
        store_n(to + g->channels + c + v * LANES, back ? b[v] * rstd[v] : b[v], n);
    }
}

INLINE void add_tiles(const struct ew_group_norm *g, int64_t begin, int64_t end, const bool back)
{
    for (int64_t tile = begin; tile < end; tile++) {
        const struct span s = span_of(g, tile);
        float *to = g->partial + tile * 2 * g->channels;
        int64_t c = 0;
        for (; c + BLOCK * LANES <= g->channels; c += BLOCK * LANES)
            add_block(g, &s, c, BLOCK, back, to);
        for (; c < g->channels; c += LANES)
            add_block(g, &s, c, 1, back, to);
    }
}

void EW_K(group_norm_stats)(const struct ew_group_norm *g, int64_t begin, int64_t end)
{
    add_tiles(g, begin, end, false);
}

void EW_K(group_norm_back_stats)(const struct ew_group_norm *g, int64_t begin, int64_t end)
{
    add_tiles(g, begin, end, true);
}

/* Both sums of a channel over the image. */
static void channel_sums(const struct ew_group_norm *g, int64_t image, int64_t c, double sum[2])
{
    const int64_t splits = splits_of(g);
    const float *p = g->partial + image * splits * 2 * g->channels + c;
    sum[0] = sum[1] = 0;
    for (int64_t s = 0; s < splits; s++, p += 2 * g->channels) {
        sum[0] += (double)p[0];
        sum[1] += (double)p[g->channels];
    }
}

/* ---- Forward ---- */

/* With n values for each channel, the group's sum of squares is the sum of the channels' (around
 * their means) plus n times that of the means around the group's mean (Chan, Golub and LeVeque,
 * 1983). */
static void finish_group(const struct ew_group_norm *g, int64_t image, int64_t group)
{
    const float *first = g->x + image * g->rows * g->channels;
    const double n = (double)g->rows;
    double mean = 0, square = 0, sum[2];
    for (int64_t c = group * g->run; c < (group + 1) * g->run; c++) {
        channel_sums(g, image, c, sum);
        mean += ((double)first[c] + sum[0] / n) / (double)g->run;
    }
    for (int64_t c = group * g->run; c < (group + 1) * g->run; c++) {
        channel_sums(g, image, c, sum);
        const double off = (double)first[c] + sum[0] / n - mean;
        square += fmax(sum[1] - sum[0] * sum[0] / n, 0) + n * off * off;
    }
    const int64_t at = image * (g->channels / g->run) + group;
    g->mean[at] = (float)mean;
    g->rstd[at] = (float)(1 / sqrt(square / (n * (double)g->run) + (double)g->eps));
}

void EW_K(group_norm_finish)(const struct ew_group_norm *g, int64_t begin, int64_t end)
{
    const int64_t groups = g->channels / g->run;
    for (int64_t image = begin; image < end; image++) {
        float *scale = g->factors + image * 3 * g->channels, *shift = scale + g->channels;
        for (int64_t group = 0; group < groups; group++)
            finish_group(g, image, group);
        for (int64_t c = 0; c < g->channels; c++) {
            const int64_t group = image * groups + c / g->run;
            const int64_t param = g->per_group ? c / g->run : c;
            const double gain = (double)g->rstd[group] * (double)g->scale[param];
            const double bias = g->bias ? (double)g->bias[param] : 0;
            scale[c] = (float)gain;
            shift[c] = (float)(bias - (double)g->mean[group] * gain);
        }
    }
}

void EW_K(group_norm_apply)(const struct ew_group_norm *g, int64_t begin, int64_t end)
{
    for (int64_t tile = begin; tile < end; tile++) {
        const struct span s = span_of(g, tile);
        const float *scale = g->factors + s.image * 3 * g->channels, *shift = scale + g->channels;
        for (int64_t r = s.first; r < s.last; r++) {
            const int64_t at = (s.image * g->rows + r) * g->channels;
            for (int64_t c = 0; c < g->channels; c += LANES) {
                const int64_t n = g->channels - c;
                const vec x = load_n(g->x + at + c, n);
                store_n(g->y + at + c, x * load_n(scale + c, n) + load_n(shift + c, n), n);
            }
        }
    }
}

/* ---- Backward ---- */

/* dx = rstd (g - mean(g) - xhat mean(g xhat)) with g = dy scale: linear in dy and x. */
static void back_factors(const struct ew_group_norm *g, int64_t image, int64_t group)
{
    const int64_t at = image * (g->channels / g->run) + group;
    const double rstd = (double)g->rstd[at], share = 1 / (double)(g->rows * g->run);
    double sum[2], all[2] = {0};
    for (int64_t c = group * g->run; c < (group + 1) * g->run; c++) {
        const double scale = (double)g->scale[g->per_group ? group : c];
        channel_sums(g, image, c, sum);
        all[0] += share * scale * sum[0];
        all[1] += share * scale * sum[1];
    }
    float *f = g->factors + image * 3 * g->channels;
    for (int64_t c = group * g->run; c < (group + 1) * g->run; c++) {
        f[c] = (float)(rstd * (double)g->scale[g->per_group ? group : c]);
        f[g->channels + c] = (float)(-rstd * rstd * all[1]);
        f[2 * g->channels + c] = (float)(rstd * (rstd * (double)g->mean[at] * all[1] - all[0]));
    }
}

/* Gradients of scale and bias of channels [c, end), which share them. */
static void back_param(const struct ew_group_norm *g, int64_t param, int64_t c, int64_t end)
{
    double all[2] = {0};
    for (; c < end; c++) {
        for (int64_t image = 0; image < g->images; image++) {
            double sum[2];
            channel_sums(g, image, c, sum);
            all[0] += sum[0];
            all[1] += sum[1];
        }
    }
    if (g->dbias)
        g->dbias[param] = (float)all[0] + (g->add_dbias ? g->dbias[param] : 0);
    if (g->dscale)
        g->dscale[param] = (float)all[1] + (g->add_dscale ? g->dscale[param] : 0);
}

void EW_K(group_norm_back_finish)(const struct ew_group_norm *g)
{
    const int64_t groups = g->channels / g->run, each = g->per_group ? g->run : 1;
    for (int64_t image = 0; image < g->images; image++)
        for (int64_t group = 0; group < groups; group++)
            back_factors(g, image, group);
    for (int64_t p = 0; p < g->channels / each; p++)
        back_param(g, p, p * each, (p + 1) * each);
}

void EW_K(group_norm_back_apply)(const struct ew_group_norm *g, int64_t begin, int64_t end)
{
    for (int64_t tile = begin; tile < end; tile++) {
        const struct span s = span_of(g, tile);
        const float *f = g->factors + s.image * 3 * g->channels;
        for (int64_t r = s.first; r < s.last; r++) {
            const int64_t at = (s.image * g->rows + r) * g->channels;
            for (int64_t c = 0; c < g->channels; c += LANES) {
                const int64_t n = g->channels - c;
                vec v = load_n(g->dy + at + c, n) * load_n(f + c, n) +
                        load_n(g->x + at + c, n) * load_n(f + g->channels + c, n) +
                        load_n(f + 2 * g->channels + c, n);
                if (g->add_dx)
                    v += load_n(g->dx + at + c, n);
                store_n(g->dx + at + c, v, n);
            }
        }
    }
}
