/* SPDX-License-Identifier: Apache-2.0 */
/* The sweep over DPU configurations, its table and its picture. */
#include "cli/bench_sweep.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/html.h"
#include "report/text_table.h"

static const int cores[] = {1, 2, 3, 4};
static const double clocks[] = {200, 250, 300};
static const double memories[] = {9.6, 19.2};

#define SIZES   8
#define CONFIGS (SIZES * 4 * 3 * 2)

struct point {
    struct ew_dpu_config c;
    struct ew_dpu_times t;
    int dsp, bram; /* of all cores */
    bool fits;     /* into the board's chip */
    bool front;    /* no other one that fits is as good in everything and better in something */
};

struct sweep {
    struct point all[CONFIGS];
    int n, n_fit, n_front;
    const struct ew_dpu_board *board;
};

/* An UltraRAM block holds what eight of block RAM do. */
static bool fits(const struct point *p, const struct ew_dpu_board *b)
{
    return p->dsp <= b->dsp && p->bram <= b->bram + 8 * b->uram;
}

static bool beats(const struct point *a, const struct point *b)
{
    const bool as_good = a->t.latency_s <= b->t.latency_s && a->t.images_s >= b->t.images_s &&
                         a->dsp <= b->dsp && a->bram <= b->bram;
    return as_good && (a->t.latency_s < b->t.latency_s || a->t.images_s > b->t.images_s ||
                       a->dsp < b->dsp || a->bram < b->bram);
}

static void fill(struct sweep *s, struct ew_dpu_net *n, const struct ew_dpu_config *base)
{
    for (int i = 0; i < CONFIGS; i++) {
        struct point *p = &s->all[s->n++];
        p->c = *base;
        p->c.arch = &ew_dpu_archs[i / 24];
        p->c.cores = cores[i / 6 % 4];
        p->c.clock_mhz = clocks[i / 2 % 3];
        p->c.ddr_gb_s = memories[i % 2];
        p->dsp = p->c.arch->dsp * p->c.cores;
        p->bram = p->c.arch->bram * p->c.cores;
        ew_dpu_time(n, &p->c, &p->t);
        p->fits = fits(p, base->board);
        s->n_fit += p->fits;
    }
    for (int i = 0; i < s->n; i++) {
        s->all[i].front = s->all[i].fits;
        for (int k = 0; k < s->n && s->all[i].front; k++)
            s->all[i].front = !s->all[k].fits || !beats(&s->all[k], &s->all[i]);
        s->n_front += s->all[i].front;
    }
}

static void print_point(const struct point *p, struct ew_table *t)
{
    ew_table_cell(t, "%s", p->c.arch->name);
    ew_table_cell(t, "%d", p->c.cores);
    ew_table_cell(t, "%g", p->c.clock_mhz);
    ew_table_cell(t, "%g", p->c.ddr_gb_s);
    ew_table_cell(t, "%.3f", 1e3 * p->t.latency_s);
    ew_table_cell(t, "%.1f", p->t.images_s);
    ew_table_cell(t, "%.0f%%", 100 * p->t.efficiency);
    ew_table_cell(t, "%d", p->dsp);
    ew_table_cell(t, "%d", p->bram);
    if (p->t.watts_all > 0) {
        ew_table_cell(t, "%.1f", p->t.watts_all);
        ew_table_cell(t, "%.2f", p->t.images_s / p->t.watts_all);
    }
}

static ew_err print_text(const struct sweep *s, const char *what)
{
    static const char *const head[] = {"size",       "cores",    "MHz",        "DDR GB/s",
                                       "latency ms", "images/s", "efficiency", "DSP",
                                       "BRAM36",     "W",        "images/s/W"};
    const bool power = s->board->idle_w > 0;
    struct ew_table t;
    ew_table_init(&t, power ? "lrrrrrrrrrr" : "lrrrrrrrr");
    for (size_t i = 0; i < (power ? EW_COUNT(head) : EW_COUNT(head) - 2); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < s->n; i++)
        if (s->all[i].front)
            print_point(&s->all[i], &t);
    EW_TRY(ew_table_print(&t, stdout));
    printf(
        "\n%s: %d configurations, of which %d fit the chip of the %s and these %d are not beaten "
        "by another one in latency, throughput, DSP and block RAM; all modelled\n",
        what, s->n, s->n_fit, s->board->title, s->n_front);
    printf("DSP and block RAM: documented figures a core, low usage, without depthwise units\n");
    return EW_OK;
}

static ew_err print_json(const struct sweep *s, const char *what)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "network", what);
    ew_json_array(&j, "configurations");
    for (int i = 0; i < s->n; i++) {
        ew_json_object(&j, NULL);
        ew_dpu_json_times(&j, &s->all[i].c, &s->all[i].t);
        ew_json_int(&j, "dsp", s->all[i].dsp);
        ew_json_int(&j, "bram36", s->all[i].bram);
        ew_json_bool(&j, "fits", s->all[i].fits);
        ew_json_bool(&j, "pareto", s->all[i].front);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- Picture: throughput over DSP slices and, where power is known, images/s/W over latency; all
 * logarithmic ---- */

enum { PANEL = 650, HEIGHT = 560, LEFT = 80, LEGEND = 130, TOP = 60, BOTTOM = 60 };

struct axis {
    double lo, hi, from, to;
};

struct panel {
    double (*x)(const struct point *p), (*y)(const struct point *p);
    const char *x_label, *y_label;
};

static double dsp_of(const struct point *p)
{
    return p->dsp;
}

static double images_of(const struct point *p)
{
    return p->t.images_s;
}

static double latency_of(const struct point *p)
{
    return 1e3 * p->t.latency_s;
}

static double per_watt(const struct point *p)
{
    return p->t.images_s / p->t.watts_all;
}

static const struct panel panels[] = {
    {dsp_of, images_of, "DSP slices", "images/s, all cores"},
    {latency_of, per_watt, "latency of one image [ms]", "images/s/W, all cores"},
};

static double at(const struct axis *a, double v)
{
    return a->from + (a->to - a->from) * log(v / a->lo) / log(a->hi / a->lo);
}

static void draw_ticks(FILE *f, const struct axis *x, const struct axis *y)
{
    static const double steps[] = {1, 2, 5};
    for (double power = 1e-3; power < 1e7; power *= 10)
        for (size_t i = 0; i < EW_COUNT(steps); i++) {
            const double v = power * steps[i];
            if (v >= x->lo && v <= x->hi)
                fprintf(f,
                        "<path d='M%.1f %dV%d' stroke='#ddd'/><text x='%.1f' y='%d' "
                        "text-anchor='middle'>%g</text>\n",
                        at(x, v), TOP, HEIGHT - BOTTOM, at(x, v), HEIGHT - BOTTOM + 18, v);
            if (v >= y->lo && v <= y->hi)
                fprintf(f,
                        "<path d='M%.1f %.1fH%.1f' stroke='#ddd'/><text x='%.1f' y='%.1f' "
                        "text-anchor='end'>%g</text>\n",
                        x->from, at(y, v), x->to, x->from - 8, at(y, v) + 4, v);
        }
}

static void draw_dot(FILE *f, const struct point *p, double x, double y)
{
    static const char *const colours[] = {"#7f7f7f", "#8c564b", "#9467bd", "#e377c2",
                                          "#17becf", "#2ca02c", "#ff7f0e", "#1f77b4"};
    const char *colour = colours[p->c.arch - ew_dpu_archs];
    fprintf(f,
            "<circle cx='%.1f' cy='%.1f' r='%d' fill='%s' fill-opacity='%s' stroke='%s'>"
            "<title>%s x %d, %g MHz, %g GB/s: %.2f ms, %.1f images/s</title></circle>\n",
            x, y, p->front ? 5 : 3, colour, p->fits ? (p->front ? "1" : "0.35") : "0",
            p->fits ? colour : "#bbb", p->c.arch->name, p->c.cores, p->c.clock_mhz, p->c.ddr_gb_s,
            1e3 * p->t.latency_s, p->t.images_s);
}

static void draw_legend(FILE *f, int left)
{
    for (int i = 0; i < ew_dpu_n_archs; i++) {
        const struct point p = {.c = {.arch = &ew_dpu_archs[i]}, .fits = true, .front = true};
        const int y = TOP + 14 + 20 * i;
        draw_dot(f, &p, left + 20, y - 4);
        fprintf(f, "<text x='%d' y='%d'>%s</text>\n", left + 34, y, p.c.arch->name);
    }
    static const char *const notes[] = {"large: not beaten", "pale: beaten", "hollow: too large"};
    for (size_t i = 0; i < EW_COUNT(notes); i++)
        fprintf(f, "<text x='%d' y='%zu' fill='#666'>%s</text>\n", left + 14, TOP + 200 + 18 * i,
                notes[i]);
}

static void draw_panel(const struct sweep *s, const struct panel *k, int left, FILE *f)
{
    struct axis x = {INFINITY, 0, left, left + PANEL}, y = {INFINITY, 0, HEIGHT - BOTTOM, TOP};
    for (int i = 0; i < s->n; i++) {
        x.lo = fmin(x.lo, k->x(&s->all[i]) / 1.15);
        x.hi = fmax(x.hi, k->x(&s->all[i]) * 1.15);
        y.lo = fmin(y.lo, k->y(&s->all[i]) / 1.15);
        y.hi = fmax(y.hi, k->y(&s->all[i]) * 1.15);
    }
    draw_ticks(f, &x, &y);
    for (int front = 0; front < 2; front++)
        for (int i = 0; i < s->n; i++)
            if (s->all[i].front == front)
                draw_dot(f, &s->all[i], at(&x, k->x(&s->all[i])), at(&y, k->y(&s->all[i])));
    fprintf(f,
            "<text x='%d' y='%d' text-anchor='middle'>%s</text>"
            "<text transform='translate(%d %d) rotate(-90)' text-anchor='middle'>%s</text>\n",
            left + PANEL / 2, HEIGHT - 18, k->x_label, left - 56, (TOP + HEIGHT - BOTTOM) / 2,
            k->y_label);
}

static void draw(const struct sweep *s, const char *what, FILE *f)
{
    const int n = s->board->idle_w > 0 ? 2 : 1, width = n * (LEFT + PANEL) + LEGEND;
    fprintf(f,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
            "font-family='sans-serif' font-size='13'>\n<rect width='%d' height='%d' fill='#fff'/>"
            "<text x='%d' y='26' font-size='16'>",
            width, HEIGHT, width, HEIGHT, LEFT);
    ew_html_text(f, what);
    fprintf(f, " on DPUs of the %s: modelled</text>\n", s->board->title);
    for (int i = 0; i < n; i++)
        draw_panel(s, &panels[i], LEFT + i * (LEFT + PANEL), f);
    draw_legend(f, width - LEGEND);
    fprintf(f, "</svg>\n");
}

static ew_err write_picture(const struct sweep *s, const char *what, const char *path)
{
    FILE *f = fopen(path, "we");
    EW_CHECK(f, EW_ERR_IO, "%s: %s", path, strerror(errno));
    draw(s, what, f);
    const bool bad = ferror(f);
    EW_CHECK(fclose(f) == 0 && !bad, EW_ERR_IO, "%s: cannot be written", path);
    fprintf(stderr, "picture: %s\n", path);
    return EW_OK;
}

ew_err ew_bench_sweep(const struct ew_cmd_call *c, struct ew_dpu_net *n,
                      const struct ew_dpu_config *base, const char *picture)
{
    struct sweep s = {.board = base->board};
    const char *slash = strrchr(c->args[0], '/'), *what = slash ? slash + 1 : c->args[0];
    EW_ASSERT(ew_dpu_n_archs == SIZES);
    fill(&s, n, base);
    const size_t chars = picture ? strlen(picture) : 0;
    EW_CHECK(!picture || (chars > 4 && strcmp(picture + chars - 4, ".svg") == 0), EW_ERR_USAGE,
             "--picture %s: it is drawn as FILE.svg", picture);
    EW_TRY(c->json ? print_json(&s, what) : print_text(&s, what));
    return picture ? write_picture(&s, what, picture) : EW_OK;
}
