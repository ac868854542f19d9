/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise study: runs the jobs of an experiment file, and resumes an interrupted run. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advise/design.h"
#include "advise/mode_grid.h"
#include "base/file.h"
#include "base/progress.h"
#include "cli/board_text.h"
#include "cli/cmd.h"
#include "cli/study_fleet.h"
#include "cli/study_show.h"
#include "cli/study_until.h"
#include "study/outputs.h"

#define FILE_LIMIT    (1 << 20)
#define PROGRAM_CHARS 512
#define ADVISED       50 /* most modes of "advise N" */
#define SWEEPS        64 /* most sweeps that --until can end */
/* The program that runs the jobs: this executable even if its file is replaced or deleted
 * meanwhile, so that all jobs have the version that is recorded. */
#define SELF "/proc/self/exe"

struct opts {
    const char *db, *only, *scratch, *simulate, *on, *job, *until;
    bool dry_run, quick, text, outside;
    int64_t repeat, repeat_noisy;
    double busy, temp;
};

static const struct ew_field fields[] = {
    {.name = "dry-run",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct opts, dry_run),
     .help = "list the jobs with estimates of time, memory and disk, and run none",
     .letter = 'n'},
    {.name = "quick",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct opts, quick),
     .help = "the reduced size defined in the file"},
    {.name = "only",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, only),
     .metavar = "SECTION,NAME=VALUE",
     .help = "run only these sections, and jobs with these settings"},
    {.name = "on",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, on),
     .metavar = "FILE.ini",
     .help = "run on the machines listed in this file (docs/fleet.md)"},
    {.name = "job",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, job),
     .metavar = "ID:REPEAT",
     .help = "run only this job (its ID as shown by --dry-run); skipped if its data set is not "
             "here"},
    {.name = "simulate",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, simulate),
     .metavar = "BOARD",
     .help = "run on the model of another board; jobs that cannot be simulated are skipped"},
    {.name = "until",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, until),
     .metavar = "time=5%,power=4%",
     .help = "with power-mode = advise N: measure modes until predictions of the others are this "
             "precise"},
    {.name = "repeat",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct opts, repeat),
     .def = "0",
     .min = 0,
     .max = 10000,
     .metavar = "N",
     .help = "repetitions of each job; 0: as the file says"},
    {.name = "repeat-noisy",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct opts, repeat_noisy),
     .def = "0",
     .min = 0,
     .max = 100,
     .metavar = "N",
     .help = "repeat a noisy or throttled run up to N times"},
    {.name = "busy",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct opts, busy),
     .def = "0.1",
     .min = 0,
     .max = 1,
     .metavar = "SHARE",
     .help = "a run is noisy if other programs use more than this fraction of the CPU"},
    {.name = "hot",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct opts, temp),
     .def = "85",
     .min = 0,
     .max = 200,
     .metavar = "C",
     .help = "a run is noisy if it starts above this temperature, in degrees Celsius"},
    {.name = "db",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, db),
     .def = EW_STORE_FILE,
     .metavar = "FILE",
     .help = "the results database"},
    {.name = "scratch",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, scratch),
     .def = "runs",
     .metavar = "DIR",
     .help = "folder for temporary files of the jobs"},
    {.name = "allow-outside",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct opts, outside),
     .help = "allow paths outside of the current folder in keep and setup"},
    {.name = "print",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct opts, text),
     .help = "print the study's file, as a template for your own"},
    EW_FIELD_END,
};

/* The call, and the parsed experiment file. */
struct context {
    struct ew_cmd_call *call;
    const struct opts *opts;
    struct ew_arena arena;
    char *text;        /* of the file; the parser inserts NULs */
    const char *whole; /* with --on: an unmodified copy */
    char name[128];
    struct ew_study study;
    const char *advised[ADVISED]; /* the modes that "advise N" expands to */
    int n_advised;
    struct ew_until until;
    const struct ew_study_job *enough[SWEEPS]; /* a job of each sweep that has reached --until */
    int n_enough;
};

/* ---- The file -------------------------------------------------------------------------------- */

/* The study's name: "dir/train-workers.study" is train-workers. */
static ew_err take_name(struct context *x, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    snprintf(x->name, sizeof(x->name), "%s", base);
    char *dot = strrchr(x->name, '.');
    if (dot)
        *dot = '\0';
    EW_CHECK(x->name[0] && !strpbrk(x->name, "'\"/"), EW_ERR_USAGE, "'%s' is not a study's name",
             path);
    return EW_OK;
}

static ew_err unknown_study(struct context *x, const char *name)
{
    struct ew_field names[64];
    char list[64][64];
    const char *text, *file;
    memset(names, 0, sizeof(names));
    for (int i = 0; i < 63 && (file = ew_study_shipped(i, &text)); i++) {
        snprintf(list[i], sizeof(list[i]), "%.*s", (int)strcspn(file, "."), file);
        names[i].name = list[i];
    }
    const char *near = ew_field_nearest(names, name);
    ew_cmd_hint(x->call, "edgewise study list");
    if (near)
        return ew_fail(EW_ERR_NOT_FOUND, "no study '%s'; did you mean '%s'?", name, near);
    return ew_fail(EW_ERR_NOT_FOUND, "no study '%s', and no such file", name);
}

/* Reads the file, else the included study of this name. */
static ew_err read_study(struct context *x, const char *what)
{
    size_t size;
    const char *text, *file;
    EW_TRY(take_name(x, what));
    if (strchr(what, '.') || strchr(what, '/') || access(what, F_OK) == 0)
        return ew_file_read(what, FILE_LIMIT, &x->text, &size);
    for (int i = 0; (file = ew_study_shipped(i, &text)); i++)
        if (strncmp(file, what, strlen(what)) == 0 && strcmp(file + strlen(what), ".study") == 0) {
            x->text = strdup(text);
            EW_CHECK(x->text, EW_ERR_MEMORY, "no memory for a study");
            return EW_OK;
        }
    return unknown_study(x, what);
}

/* Commands that jobs may run; a build may lack one. */
int ew_study_commands(struct ew_study_command *out, int max)
{
    static const char *const names[] = {"train", "bench", "eval", "monitor", "compile", "quantize"};
    int n = 0;
    for (size_t i = 0; i < EW_COUNT(names) && n < max; i++) {
        const struct ew_cmd *c = ew_cmd_find(names[i]);
        if (c && ew_field_find(c->opts, "db"))
            out[n++] = (struct ew_study_command){c->name, c->opts, c->opts_size, c->samples};
    }
    return n;
}

/* The profile of the simulated board, or of this one; NULL: its clocks are not known. */
static const struct ew_profile *board_of(struct context *x, const struct ew_profile *list, int n)
{
    struct ew_board *b = NULL;
    const struct ew_profile *found = NULL;
    if (x->opts->simulate)
        return ew_profile_find(list, n, x->opts->simulate);
    if (ew_board_open(&(struct ew_board_opts){.root = NULL}, &b) == EW_OK && b->profile)
        found = ew_profile_find(list, n, b->profile->name);
    ew_board_close(b);
    return found;
}

/* The largest N of "advise N" in the file; 0: none. */
static int most_advised(const char *text)
{
    long most = 0;
    for (const char *p = text; (p = strstr(p, "advise ")); p += 7) {
        const long n = strtol(p + 7, NULL, 10);
        most = n > most ? n : most;
    }
    return most < ADVISED ? (int)most : ADVISED;
}

/* Chooses the modes to measure if the file uses "advise N". */
static ew_err advise(struct context *x, const char **out, int *n)
{
    const struct ew_profile *list;
    struct ew_design d = {0};
    struct ew_design_step steps[ADVISED];
    struct ew_mode *modes;
    int n_list;
    *n = 0;
    const int want = most_advised(x->text);
    if (want < 1)
        return EW_OK;
    EW_TRY(ew_profiles_load(&x->arena, &list, &n_list));
    const struct ew_profile *p = board_of(x, list, n_list);
    if (!p || !p->cpu_khz)
        return EW_OK;
    EW_TRY(ew_grid_of_board(&x->arena, p, &modes, &d.n));
    d.candidates = modes;
    EW_TRY(ew_design_modes(&d, want, steps, n));
    for (int i = 0; i < *n; i++) {
        char text[EW_MODE_CHARS];
        const struct ew_mode *m = &modes[steps[i].candidate];
        out[i] = ew_arena_strdup(&x->arena, ew_mode_words(m, ew_profile_lacks(p), text));
        EW_CHECK(out[i], EW_ERR_MEMORY, "no memory for a study");
    }
    return EW_OK;
}

/* Replaces the file's differences from the publication, which are about this machine. */
static ew_err tell_simulated(struct context *x)
{
    const struct ew_profile *list, *p;
    int n;
    EW_TRY(ew_profiles_load(&x->arena, &list, &n));
    EW_TRY(ew_profile_named(list, n, x->opts->simulate, &p));
    x->study.differs = ew_arena_printf(
        &x->arena, "nothing ran: times, power and energy come from a model of %s%s%s", p->name,
        p->model.source ? "; its constants: " : "", p->model.source ? p->model.source : "");
    EW_CHECK(x->study.differs, EW_ERR_MEMORY, "no memory for a study");
    return EW_OK;
}

static ew_err parse(struct context *x)
{
    struct ew_study_command commands[8];
    EW_TRY(ew_until_parse(x->opts->until, &x->until));
    EW_TRY(advise(x, x->advised, &x->n_advised));
    EW_CHECK(!x->opts->until || most_advised(x->text) > 0, EW_ERR_USAGE,
             "%s: --until needs power-mode = advise N in the file", x->name);
    /* Machines of a fleet have devices of their own. */
    const char *device =
        x->opts->on || x->opts->job || x->opts->simulate ? NULL : getenv("EW_DEVICE");
    const struct ew_study_opts o = {.commands = commands,
                                    .device = device && *device ? device : NULL,
                                    .simulate = x->opts->simulate,
                                    .advised = x->advised,
                                    .n_advised = x->n_advised,
                                    .n_commands = ew_study_commands(commands, 8),
                                    .quick = x->opts->quick,
                                    .repeat = x->opts->repeat,
                                    .only = x->opts->only};
    EW_TRY(ew_study_parse(&x->arena, x->name, x->text, &o, &x->study));
    if (x->opts->simulate)
        EW_TRY(tell_simulated(x));
    return x->opts->job ? ew_study_pick(&x->study, x->opts->job) : EW_OK;
}

/* ---- list ------------------------------------------------------------------------------------ */

static ew_err list(struct context *x)
{
    const char *text, *file;
    struct ew_json j;
    ew_json_init(&j, stdout);
    if (x->call->json)
        ew_json_array(&j, NULL);
    for (int i = 0; (file = ew_study_shipped(i, &text)); i++) {
        ew_arena_reset(&x->arena);
        free(x->text);
        x->text = strdup(text);
        EW_CHECK(x->text, EW_ERR_MEMORY, "no memory for a study");
        EW_TRY(take_name(x, file));
        EW_TRY(parse(x));
        if (!x->call->json) {
            printf("%-18s %4d jobs  %s\n", x->name, x->study.n_jobs, x->study.title);
            continue;
        }
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", x->name);
        ew_json_str(&j, "title", x->study.title);
        ew_json_int(&j, "jobs", x->study.n_jobs);
        ew_json_end(&j);
    }
    if (!x->call->json)
        return EW_OK;
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- Running --------------------------------------------------------------------------------- */

static ew_err dry_run(struct context *x)
{
    struct ew_store *s = NULL;
    if (access(x->opts->db, R_OK) == 0)
        EW_TRY(ew_store_open(x->opts->db, NULL, &s));
    const ew_err err = ew_study_show_jobs(&x->study, s, x->call->json);
    ew_store_close(s);
    return err;
}

/* Shows the running job on a terminal. */
static void show_now(const struct context *x, const struct ew_runner *r)
{
    char text[EW_JOB_CHARS], left[EW_DURATION_CHARS];
    const struct ew_study_job *j = ew_runner_next(r, NULL);
    const struct ew_runner_counts c = ew_runner_counts(r);
    if (!j || !isatty(STDERR_FILENO))
        return;
    ew_study_job_text(&x->study, j, text);
    ew_term_clear_line(stderr);
    fprintf(stderr, "%s %lld/%lld: %s%.100s, %s left", x->name, (long long)c.at + 1,
            (long long)c.total, j->label, text, ew_duration_text(c.left_s, left));
    fflush(stderr);
}

/* Ctrl-C ends the study and its job, after this message.  The text is formatted beforehand because
 * a handler may only call async-signal-safe functions. */
static char stop_text[256];

static void on_stop(int signal)
{
    (void)!write(STDERR_FILENO, stop_text, strlen(stop_text));
    raise(signal); /* SA_RESETHAND: the default action ends the program */
}

static void catch_stop(const struct context *x)
{
    const struct sigaction a = {.sa_handler = on_stop,
                                .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    snprintf(
        stop_text, sizeof(stop_text),
        "\n%.60s: stopped; finished jobs are in %.100s, the same command continues with the rest\n",
        x->name, x->opts->db);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

/* Whether this job's power mode comes from "advise N". */
static bool is_advised(const struct context *x, const struct ew_study_job *j)
{
    const char *mode = ew_study_given(j, "power-mode");
    for (int i = 0; mode && i < x->n_advised; i++)
        if (strcmp(mode, x->advised[i]) == 0)
            return true;
    return false;
}

/* Checks whether the measured modes of the job's sweep predict the others well enough. */
static ew_err look_at_sweep(struct context *x, struct ew_runner *r,
                            const struct ew_runner_report *report)
{
    const struct ew_study_job *j = report->job;
    struct ew_until_state s;
    if (!x->opts->until || !is_advised(x, j))
        return EW_OK;
    EW_TRY(ew_until_look(&x->until, ew_runner_store(r), x->opts->db, j, &s));
    if (!isfinite(s.time))
        return EW_OK;
    const bool ends = s.reached && x->n_enough < SWEEPS;
    if (ends || report->event == EW_RUNNER_DONE)
        fprintf(stderr, "%s: %d modes predict the others to %.1f %% in time, %.1f %% in power%s\n",
                j->label, s.measured, 100 * s.time, 100 * s.power,
                ends ? ": enough, the rest is not measured" : "");
    if (ends)
        x->enough[x->n_enough++] = j;
    return EW_OK;
}

/* Skips the next jobs if their sweep has reached --until. */
static void pass_over(const struct context *x, struct ew_runner *r)
{
    const struct ew_study_job *next = ew_runner_next(r, NULL);
    for (int i = 0; next && i < x->n_enough; i++)
        if (is_advised(x, next) && ew_until_same_sweep(next, x->enough[i])) {
            ew_runner_pass(r);
            next = ew_runner_next(r, NULL);
            i = -1;
        }
}

static ew_err follow(struct context *x, struct ew_runner *r)
{
    struct ew_runner_report report;
    do {
        pass_over(x, r);
        show_now(x, r);
        const ew_err err = ew_runner_step(r, &report);
        if (isatty(STDERR_FILENO))
            ew_term_clear_line(stderr);
        EW_TRY(err);
        const struct ew_runner_counts c = ew_runner_counts(r);
        ew_study_show_report(&x->study, &report, &c);
        if (report.event == EW_RUNNER_DONE || report.event == EW_RUNNER_KNOWN)
            EW_TRY(look_at_sweep(x, r, &report));
    } while (report.event != EW_RUNNER_END);
    return EW_OK;
}

static ew_err finish(struct context *x, struct ew_runner *r)
{
    const struct ew_runner_counts c = ew_runner_counts(r);
    const struct ew_machine_row *m = ew_runner_machine(r);
    EW_TRY(x->call->json ? ew_study_json_results(&x->study, ew_runner_store(r), m, &c)
                         : ew_study_show_results(&x->study, ew_runner_store(r), m));
    EW_CHECK(c.failed + c.skipped == 0, EW_ERR_SKIPPED,
             "%s: of %lld jobs %lld failed and %lld could not be done here", x->name,
             (long long)c.total, (long long)c.failed, (long long)c.skipped);
    return EW_OK;
}

/* Makes the data sets and files that the study needs and generates itself. */
static ew_err set_up(struct context *x)
{
    const struct ew_setup_opts by = {SELF, x->opts->db};
    for (;;) {
        const char *what;
        EW_TRY(ew_runner_setup(&x->study, NULL, &x->arena, &what));
        if (!what)
            return EW_OK;
        fprintf(stderr, "%s: making %s\n", x->name, what);
        EW_TRY(ew_runner_setup(&x->study, &by, &x->arena, &what));
    }
}

static ew_err find_self(char program[PROGRAM_CHARS])
{
    const ssize_t n = readlink(SELF, program, PROGRAM_CHARS - 1);
    EW_CHECK(n > 0, EW_ERR_IO, SELF ": %s", strerror(errno));
    program[n] = '\0';
    return EW_OK;
}

/* Runs the study on the machines of --on; they get the file and options that change its jobs. */
static ew_err run_fleet(struct context *x)
{
    const struct opts *o = x->opts;
    char program[PROGRAM_CHARS];
    const char *words[16];
    struct ew_machines machines;
    int n = 0;
    EW_CHECK(o->simulate || most_advised(x->text) == 0, EW_ERR_UNSUPPORTED,
             "%s: power-mode = advise depends on the board; --on needs the modes written out",
             x->name);
    EW_TRY(find_self(program));
    EW_TRY(ew_machines_read(&x->arena, o->on, &machines));
    if (o->quick)
        words[n++] = "--quick";
    if (o->outside)
        words[n++] = "--allow-outside";
    if (o->simulate)
        words[n++] = ew_arena_printf(&x->arena, "--simulate=%s", o->simulate);
    words[n++] = ew_arena_printf(&x->arena, "--repeat=%lld", (long long)o->repeat);
    words[n++] = ew_arena_printf(&x->arena, "--repeat-noisy=%lld", (long long)o->repeat_noisy);
    words[n++] = ew_arena_printf(&x->arena, "--busy=%g", o->busy);
    words[n++] = ew_arena_printf(&x->arena, "--hot=%g", o->temp);
    words[n] = NULL;
    EW_CHECK(!x->arena.failed, EW_ERR_MEMORY, "no memory for a study");
    catch_stop(x);
    return ew_study_on_fleet(
        &x->study,
        &(struct ew_fleet_opts){
            .machines = &machines, .self = program, .db = o->db, .text = x->whole, .words = words},
        x->call->json);
}

static ew_err run_study(struct context *x)
{
    const struct opts *o = x->opts;
    const struct ew_runner_opts ro = {.program = SELF,
                                      .db = o->db,
                                      .scratch = o->scratch,
                                      .outside = o->outside,
                                      .repeat_noisy = o->repeat_noisy,
                                      .check_data = o->job,
                                      .look_s = x->study.quick ? 0.1 : 1,
                                      .limits = {.busy = o->busy, .temp_c = o->temp},
                                      .least_disk_bytes = 64 << 20};
    struct ew_runner *r;
    catch_stop(x);
    EW_TRY(set_up(x));
    EW_TRY(ew_runner_open(&x->study, &ro, &r));
    ew_err err = follow(x, r);
    if (err == EW_OK)
        err = finish(x, r);
    ew_runner_close(r);
    return err;
}

static ew_err dispatch(struct context *x)
{
    if (strcmp(x->call->args[0], "list") == 0)
        return list(x);
    EW_TRY(read_study(x, x->call->args[0]));
    if (x->opts->text) {
        fputs(x->text, stdout);
        return EW_OK;
    }
    x->whole = ew_arena_strdup(&x->arena, x->text);
    EW_CHECK(x->whole, EW_ERR_MEMORY, "no memory for a study");
    EW_TRY(parse(x));
    EW_TRY(ew_output_check(&x->study, x->opts->outside));
    if (x->opts->dry_run)
        return dry_run(x);
    return x->opts->on ? run_fleet(x) : run_study(x);
}

static ew_err run(struct ew_cmd_call *c)
{
    struct context x = {.call = c, .opts = c->opts};
    ew_arena_init(&x.arena);
    const ew_err err = dispatch(&x);
    ew_arena_fini(&x.arena);
    free(x.text);
    return err;
}

const struct ew_cmd ew_cmd_study = {
    .name = "study",
    .group = EW_CMD_STUDY,
    .summary = "run an experiment file, or a protocol of the published studies",
    .args = "FILE.study|NAME|list",
    .about = "Runs every job of the study as a separate process and keeps all results in the "
             "store.\n"
             "Finished jobs are skipped, so the same command continues an interrupted study.\n"
             "A failed job is recorded with its reason; the study continues and ends with exit "
             "status 3.\n"
             "Before each run it checks load, temperature, clocks, memory and disk space; a noisy "
             "run is marked.\n"
             "At the end the published values are printed beside those of this machine.",
    .examples = "study list\nstudy train-workers --quick\nstudy engine --dry-run\n"
                "study train-batch --quick --only lenet,batch=16 --repeat 3\n"
                "study train-workers --print > mine.study\n"
                "study mine.study --on boards.ini",
    .min_args = 1,
    .max_args = 1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
