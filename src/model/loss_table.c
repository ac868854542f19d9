/* SPDX-License-Identifier: Apache-2.0 */
/* The table of losses. */
#include "model/loss_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ini.h"
#include "base/mem.h"
#include "graph/ops.h"
#include "op/math_attr.h"

/* ---- Building blocks ---- */

static ew_err apply(struct ew_graph *g, const char *op, const char *name, const int *in, int n_in,
                    int *out)
{
    return ew_graph_add(g, ew_op_find(op), name, NULL, ew_inputs(in, n_in), out);
}

/* The mean over all elements, a scalar. */
static ew_err mean_of(struct ew_graph *g, int each, int *loss)
{
    const struct ew_reduce_attr a = {.keepdims = false};
    return ew_graph_add(g, &ew_op_reduce_mean, "loss", &a, EW_INPUTS(each), loss);
}

/* ---- The losses ---- */

static ew_err add_cross_entropy(struct ew_graph *g, int scores, int labels, int *loss)
{
    return apply(g, "softmax_cross_entropy", "loss", (const int[]){scores, labels}, 2, loss);
}

static ew_err add_mse(struct ew_graph *g, int y, int target, int *loss)
{
    int d, square;
    EW_TRY(apply(g, "sub", "loss_difference", (const int[]){y, target}, 2, &d));
    EW_TRY(apply(g, "mul", "loss_square", (const int[]){d, d}, 2, &square));
    return mean_of(g, square, loss);
}

static double mse(double y, double target)
{
    return (y - target) * (y - target);
}

static ew_err add_l1(struct ew_graph *g, int y, int target, int *loss)
{
    int d, size;
    EW_TRY(apply(g, "sub", "loss_difference", (const int[]){y, target}, 2, &d));
    EW_TRY(apply(g, "abs", "loss_size", &d, 1, &size));
    return mean_of(g, size, loss);
}

static double l1(double y, double target)
{
    return fabs(y - target);
}

/* Logits x, targets t in [0, 1]: -t log s(x) - (1 - t) log(1 - s(x)) = softplus(x) - t x. */
static ew_err add_bce(struct ew_graph *g, int x, int target, int *loss)
{
    int plus, product, d;
    EW_TRY(apply(g, "softplus", "loss_softplus", &x, 1, &plus));
    EW_TRY(apply(g, "mul", "loss_product", (const int[]){x, target}, 2, &product));
    EW_TRY(apply(g, "sub", "loss_difference", (const int[]){plus, product}, 2, &d));
    return mean_of(g, d, loss);
}

static double bce(double x, double target)
{
    return fmax(x, 0) + log1p(exp(-fabs(x))) - target * x;
}

/* ---- Probabilities ---- */

/* The sigmoid that makes a value, perhaps rounded; -1: none. */
static int sigmoid_of(const struct ew_graph *g, int value)
{
    int k = ew_graph_producer(g, value, &ew_op_fake_quant);
    while (k >= 0) {
        value = g->nodes[k].in[0];
        k = ew_graph_producer(g, value, &ew_op_fake_quant);
    }
    return ew_graph_producer(g, value, &ew_op_sigmoid);
}

/* From the sigmoid's input, since the logarithm of a rounded 1 - p loses digits. */
static ew_err add_bce_of_sigmoid(struct ew_graph *g, int y, int target, int *loss)
{
    return add_bce(g, g->nodes[sigmoid_of(g, y)].in[0], target, loss);
}

/* PyTorch's BCELoss bounds logarithms likewise. */
static double bounded_log(double p)
{
    return p > 0 ? fmax(log(p), -100) : -100;
}

static double bce_of_probability(double p, double target)
{
    return -target * bounded_log(p) - (1 - target) * bounded_log(1 - p);
}

/* In place of bce where the network ends in a sigmoid. */
static const struct ew_loss of_probability = {
    "bce", "binary cross-entropy of probabilities, element by element", add_bce_of_sigmoid, false,
    bce_of_probability};

static const struct ew_loss table[] = {
    {"cross-entropy", "softmax cross-entropy with the label", add_cross_entropy, true, NULL},
    {"mse", "mean squared error", add_mse, false, mse},
    {"l1", "mean absolute error", add_l1, false, l1},
    {"bce", "binary cross-entropy of logits, element by element", add_bce, false, bce},
};

const char *const ew_loss_names[] = {"auto", "cross-entropy", "mse", "l1", "bce", NULL};

_Static_assert(EW_COUNT(ew_loss_names) == EW_COUNT(table) + 2, "a name for each loss");

bool ew_net_reconstructs(const struct ew_graph *net)
{
    if (net->n_inputs < 1 || net->n_outputs < 1)
        return false;
    const struct ew_shape *x = &net->values[net->inputs[0]].t.shape,
                          *y = &net->values[net->outputs[0]].t.shape;
    return x->rank > 2 && ew_shape_equal(x, y);
}

const struct ew_loss *ew_loss_chosen(int choice, const struct ew_graph *net)
{
    if (choice > 0 && choice <= (int)EW_COUNT(table)) {
        const struct ew_loss *l = &table[choice - 1];
        const bool sigmoid = net && net->n_outputs > 0 && sigmoid_of(net, net->outputs[0]) >= 0;
        return l->of_element == bce && sigmoid ? &of_probability : l;
    }
    return &table[ew_net_reconstructs(net) ? 1 : 0];
}

const struct ew_loss *ew_loss_of_options(const char *options, const struct ew_graph *net)
{
    EW_CLEANUP(ew_free_ptr) char *text = strdup(options);
    struct ew_ini ini;
    ew_ini_init(&ini, text ? text : (char[]){""}, "options");
    while (ew_ini_next(&ini))
        for (int i = 0; ini.key && strcmp(ini.key, "loss") == 0 && ew_loss_names[i]; i++)
            if (strcmp(ini.value, ew_loss_names[i]) == 0)
                return ew_loss_chosen(i, net);
    return NULL;
}

double ew_loss_of(const struct ew_loss *loss, const float *prediction, const float *target,
                  int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += loss->of_element((double)prediction[i], (double)target[i]);
    return n > 0 ? sum / (double)n : 0;
}

double ew_loss_of_label(const struct ew_loss *loss, const float *scores, int64_t n, int64_t label)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += loss->of_element((double)scores[k], k == label ? 1 : 0);
    return n > 0 ? sum / (double)n : 0;
}
