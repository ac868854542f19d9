/* SPDX-License-Identifier: Apache-2.0 */
/* The scaling study's latencies. */
#include "base/progress.h"
#include "measure/comparison.h"

static const double widths[] = {0.25, 0.5, 0.75, 1};

static const struct study_network {
    const char *name, *called;
    bool imagenet; /* an ImageNet network, built for 32x32 images and ten classes */
} networks[] = {{"vgg11_cifar", "VGG-11", false},
                {"mobilenet_v2_cifar", "MobileNetV2", false},
                {"resnet50", "ResNet-50", true}};

_Static_assert(EW_COUNT(widths) * EW_COUNT(networks) == EW_SCALE_SIDES, "each at each width");

static ew_err load(const struct ew_compare_opts *opts, struct ew_scale_result *r)
{
    for (size_t i = 0; i < EW_SCALE_SIDES; i++) {
        struct ew_side_opts o = opts->side;
        const struct study_network *n = &networks[i / EW_COUNT(widths)];
        r->name[i] = n->name;
        r->called[i] = n->called;
        r->width[i] = widths[i % EW_COUNT(widths)];
        o.net = (struct ew_network_opts){.width = r->width[i], .batch = 1};
        if (n->imagenet) {
            o.net.input = (struct ew_ints){.n = 3, .v = {32, 32, 3}};
            o.net.classes = 10;
        }
        EW_TRY(ew_side_load(n->name, &o, &r->sides[i]));
        r->times[i].p = r->sides[i].p;
    }
    return EW_OK;
}

static void show_tick(void *ctx, int64_t done, int64_t total)
{
    ew_progress_update(ctx, done);
}

ew_err ew_scale_protocol_run(const struct ew_compare_opts *o, struct ew_scale_result *out)
{
    struct ew_bench_opts b = o->bench;
    struct ew_progress bar;
    const char *absent = "not asked for";
    *out = (struct ew_scale_result){0};
    EW_TRY(load(o, out));
    b.rounds = 1; /* 20 + 80 runs without interruption, as in the study */
    ew_progress_begin(&bar, o->talk, "trials", b.trials);
    const ew_err e = ew_bench_interleave(out->times, EW_SCALE_SIDES, &b, show_tick, &bar);
    ew_progress_end(&bar);
    EW_TRY(e);
    if (o->power_s > 0)
        EW_TRY(ew_power_meter_open(o->power_from, o->power_s, &out->meter, &absent));
    for (int i = 0; i < EW_SCALE_SIDES; i++) {
        out->power[i].absent = absent;
        if (out->meter)
            EW_TRY(ew_side_power(&out->sides[i], out->meter, o->power_s, &out->power[i]));
    }
    return EW_OK;
}

void ew_scale_protocol_fini(struct ew_scale_result *r)
{
    for (int i = 0; i < EW_SCALE_SIDES; i++)
        ew_side_fini(&r->sides[i]);
    ew_power_meter_close(r->meter);
    r->meter = NULL;
}

double ew_scale_per_watt(const struct ew_scale_result *r, int side)
{
    return 1e3 / r->times[side].time.mean_ms / r->power[side].peak_w;
}
