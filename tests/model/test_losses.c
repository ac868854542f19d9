/* SPDX-License-Identifier: Apache-2.0 */
/* Loss functions: the value of a training plan against the element-wise definition, and its
 * gradients against differences, with reference and fast kernels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"

#define BATCH   2
#define CLASSES 5

struct net {
    struct ew_graph *g;
    struct ew_plan *plan;
    bool reconstructs;
};

static float pixel(int64_t i)
{
    return 0.5f + 0.5f * sinf((float)i * 0.37f);
}

/* Ends the network in a sigmoid. */
static bool add_sigmoid(struct ew_graph *g)
{
    int y = g->outputs[0];
    return EW_EXPECT_OK(ew_graph_add(g, ew_op_find("sigmoid"), "p", NULL, ew_inputs(&y, 1),
                                     &g->outputs[0])) &&
           EW_EXPECT_OK(ew_graph_infer(g));
}

static bool open_net(const char *name, int loss, bool sigmoid, bool reference, struct net *out)
{
    struct ew_model_opts o = {.size = sizeof(o), .batch = BATCH, .scale = 0.5, .classes = CLASSES};
    const struct ew_plan_opts po = {.mode = EW_PLAN_TRAIN,
                                    .backend = {.threads = 1, .reference = reference}};
    *out = (struct net){0};
    if (!EW_EXPECT_OK(ew_model_build(name, &o, &out->g)) ||
        !EW_EXPECT_OK(ew_model_init(name, 7, out->g)) || (sigmoid && !add_sigmoid(out->g)))
        return false;
    out->reconstructs = ew_net_reconstructs(out->g);
    if (!EW_EXPECT_OK(ew_objective_add_loss(out->g, ew_loss_chosen(loss, out->g))) ||
        !EW_EXPECT_OK(ew_plan_compile(out->g, &po, &out->plan)))
        return false;
    struct ew_tensor *x = ew_plan_input(out->plan, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = pixel(i);
    for (int64_t i = 0; !out->reconstructs && i < BATCH; i++)
        ((int64_t *)ew_plan_input(out->plan, 1)->data)[i] = 3 - i;
    return EW_EXPECT_OK(ew_plan_run(out->plan));
}

static void close_net(struct net *n)
{
    ew_plan_free(n->plan);
    ew_graph_free(n->g);
}

static double loss_of(const struct net *n)
{
    return ew_tensor_get(ew_plan_output(n->plan, 0), 0);
}

/* The loss of the output by the definition. */
static double expected(const struct net *n, const struct ew_loss *loss)
{
    const struct ew_tensor *y = ew_plan_output(n->plan, 1);
    const int64_t count = ew_tensor_count(y);
    float *target = calloc((size_t)count, sizeof(*target));
    for (int64_t i = 0; i < count; i++)
        target[i] = n->reconstructs ? pixel(i) : i % CLASSES == 3 - i / CLASSES ? 1 : 0;
    const double l = ew_loss_of(loss, y->data, target, count);
    free(target);
    return l;
}

static double rerun(struct net *n)
{
    EW_EXPECT_OK(ew_plan_refresh(n->plan));
    EW_EXPECT_OK(ew_plan_run(n->plan));
    return loss_of(n);
}

/* Along a parameter's gradient g the loss changes by |g|^2 per unit step: measured with a step that
 * is small for the loss and large for float32. */
static void check_gradient(struct net *n, int value)
{
    struct ew_tensor *w = &n->g->values[value].t;
    const struct ew_tensor *g = ew_plan_grad(n->plan, value);
    const int64_t count = ew_tensor_count(w);
    if (!EW_EXPECT(g && g->data))
        return;
    float *before = malloc((size_t)count * sizeof(*before));
    float *way = malloc((size_t)count * sizeof(*way));
    double square = 0;
    for (int64_t i = 0; i < count; i++) {
        before[i] = ((float *)w->data)[i];
        way[i] = (float)ew_tensor_get(g, i);
        square += (double)way[i] * (double)way[i];
    }
    const double step = square > 0 ? 0.002 / sqrt(square) : 0;
    double at[2];
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < count; i++)
            ((float *)w->data)[i] = before[i] + (float)((k ? 1 : -1) * step) * way[i];
        at[k] = rerun(n);
    }
    memcpy(w->data, before, (size_t)count * sizeof(*before));
    const double slope = step > 0 ? (at[1] - at[0]) / (2 * step) : 0;
    EW_EXPECT(square > 1e-9);
    if (!EW_EXPECT(fabs(slope - square) <= 0.03 * square))
        EW_FAIL("%s: slope %g, gradient's square %g", n->g->values[value].name, slope, square);
    free(before);
    free(way);
}

static void check(const char *name, int loss, bool reference)
{
    struct net n;
    ew_test_begin("%s: %s, %s kernels", name, ew_loss_names[loss],
                  reference ? "reference" : "fast");
    if (open_net(name, loss, false, reference, &n)) {
        const struct ew_loss *l = ew_loss_chosen(loss, n.g);
        if (!l->of_labels) {
            const double want = expected(&n, l);
            EW_EXPECT(fabs(loss_of(&n) - want) <= 1e-5 * want);
        }
        for (int v = 0; v < n.g->n_values; v++)
            if (n.g->values[v].kind == EW_VALUE_PARAM && n.g->values[v].t.shape.rank > 1) {
                check_gradient(&n, v);
                rerun(&n);
            }
    }
    close_net(&n);
    ew_test_end();
}

/* bce of a network that ends in a sigmoid is that of its probabilities.  Regression: they were
 * taken for logits. */
static void check_probabilities(void)
{
    enum { BCE = 4 };
    struct net logits, n;
    struct ew_graph *g = NULL;
    struct ew_model_opts o = {.size = sizeof(o)};
    ew_test_begin("bce of probabilities");
    EW_EXPECT_OK(ew_model_build("lenet5", &o, &g));
    const bool ok = EW_EXPECT(g) && add_sigmoid(g);
    if (ok && open_net("lenet5", BCE, false, false, &logits)) {
        if (open_net("lenet5", BCE, true, false, &n)) {
            EW_EXPECT_NEAR(loss_of(&n), loss_of(&logits), 1e-6);
            EW_EXPECT_NEAR(loss_of(&n), expected(&n, ew_loss_chosen(BCE, g)), 1e-6);
        }
        close_net(&n);
        close_net(&logits);
    }
    ew_graph_free(g);
    ew_test_end();
}

static void check_choices(void)
{
    struct ew_graph *g = NULL;
    struct ew_model_opts o = {.size = sizeof(o)};
    ew_test_begin("auto, and what is refused");
    EW_EXPECT_OK(ew_model_build("video_autoencoder", &o, &g));
    EW_EXPECT_STR(ew_loss_chosen(0, g)->name, "mse");
    EW_EXPECT(ew_objective_add_loss(g, ew_loss_chosen(1, g)) == EW_ERR_SHAPE); /* no labels */
    ew_graph_free(g);
    EW_EXPECT_OK(ew_model_build("lenet5", &o, &g));
    EW_EXPECT_STR(ew_loss_chosen(0, g)->name, "cross-entropy");
    for (int i = 1; ew_loss_names[i]; i++)
        EW_EXPECT_STR(ew_loss_chosen(i, g)->name, ew_loss_names[i]);
    ew_graph_free(g);
    ew_test_end();
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    check_choices();
    check_probabilities();
    for (int loss = 1; ew_loss_names[loss]; loss++)
        for (int reference = 0; reference < 2; reference++) {
            check("lenet5", loss, reference);
            if (loss > 1 && (!ew_test_quick() || (loss == 2 && !reference)))
                check("video_autoencoder", loss, reference);
        }
    return ew_test_status();
}
