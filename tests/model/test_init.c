/* SPDX-License-Identifier: Apache-2.0 */
/* Initial weights: the right distributions, reproducible by seed, independent per tensor. */
#include "model/init.h"

#include <math.h>
#include <string.h>

#include "ew_test.h"
#include "model/model.h"

static struct ew_graph *fresh(const char *name, const struct ew_model_opts *o, uint64_t seed)
{
    struct ew_graph *g = NULL;
    if (EW_EXPECT_OK(ew_model_build(name, o, &g)))
        EW_EXPECT_OK(ew_model_init(name, seed, g));
    return g;
}

static const struct ew_value *value(const struct ew_graph *g, const char *name)
{
    const int i = ew_graph_find(g, name);
    EW_EXPECT(i >= 0);
    return &g->values[i >= 0 ? i : 0];
}

struct moments {
    double mean, deviation, least, most;
};

static struct moments measure(const struct ew_graph *g, const char *name)
{
    const struct ew_tensor *t = &value(g, name)->t;
    const int64_t n = ew_tensor_count(t);
    struct moments m = {0, 0, INFINITY, -INFINITY};
    double square = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = ew_tensor_get(t, i);
        m.mean += x / (double)n;
        square += x * x / (double)n;
        m.least = x < m.least ? x : m.least;
        m.most = x > m.most ? x : m.most;
    }
    m.deviation = sqrt(square - m.mean * m.mean);
    return m;
}

static void expect_all(const struct ew_graph *g, const char *name, double x)
{
    const struct moments m = measure(g, name);
    EW_EXPECT_NEAR(m.least, x, 0);
    EW_EXPECT_NEAR(m.most, x, 0);
}

/* Deviations of samples this large are within 2 % of the distribution's. */
static void rules(void)
{
    struct ew_graph *g = fresh("resnet18", NULL, 1);
    struct moments m = measure(g, "layer3.0.conv1.weight"); /* He, fan-out 9 x 256 */
    EW_EXPECT_NEAR(m.deviation, sqrt(2.0 / (9 * 256)), 0.02 * sqrt(2.0 / (9 * 256)));
    EW_EXPECT_NEAR(m.mean, 0, 1e-3);
    EW_EXPECT(m.most > 3 * m.deviation); /* a normal distribution has tails */
    m = measure(g, "fc.weight");         /* uniform within 1 / sqrt(512) */
    EW_EXPECT_NEAR(m.most, 1 / sqrt(512), 1e-4);
    EW_EXPECT_NEAR(m.least, -1 / sqrt(512), 1e-4);
    EW_EXPECT_NEAR(m.deviation, 1 / sqrt(3 * 512), 0.02 / sqrt(3 * 512));
    EW_EXPECT(measure(g, "fc.bias").deviation > 0.02);
    expect_all(g, "bn1.weight", 1);
    expect_all(g, "bn1.bias", 0);
    expect_all(g, "bn1.running_mean", 0);
    expect_all(g, "bn1.running_var", 1);
    ew_graph_free(g);

    g = fresh("vgg11_cifar", NULL, 1);
    expect_all(g, "features.1.weight", 0.5);
    expect_all(g, "features.0.bias", 0);
    EW_EXPECT_NEAR(measure(g, "classifier.weight").deviation, 0.01, 5e-4);
    ew_graph_free(g);

    g = fresh("squeezenet1_1", NULL, 1);
    EW_EXPECT_NEAR(measure(g, "classifier.1.weight").deviation, 0.01, 2e-4);
    EW_EXPECT_NEAR(measure(g, "features.12.expand3x3.weight").most, sqrt(6.0 / (9 * 64)), 1e-4);
    ew_graph_free(g);
}

static bool same(const struct ew_graph *a, const struct ew_graph *b, const char *name)
{
    const struct ew_tensor *x = &value(a, name)->t, *y = &value(b, name)->t;
    return ew_shape_equal(&x->shape, &y->shape) &&
           memcmp(x->data, y->data, ew_tensor_bytes(x)) == 0;
}

/* Another number of classes changes only the last layer. */
static void seeds_and_names(void)
{
    const struct ew_model_opts other = {.size = sizeof(other), .classes = 7};
    struct ew_graph *a = fresh("lenet5", NULL, 5), *b = fresh("lenet5", NULL, 5),
                    *c = fresh("lenet5", NULL, 6), *d = fresh("lenet5", &other, 5);
    EW_EXPECT(same(a, b, "conv2.weight"));
    EW_EXPECT(same(a, b, "fc3.bias"));
    EW_EXPECT(!same(a, c, "conv2.weight"));
    EW_EXPECT(same(a, d, "fc2.weight"));
    EW_EXPECT(!same(a, d, "fc3.weight"));
    ew_graph_free(a);
    ew_graph_free(b);
    ew_graph_free(c);
    ew_graph_free(d);
}

/* Loaded weights are kept. */
static void only_what_is_missing(void)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_model_build("lenet5", NULL, &g));
    float mine[6] = {1, 2, 3, 4, 5, 6};
    g->values[ew_graph_find(g, "conv1.bias")].t.data = mine;
    EW_EXPECT_OK(ew_model_init("lenet5", 1, g));
    EW_EXPECT_NEAR(mine[5], 6, 0);
    EW_EXPECT(measure(g, "conv1.weight").deviation > 0);
    ew_graph_free(g);
}

/* Regression: a weight that the network computes or is given, as one that is dequantised, has no
 * memory yet, and was written to. */
static void weights_that_are_no_parameters(void)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_model_build("lenet5", NULL, &g));
    struct ew_value *given = &g->values[ew_graph_find(g, "conv1.weight")];
    given->kind = EW_VALUE_INPUT;
    EW_EXPECT_OK(ew_model_init("lenet5", 1, g));
    EW_EXPECT(!given->t.data);
    EW_EXPECT(measure(g, "conv2.weight").deviation > 0);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(rules), EW_TEST(seeds_and_names), EW_TEST(only_what_is_missing),
             EW_TEST(weights_that_are_no_parameters))
