/* SPDX-License-Identifier: Apache-2.0 */
/* Federated learning: partitions, aggregation, and rounds whose result can be computed by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "federate/federation.h"
#include "federate/weight_vector.h"
#include "model/model.h"

#define DATA "synthetic:train=240,test=60,seed=3"

/* ---- Partitions ---- */

static void fill_labels(int32_t *labels, int n, int classes)
{
    for (int i = 0; i < n; i++)
        labels[i] = i * 7 % classes;
}

/* Every sample belongs to one client, and no client is empty. */
static void expect_whole(const struct ew_partition *p, int64_t n)
{
    int *seen = calloc((size_t)n, sizeof(*seen));
    EW_EXPECT_INT(p->first[0], 0);
    EW_EXPECT_INT(p->first[p->clients], n);
    for (int64_t i = 0; i < n; i++)
        seen[p->samples[i]]++;
    for (int64_t i = 0; i < n; i++)
        if (seen[i] != 1)
            EW_FAIL("sample %lld is on %d clients", (long long)i, seen[i]);
    for (int64_t k = 0; k < p->clients; k++)
        EW_EXPECT(p->first[k + 1] > p->first[k]);
    free(seen);
}

/* Mean over the clients of the share of a client's most frequent class. */
static double unevenness(const struct ew_partition *p, const int32_t *labels)
{
    double sum = 0;
    for (int64_t k = 0; k < p->clients; k++) {
        int64_t count[10] = {0}, most = 0, n = p->first[k + 1] - p->first[k];
        for (int64_t i = p->first[k]; i < p->first[k + 1]; i++)
            most = ++count[labels[p->samples[i]]] > most ? count[labels[p->samples[i]]] : most;
        sum += (double)most / (double)n;
    }
    return sum / (double)p->clients;
}

static void splits(void)
{
    enum { N = 4000, CLIENTS = 40 };
    int32_t labels[N];
    double uneven[4];
    fill_labels(labels, N, 10);
    const struct ew_partition_opts all[] = {
        {.kind = EW_PARTITION_EVEN, .clients = CLIENTS, .seed = 5},
        {.kind = EW_PARTITION_DIRICHLET, .clients = CLIENTS, .alpha = 1, .seed = 5},
        {.kind = EW_PARTITION_DIRICHLET, .clients = CLIENTS, .alpha = 0.05, .seed = 5},
        {.kind = EW_PARTITION_SHARDS, .clients = CLIENTS, .shards = 2, .seed = 5}};
    for (int i = 0; i < 4; i++) {
        struct ew_partition p, again;
        EW_EXPECT_OK(ew_partition_make(&all[i], labels, N, 10, &p));
        expect_whole(&p, N);
        uneven[i] = unevenness(&p, labels);
        EW_EXPECT_OK(ew_partition_make(&all[i], labels, N, 10, &again));
        EW_EXPECT(memcmp(p.samples, again.samples, N * sizeof(*p.samples)) == 0);
        ew_partition_free(&p);
        ew_partition_free(&again);
    }
    EW_EXPECT(uneven[0] < 0.25);
    EW_EXPECT(uneven[1] > uneven[0] && uneven[1] < 0.6);
    EW_EXPECT(uneven[2] > 0.6);
    EW_EXPECT(uneven[3] >= 0.5); /* with two shards a client has at most two to four classes */

    struct ew_partition p;
    const struct ew_partition_opts many = {.kind = EW_PARTITION_EVEN, .clients = N + 1};
    EW_EXPECT_ERR(ew_partition_make(&many, labels, N, 10, &p), EW_ERR_ARG, "fewer clients");
    labels[7] = 12;
    EW_EXPECT_ERR(ew_partition_make(&all[0], labels, N, 10, &p), EW_ERR_ARG,
                  "sample 7 has no class");
}

/* ---- Aggregation ---- */

static void combine(enum ew_aggregate_kind kind, const float (*v)[2], int n, float out[2])
{
    struct ew_aggregator c;
    bool taken;
    EW_EXPECT_OK(ew_aggregator_open(kind, 2, 0.2, &c));
    for (int round = 0; round < 2; round++) { /* the second one starts from zero */
        for (int i = 0; i < n; i++) {
            EW_EXPECT_OK(ew_aggregator_add(&c, v[i], i + 1, &taken));
            EW_EXPECT(taken);
        }
        ew_aggregator_finish(&c, out);
    }
    ew_aggregator_close(&c);
}

static void combining(void)
{
    const float five[][2] = {{1, 9}, {2, 7}, {3, 8}, {4, 1000}, {-1e6f, 6}};
    float out[2];
    combine(EW_AGGREGATE_MEAN, five, 3, out);
    EW_EXPECT_NEAR(out[0], (1 + 4 + 9) / 6.0, 1e-6);
    combine(EW_AGGREGATE_MEDIAN, five, 5, out);
    EW_EXPECT_NEAR(out[0], 2, 0);
    EW_EXPECT_NEAR(out[1], 8, 0);
    combine(EW_AGGREGATE_MEDIAN, five, 4, out);
    EW_EXPECT_NEAR(out[0], 2.5, 0);
    combine(EW_AGGREGATE_TRIMMED, five, 5, out);
    EW_EXPECT_NEAR(out[0], 2, 0);
    EW_EXPECT_NEAR(out[1], 8, 0);

    struct ew_aggregator c;
    bool taken = true;
    EW_EXPECT_OK(ew_aggregator_open(EW_AGGREGATE_MEAN, 2, 0, &c));
    EW_EXPECT_OK(ew_aggregator_add(&c, (const float[]){1, NAN}, 1, &taken));
    EW_EXPECT(!taken && c.n == 0);
    ew_aggregator_close(&c);
}

/* ---- Rounds ---- */

struct trial {
    struct ew_graph *net;
    struct ew_dataset *data;
    struct ew_federation *f;
    struct ew_weight_vector weights;
    float *now;
};

static struct ew_federation_opts usual(void)
{
    return (struct ew_federation_opts){.rounds = 3,
                                       .clients = 6,
                                       .local_epochs = 2,
                                       .batch = 8,
                                       .share = 0.5,
                                       .lr = 0.05,
                                       .lr_decay = 1,
                                       .mu = 0.1,
                                       .alpha = 0.5,
                                       .shards = 2,
                                       .trim = 0.2,
                                       .seed = 9,
                                       .threads = 1};
}

static bool trial_open(struct trial *t, const struct ew_federation_opts *o,
                       const struct ew_fleet *fleet)
{
    memset(t, 0, sizeof(*t));
    if (!EW_EXPECT_OK(ew_dataset_open(DATA, &t->data)) ||
        !EW_EXPECT_OK(ew_model_build("lenet5", NULL, &t->net)) ||
        !EW_EXPECT_OK(ew_model_init("lenet5", 4, t->net)))
        return false;
    struct ew_federation_job job = {.opts = *o, .net = t->net, .data = t->data, .fleet = fleet};
    EW_EXPECT_OK(ew_preprocess_measure(t->data, &job.prep));
    return EW_EXPECT_OK(ew_federation_open(&job, &t->f)) &&
           EW_EXPECT_OK(ew_weight_vector_open(t->net, &t->weights)) &&
           EW_EXPECT((t->now = malloc((size_t)t->weights.size * sizeof(float))) != NULL);
}

static void trial_close(struct trial *t)
{
    ew_federation_close(t->f);
    ew_weight_vector_close(&t->weights);
    ew_graph_free(t->net);
    ew_dataset_close(t->data);
    free(t->now);
}

/* The weights after this many rounds; to be released by the caller. */
static float *after(const struct ew_federation_opts *o, int rounds, struct ew_federation_row *row)
{
    struct trial t;
    float *weights = NULL;
    if (trial_open(&t, o, NULL)) {
        for (int i = 0; i < rounds; i++)
            EW_EXPECT_OK(ew_federation_round(t.f, row));
        ew_weight_vector_read(&t.weights, t.now);
        weights = t.now;
        t.now = NULL;
    }
    trial_close(&t);
    return weights;
}

#define LENET5 61706

static double distance(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; a && b && i < LENET5; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

/* Methods agree in the cases in which they are equivalent. */
static void methods_agree_where_they_must(void)
{
    struct ew_federation_opts o = usual();
    struct ew_federation_row row;
    float *avg = after(&o, 1, &row);
    EW_EXPECT_INT(row.asked, 3);
    EW_EXPECT_INT(row.answered, 3);
    EW_EXPECT_INT(row.samples, 3 * 40 * 2);
    EW_EXPECT(row.loss > 0 && isnan(row.sim_s));
    float *again = after(&o, 1, &row);
    EW_EXPECT(distance(avg, again) <= 0); /* the same bits */

    o.method = EW_FEDERATION_SCAFFOLD; /* its control variates start at zero */
    float *scaffold = after(&o, 1, &row);
    EW_EXPECT(distance(avg, scaffold) < 1e-5);
    float *later = after(&o, 3, &row);
    o.method = EW_FEDERATION_FEDAVG;
    float *avg_later = after(&o, 3, &row);
    EW_EXPECT(distance(later, avg_later) > 1e-3);

    o.method = EW_FEDERATION_FEDPROX;
    o.mu = 0;
    float *free_prox = after(&o, 1, &row);
    EW_EXPECT(distance(avg, free_prox) <= 0);
    o.mu = 5; /* lr * mu = 1/4 pulls the weights back */
    float *held = after(&o, 1, &row);
    struct ew_federation_opts none = usual();
    float *start = after(&none, 0, &row);
    EW_EXPECT(distance(held, start) < 0.7 * distance(avg, start));
    float *const all[] = {avg, again, scaffold, later, avg_later, free_prox, held, start};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]);
}

/* 0.14 of 50 is 7, though not in binary; and clients that return noise have no loss. */
static void shares_and_losses(void)
{
    struct ew_federation_opts o = usual();
    struct ew_federation_row row;
    o.clients = 50;
    o.share = 0.14;
    free(after(&o, 1, &row));
    EW_EXPECT_INT(row.asked, 7);
    o.clients = 6;
    o.share = 1;
    free(after(&o, 1, &row));
    const double all = row.loss;
    o.nonsense = 3;
    free(after(&o, 1, &row));
    EW_EXPECT_INT(row.answered, 6);
    EW_EXPECT_NEAR(row.loss, all, 0.2 * all);
}

/* Weights that are not finite are refused, and leave nothing in scaffold's control variates. */
static void diverged_clients_leave_no_trace(void)
{
    struct ew_federation_opts o = usual();
    struct ew_federation_row row;
    o.method = EW_FEDERATION_SCAFFOLD;
    o.lr = 1e38;
    o.lr_decay = 1e-40;
    free(after(&o, 1, &row));
    EW_EXPECT_INT(row.refused, 3);
    EW_EXPECT_INT(row.answered, 0);
    free(after(&o, 3, &row));
    EW_EXPECT_INT(row.refused, 0);
    EW_EXPECT_INT(row.answered, 3);
    EW_EXPECT(isfinite(row.test_loss));
}

static void learns(void)
{
    if (ew_test_quick())
        EW_SKIP("the rounds of the other cases stand for it here");
    struct ew_federation_opts o = usual();
    struct ew_federation_row row;
    o.share = 1;
    o.lr = 0.1;
    free(after(&o, 12, &row));
    EW_EXPECT(row.accuracy > 0.5);

    o.nonsense = 2; /* of 6 */
    o.combine = EW_AGGREGATE_MEDIAN;
    free(after(&o, 12, &row));
    EW_EXPECT(row.accuracy > 0.4);
    o.combine = EW_AGGREGATE_MEAN;
    free(after(&o, 12, &row));
    EW_EXPECT(row.accuracy < 0.4);

    o = usual();
    o.drop = 1;
    float *start = after(&o, 0, &row), *kept = after(&o, 2, &row);
    EW_EXPECT_INT(row.dropped, 3);
    EW_EXPECT_INT(row.answered, 0);
    EW_EXPECT(distance(start, kept) <= 0); /* no client answered: the server keeps its weights */
    free(start);
    free(kept);
}

/* A resumed run ends with the same bits. */
static void resumes(void)
{
    struct ew_federation_opts o = usual();
    struct ew_federation_row row;
    struct trial t;
    o.method = EW_FEDERATION_SCAFFOLD;
    float *whole = after(&o, 3, &row);
    const char *path = ew_test_path("fed.ckpt");
    if (trial_open(&t, &o, NULL)) {
        EW_EXPECT_OK(ew_federation_round(t.f, &row));
        EW_EXPECT_OK(ew_federation_round(t.f, &row));
        struct ew_checkpoint c = {.graph = t.net, .options = "", .progress = ""};
        ew_federation_states(t.f, &c.states, &c.n_states);
        EW_EXPECT(c.n_states >= 2);
        EW_EXPECT_OK(ew_checkpoint_write(path, &c));
    }
    trial_close(&t);
    struct ew_checkpoint c;
    if (!EW_EXPECT_OK(ew_checkpoint_read(path, &c)))
        return;
    memset(&t, 0, sizeof(t));
    EW_EXPECT_OK(ew_dataset_open(DATA, &t.data));
    struct ew_federation_job job = {.opts = o, .net = c.graph, .data = t.data};
    EW_EXPECT_OK(ew_preprocess_measure(t.data, &job.prep));
    EW_EXPECT_OK(ew_federation_open(&job, &t.f));
    EW_EXPECT_OK(ew_federation_resume(t.f, &c, 2));
    EW_EXPECT_OK(ew_federation_round(t.f, &row));
    EW_EXPECT_INT(row.round, 3);
    EW_EXPECT_OK(ew_weight_vector_open(c.graph, &t.weights));
    t.now = malloc((size_t)t.weights.size * sizeof(float));
    ew_weight_vector_read(&t.weights, t.now);
    EW_EXPECT(distance(whole, t.now) <= 0);
    trial_close(&t); /* its network is the checkpoint's */
    ew_checkpoint_fini(&c);
    free(whole);
}

/* ---- Fleets ---- */

/* Clients that train a network of the zoo in batches of 16. */
static ew_err read_fleet(const char *path, const char *network, struct ew_fleet *out)
{
    const struct ew_model_opts o = {.size = sizeof(o), .batch = 1};
    struct ew_graph *g = NULL;
    EW_TRY(ew_model_build(network, &o, &g));
    const ew_err e = ew_fleet_read(path, g, 16, out);
    ew_graph_free(g);
    return e;
}

static void fleets(void)
{
    static const char text[] = "[fast]\ncount = 2\nsamples_per_s = 100\npower_w = 10\n"
                               "[slow]\ncount = 1\nsamples_per_s = 10\npower_w = 2\n";
    const char *path = ew_test_file("fleet.ini", text, sizeof(text) - 1);
    struct ew_fleet fleet;
    struct trial t;
    struct ew_federation_row row;
    struct ew_federation_opts o = usual();
    EW_EXPECT_OK(read_fleet(path, "lenet5", &fleet));
    EW_EXPECT_INT(fleet.clients, 3);
    EW_EXPECT_STR(ew_fleet_client(&fleet, 1)->name, "fast");
    EW_EXPECT_STR(ew_fleet_client(&fleet, 5)->name, "slow");
    o.share = 1; /* 40 samples, 2 epochs: 0.8 s and 8 J, or 8 s and 16 J */
    if (trial_open(&t, &o, &fleet)) {
        EW_EXPECT_OK(ew_federation_round(t.f, &row));
        EW_EXPECT_NEAR(row.sim_s, 8, 1e-9);
        EW_EXPECT_NEAR(row.sim_j, 4 * 8 + 2 * 16, 1e-9);
        EW_EXPECT_STR(row.slowest, "slow");
    }
    trial_close(&t);
    o.deadline_s = 2;
    if (trial_open(&t, &o, &fleet)) {
        EW_EXPECT_OK(ew_federation_round(t.f, &row));
        EW_EXPECT_INT(row.late, 2);
        EW_EXPECT_NEAR(row.sim_s, 2, 1e-9);
        EW_EXPECT_NEAR(row.sim_j, 4 * 8 + 2 * 4, 1e-9);
    }
    trial_close(&t);
    o.avoid_late = true;
    if (trial_open(&t, &o, &fleet)) {
        EW_EXPECT_OK(ew_federation_round(t.f, &row));
        EW_EXPECT_INT(row.asked, 4);
        EW_EXPECT_INT(row.late, 0);
        EW_EXPECT_NEAR(row.sim_s, 0.8, 1e-9);
    }
    trial_close(&t);
}

static void expect_fleet_refused(const char *text, const char *why)
{
    struct ew_fleet fleet;
    EW_EXPECT_ERR(read_fleet(ew_test_file("bad.ini", text, strlen(text)), "lenet5", &fleet),
                  EW_ERR_FORMAT, why);
}

static void fleets_that_are_none(void)
{
    struct ew_fleet fleet;
    expect_fleet_refused("", "has no [name]");
    expect_fleet_refused("count = 3\n", "line 1: 'count' before the first [name]");
    expect_fleet_refused("[a]\nspeed = 3\n", "line 2: no key 'speed'");
    expect_fleet_refused("[a]\ncount = 3\n", "has neither board");
    const char *path = ew_test_file("board.ini", "[a]\nboard = abacus\n", 19);
    EW_EXPECT_ERR(read_fleet(path, "lenet5", &fleet), EW_ERR_NOT_FOUND, "no board 'abacus'");
    path = ew_test_file("mode.ini", "[a]\nboard = agx-xavier\nmode = x\n", 32);
    EW_EXPECT_ERR(read_fleet(path, "lenet5", &fleet), EW_ERR_NOT_FOUND, "has no mode 'x'");
    path = ew_test_file("net.ini", "[a]\nboard = agx-xavier\n", 23);
    EW_EXPECT_OK(read_fleet(path, "lenet5", &fleet));
    EW_EXPECT(fleet.kinds[0].samples_per_s > 100 && fleet.kinds[0].power_w > 1);
    /* A network without measurements is timed by its plan: twice the arithmetic and more takes
     * longer. */
    const double known = fleet.kinds[0].samples_per_s;
    EW_EXPECT_OK(read_fleet(path, "fedavg_cnn", &fleet));
    const double planned = fleet.kinds[0].samples_per_s;
    EW_EXPECT(planned > 10 && planned < 100 * known && fleet.kinds[0].power_w > 1);
    EW_EXPECT_OK(read_fleet(path, "resnet9", &fleet));
    EW_EXPECT(fleet.kinds[0].samples_per_s < planned);
}

EW_TEST_MAIN(EW_TEST(splits), EW_TEST(combining), EW_TEST(methods_agree_where_they_must),
             EW_TEST(shares_and_losses), EW_TEST(diverged_clients_leave_no_trace), EW_TEST(learns),
             EW_TEST(resumes), EW_TEST(fleets), EW_TEST(fleets_that_are_none))
