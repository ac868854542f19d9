/* SPDX-License-Identifier: Apache-2.0 */
/* The engine study's comparison of networks before and after compilation. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/tune.h"
#include "base/num.h"
#include "measure/comparison.h"
#include "study/published.h"

/* ---- What the study says ---- */

static const struct {
    const char *name, *called, *task; /* as in the published values */
} networks[EW_ENGINE_STUDY_NETWORKS] = {
    {"alexnet", "AlexNet", "image"},           {"vgg19", "VGG", "image"},
    {"resnet50", "ResNet", "image"},           {"squeezenet1_1", "SqueezeNet", "image"},
    {"densenet121", "DenseNet", "image"},      {"shufflenet_v2_x1_0", "ShuffleNet V2", "image"},
    {"mobilenet_v2", "MobileNet V2", "image"}, {"resnext50_32x4d", "ResNet V2", "image"},
    {"c3d_small", "3D-CNN", "video"},          {"video_autoencoder", "AutoEncoder (AE)", "video"},
    {"video_densenet", "DenseNet", "video"},
};

/* A published value of a network; 0: none. */
static double published(const struct ew_published_list *l, int network, const char *metric)
{
    for (int i = 0; i < l->n; i++) {
        const struct ew_published_value *f = &l->v[i];
        double v;
        if (strcmp(f->file, "engine") == 0 &&
            strcmp(ew_published_value_get(f, "metric"), metric) == 0 &&
            strcmp(ew_published_value_get(f, "paper_name"), networks[network].called) == 0 &&
            strcmp(ew_published_value_get(f, "task"), networks[network].task) == 0 &&
            ew_num_float(ew_published_value_get(f, "value"), &v))
            return v;
    }
    return 0;
}

ew_err ew_engine_study_load(struct ew_engine_study *out)
{
    struct ew_arena a;
    struct ew_published_list l;
    ew_arena_init(&a);
    const ew_err e = ew_published_list_load(&a, &l);
    for (int i = 0; e == EW_OK && i < EW_ENGINE_STUDY_NETWORKS; i++)
        out[i] = (struct ew_engine_study){.name = networks[i].name,
                                          .called = networks[i].called,
                                          .before_s = published(&l, i, "pre_opt_time"),
                                          .after_s = published(&l, i, "post_opt_time"),
                                          .speedup = published(&l, i, "speedup_column"),
                                          .flops = published(&l, i, "flops")};
    ew_arena_fini(&a);
    return e;
}

/* ---- Measuring ---- */

static ew_err network(const char *name, int64_t classes, struct ew_graph **out)
{
    EW_TRY(ew_model_build(
        name, &(struct ew_model_opts){.size = sizeof(struct ew_model_opts), .classes = classes},
        out));
    const ew_err e = ew_model_init(name, 1, *out);
    if (e != EW_OK)
        ew_graph_free(*out);
    return e;
}

/* Compiles into a private temporary file; the template `path` is overwritten. */
static ew_err compile(struct ew_graph *g, const struct ew_compare_opts *o, char *path)
{
    char cache[EW_TUNE_PATH];
    const int fd = mkstemp(path);
    EW_CHECK(fd >= 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    close(fd);
    const struct ew_compile_opts co = {.size = sizeof(co),
                                       .threads = o->side.threads,
                                       .compact = 1, /* only for this machine */
                                       .tune = !o->quick,
                                       .tune_cache =
                                           o->quick ? NULL : ew_tuner_default_path(cache)};
    return ew_engine_compile(g, &co, path);
}

/* Times a few runs of the reference. */
static ew_err time_reference(const struct ew_compare_opts *o, struct ew_engine_result *r)
{
    const struct ew_bench_opts b = {
        .warmup = o->quick ? 0 : 1, .iters = o->quick ? 1 : 3, .trials = 1};
    struct ew_side_opts so = o->side;
    struct ew_side side = {0};
    struct ew_graph *g;
    so.plain = so.reference = true;
    EW_TRY(network(r->study->name, o->side.net.classes, &g));
    ew_err e = ew_side_take(g, r->study->name, &so, &side);
    if (e == EW_OK)
        e = ew_bench_run(side.p, &b, NULL, NULL, &r->reference);
    ew_side_fini(&side);
    return e;
}

static ew_err compare(struct ew_side *plain, struct ew_side *engine,
                      const struct ew_compare_opts *o, struct ew_engine_result *r)
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

ew_err ew_engine_protocol_measure(const struct ew_compare_opts *o, struct ew_engine_result *r)
{
    struct ew_side plain = {0}, engine = {0};
    struct ew_side_opts so = o->side;
    struct ew_graph *g;
    const char *tmp = getenv("TMPDIR");
    char file[512];
    so.net.classes = 0; /* the graph has its classes */
    snprintf(file, sizeof(file), "%s/edgewise-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    ew_err e = time_reference(o, r);
    if (e == EW_OK)
        e = network(r->study->name, o->side.net.classes, &g);
    if (e == EW_OK) {
        e = compile(g, o, file);
        if (e == EW_OK)
            e = ew_side_load(file, &so, &engine);
        unlink(file); /* the mapping stays valid */
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
    return e;
}

double ew_engine_protocol_mean(const struct ew_engine_result *r, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += log(r[i].after.ratio);
    return exp(sum / n);
}

ew_err ew_engine_protocol_trend(const struct ew_engine_result *r, int n, bool theirs,
                                struct ew_line *out)
{
    double x[EW_ENGINE_STUDY_NETWORKS], y[EW_ENGINE_STUDY_NETWORKS];
    for (int i = 0; i < n; i++) {
        x[i] = log10(theirs ? r[i].study->flops : (double)r[i].facts.flops);
        y[i] = theirs ? r[i].study->speedup : r[i].after.ratio;
    }
    return ew_line_fit(x, y, n, out);
}
