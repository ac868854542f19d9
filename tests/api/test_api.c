/* SPDX-License-Identifier: Apache-2.0 */
/* The public headers except training: devices, data, timing, sensors, memory limits. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "edgewise_bench.h"
#include "edgewise_data.h"
#include "edgewise_device.h"
#include "ew_test.h"

static void devices(void)
{
    struct ew_device d = {.size = sizeof(d)};
    int n = 0;
    EW_EXPECT_OK(ew_device_at(0, &d));
    EW_EXPECT_STR(d.id, "cpu");
    EW_EXPECT(d.name[0] && d.target[0] && !d.why[0] && !d.emulated);
    while (ew_device_at(n, &d) == EW_OK) {
        EW_EXPECT(d.id[0] || d.why[0]); /* available, or with a reason */
        EW_EXPECT_INT(d.emulated, strcmp(d.backend, "dpu") == 0);
        n++;
    }
    EW_EXPECT_ERR(ew_device_at(n, &d), EW_ERR_NOT_FOUND, "no device");
    d.size = 0;
    EW_EXPECT_ERR(ew_device_at(0, &d), EW_ERR_ARG, "bytes");
    EW_EXPECT(ew_device_use("abacus") != EW_OK);
}

/* ---- Data ---- */

#define DATA  "synthetic:train=10,test=4,size=16"
#define IMAGE ((size_t)16 * 16)

struct epoch {
    float images[10 * 16 * 16];
    int64_t index[10];
    int64_t n, batches;
};

static void read_epoch(const struct ew_dataset *d, const struct ew_batches_opts *o, int64_t number,
                       struct epoch *out)
{
    struct ew_batches *b = NULL;
    struct ew_batch_view v;
    *out = (struct epoch){0};
    if (!EW_EXPECT_OK(ew_batches_open(d, o, &b)) || !EW_EXPECT_OK(ew_batches_start(b, number)))
        return;
    while (EW_EXPECT_OK(ew_batches_next(b, &v)) && v.n && out->n + v.n <= 10) {
        memcpy(out->images + (size_t)out->n * IMAGE, v.images, (size_t)v.n * IMAGE * sizeof(float));
        memcpy(out->index + out->n, v.index, (size_t)v.n * sizeof(*v.index));
        for (int64_t i = 0; i < v.n; i++)
            EW_EXPECT(v.labels[i] >= 0 && v.labels[i] < 10);
        EW_EXPECT(v.height == 16 && v.width == 16 && v.channels == 1);
        out->n += v.n;
        out->batches++;
    }
    ew_batches_close(b);
}

/* Sizes whose product is none, and a class without a name. */
static void senseless_sizes(void)
{
    static const int64_t sides[][2] = {
        {INT64_MAX, 1}, {1, INT64_MAX}, {INT64_C(1) << 31, INT64_C(1) << 31}, {1 << 21, 16}};
    struct ew_dataset *d = NULL;
    struct ew_graph *g = NULL;
    struct ew_model_opts clips = {.size = sizeof(clips), .height = INT64_MAX, .width = INT64_MAX};
    const char *const classes[] = {"zero", NULL};
    const struct ew_compile_opts named = {
        .size = sizeof(named), .classes = classes, .n_classes = 2};
    if (!EW_EXPECT_OK(ew_dataset_open("synthetic:train=4,test=2", &d)))
        return;
    for (size_t i = 0; i < sizeof(sides) / sizeof(*sides); i++) {
        struct ew_batches *b = NULL;
        const struct ew_batches_opts o = {
            .size = sizeof(o), .batch = 1, .height = sides[i][0], .width = sides[i][1]};
        EW_EXPECT_ERR(ew_batches_open(d, &o, &b), EW_ERR_LIMIT, "too large");
    }
    ew_dataset_close(d);
    EW_EXPECT(ew_model_build("video_autoencoder", &clips, &g) != EW_OK);
    if (EW_EXPECT_OK(ew_model_build("lenet5", NULL, &g)) &&
        EW_EXPECT_OK(ew_model_init("lenet5", 1, g)))
        EW_EXPECT_ERR(ew_engine_compile(g, &named, ew_test_path("unnamed.ewe")), EW_ERR_ARG,
                      "class 1 of 2 has no name");
    ew_graph_free(g);
}

static void batches(void)
{
    struct ew_dataset *d = NULL;
    struct ew_dataset_facts f = {.size = sizeof(f)};
    struct ew_batches_opts o = {.size = sizeof(o), .batch = 4, .shuffle = 1, .seed = 3};
    static struct epoch a, b, again, plain, scaled;
    if (!EW_EXPECT_OK(ew_dataset_open(DATA, &d)) || !EW_EXPECT_OK(ew_dataset_facts(d, &f)))
        return;
    EW_EXPECT(f.train == 10 && f.test == 4 && f.classes == 10 && f.height == 16);
    read_epoch(d, &o, 0, &a);
    EW_EXPECT_INT(a.n, 10);
    EW_EXPECT_INT(a.batches, 3); /* the last is shorter */
    read_epoch(d, &o, 1, &b);
    EW_EXPECT(memcmp(a.index, b.index, sizeof(a.index)) != 0);
    o.workers = 2; /* workers only change the time */
    read_epoch(d, &o, 0, &again);
    EW_EXPECT(memcmp(&a, &again, sizeof(a)) == 0);
    o = (struct ew_batches_opts){.size = sizeof(o), .test = 1};
    read_epoch(d, &o, 0, &plain);
    EW_EXPECT_INT(plain.n, 4);
    o.mean[0] = 0.5;
    o.std[0] = 0.25;
    read_epoch(d, &o, 0, &scaled);
    for (size_t i = 0; i < 4 * IMAGE; i++)
        plain.images[i] = (plain.images[i] - 0.5f) / 0.25f;
    EW_EXPECT_CLOSE(scaled.images, plain.images, 4 * IMAGE, 1e-5, 1e-5);
    o.batch = -1;
    struct ew_batches *none;
    EW_EXPECT_ERR(ew_batches_open(d, &o, &none), EW_ERR_ARG, "negative");
    ew_dataset_close(d);
    EW_EXPECT_ERR(ew_dataset_open("no-such-set", &d), EW_ERR_NOT_FOUND, "no-such-set");
}

/* ---- Engines ---- */

static struct ew_graph *network(const char *name, int64_t side)
{
    const struct ew_model_opts o = {
        .size = sizeof(o), .height = side, .width = side, .scale = 0.25};
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_model_build(name, &o, &g));
    EW_EXPECT_OK(ew_model_init(name, 1, g));
    return g;
}

/* Regression: arrays of results were written with the library's size of an element, not with the
 * caller's. */
static void times_of_every_release(struct ew_context *const *c, const struct ew_timing_opts *o)
{
    struct earlier {
        size_t size;
        int64_t runs;
        double min_ms;
    } old[3] = {{.size = sizeof(*old)}, {.size = sizeof(*old)}, {.size = 7, .runs = 7}};
    struct later {
        struct ew_timing now;
        double more;
    } new[2] = {{{.size = sizeof(*new)}, 1}, {{.size = sizeof(*new)}, 1}};
    EW_EXPECT_OK(ew_contexts_compare(c, 2, o, (struct ew_timing *)(void *)old, NULL));
    EW_EXPECT(old[1].size == sizeof(*old) && old[1].runs >= 7 && old[1].min_ms > 0);
    EW_EXPECT(old[2].size == 7 && old[2].runs == 7); /* behind the array */
    EW_EXPECT_OK(ew_contexts_compare(c, 2, o, &new[0].now, NULL));
    EW_EXPECT(new[1].now.size == sizeof(*new) && new[1].now.min_ms > 0);
    EW_EXPECT(new[0].more <= 0 && new[1].more <= 0);
    new[1].now.size = sizeof(new[1].now);
    EW_EXPECT_ERR(ew_contexts_compare(c, 2, o, &new[0].now, NULL), EW_ERR_ARG, "size of out[1]");
}

static void times(void)
{
    const char *path = ew_test_path("times.ewe");
    struct ew_graph *g = network("lenet5", 0);
    struct ew_engine *e = NULL;
    struct ew_context *c[2] = {NULL, NULL};
    const struct ew_timing_opts o = {.size = sizeof(o), .warmup = 1, .runs = 7};
    struct ew_timing t[2] = {{.size = sizeof(t[0])}, {.size = sizeof(t[0])}};
    double speedup[2];
    EW_EXPECT_OK(ew_engine_compile(g, NULL, path));
    if (!EW_EXPECT_OK(ew_engine_load(path, &e)) || !EW_EXPECT_OK(ew_context_new(e, 1, &c[0])) ||
        !EW_EXPECT_OK(ew_context_new(e, 1, &c[1])))
        return;
    EW_EXPECT_OK(ew_context_bench(c[0], &o, &t[0]));
    EW_EXPECT_INT(t[0].runs, 7);
    EW_EXPECT(t[0].min_ms > 0 && t[0].min_ms <= t[0].median_ms && t[0].median_ms <= t[0].p90_ms &&
              t[0].p90_ms <= t[0].p99_ms && t[0].p99_ms <= t[0].max_ms);
    EW_EXPECT(t[0].images_per_s > 0);
    EW_EXPECT_OK(ew_contexts_compare(c, 2, &o, t, speedup));
    EW_EXPECT(t[1].runs >= 7 && speedup[0] > 0.999 && speedup[0] < 1.001 && speedup[1] > 0);
    times_of_every_release(c, &o);
    const struct ew_timing_opts timed = {.size = sizeof(timed), .seconds = 1};
    EW_EXPECT_ERR(ew_contexts_compare(c, 2, &timed, t, NULL), EW_ERR_ARG, "neither seconds");
    EW_EXPECT_OK(ew_context_start(c[0]));
    EW_EXPECT_ERR(ew_context_bench(c[0], &o, &t[0]), EW_ERR_ARG, "was not waited for");
    EW_EXPECT_ERR(ew_contexts_compare(c, 2, &o, t, NULL), EW_ERR_ARG, "was not waited for");
    EW_EXPECT_OK(ew_context_wait(c[0]));
    t[0].size = 1;
    EW_EXPECT_ERR(ew_context_bench(c[0], &o, &t[0]), EW_ERR_ARG, "bytes");
    ew_context_free(c[0]);
    ew_context_free(c[1]);
    ew_engine_free(e);
    ew_graph_free(g);
}

static int64_t bytes_of(const char *path)
{
    struct ew_engine *e = NULL;
    struct ew_engine_info i = {.size = sizeof(i)};
    if (!EW_EXPECT_OK(ew_engine_load(path, &e)) || !EW_EXPECT_OK(ew_engine_info(e, &i)))
        return 0;
    ew_engine_free(e);
    return i.packed_bytes + i.activation_bytes;
}

/* A limit below the packed size of the fastest kernels is met by other kernels, or refused. */
static void memory_limit(void)
{
    char path[1024];
    struct ew_graph *g = network("resnet18", 64);
    struct ew_compile_opts o = {.size = sizeof(o), .threads = 1};
    strcpy(path, ew_test_path("limit.ewe"));
    EW_EXPECT_OK(ew_engine_compile(g, &o, path));
    const int64_t free_bytes = bytes_of(path);
    o.memory_limit = free_bytes * 9 / 10;
    if (EW_EXPECT_OK(ew_engine_compile(g, &o, path)))
        EW_EXPECT(bytes_of(path) <= o.memory_limit);
    o.memory_limit = 1000;
    EW_EXPECT_ERR(ew_engine_compile(g, &o, path), EW_ERR_LIMIT, "");
    o.memory_limit = -1;
    EW_EXPECT_ERR(ew_engine_compile(g, &o, path), EW_ERR_ARG, "memory limit");
    ew_graph_free(g);
}

/* ---- Sensors ---- */

/* Waits until a power channel has a value: the meter's command may be slow to start. */
static void wait_for_power(struct ew_meter *m)
{
    struct ew_meter_channel c;
    for (int tries = 0; tries < 100; tries++) {
        for (int i = 0; i < ew_meter_channels(m); i++)
            if (ew_meter_read(m, i, &c) == EW_OK && strcmp(c.unit, "W") == 0 && !c.absent)
                return;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
}

static void recorded_board(void)
{
    const struct ew_meter_opts o = {.size = sizeof(o),
                                    .root = "tests/fixtures/boards/xavier-nx-jp5"};
    struct ew_meter *m = NULL;
    struct ew_meter_channel c;
    bool power = false;
    if (!EW_EXPECT_OK(ew_meter_open(&o, &m)))
        return;
    EW_EXPECT(ew_meter_has_power(m));
    wait_for_power(m);
    for (int i = 0; i < ew_meter_channels(m); i++) {
        EW_EXPECT_OK(ew_meter_read(m, i, &c));
        EW_EXPECT(c.name[0] && c.source && (c.absent || !isnan(c.value)));
        power |= strcmp(c.unit, "W") == 0 && !c.absent && c.value > 0;
    }
    EW_EXPECT(power);
    EW_EXPECT_ERR(ew_meter_read(m, ew_meter_channels(m), &c), EW_ERR_ARG, "no channel");
    ew_meter_close(m);
}

/* A meter that always reports 5 W: joules are 5 times the seconds. */
static void energy(void)
{
    const struct ew_meter_opts o = {.size = sizeof(o),
                                    .power_from = "while :; do echo 5.0; sleep 0.02; done"};
    struct ew_meter *m = NULL;
    struct ew_meter_energy e = {.size = sizeof(e)};
    if (!EW_EXPECT_OK(ew_meter_open(&o, &m)))
        return;
    EW_EXPECT_ERR(ew_meter_end(m, &e), EW_ERR_ARG, "begun");
    wait_for_power(m);
    ew_meter_begin(m);
    for (int i = 0; i < 5; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        ew_meter_poll(m);
    }
    if (EW_EXPECT_OK(ew_meter_end(m, &e)) && EW_EXPECT(!e.absent)) {
        EW_EXPECT(e.seconds >= 0.5 && e.readings > 0);
        EW_EXPECT(e.joules > 4.99 * e.seconds && e.joules < 5.01 * e.seconds);
        EW_EXPECT(e.mean_w > 4.99 && e.mean_w < 5.01 && e.rails[0]);
    }
    ew_meter_close(m);
}

EW_TEST_MAIN(EW_TEST(devices), EW_TEST(batches), EW_TEST(senseless_sizes), EW_TEST(times),
             EW_TEST(memory_limit), EW_TEST(recorded_board), EW_TEST(energy))
