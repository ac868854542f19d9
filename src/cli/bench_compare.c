/* SPDX-License-Identifier: Apache-2.0 */
/* bench A B ...: networks and engines side by side, each figure with its source. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/bench_cmd.h"
#include "cli/bench_times.h"
#include "cli/data_cmd.h"
#include "cli/recorded.h"
#include "report/text_table.h"
#include "train/options.h"

struct comparison {
    struct ew_cmd_call *c;
    const char *db;
    struct ew_recording rec[EW_COMPARISON_SIDES]; /* one run per network */
    struct ew_side_comparison of;
};

/* ---- Rows: what is shown, in what form, and where it comes from ---- */

enum form { TEXT, MS, TIMES, RATE, COUNT, BYTES, PERCENT, WATT, PER_WATT, JOULE };

struct cell {
    const char *text; /* TEXT */
    double v;
    bool known;
    const char *why; /* if !known: the reason */
};

static struct cell number(double v)
{
    return (struct cell){.v = v, .known = true};
}

static struct cell word(const char *text)
{
    return (struct cell){.text = text, .known = true};
}

static struct cell missing(const char *why)
{
    return (struct cell){.why = why};
}

static struct cell bytes_or(int64_t bytes, const char *why)
{
    return bytes ? number((double)bytes) : missing(why);
}

static struct cell form(const struct ew_measured_side *k)
{
    return word(k->side.form);
}

static struct cell precision(const struct ew_measured_side *k)
{
    return word(k->side.precision);
}

static struct cell isa(const struct ew_measured_side *k)
{
    return word(k->side.isa);
}

static struct cell median(const struct ew_measured_side *k)
{
    return number(k->time.time.median_ms);
}

static struct cell deviation(const struct ew_measured_side *k)
{
    return number(k->time.time.sd_ms);
}

static struct cell least(const struct ew_measured_side *k)
{
    return number(k->time.time.min_ms);
}

static struct cell p99(const struct ew_measured_side *k)
{
    return number(k->time.time.p99_ms);
}

static struct cell speedup(const struct ew_measured_side *k)
{
    return number(k->time.ratio);
}

static struct cell speedup_min(const struct ew_measured_side *k)
{
    return number(k->time.ratio_min);
}

static struct cell rate(const struct ew_measured_side *k)
{
    return number(1e3 * (double)k->side.batch / k->time.time.median_ms);
}

static struct cell params(const struct ew_measured_side *k)
{
    return number((double)k->side.facts.params);
}

static struct cell flops(const struct ew_measured_side *k)
{
    return number((double)k->side.facts.flops);
}

static struct cell cdl(const struct ew_measured_side *k)
{
    return number((double)k->side.facts.cdl);
}

static struct cell file(const struct ew_measured_side *k)
{
    return bytes_or(k->side.file_bytes, "no file");
}

static struct cell weights(const struct ew_measured_side *k)
{
    return number((double)k->side.weight_bytes);
}

static struct cell activations(const struct ew_measured_side *k)
{
    return number((double)k->side.activation_bytes);
}

static struct cell resident(const struct ew_measured_side *k)
{
    return bytes_or(k->resident, "not known");
}

static struct cell accuracy(const struct ew_measured_side *k)
{
    return k->accuracy < 0 ? missing("no --eval") : number(100 * k->accuracy);
}

static struct cell watts(const struct ew_measured_side *k, double w)
{
    return k->power.absent ? missing(k->power.absent) : number(w);
}

static struct cell power(const struct ew_measured_side *k)
{
    return watts(k, k->power.mean_w);
}

static struct cell dynamic_power(const struct ew_measured_side *k)
{
    return watts(k, k->power.mean_w - k->power.idle_w);
}

static struct cell per_watt(const struct ew_measured_side *k)
{
    return watts(k, k->power.images_per_s / k->power.mean_w);
}

static struct cell per_image(const struct ew_measured_side *k)
{
    return watts(k, k->power.mean_w / k->power.images_per_s);
}

#define PLAN_SOURCE  "derived: memory plan"
#define CLOCK_SOURCE "measured: monotonic clock, interleaved rounds"

static const struct row {
    const char *name, *key, *source; /* the key also names the metric */
    enum form form;
    struct cell (*value)(const struct ew_measured_side *k);
} rows[] = {
    {"form", "form", "", TEXT, form},
    {"precision", "precision", "", TEXT, precision},
    {"instruction set", "isa", "", TEXT, isa},
    {"time, median", "median_ms", CLOCK_SOURCE, MS, median},
    {"  deviation", "sd_ms", CLOCK_SOURCE, MS, deviation},
    {"  min", "min_ms", CLOCK_SOURCE, MS, least},
    {"  p99", "p99_ms", CLOCK_SOURCE, MS, p99},
    {"speed-up", "speedup", "derived: median over the rounds", TIMES, speedup},
    {"  by minima", "speedup_min", "derived: the shortest runs", TIMES, speedup_min},
    {"images/s", "images_per_s", "derived: from the median", RATE, rate},
    {"parameters", "params", "derived: graph before any pass", COUNT, params},
    {"FLOPs", "flops", "derived: graph before any pass, one image", COUNT, flops},
    {"CDL", "cdl", "derived: graph before any pass", COUNT, cdl},
    {"file", "file_bytes", "measured: file system", BYTES, file},
    {"weights in memory", "weight_bytes", PLAN_SOURCE, BYTES, weights},
    {"activations", "activation_bytes", PLAN_SOURCE, BYTES, activations},
    {"resident", "rss_bytes", "measured: /proc, a process of its own", BYTES, resident},
    {"accuracy", "accuracy", "measured: --eval", PERCENT, accuracy},
    {"power", "power_w", "measured: mean while running", WATT, power},
    {"dynamic power", "dynamic_w", "derived: power above idle", WATT, dynamic_power},
    {"images/s/W", "images_per_s_per_w", "derived", PER_WATT, per_watt},
    {"energy per image", "image_j", "derived: power while running", JOULE, per_image},
};

/* ---- The store ---- */

/* Lower is better for times, sizes and power. */
static enum ew_better better(enum form f)
{
    switch (f) {
    case TIMES:
    case RATE:
    case PERCENT:
    case PER_WATT:
        return EW_BETTER_HIGHER;
    default:
        return EW_BETTER_LOWER;
    }
}

static ew_err record(struct ew_recording *rec, const struct ew_measured_side *k)
{
    for (size_t i = 0; i < EW_COUNT(rows); i++) {
        const struct row *r = &rows[i];
        const struct cell v = r->value(k);
        static const char *const units[] = {[MS] = "ms",  [RATE] = "1/s",     [BYTES] = "B",
                                            [WATT] = "W", [PER_WATT] = "1/J", [JOULE] = "J"};
        if (r->form == TEXT || !v.known)
            continue;
        const bool measured = strncmp(r->source, "measured", 8) == 0;
        const double value = r->form == PERCENT ? v.v / 100 : v.v; /* as eval records it */
        EW_TRY((measured ? ew_recording_metric : ew_recording_derived)(
            rec, strcmp(r->key, "params") == 0 ? "parameters" : r->key, value, units[r->form],
            better(r->form)));
    }
    return EW_OK;
}

/* Records one run per network, as `bench NETWORK` alone would. */
static ew_err begin_records(struct comparison *m)
{
    EW_CHECK(!m->db || !getenv("EW_RUN"), EW_ERR_USAGE, "a study's job is one network");
    for (int i = 0; m->db && i < m->c->n_args; i++) {
        struct ew_cmd_call one = *m->c;
        one.n_args = one.n_before = 1;
        one.args = m->c->args + i;
        EW_TRY(ew_cmd_record(&one, m->db, &m->rec[i]));
    }
    return EW_OK;
}

static ew_err end_records(struct comparison *m, ew_err e)
{
    for (int i = 0; i < m->c->n_args; i++) {
        if (e == EW_OK && m->rec[i].store)
            e = record(&m->rec[i], &m->of.sides[i]);
        e = ew_recording_end(&m->rec[i], e);
    }
    return e;
}

/* ---- Output ---- */

static void print_cell(struct ew_table *t, enum form f, const struct cell *v)
{
    char text[EW_TEXT_CHARS];
    if (!v->known) {
        ew_table_cell(t, "- (%s)", v->why);
        return;
    }
    switch (f) {
    case TEXT:
        ew_table_cell(t, "%s", v->text);
        break;
    case MS:
        ew_table_cell(t, "%s ms", ew_text_ms(v->v, text));
        break;
    case TIMES:
        ew_table_cell(t, "%.2f x", v->v);
        break;
    case RATE:
        ew_table_cell(t, "%.1f", v->v);
        break;
    case COUNT:
        ew_table_cell(t, "%s", ew_text_count((int64_t)v->v, text));
        break;
    case BYTES:
        ew_table_cell(t, "%s", ew_text_bytes((int64_t)v->v, text));
        break;
    case PERCENT:
        ew_table_cell(t, "%.2f %%", v->v);
        break;
    case WATT: /* rounding noise must not print "-0.00" */
        ew_table_cell(t, "%.2f W", fabs(v->v) < 0.005 ? 0 : v->v);
        break;
    case PER_WATT:
        ew_table_cell(t, "%.2f", v->v);
        break;
    case JOULE:
        ew_table_cell(t, "%.4g mJ", 1e3 * v->v);
        break;
    }
}

/* Rows without any value are left out; their reason is printed once. */
static bool anybody(const struct ew_side_comparison *m, const struct row *r)
{
    for (int i = 0; i < m->n; i++)
        if (r->value(&m->sides[i]).known)
            return true;
    return false;
}

static ew_err print_text(const struct ew_side_comparison *m)
{
    static const char align[EW_COMPARISON_SIDES + 3] = "lrrrrrrrrrrrrrrrrl";
    char columns[EW_COMPARISON_SIDES + 3];
    memcpy(columns, align, (size_t)m->n + 1);
    columns[m->n + 1] = 'l';
    columns[m->n + 2] = 0;
    struct ew_table t;
    ew_table_init(&t, columns);
    ew_table_cell(&t, " ");
    for (int i = 0; i < m->n; i++) {
        const char *slash = strrchr(m->sides[i].side.name, '/');
        ew_table_cell(&t, "%s", slash ? slash + 1 : m->sides[i].side.name);
    }
    ew_table_cell(&t, "source");
    for (size_t r = 0; r < EW_COUNT(rows); r++) {
        if (!anybody(m, &rows[r]))
            continue;
        ew_table_cell(&t, "%s", rows[r].name);
        for (int i = 0; i < m->n; i++) {
            const struct cell v = rows[r].value(&m->sides[i]);
            print_cell(&t, rows[r].form, &v);
        }
        ew_table_cell(&t, "%s", rows[r].source);
    }
    EW_TRY(ew_table_print(&t, stdout));
    const struct ew_bench_stats *b = &m->sides[0].time.time;
    const long long threads = (long long)m->sides[0].side.threads;
    printf("batch %lld, %lld thread%s, %lld runs each\n", (long long)m->sides[0].side.batch,
           threads, threads == 1 ? "" : "s", (long long)b->n);
    const struct ew_bench_power *p = &m->sides[0].power;
    if (!p->absent)
        printf("power of %s, idle %.2f W\n", p->rails, p->idle_w);
    else
        printf("power: absent, %s\n", p->absent);
    return EW_OK;
}

static void json_side(struct ew_json *j, const struct ew_measured_side *k)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "name", k->side.name);
    ew_json_int(j, "batch", k->side.batch);
    ew_json_int(j, "threads", k->side.threads);
    ew_json_int(j, "runs", k->time.time.n);
    for (size_t r = 0; r < EW_COUNT(rows); r++) {
        const struct cell v = rows[r].value(k);
        if (!v.known)
            ew_json_null(j, rows[r].key);
        else if (rows[r].form == TEXT)
            ew_json_str(j, rows[r].key, v.text);
        else if (rows[r].form == COUNT || rows[r].form == BYTES)
            ew_json_int(j, rows[r].key, (int64_t)v.v);
        else
            ew_json_num(j, rows[r].key, v.v);
    }
    ew_json_num(j, "speedup_low", k->time.ratio_low);
    ew_json_num(j, "speedup_high", k->time.ratio_high);
    if (!k->power.absent) {
        ew_json_num(j, "idle_w", k->power.idle_w);
        ew_json_num(j, "peak_w", k->power.peak_w);
        ew_json_str(j, "power_rails", k->power.rails);
    } else {
        ew_json_str(j, "power_absent", k->power.absent);
    }
    ew_json_end(j);
}

static ew_err print_json(const struct ew_side_comparison *m)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_array(&j, "sides");
    for (int i = 0; i < m->n; i++)
        json_side(&j, &m->sides[i]);
    ew_json_end(&j);
    ew_json_object(&j, "sources");
    for (size_t r = 0; r < EW_COUNT(rows); r++)
        if (*rows[r].source)
            ew_json_str(&j, rows[r].key, rows[r].source);
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_bench_compare(struct ew_cmd_call *c, const struct ew_compare_opts *o, const char *db)
{
    EW_CHECK(c->n_args <= EW_COMPARISON_SIDES, EW_ERR_USAGE, "bench compares at most %d, not %d",
             EW_COMPARISON_SIDES, c->n_args);
    struct comparison m = {.c = c, .db = db};
    ew_err e = begin_records(&m);
    if (e == EW_OK)
        e = ew_comparison_run(c->args, c->n_args, o, &m.of);
    if (o->eval)
        ew_data_hint(c, o->eval, e);
    e = end_records(&m, e);
    if (e == EW_OK) {
        ew_times_warn_busy(m.of.others);
        e = c->json ? print_json(&m.of) : print_text(&m.of);
    }
    ew_comparison_fini(&m.of);
    return e;
}
