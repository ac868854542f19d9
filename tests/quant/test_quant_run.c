/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising a trained network: accuracy is kept, decisions have reasons. */
#include <math.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "quant/gate.h"
#include "quant/quant_run.h"
#include "quant/remedies.h"
#include "train/trainer.h"

static struct ew_dataset *data;
static struct ew_graph *net;
static struct ew_dataset_stats seen;

/* LeNet-5 after one epoch over 6,000 synthetic digits. */
static bool train_lenet(void)
{
    struct ew_model_opts o = {.size = sizeof(o), .batch = 1};
    struct ew_trainer *t = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open("synthetic", &data)) ||
        !EW_EXPECT_OK(ew_dataset_measure(data, EW_SPLIT_TRAIN, 1000, &seen)))
        return false;
    const struct ew_dataset_info *info = ew_dataset_info(data);
    o.height = info->h;
    o.width = info->w;
    o.channels = info->c;
    o.classes = info->classes;
    struct ew_train_job job = {.data = data,
                               .options = "",
                               .prep = {.mean = {seen.mean[0]}, .std = {seen.std[0], 1, 1, 1}}};
    job.opts = (struct ew_train_opts){.epochs = 1,
                                      .batch = 32,
                                      .lr = 0.01,
                                      .momentum = 0.9,
                                      .seed = 1,
                                      .threads = 1,
                                      .samples = 6000,
                                      .shuffle = true,
                                      .load = {.prefetch = 2}};
    if (!EW_EXPECT_OK(ew_model_build("lenet5", &o, &net)) ||
        !EW_EXPECT_OK(ew_model_init("lenet5", 1, net)))
        return false;
    job.net = net;
    if (!EW_EXPECT_OK(ew_trainer_open(&job, &t)))
        return false;
    enum ew_train_event event = EW_TRAIN_BATCH;
    while (event != EW_TRAIN_DONE && EW_EXPECT_OK(ew_trainer_step(t, &event)))
        ;
    ew_trainer_close(t);
    return event == EW_TRAIN_DONE;
}

static struct ew_quant_job job_of(const struct ew_loader_opts *evaluation)
{
    static int64_t subset[100];
    for (int i = 0; i < 100; i++)
        subset[i] = i;
    return (struct ew_quant_job){
        .net = net,
        .calibration = {.data = data,
                        .split = EW_SPLIT_TRAIN,
                        .subset = subset,
                        .n_subset = 100,
                        .prep = {.mean = {seen.mean[0]}, .std = {seen.std[0]}}},
        .evaluation = evaluation,
        .opts = {.equalize = true,
                 .correct_bias = true,
                 .min_sqnr_db = 5,
                 .max_drop = 100,
                 .threads = 1}};
}

static const struct ew_loader_opts *evaluation(void)
{
    static struct ew_loader_opts o;
    static int64_t subset[300];
    for (int i = 0; i < 300; i++)
        subset[i] = i;
    o = (struct ew_loader_opts){.data = data,
                                .split = EW_SPLIT_TEST,
                                .subset = subset,
                                .n_subset = 300,
                                .batch = 32,
                                .prep = {.mean = {seen.mean[0]}, .std = {seen.std[0]}}};
    return &o;
}

static int count(const struct ew_graph *g, const char *op)
{
    int n = 0;
    for (int k = 0; g && k < g->n_nodes; k++)
        n += strcmp(g->nodes[k].op->name, op) == 0;
    return n;
}

static void accuracy_stays(void)
{
    for (int m = 0; m < EW_CALIBRATE_N; m++) {
        struct ew_quant_result r;
        struct ew_quant_job job = job_of(evaluation());
        job.opts.method = (enum ew_calibrate_method)m;
        job.opts.percentile = 99.99;
        if (EW_EXPECT_OK(ew_quant_run(&job, &r))) {
            EW_EXPECT_INT(r.n_layers, 5);
            EW_EXPECT_INT(r.n_float, 0);
            EW_EXPECT_INT(r.n_remedies, EW_QUANT_REMEDIES);
            EW_EXPECT_INT(r.calibrated, 100);
            EW_EXPECT(r.before.accuracy > 0.8);
            EW_EXPECT(r.after.accuracy > r.before.accuracy - 0.02);
            EW_EXPECT(r.sqnr_db > 20);
            EW_EXPECT(count(r.graph, "quantize_linear") >= 5);
            EW_EXPECT_OK(ew_graph_check(r.graph));
        }
        ew_quant_result_fini(&r);
    }
}

/* A layer that costs too much accuracy stays float32, and the scores keep their bits. */
static void costly_layers_stay_float(void)
{
    struct ew_quant_result r;
    struct ew_quant_job job = job_of(NULL);
    job.opts.equalize = job.opts.correct_bias = false;
    job.opts.min_sqnr_db = 199;
    if (EW_EXPECT_OK(ew_quant_run(&job, &r))) {
        EW_EXPECT_INT(r.n_float, 5);
        EW_EXPECT_HAS(r.layers[0].reason, "dB");
        EW_EXPECT_INT(count(r.graph, "quantize_linear"), 0);
        EW_EXPECT(r.sqnr_db > 100);
        EW_EXPECT(!r.evaluated);
    }
    ew_quant_result_fini(&r);
}

/* NaN scores count as the worst, not as "no difference". */
static void nan_is_no_agreement(void)
{
    const struct ew_quant_job job = job_of(NULL);
    struct ew_quant_probe p = {0};
    double db = 0;
    EW_EXPECT_OK(ew_quant_probe_fill(&job, &p));
    EW_EXPECT_OK(ew_quant_probe_sqnr(&p, net, 1, &db));
    EW_EXPECT_NEAR(db, 200, 0);
    p.scores[0] = NAN;
    EW_EXPECT_OK(ew_quant_probe_sqnr(&p, net, 1, &db));
    EW_EXPECT_NEAR(db, -200, 0);
    ew_quant_probe_fini(&p);
}

/* Regression: if no layer is quantised the network is unchanged; biases corrected for int8 layers
 * that were not there had changed its accuracy. */
static void nothing_quantised_is_nothing_changed(void)
{
    struct ew_quant_result r;
    struct ew_quant_job job = job_of(evaluation());
    job.opts.min_sqnr_db = 1000;
    if (EW_EXPECT_OK(ew_quant_run(&job, &r))) {
        EW_EXPECT_INT(r.n_float, r.n_layers);
        EW_EXPECT_INT(r.graph->n_nodes, net->n_nodes);
        EW_EXPECT(r.sqnr_db > 150);
        EW_EXPECT_CLOSE(&(float){(float)r.before.loss}, &(float){(float)r.after.loss}, 1, 1e-6, 0);
    }
    ew_quant_result_fini(&r);
}

/* A layer that stays float32 is not rounded, so its bias must not be corrected: neither in the
 * network, nor while another layer is rated alone. */
static void float_layers_keep_their_biases(void)
{
    const struct ew_quant_job job = job_of(NULL);
    struct ew_quant_result r = {0};
    struct ew_quant_probe probe = {0};
    struct ew_quant_remedies w = {.job = &job, .probe = &probe, .out = &r};
    struct ew_graph *g = NULL;
    bool keep[64];
    double db = 0;
    memset(keep, true, sizeof(keep));
    ew_arena_init(&r.arena);
    EW_EXPECT_OK(ew_quant_probe_fill(&job, &probe));
    if (EW_EXPECT_OK(ew_quant_remedies_try(&w)) && EW_EXPECT(w.all[1].g->n_nodes <= 64) &&
        EW_EXPECT_OK(ew_quant_build(&job, &w.all[1], keep, &g)) &&
        EW_EXPECT_OK(ew_quant_probe_sqnr(&probe, g, 1, &db)))
        EW_EXPECT(db > 150);
    ew_graph_free(g);
    ew_quant_remedies_fini(&w);
    ew_quant_probe_fini(&probe);
    ew_quant_result_fini(&r);
}

/* No drop allowed: layers stay float32 until the accuracy is at least the float network's. */
static void drops_are_met(void)
{
    struct ew_quant_result r;
    struct ew_quant_job job = job_of(evaluation());
    job.opts.method = EW_CALIBRATE_PERCENTILE;
    job.opts.percentile = 50; /* half of all values are clipped: int8 must fail */
    job.opts.max_drop = 0;
    job.opts.min_sqnr_db = -100;
    if (EW_EXPECT_OK(ew_quant_run(&job, &r))) {
        EW_EXPECT(r.n_float > 0);
        EW_EXPECT(r.drop_met);
        EW_EXPECT(r.after.accuracy >= r.before.accuracy);
    }
    ew_quant_result_fini(&r);
}

static int at_zero(const struct ew_graph *g)
{
    int n = 0;
    for (int k = 0; g && k < g->n_nodes; k++) {
        const struct ew_node *node = &g->nodes[k];
        n += strcmp(node->op->name, "dequantize_linear") == 0 && node->n_in == 3 &&
             g->values[node->in[2]].t.dtype == EW_S8 &&
             ew_tensor_count(&g->values[node->in[1]].t) == 1 &&
             ew_tensor_get_int(&g->values[node->in[2]].t, 0) == 0;
    }
    return n;
}

/* All layers in int8, whatever the limits, and the scores too. */
static void powers_of_two(void)
{
    struct ew_quant_result r;
    struct ew_quant_job job = job_of(evaluation());
    job.opts.scheme = EW_QUANTIZE_POW2;
    job.opts.min_sqnr_db = 199;
    job.opts.max_drop = 0;
    if (EW_EXPECT_OK(ew_quant_run(&job, &r))) {
        EW_EXPECT_INT(r.n_float, 0);
        EW_EXPECT_INT(r.n_remedies, EW_QUANT_REMEDIES);
        EW_EXPECT(r.after.accuracy > r.before.accuracy - 0.03);
        EW_EXPECT(r.sqnr_db > 15);
        EW_EXPECT_INT(at_zero(r.graph), count(r.graph, "dequantize_linear"));
        const struct ew_graph *g = r.graph;
        EW_EXPECT_STR(g->nodes[g->values[g->outputs[0]].producer].op->name, "dequantize_linear");
    }
    ew_quant_result_fini(&r);
}

static void times_are_measured(void)
{
    struct ew_quant_result r;
    struct ew_quant_job job = job_of(NULL);
    job.opts.time = true;
    if (EW_EXPECT_OK(ew_quant_run(&job, &r))) {
        EW_EXPECT(r.float_s > 0 && r.int8_s > 0);
        for (int i = 0; i < r.n_layers; i++) {
            EW_EXPECT(r.layers[i].float_s > 0 && r.layers[i].int8_s > 0);
            EW_EXPECT(!r.layers[i].is_float || r.layers[i].reason[0]);
        }
    }
    ew_quant_result_fini(&r);
}

/* Regression: each slow layer alone stayed float32, although the conversions around it cost more.
 * Adjacent slow layers are one group, which float32 layers do not interrupt, and small ones do not
 * matter. */
static void slow_layers_are_grouped(void)
{
    const struct ew_quant_layer layers[] = {
        {.float_s = 1, .int8_s = 2},    {.float_s = 1, .int8_s = 0.5},
        {.float_s = 1, .int8_s = 3},    {.float_s = 1, .int8_s = 9, .is_float = true},
        {.float_s = 1, .int8_s = 1.5},  {.float_s = 1, .int8_s = 1.01},
        {.float_s = 0.001, .int8_s = 9}};
    struct ew_quant_group groups[EW_COUNT(layers)];
    EW_EXPECT_INT(ew_quant_slow_groups(layers, EW_COUNT(layers), 7, groups), 2);
    EW_EXPECT_INT(groups[0].first, 2);
    EW_EXPECT_INT(groups[0].n, 3);
    EW_EXPECT(groups[0].saves_s > 2.4 && groups[0].saves_s < 2.6);
    EW_EXPECT_INT(groups[1].first, 0);
    EW_EXPECT_INT(groups[1].n, 1);
}

static void quantised_twice_is_refused(void)
{
    struct ew_quant_result first, second;
    struct ew_quant_job job = job_of(NULL);
    if (EW_EXPECT_OK(ew_quant_run(&job, &first))) {
        EW_EXPECT(first.int8_bytes > 61706 && first.int8_bytes < first.float_bytes / 3);
        job.net = first.graph;
        EW_EXPECT_ERR(ew_quant_run(&job, &second), EW_ERR_ARG, "is quantised already");
        ew_quant_result_fini(&second);
    }
    ew_quant_result_fini(&first);
}

static const struct ew_test tests[] = {EW_TEST(accuracy_stays),
                                       EW_TEST(costly_layers_stay_float),
                                       EW_TEST(nothing_quantised_is_nothing_changed),
                                       EW_TEST(nan_is_no_agreement),
                                       EW_TEST(float_layers_keep_their_biases),
                                       EW_TEST(drops_are_met),
                                       EW_TEST(powers_of_two),
                                       EW_TEST(times_are_measured),
                                       EW_TEST(slow_layers_are_grouped),
                                       EW_TEST(quantised_twice_is_refused)};

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    ew_test_begin("train_lenet");
    const bool ready = train_lenet();
    ew_test_end();
    for (size_t i = 0; ready && i < EW_COUNT(tests); i++) {
        ew_test_begin("%s", tests[i].name);
        tests[i].run();
        ew_test_end();
    }
    ew_graph_free(net);
    ew_dataset_close(data);
    return ew_test_status();
}
