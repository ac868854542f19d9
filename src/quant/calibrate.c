/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration: a plan whose outputs are the observed values, and their statistics. */
#include "quant/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compress/pow2.h"
#include "edgewise.h"
#include "plan/plan.h"

#define BINS 2048 /* of magnitudes, from 0 to the peak */

const char *const ew_calibrate_names[] = {
#define NAME(id, name) name,
    EW_CALIBRATE_MAP(NAME)
#undef NAME
        NULL};

struct observer {
    const char *name;
    bool is_input; /* never clipped: pixels are bounded, so extremes are no outliers */
    int output;    /* output of the plan */
    float lo, hi;
    int64_t count, channels;
    double *sum; /* by channel */
    float *mean, *peak;
    uint64_t *bins;               /* histogram; NULL: not needed */
    int votes[EW_POW2_POSITIONS]; /* [position]: batches for which it was best */
};

struct ew_calibrator {
    struct ew_calibrate_opts o;
    struct ew_arena arena;
    struct ew_graph *g; /* a clone whose outputs are the observed values */
    struct ew_plan *plan;
    struct observer *obs;
    int n;
    int64_t batch;
    int pass;
};

int ew_calibrator_passes(const struct ew_calibrator *c)
{
    return c->o.method == EW_CALIBRATE_MINMAX ? 1 : 2;
}

void ew_calibrator_start(struct ew_calibrator *c, int pass)
{
    c->pass = pass;
}

/* ---- Observing ---- */

/* Widens [*lo, *hi] to the elements of x; false if one is not finite. */
static bool extremes(const float *x, int64_t n, float *lo, float *hi)
{
    float a = *lo, b = *hi, odd = 0;
    for (int64_t i = 0; i < n; i++) {
        a = x[i] < a ? x[i] : a;
        b = x[i] > b ? x[i] : b;
        odd += x[i] * 0; /* NaN if any is not finite */
    }
    *lo = a;
    *hi = b;
    return !isnan(odd);
}

static void add_channels(struct observer *ob, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += ob->channels) {
        for (int64_t k = 0; k < ob->channels; k++) {
            const float size = fabsf(x[i + k]);
            ob->sum[k] += (double)x[i + k];
            ob->peak[k] = size > ob->peak[k] ? size : ob->peak[k];
        }
    }
}

static float magnitude(const struct observer *ob)
{
    return fmaxf(fabsf(ob->lo), fabsf(ob->hi));
}

static void add_bins(struct observer *ob, const float *x, int64_t n)
{
    const float top = magnitude(ob);
    const float scale = top > 0 ? BINS / top : 0;
    for (int64_t i = 0; i < n; i++) {
        const float at =
            fabsf(x[i]) * scale; /* clamped, in case the inputs differ from the first pass */
        ob->bins[at < BINS ? (int)at : BINS - 1]++;
    }
}

static ew_err observe(struct ew_calibrator *c, struct observer *ob, int64_t images)
{
    const struct ew_tensor *t = ew_plan_output(c->plan, ob->output);
    const int64_t all = ew_tensor_count(t);
    /* values with another first dimension (a table of anchors) are not per image */
    const int64_t n = t->shape.rank && t->shape.dim[0] == c->batch ? all / c->batch * images : all;
    if (c->pass > 0) {
        add_bins(ob, t->data, n);
        return EW_OK;
    }
    EW_CHECK(extremes(t->data, n, &ob->lo, &ob->hi), EW_ERR_FORMAT,
             "%s is not finite for one of the calibration inputs", ob->name);
    add_channels(ob, t->data, n);
    if (c->o.positions)
        ob->votes[ew_pow2_best(t->data, n) - EW_POW2_LEAST]++;
    ob->count += n;
    return EW_OK;
}

ew_err ew_calibrator_feed(struct ew_calibrator *c, const float *images, int64_t n)
{
    EW_CHECK(n >= 1 && n <= c->batch, EW_ERR_ARG, "%lld images for a batch of %lld", (long long)n,
             (long long)c->batch);
    struct ew_tensor *in = ew_plan_input(c->plan, 0);
    memcpy(in->data, images, ew_tensor_bytes(in) / (size_t)c->batch * (size_t)n);
    EW_TRY(ew_plan_run(c->plan));
    for (int i = 0; i < c->n; i++)
        EW_TRY(observe(c, &c->obs[i], n));
    return EW_OK;
}

/* ---- Where to clip ---- */

static double clip_percentile(const uint64_t *bins, double percentile)
{
    uint64_t total = 0, sum = 0;
    for (int i = 0; i < BINS; i++)
        total += bins[i];
    const double want = (double)total * percentile / 100;
    int i = 0;
    for (; i < BINS; i++) {
        sum += bins[i];
        if ((double)sum >= want)
            break;
    }
    return (double)(i < BINS ? i + 1 : BINS) / BINS;
}

/* KL divergence between the histogram clipped to the first `kept` bins and its quantisation to
 * `levels` steps. */
static double divergence(const uint64_t *bins, int kept, int levels, double beyond)
{
    double total = beyond, loss = 0;
    for (int i = 0; i < kept; i++)
        total += (double)bins[i];
    double inside = total - beyond;
    if (inside <= 0)
        return INFINITY;
    for (int step = 0; step < levels; step++) {
        const int from = (int)((int64_t)step * kept / levels);
        const int to = (int)((int64_t)(step + 1) * kept / levels);
        double sum = 0;
        int used = 0;
        for (int i = from; i < to; i++) {
            sum += (double)bins[i];
            used += bins[i] != 0;
        }
        for (int i = from; i < to; i++) {
            double p = (double)bins[i];
            if (i == kept - 1)
                p += beyond;
            if (p <= 0)
                continue;
            /* a step without samples of its own still has the clipped mass */
            const double q = used && bins[i] ? sum / used / inside : 1e-9;
            loss += p / total * log(p / total / q);
        }
    }
    return loss;
}

static double clip_entropy(const uint64_t *seen, int levels)
{
    uint64_t bins[BINS];
    double beyond = 0, best = INFINITY;
    int at = BINS;
    memcpy(bins, seen, sizeof(bins));
    bins[0] = bins[1]; /* zero is exact at any scale, so its count must not favour finer steps */
    /* from all bins down, so that a tie clips less */
    for (int kept = BINS; kept >= levels; kept--) {
        if (kept % 8 == 0) {
            const double loss = divergence(bins, kept, levels, beyond);
            if (loss < best) {
                best = loss;
                at = kept;
            }
        }
        beyond += (double)bins[kept - 1];
    }
    return (double)at / BINS;
}

/* The position chosen for most batches; inputs are not clipped. */
static int position_of(const struct observer *ob)
{
    int best = 0;
    for (int i = 1; i < EW_POW2_POSITIONS; i++)
        if (ob->votes[i] > ob->votes[best])
            best = i;
    return ob->is_input ? ew_pow2_first(ob->lo, ob->hi) : best + EW_POW2_LEAST;
}

ew_err ew_calibrator_range(const struct ew_calibrator *c, int i, struct ew_value_range *out)
{
    const struct observer *ob = &c->obs[i];
    EW_CHECK(ob->count > 0, EW_ERR_ARG, "nothing was fed to calibrate %s with", ob->name);
    double part = 1;
    if (c->o.method == EW_CALIBRATE_PERCENTILE && !ob->is_input)
        part = clip_percentile(ob->bins, c->o.percentile);
    if (c->o.method == EW_CALIBRATE_ENTROPY && !ob->is_input)
        part = clip_entropy(ob->bins, ob->lo < 0 ? 128 : 256);
    const float clip = (float)(part * (double)magnitude(ob));
    for (int64_t k = 0; k < ob->channels; k++)
        ob->mean[k] = (float)(ob->sum[k] / (double)(ob->count / ob->channels));
    *out = (struct ew_value_range){.lo = fmaxf(ob->lo, -clip),
                                   .hi = fminf(ob->hi, clip),
                                   .seen_lo = ob->lo,
                                   .seen_hi = ob->hi,
                                   .position = position_of(ob),
                                   .count = ob->count,
                                   .channels = ob->channels,
                                   .mean = ob->mean,
                                   .peak = ob->peak};
    /* one-sided values: the other end may lie beyond the clip */
    out->lo = fminf(out->lo, out->hi);
    return EW_OK;
}

/* ---- New ---- */

static ew_err observer_init(struct ew_calibrator *c, struct observer *ob, int value)
{
    const struct ew_value *v = &c->g->values[value];
    EW_CHECK(v->t.dtype == EW_F32 && !ew_value_is_weight(v), EW_ERR_ARG,
             "%s cannot be calibrated: it is not a float32 activation", v->name);
    ob->name = v->name;
    ob->is_input = v->kind == EW_VALUE_INPUT;
    ob->output = c->g->n_outputs;
    ob->lo = INFINITY;
    ob->hi = -INFINITY;
    ob->channels = v->t.shape.rank ? v->t.shape.dim[v->t.shape.rank - 1] : 1;
    ob->sum = ew_arena_alloc(&c->arena, (size_t)ob->channels * sizeof(*ob->sum));
    ob->mean = ew_arena_alloc(&c->arena, (size_t)ob->channels * sizeof(*ob->mean));
    ob->peak = ew_arena_alloc(&c->arena, (size_t)ob->channels * sizeof(*ob->peak));
    if (ew_calibrator_passes(c) > 1)
        ob->bins = ew_arena_alloc(&c->arena, BINS * sizeof(*ob->bins));
    return ew_graph_output(c->g, value);
}

static ew_err calibrator_init(struct ew_calibrator *c, const struct ew_graph *g, const int *values,
                              int n)
{
    EW_CHECK(g->n_inputs == 1, EW_ERR_UNSUPPORTED, "calibration needs one input; %s has %d",
             g->name, g->n_inputs);
    EW_TRY(ew_graph_clone(g, &c->g));
    c->obs = ew_arena_alloc(&c->arena, (size_t)n * sizeof(*c->obs));
    EW_CHECK(c->obs, EW_ERR_MEMORY, "no memory for %d ranges", n);
    c->n = n;
    for (int i = 0; i < n; i++)
        EW_TRY(observer_init(c, &c->obs[i], values[i]));
    EW_CHECK(!c->arena.failed, EW_ERR_MEMORY, "no memory for the statistics of %d values", n);
    const struct ew_tensor *in = &c->g->values[c->g->inputs[0]].t;
    EW_CHECK(in->dtype == EW_F32 && in->shape.rank > 0, EW_ERR_UNSUPPORTED,
             "calibration needs float32 images");
    c->batch = in->shape.dim[0];
    const struct ew_plan_opts po = {.optimize = true, .backend = c->o.backend};
    return ew_plan_compile(c->g, &po, &c->plan);
}

ew_err ew_calibrator_new(const struct ew_graph *g, const int *values, int n,
                         const struct ew_calibrate_opts *o, struct ew_calibrator **out)
{
    struct ew_calibrator *c = calloc(1, sizeof(*c));
    EW_CHECK(c, EW_ERR_MEMORY, "no memory to calibrate");
    c->o = *o;
    ew_arena_init(&c->arena);
    const ew_err err = calibrator_init(c, g, values, n);
    if (err) {
        ew_calibrator_free(c);
        return err;
    }
    *out = c;
    return EW_OK;
}

void ew_calibrator_free(struct ew_calibrator *c)
{
    if (!c)
        return;
    ew_plan_free(c->plan);
    ew_graph_free(c->g);
    ew_arena_fini(&c->arena);
    free(c);
}
