/* SPDX-License-Identifier: Apache-2.0 */
/* Sweep over DPU configurations, and its Pareto front. */
#include "backend/dpu/dpu_sweep.h"

#include "base/mem.h"

static const int cores[] = {1, 2, 3, 4};
static const double clocks[] = {200, 250, 300};
static const double memories[] = {9.6, 19.2};

/* An UltraRAM block replaces eight BRAM36. */
static bool fits(const struct ew_dpu_point *p, const struct ew_dpu_board *b)
{
    return p->dsp <= b->dsp && p->bram <= b->bram + 8 * b->uram;
}

static bool beats(const struct ew_dpu_point *a, const struct ew_dpu_point *b)
{
    const struct ew_dpu_times *x = &a->times, *y = &b->times;
    const bool as_good = x->latency_s <= y->latency_s && x->images_s >= y->images_s &&
                         a->dsp <= b->dsp && a->bram <= b->bram;
    return as_good && (x->latency_s < y->latency_s || x->images_s > y->images_s ||
                       a->dsp < b->dsp || a->bram < b->bram);
}

static bool unbeaten(const struct ew_dpu_sweep *s, const struct ew_dpu_point *p)
{
    for (int i = 0; i < s->n; i++)
        if (s->points[i].fits && beats(&s->points[i], p))
            return false;
    return p->fits;
}

static void add(struct ew_dpu_sweep *s, struct ew_dpu_net *n, const struct ew_dpu_config *c)
{
    struct ew_dpu_point *p = &s->points[s->n++];
    *p = (struct ew_dpu_point){
        .config = *c, .dsp = c->arch->dsp * c->cores, .bram = c->arch->bram * c->cores};
    p->fits = fits(p, s->board);
    s->n_fit += p->fits;
    ew_dpu_time(n, c, &p->times);
}

void ew_dpu_sweep(struct ew_dpu_net *n, const struct ew_dpu_config *base, struct ew_dpu_sweep *out)
{
    struct ew_dpu_config c = *base;
    EW_ASSERT((size_t)ew_dpu_n_archs * EW_COUNT(cores) * EW_COUNT(clocks) * EW_COUNT(memories) ==
              EW_DPU_SWEEP_POINTS);
    out->board = base->board;
    out->n = out->n_fit = out->n_front = 0;
    for (int a = 0; a < ew_dpu_n_archs; a++)
        for (size_t i = 0; i < EW_COUNT(cores); i++)
            for (size_t k = 0; k < EW_COUNT(clocks); k++)
                for (size_t m = 0; m < EW_COUNT(memories); m++) {
                    c.arch = &ew_dpu_archs[a];
                    c.cores = cores[i];
                    c.clock_mhz = clocks[k];
                    c.ddr_gb_s = memories[m];
                    add(out, n, &c);
                }
    for (int i = 0; i < out->n; i++) {
        out->points[i].front = unbeaten(out, &out->points[i]);
        out->n_front += out->points[i].front;
    }
}
