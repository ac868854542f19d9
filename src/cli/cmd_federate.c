/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise federate: federated learning of many clients, simulated in one process or over MPI
 * ranks. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/owned.h"
#include "cli/cmd.h"
#include "cli/data_cmd.h"
#include "cli/device_opt.h"
#include "cli/rank_cmd.h"
#include "cli/recorded.h"
#include "cli/resume.h"
#include "federate/federation.h"
#include "network/train_network.h"
#include "train/options.h"

#define PATH_CHARS 4096
#define ROWS_MOST  (64 << 20)

struct opts {
    struct ew_federation_opts f;
    const char *data, *keys, *fleet, *output, *resume, *db, *device;
    const char *network; /* the argument; stored with the options */
    double target;
};

/* clang-format off */
static const struct ew_field table[] = {
    {.name = "data", .type = EW_FIELD_STR, .offset = offsetof(struct opts, data), .letter = 'd',
     .metavar = "DIR|NAME", .help = "data set: a folder or file, or a name of `data get`"},
    EW_FEDERATION_FIELDS(struct opts, f),
    {.name = "keys", .type = EW_FIELD_STR, .offset = offsetof(struct opts, keys),
     .metavar = "FILE",
     .help = "split key: file with one line for each training sample, in order, that names its writer, camera or board; each name is a client"},
    {.name = "fleet", .type = EW_FIELD_STR, .offset = offsetof(struct opts, fleet),
     .metavar = "FILE", .help = "boards that the clients run on: adds simulated time and energy"},
    {.name = "target", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, target), .def = "0",
     .min = 0, .max = 1, .metavar = "ACCURACY", .help = "stop at this test accuracy; 0: never"},
    {.name = "output", .type = EW_FIELD_STR, .offset = offsetof(struct opts, output), .letter = 'o',
     .metavar = "DIR",
     .help = "folder of the run: rounds.csv, last.ckpt; default: none is written"},
    {.name = "resume", .type = EW_FIELD_STR, .offset = offsetof(struct opts, resume),
     .metavar = "DIR", .help = "continue a run that was interrupted"},
    EW_DEVICE_FIELD(struct opts),
    EW_RECORDING_FIELD(struct opts),
    EW_FIELD_END};
/* clang-format on */

struct run {
    struct opts o;
    struct ew_arena arena;
    struct ew_dataset *data;
    struct ew_graph *net;
    struct ew_checkpoint from;
    struct ew_fleet fleet;
    struct ew_federation *f;
    struct ew_preprocess prep;
    const char *options; /* options as text, for the checkpoint */
    char *rows;          /* content of rounds.csv so far */
    size_t rows_bytes;
    FILE *row_file; /* memory stream on `rows` */
    double sim_s, sim_j;
    struct ew_recording rec;
    struct ew_ranks *ranks; /* NULL: a single process */
    int lock;               /* lock of the folder; -1: none */
};

static volatile int asked_to_stop;

static void on_signal(int signal)
{
    asked_to_stop = signal;
}

static bool stop(void *ctx)
{
    return asked_to_stop != 0;
}

/* ---- Files ---- */

static const char header[] = "round,asked,answered,dropped,late,refused,samples,loss,test_loss,"
                             "accuracy,f1,wall_s,sim_s,sim_j,slowest\n";

/* A CSV cell; unknown values are empty. */
static void put_number(FILE *f, int digits, double v)
{
    fputc(',', f);
    if (isfinite(v))
        fprintf(f, "%.*f", digits, v);
}

static void put_row(FILE *f, const struct ew_federation_row *r)
{
    fprintf(f, "%lld,%lld,%lld,%lld,%lld,%lld,%lld", (long long)r->round, (long long)r->asked,
            (long long)r->answered, (long long)r->dropped, (long long)r->late,
            (long long)r->refused, (long long)r->samples);
    put_number(f, 6, r->loss);
    put_number(f, 6, r->test_loss);
    put_number(f, 5, r->accuracy);
    put_number(f, 5, r->f1);
    put_number(f, 3, r->wall_s);
    put_number(f, 3, r->sim_s);
    put_number(f, 2, r->sim_j);
    fprintf(f, ",%s\n", r->slowest);
}

/* Only rank 0 prints and writes files. */
static bool first_rank(const struct run *r)
{
    return ew_ranks_rank(r->ranks) == 0;
}

static ew_err save(struct run *r, const struct ew_federation_row *row)
{
    char path[PATH_CHARS], progress[128];
    put_row(r->row_file, row);
    if (!r->o.output || !first_rank(r))
        return EW_OK;
    /* Rows before the checkpoint: a resumed run drops rows beyond its checkpoint. */
    EW_CHECK(fflush(r->row_file) == 0, EW_ERR_MEMORY, "no memory for rows");
    snprintf(path, sizeof(path), "%s/rounds.csv", r->o.output);
    EW_TRY(ew_file_replace(path, r->rows, r->rows_bytes));
    snprintf(progress, sizeof(progress), "round = %lld\nsim_s = %.17g\nsim_j = %.17g\n",
             (long long)row->round, r->sim_s, r->sim_j);
    struct ew_checkpoint c = {
        .graph = r->net, .options = r->options, .progress = progress, .prep = r->prep};
    ew_federation_states(r->f, &c.states, &c.n_states);
    snprintf(path, sizeof(path), "%s/last.ckpt", r->o.output);
    return ew_checkpoint_write(path, &c);
}

/* Reads the rows up to the checkpoint's round; a killed run may have written one more. */
static ew_err load_rows(struct run *r, int64_t rounds)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size;
    char path[PATH_CHARS];
    snprintf(path, sizeof(path), "%s/rounds.csv", r->o.output);
    EW_TRY(ew_file_read(path, ROWS_MOST, &text, &size));
    const char *at = text;
    for (int64_t line = 0; line <= rounds; line++) {
        const char *end = strchr(at, '\n');
        EW_CHECK(end, EW_ERR_FORMAT, "%s: has %lld rounds, the checkpoint has %lld", path,
                 (long long)line - 1, (long long)rounds);
        fwrite(at, 1, (size_t)(end + 1 - at), r->row_file);
        at = end + 1;
    }
    return EW_OK;
}

/* ---- Setting up ---- */

/* The network, and the normalisation of its weights or, if they have none, of the data. */
static ew_err open_network(struct run *r)
{
    const struct ew_dataset_info *info = ew_dataset_info(r->data);
    const struct ew_train_network_opts how = {
        .what = r->o.network, .net = {.width = 1}, .seed = (uint64_t)r->o.f.seed};
    struct ew_train_network n;
    EW_TRY(ew_train_network_open(&how, r->data, &n));
    r->net = n.graph;
    r->prep = n.prep;
    const struct ew_shape *out = &r->net->values[r->net->outputs[0]].t.shape;
    EW_CHECK(out->rank == 2 && out->dim[1] == info->classes, EW_ERR_SHAPE,
             "%s: not a classifier of the %lld classes of %s", r->o.network,
             (long long)info->classes, info->name);
    if (n.classes_were)
        EW_INFO("the last layer is reinitialised: %s has %lld classes, %s has %lld", r->net->name,
                (long long)n.classes_were, info->name, (long long)info->classes);
    return r->prep.normalised ? EW_OK : ew_preprocess_measure(r->data, &r->prep);
}

/* Without a checkpoint the folder may hold the header of a run that was killed in its first round;
 * any other content belongs to another run. */
static ew_err check_rows(const struct run *r)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    char path[PATH_CHARS];
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/rounds.csv", r->o.output);
    const ew_err e = ew_file_read(path, ROWS_MOST, &text, &size);
    if (e == EW_ERR_NOT_FOUND)
        return EW_OK;
    EW_TRY(e);
    const bool ours = strncmp(text, header, strlen(header)) == 0;
    const char *row = ours ? strchr(text + strlen(header), '\n') : NULL;
    EW_CHECK(!*text || (ours && (!row || !row[1])), EW_ERR_IO,
             "%s: exists already, and a new run overwrites nothing; choose another folder", path);
    return EW_OK;
}

/* Refused as symbolic links: the run would write outside of its folder. */
static const char *const written[] = {"rounds.csv", "last.ckpt", NULL};

static ew_err make_folder(struct ew_cmd_call *c, struct run *r)
{
    if (!r->o.output || !first_rank(r))
        return EW_OK;
    EW_TRY(ew_folder_make(r->o.output));
    EW_TRY(ew_folder_lock(r->o.output, &r->lock));
    EW_TRY(ew_cmd_folder_is_new(c, r->o.output));
    EW_TRY(ew_folder_has_plain(r->o.output, written));
    return check_rows(r);
}

static ew_err begin_new(struct ew_cmd_call *c, struct run *r)
{
    r->o = *(const struct opts *)c->opts;
    EW_CHECK(c->n_args == 1, EW_ERR_USAGE, "which network? NAME, FILE.onnx or a checkpoint");
    EW_CHECK(r->o.data, EW_ERR_USAGE, "no training data: --data DIR or NAME");
    r->o.network = c->args[0];
    EW_TRY(
        ew_data_open(c, r->o.data,
                     &r->data)); /* before the output folder exists, which may have the same name */
    EW_TRY(open_network(r));
    EW_TRY(make_folder(c, r));
    fputs(header, r->row_file);
    return EW_OK;
}

static ew_err begin_resumed(struct ew_cmd_call *c, struct run *r)
{
    static const char *const may_change[] = {"rounds", "data",   "threads", "target",
                                             "resume", "device", "db",      NULL};
    const struct opts *asked = c->opts;
    struct ew_cmd_resume saved = {
        .from = asked->resume, .may_change = may_change, .arena = &r->arena};
    EW_TRY(ew_cmd_resume(c, &saved, &r->from, &r->o));
    r->o.output = saved.folder;
    EW_TRY(ew_folder_has_plain(saved.folder, written));
    if (first_rank(r))
        EW_TRY(ew_folder_lock(saved.folder, &r->lock));
    EW_TRY(ew_data_open(c, r->o.data, &r->data));
    r->prep = r->from.prep;
    r->net = r->from.graph;
    r->from.graph = NULL;
    r->o.network = r->net->name;
    return EW_OK;
}

static ew_err describe(struct run *r)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    struct opts kept = r->o;
    kept.resume = kept.output = kept.db = kept.device = NULL;
    EW_TRY(ew_fields_text(table, &kept, &text));
    r->options = ew_arena_strdup(&r->arena, text);
    EW_CHECK(r->options, EW_ERR_MEMORY, "no memory");
    return EW_OK;
}

struct progress {
    int64_t round;
    double sim_s, sim_j;
};

static const struct ew_field progress_fields[] = {{.name = "round",
                                                   .type = EW_FIELD_INT,
                                                   .offset = offsetof(struct progress, round),
                                                   .def = "0",
                                                   .min = 0,
                                                   .max = 1e9},
                                                  {.name = "sim_s",
                                                   .type = EW_FIELD_FLOAT,
                                                   .offset = offsetof(struct progress, sim_s),
                                                   .def = "0",
                                                   .min = 0,
                                                   .max = 1e300},
                                                  {.name = "sim_j",
                                                   .type = EW_FIELD_FLOAT,
                                                   .offset = offsetof(struct progress, sim_j),
                                                   .def = "0",
                                                   .min = 0,
                                                   .max = 1e300},
                                                  EW_FIELD_END};

static ew_err go_on(struct run *r, int64_t *round)
{
    struct progress p = {0};
    char *text = ew_arena_strdup(&r->arena, r->from.progress);
    EW_CHECK(text, EW_ERR_MEMORY, "no memory");
    EW_TRY(ew_fields_from_text(progress_fields, text, "progress", &p));
    EW_TRY(load_rows(r, p.round));
    r->sim_s = p.sim_s;
    r->sim_j = p.sim_j;
    *round = p.round;
    return ew_federation_resume(r->f, &r->from, p.round);
}

static ew_err setup(struct ew_cmd_call *c, struct run *r, int64_t *round)
{
    const bool resumed = ((const struct opts *)c->opts)->resume != NULL;
    r->row_file = open_memstream(&r->rows, &r->rows_bytes);
    EW_CHECK(r->row_file, EW_ERR_MEMORY, "no memory");
    EW_TRY(resumed ? begin_resumed(c, r) : begin_new(c, r));
    EW_TRY(describe(r));
    if (r->o.fleet)
        EW_TRY(ew_fleet_read(r->o.fleet, r->net, r->o.f.batch, &r->fleet));
    EW_CHECK(r->o.fleet || !(r->o.f.deadline_s > 0), EW_ERR_USAGE,
             "--deadline is in simulated time, which needs --fleet");
    const struct ew_federation_job job = {.opts = r->o.f,
                                          .net = r->net,
                                          .data = r->data,
                                          .prep = r->prep,
                                          .keys = r->o.keys,
                                          .fleet = r->o.fleet ? &r->fleet : NULL,
                                          .ranks = r->ranks,
                                          .stop = stop};
    EW_TRY(ew_federation_open(&job, &r->f));
    *round = 0;
    return resumed ? go_on(r, round) : EW_OK;
}

/* ---- Showing ---- */

static void show_begin(const struct run *r)
{
    const struct ew_federation_opts *o = &r->o.f;
    int64_t least, most;
    const int64_t clients = ew_federation_sizes(r->f, &least, &most);
    char more[32] = "";
    if (most > least)
        snprintf(more, sizeof(more), " to %lld", (long long)most);
    fprintf(stderr, "%s, %s split: %lld clients of %lld%s samples, %s\n",
            ew_federation_methods[o->method], ew_partition_names[o->split], (long long)clients,
            (long long)least, more,
            r->o.fleet ? "times and energies are simulated" : "no simulated times without --fleet");
}

static void show_round(const struct run *r, const struct ew_federation_row *row)
{
    char loss[32] = "-"; /* none where no client answered */
    if (row->answered > 0)
        snprintf(loss, sizeof(loss), "%.4f", row->loss);
    printf("round %3lld  accuracy %.4f  F1 %.4f  loss %s  %lld of %lld answered",
           (long long)row->round, row->accuracy, row->f1, loss, (long long)row->answered,
           (long long)row->asked);
    if (row->late || row->dropped || row->refused)
        printf(" (%lld dropped, %lld late, %lld refused)", (long long)row->dropped,
               (long long)row->late, (long long)row->refused);
    if (isfinite(row->sim_s))
        printf("  simulated %.1f s, %.0f J, waited for %s", r->sim_s, r->sim_j,
               row->slowest[0] ? row->slowest : "nobody");
    putchar('\n');
    fflush(stdout);
}

static void show_json(const struct run *r, const struct ew_federation_row *row, bool reached)
{
    printf("{\"rounds\": %lld, \"accuracy\": %.6f, \"f1\": %.6f, \"reached\": %s",
           (long long)row->round, row->accuracy, row->f1, reached ? "true" : "false");
    if (isfinite(row->sim_s))
        printf(", \"simulated_s\": %.3f, \"simulated_j\": %.2f", r->sim_s, r->sim_j);
    puts("}");
}

static ew_err record(struct run *r, const struct ew_federation_row *row)
{
    EW_TRY(ew_recording_metric(&r->rec, "test_accuracy", row->accuracy, NULL, EW_BETTER_HIGHER));
    EW_TRY(ew_recording_metric(&r->rec, "test_f1", row->f1, NULL, EW_BETTER_HIGHER));
    return ew_recording_derived(&r->rec, "rounds", (double)row->round, NULL, EW_BETTER_LOWER);
}

/* ---- All of it ---- */

static ew_err rounds(struct ew_cmd_call *c, struct run *r, int64_t done)
{
    struct ew_federation_row row = {.round = done};
    bool reached = false;
    const bool shows = first_rank(r);
    if (!c->json && shows)
        show_begin(r);
    while (row.round < r->o.f.rounds && !reached) {
        const ew_err e = ew_federation_round(r->f, &row);
        if (e == EW_ERR_SKIPPED && r->o.output)
            ew_cmd_hint(c, "edgewise federate --resume %.160s continues it", r->o.output);
        EW_TRY(e);
        r->sim_s += isfinite(row.sim_s) ? row.sim_s : 0;
        r->sim_j += isfinite(row.sim_j) ? row.sim_j : 0;
        reached = r->o.target > 0 && row.accuracy >= r->o.target;
        EW_TRY(save(r, &row));
        if (!c->json && shows)
            show_round(r, &row);
    }
    if (!shows)
        return EW_OK;
    if (c->json)
        show_json(r, &row, reached);
    else if (reached)
        printf("%.4f was reached in round %lld\n", r->o.target, (long long)row.round);
    return record(r, &row);
}

static void release(struct run *r)
{
    ew_federation_close(r->f);
    ew_checkpoint_fini(&r->from);
    ew_graph_free(r->net);
    ew_dataset_close(r->data);
    if (r->row_file)
        fclose(r->row_file);
    free(r->rows);
    ew_arena_fini(&r->arena);
    if (r->lock >= 0)
        close(r->lock);
    free(r);
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct sigaction act = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    struct run *r = calloc(1, sizeof(*r));
    EW_CHECK(r, EW_ERR_MEMORY, "no memory");
    int64_t round = 0;
    ew_arena_init(&r->arena);
    r->lock = -1;
    ew_err e = ew_cmd_join_ranks(&asked_to_stop, &r->ranks);
    struct ew_ranks *ranks = r->ranks;
    const bool first = first_rank(r);
    if (e == EW_OK)
        e = ew_cmd_record(c, first_rank(r) ? ((const struct opts *)c->opts)->db : NULL, &r->rec);
    if (e == EW_OK)
        e = setup(c, r, &round);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (e == EW_OK)
        e = rounds(c, r, round);
    e = ew_recording_end(&r->rec, e);
    release(r);
    ew_cmd_leave_ranks(ranks, c, e);
    return first || e != EW_ERR_SKIPPED ? e : EW_OK; /* rank 0 has reported it */
}

const struct ew_cmd ew_cmd_federate = {
    .name = "federate",
    .group = EW_CMD_TRAIN,
    .summary = "federated learning with simulated clients",
    .args = "[NAME|FILE.onnx|CKPT]",
    .about = "The training data is partitioned among clients. In each round a sample of the "
             "clients trains the server's weights on its own data, and the server aggregates the "
             "results.\n"
             "Results depend on the seed alone. Clients run one after the other on this machine, "
             "or on the ranks that mpirun starts, with the same result; --fleet simulates the "
             "time and energy of the clients' boards.\n"
             "Clients may drop out, miss a deadline or return garbage.",
    .examples = "federate fedavg_cnn --data mnist --rounds 50 --target 0.99\n"
                "federate lenet5 --data mnist --split dirichlet --alpha 0.1 --method scaffold\n"
                "federate lenet5 --data mnist --fleet boards.ini --deadline 60 -o fed\n"
                "federate --resume fed --rounds 100",
    .min_args = 0,
    .max_args = 1,
    .opts_size = sizeof(struct opts),
    .opts = table,
    .run = run,
};
