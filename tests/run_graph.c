/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a graph once in a test, and compares tensors. */
#include "run_graph.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"

static ew_err copy_inputs(struct ew_graph *g, const struct ew_tensor *const *in, struct ew_plan *p)
{
    for (int i = 0; i < g->n_inputs; i++) {
        struct ew_tensor *t = ew_plan_input(p, i);
        EW_CHECK(t->dtype == in[i]->dtype && ew_shape_equal(&t->shape, &in[i]->shape), EW_ERR_SHAPE,
                 "input %s: type or shape differ", g->values[g->inputs[i]].name);
        memcpy(t->data, in[i]->data, ew_tensor_bytes(t));
    }
    return EW_OK;
}

ew_err ew_run_graph(struct ew_graph *g, const struct ew_tensor *const *in, struct ew_plan **out)
{
    struct ew_plan *p;
    EW_TRY(ew_plan_compile(g, &(struct ew_plan_opts){.mode = EW_PLAN_INFER}, &p));
    ew_err e = copy_inputs(g, in, p);
    if (e == EW_OK)
        e = ew_plan_run(p);
    if (e == EW_OK)
        *out = p;
    else
        ew_plan_free(p);
    return e;
}

static bool close_to(double a, double b, double rtol, double atol)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return isinf(a) && isinf(b) && signbit(a) == signbit(b);
    return fabs(a - b) <= atol + rtol * fabs(b);
}

ew_err ew_tensors_agree(const struct ew_tensor *a, const struct ew_tensor *b, double rtol,
                        double atol)
{
    char s[EW_SHAPE_TEXT], r[EW_SHAPE_TEXT];
    EW_CHECK(a->dtype == b->dtype, EW_ERR_TYPE, "is %s, expected %s", ew_dtype_name(a->dtype),
             ew_dtype_name(b->dtype));
    EW_CHECK(ew_shape_equal(&a->shape, &b->shape), EW_ERR_SHAPE, "is %s, expected %s",
             ew_shape_text(&a->shape, s), ew_shape_text(&b->shape, r));
    for (int64_t i = 0; i < ew_tensor_count(a); i++) {
        if (ew_dtype_is_float(a->dtype)) {
            const double x = ew_tensor_get(a, i), y = ew_tensor_get(b, i);
            EW_CHECK(close_to(x, y, rtol, atol), EW_ERR_ARG,
                     "element %" PRId64 " is %.9g, expected %.9g", i, x, y);
        } else {
            const int64_t x = ew_tensor_get_int(a, i), y = ew_tensor_get_int(b, i);
            EW_CHECK(x == y, EW_ERR_ARG, "element %" PRId64 " is %" PRId64 ", expected %" PRId64, i,
                     x, y);
        }
    }
    return EW_OK;
}

struct ew_plan *ew_run_sine(struct ew_graph *g, bool reference)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.backend = {.threads = 1, .reference = reference}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * 0.37f);
    EW_EXPECT_OK(ew_plan_run(p));
    return p;
}

struct ew_graph *ew_small_network(const char *name)
{
    struct ew_model_opts o = {.size = sizeof(o), .classes = 7, .batch = 2, .scale = 0.25};
    struct ew_graph *g = NULL;
    if (strstr(name, "cifar") || strstr(name, "preact"))
        o.height = o.width = 32;
    else if (strcmp(name, "lenet5") != 0)
        o.height = o.width = 64;
    if (strncmp(name, "resnext", 7) == 0 || strncmp(name, "shuffle", 7) == 0)
        o.scale = 1; /* narrower layers would not divide into groups */
    if (!EW_EXPECT_OK(ew_model_build(name, &o, &g)) || !EW_EXPECT_OK(ew_model_init(name, 3, g))) {
        ew_graph_free(g);
        return NULL;
    }
    return g;
}

ew_err ew_graph_widen(struct ew_graph *g)
{
    for (int v = 0; v < g->n_values; v++) {
        struct ew_tensor *t = &g->values[v].t;
        if (t->dtype != EW_F32)
            continue;
        const float *from = t->data;
        t->dtype = EW_F64;
        if (!from)
            continue;
        double *to = ew_arena_array(&g->arena, (size_t)ew_tensor_count(t), sizeof(*to));
        EW_CHECK(to, EW_ERR_MEMORY, "no memory for %s in double precision", g->values[v].name);
        for (int64_t k = 0; k < ew_tensor_count(t); k++)
            to[k] = (double)from[k];
        t->data = to;
    }
    g->inferred = false;
    return ew_graph_infer(g);
}

struct ew_graph *ew_training_network(const char *name, int64_t batch, int64_t side)
{
    const struct ew_model_opts o = {
        .size = sizeof(o), .batch = batch, .height = side, .width = side};
    struct ew_graph *g = NULL;
    if (EW_EXPECT_OK(ew_model_build(name, &o, &g)) && EW_EXPECT_OK(ew_model_init(name, 3, g)) &&
        EW_EXPECT_OK(ew_objective_add(g)))
        return g;
    ew_graph_free(g);
    return NULL;
}

void ew_fill_samples(struct ew_plan *p, int64_t first, int64_t n)
{
    struct ew_tensor *x = ew_plan_input(p, 0), *label = ew_plan_input(p, 1);
    const int64_t each = ew_tensor_count(x) / n;
    for (int64_t i = 0; i < n * each; i++)
        ((float *)x->data)[i] = (float)ew_rng_normal(7, 0, (uint64_t)(first * each + i));
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)label->data)[i] = (first + i) % 10;
}

double ew_tensor_distance(const struct ew_tensor *a, const struct ew_tensor *b)
{
    double most = 1e-30, worst = 0;
    for (int64_t i = 0; i < ew_tensor_count(a); i++) {
        const double x = ew_tensor_get(a, i), y = ew_tensor_get(b, i);
        most = fmax(most, fabs(x));
        worst = fmax(worst, isnan(y) ? HUGE_VAL : fabs(x - y));
    }
    return worst / most;
}
