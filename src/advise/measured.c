/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements of power modes from a CSV file. */
#include "advise/measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "advise/measured_title.h"
#include "advise/mode_grid.h"
#include "base/csv.h"
#include "base/log.h"
#include "base/num.h"
#include "base/order_stats.h"

#define MOST_MHZ 20000.0 /* twice the fastest memory's */

/* After what measured_title.h knows. */
enum column {
    WORKLOAD = EW_MEASURED_QUANTITIES,
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

/* Where each column is, -1 for none, and what its numbers are multiplied by, 0 until they tell. */
struct columns {
    int at[COLUMNS];
    double by[COLUMNS];
};

/* ---- Heading --------------------------------------------------------------------------------- */

/* Quantities under any name and in any unit that their titles tell. */
static ew_err quantities(const struct ew_csv *csv, struct columns *t)
{
    for (int i = 0; i < csv->n; i++) {
        struct ew_measured_title title;
        if (!ew_measured_title(csv->cells[i], &title))
            continue;
        int *at = &t->at[title.is];
        EW_CHECK(*at < 0, EW_ERR_FORMAT,
                 "%s:%d: columns %s and %s have the same meaning: remove one", csv->name, csv->line,
                 csv->cells[*at], csv->cells[i]);
        *at = i;
        t->by[title.is] = title.by;
    }
    return EW_OK;
}

/* A time in a unit that nobody knows would be no time at all, which is hard to find out. */
static ew_err time_is_known(const struct ew_csv *csv, const struct columns *t)
{
    for (int i = 0; i < csv->n && t->at[EW_MEASURED_TIME] < 0; i++)
        EW_CHECK(strncasecmp(csv->cells[i], "time", 4) != 0 &&
                     strncasecmp(csv->cells[i], "epoch", 5) != 0,
                 EW_ERR_FORMAT,
                 "%s:%d: column '%.40s' is not known: call it time_s, time_ms, time_min or "
                 "epoch_min",
                 csv->name, csv->line, csv->cells[i]);
    return EW_OK;
}

static ew_err heading(const struct ew_csv *csv, struct columns *t)
{
    const int *at = t->at;
    for (int i = 0; i < COLUMNS; i++) {
        t->at[i] = i < EW_MEASURED_QUANTITIES ? -1 : ew_csv_column(csv, titles[i]);
        t->by[i] = 1;
    }
    EW_TRY(quantities(csv, t));
    bool named = false; /* configurations that are no power modes need no settings */
    for (int c = ACCURACY; c <= PRICE; c++)
        named |= at[c] >= 0;
    EW_CHECK(
        named || at[EW_MEASURED_CPU] >= 0 || at[EW_MEASURED_GPU] >= 0 || at[EW_MEASURED_CORES] >= 0,
        EW_ERR_FORMAT, "%s:%d: no column cores, cpu_mhz or gpu_mhz: the heading names the columns",
        csv->name, csv->line);
    if (at[WORKLOAD] < 0)
        t->at[WORKLOAD] = at[NETWORK];
    if (at[EW_MEASURED_TIME] >= 0 && t->by[EW_MEASURED_TIME] <= 0)
        EW_WARN("%s: column '%s' has no unit: taken as seconds", csv->name,
                csv->cells[at[EW_MEASURED_TIME]]);
    if (at[EW_MEASURED_MEM] >= 0 && t->by[EW_MEASURED_MEM] <= 0)
        EW_WARN("%s: column '%s' has no unit: taken as the memory's clock", csv->name,
                csv->cells[at[EW_MEASURED_MEM]]);
    return time_is_known(csv, t);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static bool is_missing(const char *text)
{
    static const char *const words[] = {"", "nan", "na", "n/a", "null", "none", "-"};
    for (size_t i = 0; i < EW_COUNT(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* "1,5" where cells are not separated by commas. */
static void point_for_comma(const struct ew_csv *csv, char *text)
{
    char *comma = csv->separator == ',' ? NULL : strchr(text, ',');
    if (comma && !strchr(text, '.'))
        *comma = '.';
}

/* A positive number in the file's own unit; nan where there is no such column or no number. */
static ew_err number(const struct ew_csv *csv, const struct columns *t, int c, double *out)
{
    *out = NAN;
    if (t->at[c] < 0 || t->at[c] >= csv->n || is_missing(csv->cells[t->at[c]]))
        return EW_OK;
    char *text = csv->cells[t->at[c]];
    point_for_comma(csv, text);
    EW_CHECK(ew_num_float(text, out) && isfinite(*out) && *out > 0 && *out < 1e12, EW_ERR_FORMAT,
             "%s:%d: %s is '%.40s', not a positive number", csv->name, csv->line, titles[c], text);
    return EW_OK;
}

/* A setting: the same for all where the file has no such column. */
static ew_err setting(const struct ew_csv *csv, const struct columns *t, int c, double usual,
                      double *out)
{
    EW_TRY(number(csv, t, c, out));
    EW_CHECK(t->at[c] < 0 || !isnan(*out), EW_ERR_FORMAT,
             "%s:%d: %s is empty: fill it in or leave the row out", csv->name, csv->line,
             titles[c]);
    if (t->at[c] < 0)
        *out = usual;
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
    EW_TRY(setting(csv, t, EW_MEASURED_CORES, 1, &r->mode.cores));
    EW_TRY(setting(csv, t, EW_MEASURED_CPU, 1000, &r->mode.cpu));
    EW_TRY(setting(csv, t, EW_MEASURED_GPU, 1000, &r->mode.gpu));
    EW_TRY(setting(csv, t, EW_MEASURED_MEM, 1000, &r->mode.mem));
    EW_TRY(number(csv, t, EW_MEASURED_TIME, &r->time));
    EW_TRY(number(csv, t, EW_MEASURED_POWER, &r->power));
    EW_TRY(number(csv, t, ACCURACY, &r->accuracy));
    EW_TRY(number(csv, t, MEMORY, &r->memory_mib));
    EW_TRY(number(csv, t, LATENCY, &r->latency_ms));
    return number(csv, t, PRICE, &r->price_usd);
}

static double *quantity(struct ew_measured_row *r, int q)
{
    double *const at[EW_MEASURED_QUANTITIES] = {&r->mode.cores, &r->mode.cpu, &r->mode.gpu,
                                                &r->mode.mem,   &r->time,     &r->power};
    return at[q];
}

/* From the file's units to GHz, seconds and watts. */
static ew_err convert(struct ew_measured *m, const struct columns *t)
{
    for (int q = 0; q < EW_MEASURED_QUANTITIES; q++) {
        const bool is_clock = q == EW_MEASURED_CPU || q == EW_MEASURED_GPU || q == EW_MEASURED_MEM;
        double most = 0, by = t->by[q];
        for (int i = 0; i < m->n; i++)
            most = fmax(most, *quantity(&m->rows[i], q));
        if (by <= 0)
            by = ew_measured_unit((enum ew_measured_quantity)q, most);
        for (int i = 0; i < m->n; i++) {
            double *v = quantity(&m->rows[i], q);
            *v *= by;
            EW_CHECK(!is_clock || *v <= MOST_MHZ, EW_ERR_FORMAT,
                     "%s:%d: %s is %g, more than any clock has: is that kHz or Hz?", m->file,
                     m->rows[i].line, titles[q], *v);
            if (is_clock)
                *v /= 1000;
        }
    }
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
    ew_csv_guess_separator(&csv);
    if (!ew_csv_next(&csv))
        return csv.err != EW_OK ? csv.err : ew_fail(EW_ERR_FORMAT, "%s: the file is empty", name);
    EW_TRY(heading(&csv, &t));
    out->has_clocks =
        t.at[EW_MEASURED_CPU] >= 0 || t.at[EW_MEASURED_GPU] >= 0 || t.at[EW_MEASURED_MEM] >= 0;
    for (int q = EW_MEASURED_CORES; q <= EW_MEASURED_MEM; q++)
        out->lacks |= t.at[q] < 0 ? EW_NO_CORES << q : 0;
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
    return convert(out, &t);
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
                  struct ew_mode_series *out)
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
                      bool untried, struct ew_mode_series *out)
{
    *out = (struct ew_mode_series){.workload = workload};
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
