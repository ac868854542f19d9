/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences at the top of a report: for a full store, an empty one, a single run, long
 * names. */
#include "report/findings.h"

#include <string.h>

#include "ew_test.h"
#include "results_case.h"

static char text[EW_FINDINGS][EW_FINDING_CHARS];

static struct ew_epoch_row epochs[10];

/* A run of two epochs: one of 9 s, one of `wall` s, `stall` of which are spent waiting. */
static struct ew_epoch_row *put(struct ew_results *r, const char *network, const char *options,
                                double wall, double stall)
{
    static int at;
    struct ew_run_data *d;
    struct ew_epoch_row *e = &epochs[2 * (at++ % 5)];
    for (int i = 0; i < 2; i++) {
        ew_record_clear(EW_RECORD_EPOCH, &e[i]);
        e[i].epoch = i + 1;
        e[i].wall_s = i ? wall : 9;
        e[i].stall_s = i ? stall : 0;
        e[i].compute_s = e[i].wall_s - e[i].stall_s;
    }
    if (!EW_EXPECT_OK(ew_results_add(r, &d)))
        return NULL;
    d->run.status = EW_RUN_DONE;
    d->run.study = "train-workers";
    d->job.network = network;
    d->job.dataset = "mnist";
    d->job.options = options;
    d->machine.board = "Jetson Nano";
    d->machine.unit = "n1";
    d->machine.cores = d->machine.cores_online = 4;
    d->epochs = e;
    d->n_epochs = 2;
    return e;
}

static void two_configurations(void)
{
    struct ew_results r;
    ew_results_init(&r);
    put(&r, "lenet5", "{\"batch\":16,\"workers\":0}", 4, 3);
    put(&r, "lenet5", "{\"batch\":16,\"workers\":2}", 2, 0.5);
    EW_EXPECT_INT(ew_findings(&r, text), 5);
    EW_EXPECT_STR(text[0], "2 runs of 1 network are done.");
    EW_EXPECT_STR(text[1], "The machine is Jetson Nano with 4 of 4 cores on; no power sensor was "
                           "read, so there is no energy.");
    EW_EXPECT_STR(text[2],
                  "Of 2 configurations of lenet5 in study train-workers the fastest is workers 2: "
                  "2 s an epoch, 2 times faster than the slowest.");
    EW_EXPECT_STR(text[3], "Of that epoch 75 % is computing and 25 % waiting for data.");
    EW_EXPECT(strstr(text[4], "--workers") && strstr(text[4], "25 %"));
    ew_results_fini(&r);
}

/* The fastest is told apart from all others, not from the slowest alone. */
static void two_options_vary(void)
{
    struct ew_results r;
    ew_results_init(&r);
    put(&r, "lenet5", "{\"batch\":8,\"workers\":0}", 4, 3);
    put(&r, "lenet5", "{\"batch\":8,\"workers\":2}", 2, 0.5);
    put(&r, "lenet5", "{\"batch\":16,\"workers\":2}", 3, 0.5);
    EW_EXPECT_INT(ew_findings(&r, text), 5);
    EW_EXPECT_HAS(text[2], "the fastest is batch 8, workers 2: ");
    ew_results_fini(&r);
}

/* As long a wait with fewer of them: what was tried is not advised. */
static void more_workers_bring_nothing(void)
{
    struct ew_results r;
    ew_results_init(&r);
    put(&r, "lenet5", "{\"workers\":0}", 4, 2);
    put(&r, "lenet5", "{\"workers\":1}", 3, 1);
    put(&r, "lenet5", "{\"workers\":4}", 2.98, 1);
    EW_EXPECT_INT(ew_findings(&r, text), 5);
    EW_EXPECT(strstr(text[2], "the fastest is workers 4"));
    EW_EXPECT(strstr(text[4], "more --workers gain nothing: try a packed data set"));
    ew_results_fini(&r);
}

/* Modelled epochs are not measurements: they do not win, and do not show that the machine has a
 * power sensor. */
static void models_do_not_count(void)
{
    struct ew_results r;
    ew_results_init(&r);
    put(&r, "lenet5", "{\"workers\":0}", 4, 3);
    put(&r, "lenet5", "{\"workers\":2}", 2, 0.5);
    r.runs[1].run.quality = EW_QUALITY_SIMULATED;
    EW_EXPECT_INT(ew_findings(&r, text), 5);
    EW_EXPECT(strstr(text[0], "1 of them simulated"));
    EW_EXPECT(strstr(text[2], "lenet5 takes 4 s an epoch")); /* the modelled 2 s do not count */
    ew_results_fini(&r);
}

/* Without measurements the models are reported, with the board's name. */
static void models_alone(void)
{
    struct ew_results r;
    ew_results_init(&r);
    put(&r, "lenet5", "{\"power-mode\":\"a\",\"simulate\":\"agx-xavier:a\"}", 4, 0);
    put(&r, "lenet5", "{\"power-mode\":\"g\",\"simulate\":\"agx-xavier:g\"}", 2, 0);
    r.runs[0].run.quality = r.runs[1].run.quality = EW_QUALITY_SIMULATED;
    EW_EXPECT_INT(ew_findings(&r, text), 5);
    EW_EXPECT_STR(text[0], "2 runs of 1 network are done, none of them measured.");
    EW_EXPECT_STR(text[1], "They are simulated by a model of agx-xavier: nothing ran there.");
    EW_EXPECT_STR(text[2], "Of 2 configurations of lenet5 in study train-workers the fastest is "
                           "power-mode g: 2 s an epoch, 2 times faster than the slowest.");
    ew_results_fini(&r);
}

/* The model of an FPGA accelerator is not attributed to the board that computed it. */
static void accelerator_alone(void)
{
    struct ew_results r;
    ew_results_init(&r);
    put(&r, "lenet5", "{\"device\":\"dpu\"}", 4, 0);
    r.runs[0].run.quality = EW_QUALITY_MODELLED;
    r.runs[0].machine.profile = "jetson-nano";
    EW_EXPECT(ew_findings(&r, text) >= 2);
    EW_EXPECT_STR(text[1], "They are simulated by a model of AMD's DPU: nothing ran there.");
    ew_results_fini(&r);
}

/* Repetitions are one configuration; among equally fast ones the one with the least energy is
 * named.  Regression: MAXN was called the best although another mode took as long and less
 * energy. */
static void as_fast_for_less(void)
{
    static const double wall[] = {2, 4, 2.01, 2.01, 4};
    static const double joule[] = {400, 300, 360, 361, 100};
    static const char *const modes[] = {"m", "g", "n", "n", "a"};
    struct ew_results r;
    ew_results_init(&r);
    for (int i = 0; i < 5; i++) {
        char *options = ew_arena_printf(&r.arena, "{\"power-mode\":\"%s\"}", modes[i]);
        struct ew_epoch_row *e = put(&r, "lenet5", options, wall[i], 0);
        if (EW_EXPECT(e))
            e[0].energy_j = e[1].energy_j = joule[i];
    }
    EW_EXPECT_INT(ew_findings(&r, text), 5);
    EW_EXPECT(strstr(text[2], "Of 4 configurations of lenet5") &&
              strstr(text[2], "the fastest is power-mode m"));
    EW_EXPECT(strstr(text[3],
                     "it takes 400 J at 200 W, while power-mode n is as fast within 2 % and "
                     "takes 10 % less."));
    ew_results_fini(&r);
}

/* All devices are named, and each sentence says which one it is about. */
static void two_devices(void)
{
    struct ew_results r;
    ew_results_init(&r);
    put(&r, "lenet5", "{\"workers\":0}", 4, 0);
    put(&r, "lenet5", "{\"workers\":2}", 2, 0);
    put(&r, "lenet5", "{\"workers\":2}", 1, 0);
    r.runs[2].machine.board = "Xavier NX";
    r.runs[2].machine.unit = "x1";
    EW_EXPECT_INT(ew_findings(&r, text), 5);
    EW_EXPECT_STR(text[1], "They ran on 2 devices (Jetson Nano, Xavier NX); no power sensor was "
                           "read, so there is no energy.");
    EW_EXPECT(strstr(text[2], "On Jetson Nano: of 2 configurations of lenet5 in study "
                              "train-workers the fastest is workers 2"));
    ew_results_fini(&r);
}

/* A foreign store may contain any numbers: sentences are truncated to their buffers. */
static void boundless_numbers(void)
{
    struct ew_results r;
    ew_results_init(&r);
    struct ew_epoch_row *e = put(&r, "lenet5", "{}", 1e-6, 1e300);
    e[1].energy_j = 1;
    const int n = ew_findings(&r, text);
    for (int i = 0; i < n; i++)
        EW_EXPECT(strlen(text[i]) < EW_FINDING_CHARS);
    EW_EXPECT(n == 5 && strncmp(text[3], "Of that epoch", 13) == 0);
    ew_results_fini(&r);
}

static void nothing_done(void)
{
    struct ew_results r;
    ew_results_init(&r);
    put(&r, "lenet5", "{}", 4, 0);
    r.runs[0].run.status = EW_RUN_FAILED;
    r.runs[0].run.reason = "no space left";
    EW_EXPECT_INT(ew_findings(&r, text), 1);
    EW_EXPECT_STR(text[0], "No run has finished; the last one says: no space left.");
    ew_results_fini(&r);
}

static void little_data(void)
{
    static char name[400];
    struct ew_results r;
    ew_results_init(&r);
    EW_EXPECT_INT(ew_findings(&r, text), 0);
    memset(name, 'n', sizeof(name) - 1);
    put(&r, name, "{\"workers\":0}", 4, 0);
    EW_EXPECT_INT(ew_findings(&r, text), 5); /* for that run alone: nothing to compare */
    EW_EXPECT(!strstr(text[2], "fastest"));
    put(&r, name, "{\"workers\":8}", 2, 0);
    EW_EXPECT_INT(ew_findings(&r, text), 5);
    for (int i = 0; i < EW_FINDINGS; i++)
        EW_EXPECT(strlen(text[i]) < EW_FINDING_CHARS && text[i][strlen(text[i]) - 1] == '.');
    ew_results_fini(&r);
}

static void put_bench(struct ew_results *r, const char *network, double ms)
{
    struct ew_run_data *d = NULL;
    struct ew_metric_row *m = ew_arena_alloc(&r->arena, 2 * sizeof(*m));
    if (!EW_EXPECT(m) || !EW_EXPECT_OK(ew_results_add(r, &d)))
        return;
    m[0] = (struct ew_metric_row){.name = "median_ms", .value = ms};
    m[1] = (struct ew_metric_row){.name = "images_per_s", .value = 1e3 / ms};
    d->run.status = EW_RUN_DONE;
    d->job.network = network;
    d->metrics = m;
    d->n_metrics = 2;
}

/* Regression: a rate without bound, as a foreign store may have it, crashed. */
static void a_boundless_rate(void)
{
    struct ew_results r;
    ew_results_init(&r);
    put_bench(&r, "lenet5", 0);
    EW_EXPECT_INT(ew_findings(&r, text), 2);
    put_bench(&r, "vgg19", 30000);
    EW_EXPECT_INT(ew_findings(&r, text), 3);
    EW_EXPECT(strstr(text[2], "vgg19"));
    ew_results_fini(&r);
}

/* Regression: it printed "2.94e+04", and named one network as both the fastest and the slowest. */
static void benches(void)
{
    struct ew_results r;
    ew_results_init(&r);
    put_bench(&r, "lenet5", 0.0105);
    put_bench(&r, "lenet5", 29416);
    EW_EXPECT_INT(ew_findings(&r, text), 3);
    EW_EXPECT_STR(text[2],
                  "lenet5 takes from 0.0105 to 29416 ms an image, depending on the options.");
    put_bench(&r, "vgg19", 30000);
    EW_EXPECT_INT(ew_findings(&r, text), 3);
    EW_EXPECT_STR(
        text[2],
        "Of the benchmarked networks lenet5 is the fastest with 0.0105 ms per image and vgg19 the "
        "slowest with 30000 ms (fastest run of each).");
    ew_results_fini(&r);
}

static void a_full_store(void)
{
    struct ew_results r;
    if (!EW_EXPECT_OK(ew_case_results(&r)))
        return;
    EW_EXPECT_INT(ew_findings(&r, text), 5);
    EW_EXPECT(strstr(text[2], "the fastest is workers 8"));
    EW_EXPECT(strstr(text[3], "computing"));
    ew_results_fini(&r);
}

EW_TEST_MAIN(EW_TEST(two_configurations), EW_TEST(two_options_vary),
             EW_TEST(more_workers_bring_nothing), EW_TEST(models_do_not_count),
             EW_TEST(models_alone), EW_TEST(as_fast_for_less), EW_TEST(accelerator_alone),
             EW_TEST(two_devices), EW_TEST(boundless_numbers), EW_TEST(nothing_done),
             EW_TEST(little_data), EW_TEST(benches), EW_TEST(a_boundless_rate),
             EW_TEST(a_full_store))
