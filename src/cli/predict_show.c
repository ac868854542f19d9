/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions, measurement plans and validations as text, CSV and JSON. */
#include "cli/predict_show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "advise/mode_grid.h"
#include "base/num.h"
#include "base/order_stats.h"
#include "base/text.h"
#include "record/record.h"
#include "report/figure.h"
#include "report/text_table.h"

#define MOST_ROWS  40 /* on a terminal; for more modes only the front is listed */
#define MOST_FRONT 20

/* ---- Predictions ----------------------------------------------------------------------------- */

static void interval_cells(struct ew_table *t, const struct ew_interval *g)
{
    char mid[EW_VALUE_CHARS], low[EW_VALUE_CHARS], high[EW_VALUE_CHARS];
    if (!isfinite(g->mid)) {
        ew_table_cell(t, "-");
        ew_table_cell(t, "%s", "");
        return;
    }
    ew_table_cell(t, "%s", ew_text_value(g->mid, mid));
    ew_table_cell(t, "%s-%s", ew_text_value(g->low90, low), ew_text_value(g->high90, high));
}

/* ---- Modes: only the settings that they have ------------------------------------------------- */

enum { SETTINGS = 4 };

static const struct {
    unsigned none;
    const char *title, *key;
} settings[SETTINGS] = {{EW_NO_CORES, "cores", "cores"},
                        {EW_NO_CPU, "CPU MHz", "cpu_mhz"},
                        {EW_NO_GPU, "GPU MHz", "gpu_mhz"},
                        {EW_NO_MEM, "mem MHz", "mem_mhz"}};

static double setting(const struct ew_mode *m, int k)
{
    const double v[SETTINGS] = {m->cores, 1000 * m->cpu, 1000 * m->gpu, 1000 * m->mem};
    return v[k];
}

/* Column alignments: one "r" for each setting that the modes have, then `rest`. */
static const char *with_settings(unsigned lacks, const char *rest, char out[32])
{
    *out = '\0';
    for (int k = 0; k < SETTINGS; k++)
        if (!(lacks & settings[k].none))
            ew_text_add(out, 32, "r");
    ew_text_add(out, 32, "%s", rest);
    return out;
}

static void mode_cells(struct ew_table *t, const struct ew_mode *m, unsigned lacks)
{
    for (int k = 0; k < SETTINGS; k++)
        if (!(lacks & settings[k].none))
            ew_table_cell(t, "%.0f", setting(m, k));
}

static void mode_heading(struct ew_table *t, unsigned lacks)
{
    for (int k = 0; k < SETTINGS; k++)
        if (!(lacks & settings[k].none))
            ew_table_cell(t, "%s", settings[k].title);
}

void ew_mode_csv_head(FILE *out, unsigned lacks)
{
    const char *before = "";
    for (int k = 0; k < SETTINGS; k++)
        if (!(lacks & settings[k].none)) {
            fprintf(out, "%s%s", before, settings[k].key);
            before = ",";
        }
}

void ew_mode_csv(FILE *out, const struct ew_mode *m, unsigned lacks)
{
    const char *before = "";
    for (int k = 0; k < SETTINGS; k++)
        if (!(lacks & settings[k].none)) {
            fprintf(out, "%s%.7g", before, setting(m, k));
            before = ",";
        }
}

void ew_json_mode(struct ew_json *j, const struct ew_mode *m, unsigned lacks)
{
    for (int k = 0; k < SETTINGS; k++)
        if (lacks & settings[k].none)
            ew_json_null(j, settings[k].key);
        else
            ew_json_num(j, settings[k].key, round(1e3 * setting(m, k)) / 1e3);
}

struct place {
    double time;
    int i;
};

static int by_time(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
    return (p->time > q->time) - (p->time < q->time);
}

/* The front sorted by time, thinned evenly to MOST_FRONT modes. */
static int pick_front(const struct ew_predicted *p, struct place *out)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        if (p->front[i])
            out[n++] = (struct place){p->v[i].time.mid, i};
    qsort(out, (size_t)n, sizeof(*out), by_time);
    if (n <= MOST_FRONT)
        return n;
    for (int k = 0; k < MOST_FRONT; k++)
        out[k] = out[(int64_t)k * (n - 1) / (MOST_FRONT - 1)];
    return MOST_FRONT;
}

ew_err ew_predicted_text(const struct ew_predicted *p)
{
    const bool all = p->n <= MOST_ROWS;
    EW_CLEANUP(ew_free_ptr) struct place *rows = calloc((size_t)p->n + 1, sizeof(*rows));
    EW_CHECK(rows, EW_ERR_MEMORY, "no memory for %d modes", p->n);
    int n = p->n;
    if (!all)
        n = pick_front(p, rows);
    for (int i = 0; all && i < n; i++)
        rows[i].i = i;
    struct ew_table t;
    printf("%s%s%d mode%s predicted from %d %s%s%s\n", p->workload, *p->workload ? ": " : "", p->n,
           p->n == 1 ? "" : "s", p->measured, p->simulated ? "simulated" : "measured",
           *p->board ? ", board " : "", p->board);
    if (!all)
        printf("Pareto-optimal modes in time and energy; --csv FILE writes all modes.\n");
    char align[32];
    ew_table_init(&t, with_settings(p->lacks, "rlrlrll", align));
    mode_heading(&t, p->lacks);
    static const char *const titles[] = {"time s", "90 %", "power W", "90 %", "energy J", "90 %"};
    for (size_t i = 0; i < EW_COUNT(titles); i++)
        ew_table_cell(&t, "%s", titles[i]);
    ew_table_cell(&t, "%s", all ? "front" : "");
    for (int k = 0; k < n; k++) {
        const int i = rows[k].i;
        mode_cells(&t, &p->modes[i], p->lacks);
        interval_cells(&t, &p->v[i].time);
        interval_cells(&t, &p->v[i].power);
        interval_cells(&t, &p->v[i].energy);
        ew_table_cell(&t, "%s", all && p->front[i] ? "yes" : "");
    }
    return ew_table_print(&t, stdout);
}

static void json_guess(struct ew_json *j, const char *key, const struct ew_interval *g)
{
    ew_json_object(j, key);
    ew_json_num(j, "mid", g->mid);
    ew_json_num(j, "low50", g->low50);
    ew_json_num(j, "high50", g->high50);
    ew_json_num(j, "low90", g->low90);
    ew_json_num(j, "high90", g->high90);
    ew_json_end(j);
}

void ew_predicted_json(struct ew_json *j, const struct ew_predicted *p)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "workload", *p->workload ? p->workload : NULL);
    ew_json_str(j, "board", *p->board ? p->board : NULL);
    ew_json_int(j, "measured", p->measured);
    ew_json_bool(j, "simulated", p->simulated);
    ew_json_array(j, "modes");
    for (int i = 0; i < p->n; i++) {
        ew_json_object(j, NULL);
        ew_json_mode(j, &p->modes[i], p->lacks);
        json_guess(j, "time_s", &p->v[i].time);
        json_guess(j, "power_w", &p->v[i].power);
        json_guess(j, "energy_j", &p->v[i].energy);
        ew_json_num(j, "loader_share", p->v[i].share);
        ew_json_bool(j, "front", p->front[i]);
        ew_json_end(j);
    }
    ew_json_end(j);
    ew_json_end(j);
}

void ew_predicted_csv_head(FILE *out, unsigned lacks)
{
    fputs("workload,", out);
    ew_mode_csv_head(out, lacks);
    static const char *const names[] = {"time_s", "power_w", "energy_j"};
    for (int i = 0; i < 3; i++)
        fprintf(out, ",%s,%s_low50,%s_high50,%s_low90,%s_high90", names[i], names[i], names[i],
                names[i], names[i]);
    fputs(",front,quality\n", out);
}

static void csv_num(FILE *out, double v)
{
    fputc(',', out);
    if (isfinite(v))
        fprintf(out, "%.6g", v);
}

void ew_predicted_csv(FILE *out, const struct ew_predicted *p)
{
    for (int i = 0; i < p->n; i++) {
        const struct ew_interval *const g[] = {&p->v[i].time, &p->v[i].power, &p->v[i].energy};
        ew_csv_cell(out, p->workload);
        fputc(',', out);
        ew_mode_csv(out, &p->modes[i], p->lacks);
        for (int k = 0; k < 3; k++) {
            csv_num(out, g[k]->mid);
            csv_num(out, g[k]->low50);
            csv_num(out, g[k]->high50);
            csv_num(out, g[k]->low90);
            csv_num(out, g[k]->high90);
        }
        fprintf(out, ",%d,%s\n", p->front[i], p->simulated ? "simulated" : "modelled");
    }
}

/* ---- Plans ----------------------------------------------------------------------------------- */

ew_err ew_plan_text(const struct ew_planned *p)
{
    struct ew_table t;
    ew_table_init(&t, "rrrrrrr");
    ew_table_cell(&t, "%s", "");
    mode_heading(&t, p->lacks);
    ew_table_cell(&t, "time then +-%%");
    ew_table_cell(&t, "power +-%%");
    for (int i = 0; i < p->n; i++) {
        ew_table_cell(&t, "%d", i + 1);
        mode_cells(&t, &p->modes[p->steps[i].candidate], p->lacks);
        ew_table_cell(&t, "%.1f", 100 * p->steps[i].time_after);
        ew_table_cell(&t, "%.1f", 100 * p->steps[i].power_after);
    }
    EW_TRY(ew_table_print(&t, stdout));
    printf(
        "\nMeasure them in this order.  The last columns: expected error (one standard deviation) "
        "of\n"
        "the predictions of all other modes, once this mode and those above are measured.\n");
    return EW_OK;
}

void ew_plan_json(struct ew_json *j, const struct ew_planned *p)
{
    ew_json_array(j, NULL);
    for (int i = 0; i < p->n; i++) {
        const struct ew_design_step *s = &p->steps[i];
        ew_json_object(j, NULL);
        ew_json_mode(j, &p->modes[s->candidate], p->lacks);
        ew_json_num(j, "time_sd_before", s->time_before);
        ew_json_num(j, "time_sd_after", s->time_after);
        ew_json_num(j, "power_sd_before", s->power_before);
        ew_json_num(j, "power_sd_after", s->power_after);
        ew_json_end(j);
    }
    ew_json_end(j);
}

void ew_plan_csv(FILE *out, const struct ew_planned *p)
{
    ew_mode_csv_head(out, p->lacks);
    fputs(",time_s,power_w\n", out);
    for (int i = 0; i < p->n; i++) {
        ew_mode_csv(out, &p->modes[p->steps[i].candidate], p->lacks);
        fputs(",,\n", out);
    }
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static void percent(struct ew_table *t, double v, double unit)
{
    if (isfinite(v))
        ew_table_cell(t, unit > 1 ? "%.0f" : "%.1f", unit * v);
    else
        ew_table_cell(t, "-");
}

static void error_cells(struct ew_table *t, const struct ew_holdout_errors *s)
{
    percent(t, s->time, 1);
    percent(t, s->power, 1);
    percent(t, s->energy, 1);
    percent(t, s->time_in50, 100);
    percent(t, s->time_in90, 100);
    percent(t, s->power_in50, 100);
    percent(t, s->power_in90, 100);
    percent(t, s->energy_in90, 100);
}

/* Median errors of the rows with this method and split. */
static struct ew_holdout_errors median_errors(const struct ew_check_row *rows, int n,
                                              const struct ew_check_row *like, int *count)
{
    struct ew_holdout_errors out = {.fitted = like->errors.fitted};
    double *const to[] = {&out.time,       &out.power,       &out.energy,
                          &out.time_in50,  &out.time_in90,   &out.power_in50,
                          &out.power_in90, &out.energy_in50, &out.energy_in90};
    for (size_t k = 0; k < EW_COUNT(to); k++) {
        double v[256];
        *count = 0;
        for (int i = 0; i < n && *count < 256; i++) {
            const struct ew_holdout_errors *s = &rows[i].errors;
            const double from[] = {s->time,       s->power,       s->energy,
                                   s->time_in50,  s->time_in90,   s->power_in50,
                                   s->power_in90, s->energy_in50, s->energy_in90};
            if (strcmp(rows[i].method, like->method) == 0 &&
                strcmp(rows[i].split, like->split) == 0)
                v[(*count)++] = from[k];
        }
        *to[k] = ew_median(v, *count);
    }
    return out;
}

static bool first_of_kind(const struct ew_check_row *rows, int i)
{
    for (int j = 0; j < i; j++)
        if (strcmp(rows[i].method, rows[j].method) == 0 &&
            strcmp(rows[i].split, rows[j].split) == 0)
            return false;
    return true;
}

ew_err ew_check_text(const struct ew_check_row *rows, int n)
{
    static const char *const titles[] = {"time %", "power %",     "energy %", "time in 50",
                                         "90",     "power in 50", "90",       "energy in 90"};
    struct ew_table t;
    ew_table_init(&t, "lllrrrrrrrrrr");
    ew_table_cell(&t, "workload");
    ew_table_cell(&t, "method");
    ew_table_cell(&t, "measured");
    ew_table_cell(&t, "left out");
    ew_table_cell(&t, "%s", "");
    for (size_t i = 0; i < EW_COUNT(titles); i++)
        ew_table_cell(&t, "%s", titles[i]);
    for (int i = 0; i < n; i++) {
        ew_table_cell(&t, "%s", *rows[i].workload ? rows[i].workload : "-");
        ew_table_cell(&t, "%s", rows[i].method);
        ew_table_cell(&t, "%s", rows[i].split);
        ew_table_cell(&t, "%d", rows[i].errors.tested);
        ew_table_cell(&t, "%s", "");
        error_cells(&t, &rows[i].errors);
    }
    for (int i = 0; i < n; i++) {
        int count;
        if (!first_of_kind(rows, i))
            continue;
        const struct ew_holdout_errors s = median_errors(rows, n, &rows[i], &count);
        if (count < 2)
            continue;
        ew_table_cell(&t, "median of %d", count);
        ew_table_cell(&t, "%s", rows[i].method);
        ew_table_cell(&t, "%s", rows[i].split);
        ew_table_cell(&t, "%s", "");
        ew_table_cell(&t, "%s", "");
        error_cells(&t, &s);
    }
    EW_TRY(ew_table_print(&t, stdout));
    printf(
        "\nMean absolute error on held-out modes, in percent; then the percentage of them inside\n"
        "the 50 %% and 90 %% intervals.\n");
    return EW_OK;
}

void ew_check_json(struct ew_json *j, const struct ew_check_row *rows, int n)
{
    ew_json_array(j, NULL);
    for (int i = 0; i < n; i++) {
        const struct ew_holdout_errors *s = &rows[i].errors;
        ew_json_object(j, NULL);
        ew_json_str(j, "workload", *rows[i].workload ? rows[i].workload : NULL);
        ew_json_str(j, "method", rows[i].method);
        ew_json_str(j, "split", rows[i].split);
        ew_json_int(j, "measured", s->fitted);
        ew_json_int(j, "left_out", s->tested);
        ew_json_num(j, "time_error_percent", s->time);
        ew_json_num(j, "power_error_percent", s->power);
        ew_json_num(j, "energy_error_percent", s->energy);
        ew_json_num(j, "time_in50", s->time_in50);
        ew_json_num(j, "time_in90", s->time_in90);
        ew_json_num(j, "power_in50", s->power_in50);
        ew_json_num(j, "power_in90", s->power_in90);
        ew_json_num(j, "energy_in50", s->energy_in50);
        ew_json_num(j, "energy_in90", s->energy_in90);
        ew_json_end(j);
    }
    ew_json_end(j);
}
