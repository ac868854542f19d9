/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions of runs that were not measured. */
#include "measure/work_source.h"

#include <math.h>
#include <string.h>

#include "advise/work_loader.h"
#include "base/log.h"
#include "base/order_stats.h"
#include "model/objective.h"

#define PROGRAM_BYTES (9.0 * (1 << 20)) /* of a process without a plan, if no run gives it */

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
    const struct ew_network_open_opts how = {.opts = *net}; /* with weights: folding needs them */
    struct ew_network n;
    ew_err e = ew_network_open(network, &how, &n);
    if (e == EW_OK && train)
        e = ew_objective_add(n.graph);
    if (e == EW_OK)
        e = ew_work_load_of(a, n.graph, train, out);
    ew_network_close(&n);
    return e;
}

/* Whether both rows have the same network at the same size. */
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

/* The plan of row i, or of an equal earlier one; NULL: the network cannot be opened here. */
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

/* Time of a data set per worker, and the error of steps predicted from it. */
struct loader {
    double image_s;    /* seconds of one worker per image */
    double off, apart; /* ln of measured / predicted: median, and standard deviation around it */
    int n;
};

/* Time of one worker per image: the median over all runs on the data set on this machine. */
static ew_err find_loader(struct ew_work_source *s, const struct ew_work_query *o,
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
    double sum = 0.15 * 0.15 * 3; /* prior: three runs that are 15 % off */
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

/* Predicts a step with its loader from one without. */
static struct ew_interval with_loader(const struct loader *l, const struct ew_work_query *o,
                                      double cores, const struct ew_interval *g)
{
    struct ew_loader_case c = {.compute_s = g->mid,
                               .load_s = l->image_s * (double)o->net.batch,
                               .workers = (double)o->workers,
                               .threads = (double)o->threads,
                               .cores = cores};
    const double mid = ew_loader_step(&c);
    c.compute_s = g->high90; /* widens the interval by the compute part's share */
    const double doubt = log(ew_loader_step(&c) / mid) / 1.645;
    const double sd = hypot(doubt, l->apart);
    return ew_interval_lognormal(log(mid) + l->off, sd, sd);
}

/* ---- A prediction ---------------------------------------------------------------------------- */

/* Fails if no run used the precision. */
static ew_err check_precision(const struct ew_work_source *s, const struct ew_work_query *o)
{
    for (int i = 0; i < s->rows.n; i++)
        if (!o->precision || !*o->precision || strcmp(s->rows.list[i].precision, o->precision) == 0)
            return EW_OK;
    return ew_fail(EW_ERR_NOT_FOUND,
                   "--precision %s: no run used it; int8 networks are named by their files",
                   o->precision);
}

/* The measurement of exactly this run; nan: none. */
static double find_measured(const struct ew_work_source *s, const struct ew_work_row *query,
                            bool with_loader)
{
    for (int i = 0; i < s->rows.n; i++) {
        const struct ew_work_row *r = &s->rows.list[i];
        if (same_plan(r, query) && r->threads == query->threads &&
            strcmp(r->machine, query->machine) == 0 &&
            strcmp(r->precision, query->precision) == 0 &&
            (!with_loader ||
             (strcmp(r->dataset, query->dataset) == 0 && r->workers == query->workers)))
            return with_loader ? r->step_s : r->time;
    }
    return NAN;
}

/* A plan of an earlier request. */
struct ew_work_plan {
    struct ew_work_row row;
    struct ew_work_load load;
    struct ew_work_plan *next;
};

static ew_err plan_of(struct ew_work_source *s, const struct ew_work_query *o,
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

/* Memory of a process beside the plan (program, libraries, loader): the median of runs of this kind
 * on this machine. */
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

ew_err ew_work_source_predict(struct ew_work_source *s, const struct ew_work_query *o,
                              struct ew_work_prediction *out)
{
    struct ew_work_query query = *o;
    const struct ew_work_load *l = NULL;
    struct ew_work_run run;
    struct loader loader;
    EW_TRY(ew_work_rows_machine(&s->arena, &s->rows, o->on, &out->machine));
    if (query.precision && strcmp(query.precision, "fp32") == 0)
        query.precision = NULL;
    EW_TRY(check_precision(s, &query));
    out->cores = cores_of(s, out->machine);
    out->threads = query.threads = o->threads ? o->threads : out->cores;
    const struct ew_work_row row = {.network = o->network,
                                    .input = "",
                                    .machine = out->machine,
                                    .precision = query.precision ? query.precision : "",
                                    .batch = o->net.batch,
                                    .classes = o->net.classes,
                                    .threads = query.threads,
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
        out->run = with_loader(&loader, &query, (double)out->cores, &out->run);
    }
    return EW_OK;
}
