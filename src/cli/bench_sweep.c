/* SPDX-License-Identifier: Apache-2.0 */
/* Table and plot of a sweep over DPU configurations. */
#include "cli/bench_sweep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/dpu/dpu_sweep.h"
#include "base/file.h"
#include "base/text.h"
#include "report/html.h"
#include "report/text_table.h"

static void print_point(const struct ew_dpu_point *p, struct ew_table *t)
{
    ew_table_cell(t, "%s", p->config.arch->name);
    ew_table_cell(t, "%d", p->config.cores);
    ew_table_cell(t, "%g", p->config.clock_mhz);
    ew_table_cell(t, "%g", p->config.ddr_gb_s);
    ew_table_cell(t, "%.3f", 1e3 * p->times.latency_s);
    ew_table_cell(t, "%.1f", p->times.images_s);
    ew_table_cell(t, "%.0f%%", 100 * p->times.efficiency);
    ew_table_cell(t, "%d", p->dsp);
    ew_table_cell(t, "%d", p->bram);
    if (p->times.watts_all > 0) {
        ew_table_cell(t, "%.1f", p->times.watts_all);
        ew_table_cell(t, "%.2f", p->times.images_s / p->times.watts_all);
    }
}

static ew_err print_text(const struct ew_dpu_sweep *s, const char *what)
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
        if (s->points[i].front)
            print_point(&s->points[i], &t);
    EW_TRY(ew_table_print(&t, stdout));
    printf("\n%s: %d configurations, of which %d fit the chip of the %s and these %d are "
           "Pareto-optimal in latency, throughput, DSP slices and block RAM; all modelled\n",
           what, s->n, s->n_fit, s->board->title, s->n_front);
    printf("DSP and block RAM: documented figures per core, low usage, without depthwise units\n");
    return EW_OK;
}

static ew_err print_json(const struct ew_dpu_sweep *s, const char *what)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "network", what);
    ew_json_array(&j, "configurations");
    for (int i = 0; i < s->n; i++) {
        ew_json_object(&j, NULL);
        ew_dpu_json_times(&j, &s->points[i].config, &s->points[i].times);
        ew_json_int(&j, "dsp", s->points[i].dsp);
        ew_json_int(&j, "bram36", s->points[i].bram);
        ew_json_bool(&j, "fits", s->points[i].fits);
        ew_json_bool(&j, "pareto", s->points[i].front);
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
    double (*x)(const struct ew_dpu_point *p), (*y)(const struct ew_dpu_point *p);
    const char *x_label, *y_label;
};

static double dsp_of(const struct ew_dpu_point *p)
{
    return p->dsp;
}

static double images_of(const struct ew_dpu_point *p)
{
    return p->times.images_s;
}

static double latency_of(const struct ew_dpu_point *p)
{
    return 1e3 * p->times.latency_s;
}

static double per_watt(const struct ew_dpu_point *p)
{
    return p->times.images_s / p->times.watts_all;
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

static void draw_dot(FILE *f, const struct ew_dpu_point *p, double x, double y)
{
    static const char *const colours[] = {"#7f7f7f", "#8c564b", "#9467bd", "#e377c2",
                                          "#17becf", "#2ca02c", "#ff7f0e", "#1f77b4"};
    const char *colour = colours[p->config.arch - ew_dpu_archs];
    fprintf(f,
            "<circle cx='%.1f' cy='%.1f' r='%d' fill='%s' fill-opacity='%s' stroke='%s'>"
            "<title>%s x %d, %g MHz, %g GB/s: %.2f ms, %.1f images/s</title></circle>\n",
            x, y, p->front ? 5 : 3, colour, p->fits ? (p->front ? "1" : "0.35") : "0",
            p->fits ? colour : "#bbb", p->config.arch->name, p->config.cores, p->config.clock_mhz,
            p->config.ddr_gb_s, 1e3 * p->times.latency_s, p->times.images_s);
}

static void draw_legend(FILE *f, int left)
{
    for (int i = 0; i < ew_dpu_n_archs; i++) {
        const struct ew_dpu_point p = {
            .config = {.arch = &ew_dpu_archs[i]}, .fits = true, .front = true};
        const int y = TOP + 14 + 20 * i;
        draw_dot(f, &p, left + 20, y - 4);
        fprintf(f, "<text x='%d' y='%d'>%s</text>\n", left + 34, y, p.config.arch->name);
    }
    static const char *const notes[] = {"large: Pareto-optimal", "pale: beaten",
                                        "hollow: too large for the chip"};
    for (size_t i = 0; i < EW_COUNT(notes); i++)
        fprintf(f, "<text x='%d' y='%zu' fill='#666'>%s</text>\n", left + 14, TOP + 200 + 18 * i,
                notes[i]);
}

static void draw_panel(const struct ew_dpu_sweep *s, const struct panel *k, int left, FILE *f)
{
    struct axis x = {INFINITY, 0, left, left + PANEL}, y = {INFINITY, 0, HEIGHT - BOTTOM, TOP};
    for (int i = 0; i < s->n; i++) {
        x.lo = fmin(x.lo, k->x(&s->points[i]) / 1.15);
        x.hi = fmax(x.hi, k->x(&s->points[i]) * 1.15);
        y.lo = fmin(y.lo, k->y(&s->points[i]) / 1.15);
        y.hi = fmax(y.hi, k->y(&s->points[i]) * 1.15);
    }
    draw_ticks(f, &x, &y);
    for (int front = 0; front < 2; front++)
        for (int i = 0; i < s->n; i++)
            if (s->points[i].front == front)
                draw_dot(f, &s->points[i], at(&x, k->x(&s->points[i])),
                         at(&y, k->y(&s->points[i])));
    fprintf(f,
            "<text x='%d' y='%d' text-anchor='middle'>%s</text>"
            "<text transform='translate(%d %d) rotate(-90)' text-anchor='middle'>%s</text>\n",
            left + PANEL / 2, HEIGHT - 18, k->x_label, left - 56, (TOP + HEIGHT - BOTTOM) / 2,
            k->y_label);
}

static void draw(const struct ew_dpu_sweep *s, const char *what, FILE *f)
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

static ew_err write_picture(const struct ew_dpu_sweep *s, const char *what, const char *path)
{
    struct ew_file_out out;
    EW_TRY(ew_file_out_open(path, &out));
    draw(s, what, out.f);
    EW_TRY(ew_file_out_commit(&out));
    fprintf(stderr, "picture: %s\n", path);
    return EW_OK;
}

ew_err ew_bench_sweep(const struct ew_cmd_call *c, struct ew_dpu_net *n,
                      const struct ew_dpu_config *base, const char *picture)
{
    struct ew_dpu_sweep s;
    const char *slash = strrchr(c->args[0], '/'), *what = slash ? slash + 1 : c->args[0];
    EW_CHECK(!picture || ew_ends_with(picture, ".svg"), EW_ERR_USAGE,
             "--picture %s: must be FILE.svg", picture);
    ew_dpu_sweep(n, base, &s);
    EW_TRY(c->json ? print_json(&s, what) : print_text(&s, what));
    return picture ? write_picture(&s, what, picture) : EW_OK;
}
