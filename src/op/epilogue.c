/* SPDX-License-Identifier: Apache-2.0 */
/* Reference implementation of epilogues. */
#include "op/epilogue.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "op/math_attr.h"

#define CHUNK 256

const char *const ew_act_names[] = {
#define EW_ACT_NAME(id, name) name,
    EW_ACT_MAP(EW_ACT_NAME)
#undef EW_ACT_NAME
        NULL};

/* fmin and fmax would drop NaN. */
static double clip(double x, double lo, double hi)
{
    x = x < lo ? lo : x;
    return x > hi ? hi : x;
}

double ew_act_apply(const struct ew_epilogue_attr *e, double x)
{
    switch ((enum ew_act)e->act) {
    case EW_ACT_RELU:
        return x < 0 ? 0 : x; /* NaN stays NaN */
    case EW_ACT_CLIP:
        return clip(x, e->lo, e->hi);
    case EW_ACT_LEAKY:
        return x < 0 ? x * e->lo : x;
    case EW_ACT_HARD_SWISH:
        return x * clip(x / 6 + 0.5, 0, 1);
    case EW_ACT_HARD_SIGMOID:
        return clip(x * e->lo + e->hi, 0, 1);
    case EW_ACT_SILU:
        return x / (1 + exp(-x));
    case EW_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case EW_ACT_TANH:
        return tanh(x);
    case EW_ACT_GELU:
        return 0.5 * x * erfc(-x * M_SQRT1_2);
    case EW_ACT_NONE:
    case EW_ACT_COUNT:
        break;
    }
    return x;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

double ew_act_slope(const struct ew_epilogue_attr *e, double x)
{
    switch ((enum ew_act)e->act) {
    case EW_ACT_RELU:
        return x > 0;
    case EW_ACT_CLIP:
        return x > e->lo && x < e->hi;
    case EW_ACT_LEAKY:
        return x > 0 ? 1 : e->lo;
    case EW_ACT_HARD_SWISH:
        return x >= 3 ? 1 : x <= -3 ? 0 : x / 3 + 0.5;
    case EW_ACT_HARD_SIGMOID:
        return x * e->lo + e->hi > 0 && x * e->lo + e->hi < 1 ? e->lo : 0;
    case EW_ACT_SILU:
        return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
    case EW_ACT_SIGMOID:
        return sigmoid(x) * (1 - sigmoid(x));
    case EW_ACT_TANH:
        return 1 - tanh(x) * tanh(x);
    case EW_ACT_GELU:
        return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
    case EW_ACT_NONE:
    case EW_ACT_COUNT:
        break;
    }
    return 1;
}

void ew_epilogue_run(const struct ew_epilogue_attr *e, const struct ew_tensor *add,
                     struct ew_tensor *y)
{
    double v[CHUNK], a[CHUNK] = {0};
    if (e->act == EW_ACT_NONE && !add)
        return;
    const int64_t count = ew_tensor_count(y);
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, count - at);
        ew_tensor_load(y, at, n, v);
        if (add)
            ew_tensor_load(add, at, n, a);
        for (int64_t i = 0; i < n; i++)
            v[i] = e->add_after ? ew_act_apply(e, v[i]) + a[i] : ew_act_apply(e, v[i] + a[i]);
        ew_tensor_store(y, at, n, v);
    }
}

ew_err ew_epilogue_check_back(const struct ew_epilogue_attr *e, const struct ew_tensor *add)
{
    EW_CHECK((e->act == EW_ACT_NONE || e->act == EW_ACT_RELU) && !add, EW_ERR_UNSUPPORTED,
             "a fused %s cannot be trained through", add ? "addition" : ew_act_names[e->act]);
    return EW_OK;
}

void ew_epilogue_back(const struct ew_epilogue_attr *e, const struct ew_tensor *y,
                      const struct ew_tensor *dy, struct ew_tensor *dx)
{
    double v[CHUNK], g[CHUNK];
    const int64_t count = ew_tensor_count(dy);
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, count - at);
        ew_tensor_load(y, at, n, v);
        ew_tensor_load(dy, at, n, g);
        for (int64_t i = 0; i < n; i++)
            g[i] *= ew_act_slope(e, v[i]);
        ew_tensor_store(dx, at, n, g);
    }
}

/* Reads a scalar input; `def` if absent; false: unknown value. */
static bool scalar_input(const struct ew_call *c, int i, double def, double *out)
{
    *out = def;
    if (i >= c->n_in || !c->in[i])
        return true;
    if (!c->in[i]->data || ew_tensor_count(c->in[i]) != 1)
        return false;
    *out = ew_tensor_get(c->in[i], 0);
    return true;
}

bool ew_act_of_call(const struct ew_call *c, struct ew_epilogue_attr *out)
{
    int act = EW_ACT_RELU;
    while (act < EW_ACT_COUNT && strcmp(ew_act_names[act], c->op->name) != 0)
        act++;
    if (act == EW_ACT_COUNT)
        return false;
    double lo = 0, hi = 0;
    if (act == EW_ACT_CLIP) {
        if (!scalar_input(c, 1, -(double)FLT_MAX, &lo) || !scalar_input(c, 2, (double)FLT_MAX, &hi))
            return false;
    } else if (act == EW_ACT_LEAKY || act == EW_ACT_HARD_SIGMOID) {
        const struct ew_scale_attr *a = c->attr;
        lo = a->alpha;
        hi = a->beta;
    } else if (act == EW_ACT_GELU &&
               ((const struct ew_gelu_attr *)c->attr)->approximate == EW_GELU_TANH) {
        return false;
    }
    if (isnan(lo) || isnan(hi))
        return false; /* no file of engines can say it */
    out->act = act;
    out->lo = lo;
    out->hi = hi;
    return true;
}

bool ew_act_of_node(const struct ew_graph *g, int node, struct ew_epilogue_attr *out)
{
    const struct ew_node *n = &g->nodes[node];
    struct ew_tensor *slots[8];
    struct ew_call c;
    if (n->n_in + n->n_out > (int)EW_COUNT(slots))
        return false;
    ew_graph_call(g, n, slots, &c);
    return ew_act_of_call(&c, out);
}
