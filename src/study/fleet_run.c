/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler of a fleet: connects machines, gives jobs to free ones and collects their
 * results. */
#include "study/fleet_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "study/epoch_feed.h"
#include "study/fleet_rows.h"
#include "study/progress_row.h"

#define STORE_THERE  "edgewise-fleet.db" /* on the machine, so results survive our death */
#define EXPORT_THERE "edgewise-home.db"
#define WORDS_MAX    48
#define POLL_MS      500
#define FIRST_WAIT_S 0.5 /* before a machine is tried again; twice as long each time */
#define MOST_WAIT_S  60.0

enum task_state { WAITING, RUNNING, OVER };

struct task {
    const struct ew_study_job *job;
    int bound;        /* machine that must do it; -1: any */
    uint64_t refused; /* bit i: machine i cannot do it */
    enum task_state state;
    int64_t run; /* its running row */
    char reason[EW_LINK_TEXT];
};

enum worker_state { DOWN, STARTING, READY, WORKING, EXPORTING, FETCHING, GIVEN_UP };

/* A machine that does jobs. */
struct worker {
    struct ew_link link;
    enum worker_state state;
    int task;
    int64_t retry_ns, tries;
    int64_t begun_ns; /* its job */
};

struct ew_fleet_run {
    const struct ew_study *study;
    struct ew_fleet_opts opts;
    struct ew_store *store;
    struct worker workers[EW_MACHINES_MAX];
    struct task *tasks;
    int n_tasks;
    struct ew_runner_counts counts;
    double all_s;
    char started[EW_RUN_TIME_CHARS];
};

static const struct ew_fleet_machine *machine(const struct ew_fleet_run *f, int i)
{
    return &f->opts.machines->list[i];
}

static int n_workers(const struct ew_fleet_run *f)
{
    return f->opts.machines->n;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Jobs that use another job's output must run on the same machine. */
static ew_err check_study(const struct ew_study *s, const struct ew_machines *m)
{
    for (int i = 0; i < s->n_jobs; i++)
        EW_CHECK(!s->jobs[i].keep || m->n == 1 || s->per_device, EW_ERR_UNSUPPORTED,
                 "%s: [%s] keeps its output for other jobs, but it is on one machine only; 'repeat "
                 "= per-device' runs all jobs on each machine",
                 s->name, s->jobs[i].label);
    return EW_OK;
}

static ew_err make_tasks(struct ew_fleet_run *f)
{
    const struct ew_study *s = f->study;
    const int times = s->per_device ? n_workers(f) : 1;
    f->tasks = calloc((size_t)s->n_jobs * (size_t)times + 1, sizeof(*f->tasks));
    EW_CHECK(f->tasks, EW_ERR_MEMORY, "no memory for a study");
    for (int i = 0; i < s->n_jobs; i++)
        for (int k = 0; k < times; k++) {
            const char *unit = s->per_device ? machine(f, k)->name : NULL;
            bool done;
            EW_TRY(ew_fleet_job_done(f->store, s, &s->jobs[i], f->opts.machines, unit, &done));
            f->tasks[f->n_tasks++] = (struct task){.job = &s->jobs[i],
                                                   .bound = s->per_device ? k : -1,
                                                   .state = done ? OVER : WAITING};
            f->counts.known += done;
        }
    f->counts.total = f->n_tasks;
    f->counts.at = f->counts.known;
    f->counts.left_s = NAN;
    return EW_OK;
}

static ew_err put_study(struct ew_fleet_run *f, const char *now)
{
    return ew_study_put_progress(f->store, f->study, &f->counts, f->started, now);
}

static ew_err put_head(struct ew_fleet_run *f)
{
    EW_TRY(ew_store_begin(f->store));
    ew_err err = ew_study_check_holder(f->store, f->study);
    for (int i = 0; err == EW_OK && i < f->study->n_published; i++)
        err = ew_store_put(f->store, EW_RECORD_PUBLISHED, 0, &f->study->published[i]);
    if (err == EW_OK)
        err = put_study(f, NULL);
    const ew_err ended = ew_store_end(f->store, err == EW_OK);
    return err == EW_OK ? ended : err;
}

ew_err ew_fleet_run_open(const struct ew_study *study, const struct ew_fleet_opts *o,
                         struct ew_fleet_run **out)
{
    EW_TRY(check_study(study, o->machines));
    struct ew_fleet_run *f = calloc(1, sizeof(*f));
    EW_CHECK(f, EW_ERR_MEMORY, "no memory for a study");
    f->study = study;
    f->opts = *o;
    ew_run_time_text(f->started);
    ew_err err = ew_store_open(o->db, NULL, &f->store);
    if (err == EW_OK)
        err = make_tasks(f);
    if (err == EW_OK)
        err = put_head(f);
    if (err != EW_OK) {
        ew_fleet_run_close(f);
        return err;
    }
    *out = f;
    return EW_OK;
}

void ew_fleet_run_close(struct ew_fleet_run *f)
{
    if (!f)
        return;
    for (int i = 0; i < n_workers(f); i++)
        ew_link_close(&f->workers[i].link);
    ew_store_close(f->store);
    free(f->tasks);
    free(f);
}

struct ew_runner_counts ew_fleet_run_counts(const struct ew_fleet_run *f)
{
    return f->counts;
}

struct ew_store *ew_fleet_run_store(struct ew_fleet_run *f)
{
    return f->store;
}

/* ---- Losing a machine ------------------------------------------------------------------------ */

/* Marks the machine's job as interrupted and queues it for any machine or for this one, as the
 * file of machines says. */
static ew_err put_back(struct ew_fleet_run *f, int i, const char *why)
{
    struct worker *s = &f->workers[i];
    struct task *t = &f->tasks[s->task];
    char reason[EW_LINK_TEXT + 64];
    snprintf(reason, sizeof(reason), "%s: %s", machine(f, i)->name, why);
    t->state = WAITING;
    if (machine(f, i)->when_lost == EW_LOST_WAIT)
        t->bound = i;
    return ew_store_run_end(f->store, t->run, EW_RUN_INTERRUPTED, reason, NAN);
}

static bool is_busy(const struct worker *s)
{
    return s->state == WORKING || s->state == EXPORTING || s->state == FETCHING;
}

static ew_err lose(struct ew_fleet_run *f, int i, const char *why, struct ew_fleet_report *out)
{
    struct worker *s = &f->workers[i];
    const struct ew_fleet_machine *m = machine(f, i);
    snprintf(out->reason, sizeof(out->reason), "%s", why);
    const bool busy = is_busy(s);
    ew_link_close(&s->link);
    s->state = s->tries >= m->retries ? GIVEN_UP : DOWN;
    const double wait_s = fmin(MOST_WAIT_S, FIRST_WAIT_S * exp2((double)s->tries++));
    s->retry_ns = ew_clock_ns() + (int64_t)(wait_s * (double)EW_NS_PER_S);
    out->event = s->state == GIVEN_UP ? EW_FLEET_GIVEN_UP : EW_FLEET_LOST;
    out->machine = m->name;
    out->job = busy ? f->tasks[s->task].job : NULL;
    return busy ? put_back(f, i, out->reason) : EW_OK;
}

/* ---- Messages from machines ------------------------------------------------------------------ */

static void greet(struct ew_fleet_run *f, int i, struct ew_fleet_report *out)
{
    struct worker *s = &f->workers[i];
    char file[160];
    for (int k = 0; k < n_workers(f); k++)
        if (k != i && f->workers[k].link.ready &&
            strcmp(f->workers[k].link.device, s->link.device) == 0)
            EW_WARN("%s and %s are one device: their runs disturb each other", machine(f, k)->name,
                    machine(f, i)->name);
    snprintf(file, sizeof(file), "%.120s.study", f->study->name);
    s->state = READY;
    out->event = EW_FLEET_UP;
    out->machine = machine(f, i)->name;
    out->up = &s->link.about;
    out->device = s->link.device;
    ew_link_file(&s->link, file, f->opts.text, strlen(f->opts.text));
}

/* Asks the machine for the rows of its job as a database file. */
static void ask_export(struct ew_fleet_run *f, int i)
{
    struct worker *s = &f->workers[i];
    const struct task *t = &f->tasks[s->task];
    char where[600];
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t k = 0; k < EW_COUNT(ends); k++) {
        char name[64];
        snprintf(name, sizeof(name), EXPORT_THERE "%s", ends[k]);
        ew_link_ask(&s->link, "drop", name);
    }
    snprintf(where, sizeof(where),
             "--where=job = '%s' and study = '%s' and repeat = %lld and machine_unit = '%s'",
             t->job->row.id, f->study->name, (long long)t->job->repeat, machine(f, i)->name);
    s->state = EXPORTING;
    ew_link_run(&s->link, (const char *const[]){"results", "export", EXPORT_THERE,
                                                "--db=" STORE_THERE, where, NULL});
}

/* A command on the machine has ended. */
static ew_err take_end(struct ew_fleet_run *f, int i, struct ew_fleet_report *out, bool *told)
{
    struct worker *s = &f->workers[i];
    const int status = s->link.status;
    const bool fine = s->state == WORKING ? status == 0 || status == 3 : status == 0;
    if (!fine) {
        char why[EW_LINK_TEXT];
        snprintf(why, sizeof(why), "%.480s",
                 s->link.said[0] ? s->link.said : "the study ended there without an error message");
        *told = true;
        return lose(f, i, why, out);
    }
    if (s->state == WORKING) {
        ask_export(f, i);
    } else if (s->state == EXPORTING) {
        s->state = FETCHING;
        ew_link_ask(&s->link, "fetch", EXPORT_THERE);
    }
    return EW_OK;
}

static void count(struct ew_fleet_run *f, const struct ew_fleet_report *r)
{
    int64_t workers = 0;
    f->counts.done += r->event == EW_FLEET_DONE;
    f->counts.failed += r->event == EW_FLEET_FAILED;
    f->counts.skipped += r->event == EW_FLEET_SKIPPED;
    f->counts.at++;
    if (r->event == EW_FLEET_DONE && isfinite(r->wall_s))
        f->all_s += r->wall_s;
    for (int i = 0; i < n_workers(f); i++)
        workers += f->workers[i].state != GIVEN_UP;
    if (f->counts.done > 0)
        f->counts.left_s = f->all_s / (double)f->counts.done *
                           (double)(f->counts.total - f->counts.at) /
                           (double)(workers ? workers : 1);
}

/* The rows have arrived: the job is over, or another machine may be able to do it. */
static ew_err take_rows(struct ew_fleet_run *f, int i, struct ew_fleet_report *out, bool *told)
{
    struct worker *s = &f->workers[i];
    struct task *t = &f->tasks[s->task];
    const struct ew_store_claim claim = {t->job->row.id, f->study->name, machine(f, i)->name,
                                         t->job->repeat};
    *told = true;
    if (ew_fleet_rows_home(f->store, &claim, &s->link.frame, t->run, out) != EW_OK) {
        char why[EW_LINK_TEXT];
        snprintf(why, sizeof(why), "%.500s", ew_error_message());
        return lose(f, i, why, out);
    }
    s->state = READY;
    s->tries = 0;
    out->machine = machine(f, i)->name;
    out->job = t->job;
    if (out->event == EW_FLEET_SKIPPED) {
        t->refused |= (uint64_t)1 << i;
        t->state = WAITING;
        snprintf(t->reason, sizeof(t->reason), "%s: %.400s", machine(f, i)->name, out->reason);
        *told = false; /* reported only when no machine can do it */
        return EW_OK;
    }
    t->state = OVER;
    count(f, out);
    return put_study(f, NULL);
}

/* An epoch of the job has ended.  Epochs of a finished job are ignored: they come with its rows. */
static ew_err take_epoch(struct ew_fleet_run *f, int i, struct ew_fleet_report *out, bool *told)
{
    struct worker *s = &f->workers[i];
    char why[EW_LINK_TEXT];
    if (s->state != WORKING ||
        ew_epoch_feed_take(f->store, f->tasks[s->task].run, &s->link.frame) == EW_OK)
        return EW_OK;
    snprintf(why, sizeof(why), "%.500s", ew_error_message());
    *told = true;
    return lose(f, i, why, out);
}

/* Handles one event of a machine; *told: it is in the report. */
static ew_err take_event(struct ew_fleet_run *f, int i, enum ew_link_event e,
                         struct ew_fleet_report *out, bool *told)
{
    struct worker *s = &f->workers[i];
    switch (e) {
    case EW_LINK_READY:
        *told = true;
        greet(f, i, out);
        break;
    case EW_LINK_EPOCH:
        return take_epoch(f, i, out, told);
    case EW_LINK_END:
        return take_end(f, i, out, told);
    case EW_LINK_DATA:
        return s->state == FETCHING ? take_rows(f, i, out, told) : EW_OK;
    case EW_LINK_GONE: {
        char why[EW_LINK_TEXT];
        snprintf(why, sizeof(why), "%s", s->link.said);
        *told = true;
        return lose(f, i, why, out);
    }
    case EW_LINK_NOTHING:
    case EW_LINK_OUT:
        break;
    }
    return EW_OK;
}

/* A job that never ends would hold up the study, so its time is limited. */
static ew_err check_job_time(struct ew_fleet_run *f, int i, struct ew_fleet_report *out, bool *told)
{
    const struct worker *s = &f->workers[i];
    const double most_s = machine(f, i)->job_timeout_s;
    char why[64];
    if (!is_busy(s) || most_s <= 0 ||
        (double)(ew_clock_ns() - s->begun_ns) <= most_s * (double)EW_NS_PER_S)
        return EW_OK;
    snprintf(why, sizeof(why), "took more than %.0f s for its job", most_s);
    *told = true;
    return lose(f, i, why, out);
}

/* Failures of the database end the study; failures of a machine are events. */
static ew_err hear_all(struct ew_fleet_run *f, struct ew_fleet_report *out, bool *told)
{
    for (int i = 0; i < n_workers(f) && !*told; i++) {
        enum ew_link_event e;
        while (!*told && (e = ew_link_next(&f->workers[i].link)) != EW_LINK_NOTHING)
            EW_TRY(take_event(f, i, e, out, told));
        if (!*told)
            EW_TRY(check_job_time(f, i, out, told));
    }
    return EW_OK;
}

/* ---- Giving jobs ----------------------------------------------------------------------------- */

static bool may(const struct task *t, int i)
{
    return (t->bound < 0 || t->bound == i) && !(t->refused >> i & 1);
}

static ew_err start_machines(struct ew_fleet_run *f, struct ew_fleet_report *out, bool *told)
{
    for (int i = 0; i < n_workers(f) && !*told; i++) {
        struct worker *s = &f->workers[i];
        if (s->state != DOWN || ew_clock_ns() < s->retry_ns)
            continue;
        s->state = STARTING;
        if (ew_link_open(&s->link, machine(f, i), f->opts.self) != EW_OK) {
            char why[EW_LINK_TEXT];
            snprintf(why, sizeof(why), "%.500s", ew_error_message());
            *told = true;
            EW_TRY(lose(f, i, why, out));
        }
    }
    return EW_OK;
}

static void send_job(struct ew_fleet_run *f, int i, const struct task *t)
{
    const char *words[WORDS_MAX];
    char file[160], job[64];
    int n = 0;
    snprintf(file, sizeof(file), "%.120s.study", f->study->name);
    snprintf(job, sizeof(job), "--job=%s:%lld", t->job->row.id, (long long)t->job->repeat);
    words[n++] = "study";
    words[n++] = file;
    words[n++] = job;
    words[n++] = "--db=" STORE_THERE;
    for (int k = 0; f->opts.words[k] && n + 1 < WORDS_MAX; k++)
        words[n++] = f->opts.words[k];
    words[n] = NULL;
    ew_link_run(&f->workers[i].link, words);
}

static ew_err give_jobs(struct ew_fleet_run *f, struct ew_fleet_report *out, bool *told)
{
    for (int i = 0; i < n_workers(f) && !*told; i++) {
        struct worker *s = &f->workers[i];
        int k = 0;
        while (k < f->n_tasks && !(f->tasks[k].state == WAITING && may(&f->tasks[k], i)))
            k++;
        if (s->state != READY || k == f->n_tasks)
            continue;
        struct task *t = &f->tasks[k];
        EW_TRY(ew_fleet_row_begin(f->store, f->study, t->job, &s->link.about, &t->run));
        EW_TRY(put_study(f, t->job->label));
        t->state = RUNNING;
        s->task = k;
        s->begun_ns = ew_clock_ns();
        s->state = WORKING;
        out->event = EW_FLEET_BEGUN;
        out->machine = machine(f, i)->name;
        out->job = t->job;
        *told = true;
        send_job(f, i, t);
    }
    return EW_OK;
}

/* Closes jobs that no machine can do; *more: a job is running or can still be done. */
static ew_err look_for_end(struct ew_fleet_run *f, struct ew_fleet_report *out, bool *told,
                           bool *more)
{
    *more = false;
    for (int k = 0; k < f->n_tasks && !*told; k++) {
        struct task *t = &f->tasks[k];
        bool possible = t->state == RUNNING;
        for (int i = 0; i < n_workers(f) && t->state == WAITING; i++)
            possible |= f->workers[i].state != GIVEN_UP && may(t, i);
        *more |= possible;
        if (t->state != WAITING || possible || !t->refused)
            continue;
        t->state = OVER;
        *out = (struct ew_fleet_report){.event = EW_FLEET_SKIPPED, .job = t->job};
        snprintf(out->reason, sizeof(out->reason), "%s", t->reason);
        *told = true;
        count(f, out);
        EW_TRY(put_study(f, NULL));
    }
    return EW_OK;
}

static void wait_for_something(struct ew_fleet_run *f)
{
    struct pollfd fds[EW_MACHINES_MAX * EW_LINK_FDS];
    int n = 0;
    for (int i = 0; i < n_workers(f); i++) {
        int more = 0;
        ew_link_poll(&f->workers[i].link, fds + n, &more);
        n += more;
    }
    poll(fds, (nfds_t)n, POLL_MS);
    for (int i = 0; i < n_workers(f); i++)
        ew_link_receive(&f->workers[i].link);
}

ew_err ew_fleet_run_step(struct ew_fleet_run *f, struct ew_fleet_report *out)
{
    for (;;) {
        bool told = false, more = false;
        *out = (struct ew_fleet_report){.wall_s = NAN};
        EW_TRY(hear_all(f, out, &told));
        if (!told)
            EW_TRY(look_for_end(f, out, &told, &more));
        if (!told && !more) {
            out->event = EW_FLEET_END;
            return put_study(f, NULL);
        }
        if (!told)
            EW_TRY(start_machines(f, out, &told));
        if (!told)
            EW_TRY(give_jobs(f, out, &told));
        if (told)
            return EW_OK;
        wait_for_something(f);
    }
}
