/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic study results. */
#include "results_case.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"

struct builder {
    struct ew_results *r;
    struct ew_rng rng;
    int runs;
};

static double wobble(struct builder *m, double v, double share)
{
    return v * (1 + share * (2 * ew_rng_next_uniform(&m->rng) - 1));
}

static void machine(struct ew_arena *a, struct ew_machine_row *row, const char *board,
                    const char *mode)
{
    row->id = ew_arena_printf(a, "%s-%s", board, mode);
    row->unit = board[0] == 'J' ? "agx-3" : "box-1";
    row->board = board;
    row->cpu = board[0] == 'J' ? "Carmel (ARMv8)" : "AMD EPYC";
    row->kernel = "5.10.104";
    row->cores = row->cores_online = 8;
    row->memory_bytes = INT64_C(32) << 30;
    row->governor = "schedutil";
    row->cpu_mhz_max = 2265.6;
    row->power_mode = mode;
    row->sensors = "power.VDD_IN power.CPU temp.CPU cpu.load";
    row->isa = "neon";
    row->version = "0.9";
    row->compiler = "gcc 12.2";
}

/* Adds a finished run; `options` is JSON. */
static ew_err add(struct builder *m, const char *study, const char *network, const char *options,
                  struct ew_run_data **out)
{
    struct ew_arena *a = &m->r->arena;
    EW_TRY(ew_results_add(m->r, out));
    struct ew_run_data *d = *out;
    machine(a, &d->machine, "Jetson AGX Xavier", "MAXN");
    d->run.uid = ew_arena_printf(a, "%032d", m->runs);
    d->run.study = study;
    d->run.label = network;
    d->run.repeat = 0;
    d->run.status = EW_RUN_DONE;
    d->run.quality = EW_QUALITY_MEASURED;
    d->run.started = ew_arena_printf(a, "2026-11-%02dT%02d:%02d:00Z", 1 + m->runs / 1440,
                                     m->runs / 60 % 24, m->runs % 60);
    d->job.id = ew_arena_printf(a, "%016d", m->runs++);
    d->job.command = "train";
    d->job.network = network;
    d->job.dataset = "cifar10";
    d->job.options = ew_arena_strdup(a, options);
    return d->job.options ? EW_OK : ew_fail(EW_ERR_MEMORY, "no memory");
}

struct epochs {
    int n;
    double compute, first_stall, later_stall;
    double watts;
    int quality;
};

static ew_err fill_epochs(struct builder *m, struct ew_run_data *d, const struct epochs *k)
{
    struct ew_epoch_row *v = ew_arena_array(&m->r->arena, (size_t)k->n, sizeof(*v));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory");
    d->run.wall_s = 0;
    for (int e = 0; e < k->n; e++) {
        ew_record_clear(EW_RECORD_EPOCH, &v[e]);
        v[e].epoch = e;
        v[e].compute_s = wobble(m, k->compute, 0.03);
        v[e].stall_s = wobble(m, e ? k->later_stall : k->first_stall, 0.1);
        v[e].overhead_s = wobble(m, 0.06 * k->compute, 0.2);
        v[e].wall_s = v[e].compute_s + v[e].stall_s + v[e].overhead_s;
        v[e].eval_s = 0.1 * v[e].wall_s;
        v[e].images = 50000;
        v[e].images_per_s = 50000 / v[e].wall_s;
        v[e].accuracy = 0.92 - 0.5 * exp(-0.8 * e) + 0.01 * ew_rng_next_uniform(&m->rng);
        v[e].f1 = v[e].accuracy - 0.01;
        v[e].loss = 2 * exp(-0.5 * e);
        v[e].rss_peak_bytes = INT64_C(600) << 20;
        if (k->watts > 0) {
            v[e].power_w = wobble(m, k->watts, 0.04);
            v[e].energy_j = v[e].power_w * v[e].wall_s;
        }
        v[e].quality = k->quality;
        d->run.wall_s += v[e].wall_s + v[e].eval_s;
    }
    d->run.wall_s += 4;
    d->epochs = v;
    d->n_epochs = k->n;
    return EW_OK;
}

static ew_err fill_samples(struct builder *m, struct ew_run_data *d)
{
    enum { EACH = 300 };
    static const struct {
        const char *channel, *unit;
        double base, more;
    } channels[] = {
        {"power.VDD_IN", "W", 9, 16}, {"power.CPU", "W", 2, 6}, {"cpu.load", "%", 5, 70}};
    struct ew_sample_row *v = ew_arena_array(&m->r->arena, EACH * EW_COUNT(channels), sizeof(*v));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory");
    d->samples = v;
    for (size_t c = 0; c < EW_COUNT(channels); c++)
        for (int i = 0; i < EACH; i++) {
            struct ew_sample_row *s = &v[d->n_samples++];
            s->t_s = d->run.wall_s * i / EACH;
            s->channel = channels[c].channel;
            s->unit = channels[c].unit;
            s->quality = EW_QUALITY_MEASURED;
            s->value = wobble(m, channels[c].base + (s->t_s > 4 ? channels[c].more : 0), 0.08);
        }
    return EW_OK;
}

static const char *const networks[] = {"lenet5", "mobilenet_v3_large", "resnet18"};
static const double work[] = {16, 120, 240};

static ew_err workers(struct builder *m)
{
    static const int w[] = {0, 1, 2, 4, 8};
    char options[256];
    for (size_t n = 0; n < EW_COUNT(networks); n++)
        for (size_t i = 0; i < EW_COUNT(w); i++)
            for (int repeat = 0; repeat < 2; repeat++) {
                struct ew_run_data *d;
                snprintf(options, sizeof(options),
                         "{\"batch\":16,\"data\":\"cifar10\",\"seed\":%d,\"workers\":%d}", repeat,
                         w[i]);
                EW_TRY(add(m, "train-workers", networks[n], options, &d));
                d->run.repeat = repeat;
                if (w[i] == 8 && repeat == 1)
                    d->run.noise = "load 1.9";
                const double stall = work[n] * (w[i] ? 0.7 / w[i] : 1.3);
                EW_TRY(fill_epochs(
                    m, d,
                    &(struct epochs){6, work[n], stall * 1.8, stall, 21, EW_QUALITY_MEASURED}));
                if (w[i] == 4)
                    EW_TRY(fill_samples(m, d));
            }
    return EW_OK;
}

static ew_err storage(struct builder *m)
{
    static const char *const media[] = {"ssd", "sd", "hdd"};
    static const double slow[] = {0.1, 0.9, 1.6};
    char options[256];
    for (size_t n = 1; n < EW_COUNT(networks); n++)
        for (size_t i = 0; i < EW_COUNT(media); i++) {
            struct ew_run_data *d;
            snprintf(options, sizeof(options),
                     "{\"batch\":16,\"read-rate\":%zu,\"storage\":\"%s\",\"workers\":4}", 100 - i,
                     media[i]);
            EW_TRY(add(m, "train-storage", networks[n], options, &d));
            EW_TRY(fill_epochs(m, d,
                               &(struct epochs){6, work[n], work[n] * slow[i],
                                                0.05 * work[n] * slow[i], 20,
                                                i ? EW_QUALITY_EMULATED : EW_QUALITY_MEASURED}));
        }
    return EW_OK;
}

static ew_err batches(struct builder *m)
{
    char options[256];
    for (size_t n = 1; n < EW_COUNT(networks); n++)
        for (int b = 1; b <= 128; b *= 2) {
            struct ew_run_data *d;
            snprintf(options, sizeof(options), "{\"batch\":%d,\"workers\":4}", b);
            EW_TRY(add(m, "train-batch", networks[n], options, &d));
            EW_TRY(fill_epochs(m, d,
                               &(struct epochs){4, work[n] * (0.6 + 1.4 / b), 8, 1,
                                                14 + 2 * log2(b), EW_QUALITY_MEASURED}));
        }
    return EW_OK;
}

static ew_err variability(struct builder *m)
{
    for (int i = 0; i < 5; i++) {
        struct ew_run_data *d;
        EW_TRY(add(m, "train-variability", "resnet18", "{\"batch\":16,\"workers\":3}", &d));
        d->run.repeat = i;
        EW_TRY(fill_epochs(
            m, d, &(struct epochs){13, wobble(m, 240, 0.03), 12, 5, 21, EW_QUALITY_MEASURED}));
    }
    return EW_OK;
}

static ew_err modes(struct builder *m)
{
    static const struct {
        const char *name;
        double time, watts;
    } mode[] = {{"a", 1, 31},   {"b", 1.25, 22}, {"c", 1.1, 26},   {"d", 1.9, 14},
                {"e", 1.5, 16}, {"f", 2.6, 12},  {"g", 2.2, 12.1}, {"h", 1.7, 17}};
    for (int simulated = 0; simulated < 2; simulated++)
        for (size_t i = 0; i < EW_COUNT(mode); i++) {
            struct ew_run_data *d;
            EW_TRY(add(m, "train-modes", "resnet18", "{\"batch\":16,\"workers\":2}", &d));
            machine(&m->r->arena, &d->machine, simulated ? "Xavier NX" : "Jetson AGX Xavier",
                    mode[i].name);
            d->run.quality = simulated ? EW_QUALITY_SIMULATED : EW_QUALITY_MEASURED;
            const double k = simulated ? 1.6 : 1;
            EW_TRY(fill_epochs(m, d,
                               &(struct epochs){4, 230 * k * mode[i].time, 12, 4,
                                                mode[i].watts / k / 1.1, d->run.quality}));
        }
    return EW_OK;
}

/* Arguments: name, value, unit, ...; ended by NULL. */
static ew_err metrics(struct builder *m, struct ew_run_data *d, ...)
{
    enum { MOST = 8 };
    struct ew_metric_row *v = ew_arena_array(&m->r->arena, MOST, sizeof(*v));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory");
    va_list ap;
    va_start(ap, d);
    for (const char *name; (name = va_arg(ap, const char *)) != NULL && d->n_metrics < MOST;) {
        struct ew_metric_row *row = &v[d->n_metrics++];
        ew_record_clear(EW_RECORD_METRIC, row);
        row->name = name;
        row->value = va_arg(ap, double);
        row->unit = va_arg(ap, const char *);
        row->quality = EW_QUALITY_MEASURED;
        row->n = 80;
        row->spread = 0.04 * row->value;
        row->better = strstr(name, "accuracy") ? EW_BETTER_HIGHER : EW_BETTER_LOWER;
    }
    va_end(ap);
    d->metrics = v;
    return EW_OK;
}

static ew_err published(struct builder *m, const char *study, const char *metric, double value,
                        const char *settings)
{
    struct ew_published_row p;
    ew_record_clear(EW_RECORD_PUBLISHED, &p);
    p.study = study;
    p.metric = metric;
    p.value = value;
    p.settings = settings;
    p.cite = "A Study of Boards, 2024, Table 1";
    p.board = "Jetson Nano";
    return ew_results_publish(m->r, &p);
}

static ew_err engine(struct builder *m)
{
    static const char *const zoo[] = {"alexnet", "densenet121", "mobilenet_v2", "resnet50",
                                      "squeezenet1_1"};
    static const double before[] = {60, 190, 80, 210, 44}, gain[] = {2.5, 2.6, 7, 3.3, 4.1};
    static const double macs[] = {7.1e8, 2.8e9, 3e8, 4.1e9, 3.5e8};
    struct ew_run_data *d;
    for (size_t i = 0; i < EW_COUNT(zoo); i++) {
        EW_TRY(add(m, "engine", zoo[i], "{\"iters\":5,\"reference\":true}", &d));
        d->job.command = "bench";
        d->run.label = "before";
        EW_TRY(metrics(m, d, "median_ms", before[i], "ms", "macs", macs[i], NULL, NULL));
        EW_TRY(add(m, "engine", zoo[i], "{\"iters\":80,\"reference\":false}", &d));
        d->job.command = "bench";
        d->run.label = "after";
        EW_TRY(metrics(m, d, "median_ms", before[i] / gain[i], "ms", "macs", macs[i], NULL, NULL));
    }
    EW_TRY(published(m, "engine", "median_ms", 1000, "label=before network=mobilenet_v2"));
    EW_TRY(published(m, "engine", "median_ms", 50, "label=after network=mobilenet_v2"));
    EW_TRY(published(m, "engine", "median_ms", 300, "label=before network=densenet121"));
    EW_TRY(published(m, "engine", "median_ms", 100, "label=after network=densenet121"));
    EW_TRY(published(m, "engine", "median_ms", 5000, "label=before network=vgg19"));
    EW_TRY(published(m, "train-workers", "stall_s", 42.6, "network=lenet5 workers=0"));
    EW_TRY(published(m, "train-workers", "stall_s_first", 50, "network=lenet5 workers=0"));
    EW_TRY(published(m, "train-storage", "stall_s_first", 300,
                     "network=resnet18 workers=0 storage=sd"));
    return published(m, "train-workers", "stall_s", 17.2, "network=lenet5 workers=1");
}

static ew_err scale(struct builder *m)
{
    static const double width[] = {0.25, 0.5, 0.75, 1};
    char options[256];
    for (size_t i = 0; i < EW_COUNT(width); i++) {
        struct ew_run_data *d;
        const double w = width[i], accuracy = 0.93 - 0.09 * pow(1 - w, 2);
        const char *same = "\"net\":\"vgg11_cifar\",\"scaling\":\"uniform\"";
        snprintf(options, sizeof(options), "{\"width\":%g,\"ratio\":%g,\"dtype\":\"float32\",%s}",
                 w, w, same);
        EW_TRY(add(m, "scale", "vgg11_cifar", options, &d));
        d->job.command = "bench";
        d->run.label = "latency";
        EW_TRY(metrics(m, d, "median_ms", 9 * w * w, "ms", "planned_bytes", 37e6 * w * w, "B",
                       "parameters", 9.2e6 * w * w, NULL, NULL));
        snprintf(options, sizeof(options),
                 "{\"epochs\":50,\"width\":%g,\"ratio\":%g,\"dtype\":\"float32\",%s}", w, w, same);
        EW_TRY(add(m, "scale", "vgg11_cifar", options, &d));
        d->run.label = "train";
        EW_TRY(metrics(m, d, "test_accuracy", accuracy, NULL, "planned_bytes", 1e9, "B", NULL));
        snprintf(options, sizeof(options), "{\"ratio\":%g,\"dtype\":\"int8\",%s}", w, same);
        EW_TRY(add(m, "scale", "runs/best.ckpt", options, &d));
        d->job.command = "quantize";
        d->run.label = "int8";
        EW_TRY(metrics(m, d, "float32_ms", 9 * w * w, "ms", "float32_accuracy", accuracy, NULL,
                       "int8_ms", 3.6 * w * w, "ms", "test_accuracy", accuracy - 0.012, NULL,
                       NULL));
    }
    EW_TRY(published(m, "scale", "latency_fit_slope", 5.7e-6, "dtype=float32"));
    EW_TRY(published(m, "scale", "latency_fit_bias", 17.9, "dtype=float32"));
    return EW_OK;
}

static ew_err confusion(struct builder *m)
{
    enum { CLASSES = 10 };
    static const char *const class[] = {"plane", "car",  "bird",  "cat",  "deer",
                                        "dog",   "frog", "horse", "ship", "truck"};
    struct ew_run_data *d;
    struct ew_metric_row *v = ew_arena_array(&m->r->arena, CLASSES * CLASSES, sizeof(*v));
    EW_TRY(add(m, "nx-scratch", "mobilenet_v2", "{\"epochs\":60}", &d));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory");
    d->metrics = v;
    for (int i = 0; i < CLASSES * CLASSES; i++) {
        struct ew_metric_row *row = &v[d->n_metrics++];
        const int is = i / CLASSES, given = i % CLASSES;
        ew_record_clear(EW_RECORD_METRIC, row);
        row->name = ew_arena_printf(&m->r->arena, "confusion:%s:%s", class[is], class[given]);
        row->value = is == given ? 880 : floor(40 * ew_rng_next_uniform(&m->rng));
        row->quality = EW_QUALITY_MEASURED;
    }
    return fill_epochs(m, d, &(struct epochs){20, 60, 8, 2, 0, EW_QUALITY_MEASURED});
}

static ew_err failures(struct builder *m)
{
    struct ew_run_data *d;
    EW_TRY(add(m, "train-batch", "vgg19", "{\"batch\":128}", &d));
    d->run.status = EW_RUN_FAILED;
    d->run.reason = "a step needs 9.1 GiB, 7.2 GiB are free";
    return EW_OK;
}

ew_err ew_case_results(struct ew_results *r)
{
    struct builder m = {.r = r, .rng = {.seed = 7}};
    ew_results_init(r);
    EW_TRY(workers(&m));
    EW_TRY(storage(&m));
    EW_TRY(batches(&m));
    EW_TRY(variability(&m));
    EW_TRY(modes(&m));
    EW_TRY(engine(&m));
    EW_TRY(scale(&m));
    EW_TRY(confusion(&m));
    return failures(&m);
}

ew_err ew_case_hostile(struct ew_results *r)
{
    struct builder m = {.r = r, .rng = {.seed = 7}};
    char options[256];
    ew_results_init(r);
    for (int w = 0; w < 3; w++) {
        struct ew_run_data *d;
        snprintf(options, sizeof(options),
                 "{\"workers\":\"%d<\\/script><img src=x onerror=hostile=1>\"}", w);
        EW_TRY(add(&m, EW_HOSTILE, EW_HOSTILE, options, &d));
        d->run.label = d->run.noise = d->run.reason = EW_HOSTILE;
        d->job.dataset = EW_HOSTILE;
        d->machine.board = d->machine.cpu = d->machine.sensors = EW_HOSTILE;
        EW_TRY(fill_epochs(&m, d, &(struct epochs){4, 10, 2, 1, 20, EW_QUALITY_MEASURED}));
        EW_TRY(fill_samples(&m, d));
    }
    return EW_OK;
}
