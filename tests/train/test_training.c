/* SPDX-License-Identifier: Apache-2.0 */
/* Training, evaluation and quantisation through the public headers; one case fixes the batch of a
 * graph itself. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "edgewise_bench.h"
#include "edgewise_federate.h"
#include "edgewise_shrink.h"
#include "edgewise_train.h"
#include "ew_test.h"
#include "graph/graph.h"

#define FINDS "tests/fixtures/finds/"
#define DATA  "synthetic:train=320,test=64,classes=10"

static struct ew_graph *network(void)
{
    struct ew_graph *g = NULL;
    const struct ew_model_opts o = {.size = sizeof(o), .scale = 0.34};
    EW_EXPECT_OK(ew_model_build("lenet5", &o, &g));
    EW_EXPECT_OK(ew_model_init("lenet5", 3, g));
    return g;
}

static struct ew_dataset *data(void)
{
    struct ew_dataset *d = NULL;
    EW_EXPECT_OK(ew_dataset_open(DATA, &d));
    return d;
}

static const struct ew_training_opts usual = {.size = sizeof(usual),
                                              .epochs = 6,
                                              .batch = 32,
                                              .lr = 0.05,
                                              .threads = 1,
                                              .seed = 5,
                                              .options =
                                                  "workers = 0\nmomentum = 0.9\nval-split = 0\n"};

/* Trains to the end; counts[] of each event. */
static struct ew_training_state train(struct ew_graph *g, const struct ew_dataset *d,
                                      const struct ew_training_opts *o, int counts[4])
{
    struct ew_training *t = NULL;
    struct ew_training_state s = {.size = sizeof(s)};
    int event = EW_TRAINING_BATCH;
    memset(counts, 0, 4 * sizeof(*counts));
    if (!EW_EXPECT_OK(ew_training_open(g, d, o, &t)))
        return s;
    EW_EXPECT_OK(ew_training_state(t, &s));
    EW_EXPECT(isnan(s.validation_accuracy) && isnan(s.test_accuracy));
    while (event != EW_TRAINING_DONE && EW_EXPECT_OK(ew_training_step(t, &event)))
        counts[event]++;
    EW_EXPECT_OK(ew_training_state(t, &s));
    if (o->folder)
        EW_EXPECT_OK(ew_training_save(t));
    else
        EW_EXPECT_ERR(ew_training_save(t), EW_ERR_ARG, "folder");
    ew_training_close(t);
    return s;
}

/* It learns; the same seed gives the same bits; the written checkpoint has the trained weights. */
static void learns(void)
{
    struct ew_dataset *d = data();
    struct ew_graph *a = network(), *b = network(), *c = NULL;
    struct ew_training_opts o = usual;
    struct ew_evaluation e = {.size = sizeof(e)}, f = {.size = sizeof(f)};
    char file[1024];
    int counts[4], again[4];
    const struct ew_training_state s = train(a, d, &o, counts);
    EW_EXPECT_INT(counts[EW_TRAINING_BATCH], 60);
    EW_EXPECT_INT(counts[EW_TRAINING_EPOCH], 6);
    EW_EXPECT_INT(counts[EW_TRAINING_DONE], 1);
    EW_EXPECT(s.validation_accuracy > 0.5 && s.test_accuracy > 0.5); /* chance is 0.1 */
    o.folder = ew_test_path("run");
    const struct ew_training_state r = train(b, d, &o, again);
    EW_EXPECT(memcmp(&s.validation_loss, &r.validation_loss, sizeof(double)) == 0);
    EW_EXPECT_OK(ew_evaluate_graph(b, d, NULL, &e));
    EW_EXPECT_INT(e.samples, 64);
    EW_EXPECT(fabs(e.accuracy - r.validation_accuracy) < 1e-9 && e.top5_accuracy >= e.accuracy);
    EW_EXPECT(fabs(e.loss - r.validation_loss) < 1e-4);
    snprintf(file, sizeof(file), "%s", ew_test_path("run/last.ckpt"));
    if (EW_EXPECT_OK(ew_network_graph(file, 1, &c)) &&
        EW_EXPECT_OK(ew_evaluate_graph(c, d, NULL, &f)))
        EW_EXPECT(memcmp(&e.loss, &f.loss, sizeof(double)) == 0);
    ew_graph_free(c);
    ew_graph_free(b);
    ew_graph_free(a);
    ew_dataset_close(d);
}

static void refuses(void)
{
    static const struct {
        const char *options, *says;
    } bad[] = {{"rate = 1", "rate"},
               {"data = mnist", "data"},
               {"optimizer = magic", "magic"},
               {"momentum", "name = value"},
               {"momentum = 2", "momentum"}};
    struct ew_dataset *d = data();
    struct ew_graph *g = network();
    struct ew_training *t;
    struct ew_training_opts o = usual;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        o.options = bad[i].options;
        EW_EXPECT(ew_training_open(g, d, &o, &t) != EW_OK && !t);
        EW_EXPECT(strstr(ew_error_message(), bad[i].says) != NULL);
    }
    o = usual;
    o.size = 8;
    EW_EXPECT_ERR(ew_training_open(g, d, &o, &t), EW_ERR_ARG, "bytes");
    struct ew_evaluation e = {.size = sizeof(e)};
    EW_EXPECT(ew_evaluate_graph(g, d, NULL, &e) != EW_OK); /* the preprocessing is unknown */
    ew_graph_free(g);
    ew_dataset_close(d);
}

/* Regression: images beyond a fixed batch were written behind the plan's memory, and a context with
 * one of 3 was scored as if it ran single images. */
static void evaluates_at_a_fixed_batch(void)
{
    struct ew_dataset *d = data();
    struct ew_graph *g = network(), *fixed = NULL, *q = NULL;
    struct ew_engine *engine = NULL;
    struct ew_context *context = NULL;
    struct ew_evaluation a = {.size = sizeof(a)}, b = {.size = sizeof(b)}, c = {.size = sizeof(c)};
    struct ew_timing t = {.size = sizeof(t)};
    const struct ew_onnx_save_opts save = {.size = sizeof(save), .batch = 3};
    const struct ew_timing_opts runs = {.size = sizeof(runs), .warmup = 1, .runs = 2};
    const struct ew_quantization_opts few = {.size = sizeof(few), .images = 16, .threads = 1};
    int counts[4];
    train(g, d, &usual, counts);
    EW_EXPECT_OK(ew_evaluate_graph(g, d, NULL, &a));
    EW_EXPECT_OK(ew_onnx_save(g, ew_test_path("fixed.onnx"), &save));
    EW_EXPECT_OK(ew_onnx_load(ew_test_path("fixed.onnx"), NULL, &fixed));
    EW_EXPECT_OK(ew_evaluate_graph(fixed, d, NULL, &b));
    EW_EXPECT(b.samples == a.samples && fabs(a.accuracy - b.accuracy) < 1e-9);
    EW_EXPECT_OK(ew_engine_compile(fixed, NULL, ew_test_path("fixed.ewe")));
    EW_EXPECT_OK(ew_engine_load(ew_test_path("fixed.ewe"), &engine));
    if (EW_EXPECT_OK(ew_context_new(engine, 1, &context))) {
        EW_EXPECT_OK(ew_evaluate_context(context, d, NULL, &c));
        EW_EXPECT_OK(ew_context_bench(context, &runs, &t));
        EW_EXPECT(fabs(t.images_per_s * t.median_ms - 3e3) < 1e-3);
    }
    EW_EXPECT(c.samples == a.samples && fabs(a.accuracy - c.accuracy) < 1e-9);
    g->values[g->inputs[0]].dynamic = 0;
    EW_EXPECT_ERR(ew_quantize_graph(g, d, &few, NULL, &q), EW_ERR_SHAPE, "its batch is fixed at");
    ew_context_free(context);
    ew_engine_free(engine);
    ew_graph_free(fixed);
    ew_graph_free(g);
    ew_dataset_close(d);
}

/* A graph with the normalisation of the data. */
static void normalise(struct ew_graph *g, const char *set)
{
    struct ew_dataset *d = NULL;
    struct ew_training *t = NULL;
    const struct ew_training_opts o = {
        .size = sizeof(o), .batch = 4, .threads = 1, .options = "workers = 0\nval-split = 0\n"};
    EW_EXPECT_OK(ew_dataset_open(set, &d));
    EW_EXPECT_OK(ew_training_open(g, d, &o, &t));
    ew_training_close(t);
    ew_dataset_close(d);
}

/* Regression: samples of classes that the network does not have were left out of its accuracy, and
 * an autoencoder had an accuracy of 0. */
static void has_no_accuracy(void)
{
    const char *motion = "synthetic:kind=motion,classes=2,train=8,test=1";
    const struct ew_model_opts three = {.size = sizeof(three), .classes = 3},
                               tiny = {.size = sizeof(tiny), .scale = 0.25};
    const struct ew_quantization_opts judged = {
        .size = sizeof(judged), .images = 8, .max_drop = 5, .threads = 1};
    struct ew_dataset *ten = data(), *clips = NULL;
    struct ew_graph *g = NULL, *q = NULL, *a = NULL;
    struct ew_evaluation e = {.size = sizeof(e)};
    EW_EXPECT_OK(ew_model_build("lenet5", &three, &g));
    EW_EXPECT_OK(ew_model_init("lenet5", 3, g));
    normalise(g, "synthetic:classes=3,train=8,test=8");
    EW_EXPECT_ERR(ew_evaluate_graph(g, ten, NULL, &e), EW_ERR_ARG, "3 classes");
    EW_EXPECT_ERR(ew_quantize_graph(g, ten, &judged, NULL, &q), EW_ERR_ARG, "3 classes");
    EW_EXPECT_OK(ew_dataset_open(motion, &clips));
    EW_EXPECT_OK(ew_model_build("video_autoencoder", &tiny, &a));
    EW_EXPECT_OK(ew_model_init("video_autoencoder", 3, a));
    normalise(a, motion);
    EW_EXPECT_ERR(ew_evaluate_graph(a, clips, NULL, &e), EW_ERR_UNSUPPORTED, "no accuracy");
    ew_dataset_close(clips);
    ew_dataset_close(ten);
    ew_graph_free(a);
    ew_graph_free(g);
}

/* Regression: float32 images were copied into inputs of other types, and labels into a second
 * input; networks without inputs crashed. */
static void other_inputs(void)
{
    static const char *const files[] = {FINDS "bytes-nhwc.onnx", FINDS "two-inputs-nhwc.onnx",
                                        FINDS "no-input-scores.onnx"};
    struct ew_dataset *d = data();
    const struct ew_quantization_opts few = {.size = sizeof(few), .images = 8, .threads = 1};
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        struct ew_graph *g = NULL, *q = NULL;
        struct ew_federated *f = NULL;
        struct ew_training *t = NULL;
        struct ew_pruning_opts o = {.size = sizeof(o), .keep = 0.5, .importance = "taylor"};
        o.threads = 1;
        EW_EXPECT_OK(ew_onnx_load(files[i], NULL, &g));
        const char *says = i ? "inputs; an image classifier has one" : "not float32 images";
        EW_EXPECT_ERR(ew_quantize_graph(g, d, &few, NULL, &q), EW_ERR_SHAPE, says);
        EW_EXPECT_ERR(ew_federated_open(g, d, NULL, &f), EW_ERR_SHAPE, says);
        EW_EXPECT_ERR(ew_training_open(g, d, NULL, &t), EW_ERR_SHAPE, says);
        EW_EXPECT(ew_prune_graph(g, d, &o, NULL) != EW_OK);
        ew_graph_free(g);
    }
    ew_dataset_close(d);
}

/* int8 of a trained network: smaller, about as accurate, and the engine agrees with the graph. */
static void quantises(void)
{
    struct ew_dataset *d = data();
    struct ew_graph *g = network(), *q = NULL;
    struct ew_engine *engine = NULL;
    struct ew_context *context = NULL;
    struct ew_quantization r = {.size = sizeof(r)};
    struct ew_evaluation a = {.size = sizeof(a)}, b = {.size = sizeof(b)};
    const struct ew_quantization_opts o = {
        .size = sizeof(o), .images = 64, .max_drop = 10, .threads = 1};
    int counts[4];
    train(g, d, &usual, counts);
    if (EW_EXPECT_OK(ew_quantize_graph(g, d, &o, &r, &q))) {
        EW_EXPECT(r.int8_bytes < r.float_bytes && r.layers > 0 && r.sqnr_db > 10);
        EW_EXPECT(r.int8_accuracy > r.float_accuracy - 0.1);
        EW_EXPECT_OK(ew_evaluate_graph(q, d, NULL, &a));
        EW_EXPECT_OK(ew_engine_compile(q, NULL, ew_test_path("int8.ewe")));
        EW_EXPECT_OK(ew_engine_load(ew_test_path("int8.ewe"), &engine));
        if (EW_EXPECT_OK(ew_context_new(engine, 1, &context)))
            EW_EXPECT_OK(ew_evaluate_context(context, d, NULL, &b));
        EW_EXPECT(fabs(a.accuracy - r.int8_accuracy) < 1e-9);
        EW_EXPECT(fabs(a.accuracy - b.accuracy) < 1e-9 && b.samples == 64);
    }
    ew_context_free(context);
    ew_engine_free(engine);
    ew_graph_free(q);
    ew_graph_free(g);
    ew_dataset_close(d);
}

EW_TEST_MAIN(EW_TEST(learns), EW_TEST(refuses), EW_TEST(quantises),
             EW_TEST(evaluates_at_a_fixed_batch), EW_TEST(has_no_accuracy), EW_TEST(other_inputs))
