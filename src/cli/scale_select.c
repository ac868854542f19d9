/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise scale select: the scaling ratio that meets a limit, by linear regression on
 * measurements. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "cli/scale_cmd.h"
#include "network/width_list.h"
#include "report/text_table.h"
#include "scale/select.h"
#include "store/store.h"

#define FILE_LIMIT ((size_t)64 << 20)

/* The limit of the command line. */
struct limit {
    const char *metric, *unit;
    double value;
};

struct points {
    double *x, *y;
    int n, cap_x, cap_y;
};

static ew_err add_point(struct points *p, double x, double y)
{
    void *grown_x = p->x, *grown_y = p->y;
    if (!isfinite(x) || !isfinite(y))
        return EW_OK; /* not measured in this run */
    EW_TRY(ew_grow(&grown_x, &p->cap_x, p->n + 1, sizeof(*p->x)));
    p->x = grown_x;
    EW_TRY(ew_grow(&grown_y, &p->cap_y, p->n + 1, sizeof(*p->y)));
    p->y = grown_y;
    p->x[p->n] = x;
    p->y[p->n++] = y;
    return EW_OK;
}

/* ---- The limit ---- */

static ew_err find_limit(const struct ew_scale_opts *o, struct limit *out)
{
    const int n = (o->latency != NULL) + (o->memory > 0) + (o->energy > 0) + (o->limit > 0);
    EW_CHECK(n == 1, EW_ERR_USAGE,
             "scale select: no limit: give one of --latency, --memory, --energy and --limit");
    EW_CHECK(!(o->limit > 0) || o->metric, EW_ERR_USAGE, "--limit: needs --metric");
    if (o->latency) {
        *out = (struct limit){.metric = "median_ms", .unit = "ms"};
        EW_CHECK(ew_num_ms(o->latency, &out->value), EW_ERR_USAGE,
                 "--latency: '%.40s' is not a time such as 16.7ms", o->latency);
    } else if (o->memory > 0) {
        *out = (struct limit){"planned_bytes", "B", (double)o->memory};
    } else if (o->energy > 0) {
        *out = (struct limit){"energy_j", "J", o->energy};
    } else {
        *out = (struct limit){o->metric, "", o->limit};
    }
    if (o->metric)
        out->metric = o->metric;
    return EW_OK;
}

/* ---- Points ---- */

static ew_err read_csv(const char *path, const char *metric, struct points *p)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size;
    struct ew_csv csv;
    EW_TRY(ew_file_read(path, FILE_LIMIT, &text, &size));
    ew_csv_init(&csv, text, path);
    EW_CHECK(ew_csv_next(&csv), EW_ERR_FORMAT, "%s: has no heading", path);
    const int x = ew_csv_column(&csv, "parameters"), y = ew_csv_column(&csv, metric);
    EW_CHECK(x >= 0 && y >= 0, EW_ERR_FORMAT, "%s: has no column %s", path,
             x < 0 ? "parameters" : metric);
    while (ew_csv_next(&csv)) {
        double a = NAN, b = NAN;
        EW_CHECK(csv.n > x && csv.n > y, EW_ERR_FORMAT, "%s:%d: has %d cells", path, csv.line,
                 csv.n);
        EW_CHECK((!*csv.cells[x] || ew_num_float(csv.cells[x], &a)) &&
                     (!*csv.cells[y] || ew_num_float(csv.cells[y], &b)),
                 EW_ERR_FORMAT, "%s:%d: '%.40s' and '%.40s' are not numbers", path, csv.line,
                 csv.cells[x], csv.cells[y]);
        EW_TRY(add_point(p, a, b));
    }
    return csv.err;
}

/* Uses measured runs unless --where selects others: modelled times are not on the line of measured
 * ones. */
static ew_err take_rows(struct ew_rows *rows, const struct ew_scale_opts *o, const char *metric,
                        struct points *p)
{
    const int x = ew_rows_find(rows, "parameters"), y = ew_rows_find(rows, metric);
    const int quality = o->where ? -1 : ew_rows_find(rows, "quality");
    EW_CHECK(x >= 0 && y >= 0, EW_ERR_NOT_FOUND,
             "%s: no run has %s; `edgewise bench --db` records it", o->from,
             x < 0 ? "parameters" : metric);
    while (ew_rows_next(rows)) {
        const char *text = quality >= 0 ? ew_rows_text(rows, quality) : NULL;
        if (!text || strcmp(text, ew_quality_name(EW_QUALITY_MEASURED)) == 0)
            EW_TRY(add_point(p, ew_rows_num(rows, x), ew_rows_num(rows, y)));
    }
    return EW_OK;
}

static ew_err read_store(const struct ew_scale_opts *o, const char *metric, struct points *p)
{
    struct ew_store *s;
    struct ew_rows *rows = NULL;
    const struct ew_store_opts so = {.read_only = true};
    EW_TRY(ew_store_open(o->from, &so, &s));
    ew_err e = ew_store_results(s, o->where, NULL, &rows);
    if (e == EW_OK)
        e = take_rows(rows, o, metric, p);
    const ew_err read = ew_rows_free(rows);
    ew_store_close(s);
    return e == EW_OK ? read : e;
}

static ew_err fit_points(const struct ew_scale_opts *o, const char *metric, struct ew_line *line)
{
    struct points p = {0};
    const bool store = ew_store_is(o->from);
    ew_err e = EW_OK;
    if (!store && o->where)
        e = ew_fail(EW_ERR_USAGE, "--where is for a store; %s is not one", o->from);
    if (e == EW_OK)
        e = store ? read_store(o, metric, &p) : read_csv(o->from, metric, &p);
    if (e == EW_OK)
        e = ew_fail_in(ew_line_fit(p.x, p.y, p.n, line), "%s: %s by parameters", o->from, metric);
    free(p.x);
    free(p.y);
    return e;
}

/* ---- Results ---- */

static void print_ratio(const struct ew_scaling *s, const struct ew_selected *r)
{
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS];
    printf(
        "the limit allows %s parameters: ratio %.4f by equation 1, %.4f exactly (%s parameters)\n",
        ew_text_count((int64_t)r->params, a), r->ratio, r->exact,
        ew_text_count(r->exact_params, b));
    if (r->exact >= 1)
        printf("%s meets it unscaled\n", s->network);
}

static ew_err print_fit_json(const struct ew_scaling *s, const struct limit *l,
                             const struct ew_line *f, const struct ew_selected *r)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "network", s->network);
    ew_json_str(&j, "metric", l->metric);
    ew_json_num(&j, "limit", l->value);
    ew_json_int(&j, "points", f->n);
    ew_json_num(&j, "slope", f->slope);
    ew_json_num(&j, "intercept", f->intercept);
    ew_json_num(&j, "pearson", f->r);
    ew_json_num(&j, "p", f->p);
    ew_json_num(&j, "r2", f->r * f->r);
    ew_json_num(&j, "margin95", ew_line_margin(f, r->params, 0.95));
    ew_json_num(&j, "params", r->params);
    ew_json_num(&j, "ratio", r->ratio);
    ew_json_num(&j, "ratio_exact", r->exact);
    ew_json_int(&j, "params_exact", r->exact_params);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static void print_fit(const struct limit *l, const struct ew_line *f)
{
    printf("%s = %.4g * parameters + %.4g: %d points", l->metric, f->slope, f->intercept, f->n);
    if (f->n > 2) /* two points always fit exactly */
        printf(", Pearson %.3f, p %.2g, R2 %.3f, slope +- %.2g", f->r, f->p, f->r * f->r,
               f->slope_error);
    putchar('\n');
}

static ew_err by_measurements(struct ew_cmd_call *c, const struct ew_scaling *s,
                              const struct limit *l)
{
    const struct ew_scale_opts *o = c->opts;
    struct ew_line line;
    struct ew_selected r;
    EW_CHECK(o->from, EW_ERR_USAGE, "scale select: no results: --from FILE, or --published");
    EW_TRY(fit_points(o, l->metric, &line));
    if (!c->json)
        print_fit(l, &line);
    const ew_err e = ew_select_ratio(s, line.slope, line.intercept, l->value, &r);
    if (e != EW_OK)
        return ew_fail_in(e, "%s", o->from);
    if (o->output)
        EW_TRY(ew_width_list_write(o->output, s->network, r.widths, s->n));
    if (c->json)
        return print_fit_json(s, l, &line, &r);
    print_ratio(s, &r);
    const double margin = ew_line_margin(&line, r.params, 0.95);
    if (isfinite(margin))
        printf("a network of that size lies within %.4g %s of the line with 95 %% probability\n",
               margin, l->unit);
    return EW_OK;
}

/* ---- The study's lines ---- */

static void published_cells(struct ew_table *t, const struct ew_scaling *s,
                            const struct ew_published_line *p, double limit)
{
    struct ew_selected r;
    ew_table_cell(t, "%s", p->device);
    ew_table_cell(t, "%s", p->precision);
    ew_table_cell(t, "%.3f", p->r);
    ew_table_cell(t, "%.1e", p->p);
    ew_table_cell(t, "%.1e", ew_pearson_p(p->r, p->n));
    ew_table_cell(t, "%.1e", p->slope);
    ew_table_cell(t, "%g", p->intercept);
    if (ew_select_ratio(s, p->slope, p->intercept, limit, &r) == EW_OK) {
        ew_table_cell(t, "%.4f", r.ratio);
        ew_table_cell(t, "%.4f", r.exact);
    } else {
        ew_table_cell(t, "none");
        ew_table_cell(t, "none: %s", limit <= p->intercept ? "below the intercept" : "too small");
    }
}

static ew_err by_publication(const struct ew_cmd_call *c, const struct ew_scaling *s,
                             const struct limit *l)
{
    static const char *const head[] = {"device", "precision", "Pearson",    "p",    "p by r and n",
                                       "slope",  "intercept", "equation 1", "exact"};
    const struct ew_scale_opts *o = c->opts;
    const bool memory = strcmp(l->metric, "planned_bytes") == 0;
    struct ew_table t;
    EW_CHECK(memory || strcmp(l->metric, "median_ms") == 0, EW_ERR_USAGE,
             "--published: the study has lines for latency and memory only");
    EW_CHECK(!c->json && !o->from && !o->output, EW_ERR_USAGE,
             "--published prints a table; --json, --from and --output are for measurements");
    ew_table_init(&t, "llrrrrrrr");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < ew_n_published_lines; i++)
        if ((strcmp(ew_published_lines[i].of, "memory") == 0) == memory)
            published_cells(&t, s, &ew_published_lines[i], memory ? l->value / 1e6 : l->value);
    EW_TRY(ew_table_print(&t, stdout));
    printf("Gealy and George, ACM TECS 23(3), 2024, Table %s; per parameter, %s.\n",
           memory ? "5" : "4", memory ? "MB" : "ms");
    if (!memory)
        printf("The study's own ratio of 0.82 for MobileNetV2 at 16.67 ms (float32 on the "
               "Cortex-A72) does not follow from this line: 16.67 is below its intercept 17.9.\n");
    return EW_OK;
}

ew_err ew_scale_select(struct ew_cmd_call *c, const struct ew_scaling *s)
{
    const struct ew_scale_opts *o = c->opts;
    struct limit l;
    EW_TRY(find_limit(o, &l));
    return o->published ? by_publication(c, s, &l) : by_measurements(c, s, &l);
}
