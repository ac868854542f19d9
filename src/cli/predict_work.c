/* SPDX-License-Identifier: Apache-2.0 */
/* Prints predictions for untried networks, batches, widths, threads, workers, precisions and
 * machines, computed by measure/work_source.h. */
#include "cli/predict_work.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "advise/work_check.h"
#include "base/json.h"
#include "base/log.h"
#include "base/order_stats.h"
#include "cli/predict_figures.h"
#include "cli/simulated.h"
#include "model/objective.h"

#define QUIET 0.15 /* repeats of a bench on a quiet machine differ by less */
#define CHECK 12   /* fewest measurements for fitting to a third of them */

/* ---- A prediction ---------------------------------------------------------------------------- */

static void show_text(const struct ew_work_query *o, const char *machine,
                      const struct ew_interval *g, const struct ew_work_source *s)
{
    int here = 0, of_network = 0;
    for (int i = 0; i < s->rows.n; i++) {
        here += strcmp(s->rows.list[i].machine, machine) == 0;
        of_network += strcmp(s->rows.list[i].network, o->network) == 0;
    }
    printf("%s, %s, batch %lld, %lld thread%s", o->network,
           o->train ? "training step" : "inference", (long long)o->net.batch, (long long)o->threads,
           o->threads == 1 ? "" : "s");
    if (o->data)
        printf(", %s by %lld worker%s", o->data, (long long)o->workers, o->workers == 1 ? "" : "s");
    if (o->precision)
        printf(", %s", o->precision);
    printf(": %.4g ms, 90 %% interval %.4g to %.4g\n", 1e3 * g->mid, 1e3 * g->low90,
           1e3 * g->high90);
    printf("on %s, from %d measured configurations (%d of them on it, %d of this network)\n",
           machine, s->rows.n, here, of_network);
}

static ew_err show(const struct ew_work_query *o, const char *machine, const struct ew_interval *g,
                   const struct ew_work_source *s, bool json)
{
    struct ew_json j;
    if (!json) {
        show_text(o, machine, g, s);
        return EW_OK;
    }
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "network", o->network);
    ew_json_str(&j, "machine", machine);
    ew_json_str(&j, "quality", "modelled");
    ew_json_int(&j, "batch", o->net.batch);
    ew_json_int(&j, "threads", o->threads);
    if (o->data) {
        ew_json_str(&j, "data", o->data);
        ew_json_int(&j, "workers", o->workers);
    }
    ew_json_int(&j, "measured", s->rows.n);
    ew_json_num(&j, "time_ms", 1e3 * g->mid);
    ew_json_num(&j, "low50_ms", 1e3 * g->low50);
    ew_json_num(&j, "high50_ms", 1e3 * g->high50);
    ew_json_num(&j, "low90_ms", 1e3 * g->low90);
    ew_json_num(&j, "high90_ms", 1e3 * g->high90);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* Without measurements: a prediction by the board's model alone. */
static ew_err first_guess(const struct ew_work_opts *o, bool json)
{
    const struct ew_work_query *query = &o->query;
    const struct ew_network_open_opts how = {.opts = query->net, .shapes = true};
    struct ew_simulated s;
    struct ew_simulated_run r;
    struct ew_network n = {0};
    ew_err e = ew_simulated_init(&s, o->board);
    if (e == EW_OK)
        e = ew_network_open(query->network, &how, &n);
    if (e == EW_OK && query->train)
        e = ew_objective_add(n.graph);
    if (e == EW_OK)
        e = ew_simulated_plan(&s, n.graph, query->train, &r);
    if (e == EW_OK)
        e = ew_simulated_show(&s, &r, query->network, json);
    ew_network_close(&n);
    ew_simulated_fini(&s);
    return e;
}

static ew_err from_stores(struct ew_work_source *s, const struct ew_work_opts *o, bool json)
{
    struct ew_work_query query = o->query;
    struct ew_work_prediction predicted;
    EW_TRY(ew_work_source_open(o->stores, s));
    EW_TRY(ew_work_source_predict(s, &query, &predicted));
    query.threads = predicted.threads;
    return show(&query, predicted.machine, &predicted.run, s, json);
}

ew_err ew_predict_work(const struct ew_work_opts *o, bool json)
{
    struct ew_work_source s;
    EW_CHECK(o->stores || o->board, EW_ERR_USAGE,
             "--network: needs --from STORE, or --board for a first guess");
    EW_CHECK(!o->query.data || o->query.train, EW_ERR_USAGE, "--data: loading goes with --train");
    if (!o->stores)
        return first_guess(o, json);
    EW_CHECK(!o->board, EW_ERR_USAGE,
             "--board is for a first guess without --from; --on names a machine of the stores");
    const ew_err e = from_stores(&s, o, json);
    ew_work_source_close(&s);
    return e;
}

/* ---- A check --------------------------------------------------------------------------------- */

/* Warns if the median spread of repeated measurements is large. */
static ew_err say_spread(struct ew_work_source *s)
{
    double *v = ew_arena_array(&s->arena, (size_t)s->rows.n, sizeof(*v));
    int n = 0;
    EW_CHECK(v, EW_ERR_MEMORY, "no memory");
    for (int i = 0; i < s->rows.n; i++)
        if (s->rows.list[i].slowest > s->rows.list[i].time)
            v[n++] = s->rows.list[i].slowest / s->rows.list[i].time - 1;
    const double apart = n ? ew_median(v, n) : 0;
    if (apart > QUIET)
        EW_WARN("repeats of a bench differ by %.0f %%: the machine is not quiet, which is part of "
                "the error below",
                100 * apart);
    return EW_OK;
}

static void put_score(struct ew_json *j, const char *of, const struct ew_work_errors *c)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "left_out", of);
    ew_json_int(j, "fitted", c->fitted);
    ew_json_int(j, "tested", c->tested);
    ew_json_num(j, "time_error", 100 * c->error);
    ew_json_num(j, "time_error_median", 100 * c->median);
    ew_json_num(j, "in50", c->in50);
    ew_json_num(j, "in90", c->in90);
    ew_json_end(j);
}

static ew_err put_scores(const struct ew_work_errors *thirds, const struct ew_work_errors *networks)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    put_score(&j, "two thirds", thirds);
    if (networks->tested)
        put_score(&j, "a network", networks);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* Charts of the held-out runs: predicted against measured, errors, calibration. */
static ew_err draw(struct ew_work_source *s, const struct ew_work_errors *c, const char *path)
{
    struct ew_figures figures = {.n = 0};
    const size_t n = (size_t)c->tested + 1;
    struct ew_mode_series m = {.workload = "time of a run", .n = c->tested};
    struct ew_holdout t = {.fitted = c->fitted, .n = c->tested};
    m.time = ew_arena_array(&s->arena, n, sizeof(*m.time));
    m.power = ew_arena_array(&s->arena, n, sizeof(*m.power));
    t.row = ew_arena_array(&s->arena, n, sizeof(*t.row));
    t.predicted = ew_arena_array(&s->arena, n, sizeof(*t.predicted));
    EW_CHECK(m.time && m.power && t.row && t.predicted, EW_ERR_MEMORY, "no memory for figures");
    for (int i = 0; i < c->tested; i++) {
        t.row[i] = i;
        t.predicted[i] =
            (struct ew_prediction){.time = c->held_out[i].predicted, .power = {.mid = NAN}};
        m.time[i] = c->held_out[i].time;
        m.power[i] = NAN;
    }
    ew_arena_init(&figures.arena);
    const struct ew_predict_picture p = {.measured = &m, .left_out = &t};
    ew_err e = ew_predict_figures_add(&figures, &p);
    if (e == EW_OK)
        e = ew_predict_figures_write(&figures, path);
    ew_figures_fini(&figures);
    return e;
}

static ew_err check(struct ew_work_source *s, const char *stores, const char *html, bool json)
{
    struct ew_work_errors thirds, networks;
    EW_TRY(ew_work_source_open(stores, s));
    EW_CHECK(s->rows.n >= CHECK, EW_ERR_ARG,
             "%s: %d measured configurations: a check from a third of them needs at least %d",
             stores, s->rows.n, CHECK);
    EW_TRY(say_spread(s));
    EW_TRY(ew_work_check_thirds(&s->arena, s->runs, s->time, s->rows.n, &thirds));
    EW_TRY(ew_work_check_networks(&s->arena, s->runs, s->time, s->rows.n, &networks));
    if (html)
        EW_TRY(draw(s, &thirds, html));
    if (json)
        return put_scores(&thirds, &networks);
    printf("predicted from a third (%d of %d configurations; %d random orders, each third in "
           "turn): mean error of time %.1f %%, median %.1f; %.0f %% in the 50 %%, %.0f %% in the "
           "90 %% interval\n",
           thirds.fitted, s->rows.n, EW_WORK_SHUFFLES, 100 * thirds.error, 100 * thirds.median,
           100 * thirds.in50, 100 * thirds.in90);
    if (networks.tested)
        printf("each network predicted from the others alone: mean error of time %.1f %%, median "
               "%.1f; %.0f %% in the 50 %%, %.0f %% in the 90 %% interval\n",
               100 * networks.error, 100 * networks.median, 100 * networks.in50,
               100 * networks.in90);
    return EW_OK;
}

ew_err ew_predict_work_check(const char *stores, const char *html, bool json)
{
    struct ew_work_source s;
    const ew_err e = check(&s, stores, html, json);
    ew_work_source_close(&s);
    return e;
}
