/* SPDX-License-Identifier: Apache-2.0 */
/* The study's loop: skip finished jobs, check the machine, run the job, record it. */
#include "study/runner.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "data/data.h"
#include "study/child.h"
#include "study/outputs.h"
#include "study/progress_row.h"
#include "study/run_watch.h"
#include "study/summary.h"

#define POWER_WORDS  16
#define REASON_CHARS 600
#define FOLDER_CHARS 512
#define LISTEN_MS    500
#define GRACE_NS     (10 * EW_NS_PER_S) /* a job that is asked to end has so long */
#define PUT_NS       (2 * EW_NS_PER_S) /* interval at which samples are stored, for the live page */
#define SHORT_S      0.2 /* the system counts CPU time in steps of 10 ms: too coarse below this */

struct ew_runner {
    const struct ew_study *study;
    struct ew_runner_opts opts;
    struct ew_store *store;
    struct ew_board *board;
    struct ew_arena arena;
    struct ew_machine_row machine;
    struct ew_estimate *estimates; /* one for each job */
    struct ew_runner_counts counts;
    double all_s;               /* of the jobs that were run */
    double spent_s, expected_s; /* of jobs with an estimate, and their estimate */
    int64_t tries;              /* noisy runs of the current job */
    char folder[FOLDER_CHARS];  /* folder of the database */
    bool ran;                   /* at least one job has run, so a cool-down makes sense */
    char started[EW_RUN_TIME_CHARS], reason[REASON_CHARS], noise[EW_NOISE_CHARS];
};

/* ---- Opening --------------------------------------------------------------------------------- */

static ew_err estimate_all(struct ew_runner *r)
{
    double rate;
    EW_TRY(ew_estimate_rate(&rate));
    r->estimates = ew_arena_array(&r->arena, (size_t)r->study->n_jobs + 1, sizeof(*r->estimates));
    EW_CHECK(r->estimates, EW_ERR_MEMORY, "no memory for a study");
    for (int i = 0; i < r->study->n_jobs; i++) {
        const struct ew_study_job *j = &r->study->jobs[i];
        int same = 0; /* repetitions have the same estimate */
        while (same < i && r->study->jobs[same].row.id != j->row.id)
            same++;
        if (same < i)
            r->estimates[i] = r->estimates[same];
        else
            EW_TRY(ew_estimate_job(j, r->store, rate, &r->estimates[i]));
    }
    return EW_OK;
}

/* Writes the study's progress row, for the live page. */
static ew_err put_study(struct ew_runner *r, const char *now)
{
    return ew_study_put_progress(r->store, r->study, &r->counts, r->started, now);
}

static ew_err put_head(struct ew_runner *r)
{
    EW_TRY(ew_store_begin(r->store));
    ew_err err = ew_study_check_holder(r->store, r->study);
    if (err == EW_OK)
        err = ew_store_put(r->store, EW_RECORD_MACHINE, 0, &r->machine);
    for (int i = 0; err == EW_OK && i < r->study->n_published; i++)
        err = ew_store_put(r->store, EW_RECORD_PUBLISHED, 0, &r->study->published[i]);
    if (err == EW_OK)
        err = put_study(r, NULL);
    const ew_err ended = ew_store_end(r->store, err == EW_OK);
    return err == EW_OK ? ended : err;
}

static void describe_run(const struct ew_runner *r, const struct ew_study_job *j,
                         const struct ew_machine_state *g, struct ew_run_row *out)
{
    ew_record_clear(EW_RECORD_RUN, out);
    out->job = j->row.id;
    out->machine = r->machine.id;
    out->study = r->study->name;
    out->label = j->label;
    out->repeat = j->repeat;
    out->quality = EW_QUALITY_MEASURED;
    if (g) {
        out->load = g->busy;
        out->temp_c = g->temp_c;
        out->cpu_mhz = g->cpu_mhz;
        out->free_memory_bytes = g->free_memory_bytes;
        out->free_disk_bytes = g->free_disk_bytes;
    }
}

/* Checks before hours of work that the names to keep are free. */
static ew_err check_outputs(struct ew_runner *r)
{
    EW_TRY(ew_output_check(r->study, r->opts.outside));
    for (int i = 0; i < r->study->n_jobs; i++) {
        const struct ew_study_job *j = &r->study->jobs[i];
        struct ew_run_row key;
        bool done = true;
        describe_run(r, j, NULL, &key);
        if (j->keep)
            EW_TRY(ew_store_job_done(r->store, &key, r->machine.unit, &done));
        if (!done)
            EW_TRY(ew_output_check_free(r->study, j));
    }
    return EW_OK;
}

static ew_err open_runner(struct ew_runner *r)
{
    EW_TRY(ew_store_open(r->opts.db, NULL, &r->store));
    EW_TRY(ew_board_open(&(struct ew_board_opts){.root = NULL}, &r->board));
    EW_TRY(ew_machine_read(r->board, &r->arena, &r->machine));
    EW_TRY(check_outputs(r));
    EW_TRY(estimate_all(r));
    r->counts.total = r->study->n_jobs;
    r->counts.left_s = NAN;
    ew_run_time_text(r->started);
    return put_head(r);
}

ew_err ew_runner_open(const struct ew_study *study, const struct ew_runner_opts *o,
                      struct ew_runner **out)
{
    struct ew_runner *r = calloc(1, sizeof(*r));
    EW_CHECK(r, EW_ERR_MEMORY, "no memory for a study");
    r->study = study;
    r->opts = *o;
    const char *slash = strrchr(o->db, '/');
    if (slash)
        snprintf(r->folder, sizeof(r->folder), "%.*s/", (int)(slash - o->db), o->db);
    else
        snprintf(r->folder, sizeof(r->folder), ".");
    ew_arena_init(&r->arena);
    const ew_err err = open_runner(r);
    if (err != EW_OK) {
        ew_runner_close(r);
        return err;
    }
    *out = r;
    return EW_OK;
}

void ew_runner_close(struct ew_runner *r)
{
    if (!r)
        return;
    ew_board_close(r->board);
    ew_store_close(r->store);
    ew_arena_fini(&r->arena);
    free(r);
}

const struct ew_study_job *ew_runner_next(const struct ew_runner *r, struct ew_estimate *out)
{
    if (r->counts.at >= r->study->n_jobs)
        return NULL;
    if (out)
        *out = r->estimates[r->counts.at];
    return &r->study->jobs[r->counts.at];
}

struct ew_runner_counts ew_runner_counts(const struct ew_runner *r)
{
    return r->counts;
}

struct ew_store *ew_runner_store(struct ew_runner *r)
{
    return r->store;
}

const struct ew_machine_row *ew_runner_machine(const struct ew_runner *r)
{
    return &r->machine;
}

/* ---- One run --------------------------------------------------------------------------------- */

static ew_err begin_run(struct ew_runner *r, const struct ew_study_job *j, struct ew_run_row *run,
                        int64_t *id)
{
    EW_TRY(ew_store_begin(r->store));
    ew_err err = ew_store_put(r->store, EW_RECORD_JOB, 0, &j->row);
    if (err == EW_OK)
        err = ew_store_run_begin(r->store, run, id);
    const ew_err ended = ew_store_end(r->store, err == EW_OK);
    return err == EW_OK ? ended : err;
}

/* Records a job that cannot be done here, once, with the reason. */
static ew_err skip(struct ew_runner *r, const struct ew_study_job *j, struct ew_runner_report *out)
{
    struct ew_run_row run;
    bool there;
    int64_t old;
    snprintf(r->reason, sizeof(r->reason), "%s", ew_error_message());
    EW_TRY(ew_store_int(r->store, &old, &there,
                        "SELECT id FROM run WHERE job = ?1 AND study = ?2 AND repeat = ?3 AND "
                        "status = 'skipped'",
                        "ssi", j->row.id, r->study->name, j->repeat));
    if (there)
        EW_TRY(ew_store_run_delete(r->store, old));
    describe_run(r, j, NULL, &run);
    run.status = EW_RUN_SKIPPED;
    run.reason = r->reason;
    EW_TRY(begin_run(r, j, &run, &out->run));
    out->event = EW_RUNNER_SKIPPED;
    out->reason = r->reason;
    r->counts.skipped++;
    return EW_OK;
}

static void pause_for(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec = (long)(1e9 * (seconds - floor(seconds)))};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

/* Whether the job is simulated: heat and other load do not matter then. */
static bool is_simulated(const struct ew_study_job *j)
{
    char board[EW_STUDY_VALUE] = "";
    return ew_study_value(j, "simulate", board) && *board;
}

/* "edgewise power set MAXN -- edgewise train lenet5 --batch=16 --db=FILE". */
static ew_err command_line(struct ew_runner *r, const struct ew_study_job *j,
                           const char *const *power, int n_power, const char *folder,
                           const char ***out)
{
    const char **argv =
        ew_arena_array(&r->arena, (size_t)(n_power + j->n_argv) + 12, sizeof(*argv));
    EW_CHECK(argv, EW_ERR_MEMORY, "no memory for a job");
    int n = 0;
    argv[n++] = r->opts.program;
    for (int i = 0; i < n_power; i++)
        argv[n++] = power[i];
    if (n_power)
        argv[n++] = r->opts.program;
    for (int i = 0; i < j->n_argv; i++)
        argv[n++] = j->argv[i];
    if (is_simulated(j) && j->repeat > 0 &&
        ew_field_find(j->fields, "seed")) /* another seed of the simulated noise */
        argv[n++] =
            ew_arena_printf(&r->arena, "--seed=%lld",
                            (long long)ew_study_number(j, "seed", 0) + 1000 * (long long)j->repeat);
    argv[n++] = ew_arena_printf(&r->arena, "--db=%s", r->opts.db);
    if (*folder)
        argv[n++] = ew_arena_printf(&r->arena, "--output=%s", folder);
    const char *seconds = ew_study_given(j, "seconds");
    if (seconds) { /* for commands that watch another one: sleep for that long */
        argv[n++] = "--";
        argv[n++] = "sleep";
        argv[n++] = seconds;
    }
    EW_CHECK(!r->arena.failed, EW_ERR_MEMORY, "no memory for a job");
    *out = argv;
    return EW_OK;
}

/* Why a child failed: its last message if it has one. */
static void failure_text(const struct ew_child *c, char *out, size_t size)
{
    const char *said = strncmp(c->said, "edgewise: ", 10) == 0 ? c->said + 10 : c->said;
    if (c->late)
        snprintf(out, size, "took longer than its job-timeout and was ended after %.3g s",
                 c->wall_s);
    else if (WIFSIGNALED(c->status))
        snprintf(out, size, "ended by signal %d%s", WTERMSIG(c->status),
                 WTERMSIG(c->status) == 9 ? ", perhaps by the kernel, out of memory" : "");
    else if (*said)
        snprintf(out, size, "%s", said);
    else
        snprintf(out, size, "exit status %d", WEXITSTATUS(c->status));
}

/* Checks the load of other programs and throttling during the run, which matter more than those
 * before it. */
static void judge(struct ew_runner *r, const struct ew_child *c, double machine_cpu_s,
                  const struct ew_machine_state *before, const struct ew_machine_state *after)
{
    const double cores = r->machine.cores_online > 0 ? (double)r->machine.cores_online : 1;
    const double others = (machine_cpu_s - c->cpu_s) / (cores * fmax(c->wall_s, 1e-3));
    struct ew_machine_state g = *before;
    if (c->wall_s > SHORT_S && isfinite(others))
        g.busy = fmin(others, 1);
    ew_machine_state_noise(&g, &r->opts.limits, r->noise);
    const size_t n = strlen(r->noise);
    if (after->throttle > before->throttle)
        snprintf(r->noise + n, sizeof(r->noise) - n, "%sthrottled", n ? "; " : "");
}

/* Clears the noise mark of a simulated run. */
static ew_err forget_noise(struct ew_runner *r, int64_t run)
{
    int64_t one;
    bool computed;
    EW_TRY(ew_store_int(r->store, &one, &computed,
                        "SELECT 1 FROM run WHERE id = ?1 AND quality IN ('simulated', 'modelled')",
                        "i", run));
    if (computed)
        r->noise[0] = '\0';
    return EW_OK;
}

static ew_err finish(struct ew_runner *r, const struct ew_child *c, struct ew_runner_report *out)
{
    const bool well = !c->late && WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0;
    struct ew_run_row row;
    ew_record_clear(EW_RECORD_RUN, &row);
    row.wall_s = c->wall_s;
    EW_TRY(forget_noise(r, out->run));
    row.noise = r->noise[0] ? r->noise : NULL;
    out->noise = row.noise;
    out->wall_s = c->wall_s;
    if (!well) {
        failure_text(c, r->reason, sizeof(r->reason));
        row.status = EW_RUN_FAILED;
        row.reason = out->reason = r->reason;
        out->event = EW_RUNNER_FAILED;
        return ew_store_run_update(r->store, out->run, &row);
    }
    EW_TRY(ew_summary_add(r->store, out->run));
    const bool again = row.noise && r->tries < r->opts.repeat_noisy;
    row.status = again ? EW_RUN_NOISY : EW_RUN_DONE;
    out->event = again ? EW_RUNNER_NOISY : EW_RUNNER_DONE;
    return ew_store_run_update(r->store, out->run, &row);
}

/* A job that does not fit into memory could bring down other programs or the machine. */
static ew_err check_memory(const struct ew_runner *r, const struct ew_study_job *j,
                           const struct ew_machine_state *g)
{
    const int64_t need = r->estimates[r->counts.at].memory_bytes;
    const double limit = ew_study_number(j, "memory-limit", 0);
    const bool known = need != EW_INT_ABSENT && g->free_memory_bytes != EW_INT_ABSENT;
    EW_CHECK(!known || limit > 0 || need <= g->free_memory_bytes, EW_ERR_LIMIT,
             "needs %lld MB of memory, and %lld are free", (long long)(need >> 20),
             (long long)(g->free_memory_bytes >> 20));
    return EW_OK;
}

/* Seconds that the job may take; 0: any time. */
static double timeout_of(const struct ew_runner *r, const struct ew_study_job *j)
{
    return j->timeout_s >= 0 ? j->timeout_s : r->study->timeout_s;
}

/* Ends a child that has exceeded its time: asks it first, since it may have clocks to restore.
 * False: it was killed; do not wait for other holders of its standard error. */
static bool limit_child(struct ew_child *child, double timeout_s, int64_t now)
{
    const int64_t over = now - child->start_ns - (int64_t)(timeout_s * (double)EW_NS_PER_S);
    if (timeout_s <= 0 || over < 0)
        return true;
    if (!child->late)
        ew_child_end(child, true);
    if (over < GRACE_NS)
        return true;
    ew_child_end(child, false);
    return false;
}

/* Listens until the child has ended. */
static ew_err follow_child(struct ew_run_watch *w, struct ew_child *child, double timeout_s)
{
    ew_err err = EW_OK;
    int64_t put_ns = ew_clock_ns();
    while (ew_child_listen(child, LISTEN_MS)) {
        const int64_t now = ew_clock_ns();
        if (!limit_child(child, timeout_s, now))
            break;
        if (err == EW_OK && now - put_ns >= PUT_NS) {
            err = ew_run_watch_put(w);
            put_ns = now;
        }
    }
    const ew_err ended = ew_child_finish(child);
    return err == EW_OK ? ended : err;
}

/* Runs the job with the board being sampled beside it, unless its command does so itself. */
static ew_err watch_child(struct ew_runner *r, const struct ew_study_job *j, const char **argv,
                          const char *uid, struct ew_runner_report *out, struct ew_child *child)
{
    struct ew_run_watch w = {.store = r->store, .run = out->run, .start_ns = ew_clock_ns()};
    if (!j->samples)
        EW_TRY(ew_watch_start(r->board, &w.watch));
    const bool gently = argv[1] != j->argv[0]; /* in a power mode, which must be restored */
    ew_err err = ew_child_start(argv, uid, gently, child);
    if (err == EW_OK)
        err = follow_child(&w, child, timeout_of(r, j));
    const ew_err ended = ew_run_watch_end(&w);
    ew_watch_free(w.watch);
    return err == EW_OK ? ended : err;
}

static ew_err run_child(struct ew_runner *r, const struct ew_study_job *j, const char **argv,
                        struct ew_runner_report *out)
{
    struct ew_machine_state before, after;
    struct ew_run_row run;
    struct ew_child child;
    char uid[EW_RUN_UID_CHARS];
    EW_TRY(
        ew_machine_state_read(r->board, r->folder, is_simulated(j) ? 0 : r->opts.look_s, &before));
    EW_CHECK(before.free_disk_bytes == EW_INT_ABSENT ||
                 before.free_disk_bytes >= r->opts.least_disk_bytes,
             EW_ERR_IO,
             "%s: only %lld MB are free in %s, and %lld are required; the study continues once "
             "there is room",
             r->study->name, (long long)(before.free_disk_bytes >> 20), r->folder,
             (long long)(r->opts.least_disk_bytes >> 20));
    if (check_memory(r, j, &before) != EW_OK)
        return skip(r, j, out);
    describe_run(r, j, &before, &run);
    EW_TRY(ew_run_new_uid(uid));
    run.uid = uid;
    EW_TRY(begin_run(r, j, &run, &out->run));
    const double cpu_s = ew_machine_cpu_s(r->board);
    EW_TRY(watch_child(r, j, argv, uid, out, &child));
    const double used_s = ew_machine_cpu_s(r->board) - cpu_s;
    EW_TRY(ew_machine_state_read(r->board, r->folder, 0, &after));
    judge(r, &child, used_s, &before, &after);
    if (is_simulated(j))
        r->noise[0] = '\0';
    return finish(r, &child, out);
}

/* Fails if the data set of the job is not here. */
static ew_err check_data(const struct ew_study_job *j)
{
    char name[EW_STUDY_VALUE] = "";
    struct ew_dataset *d = NULL;
    if (!ew_study_value(j, "data", name) || !*name || is_simulated(j))
        return EW_OK;
    EW_TRY(ew_dataset_open(name, &d));
    ew_dataset_close(d);
    return EW_OK;
}

static ew_err run_job(struct ew_runner *r, const struct ew_study_job *j,
                      struct ew_runner_report *out)
{
    const char *power[POWER_WORDS], **argv = NULL;
    struct ew_output output;
    int n_power = 0;
    if (r->opts.check_data && check_data(j) != EW_OK)
        return skip(r, j, out);
    if (ew_runner_power(r->board, &j->power, power, POWER_WORDS, &n_power) != EW_OK)
        return skip(r, j, out);
    if (ew_study_given(j, "seconds") && r->board->total.power < 0 && r->board->total.energy < 0) {
        ew_fail(EW_ERR_UNSUPPORTED, "no sensor here measures the power of the whole board");
        return skip(r, j, out);
    }
    if (r->ran && !is_simulated(j))
        pause_for(fmax(r->study->cool_down_s, j->cool_down_s));
    EW_TRY(ew_output_check_free(r->study, j));
    EW_TRY(ew_output_find(r->study, j, r->opts.scratch, &output));
    EW_TRY(
        ew_output_begin(&output)); /* a killed run is not resumed: its time would be a part only */
    EW_TRY(command_line(r, j, power, n_power, output.path, &argv));
    r->ran = true;
    const ew_err err = run_child(r, j, argv, out);
    if (err == EW_OK && out->event == EW_RUNNER_DONE)
        return ew_output_keep(&output);
    ew_output_drop(&output);
    return err;
}

/* ---- The study ------------------------------------------------------------------------------- */

static void guess_left(struct ew_runner *r)
{
    double left = 0;
    const double mean = r->counts.done > 0 ? r->all_s / (double)r->counts.done : 0;
    const double pace = r->expected_s > 0 ? r->spent_s / r->expected_s : 1;
    for (int64_t i = r->counts.at; i < r->study->n_jobs; i++) {
        const struct ew_estimate *e = &r->estimates[i];
        const struct ew_study_job *j = &r->study->jobs[i];
        const bool asked =
            is_simulated(j); /* simulated: no cool-down and no check of the machine */
        const double cool = asked ? 0 : fmax(r->study->cool_down_s, j->cool_down_s);
        const double known = e->seconds * (e->measured ? 1 : pace);
        left += (isfinite(known) ? known : mean) + cool + (asked ? 0 : r->opts.look_s);
    }
    r->counts.left_s = left;
}

static void count(struct ew_runner *r, const struct ew_runner_report *report)
{
    const struct ew_estimate *e = &r->estimates[r->counts.at];
    r->counts.known += report->event == EW_RUNNER_KNOWN;
    r->counts.done += report->event == EW_RUNNER_DONE;
    r->counts.failed += report->event == EW_RUNNER_FAILED;
    if (report->event == EW_RUNNER_DONE)
        r->all_s += report->wall_s;
    if (report->event == EW_RUNNER_DONE && isfinite(e->seconds) && !e->measured) {
        r->spent_s += report->wall_s;
        r->expected_s += e->seconds;
    }
    if (report->event == EW_RUNNER_NOISY) {
        r->tries++;
        return;
    }
    r->tries = 0;
    r->counts.at++;
    guess_left(r);
}

void ew_runner_pass(struct ew_runner *r)
{
    r->tries = 0;
    r->counts.passed++;
    r->counts.at++;
    guess_left(r);
}

/* Completes a study that was killed after a job was done and before its output was renamed. */
static ew_err keep_late(const struct ew_runner *r, const struct ew_study_job *j)
{
    struct ew_output output;
    EW_TRY(ew_output_find(r->study, j, r->opts.scratch, &output));
    return output.keep && access(output.path, F_OK) == 0 ? ew_output_keep(&output) : EW_OK;
}

ew_err ew_runner_step(struct ew_runner *r, struct ew_runner_report *out)
{
    *out = (struct ew_runner_report){.event = EW_RUNNER_END, .job = ew_runner_next(r, NULL)};
    if (!out->job)
        return put_study(r, NULL);
    struct ew_run_row key;
    bool done;
    describe_run(r, out->job, NULL, &key);
    EW_TRY(ew_store_job_done(r->store, &key, r->machine.unit, &done));
    if (done)
        EW_TRY(keep_late(r, out->job));
    r->reason[0] = r->noise[0] = '\0';
    out->event = EW_RUNNER_KNOWN;
    if (!done) {
        EW_TRY(put_study(r, out->job->label));
        EW_TRY(run_job(r, out->job, out));
    }
    count(r, out);
    return EW_OK;
}
