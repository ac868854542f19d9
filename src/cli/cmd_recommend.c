/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise recommend: the best configuration within limits, with the probability that it meets
 * them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "advise/best_candidates.h"
#include "advise/recommend.h"
#include "advise/store/mode_candidates.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/spawn.h"
#include "cli/cmd.h"
#include "cli/predict_show.h"
#include "measure/board_candidates.h"
#include "measure/work_candidates.h"
#include "report/figure.h"

/* Fitted values are printed where they differ from measured ones by more than this, in ln. */
#define FIT_TOLD 0.03

struct opts {
    const char *from, *board, *modes, *workload, *limits, *among, *network, *data, *on;
    struct ew_network_opts net;
    int64_t threads, workers;
    int goal;
    double sure, times, battery_wh, duty, idle_w;
    bool apply, train;
};

static const char *const goals[] = {"time", "power",    "energy", "memory", "latency",
                                    "cost", "accuracy", "life",   NULL};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "from", .type = EW_FIELD_STR, .offset = offsetof(struct opts, from),
     .metavar = "FILE.csv|STORE...",
     .help = "measurements, as in predict; columns accuracy, memory_mib, latency_ms, price_usd "
     "too"},
    {.name = "goal", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, goal),
     .choices = goals, .def = "time",
     .help = "what to optimise: minimise, or maximise accuracy or life"},
    {.name = "limit", .type = EW_FIELD_STR, .offset = offsetof(struct opts, limits),
     .metavar = "NAME=VALUE...",
     .help = "power=10W, time=2h, energy=5Wh, memory=3G, latency=16.7ms, accuracy=0.9, cost=500, "
     "life=24h; may be repeated"},
    {.name = "board", .type = EW_FIELD_STR, .offset = offsetof(struct opts, board),
     .metavar = "NAME", .help = "board profile; default: the one whose clocks match"},
    {.name = "modes", .type = EW_FIELD_STR, .offset = offsetof(struct opts, modes),
     .metavar = "all|FILE.csv|LIST",
     .help = "untried modes to consider, as in predict; default: rows without a time, and all if "
     "fewer than 50 were measured"},
    {.name = "workload", .type = EW_FIELD_STR, .offset = offsetof(struct opts, workload),
     .metavar = "NAME", .help = "workload of the file; needed if it has several"},
    {.name = "sure", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, sure), .def = "0.25",
     .min = 0.01, .max = 0.999,
     .help = "minimum probability with which an untried mode must meet all limits; higher is "
     "safer and less optimal"},
    {.name = "times", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, times), .def = "1",
     .min = 1e-9, .max = 1e12, .metavar = "N",
     .help = "number of steps or epochs of the job: multiplies the file's time and energy"},
    {.name = "battery", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, battery_wh),
     .min = 0, .max = 1e6, .metavar = "WH",
     .help = "battery capacity in watt-hours; the goal or limit life is how long it lasts"},
    {.name = "duty", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, duty), .def = "1",
     .min = 0.001, .max = 1, .help = "fraction of the time in which the board is busy"},
    {.name = "idle-w", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, idle_w), .def = "0",
     .min = 0, .max = 1e4, .metavar = "W", .help = "power while the board is idle between jobs (--duty)"},
    {.name = "among", .type = EW_FIELD_STR, .offset = offsetof(struct opts, among),
     .metavar = "boards|NAME,NAME|batch,threads",
     .help = "boards, or a list of them: compare boards by their models for --network; or "
     "options of --network on a machine of --from, tried or not: any of batch, threads, "
     "width, workers, precision"},
    {.name = "network", .type = EW_FIELD_STR, .offset = offsetof(struct opts, network),
     .metavar = "NAME", .help = "--among: the network to run"},
    EW_NETWORK_FIELDS(struct opts, net),
    {.name = "train", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, train),
     .help = "--among: a training step instead of inference"},
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads), .def = "0",
     .min = 0, .max = 256, .metavar = "N",
     .help = "--among: number of threads, unless it is varied; 0: one per CPU"},
    {.name = "data", .type = EW_FIELD_STR, .offset = offsetof(struct opts, data), .metavar = "NAME",
     .help = "--among with --train: include loading of this data set"},
    {.name = "workers", .type = EW_FIELD_INT, .offset = offsetof(struct opts, workers),
     .def = "1", .min = 0, .max = 64,
     .help = "--among with --data: loader threads, unless they are varied"},
    {.name = "on", .type = EW_FIELD_STR, .offset = offsetof(struct opts, on), .metavar = "NAME",
     .help = "--among: part of the name of a machine or device in --from; default: the first"},
    {.name = "apply", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, apply),
     .help = "set the mode, run the command after --, restore, and compare with the prediction; "
     "for batch, threads, ...: pass them to the command, `edgewise bench` or `train`"},
    EW_FIELD_END};
/* clang-format on */

struct job {
    struct ew_cmd_call *c;
    const struct opts *o;
    struct ew_advice_source s;
    struct ew_candidate *candidates;
    int n;
    struct ew_limit limits[EW_LIMITS];
    int n_limits;
    struct ew_recommend_data d;
    struct ew_recommendation choice;
    bool boards; /* candidates are simulated boards */
    struct ew_work_source runs;
    struct ew_work_setting *settings; /* by candidate, with --among settings; else NULL */
};

/* ---- Options --------------------------------------------------------------------------------- */

static ew_err candidate_boards(struct job *b)
{
    const struct ew_board_space among = {
        .names = b->o->among, .network = b->o->network, .net = b->o->net, .train = b->o->train};
    EW_CHECK(b->o->network && !b->o->from && !b->o->apply, EW_ERR_USAGE,
             "--among boards: needs --network, and neither --from nor --apply");
    return ew_candidates_of_boards(&b->s.arena, &among, &b->candidates, &b->n);
}

/* Options from the runs of a network in stores. */
static ew_err candidate_settings(struct job *b)
{
    const struct opts *o = b->o;
    const struct ew_work_space among = {.factors = o->among,
                                        .query = {.network = o->network,
                                                  .on = o->on,
                                                  .data = o->data,
                                                  .workers = o->workers,
                                                  .net = o->net,
                                                  .threads = o->threads,
                                                  .train = o->train}};
    EW_CHECK(o->network && o->from, EW_ERR_USAGE, "--among %s: needs --network and --from STORE",
             o->among);
    EW_CHECK(!o->data || o->train, EW_ERR_USAGE, "--data: loading goes with --train");
    EW_TRY(ew_work_source_open(o->from, &b->runs));
    return ew_candidates_of_work(&b->runs, &among, &b->candidates, &b->settings, &b->n);
}

static ew_err read_limits(struct job *b)
{
    EW_TRY(ew_limits_parse(b->o->limits, b->limits, &b->n_limits));
    bool life = false;
    for (int i = 0; i < b->n_limits; i++)
        life |= b->limits[i].of == EW_CRITERION_LIFE;
    EW_CHECK(!life || b->o->battery_wh > 0, EW_ERR_USAGE, "limit life: needs --battery WH");
    if (b->o->battery_wh > 0 && !life && b->n_limits < EW_LIMITS)
        b->limits[b->n_limits++] = (struct ew_limit){EW_CRITERION_ENERGY, 3600 * b->o->battery_wh};
    return EW_OK;
}

/* ---- Showing --------------------------------------------------------------------------------- */

static void print_mode(const struct ew_candidate *x)
{
    if (!(x->mode.cpu > 0)) {
        printf("%s", *x->name ? x->name : "a configuration without a name (column mode)");
        return;
    }
    char text[EW_MODE_CHARS];
    printf("%s%s%s", x->name, *x->name ? ": " : "", ew_mode_text(&x->mode, x->lacks, text));
}

static void print_candidate(const struct job *b, const struct ew_candidate *x)
{
    char mid[EW_VALUE_CHARS], low[EW_VALUE_CHARS], high[EW_VALUE_CHARS];
    print_mode(x);
    const char *seen = b->s.measured.simulated ? "simulated" : "measured";
    printf(" (%s)\n", b->boards     ? "SIMULATED, not measured"
                      : x->measured ? seen
                                    : "predicted, never tried");
    for (int k = 0; k < EW_CRITERIA; k++) {
        const struct ew_interval *g = &x->v[k];
        if (!isfinite(g->mid))
            continue;
        printf("  %-9s %s %s", ew_criteria[k].name, ew_text_value(g->mid, mid),
               ew_criteria[k].unit);
        if (g->high90 > g->low90)
            printf(", 90 %% interval %s to %s", ew_text_value(g->low90, low),
                   ew_text_value(g->high90, high));
        else if (x->fitted && fabs(log(x->fitted[k].mid / g->mid)) > FIT_TOLD)
            printf(", by the fit %s %s", ew_text_value(x->fitted[k].mid, low), ew_criteria[k].unit);
        printf("\n");
    }
}

static void print_why(const struct job *b)
{
    const struct ew_recommendation *c = &b->choice;
    const struct ew_criterion_info *goal = &ew_criteria[b->d.goal];
    char text[EW_VALUE_CHARS], now[EW_VALUE_CHARS];
    ew_text_value(b->candidates[c->best].v[b->d.goal].mid, now);
    const struct ew_candidate *best = &b->candidates[c->best];
    if (best->measured && !best->fitted)
        printf(
            "\nwhy: %d of %d configurations keep within the limits, and this one has the best %s\n",
            c->n_good, b->n, goal->name);
    else
        printf("\nwhy: %d of %d configurations may meet the limits; this one has %s within "
               "3 %% of the best%s and is the most likely to meet them\n",
               c->n_good, b->n, goal->name,
               best->fitted ? " by the fit, which evens out the noise of runs," : "");
    for (int k = 0; k < b->n_limits; k++) {
        const struct ew_criterion_info *q = &ew_criteria[b->limits[k].of];
        printf("  %s %s %s %s: met with a probability of %.0f %%", q->name,
               q->at_least ? "at least" : "at most", ew_text_value(b->limits[k].bound, text),
               q->unit, 100 * c->holds[k]);
        ew_text_value(c->relaxed[k], text);
        if (strcmp(text, now) == 0)
            printf("; relaxing it by 10 %% does not help\n");
        else
            printf("; relaxed by 10 %%: %s %s instead of %s%s\n", goal->name, text, now,
                   k == c->binding ? " (this limit binds)" : "");
    }
    if (c->measure >= 0 && !b->boards) {
        printf("\nmeasure next: ");
        print_mode(&b->candidates[c->measure]);
        printf("\n  meets all limits with a probability of %.0f %%", 100 * c->measure_chance);
        if (c->measure_gain < 0.5)
            printf("; expected gain over the best measured one: %.1f %%", 100 * c->measure_gain);
        printf("\n");
    }
}

static void show_text(const struct job *b)
{
    const struct ew_recommendation *c = &b->choice;
    printf("use ");
    print_candidate(b, &b->candidates[c->best]);
    if (c->second >= 0) {
        printf("\nor ");
        print_candidate(b, &b->candidates[c->second]);
    }
    print_why(b);
}

static void json_candidate(struct ew_json *j, const char *key, const struct ew_candidate *x)
{
    ew_json_object(j, key);
    ew_json_str(j, "name", *x->name ? x->name : NULL);
    if (x->mode.cpu > 0) {
        ew_json_mode(j, &x->mode, x->lacks);
    }
    ew_json_bool(j, "measured", x->measured);
    for (int k = 0; k < EW_CRITERIA; k++)
        if (isfinite(x->v[k].mid)) {
            ew_json_object(j, ew_criteria[k].name);
            ew_json_num(j, "mid", x->v[k].mid);
            ew_json_num(j, "low90", x->v[k].low90);
            ew_json_num(j, "high90", x->v[k].high90);
            if (x->fitted)
                ew_json_num(j, "fitted", x->fitted[k].mid);
            ew_json_end(j);
        }
    ew_json_end(j);
}

static ew_err show_json(const struct job *b)
{
    const struct ew_recommendation *c = &b->choice;
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "goal", ew_criteria[b->d.goal].name);
    json_candidate(&j, "use", &b->candidates[c->best]);
    if (c->second >= 0)
        json_candidate(&j, "runner_up", &b->candidates[c->second]);
    ew_json_bool(&j, "simulated", b->s.measured.simulated || b->boards);
    ew_json_int(&j, "configurations", b->n);
    ew_json_int(&j, "within_limits", c->n_good);
    ew_json_array(&j, "limits");
    for (int k = 0; k < b->n_limits; k++) {
        ew_json_object(&j, NULL);
        ew_json_str(&j, "of", ew_criteria[b->limits[k].of].name);
        ew_json_num(&j, "bound", b->limits[k].bound);
        ew_json_num(&j, "holds", c->holds[k]);
        ew_json_num(&j, "goal_if_a_tenth_wider", c->relaxed[k]);
        ew_json_bool(&j, "binds", k == c->binding);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    if (c->measure >= 0) {
        json_candidate(&j, "measure_next", &b->candidates[c->measure]);
        ew_json_num(&j, "measure_chance", c->measure_chance);
        ew_json_num(&j, "measure_gain", c->measure_gain);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- Applying -------------------------------------------------------------------------------- */

static ew_err wait_for(const char *const *argv)
{
    int status;
    char text[EW_STATUS_CHARS];
    EW_TRY(ew_spawn_run(argv, &(struct ew_spawn_opts){.path = "/proc/self/exe"}, &status));
    ew_status_text(status, text);
    EW_CHECK(ew_status_is_success(status), EW_ERR_IO,
             "the command failed (%s); the mode was put back", text);
    return EW_OK;
}

/* Compares the newest run of the store, the command's, with the prediction. */
static ew_err say_how_right(const struct job *b, const char *store)
{
    const struct ew_interval *g = &b->candidates[b->choice.best].v[EW_CRITERION_LATENCY];
    struct ew_arena a;
    struct ew_work_row row;
    ew_arena_init(&a);
    const ew_err e = ew_work_rows_last(&a, store, &row);
    if (e == EW_OK) {
        const double ms = 1e3 * (b->o->data ? row.step_s : row.time);
        printf("\na run took %.4g ms; %s: %.4g ms (%+.1f %%)%s; recorded in %s\n", ms,
               b->candidates[b->choice.best].measured ? "measured" : "predicted", g->mid,
               100 * (ms / g->mid - 1),
               b->candidates[b->choice.best].measured || (ms >= g->low90 && ms <= g->high90)
                   ? ""
                   : ", outside of the interval",
               store);
    }
    ew_arena_fini(&a);
    return e;
}

/* Settings can only be passed to these two commands. */
static ew_err check_command(const struct job *b)
{
    const char *const *args = b->c->args;
    EW_CHECK(
        b->c->n_args >= 2 && b->c->n_args < 40 && strcmp(args[0], "edgewise") == 0 &&
            (strcmp(args[1], "bench") == 0 || strcmp(args[1], "train") == 0),
        EW_ERR_USAGE,
        "--apply: with --among %s the command must be 'edgewise bench ...' or 'edgewise train ...'",
        b->o->among);
    return EW_OK;
}

/* Runs the command with the options of the chosen setting, recording into the first store. */
static ew_err apply_setting(const struct job *b)
{
    const struct ew_work_setting *at = &b->settings[b->choice.best];
    const int n_args = b->c->n_args;
    char text[4][32], store[1024];
    const char *argv[64];
    int n = 0;
    snprintf(store, sizeof(store), "%.*s", (int)strcspn(b->o->from, ","), b->o->from);
    for (int i = 0; i < n_args; i++)
        argv[n++] = b->c->args[i];
    snprintf(text[0], sizeof(text[0]), "%lld", (long long)at->batch);
    snprintf(text[1], sizeof(text[1]), "%lld", (long long)at->threads);
    snprintf(text[2], sizeof(text[2]), "%g", at->width);
    snprintf(text[3], sizeof(text[3]), "%lld", (long long)at->workers);
    const char *const more[] = {"--batch", text[0], "--threads", text[1],
                                "--width", text[2], "--db",      store};
    for (size_t i = 0; i < EW_COUNT(more); i++)
        argv[n++] = more[i];
    if (b->o->data) {
        argv[n++] = "--workers";
        argv[n++] = text[3];
    }
    if (at->precision) {
        argv[n++] = "--precision";
        argv[n++] = at->precision;
    }
    argv[n] = NULL;
    EW_TRY(wait_for(argv));
    return say_how_right(b, store);
}

/* `edgewise power set ... -- COMMAND` sets the mode and restores the previous one afterwards. */
static ew_err apply(const struct job *b)
{
    const struct ew_candidate *x = &b->candidates[b->choice.best];
    if (b->settings)
        return apply_setting(b);
    EW_CHECK(x->mode.cpu > 0, EW_ERR_ARG, "--apply: the answer is not a power mode");
    static const char *const options[] = {"--cores", "--cpu-mhz", "--gpu-mhz", "--mem-mhz"};
    char text[4][32];
    const double values[] = {x->mode.cores, 1000 * x->mode.cpu, 1000 * x->mode.gpu,
                             1000 * x->mode.mem};
    size_t n = 0;
    EW_CLEANUP(ew_free_ptr)
    const char **argv = calloc(3 + 2 * 4 + 1 + (size_t)b->c->n_args + 1, sizeof(*argv));
    EW_CHECK(argv, EW_ERR_MEMORY, "no memory");
    argv[n++] = "edgewise";
    argv[n++] = "power";
    argv[n++] = "set";
    for (int i = 0; i < 4; i++)
        if (!(x->lacks & (EW_NO_CORES << i))) {
            snprintf(text[i], sizeof(text[i]), "%.0f", values[i]);
            argv[n++] = options[i];
            argv[n++] = text[i];
        }
    argv[n++] = "--";
    for (int i = 0; i < b->c->n_args; i++)
        argv[n + (size_t)i] = b->c->args[i];
    const int64_t start = ew_clock_ns();
    EW_TRY(wait_for(argv));
    const double took = 1e-9 * (double)(ew_clock_ns() - start);
    const struct ew_interval *t = &x->v[EW_CRITERION_TIME];
    printf("\nit took %.4g s; %s: %.4g s (%+.1f %%)%s\n", took,
           x->measured ? "measured" : "predicted", t->mid, 100 * (took / t->mid - 1),
           x->measured || (took >= t->low90 && took <= t->high90) ? ""
                                                                  : ", outside of the interval");
    return EW_OK;
}

/* ---- The command ----------------------------------------------------------------------------- */

static ew_err work(struct job *b)
{
    const struct opts *o = b->o;
    const char *workload;
    EW_CHECK(o->from || o->among, EW_ERR_USAGE,
             "recommend: needs --from FILE.csv or STORE, or --among boards --network NAME");
    EW_CHECK(o->apply == (b->c->n_args > 0), EW_ERR_USAGE,
             "recommend: --apply needs a command after --, and a command needs --apply");
    EW_TRY(read_limits(b));
    bool factors = false;
    if (o->among)
        EW_TRY(ew_work_factors_match(o->among, &factors));
    b->boards = o->among && !factors;
    EW_CHECK(factors || !o->from || !strchr(o->from, ','), EW_ERR_USAGE,
             "recommend: several --from are for --among batch,threads,...");
    EW_TRY(ew_advice_open(factors ? NULL : o->from, o->board, &b->s));
    if (factors) {
        if (o->apply)
            EW_TRY(check_command(b));
        EW_TRY(candidate_settings(b));
    } else if (o->among) {
        EW_TRY(candidate_boards(b));
    } else {
        EW_TRY(ew_advice_workload(&b->s, o->workload, &workload));
        EW_TRY(b->s.measured.has_more
                   ? ew_candidates_of_rows(&b->s.arena, &b->s.measured, workload, &b->candidates,
                                           &b->n)
                   : ew_candidates_of_modes(&b->s, workload, o->modes, &b->candidates, &b->n));
    }
    const struct ew_candidate_job job = {o->times, o->battery_wh, o->duty, o->idle_w};
    EW_TRY(ew_candidates_for_job(&b->s.arena, &job, b->candidates, b->n));
    b->d = (struct ew_recommend_data){.candidates = b->candidates,
                                      .n = b->n,
                                      .goal = (enum ew_criterion)o->goal,
                                      .limits = b->limits,
                                      .n_limits = b->n_limits,
                                      .sure = o->sure};
    EW_TRY(ew_recommend(&b->d, &b->choice));
    if (b->s.measured.simulated)
        EW_WARN("%s holds simulated values, not measurements", b->s.measured.file);
    if (b->c->json)
        EW_TRY(show_json(b));
    else
        show_text(b);
    fflush(stdout);
    return o->apply ? apply(b) : EW_OK;
}

static ew_err run(struct ew_cmd_call *c)
{
    struct job b = {.c = c, .o = c->opts};
    ew_arena_init(&b.s.arena);
    ew_arena_init(&b.runs.arena);
    const ew_err err = work(&b);
    ew_advice_close(&b.s);
    ew_work_source_close(&b.runs);
    return err;
}

const struct ew_cmd ew_cmd_recommend = {
    .name = "recommend",
    .group = EW_CMD_STUDY,
    .summary = "choose the best configuration within limits",
    .args = "[-- COMMAND...]",
    .about = "Chooses among measured configurations and, for power modes, untried ones that "
             "predict covers. Prints the choice, the runner-up, which limit binds and what "
             "relaxing it would bring, the probability that each limit holds, and what to measure "
             "next.\n"
             "A configuration that was measured to break a limit is never recommended.",
    .examples =
        "recommend --from modes.csv --goal energy --limit time=2h --times 30\n"
        "recommend --from modes.csv --limit power=15W --limit energy=2Wh\n"
        "recommend --from modes.csv --battery 50 --duty 0.2 --idle-w 3 --limit life=24h\n"
        "recommend --among boards --network mobilenet_v2 --goal cost --limit latency=20ms\n"
        "recommend --from edgewise.db --network resnet18 --among batch,threads --limit "
        "latency=50ms\n"
        "recommend --from edgewise.db --workload resnet18 --goal latency --limit power=10W\n"
        "recommend --from modes.csv --limit power=15W --apply -- edgewise bench resnet18",
    .max_args = -1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
