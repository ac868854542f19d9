/* SPDX-License-Identifier: Apache-2.0 */
/* Networks, batches, widths and threads that were never run here. */
#include "cli/predict_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advise/work_fit.h"
#include "base/json.h"
#include "base/log.h"
#include "base/order_stats.h"
#include "cli/simulated.h"
#include "model/objective.h"
#include "report/text_table.h"
#include "store/store.h"

#define MOST  4096 /* benches that are looked at */
#define QUIET 0.15 /* repeats of a bench on a quiet machine are nearer to each other */

/* A bench of the store. */
struct bench {
    const char *network;
    struct ew_network_opts net;
    int64_t threads;
    bool train;
    double time, slowest; /* of its repeats: the fastest and the slowest median */
    struct ew_mode point;
};

struct benches {
    struct ew_arena arena;
    struct bench *list;
    int n;
};

/* ---- What a plan asks for -------------------------------------------------------------------- */

static ew_err point_of(const struct bench *b, struct ew_mode *out)
{
    const struct ew_network_how how = {.opts = b->net, .shapes = true};
    struct ew_network n;
    struct ew_sim_load l;
    struct ew_arena a;
    ew_arena_init(&a);
    ew_err e = ew_network_open(b->network, &how, &n);
    if (e == EW_OK && b->train)
        e = ew_objective_add(n.graph);
    if (e == EW_OK)
        e = ew_sim_load_of(&a, n.graph, b->train, &l);
    if (e == EW_OK)
        *out = ew_work_point_of(&l, (double)b->threads);
    ew_network_close(&n);
    ew_arena_fini(&a);
    return e;
}

/* The same network at the same size was asked for before. */
static bool same_plan(const struct bench *a, const struct bench *b)
{
    return strcmp(a->network, b->network) == 0 && a->net.batch == b->net.batch &&
           fabs(a->net.width - b->net.width) < 1e-9 && a->net.classes == b->net.classes &&
           a->train == b->train;
}

static ew_err find_point(const struct benches *all, struct bench *b)
{
    for (int i = 0; i < all->n; i++)
        if (same_plan(&all->list[i], b)) {
            b->point = all->list[i].point;
            b->point.cores = (double)b->threads;
            return EW_OK;
        }
    return point_of(b, &b->point);
}

/* ---- The store ------------------------------------------------------------------------------- */

static double number(const struct ew_rows *rows, const char *column, double otherwise)
{
    const int c = ew_rows_find(rows, column);
    const double v = c >= 0 ? ew_rows_num(rows, c) : (double)NAN;
    return isfinite(v) ? v : otherwise;
}

/* Of networks of the zoo at their own input: others are not described by these columns alone. */
static bool read_bench(struct benches *all, const struct ew_rows *rows, struct bench *b)
{
    const int network = ew_rows_find(rows, "network"), input = ew_rows_find(rows, "input");
    const char *name = network >= 0 ? ew_rows_text(rows, network) : NULL;
    const char *size = input >= 0 ? ew_rows_text(rows, input) : NULL;
    *b = (struct bench){.time = 1e-3 * number(rows, "median_ms", NAN),
                        .train = number(rows, "train", 0) > 0,
                        .threads = (int64_t)number(rows, "threads", 0)};
    b->slowest = b->time;
    b->net.batch = (int64_t)number(rows, "batch", 1);
    b->net.width = number(rows, "width", 1);
    b->net.classes = (int64_t)number(rows, "classes", 0);
    if (!(b->time > 0) || !name || ew_network_is_file(name) || (size && *size))
        return false;
    if (b->threads == 0)
        b->threads = (int64_t)number(rows, "machine_cores_online", 1);
    b->network = ew_arena_strdup(&all->arena, name);
    return b->network != NULL;
}

/* A bench that was repeated counts once, by its fastest median: what else runs on a machine only
 * ever adds time. */
static bool merged(const struct benches *all, const struct bench *b)
{
    for (int i = 0; i < all->n; i++) {
        struct bench *old = &all->list[i];
        if (same_plan(old, b) && old->threads == b->threads) {
            old->time = fmin(old->time, b->time);
            old->slowest = fmax(old->slowest, b->time);
            return true;
        }
    }
    return false;
}

static ew_err read_benches(const char *path, struct benches *all)
{
    struct ew_store *store;
    struct ew_rows *rows;
    all->list = ew_arena_array(&all->arena, MOST, sizeof(*all->list));
    EW_CHECK(all->list, EW_ERR_MEMORY, "no memory");
    EW_TRY(ew_store_open(path, &(struct ew_store_opts){.read_only = true}, &store));
    ew_err e = ew_store_results(
        store, "status = 'done' AND command = 'bench' AND quality = 'measured'", NULL, &rows);
    if (e == EW_OK) {
        while (e == EW_OK && all->n < MOST && ew_rows_next(rows)) {
            struct bench b;
            if (!read_bench(all, rows, &b) || merged(all, &b))
                continue;
            e = find_point(all, &b);
            all->list[all->n++] = b;
        }
        const ew_err ended = ew_rows_free(rows);
        e = e == EW_OK ? ended : e;
    }
    ew_store_close(store);
    EW_TRY(e);
    EW_CHECK(all->n >= EW_WORK_MIN, EW_ERR_ARG,
             "%s: %d measured benches of networks of the zoo: a prediction needs at least %d", path,
             all->n, EW_WORK_MIN);
    return EW_OK;
}

/* Fits those of `all` whose number modulo `of` is `part` (of 1: all) and that train, or do not. */
static ew_err fit(struct benches *all, bool train, int part, int of, struct ew_work_predictor **out,
                  int *n_out)
{
    struct ew_mode *points = ew_arena_array(&all->arena, (size_t)all->n, sizeof(*points));
    double *time = ew_arena_array(&all->arena, (size_t)all->n, sizeof(*time));
    EW_CHECK(points && time, EW_ERR_MEMORY, "no memory");
    int n = 0;
    for (int i = 0; i < all->n; i++)
        if (all->list[i].train == train && i % of == part) {
            points[n] = all->list[i].point;
            time[n++] = all->list[i].time;
        }
    *n_out = n;
    return ew_work_fit(&all->arena, points, time, n, out);
}

/* ---- A prediction ---------------------------------------------------------------------------- */

static ew_err show(const struct ew_work_opts *o, const struct ew_guess *g, int measured, bool json)
{
    struct ew_json j;
    if (!json) {
        printf("%s, %s, batch %lld, %lld threads: %.4g ms, in 90 of 100 cases %.4g to %.4g (from "
               "%d benches)\n",
               o->network, o->train ? "training step" : "inference", (long long)o->net.batch,
               (long long)o->threads, 1e3 * g->mid, 1e3 * g->low90, 1e3 * g->high90, measured);
        return EW_OK;
    }
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "network", o->network);
    ew_json_str(&j, "quality", "modelled");
    ew_json_int(&j, "batch", o->net.batch);
    ew_json_int(&j, "threads", o->threads);
    ew_json_int(&j, "measured", measured);
    ew_json_num(&j, "time_ms", 1e3 * g->mid);
    ew_json_num(&j, "low50_ms", 1e3 * g->low50);
    ew_json_num(&j, "high50_ms", 1e3 * g->high50);
    ew_json_num(&j, "low90_ms", 1e3 * g->low90);
    ew_json_num(&j, "high90_ms", 1e3 * g->high90);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* Without a measurement: the board's model alone. */
static ew_err first_guess(const struct ew_work_opts *o, bool json)
{
    const struct ew_network_how how = {.opts = o->net, .shapes = true};
    struct ew_simulated s;
    struct ew_simulated_run r;
    struct ew_network n = {0};
    ew_err e = ew_simulated_init(&s, o->board);
    if (e == EW_OK)
        e = ew_network_open(o->network, &how, &n);
    if (e == EW_OK && o->train)
        e = ew_objective_add(n.graph);
    if (e == EW_OK)
        e = ew_simulated_plan(&s, n.graph, o->train, &r);
    if (e == EW_OK)
        e = ew_simulated_show(&s, &r, o->network, json);
    ew_network_close(&n);
    ew_simulated_fini(&s);
    return e;
}

static ew_err from_store(struct benches *all, const struct ew_work_opts *o, bool json)
{
    struct ew_work_predictor *p;
    struct ew_work_opts asked = *o;
    struct ew_guess g;
    int n;
    EW_TRY(read_benches(o->store, all));
    if (asked.threads == 0)
        asked.threads = sysconf(_SC_NPROCESSORS_ONLN);
    struct bench b = {
        .network = o->network, .net = o->net, .train = o->train, .threads = asked.threads};
    EW_TRY(point_of(&b, &b.point));
    EW_TRY(fit(all, o->train, 0, 1, &p, &n));
    ew_work_predict(p, &b.point, 1, &g);
    return show(&asked, &g, n, json);
}

ew_err ew_predict_work(const struct ew_work_opts *o, bool json)
{
    EW_CHECK(o->store || o->board, EW_ERR_USAGE,
             "--network: needs --from STORE, or --board for a first guess");
    if (!o->store)
        return first_guess(o, json);
    struct benches all = {.n = 0};
    ew_arena_init(&all.arena);
    const ew_err e = from_store(&all, o, json);
    ew_arena_fini(&all.arena);
    return e;
}

/* ---- A check --------------------------------------------------------------------------------- */

struct score {
    double *errors;
    int n, in90, fitted;
};

static ew_err score_part(struct benches *all, bool train, int part, struct score *s)
{
    struct ew_work_predictor *p;
    EW_TRY(fit(all, train, part, 3, &p, &s->fitted));
    for (int i = 0; i < all->n; i++) {
        const struct bench *b = &all->list[i];
        struct ew_guess g;
        if (b->train != train || i % 3 == part)
            continue;
        ew_work_predict(p, &b->point, 1, &g);
        s->errors[s->n++] = fabs(g.mid / b->time - 1);
        s->in90 += b->time >= g.low90 && b->time <= g.high90;
    }
    return EW_OK;
}

static double mean(const double *v, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += v[i] / n;
    return sum;
}

/* How far repeats of a bench lie apart at the median, as a share; 0: there are none. */
static ew_err spread(struct benches *all, double *out)
{
    double *v = ew_arena_array(&all->arena, (size_t)all->n, sizeof(*v));
    int n = 0;
    EW_CHECK(v, EW_ERR_MEMORY, "no memory");
    for (int i = 0; i < all->n; i++)
        if (all->list[i].slowest > all->list[i].time)
            v[n++] = all->list[i].slowest / all->list[i].time - 1;
    *out = n ? ew_median(v, n) : 0;
    return EW_OK;
}

static ew_err say_spread(struct benches *all)
{
    double apart = 0;
    EW_TRY(spread(all, &apart));
    if (apart > QUIET)
        EW_WARN("repeats of a bench lie %.0f %% apart: the machine is not quiet, and part of the "
                "error below is that",
                100 * apart);
    return EW_OK;
}

static ew_err check(struct benches *all, const char *path, bool json)
{
    int n[2] = {0};
    struct ew_json j;
    EW_TRY(read_benches(path, all));
    EW_TRY(say_spread(all));
    for (int i = 0; i < all->n; i++)
        n[all->list[i].train]++;
    EW_CHECK(n[0] >= 12 || n[1] >= 12, EW_ERR_ARG,
             "%s: a check from a third of the benches needs at least 12 of them", path);
    if (json) {
        ew_json_init(&j, stdout);
        ew_json_array(&j, NULL);
    }
    for (int train = 0; train < 2; train++) {
        struct score s = {.errors = ew_arena_array(&all->arena, 3 * MOST, sizeof(double))};
        EW_CHECK(s.errors, EW_ERR_MEMORY, "no memory");
        if (n[train] < 12)
            continue;
        for (int part = 0; part < 3; part++)
            EW_TRY(score_part(all, train, part, &s));
        const double error = 100 * mean(s.errors, s.n), middle = 100 * ew_median(s.errors, s.n);
        if (json) {
            ew_json_object(&j, NULL);
            ew_json_str(&j, "of", train ? "training steps" : "inference");
            ew_json_int(&j, "fitted", s.fitted);
            ew_json_int(&j, "tested", s.n);
            ew_json_num(&j, "time_error", error);
            ew_json_num(&j, "time_error_median", middle);
            ew_json_num(&j, "in90", (double)s.in90 / s.n);
            ew_json_end(&j);
        } else
            printf("%s: from %d of %d benches, each third in turn: time %.1f %% off (median %.1f), "
                   "%.0f %% in the 90 %% interval\n",
                   train ? "training steps" : "inference", s.fitted, n[train], error, middle,
                   100.0 * s.in90 / s.n);
    }
    if (!json)
        return EW_OK;
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_predict_work_check(const char *store, bool json)
{
    struct benches all = {.n = 0};
    ew_arena_init(&all.arena);
    const ew_err e = check(&all, store, json);
    ew_arena_fini(&all.arena);
    return e;
}
