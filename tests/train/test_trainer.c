/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer: it learns, its times add up, it resumes bit for bit, it survives a full disk. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/rng.h"
#include "train/trainer_impl.h"
#include "train_test.h"

/* A job in a folder of the test (NULL: none), new or resumed from its last checkpoint. */
struct session {
    struct ew_dataset *data;
    struct ew_train_job job;
    struct ew_checkpoint from;
    struct ew_trainer *t;
};

static const char *session_data = TEST_DATA;

static ew_err session_open(struct session *s, const struct ew_train_opts *o, const char *folder)
{
    char path[512] = "";
    *s = (struct session){
        .job = {.opts = *o,
                .options = "",
                .prep = {.mean = {0.5, 0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5, 0.5}},
                .folder = folder}};
    EW_EXPECT_OK(ew_dataset_open(session_data, &s->data));
    s->job.data = s->data;
    if (folder)
        snprintf(path, sizeof(path), "%s/last.ckpt", folder);
    if (folder && access(path, F_OK) == 0) {
        EW_EXPECT_OK(ew_checkpoint_read(path, &s->from));
        s->job.resume = &s->from;
        s->job.net = s->from.graph;
        s->from.graph = NULL;
    } else {
        s->job.net = small_net();
    }
    return ew_trainer_open(&s->job, &s->t);
}

static void session_close(struct session *s)
{
    ew_trainer_close(s->t);
    ew_checkpoint_fini(&s->from);
    ew_graph_free(s->job.net);
    ew_dataset_close(s->data);
}

/* A checksum of all weights and running statistics. */
static uint64_t weights_sum(const struct ew_graph *g)
{
    struct ew_hash h = {0};
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].kind == EW_VALUE_PARAM || g->values[i].kind == EW_VALUE_STATE)
            ew_hash_add(&h, g->values[i].t.data, ew_tensor_bytes(&g->values[i].t));
    return ew_hash_sum(&h);
}

static uint64_t straight_run(const struct ew_train_opts *o)
{
    struct session s;
    EW_EXPECT_OK(session_open(&s, o, NULL));
    train_some(s.t, 0);
    const uint64_t sum = weights_sum(s.job.net);
    session_close(&s);
    return sum;
}

static ew_err count_epoch(void *ctx, const struct ew_epoch_row *row)
{
    int64_t *epochs = ctx;
    struct ew_checkpoint saved;
    char has[32];
    EW_EXPECT_INT(row->epoch, ++*epochs);
    snprintf(has, sizeof(has), "epoch = %" PRId64, row->epoch);
    if (EW_EXPECT_OK(ew_checkpoint_read(ew_test_path("recorded/last.ckpt"), &saved)))
        EW_EXPECT(!strstr(saved.progress, has));
    ew_checkpoint_fini(&saved);
    return EW_OK;
}

/* Regression: a run killed after it had written an epoch's checkpoint, but before it had recorded
 * the epoch in the store, never recorded it. */
static void records_before_it_saves(void)
{
    int64_t epochs = 0;
    struct session s = {.job = {.opts = small_opts(),
                                .options = "",
                                .net = small_net(),
                                .folder = ew_test_path("recorded"),
                                .record = count_epoch,
                                .record_ctx = &epochs}};
    s.job.opts.epochs = 2;
    if (EW_EXPECT_OK(ew_dataset_open(TEST_DATA, &s.data))) {
        s.job.data = s.data;
        if (EW_EXPECT_OK(ew_trainer_open(&s.job, &s.t)))
            train_some(s.t, 0);
    }
    EW_EXPECT_INT(epochs, 2);
    session_close(&s);
}

/* ---- Resuming a finished run ---- */

/* Regression: a run with all its epochs done was resumed as if one were missing: an epoch without
 * batches, with a NaN loss and the machine's uptime as its time.  Only the test remains, if a run
 * was killed before it. */
static void a_finished_run_stays_finished(void)
{
    struct ew_train_opts o = small_opts();
    struct session s;
    o.epochs = 1;
    for (int i = 0; i < 4; i++) { /* with the test split, twice; with a validation split, twice */
        const char *folder = ew_test_path(i < 2 ? "ended" : "ended-split");
        o.val_split = i < 2 ? 0 : 0.2;
        if (!EW_EXPECT_OK(session_open(&s, &o, folder)))
            return;
        train_some(s.t, 0);
        const struct ew_train_result r = ew_trainer_result(s.t);
        EW_EXPECT_INT(r.epochs, 1);
        EW_EXPECT_INT(r.test.samples, 64);
        EW_EXPECT(r.times.wall_s < 1000);
        session_close(&s);
    }
    o.epochs = 2;
    EW_EXPECT_OK(session_open(&s, &o, ew_test_path("ended-split")));
    train_some(s.t, 0);
    session_close(&s);
    o.epochs = 1;
    EW_EXPECT_ERR(session_open(&s, &o, ew_test_path("ended-split")), EW_ERR_ARG,
                  "2 epochs behind it");
    s.t = NULL;
    session_close(&s);
    session_data = TEST_DATA ",seed=1,train=200";
    o.epochs = 3;
    EW_EXPECT_ERR(session_open(&s, &o, ew_test_path("ended-split")), EW_ERR_ARG,
                  "has 200 training samples");
    s.t = NULL;
    session_close(&s);
    session_data = TEST_DATA;
}

static void a_schedule_has_its_milestones(void)
{
    struct ew_train_opts o = small_opts();
    struct session s;
    o.schedule = EW_SCHEDULE_MULTISTEP;
    EW_EXPECT_ERR(session_open(&s, &o, NULL), EW_ERR_USAGE, "--milestones");
    session_close(&s);
    o.schedule = EW_SCHEDULE_COSINE;
    o.milestones = (struct ew_ints){1, {2}};
    EW_EXPECT_ERR(session_open(&s, &o, NULL), EW_ERR_USAGE, "--schedule multistep");
    session_close(&s);
}

/* ---- Learning ---- */

static void learns_and_keeps_the_best(void)
{
    struct ew_train_opts o = small_opts();
    struct session s;
    o.epochs = 16;
    o.load.augment = "none";
    o.val_split = 0.2;
    o.batch = 16;
    if (!EW_EXPECT_OK(session_open(&s, &o, ew_test_path("best"))))
        return;
    train_some(s.t, 0);
    const struct ew_train_result r = ew_trainer_result(s.t);
    EW_EXPECT_INT(r.epochs, 16);
    EW_EXPECT(!r.validated_on_test);
    EW_EXPECT(r.test.accuracy > 0.6);
    EW_EXPECT_INT(r.test.samples, 64);
    EW_EXPECT_INT(r.images, 16 * 256);
    EW_EXPECT(r.best_epoch >= 1 && !r.checkpoint_failed);
    /* An epoch that is the best is one file with two names; a later one leaves best.ckpt alone. */
    struct stat best, last;
    EW_EXPECT_INT(stat(ew_test_path("best/best.ckpt"), &best), 0);
    EW_EXPECT_INT(stat(ew_test_path("best/last.ckpt"), &last), 0);
    EW_EXPECT((best.st_ino == last.st_ino) == (r.best_epoch == r.epochs));
    EW_EXPECT_INT(best.st_nlink, r.best_epoch == r.epochs ? 2 : 1);
    session_close(&s);
}

static void does_not_depend_on_threads_and_workers(void)
{
    struct ew_train_opts o = small_opts();
    const uint64_t one = straight_run(&o);
    o.threads = 3;
    o.load.workers = 3;
    EW_EXPECT(straight_run(&o) == one);
    o.load.workers = 0;
    EW_EXPECT(straight_run(&o) == one);
    o.seed = 6;
    EW_EXPECT(straight_run(&o) != one);
}

static void every_optimizer_learns(void)
{
    for (int k = 0; k < EW_OPTIMIZER_COUNT; k++) {
        struct ew_train_opts o = small_opts();
        struct session s;
        o.optimizer = k;
        o.lr = k < EW_OPTIMIZER_ADAM ? 0.2 : 0.005;
        o.label_smoothing = 0.1;
        o.weight_decay = 1e-4;
        o.epochs = 5;
        o.load.augment = "none";
        if (!EW_EXPECT_OK(session_open(&s, &o, NULL)))
            return;
        train_some(s.t, 10);
        const double first = ew_trainer_status(s.t).loss;
        train_some(s.t, 0);
        EW_EXPECT(ew_trainer_epoch(s.t)->train_loss < 0.9 * first);
        session_close(&s);
    }
}

static void says_when_it_diverges(void)
{
    struct ew_train_opts o = small_opts();
    struct session s;
    o.lr = 1000;
    enum ew_train_event event;
    if (!EW_EXPECT_OK(session_open(&s, &o, NULL)))
        return;
    ew_err e = EW_OK;
    for (int i = 0; i < 60 && e == EW_OK; i++)
        e = ew_trainer_step(s.t, &event);
    EW_EXPECT_INT(e, EW_ERR_ARG);
    EW_EXPECT_HAS(ew_error_message(), "it has diverged");
    session_close(&s);
}

/* ---- Time ---- */

/* The number behind "key": in a line of JSON. */
static double number(const char *line, const char *key)
{
    char text[64];
    snprintf(text, sizeof(text), "\"%s\":", key);
    const char *at = strstr(line, text);
    return at ? strtod(at + strlen(text), NULL) : (double)NAN;
}

/* Adds up the rows of batches; each must be the sum of its own parts. */
static double rows_sum(const char *path, int64_t *rows)
{
    char *text = NULL, *save = NULL;
    size_t size;
    double all = 0;
    EW_EXPECT_OK(ew_file_read(path, 1 << 20, &text, &size));
    *rows = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const double wall = number(line, "wall_s"), parts = number(line, "compute_s") +
                                                            number(line, "stall_s") +
                                                            number(line, "overhead_s");
        EW_EXPECT_NEAR(parts, wall, 0.01 * wall);
        EW_EXPECT(number(line, "decode_s") > 0 && number(line, "augment_s") > 0);
        all += parts;
        ++*rows;
    }
    free(text);
    return all;
}

/* True if an external clock agrees with the trainer's epoch time; the sums must be right in every
 * run. */
static bool times_agree(const char *folder, char said[128])
{
    struct ew_train_opts o = small_opts();
    struct session s;
    enum ew_train_event event = EW_TRAIN_BATCH;
    char batches[64];
    int64_t rows;
    o.epochs = 1;
    o.checkpoint_every = 0;
    o.load.workers = 0;
    if (!EW_EXPECT_OK(session_open(&s, &o, ew_test_path(folder))))
        return true;
    const int64_t start = ew_clock_ns();
    for (int steps = 0; steps < 10; steps++)
        EW_EXPECT_OK(ew_trainer_step(s.t, &event));
    const double wall = (double)(ew_clock_ns() - start) * 1e-9;
    train_some(s.t, 0);
    const struct ew_epoch_row *e = ew_trainer_epoch(s.t);
    EW_EXPECT_NEAR(e->compute_s + e->stall_s + e->overhead_s, e->wall_s, 0.01 * e->wall_s);
    snprintf(batches, sizeof(batches), "%s/batches.jsonl", folder);
    const double all = rows_sum(ew_test_path(batches), &rows);
    EW_EXPECT_INT(rows, 10);
    EW_EXPECT(all <= e->wall_s * 1.0001);
    /* The work after the last row (writing it, and a checkpoint) is only in the epoch. */
    snprintf(said, 128, "the trainer's wall time is %g s, the clock's %g s, that of rows %g s",
             e->wall_s, wall, all);
    const bool agree = fabs(e->wall_s - wall) <= 0.01 * wall + 2e-3 && all > 0.7 * e->wall_s;
    /* and the checkpoint after the validation is in neither */
    EW_EXPECT(ew_trainer_result(s.t).checkpoint_s > 0);
    session_close(&s);
    return agree;
}

/* A busy machine may suspend the process between two readings of the clock, but not five times in a
 * row. */
static void times_add_up(void)
{
    char folder[32], said[128];
    for (int i = 0; i < 5; i++) {
        snprintf(folder, sizeof(folder), "times%d", i);
        if (times_agree(folder, said))
            return;
    }
    EW_FAIL("%s", said);
}

/* ---- Resuming ---- */

static void goes_on_from_every_batch(void)
{
    struct ew_train_opts o = small_opts();
    o.epochs = 2;
    const uint64_t want = straight_run(&o);
    for (int stop = 1; stop <= 21; stop += 4) {
        struct session s;
        char folder[32];
        snprintf(folder, sizeof(folder), "stop%d", stop);
        char path[512];
        snprintf(path, sizeof(path), "%s", ew_test_path(folder));
        if (!EW_EXPECT_OK(session_open(&s, &o, path)))
            return;
        train_some(s.t, stop);
        ew_trainer_save(s.t);
        session_close(&s);
        o.threads = 1 + stop % 2;
        if (!EW_EXPECT_OK(session_open(&s, &o, path)))
            return;
        train_some(s.t, 0);
        EW_EXPECT(weights_sum(s.job.net) == want);
        session_close(&s);
    }
}

/* A child process that trains, or resumes, to the end; it may be killed at any moment. */
static pid_t spawn_training(const struct ew_train_opts *o, const char *folder)
{
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct session s;
    if (session_open(&s, o, folder) != EW_OK) {
        fprintf(stderr, "%s\n", ew_error_message());
        _exit(3);
    }
    train_some(s.t, 0);
    ew_trainer_save(s.t);
    ew_trainer_close(s.t);
    _exit(0);
}

/* Empties a folder for a new run. */
static void clear_folder(const char *folder)
{
    char path[1024];
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        unlink(path); /* "." and ".." cannot be removed */
    }
    if (d)
        closedir(d);
}

/* Evaluation uses the block of the training plan, which is large enough for either, so the reported
 * memory covers both.  Regression: evaluation's was missing, and a run that planned 220 MiB took
 * 380. */
static void planned_memory_has_evaluation(void)
{
    const struct ew_train_opts o = small_opts();
    struct session s;
    EW_EXPECT_OK(session_open(&s, &o, NULL));
    const struct ew_trainer *t = s.t;
    const int64_t planned = ew_trainer_result(t).planned_bytes;
    enum ew_train_event event = EW_TRAIN_BATCH;
    while (event != EW_TRAIN_EVAL && event != EW_TRAIN_DONE)
        EW_EXPECT_OK(ew_trainer_step(s.t, &event));
    struct ew_plan_stats eval;
    if (EW_EXPECT(t->validation.plan)) {
        ew_plan_stats(t->validation.plan, &eval);
        EW_EXPECT(eval.block_bytes > 0 && (eval.packed_bytes > 0 || getenv("EW_DEVICE")));
        const struct ew_memory *block = ew_plan_lend(t->learner.train).block;
        EW_EXPECT_SAME(ew_plan_lend(t->validation.plan).block, block);
        EW_EXPECT(ew_backend_bytes(block) >= eval.block_bytes + eval.packed_bytes);
        EW_EXPECT(planned >= (int64_t)ew_backend_bytes(block));
    }
    session_close(&s);

    struct ew_train_opts tight = o; /* the limit covers all of it */
    tight.memory_limit = planned * 9 / 10;
    EW_EXPECT_OK(session_open(&s, &tight, NULL));
    EW_EXPECT(ew_trainer_result(s.t).planned_bytes <= tight.memory_limit);
    session_close(&s);
}

/* A limit that splits the batch: batch norms see one micro-batch at a time, so another number of
 * them is another training.  Other threads, workers and machines leave more or less of the limit; a
 * resumed run keeps its number, or says why it cannot. */
static void goes_on_in_the_same_parts(void)
{
    struct ew_train_opts o = small_opts(), other;
    struct session s;
    EW_EXPECT_OK(session_open(&s, &o, NULL));
    o.memory_limit = ew_trainer_result(s.t).planned_bytes;
    session_close(&s);
    int parts = 1;
    while (parts == 1 && o.memory_limit > 1000) {
        o.memory_limit = o.memory_limit * 19 / 20;
        if (!EW_EXPECT_OK(session_open(&s, &o, NULL)))
            return;
        parts = s.t->learner.micro_batches;
        session_close(&s);
    }
    const uint64_t want = straight_run(&o);
    for (int less = 0; less < 2; less++) {
        const char *folder = ew_test_path(less ? "parts-less" : "parts-more");
        EW_EXPECT_OK(session_open(&s, &o, folder));
        train_some(s.t, 3);
        ew_trainer_save(s.t);
        session_close(&s);
        other = o;
        other.memory_limit = less ? o.memory_limit / 2 : 2 * o.memory_limit;
        if (less) {
            char needs[32]; /* their number depends on the memory that the machine's kernels need */
            snprintf(needs, sizeof(needs), "in %d parts needs", parts);
            EW_EXPECT_ERR(session_open(&s, &other, folder), EW_ERR_LIMIT, needs);
            s.t = NULL;
        } else if (EW_EXPECT_OK(session_open(&s, &other, folder))) {
            EW_EXPECT_INT(s.t->learner.micro_batches, parts);
            train_some(s.t, 0);
            EW_EXPECT(weights_sum(s.job.net) == want);
        }
        session_close(&s);
    }
}

/* Regression: rows that were deleted from a run, or that its checkpoint counts but were never
 * written, became zeros, up to a gigabyte of them. */
static void goes_on_without_lost_rows(void)
{
    struct ew_train_opts o = small_opts();
    o.epochs = 1;
    char folder[512], path[600];
    snprintf(folder, sizeof(folder), "%s", ew_test_path("cut"));
    snprintf(path, sizeof(path), "%s/epochs.csv", folder);
    for (int cut = 0; cut < 2; cut++) {
        struct session s;
        char *text = NULL;
        size_t size = 0;
        o.epochs++;
        EW_EXPECT_OK(session_open(&s, &o, folder));
        train_some(s.t, 0);
        ew_trainer_save(s.t);
        session_close(&s);
        EW_EXPECT_OK(ew_file_read(path, 1 << 20, &text, &size));
        EW_EXPECT(text && strncmp(text, "epoch", 5) == 0 && strlen(text) == size);
        EW_EXPECT(size && text[size - 1] == '\n');
        if (cut == 0) /* in the middle of a row */
            EW_EXPECT_INT(truncate(path, (off_t)size - 5), 0);
        if (cut == 1)
            EW_EXPECT_INT(unlink(path), 0);
        free(text);
    }
    struct session s;
    char *text = NULL;
    size_t size = 0;
    o.epochs++;
    EW_EXPECT_OK(session_open(&s, &o, folder));
    train_some(s.t, 0);
    session_close(&s);
    EW_EXPECT_OK(ew_file_read(path, 1 << 20, &text, &size));
    EW_EXPECT(text && strncmp(text, "epoch", 5) == 0 && strlen(text) == size);
    int rows = 0;
    for (size_t i = 0; i < size; i++)
        rows += text[i] == '\n';
    EW_EXPECT_INT(rows, 2); /* the title and the last epoch */
    free(text);
}

/* Security: a run's folder from somebody else may have links in the place of files that the run
 * writes. */
static void goes_on_without_links(void)
{
    static const char *const names[] = {"epochs.csv", "batches.jsonl", "options.ini", "best.ckpt",
                                        "result.json"};
    const struct ew_train_opts o = small_opts();
    struct session s;
    char folder[512], victim[512], path[600], *text = NULL;
    size_t size = 0;
    snprintf(folder, sizeof(folder), "%s", ew_test_path("linked"));
    snprintf(victim, sizeof(victim), "%s", ew_test_path("victim"));
    EW_EXPECT_OK(session_open(&s, &o, folder));
    train_some(s.t, 1);
    ew_trainer_save(s.t);
    session_close(&s);
    EW_EXPECT_OK(ew_file_write(victim, "mine", 4));
    for (size_t i = 0; i < EW_COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
        EW_EXPECT_INT(symlink(victim, path), 0);
        EW_EXPECT_ERR(session_open(&s, &o, folder), EW_ERR_IO, "is no plain file");
        session_close(&s);
        unlink(path);
    }
    EW_EXPECT_OK(ew_file_read(victim, 100, &text, &size));
    EW_EXPECT_STR(text, "mine");
    free(text);
}

/* Nor is a link followed that appears while the run is active. */
static void links_of_a_run_are_replaced(void)
{
    const struct ew_train_opts o = small_opts();
    struct session s;
    char folder[512], victim[512], path[600], *text = NULL;
    size_t size = 0;
    snprintf(folder, sizeof(folder), "%s", ew_test_path("swapped"));
    snprintf(victim, sizeof(victim), "%s", ew_test_path("swapped-victim"));
    EW_EXPECT_OK(ew_file_write(victim, "mine", 4));
    EW_EXPECT_OK(session_open(&s, &o, folder));
    train_some(s.t, 1);
    snprintf(path, sizeof(path), "%s/last.ckpt", folder);
    unlink(path);
    EW_EXPECT_INT(symlink(victim, path), 0);
    ew_trainer_save(s.t);
    EW_EXPECT(!ew_trainer_result(s.t).checkpoint_failed);
    session_close(&s);
    EW_EXPECT_OK(ew_file_read(victim, 1 << 20, &text, &size));
    EW_EXPECT_INT((int64_t)size, 4);
    free(text);
}

/* A new run overwrites neither rows nor checkpoints of another, nor files that do not belong to a
 * run. */
static void leaves_the_folders_of_others(void)
{
    static const char *const theirs[] = {"options.ini", "epochs.csv", "best.ckpt", "result.json"};
    const struct ew_train_opts o = small_opts();
    char folder[512], path[600];
    snprintf(folder, sizeof(folder), "%s", ew_test_path("theirs"));
    mkdir(folder, 0777);
    for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++) {
        struct session s;
        char *text = NULL;
        size_t size = 0;
        clear_folder(folder);
        snprintf(path, sizeof(path), "%s/%s", folder, theirs[i]);
        EW_EXPECT_OK(ew_file_write(path, "mine", 4));
        EW_EXPECT_ERR(session_open(&s, &o, folder), EW_ERR_IO, "replaces nothing");
        session_close(&s);
        EW_EXPECT_OK(ew_file_read(path, 99, &text, &size));
        EW_EXPECT_INT(size, 4);
        free(text);
    }
}

/* Killed (SIGKILL) at twenty random points: computing, writing rows, in the middle of a checkpoint.
 * The folder must always be sufficient to resume. */
static void survives_being_killed(void)
{
    struct ew_train_opts o = small_opts();
    const char *device = getenv("EW_DEVICE");
    if (device && strncmp(device, "cuda", 4) == 0) {
        ew_test_skip("a process that has opened a CUDA device cannot use it in its children");
        return;
    }
    o.epochs = 2;
    const uint64_t want = straight_run(&o);
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", ew_test_path("killed"));
    struct ew_rng r = {.seed = 11};
    o.checkpoint_every = 0;
    int kills = 0, status = -1;
    for (int run = 0; run < 200; run++) {
        const pid_t pid = spawn_training(&o, folder);
        if (kills < 20) {
            usleep(2000 + (useconds_t)ew_rng_next_below(&r, 25000));
            kill(pid, SIGKILL);
        }
        waitpid(pid, &status, 0);
        kills += WIFSIGNALED(status);
        if (WIFEXITED(status) && kills >= 20)
            break;
        if (WIFEXITED(status)) { /* it had finished already: start again */
            EW_EXPECT_INT(WEXITSTATUS(status), 0);
            clear_folder(folder);
        }
    }
    EW_EXPECT_INT(kills, 20);
    EW_EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    struct ew_checkpoint c;
    if (EW_EXPECT_OK(ew_checkpoint_read(ew_test_path("killed/last.ckpt"), &c))) {
        EW_EXPECT(weights_sum(c.graph) == want);
        ew_checkpoint_fini(&c);
    }
    int64_t rows;
    rows_sum(ew_test_path("killed/batches.jsonl"), &rows);
    EW_EXPECT_INT(rows, 20);
}

/* ---- Full disk ---- */

static void survives_a_full_disk(void)
{
    struct ew_train_opts o = small_opts();
    struct session s;
    struct rlimit before, small;
    o.epochs = 2;
    const uint64_t want = straight_run(&o);
    if (!EW_EXPECT_OK(session_open(&s, &o, ew_test_path("full"))))
        return;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 600; /* the title of epochs.csv, and a row or two */
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    train_some(s.t, 15);
    ew_trainer_save(s.t);
    EW_EXPECT(ew_trainer_result(s.t).checkpoint_failed);
    setrlimit(RLIMIT_FSIZE, &before);
    train_some(s.t, 0);
    EW_EXPECT(!ew_trainer_result(s.t).checkpoint_failed); /* there is space again */
    EW_EXPECT(weights_sum(s.job.net) == want);
    session_close(&s);
    struct ew_checkpoint c;
    if (EW_EXPECT_OK(ew_checkpoint_read(ew_test_path("full/last.ckpt"), &c)))
        ew_checkpoint_fini(&c);
}

/* Regression: counts near the end of the range overflowed when they were increased. */
static void refuses_counts_of_no_run(void)
{
    static const char *const lines[] = {"validations = 9223372036854775807", "epoch = -1",
                                        "epochs_bytes = -5"};
    struct ew_train_opts o = small_opts();
    struct session s;
    char path[512];
    const char *folder = ew_test_path("doctored");
    EW_EXPECT_OK(session_open(&s, &o, folder)); /* writes a checkpoint */
    session_close(&s);
    snprintf(path, sizeof(path), "%s/last.ckpt", folder);
    for (size_t i = 0; i < EW_COUNT(lines); i++) {
        struct ew_checkpoint c;
        if (!EW_EXPECT_OK(ew_checkpoint_read(path, &c)))
            return;
        c.progress = lines[i];
        EW_EXPECT_OK(ew_checkpoint_write(path, &c));
        ew_checkpoint_fini(&c);
        EW_EXPECT_ERR(session_open(&s, &o, folder), EW_ERR_FORMAT, "the checkpoint's");
        s.t = NULL;
        session_close(&s);
    }
}

static void refuses_a_folder_it_cannot_use(void)
{
    struct ew_train_opts o = small_opts();
    struct session s, other;
    EW_EXPECT_ERR(session_open(&s, &o, ew_test_path("a-file/run")), EW_ERR_IO, "a-file");
    ew_graph_free(s.job.net);
    ew_dataset_close(s.data);
    EW_EXPECT_OK(session_open(&s, &o, ew_test_path("twice")));
    EW_EXPECT_ERR(session_open(&other, &o, ew_test_path("twice")), EW_ERR_IO,
                  "another process is training there");
    ew_checkpoint_fini(&other.from);
    ew_graph_free(other.job.net);
    ew_dataset_close(other.data);
    session_close(&s);
}

int main(int argc, char **argv)
{
    static const struct ew_test tests[] = {
        /* First: a process that forks must not have threads yet. */
        EW_TEST(planned_memory_has_evaluation),
        EW_TEST(goes_on_in_the_same_parts),
        EW_TEST(goes_on_without_links),
        EW_TEST(links_of_a_run_are_replaced),
        EW_TEST(goes_on_without_lost_rows),
        EW_TEST(leaves_the_folders_of_others),
        EW_TEST(survives_being_killed),
        EW_TEST(records_before_it_saves),
        EW_TEST(a_finished_run_stays_finished),
        EW_TEST(a_schedule_has_its_milestones),
        EW_TEST(learns_and_keeps_the_best),
        EW_TEST(does_not_depend_on_threads_and_workers),
        EW_TEST(every_optimizer_learns),
        EW_TEST(says_when_it_diverges),
        EW_TEST(times_add_up),
        EW_TEST(goes_on_from_every_batch),
        EW_TEST(survives_a_full_disk),
        EW_TEST(refuses_counts_of_no_run),
        EW_TEST(refuses_a_folder_it_cannot_use),
    };
    ew_test_file("a-file", "", 0);
    return ew_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
