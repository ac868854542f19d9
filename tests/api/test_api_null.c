/* SPDX-License-Identifier: Apache-2.0 */
/* A program that ignores an error passes NULL on: every public function reports that. */
#include <math.h>

#include "edgewise_bench.h"
#include "edgewise_data.h"
#include "edgewise_device.h"
#include "edgewise_federate.h"
#include "edgewise_pixels.h"
#include "edgewise_results.h"
#include "edgewise_shrink.h"
#include "edgewise_train.h"
#include "ew_test.h"

#define REFUSED(call, name) EW_EXPECT_ERR(call, EW_ERR_ARG, name " is NULL")
#define DATA                "synthetic:train=20,test=4"

static void networks(void)
{
    struct ew_graph *g = NULL;
    int32_t filters[4];
    int n;
    REFUSED(ew_model_build(NULL, NULL, &g), "name");
    REFUSED(ew_model_build("lenet5", NULL, NULL), "out");
    REFUSED(ew_model_filters("lenet5", NULL, NULL, 4, &n), "filters");
    REFUSED(ew_model_filters("lenet5", NULL, filters, 4, NULL), "n");
    REFUSED(ew_model_init("lenet5", 1, NULL), "g");
    REFUSED(ew_onnx_load(NULL, NULL, &g), "path");
    REFUSED(ew_onnx_load("net.onnx", NULL, NULL), "out");
    REFUSED(ew_onnx_load_memory(NULL, 0, NULL, &g), "bytes");
    REFUSED(ew_onnx_load_memory("x", 1, NULL, NULL), "out");
    struct ew_onnx_input input = {.rank = 2};
    struct ew_onnx_opts given = {.size = sizeof(given), .n_inputs = 1};
    EW_EXPECT_ERR(ew_onnx_load("net.onnx", &given, &g), EW_ERR_ARG, "inputs is NULL");
    EW_EXPECT_ERR(ew_onnx_load_memory("x", 1, &given, &g), EW_ERR_ARG, "inputs is NULL");
    given.inputs = &input;
    EW_EXPECT_ERR(ew_onnx_load("net.onnx", &given, &g), EW_ERR_ARG,
                  "dims of given input 0 is NULL");
    REFUSED(ew_onnx_save(NULL, "net.onnx", NULL), "g");
    REFUSED(ew_engine_compile(NULL, NULL, "net.ewe"), "g");
    if (EW_EXPECT_OK(ew_model_build("lenet5", NULL, &g))) {
        REFUSED(ew_model_init(NULL, 1, g), "name");
        REFUSED(ew_onnx_save(g, NULL, NULL), "path");
        REFUSED(ew_engine_compile(g, NULL, NULL), "path");
    }
    ew_graph_free(g);
}

static void engines(void)
{
    const struct ew_pixels pixels = {.size = sizeof(pixels)};
    struct ew_engine *e = NULL;
    struct ew_context *c = NULL;
    struct ew_engine_info info = {.size = sizeof(info)};
    struct ew_port port;
    struct ew_timing t[2] = {{.size = sizeof(t[0])}, {.size = sizeof(t[1])}};
    struct ew_context *none[2] = {NULL, NULL};
    int n;
    REFUSED(ew_engine_load(NULL, &e), "path");
    REFUSED(ew_engine_load("net.ewe", NULL), "out");
    REFUSED(ew_engine_load_memory(NULL, 0, &e), "bytes");
    REFUSED(ew_engine_load_memory("x", 1, NULL), "out");
    REFUSED(ew_engine_info(NULL, &info), "e");
    REFUSED(ew_engine_input(NULL, 0, &port), "e");
    REFUSED(ew_engine_output(NULL, 0, &port), "e");
    EW_EXPECT_STR(ew_engine_class(NULL, 0), "");
    REFUSED(ew_context_new(NULL, 0, &c), "e");
    REFUSED(ew_context_set_batch(NULL, 1), "c");
    EW_EXPECT(!ew_context_input(NULL, 0, NULL) && !ew_context_output(NULL, 0, NULL));
    REFUSED(ew_context_input_port(NULL, 0, &port), "c");
    REFUSED(ew_context_output_port(NULL, 0, &port), "c");
    REFUSED(ew_context_read_image(NULL, 0, "cat.jpg"), "c");
    REFUSED(ew_context_put_pixels(NULL, 0, &pixels), "c");
    REFUSED(ew_context_run(NULL), "c");
    REFUSED(ew_context_start(NULL), "c");
    REFUSED(ew_context_wait(NULL), "c");
    REFUSED(ew_context_profile(NULL, 1, NULL, 0, &n), "c");
    REFUSED(ew_context_bench(NULL, NULL, &t[0]), "c");
    REFUSED(ew_contexts_compare(NULL, 2, NULL, t, NULL), "contexts");
    REFUSED(ew_contexts_compare(none, 2, NULL, t, NULL), "contexts[i]");
}

/* With an engine: output pointers that are NULL. */
static void contexts(void)
{
    struct ew_graph *g = NULL;
    struct ew_engine *e = NULL;
    struct ew_context *c = NULL;
    const char *path = ew_test_path("net.ewe");
    int n;
    if (!EW_EXPECT_OK(ew_model_build("lenet5", NULL, &g)) ||
        !EW_EXPECT_OK(ew_model_init("lenet5", 1, g)) ||
        !EW_EXPECT_OK(ew_engine_compile(g, NULL, path)) ||
        !EW_EXPECT_OK(ew_engine_load(path, &e)) || !EW_EXPECT_OK(ew_context_new(e, 1, &c)))
        return;
    REFUSED(ew_engine_info(e, NULL), "out");
    REFUSED(ew_engine_input(e, 0, NULL), "out");
    REFUSED(ew_engine_output(e, 0, NULL), "out");
    REFUSED(ew_context_new(e, 1, NULL), "out");
    REFUSED(ew_context_input_port(c, 0, NULL), "out");
    REFUSED(ew_context_output_port(c, 0, NULL), "out");
    REFUSED(ew_context_read_image(c, 0, NULL), "path");
    REFUSED(ew_context_put_pixels(c, 0, NULL), "p");
    REFUSED(ew_context_profile(c, 1, NULL, 5, &n), "steps");
    REFUSED(ew_context_profile(c, 1, NULL, 0, NULL), "n");
    REFUSED(ew_context_bench(c, NULL, NULL), "out");
    ew_context_free(c);
    ew_engine_free(e);
    ew_graph_free(g);
}

static void data_and_devices(void)
{
    struct ew_dataset *d = NULL;
    struct ew_dataset_facts facts = {.size = sizeof(facts)};
    struct ew_batches *b = NULL;
    struct ew_batch_view view;
    struct ew_meter_energy energy = {.size = sizeof(energy)};
    struct ew_meter_channel channel;
    REFUSED(ew_dataset_open(NULL, &d), "what");
    REFUSED(ew_dataset_open(DATA, NULL), "out");
    REFUSED(ew_dataset_facts(NULL, &facts), "d");
    EW_EXPECT_STR(ew_dataset_class(NULL, 0), "");
    REFUSED(ew_batches_open(NULL, NULL, &b), "d");
    REFUSED(ew_batches_start(NULL, 0), "b");
    REFUSED(ew_batches_next(NULL, &view), "b");
    if (EW_EXPECT_OK(ew_dataset_open(DATA, &d))) {
        REFUSED(ew_dataset_facts(d, NULL), "out");
        REFUSED(ew_batches_open(d, NULL, NULL), "out");
    }
    ew_dataset_close(d);
    REFUSED(ew_device_at(0, NULL), "out");
    REFUSED(ew_device_use(NULL), "id");
    REFUSED(ew_meter_open(NULL, NULL), "out");
    REFUSED(ew_meter_read(NULL, 0, &channel), "m");
    REFUSED(ew_meter_end(NULL, &energy), "m");
    EW_EXPECT(!ew_meter_channels(NULL) && !ew_meter_has_power(NULL));
    ew_meter_begin(NULL);
    ew_meter_poll(NULL);
}

static void training(void)
{
    const struct ew_pruning_opts cut = {.size = sizeof(cut), .keep = 0.5};
    struct ew_training *t = NULL;
    struct ew_federated *f = NULL;
    struct ew_training_state state = {.size = sizeof(state)};
    struct ew_federated_round round = {.size = sizeof(round)};
    struct ew_evaluation score = {.size = sizeof(score)};
    struct ew_graph *g = NULL, *q = NULL;
    struct ew_dataset *d = NULL;
    int event;
    if (!EW_EXPECT_OK(ew_dataset_open(DATA, &d)) ||
        !EW_EXPECT_OK(ew_network_for_data("lenet5", d, 1, &g)))
        return;
    REFUSED(ew_network_graph(NULL, 1, &q), "what");
    REFUSED(ew_network_for_data("lenet5", NULL, 1, &q), "data");
    REFUSED(ew_training_open(NULL, d, NULL, &t), "net");
    REFUSED(ew_training_open(g, NULL, NULL, &t), "data");
    REFUSED(ew_training_open(g, d, NULL, NULL), "out");
    REFUSED(ew_training_resume(NULL, d, NULL, &t), "folder");
    EW_EXPECT(!ew_training_graph(NULL));
    REFUSED(ew_training_step(NULL, &event), "t");
    REFUSED(ew_training_state(NULL, &state), "t");
    REFUSED(ew_training_save(NULL), "t");
    REFUSED(ew_evaluate_graph(NULL, d, NULL, &score), "net");
    REFUSED(ew_evaluate_graph(g, d, NULL, NULL), "out");
    REFUSED(ew_evaluate_context(NULL, d, NULL, &score), "c");
    REFUSED(ew_quantize_graph(NULL, d, NULL, NULL, &q), "net");
    REFUSED(ew_quantize_graph(g, d, NULL, NULL, NULL), "out");
    REFUSED(ew_prune_graph(NULL, NULL, &cut, NULL), "net");
    REFUSED(ew_prune_graph(g, NULL, NULL, NULL), "opts");
    REFUSED(ew_federated_open(NULL, d, NULL, &f), "net");
    REFUSED(ew_federated_round(NULL, &round), "f");
    ew_graph_free(g);
    ew_dataset_close(d);
}

static void results(void)
{
    const struct ew_width_opts half = {.size = sizeof(half), .ratio = 0.5};
    struct ew_result_list *l = NULL;
    int n;
    REFUSED(ew_result_list_open(NULL, NULL, NULL, &l), "db");
    EW_EXPECT(!ew_result_list_next(NULL) && !ew_result_list_columns(NULL));
    EW_EXPECT(!ew_result_list_name(NULL, 0) && !ew_result_list_text(NULL, 0));
    EW_EXPECT(isnan(ew_result_list_number(NULL, 0)));
    EW_EXPECT_INT(ew_result_list_find(NULL, "id"), -1);
    REFUSED(ew_scale_filters(NULL, NULL, &half, NULL, 0, &n), "network");
    REFUSED(ew_scale_filters("vgg11_cifar", NULL, NULL, NULL, 0, &n), "opts");
}

EW_TEST_MAIN(EW_TEST(networks), EW_TEST(engines), EW_TEST(contexts), EW_TEST(data_and_devices),
             EW_TEST(training), EW_TEST(results))
