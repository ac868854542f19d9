/* SPDX-License-Identifier: Apache-2.0 */
/* The engine study's comparison, before and after compiling. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure/comparison.h"
#include "plan/tune.h"

static const struct ew_engine_study study[EW_ENGINE_STUDY_NETWORKS] = {
    {"alexnet", "AlexNet", 0.6638, 0.1184, 5.62},
    {"vgg19", "VGG", 2.5904, 0.4285, 6.05},
    {"resnet50", "ResNet", 1.0911, 0.2233, 4.88},
    {"squeezenet1_1", "SqueezeNet", 0.7966, 0.1663, 4.72},
    {"densenet121", "DenseNet", 1.0132, 0.3682, 2.72},
    {"shufflenet_v2_x1_0", "ShuffleNet V2", 4.7121, 0.3463, 13.6},
    {"mobilenet_v2", "MobileNet V2", 5.0379, 0.3003, 16.7},
    {"resnext50_32x4d", "ResNet V2", 2.0964, 0.2600, 8.07},
    {"c3d_small", "3D-CNN (video)", 0.3431, 0.0928, 3.70},
    {"video_autoencoder", "AutoEncoder (video)", 0.7435, 0.2420, 3.07},
    {"video_densenet", "DenseNet (video)", 3.1619, 0.3718, 8.50},
};

const struct ew_engine_study *ew_engine_study_at(int i)
{
    return &study[i];
}

const struct ew_engine_study *ew_engine_study_find(const char *name)
{
    for (size_t i = 0; i < EW_COUNT(study); i++)
        if (strcmp(study[i].name, name) == 0)
            return &study[i];
    return NULL;
}

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
    snprintf(file, sizeof(file), "%s/edgewise-XXXXXX", tmp && *tmp ? tmp : "/tmp");
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
    return e;
}

double ew_engine_protocol_mean(const struct ew_engine_result *r, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += log(r[i].after.ratio);
    return exp(sum / n);
}
