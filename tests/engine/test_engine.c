/* SPDX-License-Identifier: Apache-2.0 */
/* Engines: compiling twice gives the same bytes, results equal a plan's, for every batch size and
 * instruction set, from several concurrent threads; and invalid files are refused. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/isa.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "ew_test.h"
#include "format/engine_layout.h"
#include "graph/layout.h"

#define MAX_BYTES ((size_t)64 << 20)

/* Small networks with all kinds of convolutions. */
static const struct sample {
    const char *name;
    int64_t side;
    double scale;
} samples[] = {
    {"lenet5", 0, 1},           {"squeezenet1_1", 64, 0.25}, {"shufflenet_v2_x1_0", 64, 0.25},
    {"mobilenet_v2", 64, 0.25}, {"resnet18", 64, 0.25},      {"densenet121", 64, 0.25}};

/* In quick tests two stand for all. */
static size_t n_samples(void)
{
    return ew_test_quick() ? 2 : EW_COUNT(samples);
}

static struct ew_graph *network(const struct sample *s)
{
    struct ew_graph *g = NULL;
    const struct ew_model_opts o = {
        .size = sizeof(o), .height = s->side, .width = s->side, .scale = s->scale, .classes = 10};
    EW_EXPECT_OK(ew_model_build(s->name, &o, &g));
    EW_EXPECT_OK(ew_model_init(s->name, 3, g));
    return g;
}

static void fill(void *data, size_t bytes, uint64_t seed)
{
    float *x = data;
    for (size_t i = 0; i < bytes / sizeof(*x); i++)
        x[i] = (float)ew_rng_normal(seed, 0, i);
}

/* Compiles and loads. */
static struct ew_engine *make(const struct sample *s, const struct ew_compile_opts *o,
                              const char *file)
{
    struct ew_engine *e = NULL;
    struct ew_graph *g = network(s);
    EW_EXPECT_OK(ew_engine_compile(g, o, ew_test_path(file)));
    EW_EXPECT_OK(ew_engine_load(ew_test_path(file), &e));
    ew_graph_free(g);
    return e;
}

/* A plan's result for the same input; to be freed. */
static float *expected(const struct sample *s, int64_t batch, uint64_t seed, size_t *bytes)
{
    struct ew_graph *g = network(s);
    struct ew_plan *p = NULL;
    float *copy = NULL;
    EW_EXPECT_OK(ew_graph_set_batch(g, batch));
    const struct ew_plan_opts o = {.optimize = true, .backend = {.threads = 1}};
    if (EW_EXPECT_OK(ew_plan_compile(g, &o, &p))) {
        struct ew_tensor *in = ew_plan_input(p, 0);
        fill(in->data, ew_tensor_bytes(in), seed);
        EW_EXPECT_OK(ew_plan_run(p));
        const struct ew_tensor *out = ew_plan_output(p, 0);
        *bytes = ew_tensor_bytes(out);
        copy = malloc(*bytes);
        memcpy(copy, out->data, *bytes);
    }
    ew_plan_free(p);
    ew_graph_free(g);
    return copy;
}

static void run(struct ew_context *c, uint64_t seed)
{
    size_t bytes = 0;
    void *in = ew_context_input(c, 0, &bytes);
    fill(in, bytes, seed);
    EW_EXPECT_OK(ew_context_run(c));
}

static void expect_output(struct ew_context *c, const struct sample *s, int64_t batch,
                          double tolerance)
{
    size_t want_bytes = 0, got_bytes = 0;
    run(c, 5);
    float *want = expected(s, batch, 5, &want_bytes);
    const float *got = ew_context_output(c, 0, &got_bytes);
    if (EW_EXPECT_INT(got_bytes, want_bytes) && tolerance > 0)
        EW_EXPECT_CLOSE(got, want, got_bytes / sizeof(float), tolerance, tolerance);
    else
        EW_EXPECT(memcmp(got, want, want_bytes) == 0);
    free(want);
}

/* ---- Cases ---- */

/* The contents of an engine file, in memory. */
static void from_memory(const char *file, bool again)
{
    char *bytes;
    size_t size;
    void *copy = NULL;
    struct ew_engine *e = NULL;
    struct ew_context *c = NULL;
    struct ew_engine_info info = {.size = sizeof(info)};
    if (!EW_EXPECT_OK(ew_file_read(ew_test_path(file), MAX_BYTES, &bytes, &size)) ||
        !EW_EXPECT_OK(ew_aligned_new(size + 1, &copy)))
        return;
    memcpy((char *)copy + 1, bytes, size);
    EW_EXPECT_ERR(ew_engine_load_memory((char *)copy + 1, size, &e), EW_ERR_ARG, "multiple of 64");
    memcpy(copy, bytes, size);
    EW_EXPECT_ERR(ew_engine_load_memory(copy, size - 1, &e), EW_ERR_FORMAT, "in memory: is cut");
    EW_EXPECT(!e);
    if (EW_EXPECT_OK(ew_engine_load_memory(copy, size, &e)) &&
        EW_EXPECT_OK(ew_engine_info(e, &info)) && EW_EXPECT_OK(ew_context_new(e, 1, &c))) {
        EW_EXPECT_INT(info.file_bytes, size);
        EW_EXPECT_INT(info.repacked, again);
        expect_output(c, &samples[0], 1, again ? 1e-4 : 0);
    }
    ew_context_free(c);
    ew_engine_free(e);
    free(copy);
    free(bytes);
}

static void loads_from_memory(void)
{
    ew_engine_free(make(&samples[0], NULL, "m.ewe"));
    from_memory("m.ewe", false);
}

static void computes_what_a_plan_computes(void)
{
    for (size_t i = 0; i < n_samples(); i++) {
        struct ew_engine *e = make(&samples[i], NULL, "a.ewe");
        struct ew_context *c = NULL;
        if (e && EW_EXPECT_OK(ew_context_new(e, 1, &c)))
            expect_output(c, &samples[i], 1, 0);
        ew_context_free(c);
        ew_engine_free(e);
    }
}

static void same_bytes_twice(void)
{
    for (size_t i = 0; i < n_samples(); i++) {
        char *a = NULL, *b = NULL;
        size_t n = 0, m = 0;
        const struct ew_compile_opts o = {.size = sizeof(o), .batch_max = 3, .threads = 1};
        ew_engine_free(make(&samples[i], &o, "a.ewe"));
        ew_engine_free(make(&samples[i], &o, "b.ewe"));
        EW_EXPECT_OK(ew_file_read(ew_test_path("a.ewe"), MAX_BYTES, &a, &n));
        EW_EXPECT_OK(ew_file_read(ew_test_path("b.ewe"), MAX_BYTES, &b, &m));
        EW_EXPECT_INT(n, m);
        EW_EXPECT(a && b && n == m && memcmp(a, b, n) == 0);
        free(a);
        free(b);
    }
}

/* Every batch size of the range, in any order, in one context; others are refused. */
static void any_batch_of_the_range(void)
{
    static const int64_t order[] = {1, 5, 2, 5, 1, 3};
    const struct ew_compile_opts o = {.size = sizeof(o), .batch_max = 5};
    for (size_t i = 0; i < n_samples(); i++) {
        struct ew_engine *e = make(&samples[i], &o, "a.ewe");
        struct ew_context *c = NULL;
        if (!e || !EW_EXPECT_OK(ew_context_new(e, 2, &c)))
            return;
        for (size_t k = 0; k < EW_COUNT(order); k++)
            if (EW_EXPECT_OK(ew_context_set_batch(c, order[k])))
                expect_output(c, &samples[i], order[k], 1e-4);
        EW_EXPECT_ERR(ew_context_set_batch(c, 6), EW_ERR_ARG, "1 to 5");
        EW_EXPECT_ERR(ew_context_set_batch(c, 0), EW_ERR_ARG, "batch 0");
        ew_context_free(c);
        ew_engine_free(e);
    }
}

/* Other batch sizes use the weights packed for the first. */
static void batches_share_packed_weights(void)
{
    for (size_t i = 0; i < n_samples(); i++) {
        const struct ew_compile_opts one = {.size = sizeof(one), .threads = 1};
        const struct ew_compile_opts many = {.size = sizeof(many), .batch_max = 4, .threads = 1};
        struct ew_engine *a = make(&samples[i], &one, "a.ewe");
        struct ew_engine *b = make(&samples[i], &many, "b.ewe");
        if (a && b && EW_EXPECT(a->file.n_packed <= b->file.n_packed))
            for (int k = 0; k < a->file.n_packed; k++)
                EW_EXPECT(memcmp(a->file.packed[k].data, b->file.packed[k].data,
                                 a->file.packed[k].bytes) == 0);
        ew_engine_free(a);
        ew_engine_free(b);
    }
}

/* A file for the best instruction set, on a machine that has another one only. */
static void packs_again_for_another_machine(void)
{
    const struct ew_kernels *other = ew_isa_at(1);
    if (!other || getenv("EW_DEVICE"))
        EW_SKIP("there is one instruction set");
    for (size_t i = 0; i < n_samples(); i++) {
        const struct ew_compile_opts compact = {.size = sizeof(compact), .compact = 1};
        struct ew_engine_info info = {.size = sizeof(info)}, small = {.size = sizeof(small)};
        struct ew_engine *e = make(&samples[i], NULL, "a.ewe");
        struct ew_engine *f = make(&samples[i], &compact, "c.ewe");
        EW_EXPECT_OK(ew_engine_info(e, &info));
        EW_EXPECT_OK(ew_engine_info(f, &small));
        EW_EXPECT(!info.repacked && small.file_bytes < info.file_bytes);
        struct ew_context *c = NULL;
        if (EW_EXPECT_OK(ew_context_new(f, 1, &c)))
            expect_output(c, &samples[i], 1, 0);
        ew_context_free(c);
        ew_engine_free(e);
        ew_engine_free(f);
        e = f = NULL;
        c = NULL;
        setenv("EW_ISA", other->isa, 1);
        EW_EXPECT_ERR(ew_engine_load(ew_test_path("c.ewe"), &f), EW_ERR_UNSUPPORTED, other->isa);
        if (EW_EXPECT_OK(ew_engine_load(ew_test_path("a.ewe"), &e)) &&
            EW_EXPECT_OK(ew_context_new(e, 1, &c))) {
            EW_EXPECT_OK(ew_engine_info(e, &info));
            EW_EXPECT(info.repacked);
            expect_output(c, &samples[i], 1, 1e-4); /* the rules may choose other kernels here */
        }
        ew_context_free(c);
        ew_engine_free(e);
        if (i == 0)
            from_memory("a.ewe", true);
        unsetenv("EW_ISA");
    }
}

/* ---- Threads ---- */

struct worker {
    const struct ew_engine *e;
    int id;
    int64_t until;
    const float *want;
    size_t bytes;
    int64_t runs, wrong;
    char why[256]; /* message of the last error */
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct ew_context *c = NULL;
    if (ew_context_new(w->e, 1 + w->id % 2, &c) != EW_OK) {
        w->wrong++;
        return NULL;
    }
    do {
        size_t bytes = 0;
        void *in = ew_context_input(c, 0, &bytes);
        fill(in, bytes, 5);
        if (ew_context_run(c) != EW_OK) {
            snprintf(w->why, sizeof(w->why), "%s", ew_error_message());
            w->wrong++;
        }
        w->wrong += memcmp(ew_context_output(c, 0, NULL), w->want, w->bytes) != 0;
        w->runs++;
    } while (ew_clock_ns() < w->until || w->runs < 3);
    ew_context_free(c);
    return NULL;
}

/* Four threads with a context each; EW_ENGINE_SECONDS makes it longer. */
static void contexts_run_at_the_same_time(void)
{
    const char *seconds = getenv("EW_ENGINE_SECONDS");
    const int64_t end = ew_clock_ns() + (seconds ? atoi(seconds) : 0) * EW_NS_PER_S;
    for (size_t i = 0; i < n_samples(); i++) {
        pthread_t thread[4];
        struct worker w[4];
        size_t bytes = 0;
        struct ew_engine *e = make(&samples[i], NULL, "a.ewe");
        float *want = expected(&samples[i], 1, 5, &bytes);
        const int64_t part = (end - ew_clock_ns()) / (int64_t)(n_samples() - i);
        for (int k = 0; k < 4; k++) {
            w[k] = (struct worker){
                .e = e, .id = k, .until = ew_clock_ns() + part, .want = want, .bytes = bytes};
            EW_EXPECT_INT(pthread_create(&thread[k], NULL, work, &w[k]), 0);
        }
        for (int k = 0; k < 4; k++) {
            pthread_join(thread[k], NULL);
            EW_EXPECT_INT(w[k].wrong, 0);
            EW_EXPECT_STR(w[k].why, "");
            EW_EXPECT(w[k].runs >= 3);
        }
        free(want);
        ew_engine_free(e);
    }
}

/* Asynchronous runs of several contexts, from one thread. */
static void runs_are_started_and_waited_for(void)
{
    struct ew_context *c[3] = {NULL};
    struct ew_engine *e = make(
        &samples[0], &(struct ew_compile_opts){.size = sizeof(struct ew_compile_opts)}, "a.ewe");
    for (uint64_t i = 0; i < EW_COUNT(c); i++) {
        size_t bytes = 0;
        EW_EXPECT_OK(ew_context_new(e, 1, &c[i]));
        void *in = ew_context_input(c[i], 0, &bytes);
        fill(in, bytes, 5 + i);
        EW_EXPECT_OK(ew_context_start(c[i]));
        EW_EXPECT_ERR(ew_context_start(c[i]), EW_ERR_ARG, "not waited for");
        EW_EXPECT_ERR(ew_context_run(c[i]), EW_ERR_ARG, "not waited for");
        EW_EXPECT_ERR(ew_context_set_batch(c[i], 1), EW_ERR_ARG, "not waited for");
    }
    for (uint64_t i = 0; i < EW_COUNT(c); i++) {
        size_t bytes = 0;
        float *want = expected(&samples[0], 1, 5 + i, &bytes);
        EW_EXPECT_OK(ew_context_wait(c[i]));
        EW_EXPECT(want && memcmp(ew_context_output(c[i], 0, NULL), want, bytes) == 0);
        EW_EXPECT_ERR(ew_context_wait(c[i]), EW_ERR_ARG, "no run is under way");
        EW_EXPECT_OK(ew_context_start(c[i])); /* the source is freed while runs are in flight */
        ew_context_free(c[i]);
        free(want);
    }
    ew_engine_free(e);
}

static void tells_what_it_is_and_where_time_goes(void)
{
    static const char *const classes[] = {"zero", "one"};
    const struct ew_compile_opts o = {.size = sizeof(o),
                                      .batch_min = 2,
                                      .batch_max = 4,
                                      .threads = 1,
                                      .classes = classes,
                                      .n_classes = 2,
                                      .mean = {0.5},
                                      .std = {2, 1, 1, 1}};
    struct ew_engine *e = make(&samples[0], &o, "a.ewe");
    struct ew_engine_info i = {.size = sizeof(i)};
    struct ew_port in, out;
    if (!e || !EW_EXPECT_OK(ew_engine_info(e, &i)))
        return;
    EW_EXPECT_STR(i.name, "lenet5");
    EW_EXPECT_STR(i.precision, "fp32");
    EW_EXPECT_INT(i.batch_min, 2);
    EW_EXPECT_INT(i.batch_max, 4);
    EW_EXPECT(i.params > 1000 && i.flops > i.macs && i.cdl > 4);
    EW_EXPECT(i.packed_bytes > 0 || getenv("EW_DEVICE")); /* other devices may have nothing to
                                                           * pack */
    EW_EXPECT_STR(ew_engine_class(e, 1), "one");
    EW_EXPECT_STR(ew_engine_class(e, 2), "");
    EW_EXPECT_OK(ew_engine_input(e, 0, &in));
    EW_EXPECT_OK(ew_engine_output(e, 0, &out));
    EW_EXPECT_INT(in.dims[0], 2);
    EW_EXPECT_INT(out.dims[1], 10);
    EW_EXPECT_ERR(ew_engine_input(e, 1, &in), EW_ERR_ARG, "input 1");
    struct ew_context *c = NULL;
    struct ew_step_time steps[64];
    int n = 0;
    if (EW_EXPECT_OK(ew_context_new(e, 0, &c)) &&
        EW_EXPECT_OK(ew_context_profile(c, 3, steps, 64, &n)) && EW_EXPECT(n > 3 && n < 64))
        for (int k = 0; k < n; k++)
            EW_EXPECT(steps[k].us >= 0 && *steps[k].name && *steps[k].kernel);
    EW_EXPECT(ew_context_input(c, 1, NULL) == NULL && ew_context_output(c, -1, NULL) == NULL);
    ew_context_free(c);
    ew_engine_free(e);
}

/* Outputs of [2, N, 3] and [2 N, 3] of an input of [N, 2, 3]. */
static struct ew_graph *batch_behind_and_within(void)
{
    const struct ew_transpose_attr swap = {.perm = {3, {1, 0, 2}}};
    const struct ew_shape shape = {3, {1, 2, 3}};
    const int64_t rows[] = {-1, 3};
    struct ew_graph *g = NULL;
    int x, to, y;
    EW_EXPECT_OK(ew_graph_new("ports", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &shape, &x));
    EW_EXPECT_OK(ew_graph_const_ints(g, "to", rows, 2, &to));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("transpose"), "swapped", &swap, EW_INPUTS(x), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("reshape"), "rows", NULL, EW_INPUTS(x, to), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    return g;
}

static void tells_shapes_at_the_current_batch(void)
{
    const struct ew_compile_opts o = {.size = sizeof(o), .batch_min = 1, .batch_max = 3};
    struct ew_graph *g = batch_behind_and_within();
    struct ew_engine *e = NULL;
    struct ew_context *c = NULL;
    struct ew_port in, swapped, rows;
    if (EW_EXPECT_OK(ew_engine_compile(g, &o, ew_test_path("ports.ewe"))) &&
        EW_EXPECT_OK(ew_engine_load(ew_test_path("ports.ewe"), &e)) &&
        EW_EXPECT_OK(ew_context_new(e, 1, &c)) && EW_EXPECT_OK(ew_context_set_batch(c, 3)) &&
        EW_EXPECT_OK(ew_context_input_port(c, 0, &in)) &&
        EW_EXPECT_OK(ew_context_output_port(c, 0, &swapped)) &&
        EW_EXPECT_OK(ew_context_output_port(c, 1, &rows))) {
        EW_EXPECT_INT(in.dims[0], 3);
        EW_EXPECT_INT(swapped.dims[0], 2);
        EW_EXPECT_INT(swapped.dims[1], 3);
        EW_EXPECT_INT(rows.dims[0], 6);
        EW_EXPECT_ERR(ew_context_output_port(c, 2, &rows), EW_ERR_ARG, "output 2");
    }
    ew_context_free(c);
    ew_engine_free(e);
    ew_graph_free(g);
}

static void refuses_what_it_cannot_compile(void)
{
    struct ew_graph *g = NULL;
    struct ew_compile_opts o = {.size = sizeof(o), .precision = "int8"};
    EW_EXPECT_OK(ew_model_build("lenet5", NULL, &g));
    EW_EXPECT_ERR(ew_engine_compile(g, NULL, ew_test_path("x.ewe")), EW_ERR_ARG, "weights");
    EW_EXPECT_OK(ew_model_init("lenet5", 1, g));
    EW_EXPECT_ERR(ew_engine_compile(g, &o, ew_test_path("x.ewe")), EW_ERR_ARG, "quantize");
    o = (struct ew_compile_opts){.size = sizeof(o), .batch_min = 3, .batch_max = 2};
    EW_EXPECT_ERR(ew_engine_compile(g, &o, ew_test_path("x.ewe")), EW_ERR_ARG, "3 to 2");
    o = (struct ew_compile_opts){.size = 8};
    EW_EXPECT_ERR(ew_engine_compile(g, &o, ew_test_path("x.ewe")), EW_ERR_ARG, "8");
    o = (struct ew_compile_opts){
        .size = sizeof(o), .classes = (const char *[]){"cat"}, .n_classes = -1};
    EW_EXPECT_ERR(ew_engine_compile(g, &o, ew_test_path("x.ewe")), EW_ERR_ARG, "-1 classes");
    o = (struct ew_compile_opts){.size = sizeof(o), .std = {-1}};
    EW_EXPECT_ERR(ew_engine_compile(g, &o, ew_test_path("x.ewe")), EW_ERR_ARG, "std -1");
    EW_EXPECT_ERR(ew_engine_compile(g, NULL, ew_test_path("no/x.ewe")), EW_ERR_NOT_FOUND, "x.ewe");
    ew_graph_free(g);
}

/* ---- Invalid files ---- */

static void expect_refused(const char *bytes, size_t n, ew_err code, const char *text)
{
    struct ew_engine *e = NULL;
    EW_EXPECT_ERR(ew_engine_load(ew_test_file("bad.ewe", bytes, n), &e), code, text);
    EW_EXPECT(!strchr(ew_error_message(), '\n'));
    ew_engine_free(e);
}

static void put_int(char *to, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        to[i] = (char)(v >> (8 * i));
}

static void refuses_damage(void)
{
    char *bytes = NULL;
    size_t n = 0;
    ew_engine_free(make(&samples[0], NULL, "a.ewe"));
    if (!EW_EXPECT_OK(ew_file_read(ew_test_path("a.ewe"), MAX_BYTES, &bytes, &n)))
        return;
    struct ew_engine *none = NULL;
    EW_EXPECT_ERR(ew_engine_load(ew_test_path("nothing.ewe"), &none), EW_ERR_NOT_FOUND,
                  "nothing.ewe");
    expect_refused("", 0, EW_ERR_FORMAT, "not an engine");
    expect_refused("an old letter", 13, EW_ERR_FORMAT, "not an engine");
    expect_refused(bytes, 5, EW_ERR_FORMAT, "cut off");
    expect_refused(bytes, n - 1, EW_ERR_FORMAT, "cut off");
    expect_refused(bytes, n / 2, EW_ERR_FORMAT, "cut off");
    /* Every byte is checked, except plain weights, which are only read to be packed again. */
    const struct ew_kernels *other = getenv("EW_DEVICE") ? NULL : ew_isa_at(1);
    const size_t step = n / 97;
    for (size_t i = 0; i < n; i += i < 200 ? 1 : step) {
        bytes[i] ^= 0x10;
        const char *bad = ew_test_file("bad.ewe", bytes, n);
        if (other)
            setenv("EW_ISA", other->isa, 1);
        struct ew_engine *e = NULL;
        const ew_err err = ew_engine_load(bad, &e);
        EW_EXPECT(err != EW_OK || !other);
        ew_engine_free(err == EW_OK ? e : NULL);
        unsetenv("EW_ISA");
        bytes[i] ^= 0x10;
    }
    put_int(bytes + 8, EW_ENGINE_VERSION + 1);
    expect_refused(bytes, n, EW_ERR_UNSUPPORTED, "newer");
    free(bytes);
}

/* A modification with correct checksums. */
static void refuses_another_architecture(void)
{
    char *bytes = NULL;
    size_t n = 0;
    ew_engine_free(make(&samples[0], NULL, "a.ewe"));
    if (!EW_EXPECT_OK(ew_file_read(ew_test_path("a.ewe"), MAX_BYTES, &bytes, &n)))
        return;
    const char *arch = ew_engine_arch();
    char *at = memmem(bytes, n, arch, strlen(arch));
    if (EW_EXPECT(at != NULL)) {
        at[0] = 'q';
        char *head = bytes + 32; /* the first section's offset, size, checksum */
        uint64_t offset = 0, size = 0;
        memcpy(&offset, head, 8);
        memcpy(&size, head + 8, 8);
        put_int(head + 16, ew_hash_of(bytes + offset, size));
        put_int(bytes + EW_ENGINE_HEAD, ew_hash_of(bytes, EW_ENGINE_HEAD));
        expect_refused(bytes, n, EW_ERR_UNSUPPORTED, arch);
    }
    free(bytes);
}

EW_TEST_MAIN(EW_TEST(loads_from_memory), EW_TEST(computes_what_a_plan_computes),
             EW_TEST(same_bytes_twice), EW_TEST(any_batch_of_the_range),
             EW_TEST(batches_share_packed_weights), EW_TEST(packs_again_for_another_machine),
             EW_TEST(contexts_run_at_the_same_time), EW_TEST(runs_are_started_and_waited_for),
             EW_TEST(tells_what_it_is_and_where_time_goes),
             EW_TEST(tells_shapes_at_the_current_batch), EW_TEST(refuses_what_it_cannot_compile),
             EW_TEST(refuses_damage), EW_TEST(refuses_another_architecture))
