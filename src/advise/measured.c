/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements of power modes from a CSV file. */
#include "advise/measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/csv.h"
#include "base/num.h"
#include "base/order_stats.h"

#define MOST_MHZ 20000.0 /* twice the fastest memory's */

enum column {
    CORES,
    CPU,
    GPU,
    MEM,
    TIME,
    POWER,
    WORKLOAD,
    NETWORK,
    MODE,
    ACCURACY,
    MEMORY,
    LATENCY,
    PRICE,
    QUALITY,
    COLUMNS
};

static const char *const titles[COLUMNS] = {
    "cores",   "cpu_mhz", "gpu_mhz",  "mem_mhz",    "time_s",     "power_w",   "workload",
    "network", "mode",    "accuracy", "memory_mib", "latency_ms", "price_usd", "quality"};

/* Columns in other units, or under the names that other programs give them. */
static const struct alias {
    const char *title;
    enum column is;
    double by; /* of a number there: the same in the column's own unit */
} aliases[] = {
    {"time_ms", TIME, 1e-3}, {"time_us", TIME, 1e-6}, {"time_min", TIME, 60},
    {"time_h", TIME, 3600},  {"epoch_s", TIME, 1},    {"epoch_min", TIME, 60},
    {"epoch_h", TIME, 3600}, {"step_ms", TIME, 1e-3}, {"power_mw", POWER, 1e-3},
    {"cpu_khz", CPU, 1e-3},  {"cpu_ghz", CPU, 1e3},   {"gpu_hz", GPU, 1e-6},
    {"gpu_ghz", GPU, 1e3},   {"mem_hz", MEM, 1e-6},   {"mem_ghz", MEM, 1e3},
    {"emc_mhz", MEM, 1},     {"emc_hz", MEM, 1e-6},   {"cpu_cores", CORES, 1},
};

/* Where each column is, -1 for none, and what its numbers are multiplied by. */
struct columns {
    int at[COLUMNS];
    double by[COLUMNS];
};

/* ---- Reading --------------------------------------------------------------------------------- */

static ew_err other_names(const struct ew_csv *csv, struct columns *t)
{
    for (size_t i = 0; i < EW_COUNT(aliases); i++) {
        const struct alias *a = &aliases[i];
        const int found = ew_csv_column(csv, a->title);
        if (found < 0)
            continue;
        EW_CHECK(t->at[a->is] < 0, EW_ERR_FORMAT,
                 "%s:%d: columns %s and %s say the same: leave one out", csv->name, csv->line,
                 csv->cells[t->at[a->is]], a->title);
        t->at[a->is] = found;
        t->by[a->is] = a->by;
    }
    return EW_OK;
}

/* A time in a unit that nobody knows would be no time at all, which is hard to find out. */
static ew_err time_is_known(const struct ew_csv *csv, const struct columns *t)
{
    for (int i = 0; i < csv->n && t->at[TIME] < 0; i++)
        EW_CHECK(strncasecmp(csv->cells[i], "time", 4) != 0 &&
                     strncasecmp(csv->cells[i], "epoch_", 6) != 0,
                 EW_ERR_FORMAT,
                 "%s:%d: column '%.40s' is not known: call it time_s, time_ms, time_min or "
                 "epoch_min",
                 csv->name, csv->line, csv->cells[i]);
    return EW_OK;
}

static ew_err heading(const struct ew_csv *csv, struct columns *t)
{
    int *column = t->at;
    for (int i = 0; i < COLUMNS; i++) {
        column[i] = ew_csv_column(csv, titles[i]);
        t->by[i] = 1;
    }
    EW_TRY(other_names(csv, t));
    EW_CHECK(csv->n > 1 || !strchr(csv->cells[0], ';'), EW_ERR_FORMAT,
             "%s:%d: cells are separated by ';': write it with commas", csv->name, csv->line);
    EW_CHECK(column[CPU] >= 0 || column[GPU] >= 0 || column[CORES] >= 0, EW_ERR_FORMAT,
             "%s:%d: no column cores, cpu_mhz or gpu_mhz: the heading names the columns", csv->name,
             csv->line);
    if (column[WORKLOAD] < 0)
        column[WORKLOAD] = column[NETWORK];
    return time_is_known(csv, t);
}

/* A positive number, or `absent` where there is no such column or the cell is empty or nan. */
static ew_err number(const struct ew_csv *csv, const struct columns *t, enum column c,
                     double absent, double *out)
{
    *out = absent;
    if (t->at[c] < 0 || t->at[c] >= csv->n || !*csv->cells[t->at[c]])
        return EW_OK;
    const char *text = csv->cells[t->at[c]];
    if (strcasecmp(text, "nan") == 0 || strcasecmp(text, "na") == 0)
        return EW_OK;
    EW_CHECK(ew_num_float(text, out) && isfinite(*out) && *out > 0 && *out < 1e12, EW_ERR_FORMAT,
             "%s:%d: %s is '%.40s', not a positive number", csv->name, csv->line, titles[c], text);
    *out *= t->by[c];
    return EW_OK;
}

/* As number(), at most what any clock has. */
static ew_err megahertz(const struct ew_csv *csv, const struct columns *t, enum column c,
                        double *out)
{
    EW_TRY(number(csv, t, c, 1000, out));
    EW_CHECK(*out <= MOST_MHZ, EW_ERR_FORMAT,
             "%s:%d: %s is %g, more than any clock has: is that kHz or Hz?", csv->name, csv->line,
             titles[c], *out);
    return EW_OK;
}

static const char *word(const struct ew_csv *csv, const struct columns *t, enum column c)
{
    return t->at[c] >= 0 && t->at[c] < csv->n ? csv->cells[t->at[c]] : "";
}

static ew_err read_row(const struct ew_csv *csv, const struct columns *t, struct ew_measured_row *r)
{
    *r = (struct ew_measured_row){
        .line = csv->line, .workload = word(csv, t, WORKLOAD), .name = word(csv, t, MODE)};
    EW_TRY(number(csv, t, CORES, 1, &r->mode.cores));
    EW_TRY(megahertz(csv, t, CPU, &r->mode.cpu));
    EW_TRY(megahertz(csv, t, GPU, &r->mode.gpu));
    EW_TRY(megahertz(csv, t, MEM, &r->mode.mem));
    EW_TRY(number(csv, t, TIME, NAN, &r->time));
    EW_TRY(number(csv, t, POWER, NAN, &r->power));
    EW_TRY(number(csv, t, ACCURACY, NAN, &r->accuracy));
    EW_TRY(number(csv, t, MEMORY, NAN, &r->memory_mib));
    EW_TRY(number(csv, t, LATENCY, NAN, &r->latency_ms));
    EW_TRY(number(csv, t, PRICE, NAN, &r->price_usd));
    r->mode.cpu /= 1000;
    r->mode.gpu /= 1000;
    r->mode.mem /= 1000;
    return EW_OK;
}

ew_err ew_measured_workload(struct ew_arena *a, struct ew_measured *m, const char *name, int *cap)
{
    for (int i = 0; i < m->n_workloads; i++)
        if (strcmp(m->workloads[i], name) == 0)
            return EW_OK;
    EW_CHECK(m->n_workloads < 4096, EW_ERR_LIMIT, "%s: more than 4096 workloads", m->file);
    if (m->n_workloads == *cap) {
        *cap = *cap ? 2 * *cap : 16;
        const char **more = ew_arena_array(a, (size_t)*cap, sizeof(*more));
        EW_CHECK(more, EW_ERR_MEMORY, "%s: no memory", m->file);
        if (m->n_workloads)
            memcpy(more, m->workloads, (size_t)m->n_workloads * sizeof(*more));
        m->workloads = more;
    }
    m->workloads[m->n_workloads++] = name;
    return EW_OK;
}

static int count_lines(const char *text)
{
    int n = 1;
    for (; *text && n <= EW_MEASURED_ROWS; text++)
        n += *text == '\n';
    return n;
}

ew_err ew_measured_parse(struct ew_arena *a, const char *name, char *text, struct ew_measured *out)
{
    struct ew_csv csv;
    struct columns t;
    int cap = 0;
    *out = (struct ew_measured){.file = name};
    const int lines = count_lines(text);
    EW_CHECK(lines <= EW_MEASURED_ROWS, EW_ERR_LIMIT, "%s: more than %d lines", name,
             EW_MEASURED_ROWS);
    out->rows = ew_arena_array(a, (size_t)lines, sizeof(*out->rows));
    EW_CHECK(out->rows, EW_ERR_MEMORY, "%s: no memory for %d lines", name, lines);
    ew_csv_init(&csv, text, name);
    if (!ew_csv_next(&csv))
        return csv.err != EW_OK ? csv.err : ew_fail(EW_ERR_FORMAT, "%s: the file is empty", name);
    EW_TRY(heading(&csv, &t));
    out->has_clocks = t.at[CPU] >= 0 || t.at[GPU] >= 0 || t.at[MEM] >= 0;
    for (int c = ACCURACY; c <= PRICE; c++)
        out->has_more |= t.at[c] >= 0;
    const int cells = csv.n;
    while (ew_csv_next(&csv)) {
        EW_CHECK(csv.n >= cells, EW_ERR_FORMAT, "%s:%d: %d cells, the heading has %d", name,
                 csv.line, csv.n, cells);
        EW_TRY(read_row(&csv, &t, &out->rows[out->n]));
        out->simulated |= strcmp(word(&csv, &t, QUALITY), "simulated") == 0;
        EW_TRY(ew_measured_workload(a, out, out->rows[out->n].workload, &cap));
        out->n++;
    }
    EW_TRY(csv.err);
    EW_CHECK(out->n > 0, EW_ERR_FORMAT, "%s: a heading and no rows", name);
    return EW_OK;
}

/* ---- One workload ---------------------------------------------------------------------------- */

static int by_mode(const void *a, const void *b)
{
    const struct ew_measured_row *p = *(const struct ew_measured_row *const *)a;
    const struct ew_measured_row *q = *(const struct ew_measured_row *const *)b;
    const double x[] = {p->mode.cores, p->mode.cpu, p->mode.gpu, p->mode.mem, p->line};
    const double y[] = {q->mode.cores, q->mode.cpu, q->mode.gpu, q->mode.mem, q->line};
    for (size_t i = 0; i < EW_COUNT(x); i++)
        if (x[i] < y[i] || x[i] > y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static bool same_mode(const struct ew_mode *a, const struct ew_mode *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* Medians of a run of rows of one mode. */
static void merge(const struct ew_measured_row **rows, int n, double *scratch,
                  struct ew_series_of_modes *out)
{
    int times = 0, powers = 0;
    for (int i = 0; i < n; i++)
        scratch[times++] = rows[i]->time;
    out->time[out->n] = ew_median(scratch, times);
    for (int i = 0; i < n; i++)
        if (!isnan(rows[i]->power))
            scratch[powers++] = rows[i]->power;
    out->power[out->n] = ew_median(scratch, powers);
    out->any_power |= powers > 0;
    out->modes[out->n] = rows[0]->mode;
    out->names[out->n++] = rows[0]->name;
}

ew_err ew_measured_of(struct ew_arena *a, const struct ew_measured *m, const char *workload,
                      bool untried, struct ew_series_of_modes *out)
{
    *out = (struct ew_series_of_modes){.workload = workload};
    const size_t room = (size_t)m->n;
    const struct ew_measured_row **rows = ew_arena_array(a, room, sizeof(*rows));
    double *scratch = ew_arena_array(a, room, sizeof(*scratch));
    out->modes = ew_arena_array(a, room, sizeof(*out->modes));
    out->names = ew_arena_array(a, room, sizeof(*out->names));
    out->time = ew_arena_array(a, room, sizeof(*out->time));
    out->power = ew_arena_array(a, room, sizeof(*out->power));
    EW_CHECK(rows && scratch && out->modes && out->names && out->time && out->power, EW_ERR_MEMORY,
             "%s: no memory for %d rows", m->file, m->n);
    int n = 0;
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->rows[i].workload, workload) == 0 && isnan(m->rows[i].time) == untried)
            rows[n++] = &m->rows[i];
    qsort(rows, (size_t)n, sizeof(*rows), by_mode);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && same_mode(&rows[i]->mode, &rows[j]->mode); j++)
            ;
        merge(rows + i, j - i, scratch, out);
    }
    return EW_OK;
}
