/* SPDX-License-Identifier: Apache-2.0 */
/* QDQ networks for tests. */
#include "quant_graph.h"

#include <math.h>
#include <stdlib.h>

#include "compress/quantize.h"
#include "edgewise.h"
#include "ew_test.h"
#include "plan/plan.h"

void ew_quant_input(struct ew_tensor *x, int which)
{
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * (which ? 0.61f : 0.37f)) + 0.3f;
}

static struct ew_graph *build(const char *model, int size)
{
    struct ew_model_opts o = {.size = sizeof(o), .classes = 10, .height = size, .width = size};
    struct ew_graph *g = NULL;
    if (EW_EXPECT_OK(ew_model_build(model, &o, &g)) && EW_EXPECT_OK(ew_model_init(model, 3, g)) &&
        EW_EXPECT_OK(ew_quantize_prepare(g)))
        return g;
    ew_graph_free(g);
    return NULL;
}

/* Measures the ranges of all values, by a copy of the graph that outputs all of them. */
static bool measure(const struct ew_graph *g, struct ew_range *ranges)
{
    struct ew_graph *all = NULL;
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.backend = {.threads = 1}};
    bool ok = EW_EXPECT_OK(ew_graph_clone(g, &all));
    const int first = g->n_outputs;
    for (int v = 0; ok && v < g->n_values; v++)
        if (g->values[v].kind == EW_VALUE_ACT && !g->values[v].t.data)
            ok = EW_EXPECT_OK(ew_graph_output(all, v));
    ok = ok && EW_EXPECT_OK(ew_plan_compile(all, &o, &p));
    if (ok) {
        ew_quant_input(ew_plan_input(p, 0), 0);
        ok = EW_EXPECT_OK(ew_plan_run(p));
    }
    for (int v = 0; v < g->n_values; v++)
        ranges[v] = (struct ew_range){1, -1};
    for (int i = first; ok && i <= all->n_outputs; i++) {
        const bool input = i == all->n_outputs;
        const struct ew_tensor *t = input ? ew_plan_input(p, 0) : ew_plan_output(p, i);
        struct ew_range *r = &ranges[input ? g->inputs[0] : all->outputs[i]];
        *r = (struct ew_range){0, 0};
        for (int64_t k = 0; t->dtype == EW_F32 && k < ew_tensor_count(t); k++) {
            r->lo = fminf(r->lo, ((const float *)t->data)[k]);
            r->hi = fmaxf(r->hi, ((const float *)t->data)[k]);
        }
    }
    ew_plan_free(p);
    ew_graph_free(all);
    return ok;
}

static struct ew_graph *quantized(const char *model, int size, struct ew_quantize_opts o)
{
    struct ew_graph *g = build(model, size);
    struct ew_range *ranges = g ? calloc((size_t)g->n_values + 1, sizeof(*ranges)) : NULL;
    o.ranges = ranges;
    const bool ok = ranges && measure(g, ranges) && EW_EXPECT_OK(ew_quantize(g, &o)) &&
                    EW_EXPECT_OK(ew_graph_check(g));
    free(ranges);
    if (ok)
        return g;
    ew_graph_free(g);
    return NULL;
}

struct ew_graph *ew_quant_graph(const char *model, int size, bool is_signed)
{
    return quantized(model, size, (struct ew_quantize_opts){.is_signed = is_signed});
}

struct ew_graph *ew_quant_graph_pow2(const char *model, int size)
{
    return quantized(model, size, (struct ew_quantize_opts){.scheme = EW_QUANTIZE_POW2});
}
