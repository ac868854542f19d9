/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: round trips, and rejection of everything else. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "ew_test.h"
#include "format/checkpoint.h"
#include "plan/plan.h"

static struct ew_graph *network(const char *name, double scale)
{
    struct ew_graph *g = NULL;
    const struct ew_model_opts o = {.size = sizeof(o), .scale = scale};
    EW_EXPECT_OK(ew_model_build(name, &o, &g));
    EW_EXPECT_OK(ew_model_init(name, 3, g));
    return g;
}

/* A checkpoint of a small network, with one state. */
static struct ew_checkpoint sample(struct ew_graph *g)
{
    static const char *const classes[] = {"zero", "one", ""};
    static struct ew_checkpoint_state state;
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].kind == EW_VALUE_PARAM)
            state = (struct ew_checkpoint_state){g->values[i].name, 1, g->values[i].t};
    return (struct ew_checkpoint){.graph = g,
                                  .options = "epochs = 5\n",
                                  .progress = "epoch = 2\nbatch = 17\n",
                                  .classes = classes,
                                  .n_classes = 3,
                                  .prep = {.mean = {0.1, 0.2, 0.3}, .std = {1, 2, 3}},
                                  .states = &state,
                                  .n_states = 1};
}

/* Rounding settings are restored; image preprocessing is stored separately. */
static void keeps_how_weights_are_rounded(void)
{
    struct ew_graph *g = network("lenet5", 0.34);
    const struct ew_checkpoint c = sample(g);
    struct ew_checkpoint back;
    const char *path = ew_test_path("notes.ckpt");
    EW_EXPECT_OK(ew_graph_note_set(g, "qat.position.conv1.weight", "7"));
    EW_EXPECT_OK(ew_graph_note_set(g, "other", "x"));
    EW_EXPECT_OK(ew_graph_note_set(g, "qat.position.fc1.weight", "-2"));
    EW_EXPECT_OK(ew_checkpoint_write(path, &c));
    if (EW_EXPECT_OK(ew_checkpoint_read(path, &back))) {
        EW_EXPECT_STR(ew_graph_note(back.graph, "qat.position.conv1.weight"), "7");
        EW_EXPECT_STR(ew_graph_note(back.graph, "qat.position.fc1.weight"), "-2");
        EW_EXPECT(!ew_graph_note(back.graph, "other"));
        ew_checkpoint_fini(&back);
    }
    ew_graph_free(g);
}

static void expect_same_attrs(const struct ew_node *a, const struct ew_node *b)
{
    char x[512], y[512];
    for (const struct ew_field *f = a->op->attrs; f && f->name; f++) {
        ew_field_print(f, a->attr, x, sizeof(x));
        ew_field_print(f, b->attr, y, sizeof(y));
        EW_EXPECT_STR(x, y);
    }
}

static void expect_same_values(const struct ew_graph *a, const struct ew_graph *b)
{
    for (int i = 0; i < a->n_values; i++) {
        const struct ew_value *v = &a->values[i];
        const int k = ew_graph_find(b, v->name);
        if (!EW_EXPECT(k >= 0))
            return;
        const struct ew_value *w = &b->values[k];
        EW_EXPECT_INT(v->kind, w->kind);
        EW_EXPECT_INT(v->frozen, w->frozen);
        EW_EXPECT_INT(v->dynamic, w->dynamic);
        EW_EXPECT_INT(v->channels_last, w->channels_last);
        EW_EXPECT(ew_shape_equal(&v->t.shape, &w->t.shape));
        if (v->kind == EW_VALUE_PARAM || v->kind == EW_VALUE_STATE)
            EW_EXPECT(memcmp(v->t.data, w->t.data, ew_tensor_bytes(&v->t)) == 0);
    }
}

/* ---- Round trips ---- */

static void keeps_every_network(void)
{
    for (int i = 0; i < ew_model_count(); i++) {
        const char *name = ew_model_name(i);
        if (strstr(name, "vgg") || strstr(name, "alexnet") || strstr(name, "101") ||
            strstr(name, "152"))
            continue; /* redundant with the others, and large */
        struct ew_graph *g = network(name, 0.25);
        g->values[ew_graph_find(g, g->values[g->inputs[0]].name)].dynamic = 1;
        for (int k = 0; k < g->n_values; k++)
            g->values[k].frozen = g->values[k].kind == EW_VALUE_PARAM && k % 3 == 0;
        const struct ew_checkpoint c = sample(g);
        struct ew_checkpoint d;
        const char *path = ew_test_path("net.ckpt");
        if (!EW_EXPECT_OK(ew_checkpoint_write(path, &c)) ||
            !EW_EXPECT_OK(ew_checkpoint_read(path, &d)))
            return;
        EW_EXPECT_STR(d.graph->name, g->name);
        EW_EXPECT_INT(d.graph->n_nodes, g->n_nodes);
        for (int k = 0; k < g->n_nodes; k++) {
            EW_EXPECT_STR(d.graph->nodes[k].name, g->nodes[k].name);
            EW_EXPECT_SAME(d.graph->nodes[k].op, g->nodes[k].op);
            expect_same_attrs(&d.graph->nodes[k], &g->nodes[k]);
        }
        expect_same_values(g, d.graph);
        ew_checkpoint_fini(&d);
        ew_graph_free(g);
    }
}

static void keeps_everything_else(void)
{
    struct ew_graph *g = network("lenet5", 0.2);
    const struct ew_checkpoint c = sample(g);
    struct ew_checkpoint d;
    const char *path = ew_test_path("a.ckpt");
    EW_EXPECT_OK(ew_checkpoint_write(path, &c));
    EW_EXPECT(ew_checkpoint_is(path));
    if (!EW_EXPECT_OK(ew_checkpoint_read(path, &d)))
        return;
    EW_EXPECT_STR(d.options, c.options);
    EW_EXPECT_STR(d.progress, c.progress);
    EW_EXPECT_INT(d.n_classes, 3);
    EW_EXPECT_STR(d.classes[1], "one");
    EW_EXPECT_STR(d.classes[2], "");
    EW_EXPECT_NEAR(d.prep.mean[2], 0.3, 0);
    EW_EXPECT_NEAR(d.prep.std[1], 2, 0);
    EW_EXPECT_INT(d.n_states, 1);
    EW_EXPECT_STR(d.states[0].param, c.states[0].param);
    EW_EXPECT_INT(d.states[0].slot, 1);
    EW_EXPECT(memcmp(d.states[0].t.data, c.states[0].t.data, ew_tensor_bytes(&c.states[0].t)) == 0);
    ew_checkpoint_fini(&d);
    ew_graph_free(g);
}

static void computes_the_same_bits(void)
{
    struct ew_graph *g = network("mobilenet_v2_cifar", 0.25);
    const struct ew_checkpoint c = sample(g);
    struct ew_checkpoint d;
    const char *path = ew_test_path("b.ckpt");
    EW_EXPECT_OK(ew_checkpoint_write(path, &c));
    if (!EW_EXPECT_OK(ew_checkpoint_read(path, &d)))
        return;
    struct ew_plan *p[2] = {NULL, NULL};
    struct ew_graph *graphs[2] = {g, d.graph};
    for (int i = 0; i < 2; i++) {
        const struct ew_plan_opts o = {.optimize = true, .backend = {.threads = 1}};
        if (!EW_EXPECT_OK(ew_plan_compile(graphs[i], &o, &p[i])))
            return;
        float *x = ew_plan_input(p[i], 0)->data;
        for (int64_t k = 0; k < ew_tensor_count(ew_plan_input(p[i], 0)); k++)
            x[k] = (float)(k % 17) * 0.1f;
        EW_EXPECT_OK(ew_plan_run(p[i]));
    }
    const struct ew_tensor *y = ew_plan_output(p[0], 0);
    EW_EXPECT(memcmp(y->data, ew_plan_output(p[1], 0)->data, ew_tensor_bytes(y)) == 0);
    ew_plan_free(p[0]);
    ew_plan_free(p[1]);
    ew_checkpoint_fini(&d);
    ew_graph_free(g);
}

/* ---- Damage ---- */

static char *file_bytes(size_t *size)
{
    struct ew_graph *g = network("lenet5", 0.17);
    const struct ew_checkpoint c = sample(g);
    const char *path = ew_test_path("c.ckpt");
    char *bytes = NULL;
    EW_EXPECT_OK(ew_checkpoint_write(path, &c));
    EW_EXPECT_OK(ew_file_read(path, 1 << 20, &bytes, size));
    ew_graph_free(g);
    return bytes;
}

static void refuses_what_is_cut_off(void)
{
    size_t size;
    char *bytes = file_bytes(&size);
    for (size_t n = 0; n < size; n++) {
        struct ew_checkpoint c;
        if (!EW_EXPECT_INT(ew_checkpoint_parse(bytes, n, "x.ckpt", &c), EW_ERR_FORMAT))
            break;
        EW_EXPECT_HAS(ew_error_message(), "x.ckpt: ");
    }
    free(bytes);
}

static void refuses_any_changed_byte(void)
{
    size_t size;
    char *bytes = file_bytes(&size);
    for (size_t n = 0; n < size; n++) {
        struct ew_checkpoint c;
        bytes[n] ^= 4;
        if (!EW_EXPECT(ew_checkpoint_parse(bytes, size, "x.ckpt", &c) != EW_OK))
            break;
        bytes[n] ^= 4;
    }
    free(bytes);
}

/* A node's output without a name is absent, so that nothing may read it. */
static void refuses_an_absent_value_in_use(void)
{
    struct ew_graph *g = network("lenet5", 0.2);
    struct ew_checkpoint c = sample(g);
    const char *path = ew_test_path("absent.ckpt"), *name = g->values[g->nodes[1].out[0]].name;
    const size_t n = strlen(name);
    char *bytes = NULL, *at = NULL;
    size_t size = 0;
    EW_EXPECT_OK(ew_checkpoint_write(path, &c));
    EW_EXPECT_OK(ew_file_read(path, 1 << 20, &bytes, &size));
    for (size_t i = 16; i + n < size && !at; i++) /* the name after "one output" */
        if (bytes[i - 16] == 1 && bytes[i - 8] == (char)n && !bytes[i - 1] &&
            memcmp(bytes + i, name, n) == 0)
            at = bytes + i;
    if (EW_EXPECT(at)) {
        at[-8] = 0;
        memmove(at, at + n, (size_t)(bytes + size - at) - n);
        size -= n;
        const uint64_t sum = ew_hash_of(bytes, size - 8);
        for (int i = 0; i < 8; i++)
            bytes[size - 8 + (size_t)i] = (char)(sum >> (8 * i));
        EW_EXPECT_ERR(ew_checkpoint_parse(bytes, size, "x.ckpt", &c), EW_ERR_FORMAT,
                      "is used, but its node omits it");
    }
    free(bytes);
    ew_graph_free(g);
}

static void says_what_is_wrong(void)
{
    size_t size;
    char *bytes = file_bytes(&size);
    struct ew_checkpoint c;
    EW_EXPECT_ERR(ew_checkpoint_parse("hello", 5, "x.ckpt", &c), EW_ERR_FORMAT,
                  "x.ckpt: not a checkpoint");
    bytes[8] = 2; /* the version */
    EW_EXPECT_ERR(ew_checkpoint_parse(bytes, size, "x.ckpt", &c), EW_ERR_UNSUPPORTED,
                  "is a checkpoint of version 2; this program reads up to 1");
    EW_EXPECT_ERR(ew_checkpoint_read(ew_test_path("none.ckpt"), &c), EW_ERR_NOT_FOUND, "none.ckpt");
    EW_EXPECT(!ew_checkpoint_is(ew_test_path("none.ckpt")));
    free(bytes);
}

/* ---- Checksum ---- */

static void sums_do_not_depend_on_pieces(void)
{
    unsigned char text[100];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (unsigned char)(i * 37);
    const uint64_t whole = ew_hash_of(text, sizeof(text));
    for (size_t cut = 0; cut <= sizeof(text); cut++) {
        struct ew_hash h = {0};
        ew_hash_add(&h, text, cut);
        ew_hash_add(&h, text + cut, sizeof(text) - cut);
        EW_EXPECT(ew_hash_sum(&h) == whole);
        if (cut < sizeof(text))
            EW_EXPECT(ew_hash_of(text, cut) != whole);
    }
    EW_EXPECT(ew_hash_of("a\0", 2) != ew_hash_of("a", 1));
}

EW_TEST_MAIN(EW_TEST(keeps_every_network), EW_TEST(keeps_everything_else),
             EW_TEST(keeps_how_weights_are_rounded), EW_TEST(computes_the_same_bits),
             EW_TEST(refuses_what_is_cut_off), EW_TEST(refuses_any_changed_byte),
             EW_TEST(refuses_an_absent_value_in_use), EW_TEST(says_what_is_wrong),
             EW_TEST(sums_do_not_depend_on_pieces))
