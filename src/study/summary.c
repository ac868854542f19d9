/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of runs, computed by SQL. */
#include "study/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

#define FIRST "(SELECT min(epoch) FROM epoch WHERE run = ?1)"

/* Scores: fields whose last epoch counts. */
static bool is_score(const char *name)
{
    static const char *const names[] = {
        "train_loss", "train_accuracy", "loss",      "accuracy",       "precision",  "recall",
        "f1",         "learning_rate",  "rss_bytes", "rss_peak_bytes", "cache_after"};
    for (size_t i = 0; i < EW_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

struct values {
    double mean, spread, lowest, highest;
    int64_t n;
};

/* Values of a column over the epochs that `which` selects. */
static ew_err read_values(struct ew_store *s, int64_t run, const char *column, const char *which,
                          struct values *v)
{
    char sql[512];
    struct ew_rows *rows;
    snprintf(sql, sizeof(sql),
             "SELECT count(x), avg(x), avg(x * x), min(x), max(x) FROM (SELECT \"%s\" AS x FROM "
             "epoch WHERE run = ?1 AND %s)",
             column, which);
    EW_TRY(ew_store_query(s, &rows, sql, "i", run));
    *v = (struct values){0};
    if (ew_rows_next(rows)) {
        v->n = ew_rows_int(rows, 0);
        v->mean = ew_rows_num(rows, 1);
        const double n = (double)v->n, var = ew_rows_num(rows, 2) - v->mean * v->mean;
        v->spread = v->n > 1 ? sqrt(fmax(var, 0) * n / (n - 1)) : (double)NAN;
        v->lowest = ew_rows_num(rows, 3);
        v->highest = ew_rows_num(rows, 4);
    }
    return ew_rows_free(rows);
}

/* Quality of the summary: derived for measured epochs, else that of the epochs.
 */
static ew_err quality_of_epochs(struct ew_store *s, int64_t run, int *out)
{
    static const enum ew_quality special[] = {EW_QUALITY_SIMULATED, EW_QUALITY_EMULATED};
    *out = EW_QUALITY_DERIVED;
    for (size_t i = 0; i < EW_COUNT(special) && *out == EW_QUALITY_DERIVED; i++) {
        int64_t n;
        bool found;
        EW_TRY(ew_store_int(s, &n, &found,
                            "SELECT 1 FROM epoch WHERE run = ?1 AND quality = ?2 LIMIT 1", "is",
                            run, ew_quality_name(special[i])));
        if (found)
            *out = (int)special[i];
    }
    return EW_OK;
}

static ew_err put(struct ew_store *s, int64_t run, const struct ew_field *f, const char *name,
                  const char *which)
{
    struct values v;
    bool there;
    int64_t id;
    EW_TRY(read_values(s, run, f->name, which, &v));
    EW_TRY(ew_store_int(s, &id, &there, "SELECT 1 FROM metric WHERE run = ?1 AND name = ?2", "is",
                        run, name));
    if (!v.n || there)
        return EW_OK;
    struct ew_metric_row m;
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = name;
    m.value = v.mean;
    m.unit = f->unit;
    m.source = "epochs";
    m.n = v.n;
    m.spread = v.spread;
    m.lowest = v.lowest;
    m.highest = v.highest;
    m.better = (int)f->better;
    EW_TRY(quality_of_epochs(s, run, &m.quality));
    return ew_store_put(s, EW_RECORD_METRIC, run, &m);
}

static ew_err add_all(struct ew_store *s, int64_t run)
{
    int64_t epochs = 0;
    bool found;
    EW_TRY(ew_store_int(s, &epochs, &found, "SELECT count(*) FROM epoch WHERE run = ?1", "i", run));
    if (!epochs)
        return EW_OK;
    for (const struct ew_field *f = ew_record_kind(EW_RECORD_EPOCH)->fields; f->name; f++) {
        const char *name = strcmp(f->name, "wall_s") == 0 ? "epoch_s" : f->name;
        char first[64];
        if (strcmp(f->name, "epoch") == 0 || strcmp(f->name, "start_s") == 0 ||
            (f->type != EW_FIELD_FLOAT && f->type != EW_FIELD_INT))
            continue;
        if (is_score(f->name)) {
            EW_TRY(put(s, run, f, name, "epoch = (SELECT max(epoch) FROM epoch WHERE run = ?1)"));
            continue;
        }
        EW_TRY(put(s, run, f, name, epochs > 1 ? "epoch <> " FIRST : "1"));
        snprintf(first, sizeof(first), "%s_first", name);
        EW_TRY(put(s, run, f, first, "epoch = " FIRST));
    }
    return EW_OK;
}

/* Metrics computed from several fields, over the epochs after the first. */
static ew_err add_derived(struct ew_store *s, int64_t run)
{
    static const struct {
        const char *name, *unit, *sql;
    } all[] = {
        {"batch_compute_ms", "ms", "1000 * sum(compute_s) / sum(batches)"},
        {"batch_stall_ms", "ms", "1000 * sum(stall_s) / sum(batches)"},
        {"stall_share", "%", "100 * sum(stall_s) / sum(wall_s)"},
        /* the epoch farthest from the mean; three of them at least */
        {"epoch_deviation", "%",
         "CASE WHEN count(*) > 2 THEN 100 * max(max(wall_s) - avg(wall_s), avg(wall_s) - "
         "min(wall_s)) / avg(wall_s) END"},
        {"energy_deviation", "%",
         "CASE WHEN count(energy_j) > 2 THEN 100 * max(max(energy_j) - avg(energy_j), "
         "avg(energy_j) - min(energy_j)) / avg(energy_j) END"},
        /* idle energy, and the energy that training adds */
        {"base_energy_j", "J", "avg(base_power_w * wall_s)"},
        {"training_energy_j", "J", "avg(energy_j - base_power_w * wall_s)"},
        {"base_share", "%", "100 * sum(base_power_w * wall_s) / sum(energy_j)"},
    };
    int quality;
    EW_TRY(quality_of_epochs(s, run, &quality));
    for (size_t i = 0; i < EW_COUNT(all); i++) {
        struct ew_rows *rows;
        struct ew_metric_row m;
        char sql[512];
        snprintf(sql, sizeof(sql),
                 "SELECT %s FROM epoch WHERE run = ?1 AND (epoch <> " FIRST
                 " OR (SELECT count(*) FROM epoch WHERE run = ?1) = 1)",
                 all[i].sql);
        EW_TRY(ew_store_query(s, &rows, sql, "i", run));
        ew_record_clear(EW_RECORD_METRIC, &m);
        m.value = ew_rows_next(rows) ? ew_rows_num(rows, 0) : (double)NAN;
        EW_TRY(ew_rows_free(rows));
        m.name = all[i].name;
        m.unit = all[i].unit;
        m.source = "epochs";
        m.quality = quality;
        m.better = EW_BETTER_LOWER;
        if (!isnan(m.value))
            EW_TRY(ew_store_put(s, EW_RECORD_METRIC, run, &m));
    }
    return EW_OK;
}

/* The best F1 at the least cost: the first epoch whose F1 is the run's highest to three digits, as
 * the NX study prints it, and what it took until then. */
static ew_err add_best(struct ew_store *s, int64_t run)
{
    struct ew_rows *rows;
    struct ew_metric_row m;
    double found[3] = {NAN, NAN, NAN};
    static const struct {
        const char *name, *unit;
        enum ew_better better;
    } all[] = {{"best_f1", NULL, EW_BETTER_HIGHER},
               {"best_f1_epochs", NULL, EW_BETTER_LOWER},
               {"best_f1_s", "s", EW_BETTER_LOWER}};
    EW_TRY(ew_store_query(
        s, &rows,
        "SELECT f1, (SELECT count(*) FROM epoch WHERE run = ?1 AND epoch <= e.epoch), (SELECT "
        "sum(wall_s) FROM epoch WHERE run = ?1 AND epoch <= e.epoch) FROM epoch AS e WHERE run = "
        "?1 AND round(f1, 3) = (SELECT max(round(f1, 3)) FROM epoch WHERE run = ?1) ORDER BY epoch "
        "LIMIT 1",
        "i", run));
    if (ew_rows_next(rows))
        for (int i = 0; i < 3; i++)
            found[i] = ew_rows_num(rows, i);
    EW_TRY(ew_rows_free(rows));
    for (size_t i = 0; i < EW_COUNT(all) && !isnan(found[i]); i++) {
        ew_record_clear(EW_RECORD_METRIC, &m);
        m.name = all[i].name;
        m.value = found[i];
        m.unit = all[i].unit;
        m.source = "epochs";
        m.better = (int)all[i].better;
        EW_TRY(quality_of_epochs(s, run, &m.quality));
        EW_TRY(ew_store_put(s, EW_RECORD_METRIC, run, &m));
    }
    return EW_OK;
}

/* Share of time below the highest clock, from the samples: a reading within 5 % of the run's
 * highest is at it (5.5 of TRAIN counts so). */
static ew_err add_clocks(struct ew_store *s, int64_t run)
{
    static const struct {
        const char *name, *unit, *channel, *sql;
    } all[] = {
        {"cpu_below_peak", "%", "cpu0.freq", "100.0 * sum(value < 0.95 * top) / count(*)"},
        {"cpu_below_90", "%", "cpu0.freq", "100.0 * sum(value < 0.9 * top) / count(*)"},
        {"gpu_mhz", "MHz", "gpu.freq", "avg(value)"},
        {"mem_below_peak", "%", "emc.freq", "100.0 * sum(value < 0.95 * top) / count(*)"},
    };
    for (size_t i = 0; i < EW_COUNT(all); i++) {
        struct ew_rows *rows;
        struct ew_metric_row m;
        char sql[512];
        snprintf(
            sql, sizeof(sql),
            "SELECT %s, count(*) FROM (SELECT value, (SELECT max(value) FROM sample WHERE run = "
            "?1 AND channel = ?2) AS top FROM sample WHERE run = ?1 AND channel = ?2)",
            all[i].sql);
        EW_TRY(ew_store_query(s, &rows, sql, "is", run, all[i].channel));
        ew_record_clear(EW_RECORD_METRIC, &m);
        const bool there = ew_rows_next(rows);
        m.value = there ? ew_rows_num(rows, 0) : (double)NAN;
        m.n = there ? ew_rows_int(rows, 1) : 0;
        EW_TRY(ew_rows_free(rows));
        m.name = all[i].name;
        m.unit = all[i].unit;
        m.source = all[i].channel;
        m.quality = EW_QUALITY_DERIVED;
        m.better = EW_BETTER_NEITHER;
        if (m.n > 1 && !isnan(m.value))
            EW_TRY(ew_store_put(s, EW_RECORD_METRIC, run, &m));
    }
    return EW_OK;
}

/* A run with emulated or simulated epochs gets that quality as a whole. */
static ew_err mark_quality(struct ew_store *s, int64_t run)
{
    struct ew_run_row row;
    ew_record_clear(EW_RECORD_RUN, &row);
    EW_TRY(quality_of_epochs(s, run, &row.quality));
    if (row.quality == EW_QUALITY_DERIVED)
        return EW_OK;
    return ew_store_run_update(s, run, &row);
}

ew_err ew_summary_add(struct ew_store *s, int64_t run)
{
    EW_TRY(ew_store_begin(s));
    ew_err err = add_all(s, run);
    if (err == EW_OK)
        err = add_derived(s, run);
    if (err == EW_OK)
        err = add_best(s, run);
    if (err == EW_OK)
        err = add_clocks(s, run);
    if (err == EW_OK)
        err = mark_quality(s, run);
    const ew_err ended = ew_store_end(s, err == EW_OK);
    return err == EW_OK ? ended : err;
}

/* ---- Beside published figures ---------------------------------------------------------------- */

/* Whether both are the same text or number. */
static bool same_value(const char *a, const char *b)
{
    double x, y;
    if (ew_num_float(a, &x) && ew_num_float(b, &y))
        return fabs(x - y) <= 1e-9 * fabs(x);
    return strcmp(a, b) == 0;
}

/* Whether the job has every setting of the published value. */
static bool job_fits(const struct ew_study_job *j, const char *settings, struct ew_arena *a)
{
    const char **words;
    int n;
    if (ew_study_words(a, settings, &words, &n) != EW_OK)
        return false;
    for (int i = 0; i < n; i++) {
        char name[EW_STUDY_VALUE], value[EW_STUDY_VALUE] = "";
        const char *equals = strchr(words[i], '=');
        if (!equals)
            return false;
        snprintf(name, sizeof(name), "%.*s", (int)(equals - words[i]), words[i]);
        if (!ew_study_value(j, name, value) || !same_value(value, equals + 1))
            return false;
    }
    return true;
}

/* The values of a metric over runs. */
struct sums {
    int64_t jobs, n;
    double x, xx;
    int64_t noisy;
    bool higher;         /* is better */
    const char *quality; /* of the first */
};

/* The runs that are considered. */
struct view {
    struct ew_store *store;
    const struct ew_study *study;
    const char *unit;
    struct ew_arena *arena;
};

static ew_err add_runs(const struct view *v, const struct ew_study_job *j, const char *metric,
                       struct sums *t)
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(v->store, &rows,
                          "SELECT metric.value, metric.quality, metric.better = 'higher', "
                          "coalesce(run.noise, '') <> '' FROM metric JOIN run ON run.id = "
                          "metric.run JOIN machine ON machine.id = run.machine WHERE run.job = ?1 "
                          "AND run.study = ?2 AND machine.unit = ?3 AND metric.name = ?4 AND "
                          "run.status = 'done'",
                          "ssss", j->row.id, v->study->name, v->unit, metric));
    while (ew_rows_next(rows)) {
        const double x = ew_rows_num(rows, 0);
        t->n++;
        t->x += x;
        t->xx += x * x;
        t->higher = ew_rows_int(rows, 2) == 1;
        t->noisy += ew_rows_int(rows, 3);
        if (!t->quality && ew_rows_text(rows, 1))
            t->quality = ew_arena_strdup(v->arena, ew_rows_text(rows, 1));
    }
    return ew_rows_free(rows);
}

static ew_err add_up(const struct view *v, const char *metric, const char *settings, struct sums *t)
{
    *t = (struct sums){0};
    for (int k = 0; k < v->study->n_jobs; k++) {
        const struct ew_study_job *j = &v->study->jobs[k];
        if (j->repeat != 0 || !job_fits(j, settings, v->arena))
            continue;
        t->jobs++;
        EW_TRY(add_runs(v, j, metric, t));
    }
    return EW_OK;
}

static void take_mean(const struct sums *t, struct ew_published_comparison *c)
{
    const double n = (double)t->n;
    c->jobs = t->jobs;
    c->runs = t->n;
    c->quality = t->quality;
    c->noisy = t->noisy;
    c->higher = t->higher;
    if (t->n)
        c->value = t->x / n;
    if (t->n > 1)
        c->spread = sqrt(fmax(t->xx / n - c->value * c->value, 0) * n / (n - 1));
}

/* Settings that must be equal on both sides of a ratio, if both have them. */
static const char *const paired[] = {"net", "ratio", "seed"};

/* Whether the ratio is over this setting. */
static bool is_named(const char *settings, const char *name)
{
    const char *at = strstr(settings, name);
    return at && at[strlen(name)] == '=' && (at == settings || at[-1] == ' ');
}

static bool same_pair(const struct ew_study_job *a, const struct ew_study_job *b, const char *of_a,
                      const char *of_b)
{
    for (size_t i = 0; i < EW_COUNT(paired); i++) {
        const char *x = ew_study_given(a, paired[i]), *y = ew_study_given(b, paired[i]);
        if (is_named(of_a, paired[i]) || is_named(of_b, paired[i]) || (!x && !y))
            continue;
        if (!x || !y || !same_value(x, y))
            return false;
    }
    return true;
}

/* The settings of the two sides, and the metric. */
struct ratio {
    const char *metric, *above, *below;
};

/* The mean of the ratios of all pairs that were run; `pairs` 0: there are none. */
static ew_err mean_of_pairs(const struct view *v, const struct ratio *r, double *mean, int *pairs)
{
    const struct ew_study *s = v->study;
    double sum = 0;
    *pairs = 0;
    for (int i = 0; i < s->n_jobs; i++) {
        if (s->jobs[i].repeat != 0 || !job_fits(&s->jobs[i], r->above, v->arena))
            continue;
        for (int k = 0; k < s->n_jobs; k++) {
            struct sums a = {0}, b = {0};
            if (s->jobs[k].repeat != 0 || !job_fits(&s->jobs[k], r->below, v->arena) ||
                !same_pair(&s->jobs[i], &s->jobs[k], r->above, r->below))
                continue;
            EW_TRY(add_runs(v, &s->jobs[i], r->metric, &a));
            EW_TRY(add_runs(v, &s->jobs[k], r->metric, &b));
            if (!a.n || !b.n || !(b.x > 0))
                continue;
            sum += a.x / (double)a.n / (b.x / (double)b.n);
            ++*pairs;
        }
    }
    *mean = sum / *pairs;
    return EW_OK;
}

/* "median_ms:label=before/label=after": the mean of the ratios of jobs that differ in this. */
static ew_err compare_ratio(const struct view *v, const char *text,
                            struct ew_published_comparison *c)
{
    char *metric = ew_arena_strdup(v->arena, text);
    char *above = metric ? strchr(metric, ':') : NULL;
    char *below = above ? strchr(above, '/') : NULL;
    EW_CHECK(below, EW_ERR_FORMAT, "%s: '%s' is not METRIC:NAME=VALUE/NAME=VALUE", v->study->name,
             text);
    *above++ = *below++ = '\0';
    struct sums a, b;
    const char *with_a = ew_arena_printf(v->arena, "%s %s", c->published->settings, above);
    const char *with_b = ew_arena_printf(v->arena, "%s %s", c->published->settings, below);
    EW_CHECK(with_a && with_b, EW_ERR_MEMORY, "no memory for a comparison");
    EW_TRY(add_up(v, metric, with_a, &a));
    EW_TRY(add_up(v, metric, with_b, &b));
    int pairs;
    double mean;
    EW_TRY(mean_of_pairs(v, &(struct ratio){metric, with_a, with_b}, &mean, &pairs));
    c->jobs = ew_min_i64(a.jobs, b.jobs);
    c->runs = pairs;
    c->noisy = a.noisy + b.noisy;
    if (pairs) {
        c->value = mean;
        c->quality = ew_quality_name(EW_QUALITY_DERIVED);
    }
    return EW_OK;
}

/* Whether load of other programs disturbs values of this unit: times and power, but not scores
 * and counts. */
static bool is_disturbed(const char *unit)
{
    static const char *const units[] = {"s", "ms", "J", "W", "x", "1/s/W"};
    for (size_t i = 0; unit && i < EW_COUNT(units); i++)
        if (strcmp(unit, units[i]) == 0)
            return true;
    return false;
}

ew_err ew_published_compare(struct ew_store *s, const struct ew_study *study, const char *unit,
                            struct ew_arena *a, struct ew_published_comparison **out)
{
    const struct view v = {s, study, unit, a};
    struct ew_published_comparison *list =
        ew_arena_array(a, (size_t)study->n_published + 1, sizeof(*list));
    EW_CHECK(list, EW_ERR_MEMORY, "no memory for a comparison");
    for (int i = 0; i < study->n_published; i++) {
        const struct ew_published_row *p = &study->published[i];
        struct ew_published_comparison *c = &list[i];
        struct sums t;
        *c = (struct ew_published_comparison){.published = p, .value = NAN, .spread = NAN};
        if (strchr(p->metric, ':')) {
            EW_TRY(compare_ratio(&v, p->metric, c));
        } else {
            EW_TRY(add_up(&v, p->metric, p->settings, &t));
            take_mean(&t, c);
        }
        if (!is_disturbed(p->unit))
            c->noisy = 0;
    }
    *out = list;
    return EW_OK;
}
