/* SPDX-License-Identifier: Apache-2.0 */
/* Preprocessing and class names: from a checkpoint through ONNX and back. */
#include "format/checkpoint.h"
#include "format/image_card.h"

#include "ew_test.h"

static struct ew_graph *network(const char *name)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_model_build(name, NULL, &g));
    EW_EXPECT_OK(ew_model_init(name, 3, g));
    return g;
}

static const char *const names[] = {"a bird", "", "two\nlines"};

static void expect_card(const struct ew_graph *g, double mean, double std, int64_t resize)
{
    struct ew_arena a;
    struct ew_image_card c;
    ew_arena_init(&a);
    EW_EXPECT_OK(ew_image_card_get(g, &a, &c));
    EW_EXPECT(c.prep.normalised);
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++) { /* one channel: its values are used for all */
        EW_EXPECT(c.prep.mean[i] >= mean && c.prep.mean[i] <= mean);
        EW_EXPECT(c.prep.std[i] >= std && c.prep.std[i] <= std);
    }
    EW_EXPECT_INT(c.prep.resize, resize);
    if (EW_EXPECT_INT(c.n_classes, 3)) {
        EW_EXPECT_STR(c.classes[0], "a bird");
        EW_EXPECT_STR(c.classes[1], "");
        EW_EXPECT_STR(c.classes[2], "two lines");
    }
    ew_arena_fini(&a);
}

/* Regression: after export or quantisation every command had to be told again how images are
 * normalised. */
static void goes_from_a_checkpoint_to_onnx_and_back(void)
{
    struct ew_graph *g = network("lenet5"), *from = NULL;
    struct ew_checkpoint read;
    struct ew_checkpoint c = {.graph = g,
                              .options = "epochs = 5\nresize = 40\n",
                              .progress = "",
                              .classes = names,
                              .n_classes = 3,
                              .prep = {.mean = {0.1, 7}, .std = {1.0 / 3}}};
    EW_EXPECT_OK(ew_checkpoint_write(ew_test_path("a.ckpt"), &c));
    EW_EXPECT_OK(ew_checkpoint_read(ew_test_path("a.ckpt"), &read));
    expect_card(read.graph, 0.1, 1.0 / 3, 40);
    EW_EXPECT_OK(ew_onnx_save(read.graph, ew_test_path("a.onnx"), NULL));
    EW_EXPECT_OK(ew_onnx_load(ew_test_path("a.onnx"), NULL, &from));
    expect_card(from, 0.1, 1.0 / 3, 40);
    ew_graph_free(from);
    ew_checkpoint_fini(&read);
    ew_graph_free(g);
}

static void covers_the_input_where_nothing_is_said(void)
{
    struct ew_graph *g = network("lenet5");
    struct ew_checkpoint read;
    struct ew_checkpoint c = {.graph = g,
                              .options = "resize = 0\n",
                              .progress = "",
                              .classes = names,
                              .n_classes = 3,
                              .prep.std = {1}};
    EW_EXPECT_OK(ew_checkpoint_write(ew_test_path("b.ckpt"), &c));
    EW_EXPECT_OK(ew_checkpoint_read(ew_test_path("b.ckpt"), &read));
    expect_card(read.graph, 0, 1, 28);
    ew_checkpoint_fini(&read);
    ew_graph_free(g);
}

static void says_nothing_where_nothing_is_known(void)
{
    struct ew_graph *g = network("lenet5");
    struct ew_arena a;
    struct ew_image_card c;
    ew_arena_init(&a);
    EW_EXPECT_OK(ew_image_card_get(g, &a, &c));
    EW_EXPECT(!c.prep.normalised);
    EW_EXPECT_INT(c.prep.resize + c.n_classes, 0);
    ew_arena_fini(&a);
    ew_graph_free(g);
}

/* Regression: networks for video got a fourth value, for a channel that they do not have. */
static void has_a_number_for_each_channel(void)
{
    static const struct {
        const char *network, *mean;
    } k[] = {{"lenet5", "0.5"}, {"c3d_small", "0.5,0.25,0.125"}};
    const struct ew_image_card c = {
        .prep = {.normalised = true, .mean = {0.5, 0.25, 0.125}, .std = {1, 1, 1, 1}}};
    for (size_t i = 0; i < EW_COUNT(k); i++) {
        struct ew_graph *g = network(k[i].network);
        EW_EXPECT_OK(ew_image_card_put(g, &c));
        EW_EXPECT_STR(ew_graph_note(g, "edgewise.mean"), k[i].mean);
        ew_graph_free(g);
    }
}

static void refuses_what_makes_no_sense(void)
{
    static const char *const bad[][3] = {
        {"edgewise.std", "1,0", "not over 0"},
        {"edgewise.std", "1,x", "number a channel"},
        {"edgewise.std", "", "has no number"},
        {"edgewise.mean", "1,2,3,4,5", "a channel"},
        {"edgewise.mean", "inf", "number a channel"},
        {"edgewise.resize", "-3", "nor \"cover\""},
        {"edgewise.resize", "99999999", "nor \"cover\""},
    };
    for (size_t i = 0; i < EW_COUNT(bad); i++) {
        struct ew_graph *g = network("lenet5");
        struct ew_arena a;
        struct ew_image_card c;
        ew_arena_init(&a);
        EW_EXPECT_OK(ew_graph_note_set(g, "edgewise.mean", "0.5"));
        EW_EXPECT_OK(ew_graph_note_set(g, "edgewise.std", "0.5"));
        EW_EXPECT_OK(ew_graph_note_set(g, bad[i][0], bad[i][1]));
        EW_EXPECT_ERR(ew_image_card_get(g, &a, &c), EW_ERR_FORMAT, bad[i][2]);
        ew_arena_fini(&a);
        ew_graph_free(g);
    }
}

EW_TEST_MAIN(EW_TEST(goes_from_a_checkpoint_to_onnx_and_back),
             EW_TEST(covers_the_input_where_nothing_is_said),
             EW_TEST(says_nothing_where_nothing_is_known), EW_TEST(has_a_number_for_each_channel),
             EW_TEST(refuses_what_makes_no_sense))
