/* SPDX-License-Identifier: Apache-2.0 */
/* Which modes to measure. */
#include "advise/design.h"

#include <math.h>

#include "advise/cholesky.h"
#include "advise/design_residual.h"
#include "base/mem.h"
#include "base/rng.h"

#define VECTORS 8    /* typical networks */
#define GRID    1024 /* candidates over which variance is summed */
#define SEED    7

/* One law at one typical network, and the covariance of its parameters so far.  S is cov, G is
 * grid, j is the row of J at a candidate; `own` and `taken` are updated in k operations a step, not
 * k * k. */
struct view {
    int k;
    double cov[EW_LAW_PARAMS * EW_LAW_PARAMS];  /* of the parameters */
    double grid[EW_LAW_PARAMS * EW_LAW_PARAMS]; /* sum over the grid of J' J */
    struct ew_law_point *points;                /* at the candidates */
    double *own;                                /* variance of measuring them: sigma^2 + j S j' */
    double *taken;                              /* j S G S j' */
};

struct work {
    const struct ew_design *d;
    struct view views[2 * VECTORS];     /* time, then power of each network */
    struct ew_design_residual residual; /* the residual process */
    int grid[GRID], n_grid;
    bool *taken;
};

/* ---- Typical networks ------------------------------------------------------------------------ */

static struct ew_mode top_of(const struct ew_design *d)
{
    struct ew_mode top = d->candidates[0];
    for (int i = 1; i < d->n; i++) {
        const struct ew_mode *m = &d->candidates[i];
        top.cores = fmax(top.cores, m->cores);
        top.cpu = fmax(top.cpu, m->cpu);
        top.gpu = fmax(top.gpu, m->gpu);
        top.mem = fmax(top.mem, m->mem);
    }
    return top;
}

/* The first is the prior's mean, the others are drawn from it. */
static void draw(const struct ew_prior *p, int vector, int stream, double *theta)
{
    for (int j = 0; j < p->n; j++)
        theta[j] =
            p->mean[j] + (vector ? p->sd[j] * ew_rng_normal(SEED, (uint64_t)stream,
                                                            (uint64_t)(vector * EW_TIME_PARAMS + j))
                                 : 0);
}

static double dot(const double *a, const double *b, int k)
{
    double sum = 0;
    for (int i = 0; i < k; i++)
        sum += a[i] * b[i];
    return sum;
}

static void times(const double *matrix, const double *vector, int k, double *out)
{
    for (int i = 0; i < k; i++)
        out[i] = dot(matrix + i * k, vector, k);
}

static void view_init(struct work *w, struct view *v, const struct ew_prior *p)
{
    const int k = p->n;
    v->k = k;
    for (int j = 0; j < k; j++)
        v->cov[j * k + j] = p->sd[j] * p->sd[j];
    for (int i = 0; i < w->n_grid; i++) {
        const struct ew_law_point *q = &v->points[w->grid[i]];
        for (int a = 0; a < k; a++)
            for (int b = 0; b < k; b++)
                v->grid[a * k + b] += q->jac[a] * q->jac[b];
    }
    for (int c = 0; c < w->d->n; c++) {
        const struct ew_law_point *q = &v->points[c];
        double sj[EW_LAW_PARAMS];
        times(v->cov, q->jac, k, sj);
        v->own[c] = q->sigma * q->sigma + dot(sj, q->jac, k);
        v->taken[c] = ew_quad_form(v->grid, k, sj, sj);
    }
}

static ew_err view_alloc(struct view *v, struct ew_arena *arena, int candidates)
{
    const size_t n = (size_t)candidates;
    v->points = ew_arena_array(arena, n, sizeof(*v->points));
    v->own = ew_arena_array(arena, n, sizeof(*v->own));
    v->taken = ew_arena_array(arena, n, sizeof(*v->taken));
    EW_CHECK(v->points && v->own && v->taken, EW_ERR_MEMORY, "no memory for a design");
    return EW_OK;
}

/* All candidates, or a random sample: a fixed stride could select one memory clock only. */
static void choose_grid(struct work *w)
{
    const bool all = w->d->n <= GRID;
    w->n_grid = all ? w->d->n : GRID;
    for (int i = 0; i < w->n_grid; i++)
        w->grid[i] = all ? i : (int)(ew_rng_u64(SEED, 2, (uint64_t)i) % (uint64_t)w->d->n);
}

static ew_err prepare(struct work *w, struct ew_arena *arena)
{
    const struct ew_mode top = top_of(w->d);
    w->taken = ew_arena_array(arena, (size_t)w->d->n, sizeof(*w->taken));
    EW_CHECK(w->taken, EW_ERR_MEMORY, "no memory for a design");
    choose_grid(w);
    EW_TRY(ew_design_residual_init(arena, w->d, &w->residual));
    for (int i = 0; i < VECTORS; i++) {
        double time[EW_LAW_PARAMS], power[EW_LAW_PARAMS];
        struct view *t = &w->views[2 * i], *p = t + 1;
        EW_TRY(view_alloc(t, arena, w->d->n));
        EW_TRY(view_alloc(p, arena, w->d->n));
        draw(&ew_time_prior, i, 0, time);
        draw(&ew_power_prior, i, 1, power);
        ew_time_law(NULL, time, w->d->candidates, w->d->n, t->points);
        struct ew_power_ctx ctx;
        ew_power_ctx_init(&ctx, &top, time);
        ew_power_law(&ctx, power, w->d->candidates, w->d->n, p->points);
        view_init(w, t, &ew_time_prior);
        view_init(w, p, &ew_power_prior);
    }
    return EW_OK;
}

/* ---- Choosing -------------------------------------------------------------------------------- */

/* Remaining variance, summed over the grid. */
static double remaining(const struct view *v)
{
    double sum = 0;
    for (int i = 0; i < v->k * v->k; i++)
        sum += v->cov[i] * v->grid[i];
    return sum;
}

/* Reduction of the remaining variance by measuring candidate c. */
static double gain(const struct view *v, int c)
{
    return v->taken[c] / v->own[c];
}

/* With s = S j' and o of the candidate that is measured, S becomes S - s s' / o. */
static void learn(struct work *w, struct view *v, int measured)
{
    const double *jac = v->points[measured].jac, o = v->own[measured];
    double s[EW_LAW_PARAMS], gs[EW_LAW_PARAMS], sgs[EW_LAW_PARAMS];
    times(v->cov, jac, v->k, s);
    times(v->grid, s, v->k, gs);
    times(v->cov, gs, v->k, sgs);
    const double all = dot(s, gs, v->k);
    for (int c = 0; c < w->d->n; c++) {
        const double *j = v->points[c].jac, part = dot(s, j, v->k) / o;
        v->own[c] -= part * part * o;
        v->taken[c] += part * (part * all - 2 * dot(sgs, j, v->k));
    }
    for (int i = 0; i < v->k; i++)
        for (int j = 0; j < v->k; j++)
            v->cov[i * v->k + j] -= s[i] * s[j] / o;
}

static ew_err take(struct work *w, int c)
{
    w->taken[c] = true;
    for (int i = 0; i < 2 * VECTORS; i++)
        learn(w, &w->views[i], c);
    return ew_design_residual_observe(&w->residual, c);
}

/* Typical standard deviation: the root of the mean over networks of the mean variance. */
static double typical(const struct work *w, int law)
{
    double sum = 0;
    for (int i = 0; i < VECTORS; i++)
        sum += remaining(&w->views[2 * i + law]);
    return sqrt(fmax(sum, 0) / (VECTORS * (double)w->n_grid));
}

/* The candidate with the largest relative reduction of variance: of the laws' parameters, then of
 * the residual process. */
static int best(const struct work *w)
{
    double left[2 * VECTORS], high = -1;
    int found = -1;
    const double residual_left = w->n_grid * ew_design_residual_variance(&w->residual);
    for (int i = 0; i < 2 * VECTORS; i++)
        left[i] = remaining(&w->views[i]) + residual_left;
    for (int c = 0; c < w->d->n; c++) {
        double sum = 0;
        if (w->taken[c])
            continue;
        const double residual = w->n_grid * ew_design_residual_gain(&w->residual, c);
        for (int i = 0; i < 2 * VECTORS; i++)
            sum += (gain(&w->views[i], c) + residual) / left[i];
        if (sum > high) {
            high = sum;
            found = c;
        }
    }
    return found;
}

/* The mode with the highest settings, which fixes the scale and is available on every board. */
static int top_candidate(const struct ew_design *d)
{
    const struct ew_mode top = top_of(d);
    int found = 0;
    double high = -HUGE_VAL;
    for (int i = 0; i < d->n; i++) {
        const struct ew_mode *m = &d->candidates[i];
        const double near = log(m->cores / top.cores) + log(m->cpu / top.cpu) +
                            log(m->gpu / top.gpu) + log(m->mem / top.mem);
        if (near > high) {
            high = near;
            found = i;
        }
    }
    return found;
}

ew_err ew_design_modes(const struct ew_design *d, int want, struct ew_design_step *out, int *n_out)
{
    *n_out = 0;
    EW_CHECK(d->n > 0, EW_ERR_ARG, "there are no modes to choose from");
    struct ew_arena arena;
    ew_arena_init(&arena);
    struct work *w = ew_arena_alloc(&arena, sizeof(*w));
    ew_err err = w ? EW_OK : ew_fail(EW_ERR_MEMORY, "no memory for a design");
    if (err == EW_OK) {
        w->d = d;
        err = prepare(w, &arena);
    }
    for (int i = 0; err == EW_OK && i < d->n_measured; i++)
        err = take(w, d->measured[i]);
    while (err == EW_OK && *n_out < want) {
        struct ew_design_step *s = &out[*n_out];
        const int c = *n_out + d->n_measured == 0 ? top_candidate(d) : best(w);
        if (c < 0)
            break;
        *s = (struct ew_design_step){.candidate = c};
        s->time_before = typical(w, 0);
        s->power_before = typical(w, 1);
        err = take(w, c);
        s->time_after = typical(w, 0);
        s->power_after = typical(w, 1);
        (*n_out)++;
    }
    ew_arena_fini(&arena);
    return err;
}
