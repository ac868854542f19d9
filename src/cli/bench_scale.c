/* SPDX-License-Identifier: Apache-2.0 */
/* bench --protocol scale: the scaling study's latencies.
 *
 * Three networks on 32x32 images at four widths, batch 1, 20 runs to warm up and 80 that count, 50
 * trials; a trial of each takes its turn, so that all see the same machine.  Real time is under
 * 16.67 ms, as 60 images a second ask for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/progress.h"
#include "cli/bench_side.h"
#include "report/text_table.h"

#define REAL_TIME_MS 16.67

static const double widths[] = {0.25, 0.5, 0.75, 1};

static const struct study_network {
    const char *name, *called;
    bool imagenet; /* built for larger images: made for 32x32 and ten classes */
} networks[] = {{"vgg11_cifar", "VGG-11", false},
                {"mobilenet_v2_cifar", "MobileNetV2", false},
                {"resnet50", "ResNet-50", true}};

#define SIDES (EW_COUNT(networks) * EW_COUNT(widths))

struct scale {
    struct ew_cmd_call *c;
    const struct ew_compare_opts *o;
    struct ew_side sides[SIDES];
    struct ew_bench_side times[SIDES];
    struct ew_bench_power power[SIDES];
    struct ew_power_meter *meter;
};

static double width_of(size_t i)
{
    return widths[i % EW_COUNT(widths)];
}

static const struct study_network *network_of(size_t i)
{
    return &networks[i / EW_COUNT(widths)];
}

/* ---- Measuring ---- */

static ew_err load(struct scale *s)
{
    for (size_t i = 0; i < SIDES; i++) {
        struct ew_side_opts o = s->o->side;
        const struct study_network *n = network_of(i);
        o.net = (struct ew_network_opts){.width = width_of(i), .batch = 1};
        if (n->imagenet) {
            o.net.input = (struct ew_ints){.n = 3, .v = {32, 32, 3}};
            o.net.classes = 10;
        }
        EW_TRY(ew_side_load(n->name, &o, &s->sides[i]));
        s->times[i].p = s->sides[i].p;
    }
    return EW_OK;
}

static void show_tick(void *ctx, int64_t done, int64_t total)
{
    ew_progress_update(ctx, done);
}

static ew_err measure(struct scale *s)
{
    struct ew_bench_opts b = s->o->bench;
    struct ew_progress bar;
    const char *absent = "not asked for";
    b.rounds = 1; /* 20 + 80 in one piece, as the study did */
    ew_progress_begin(&bar, stderr, "trials", b.trials);
    const ew_err e = ew_bench_interleave(s->times, (int)SIDES, &b, show_tick, &bar);
    ew_progress_end(&bar);
    EW_TRY(e);
    if (s->o->power_s > 0)
        EW_TRY(ew_power_meter_open(s->o->power_from, s->o->power_s, &s->meter, &absent));
    for (size_t i = 0; i < SIDES; i++) {
        s->power[i].absent = absent;
        if (s->meter)
            EW_TRY(ew_side_power(&s->sides[i], s->meter, s->o->power_s, &s->power[i]));
    }
    return EW_OK;
}

/* ---- Output ---- */

/* As the study defines it: at the peak of the load. */
static double per_watt(const struct scale *s, size_t i)
{
    return 1e3 / s->times[i].time.mean_ms / s->power[i].peak_w;
}

static void print_row(const struct scale *s, size_t i, struct ew_table *t)
{
    char a[EW_TEXT_CHARS];
    const struct ew_side *side = &s->sides[i];
    const struct ew_bench_stats *b = &s->times[i].time;
    ew_table_cell(t, "%s", network_of(i)->called);
    ew_table_cell(t, "%.2f", width_of(i));
    ew_table_cell(t, "%s", ew_text_count(side->facts.params, a));
    ew_table_cell(t, "%.2f", (double)side->facts.flops_thop * 1e-6);
    ew_table_cell(t, "%lld", (long long)side->facts.cdl);
    ew_table_cell(t, "%.3f", b->mean_ms);
    ew_table_cell(t, "%.3f", b->sd_ms);
    ew_table_cell(t, "%.3f", s->times[i].trial_sd_ms);
    ew_table_cell(t, "%s", b->mean_ms < REAL_TIME_MS ? "yes" : "no");
    ew_table_cell(t, "%s", ew_text_bytes(side->weight_bytes + side->activation_bytes, a));
    if (!s->meter)
        return;
    ew_table_cell(t, "%.2f", s->power[i].peak_w - s->power[i].idle_w);
    ew_table_cell(t, "%.1f", per_watt(s, i));
}

static ew_err print_text(const struct scale *s)
{
    static const char *const head[] = {"network",   "width",   "parameters", "MFLOPs",
                                       "CDL",       "mean ms", "deviation",  "of trials",
                                       "real time", "memory",  "dynamic W",  "images/s/W"};
    const size_t columns = s->meter ? EW_COUNT(head) : EW_COUNT(head) - 2;
    struct ew_table t;
    ew_table_init(&t, s->meter ? "lrrrrrrrlrrr" : "lrrrrrrrlr");
    for (size_t i = 0; i < columns; i++)
        ew_table_cell(&t, "%s", head[i]);
    for (size_t i = 0; i < SIDES; i++)
        print_row(s, i, &t);
    EW_TRY(ew_table_print(&t, stdout));
    const struct ew_bench_opts *b = &s->o->bench;
    printf("batch 1, %lld threads, %s, float32; %lld + %lld runs, %lld trials in turns; real time "
           "is under %.2f ms\n",
           (long long)s->sides[0].threads, s->sides[0].isa, (long long)b->warmup,
           (long long)b->iters, (long long)b->trials, REAL_TIME_MS);
    printf("times: measured, monotonic clock; MFLOPs: derived, as thop counts; memory: derived, "
           "weights and activations\n");
    if (s->meter)
        printf("power: peak less %.2f W at rest, of %s\n", s->power[0].idle_w, s->power[0].rails);
    else
        printf("power: absent, %s\n", s->power[0].absent);
    return EW_OK;
}

static ew_err print_json(const struct scale *s)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "protocol", "scale");
    ew_json_int(&j, "threads", s->sides[0].threads);
    ew_json_str(&j, "isa", s->sides[0].isa);
    ew_json_int(&j, "warmup", s->o->bench.warmup);
    ew_json_int(&j, "iters", s->o->bench.iters);
    ew_json_int(&j, "trials", s->o->bench.trials);
    ew_json_num(&j, "real_time_ms", REAL_TIME_MS);
    if (!s->meter)
        ew_json_str(&j, "power_absent", s->power[0].absent);
    ew_json_array(&j, "networks");
    for (size_t i = 0; i < SIDES; i++) {
        const struct ew_bench_stats *b = &s->times[i].time;
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", network_of(i)->name);
        ew_json_num(&j, "width", width_of(i));
        ew_json_int(&j, "params", s->sides[i].facts.params);
        ew_json_int(&j, "flops", s->sides[i].facts.flops);
        ew_json_int(&j, "flops_thop", s->sides[i].facts.flops_thop);
        ew_json_int(&j, "cdl", s->sides[i].facts.cdl);
        ew_json_num(&j, "mean_ms", b->mean_ms);
        ew_json_num(&j, "median_ms", b->median_ms);
        ew_json_num(&j, "sd_ms", b->sd_ms);
        ew_json_num(&j, "trial_sd_ms", s->times[i].trial_sd_ms);
        ew_json_bool(&j, "real_time", b->mean_ms < REAL_TIME_MS);
        ew_json_int(&j, "weight_bytes", s->sides[i].weight_bytes);
        ew_json_int(&j, "activation_bytes", s->sides[i].activation_bytes);
        if (s->meter) {
            ew_json_num(&j, "idle_w", s->power[i].idle_w);
            ew_json_num(&j, "peak_w", s->power[i].peak_w);
            ew_json_num(&j, "dynamic_w", s->power[i].peak_w - s->power[i].idle_w);
            ew_json_num(&j, "images_per_s_per_w", per_watt(s, i));
        }
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_bench_protocol_scale(struct ew_cmd_call *c, const struct ew_compare_opts *o)
{
    EW_CHECK(c->n_args == 0, EW_ERR_USAGE, "the protocol has its own networks, not %s", c->args[0]);
    struct scale *s = calloc(1, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    s->c = c;
    s->o = o;
    ew_err e = load(s);
    if (e == EW_OK)
        e = measure(s);
    if (e == EW_OK)
        e = c->json ? print_json(s) : print_text(s);
    for (size_t i = 0; i < SIDES; i++)
        ew_side_fini(&s->sides[i]);
    ew_power_meter_close(s->meter);
    free(s);
    return e;
}
