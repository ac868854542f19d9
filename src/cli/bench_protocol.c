/* SPDX-License-Identifier: Apache-2.0 */
/* bench --protocol engine: the engine study's comparison, before and after compiling.
 *
 * Before is the network's graph as it is, step by step: every operator a step of its own, no
 * folding, no fusing, no tuning, kernels by rules.  After is the engine of the same weights, tuned
 * on this machine.  Both run in turns in one process; the study's figures (a Jetson Nano, PyTorch
 * against TensorRT) stand beside ours. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "cli/bench_side.h"
#include "plan/tune.h"
#include "report/text_table.h"

/* Table 1 of the study: seconds before and after, and the speed-up that it gives. */
static const struct study_row {
    const char *name, *called;
    double before_s, after_s, speedup;
} study[] = {
    {"alexnet", "AlexNet", 0.6638, 0.1184, 5.62},
    {"vgg19", "VGG", 2.5904, 0.4285, 6.05},
    {"resnet50", "ResNet", 1.0911, 0.2233, 4.88},
    {"squeezenet1_1", "SqueezeNet", 0.7966, 0.1663, 4.72},
    {"densenet121", "DenseNet", 1.0132, 0.3682, 2.72},
    {"shufflenet_v2_x1_0", "ShuffleNet V2", 4.7121, 0.3463, 13.6},
    {"mobilenet_v2", "MobileNet V2", 5.0379, 0.3003, 16.7},
    {"resnext50_32x4d", "ResNet V2", 2.0964, 0.2600, 8.07},
};

struct result {
    const struct study_row *study;
    struct ew_bench_side before, after;
    struct ew_facts facts;
    int64_t engine_bytes, activation_bytes, plain_activation_bytes, threads;
    const char *isa;
};

/* ---- Measuring ---- */

static ew_err network(const char *name, struct ew_graph **out)
{
    EW_TRY(ew_model_build(name, NULL, out));
    const ew_err e = ew_model_init(name, 1, *out);
    if (e != EW_OK)
        ew_graph_free(*out);
    return e;
}

/* A file that nobody else sees; `path` is written over. */
static ew_err compile(struct ew_graph *g, const struct ew_compare_opts *o, char *path)
{
    char cache[512];
    const int fd = mkstemp(path);
    EW_CHECK(fd >= 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    close(fd);
    const struct ew_compile_opts co = {.size = sizeof(co),
                                       .threads = o->side.threads,
                                       .compact = 1, /* it is for here and now */
                                       .tune = !o->quick,
                                       .tune_cache =
                                           o->quick ? NULL : ew_tuner_default_path(cache)};
    return ew_engine_compile(g, &co, path);
}

static ew_err compare(struct ew_side *plain, struct ew_side *engine,
                      const struct ew_compare_opts *o, struct result *r)
{
    struct ew_bench_side sides[2] = {{.p = plain->p}, {.p = engine->p}};
    EW_TRY(ew_bench_interleave(sides, 2, &o->bench, NULL, NULL));
    r->before = sides[0];
    r->after = sides[1];
    r->facts = plain->facts;
    r->engine_bytes = engine->file_bytes;
    r->activation_bytes = engine->activation_bytes;
    r->plain_activation_bytes = plain->activation_bytes;
    r->threads = engine->threads;
    r->isa = engine->isa;
    return EW_OK;
}

static ew_err measure(const struct ew_compare_opts *o, const char *path, struct result *r)
{
    struct ew_side plain = {0}, engine = {0};
    struct ew_side_opts so = o->side;
    struct ew_graph *g;
    char *file = strdup(path);
    EW_CHECK(file, EW_ERR_MEMORY, "no memory");
    ew_err e = network(r->study->name, &g);
    if (e == EW_OK) {
        e = compile(g, o, file);
        if (e == EW_OK)
            e = ew_side_load(file, &so, &engine);
        unlink(file); /* it stays mapped */
        so.plain = true;
        if (e == EW_OK)
            e = ew_side_take(g, r->study->name, &so, &plain);
        else
            ew_graph_free(g);
    }
    if (e == EW_OK)
        e = compare(&plain, &engine, o, r);
    ew_side_fini(&plain);
    ew_side_fini(&engine);
    free(file);
    return e;
}

/* ---- Output ---- */

static double geometric_mean(const struct result *r, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += log(r[i].after.ratio);
    return exp(sum / n);
}

static ew_err print_text(const struct result *r, int n)
{
    static const char *const head[] = {"network",    "before ms", "after ms",    "speed-up",
                                       "parameters", "FLOPs",     "engine",      "study: model",
                                       "before s",   "after s",   "its speed-up"};
    char a[EW_TEXT_CHARS];
    struct ew_table t;
    ew_table_init(&t, "lrrrrrrlrrr");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < n; i++) {
        ew_table_cell(&t, "%s", r[i].study->name);
        ew_table_cell(&t, "%.2f", r[i].before.time.median_ms);
        ew_table_cell(&t, "%.2f", r[i].after.time.median_ms);
        ew_table_cell(&t, "%.2f x", r[i].after.ratio);
        ew_table_cell(&t, "%s", ew_text_count(r[i].facts.params, a));
        ew_table_cell(&t, "%s", ew_text_count(r[i].facts.flops, a));
        ew_table_cell(&t, "%s", ew_text_bytes(r[i].engine_bytes, a));
        ew_table_cell(&t, "%s", r[i].study->called);
        ew_table_cell(&t, "%.4f", r[i].study->before_s);
        ew_table_cell(&t, "%.4f", r[i].study->after_s);
        ew_table_cell(&t, "%.2f x", r[i].study->speedup);
    }
    EW_TRY(ew_table_print(&t, stdout));
    printf("speed-up %.2f x here (geometric mean), %lld threads, %s, batch 1; times are medians of "
           "%lld runs in turns\n",
           geometric_mean(r, n), (long long)r[0].threads, r[0].isa, (long long)r[0].before.time.n);
    printf("before: the graph as it is, a step for every operator, no folding, fusing or tuning, "
           "the same kernels; after: the engine\n");
    printf("study: Jetson Nano, before PyTorch, after TensorRT; its mean is 7.01 x\n");
    return EW_OK;
}

static ew_err print_json(const struct result *r, int n)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "protocol", "engine");
    ew_json_int(&j, "threads", r[0].threads);
    ew_json_str(&j, "isa", r[0].isa);
    ew_json_int(&j, "batch", 1);
    ew_json_num(&j, "speedup_mean", geometric_mean(r, n));
    ew_json_array(&j, "networks");
    for (int i = 0; i < n; i++) {
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", r[i].study->name);
        ew_json_num(&j, "before_ms", r[i].before.time.median_ms);
        ew_json_num(&j, "before_sd_ms", r[i].before.time.sd_ms);
        ew_json_num(&j, "after_ms", r[i].after.time.median_ms);
        ew_json_num(&j, "after_sd_ms", r[i].after.time.sd_ms);
        ew_json_num(&j, "speedup", r[i].after.ratio);
        ew_json_num(&j, "speedup_low", r[i].after.ratio_low);
        ew_json_num(&j, "speedup_high", r[i].after.ratio_high);
        ew_json_int(&j, "params", r[i].facts.params);
        ew_json_int(&j, "flops", r[i].facts.flops);
        ew_json_int(&j, "cdl", r[i].facts.cdl);
        ew_json_int(&j, "engine_bytes", r[i].engine_bytes);
        ew_json_int(&j, "before_activation_bytes", r[i].plain_activation_bytes);
        ew_json_int(&j, "after_activation_bytes", r[i].activation_bytes);
        ew_json_num(&j, "study_before_ms", 1e3 * r[i].study->before_s);
        ew_json_num(&j, "study_after_ms", 1e3 * r[i].study->after_s);
        ew_json_num(&j, "study_speedup", r[i].study->speedup);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* The networks that are named, or all. */
static int choose(const struct ew_cmd_call *c, struct result *r, ew_err *err)
{
    int n = 0;
    for (int a = 0; a < c->n_args; a++) {
        const int before = n;
        for (size_t i = 0; i < EW_COUNT(study); i++)
            if (strcmp(study[i].name, c->args[a]) == 0)
                r[n++].study = &study[i];
        if (n == before)
            *err = ew_fail(EW_ERR_USAGE, "%s is none of the study's networks", c->args[a]);
    }
    for (size_t i = 0; c->n_args == 0 && i < EW_COUNT(study); i++)
        r[n++].study = &study[i];
    return n;
}

ew_err ew_bench_protocol_engine(struct ew_cmd_call *c, const struct ew_compare_opts *o)
{
    struct result r[EW_COUNT(study)] = {0};
    const char *tmp = getenv("TMPDIR");
    char path[512];
    ew_err e = EW_OK;
    EW_CHECK(c->n_args <= (int)EW_COUNT(study), EW_ERR_USAGE, "the study has %zu networks",
             EW_COUNT(study));
    const int n = choose(c, r, &e);
    snprintf(path, sizeof(path), "%s/edgewise-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    struct ew_progress bar;
    ew_progress_begin(&bar, stderr, "networks", n);
    for (int i = 0; e == EW_OK && i < n; i++) {
        e = measure(o, path, &r[i]);
        ew_progress_update(&bar, i + 1);
    }
    ew_progress_end(&bar);
    EW_TRY(e);
    return c->json ? print_json(r, n) : print_text(r, n);
}
