/* SPDX-License-Identifier: Apache-2.0 */
/* Networks, batches, widths, threads, workers, precisions and machines that were never tried. */
#include "cli/predict_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise/work_check.h"
#include "advise/work_loader.h"
#include "base/json.h"
#include "base/log.h"
#include "base/order_stats.h"
#include "cli/predict_figures.h"
#include "cli/simulated.h"
#include "model/objective.h"

#define QUIET 0.15 /* repeats of a bench on a quiet machine are nearer to each other */
#define CHECK 12   /* measurements that a check from a third needs */

#define PROGRAM_BYTES (9.0 * (1 << 20)) /* of a process without a plan, where no run tells */

/* ---- What a plan asks for -------------------------------------------------------------------- */

static ew_err parse_input(const char *text, struct ew_ints *out)
{
    static const struct ew_field field = {.name = "input", .type = EW_FIELD_INTS, .offset = 0};
    *out = (struct ew_ints){0};
    return *text ? ew_field_parse(&field, text, out) : EW_OK;
}

static ew_err load_of(struct ew_arena *a, const char *network, const struct ew_network_opts *net,
                      bool train, struct ew_work_load *out)
{
    const struct ew_network_how how = {.opts = *net}; /* with weights: they are folded */
    struct ew_network n;
    ew_err e = ew_network_open(network, &how, &n);
    if (e == EW_OK && train)
        e = ew_objective_add(n.graph);
    if (e == EW_OK)
        e = ew_work_load_of(a, n.graph, train, out);
    ew_network_close(&n);
    return e;
}

/* The same network at the same size was asked for before. */
static bool same_plan(const struct ew_work_row *a, const struct ew_work_row *b)
{
    return strcmp(a->network, b->network) == 0 && strcmp(a->input, b->input) == 0 &&
           a->batch == b->batch && a->classes == b->classes && a->train == b->train &&
           fabs(a->width - b->width) < 1e-9;
}

static const char *kind_of(struct ew_arena *a, bool train, const char *precision, bool integers)
{
    return ew_arena_printf(a, "%s%s%s", train ? "train " : "", precision, integers ? "int8" : "");
}

static ew_err run_of(struct ew_arena *a, const struct ew_work_row *r, const struct ew_work_load *l,
                     struct ew_work_run *out)
{
    *out = (struct ew_work_run){.load = l,
                                .threads = (double)r->threads,
                                .size = log((double)r->batch * r->width * r->width),
                                .network = r->network,
                                .kind = kind_of(a, r->train, r->precision, l->integers),
                                .machine = r->machine};
    EW_CHECK(out->kind, EW_ERR_MEMORY, "no memory");
    return EW_OK;
}

/* ---- The stores ------------------------------------------------------------------------------ */

/* The plan of a row, or of one before it; NULL: the network cannot be opened here. */
static ew_err find_load(struct ew_work_source *s, int i, const struct ew_work_load **out)
{
    const struct ew_work_row *r = &s->rows.list[i];
    for (int k = 0; k < i; k++)
        if (same_plan(&s->rows.list[k], r)) {
            *out = s->runs[k].load;
            return EW_OK;
        }
    struct ew_network_opts net = {.batch = r->batch, .width = r->width, .classes = r->classes};
    struct ew_work_load *l = ew_arena_alloc(&s->arena, sizeof(*l));
    EW_CHECK(l, EW_ERR_MEMORY, "no memory");
    const bool ok = parse_input(r->input, &net.input) == EW_OK &&
                    load_of(&s->arena, r->network, &net, r->train, l) == EW_OK;
    if (!ok)
        EW_WARN("%s is left out: %s", r->network, ew_error_message());
    *out = ok ? l : NULL;
    return EW_OK;
}

static ew_err open_networks(struct ew_work_source *s)
{
    int n = 0;
    s->runs = ew_arena_array(&s->arena, (size_t)s->rows.n + 1, sizeof(*s->runs));
    s->time = ew_arena_array(&s->arena, (size_t)s->rows.n + 1, sizeof(*s->time));
    EW_CHECK(s->runs && s->time, EW_ERR_MEMORY, "no memory");
    for (int i = 0; i < s->rows.n; i++) {
        const struct ew_work_load *l = NULL;
        s->rows.list[n] = s->rows.list[i];
        EW_TRY(find_load(s, n, &l));
        if (!l)
            continue;
        EW_TRY(run_of(&s->arena, &s->rows.list[n], l, &s->runs[n]));
        s->time[n] = s->rows.list[n].time;
        n++;
    }
    s->rows.n = n;
    return EW_OK;
}

ew_err ew_work_source_open(const char *stores, struct ew_work_source *s)
{
    *s = (struct ew_work_source){.time = NULL};
    ew_arena_init(&s->arena);
    char *list = ew_arena_strdup(&s->arena, stores), *path;
    EW_CHECK(list, EW_ERR_MEMORY, "no memory");
    while ((path = strsep(&list, ",")))
        EW_TRY(ew_work_rows_read(&s->arena, path, &s->rows));
    EW_TRY(open_networks(s));
    EW_CHECK(s->rows.n >= EW_WORK_MIN, EW_ERR_ARG,
             "%s: %d measured configuration%s of networks: a prediction needs at least %d; "
             "'edgewise bench NET --batch B --threads T --db STORE' adds one",
             stores, s->rows.n, s->rows.n == 1 ? "" : "s", EW_WORK_MIN);
    return ew_work_fit(&s->arena, s->runs, s->time, s->rows.n, &s->predictor);
}

void ew_work_source_close(struct ew_work_source *s)
{
    ew_arena_fini(&s->arena);
}

/* ---- The loader ------------------------------------------------------------------------------ */

/* What a data set costs a worker, and how far steps with it are from what that says. */
struct loader {
    double image_s;    /* of one worker */
    double off, apart; /* in ln: the median, and the standard deviation around it */
    int n;
};

/* A worker's time for an image is the median over all runs of the data set on this machine. */
static ew_err find_loader(struct ew_work_source *s, const struct ew_work_opts *o,
                          const char *machine, struct loader *out)
{
    double *v = ew_arena_array(&s->arena, (size_t)s->rows.n + 1, sizeof(*v));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory");
    *out = (struct loader){.n = 0};
    for (int i = 0; i < s->rows.n; i++) {
        const struct ew_work_row *r = &s->rows.list[i];
        if (strcmp(r->dataset, o->data) == 0 && strcmp(r->machine, machine) == 0 &&
            r->loader_s > 0 && r->step_s > 0)
            v[out->n++] = r->loader_s;
    }
    EW_CHECK(out->n, EW_ERR_NOT_FOUND,
             "--data %s: no training run on '%s' says what loading it takes; 'edgewise train NET "
             "--data %s --epochs 1 --db STORE' does",
             o->data, machine, o->data);
    out->image_s = ew_median(v, out->n);
    int n = 0;
    for (int i = 0; i < s->rows.n; i++) {
        const struct ew_work_row *r = &s->rows.list[i];
        if (strcmp(r->dataset, o->data) != 0 || strcmp(r->machine, machine) != 0 ||
            !(r->loader_s > 0 && r->step_s > 0))
            continue;
        const struct ew_loader_case c = {.compute_s = r->time,
                                         .load_s = out->image_s * (double)r->batch,
                                         .workers = (double)r->workers,
                                         .threads = (double)r->threads,
                                         .cores = (double)r->cores};
        v[n++] = log(r->step_s / ew_loader_step(&c));
    }
    double sum = 0.15 * 0.15 * 3; /* as if three others had been 15 % off */
    out->off = ew_median(v, n);
    for (int i = 0; i < n; i++)
        sum += (v[i] - out->off) * (v[i] - out->off);
    out->apart = sqrt(sum / (n + 3));
    return EW_OK;
}

static int64_t cores_of(const struct ew_work_source *s, const char *machine)
{
    for (int i = 0; i < s->rows.n; i++)
        if (strcmp(s->rows.list[i].machine, machine) == 0)
            return s->rows.list[i].cores;
    return 1;
}

/* A step with its loader, from one without. */
static struct ew_guess with_loader(const struct loader *l, const struct ew_work_opts *o,
                                   double cores, const struct ew_guess *g)
{
    struct ew_loader_case c = {.compute_s = g->mid,
                               .load_s = l->image_s * (double)o->net.batch,
                               .workers = (double)o->workers,
                               .threads = (double)o->threads,
                               .cores = cores};
    const double mid = ew_loader_step(&c);
    c.compute_s = g->high90; /* as much of the step's doubt as it has a part in the whole */
    const double doubt = log(ew_loader_step(&c) / mid) / 1.645;
    const double sd = hypot(doubt, l->apart);
    return ew_guess_of(log(mid) + l->off, sd, sd);
}

/* ---- A prediction ---------------------------------------------------------------------------- */

static void show_text(const struct ew_work_opts *o, const char *machine, const struct ew_guess *g,
                      const struct ew_work_source *s)
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
    printf(": %.4g ms, in 90 of 100 cases %.4g to %.4g\n", 1e3 * g->mid, 1e3 * g->low90,
           1e3 * g->high90);
    printf("on %s, from %d configurations that were measured (%d of them there, %d of this "
           "network)\n",
           machine, s->rows.n, here, of_network);
}

static ew_err show(const struct ew_work_opts *o, const char *machine, const struct ew_guess *g,
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

/* The precision asked for was seen, or it cannot be told. */
static ew_err check_precision(const struct ew_work_source *s, const struct ew_work_opts *o)
{
    for (int i = 0; i < s->rows.n; i++)
        if (!o->precision || !*o->precision || strcmp(s->rows.list[i].precision, o->precision) == 0)
            return EW_OK;
    return ew_fail(EW_ERR_NOT_FOUND,
                   "--precision %s: no run of any network in it; int8 networks are named by their "
                   "files",
                   o->precision);
}

/* Its own measurement; nan: none. */
static double find_measured(const struct ew_work_source *s, const struct ew_work_row *asked,
                            bool with_loader)
{
    for (int i = 0; i < s->rows.n; i++) {
        const struct ew_work_row *r = &s->rows.list[i];
        if (same_plan(r, asked) && r->threads == asked->threads &&
            strcmp(r->machine, asked->machine) == 0 &&
            strcmp(r->precision, asked->precision) == 0 &&
            (!with_loader ||
             (strcmp(r->dataset, asked->dataset) == 0 && r->workers == asked->workers)))
            return with_loader ? r->step_s : r->time;
    }
    return NAN;
}

/* A plan that was asked for before. */
struct ew_work_plan {
    struct ew_work_row row;
    struct ew_work_load load;
    struct ew_work_plan *next;
};

static ew_err plan_of(struct ew_work_source *s, const struct ew_work_opts *o,
                      const struct ew_work_row *row, const struct ew_work_load **out)
{
    struct ew_work_plan *p = s->plans;
    while (p && !same_plan(&p->row, row))
        p = p->next;
    if (!p) {
        p = ew_arena_alloc(&s->arena, sizeof(*p));
        EW_CHECK(p, EW_ERR_MEMORY, "no memory");
        EW_TRY(load_of(&s->arena, o->network, &o->net, o->train, &p->load));
        p->row = *row;
        p->next = s->plans;
        s->plans = p;
    }
    *out = &p->load;
    return EW_OK;
}

/* What a process takes beside the plan (the program, its libraries, a loader), at the median of
 * this kind of run on this machine. */
static double beside_plan(const struct ew_work_source *s, const struct ew_work_row *of)
{
    double v[EW_WORK_STORE_ROWS];
    int n = 0;
    for (int i = 0; i < s->rows.n; i++) {
        const struct ew_work_row *r = &s->rows.list[i];
        if (r->beside_bytes > 0 && r->train == of->train && strcmp(r->machine, of->machine) == 0)
            v[n++] = r->beside_bytes;
    }
    return n ? ew_median(v, n) : PROGRAM_BYTES;
}

ew_err ew_work_source_ask(struct ew_work_source *s, const struct ew_work_opts *o,
                          struct ew_work_answer *out)
{
    struct ew_work_opts asked = *o;
    const struct ew_work_load *l = NULL;
    struct ew_work_run run;
    struct loader loader;
    EW_TRY(ew_work_rows_machine(&s->arena, &s->rows, o->on, &out->machine));
    if (asked.precision && strcmp(asked.precision, "fp32") == 0)
        asked.precision = NULL;
    EW_TRY(check_precision(s, &asked));
    out->cores = cores_of(s, out->machine);
    out->threads = asked.threads = o->threads ? o->threads : out->cores;
    const struct ew_work_row row = {.network = o->network,
                                    .input = "",
                                    .machine = out->machine,
                                    .precision = asked.precision ? asked.precision : "",
                                    .batch = o->net.batch,
                                    .classes = o->net.classes,
                                    .threads = asked.threads,
                                    .width = o->net.width,
                                    .train = o->train,
                                    .dataset = o->data ? o->data : "",
                                    .workers = o->workers};
    EW_TRY(plan_of(s, o, &row, &l));
    EW_TRY(run_of(&s->arena, &row, l, &run));
    out->run = ew_work_predict(s->predictor, &run);
    out->memory_mib = (l->memory_bytes + beside_plan(s, &row)) / (1 << 20);
    out->measured_s = o->net.input.n ? (double)NAN : find_measured(s, &row, o->data != NULL);
    if (o->data) {
        EW_TRY(find_loader(s, o, out->machine, &loader));
        out->run = with_loader(&loader, &asked, (double)out->cores, &out->run);
    }
    return EW_OK;
}

static ew_err from_stores(struct ew_work_source *s, const struct ew_work_opts *o, bool json)
{
    struct ew_work_opts asked = *o;
    struct ew_work_answer answer;
    EW_TRY(ew_work_source_open(o->stores, s));
    EW_TRY(ew_work_source_ask(s, o, &answer));
    asked.threads = answer.threads;
    return show(&asked, answer.machine, &answer.run, s, json);
}

ew_err ew_predict_work(const struct ew_work_opts *o, bool json)
{
    struct ew_work_source s;
    EW_CHECK(o->stores || o->board, EW_ERR_USAGE,
             "--network: needs --from STORE, or --board for a first guess");
    EW_CHECK(!o->data || o->train, EW_ERR_USAGE, "--data: loading goes with --train");
    if (!o->stores)
        return first_guess(o, json);
    EW_CHECK(!o->board, EW_ERR_USAGE,
             "--board is for a first guess without --from; --on names a machine of the stores");
    const ew_err e = from_stores(&s, o, json);
    ew_work_source_close(&s);
    return e;
}

/* ---- A check --------------------------------------------------------------------------------- */

/* Warns where repeats of a configuration lie far apart at the median. */
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
        EW_WARN("repeats of a bench lie %.0f %% apart: the machine is not quiet, and part of the "
                "error below is that",
                100 * apart);
    return EW_OK;
}

static void put_score(struct ew_json *j, const char *of, const struct ew_work_score *c)
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

static ew_err put_scores(const struct ew_work_score *thirds, const struct ew_work_score *networks)
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

/* Predicted against measured, errors and calibration, of the thirds. */
static ew_err draw(struct ew_work_source *s, const struct ew_work_score *c, const char *path)
{
    struct ew_figures figures = {.n = 0};
    const size_t n = (size_t)c->tested + 1;
    struct ew_series_of_modes m = {.workload = "time of a run", .n = c->tested};
    struct ew_trial t = {.fitted = c->fitted, .n = c->tested};
    m.time = ew_arena_array(&s->arena, n, sizeof(*m.time));
    m.power = ew_arena_array(&s->arena, n, sizeof(*m.power));
    t.row = ew_arena_array(&s->arena, n, sizeof(*t.row));
    t.predicted = ew_arena_array(&s->arena, n, sizeof(*t.predicted));
    EW_CHECK(m.time && m.power && t.row && t.predicted, EW_ERR_MEMORY, "no memory for figures");
    for (int i = 0; i < c->tested; i++) {
        t.row[i] = i;
        t.predicted[i] = (struct ew_prediction){.time = c->trials[i].guess, .power = {.mid = NAN}};
        m.time[i] = c->trials[i].time;
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
    struct ew_work_score thirds, networks;
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
    printf("from a third (%d of %d configurations; %d random orders, each third in turn): time "
           "%.1f %% off, median %.1f; %.0f %% in the 50 %%, %.0f %% in the 90 %% interval\n",
           thirds.fitted, s->rows.n, EW_WORK_SHUFFLES, 100 * thirds.error, 100 * thirds.median,
           100 * thirds.in50, 100 * thirds.in90);
    if (networks.tested)
        printf("a network that was never run, from the others: time %.1f %% off, median %.1f; %.0f "
               "%% in the 50 %%, %.0f %% in the 90 %% interval\n",
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
