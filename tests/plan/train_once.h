/* SPDX-License-Identifier: Apache-2.0 */
/* One training step of a network of the zoo without update, and bitwise comparison of gradients. */
#ifndef EW_TESTS_PLAN_TRAIN_ONCE_H
#define EW_TESTS_PLAN_TRAIN_ONCE_H

#include <math.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"

static inline struct ew_graph *train_build(const char *name, int side)
{
    const struct ew_model_opts o = {
        .size = sizeof(o), .classes = 5, .batch = 4, .height = side, .width = side};
    struct ew_graph *g = NULL;
    const bool ok = EW_EXPECT_OK(ew_model_build(name, &o, &g)) &&
                    EW_EXPECT_OK(ew_model_init(name, 3, g)) && EW_EXPECT_OK(ew_objective_add(g));
    if (ok)
        return g;
    ew_graph_free(g);
    return NULL;
}

static inline struct ew_plan *train_run(struct ew_graph *g, size_t limit, int threads)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_TRAIN, .memory_limit = limit, .backend = {.threads = threads}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * 0.37f);
    for (int i = 0; i < 4; i++)
        ((int64_t *)ew_plan_input(p, 1)->data)[i] = i;
    EW_EXPECT_OK(ew_plan_run(p));
    return p;
}

static inline void same_gradients(const struct ew_graph *g, struct ew_plan *a, struct ew_plan *b)
{
    for (int v = 0; v < g->n_values; v++) {
        const struct ew_tensor *x = ew_plan_grad(a, v), *y = ew_plan_grad(b, v);
        if (g->values[v].kind == EW_VALUE_PARAM && EW_EXPECT(x && y))
            EW_EXPECT(memcmp(x->data, y->data, ew_tensor_bytes(x)) == 0);
    }
}

#endif
