/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise predict: time, power and energy of power modes that were never tried. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "advise/mode_grid.h"
#include "advise/simulate.h"
#include "advise/store/advice_source.h"
#include "advise/store/measured_store.h"
#include "advise/store/mode_check.h"
#include "base/file.h"
#include "base/log.h"
#include "base/order_stats.h"
#include "cli/cmd.h"
#include "cli/predict_figures.h"
#include "cli/predict_show.h"
#include "cli/predict_work.h"
#include "cli/study_until.h"
#include "store/store.h"

struct opts {
    const char *from, *board, *modes, *workload, *csv, *simulate, *network, *until, *html;
    const char *on, *precision, *data;
    struct ew_network_opts net;
    int64_t count, workers, seed, threads;
    bool plan, check, compare, train;
};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "from", .type = EW_FIELD_STR, .offset = offsetof(struct opts, from),
     .metavar = "FILE.csv|STORE...",
     .help = "measurements: a results database, or CSV with columns cores, cpu_mhz, gpu_mhz, "
     "mem_mhz, time_s, power_w, and workload if there are several.  With --network, or "
     "--check of benches, databases of several machines may be given and are fitted "
     "jointly"},
    {.name = "board", .type = EW_FIELD_STR, .offset = offsetof(struct opts, board),
     .metavar = "NAME", .help = "board profile; default: the one whose clocks match"},
    {.name = "modes", .type = EW_FIELD_STR, .offset = offsetof(struct opts, modes),
     .metavar = "all|FILE.csv|LIST",
     .help = "modes to predict: all of the board's, those of a file, or a list of "
     "CORES/CPU/GPU/MEM in MHz; default: rows without a time, else all"},
    {.name = "workload", .type = EW_FIELD_STR, .offset = offsetof(struct opts, workload),
     .metavar = "NAME", .help = "only this workload of the file"},
    {.name = "plan", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, plan),
     .help = "choose the modes to measure next, and estimate the precision they give"},
    {.name = "check", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, check),
     .help = "hold out measured modes; print errors and interval coverage"},
    {.name = "compare", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, compare),
     .help = "cross-validate several methods on the same modes: parametric models, Gaussian "
     "process, linear regression"},
    {.name = "simulate", .type = EW_FIELD_STR, .offset = offsetof(struct opts, simulate),
     .metavar = "BOARD",
     .help = "simulated epochs of another board, as CSV for --from; --workload is lenet5, "
     "resnet18 or mobilenet_v3_large; see --workers"},
    {.name = "workers", .type = EW_FIELD_INT, .offset = offsetof(struct opts, workers),
     .def = "4", .min = 0, .max = 64, .help = "loader threads, for --simulate and --data"},
    {.name = "seed", .type = EW_FIELD_INT, .offset = offsetof(struct opts, seed), .def = "0",
     .min = 0, .max = 1e9, .help = "seed of the simulation's noise; 0: none"},
    {.name = "count", .type = EW_FIELD_INT, .offset = offsetof(struct opts, count),
     .min = 0, .max = 1000, .letter = 'n',
     .help = "number of modes to plan, or to fit in a check; default: 10, in a check 10 and 50"},
    {.name = "until", .type = EW_FIELD_STR, .offset = offsetof(struct opts, until),
     .metavar = "time=5%,power=4%",
     .help = "plan: stop at the number of modes that should give this precision"},
    {.name = "network", .type = EW_FIELD_STR, .offset = offsetof(struct opts, network),
     .metavar = "NAME",
     .help = "predict the time of this network instead of modes, from the benches of a results "
     "database, or with --board a first estimate without any"},
    EW_NETWORK_FIELDS(struct opts, net),
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads), .def = "0",
     .min = 0, .max = 256, .metavar = "N",
     .help = "--network: number of threads; 0: one per CPU"},
    {.name = "train", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, train),
     .help = "--network: a training step"},
    {.name = "data", .type = EW_FIELD_STR, .offset = offsetof(struct opts, data), .metavar = "NAME",
     .help = "--network --train: include loading of this data set, as measured in the databases' "
     "training runs (see --workers)"},
    {.name = "precision", .type = EW_FIELD_STR, .offset = offsetof(struct opts, precision),
     .metavar = "NAME",
     .help = "--network: fp32, tf32, bf16, fp16; default: that of benches without the option"},
    {.name = "on", .type = EW_FIELD_STR, .offset = offsetof(struct opts, on), .metavar = "NAME",
     .help = "--network: part of the name of a machine or device in the databases (unit, board, "
     "CPU or cuda); default: the first"},
    {.name = "html", .type = EW_FIELD_STR, .offset = offsetof(struct opts, html),
     .metavar = "FILE",
     .help = "also write charts: predicted against measured, errors, calibration, Pareto front"},
    {.name = "csv", .type = EW_FIELD_STR, .offset = offsetof(struct opts, csv),
     .metavar = "FILE",
     .help = "write all predictions, or the plan, as CSV; - is standard output"},
    EW_FIELD_END};
/* clang-format on */

struct job {
    struct ew_cmd_call *c;
    const struct opts *o;
    struct ew_advice_source s;
    struct ew_json j;
    struct ew_file_out csv;
    struct ew_figures figures; /* for --html */
    bool to_stdout;
};

static bool wanted(const struct job *b, const char *workload)
{
    return !b->o->workload || strcmp(b->o->workload, workload) == 0;
}

/* ---- Plan ------------------------------------------------------------------------------------ */

/* Indices of the candidates that are measured already. */
static ew_err already(struct job *b, struct ew_mode *candidates, int n, const int **out, int *count)
{
    int *places = ew_arena_array(&b->s.arena, (size_t)b->s.measured.n + 1, sizeof(*places));
    EW_CHECK(places, EW_ERR_MEMORY, "no memory");
    *count = 0;
    for (int i = 0; i < b->s.measured.n; i++) {
        const struct ew_measured_row *r = &b->s.measured.rows[i];
        if (isnan(r->time) || !wanted(b, r->workload))
            continue;
        for (int k = 0; k < n; k++)
            if (fabs(candidates[k].cores - r->mode.cores) < 0.5 &&
                fabs(candidates[k].cpu / r->mode.cpu - 1) < 0.005 &&
                fabs(candidates[k].gpu / r->mode.gpu - 1) < 0.005 &&
                fabs(candidates[k].mem / r->mode.mem - 1) < 0.005) {
                places[(*count)++] = k;
                break;
            }
    }
    *out = places;
    return EW_OK;
}

/* Cuts the design after the step with the precision of --until. */
static ew_err enough_steps(const struct job *b, const struct ew_design_step *steps, int *n)
{
    struct ew_until u;
    EW_TRY(ew_until_parse(b->o->until, &u));
    if (!b->o->until)
        return EW_OK;
    for (int i = 0; i < *n; i++)
        if (ew_until_reached(&u, steps[i].time_after, steps[i].power_after)) {
            *n = i + 1;
            return EW_OK;
        }
    EW_WARN("%d modes are not expected to be enough for %s: a larger --count plans more", *n,
            b->o->until);
    return EW_OK;
}

static ew_err plan(struct job *b)
{
    struct ew_mode *modes;
    struct ew_design d = {0};
    const int want = b->o->count ? (int)b->o->count : b->o->until ? 60 : 10;
    EW_TRY(ew_advice_modes(&b->s, b->o->workload ? b->o->workload : "", b->o->modes, &modes, &d.n));
    d.candidates = modes;
    EW_TRY(already(b, modes, d.n, &d.measured, &d.n_measured));
    struct ew_design_step *steps = ew_arena_array(&b->s.arena, (size_t)want, sizeof(*steps));
    int n;
    EW_CHECK(steps, EW_ERR_MEMORY, "no memory");
    EW_TRY(ew_design_modes(&d, want, steps, &n));
    EW_TRY(enough_steps(b, steps, &n));
    const struct ew_planned p = {
        .lacks = ew_advice_lacks(&b->s), .modes = modes, .steps = steps, .n = n};
    if (b->csv.f)
        ew_plan_csv(b->csv.f, &p);
    if (b->to_stdout)
        ew_plan_csv(stdout, &p);
    else if (b->c->json)
        ew_plan_json(&b->j, &p);
    else
        return ew_plan_text(&p);
    return EW_OK;
}

/* ---- Check ----------------------------------------------------------------------------------- */

static ew_err check(struct job *b)
{
    const struct ew_mode_check o = {
        .workload = b->o->workload, .count = (int)b->o->count, .compare = b->o->compare};
    struct ew_check_row *rows;
    int n;
    ew_err err = ew_mode_check(&b->s, &o, &rows, &n);
    if (err == EW_OK && b->c->json)
        ew_check_json(&b->j, rows, n);
    else if (err == EW_OK)
        err = ew_check_text(rows, n);
    ew_free_ptr(&rows);
    return err;
}

/* ---- Predict --------------------------------------------------------------------------------- */

/* Marks the Pareto front in time and energy; without power, the fastest. */
static ew_err mark_front(struct ew_arena *a, const struct ew_prediction *v, int n, bool **out)
{
    double *time = ew_arena_array(a, (size_t)n, sizeof(*time));
    double *energy = ew_arena_array(a, (size_t)n, sizeof(*energy));
    *out = ew_arena_array(a, (size_t)n, sizeof(**out));
    EW_CHECK(time && energy && *out, EW_ERR_MEMORY, "no memory for %d modes", n);
    for (int i = 0; i < n; i++) {
        time[i] = v[i].time.mid;
        energy[i] = isfinite(v[i].energy.mid) ? v[i].energy.mid : 0;
    }
    return ew_pareto(time, energy, n, *out);
}

/* Figures of predictions of held-out modes: leave-one-out for few modes; for many, all but ten
 * designed ones are held out. */
static ew_err add_pictures(struct job *b, const struct ew_mode_series *m,
                           const struct ew_predicted *predicted)
{
    struct ew_holdout *t = ew_arena_alloc(&b->s.arena, sizeof(*t));
    const struct ew_holdout_board board = ew_advice_board(&b->s);
    int *rows, n_rows;
    EW_CHECK(t, EW_ERR_MEMORY, "no memory");
    if (ew_mode_check_leaves_enough(m, 10)) {
        EW_TRY(ew_holdout_design(&b->s.arena, m, 10, &rows, &n_rows));
        EW_TRY(ew_holdout_split(&b->s.arena,
                                &(struct ew_holdout_setup){m, &board, EW_METHOD_PHYSICAL}, rows,
                                n_rows, t));
    } else {
        EW_CHECK(m->n > EW_PREDICT_MIN, EW_ERR_ARG,
                 "--html: %d measured modes; the charts hold some of them out and need at least %d",
                 m->n, EW_PREDICT_MIN + 1);
        EW_TRY(ew_holdout_leave_one_out(
            &b->s.arena, &(struct ew_holdout_setup){m, &board, EW_METHOD_PHYSICAL}, t));
    }
    const struct ew_predict_picture p = {.measured = m, .left_out = t, .predicted = predicted};
    return ew_predict_figures_add(&b->figures, &p);
}

static ew_err predict_workload(struct job *b, const char *workload)
{
    struct ew_arena *a = &b->s.arena;
    struct ew_mode_series m;
    struct ew_predictor *p;
    struct ew_mode *modes;
    bool *front;
    struct ew_predicted out = {.workload = workload, .board = b->s.board ? b->s.board->name : ""};
    EW_TRY(ew_measured_of(a, &b->s.measured, workload, false, &m));
    EW_TRY(ew_advice_fit(&b->s, &m, &p));
    EW_TRY(ew_advice_modes(&b->s, workload, b->o->modes, &modes, &out.n));
    struct ew_prediction *v = ew_arena_array(a, (size_t)out.n, sizeof(*v));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory for %d modes", out.n);
    EW_TRY(ew_predict(p, modes, out.n, v));
    EW_TRY(mark_front(a, v, out.n, &front));
    out.modes = modes;
    out.lacks = ew_advice_lacks(&b->s);
    out.measured = m.n;
    out.simulated = b->s.measured.simulated;
    out.v = v;
    out.front = front;
    if (b->o->html)
        EW_TRY(add_pictures(b, &m, &out));
    if (b->csv.f || b->to_stdout)
        ew_predicted_csv(b->to_stdout ? stdout : b->csv.f, &out);
    if (b->c->json)
        ew_predicted_json(&b->j, &out);
    else if (!b->to_stdout)
        return ew_predicted_text(&out);
    return EW_OK;
}

static ew_err predict(struct job *b)
{
    const struct ew_measured *f = &b->s.measured;
    bool any = false;
    if (b->csv.f || b->to_stdout)
        ew_predicted_csv_head(b->to_stdout ? stdout : b->csv.f, ew_advice_lacks(&b->s));
    if (b->c->json)
        ew_json_array(&b->j, NULL);
    for (int i = 0; i < f->n_workloads; i++)
        if (wanted(b, f->workloads[i])) {
            EW_TRY(predict_workload(b, f->workloads[i]));
            any = true;
        }
    EW_CHECK(any, EW_ERR_NOT_FOUND, "%s: no workload '%s'", f->file, b->o->workload);
    if (b->c->json)
        ew_json_end(&b->j);
    return b->o->html ? ew_predict_figures_write(&b->figures, b->o->html) : EW_OK;
}

/* ---- Simulate -------------------------------------------------------------------------------- */

static ew_err simulate_work(struct job *b, FILE *out, const struct ew_sim_work *w,
                            const struct ew_mode *modes, int n)
{
    for (int i = 0; i < n; i++) {
        struct ew_sim_epoch e;
        const uint64_t seed = b->o->seed ? (uint64_t)(b->o->seed * 1000003 + i) : 0;
        const struct ew_sim_setting s = {
            .mode = modes[i], .workers = (int)b->o->workers, .seed = seed};
        EW_TRY(ew_simulate(b->s.board, w, &s, &e));
        fprintf(out, "%s,", w->network);
        ew_mode_csv(out, &modes[i], ew_profile_lacks(b->s.board));
        fprintf(out, ",%.6g,%.5g,%.6g,%.6g,simulated\n", e.epoch_s, e.power_w, e.compute_s,
                e.stall_s);
    }
    return EW_OK;
}

static ew_err simulate_to(struct job *b, FILE *out, const struct ew_mode *modes, int n)
{
    const struct ew_sim_work *w = NULL;
    if (b->o->workload)
        w = ew_sim_work_find(b->o->workload);
    EW_CHECK(w || !b->o->workload, EW_ERR_NOT_FOUND,
             "no simulated workload '%s': lenet5, resnet18 and mobilenet_v3_large are known",
             b->o->workload);
    fputs("workload,", out);
    ew_mode_csv_head(out, ew_profile_lacks(b->s.board));
    fputs(",time_s,power_w,compute_s,stall_s,quality\n", out);
    for (int i = 0; ew_sim_work_at(i); i++)
        if (!w || w == ew_sim_work_at(i))
            EW_TRY(simulate_work(b, out, ew_sim_work_at(i), modes, n));
    return EW_OK;
}

static ew_err simulate(struct job *b)
{
    struct ew_mode *modes;
    int n;
    EW_TRY(ew_advice_modes(&b->s, "", b->o->modes, &modes, &n));
    return simulate_to(b, b->csv.f ? b->csv.f : stdout, modes, n);
}

/* The named modes of the board's profile. */
static ew_err named_modes(struct job *b, struct ew_mode **out, int *n)
{
    const struct ew_profile *p = b->s.board;
    if (b->o->modes || !p->n_modes)
        return ew_advice_modes(&b->s, "", b->o->modes, out, n);
    *n = p->n_modes;
    *out = ew_arena_array(&b->s.arena, (size_t)*n, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for %d modes", *n);
    for (int i = 0; i < *n; i++) {
        (*out)[i] = ew_sim_top(p);
        EW_TRY(ew_grid_mode(p, p->modes[i].name, &(*out)[i]));
    }
    return EW_OK;
}

/* Simulates a board's modes, and validates predictions from some of them on the others. */
static ew_err check_simulated(struct job *b)
{
    struct ew_mode *modes;
    char *text = NULL;
    size_t size;
    int n;
    EW_TRY(named_modes(b, &modes, &n));
    FILE *out = open_memstream(&text, &size);
    EW_CHECK(out, EW_ERR_MEMORY, "no memory for a simulation");
    ew_err err = simulate_to(b, out, modes, n);
    if (fclose(out) != 0 && err == EW_OK)
        err = ew_fail(EW_ERR_MEMORY, "no memory for a simulation");
    char *rows = err == EW_OK ? ew_arena_strdup(&b->s.arena, text) : NULL;
    free(text);
    EW_TRY(err);
    EW_CHECK(rows, EW_ERR_MEMORY, "no memory for a simulation");
    EW_TRY(ew_measured_parse(&b->s.arena, b->o->simulate, rows, &b->s.measured));
    if (!b->c->json)
        printf("%d modes of %s, simulated:\n", n, b->o->simulate);
    return check(b);
}

static ew_err work(struct job *b)
{
    const struct opts *o = b->o;
    const bool checks = o->check || o->compare;
    EW_CHECK(
        !o->simulate || (!o->from && !o->plan && !o->board && (checks || !b->c->json)),
        EW_ERR_USAGE,
        "predict: --simulate names its board and writes CSV: not with --from, --plan or --json");
    b->to_stdout = o->csv && strcmp(o->csv, "-") == 0;
    EW_CHECK(!b->to_stdout || !b->c->json, EW_ERR_USAGE,
             "predict: --csv - and --json both write to standard output");
    EW_CHECK(!o->csv || !checks, EW_ERR_USAGE,
             "predict: --csv writes predictions or the plan: not with --check or --compare");
    EW_CHECK(o->from || o->plan || o->simulate, EW_ERR_USAGE,
             "predict: needs --from FILE.csv or STORE, or --plan, or --network");
    EW_CHECK(o->plan + checks < 2, EW_ERR_USAGE, "predict: --plan and --check exclude each other");
    EW_CHECK(
        !o->html || !(o->plan || checks || o->simulate), EW_ERR_USAGE,
        "predict: --html draws predictions: not with --plan, --check, --compare or --simulate");
    EW_CHECK(!o->until || o->plan, EW_ERR_USAGE, "predict: --until goes with --plan");
    EW_CHECK(!o->from || !strchr(o->from, ','), EW_ERR_USAGE,
             "predict: several --from are for --network and for --check of benches");
    EW_CHECK(!o->on && !o->precision && !o->data, EW_ERR_USAGE,
             "predict: --on, --precision and --data go with --network");
    EW_TRY(ew_advice_open(o->from, o->simulate ? o->simulate : o->board, &b->s));
    EW_CHECK(
        !b->s.measured.has_more || b->s.measured.has_clocks || o->simulate, EW_ERR_ARG,
        "%s: no runs in power modes; --network predicts another network, --check prints how well",
        b->s.measured.file);
    if (o->from && !o->board && b->s.board)
        EW_INFO("%s: its clocks match the profile %s", o->from, b->s.board->name);
    if (o->csv && !b->to_stdout)
        EW_TRY(ew_file_out_open(o->csv, &b->csv));
    if (o->simulate)
        return checks ? check_simulated(b) : simulate(b);
    if (o->plan)
        return plan(b);
    return checks ? check(b) : predict(b);
}

/* Whether to validate by network, batch and threads: for a store whose runs have no power modes,
 * and for several stores. */
static bool is_bench_store(const struct opts *o)
{
    struct ew_advice_source s;
    if (o->from && strchr(o->from, ','))
        return true;
    if (!o->from || !ew_store_is(o->from))
        return false;
    const bool is = ew_advice_open(o->from, NULL, &s) == EW_OK && !s.measured.has_clocks;
    ew_advice_close(&s);
    return is;
}

/* The options of modes have no meaning for a network. */
static ew_err check_network(const struct ew_cmd_call *c)
{
    static const char *const of_modes[] = {"modes",   "workload", "plan", "check",
                                           "compare", "simulate", "seed", "count",
                                           "until",   "html",     "csv"};
    for (size_t i = 0; i < EW_COUNT(of_modes); i++)
        EW_CHECK(!ew_cmd_given(c, of_modes[i]), EW_ERR_USAGE,
                 "predict: --%s does not go with --network", of_modes[i]);
    return EW_OK;
}

static ew_err run(struct ew_cmd_call *c)
{
    struct job b = {.c = c, .o = c->opts};
    const struct opts *o = c->opts;
    if (o->network) {
        EW_TRY(check_network(c));
        const struct ew_work_opts w = {.stores = o->from,
                                       .board = o->board,
                                       .query = {.network = o->network,
                                                 .net = o->net,
                                                 .on = o->on,
                                                 .precision = o->precision,
                                                 .data = o->data,
                                                 .workers = o->workers,
                                                 .threads = o->threads,
                                                 .train = o->train}};
        return ew_predict_work(&w, c->json);
    }
    if (o->check && is_bench_store(o))
        return ew_predict_work_check(o->from, o->html, c->json);
    ew_arena_init(&b.s.arena);
    ew_arena_init(&b.figures.arena);
    if (c->json)
        ew_json_init(&b.j, stdout);
    ew_err err = work(&b);
    if (err != EW_OK)
        ew_file_out_abort(&b.csv);
    else if (b.csv.f)
        err = ew_file_out_commit(&b.csv);
    if (err == EW_ERR_ARG)
        ew_cmd_hint(c, "'edgewise predict --plan --board NAME' chooses the most informative modes");
    if (c->json && err == EW_OK)
        err = ew_json_finish(&b.j);
    ew_advice_close(&b.s);
    ew_figures_fini(&b.figures);
    return err;
}

const struct ew_cmd ew_cmd_predict = {
    .name = "predict",
    .group = EW_CMD_STUDY,
    .summary = "predict time, power and energy of untried modes and networks",
    .about = "Fits models of time and power to a few measured power modes and predicts the "
             "others, with 50 % and 90 % intervals.\n"
             "--plan chooses the modes to measure; ten are usually enough, planned before "
             "anything is measured.\n"
             "--check holds out measured modes and prints the prediction errors.",
    .examples =
        "predict --plan --board agx-orin\n"
        "predict --from modes.csv\n"
        "predict --from modes.csv --modes all --csv predicted.csv\n"
        "predict --simulate agx-xavier --workload resnet18 --csv simulated.csv\n"
        "predict --simulate agx-xavier --compare\n"
        "predict --from edgewise.db --network resnet18 --batch 8 --threads 2\n"
        "predict --from pi.db --from nano.db --network resnet18 --on nano\n"
        "predict --from edgewise.db --network lenet5 --train --batch 16 --data mnist --workers 2\n"
        "predict --network mobilenet_v2 --board jetson-nano\n"
        "predict --from many.csv --check\n"
        "predict --from many.csv --compare --count 10",
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
