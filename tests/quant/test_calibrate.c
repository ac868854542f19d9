/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration: ranges of known distributions, by every method. */
#include "quant/calibrate.h"

#include <math.h>

#include "base/rng.h"
#include "edgewise.h"
#include "ew_test.h"

#define BATCH    4
#define PIXELS   4096
#define CHANNELS 2

struct net {
    struct ew_graph *g;
    int in, out;
};

/* y = relu(x), [4, 4096, 2] */
static bool relu_net(struct net *n)
{
    const struct ew_shape s = {3, {BATCH, PIXELS, CHANNELS}};
    return EW_EXPECT_OK(ew_graph_new("relu", &n->g)) &&
           EW_EXPECT_OK(ew_graph_input(n->g, "x", EW_F32, &s, &n->in)) &&
           EW_EXPECT_OK(
               ew_graph_add(n->g, ew_op_find("relu"), "y", NULL, EW_INPUTS(n->in), &n->out)) &&
           EW_EXPECT_OK(ew_graph_output(n->g, n->out));
}

static float images[BATCH * PIXELS * CHANNELS];

/* Normally distributed numbers, the second channel 0.5 higher, and one outlier. */
static void fill(float outlier)
{
    for (size_t i = 0; i < EW_COUNT(images); i++)
        images[i] = (float)ew_rng_normal(7, 0, i) + (i % 2 ? 0.5f : 0.0f);
    images[1000] = outlier;
}

static bool ranges(struct net *n, const struct ew_calibrate_opts *o, int64_t n_images,
                   struct ew_value_range out[2], struct ew_calibrator **c)
{
    const int values[2] = {n->in, n->out};
    if (!EW_EXPECT_OK(ew_calibrator_new(n->g, values, 2, o, c)))
        return false;
    for (int pass = 0; pass < ew_calibrator_passes(*c); pass++) {
        ew_calibrator_start(*c, pass);
        if (!EW_EXPECT_OK(ew_calibrator_feed(*c, images, n_images)))
            return false;
    }
    return EW_EXPECT_OK(ew_calibrator_range(*c, 0, &out[0])) &&
           EW_EXPECT_OK(ew_calibrator_range(*c, 1, &out[1]));
}

static void minmax_holds_all(void)
{
    struct net n = {0};
    struct ew_calibrator *c = NULL;
    struct ew_value_range r[2];
    fill(40);
    const struct ew_calibrate_opts o = {.method = EW_CALIBRATE_MINMAX};
    if (relu_net(&n) && ranges(&n, &o, BATCH, r, &c)) {
        EW_EXPECT(r[0].lo < -3 && r[0].lo > -6 && r[0].hi > 39.9f && r[0].hi < 40.1f);
        EW_EXPECT(r[1].lo >= 0 && r[1].lo <= 0 && r[1].hi > 39.9f && r[1].hi < 40.1f);
        EW_EXPECT_INT(r[0].count, BATCH * PIXELS * CHANNELS);
        EW_EXPECT_INT(r[0].channels, CHANNELS);
        EW_EXPECT_NEAR(r[0].mean[0], 0, 0.03);
        EW_EXPECT_NEAR(r[0].mean[1], 0.5, 0.03);
        EW_EXPECT_NEAR(r[0].peak[0], 40, 0.01); /* the outlier's index is even */
        EW_EXPECT(r[0].peak[1] > 3 && r[0].peak[1] < 7);
    }
    ew_calibrator_free(c);
    ew_graph_free(n.g);
}

/* The outlier is in image 0; a short batch must not include stale memory. */
static void short_batches_count_their_images(void)
{
    struct net n = {0};
    struct ew_calibrator *c = NULL;
    struct ew_value_range r[2];
    fill(0);
    images[PIXELS * CHANNELS + 5] = 99;
    const struct ew_calibrate_opts o = {.method = EW_CALIBRATE_MINMAX};
    if (relu_net(&n) && ranges(&n, &o, 1, r, &c)) {
        EW_EXPECT_INT(r[0].count, PIXELS * CHANNELS);
        EW_EXPECT(r[0].hi < 10);
        EW_EXPECT_ERR(ew_calibrator_feed(c, images, BATCH + 1), EW_ERR_ARG, "5 images");
    }
    ew_calibrator_free(c);
    ew_graph_free(n.g);
}

static void outliers_are_clipped(void)
{
    static const enum ew_calibrate_method methods[] = {EW_CALIBRATE_PERCENTILE,
                                                       EW_CALIBRATE_ENTROPY};
    fill(40);
    for (size_t i = 0; i < EW_COUNT(methods); i++) {
        struct net n = {0};
        struct ew_calibrator *c = NULL;
        struct ew_value_range r[2];
        const struct ew_calibrate_opts o = {.method = methods[i], .percentile = 99.99};
        if (relu_net(&n) && ranges(&n, &o, BATCH, r, &c)) {
            EW_EXPECT(r[0].hi > 39); /* pixels are not */
            EW_EXPECT(r[1].hi > 2.5f && r[1].hi < 10);
            EW_EXPECT(r[0].lo < -2 && r[1].lo >= 0);
            EW_EXPECT(r[0].seen_hi > 39);
        }
        ew_calibrator_free(c);
        ew_graph_free(n.g);
    }
}

static void constants_have_a_range(void)
{
    for (size_t i = 0; i < EW_COUNT(images); i++)
        images[i] = -3;
    for (int m = 0; m < EW_CALIBRATE_N; m++) {
        struct net n = {0};
        struct ew_calibrator *c = NULL;
        struct ew_value_range r[2];
        const struct ew_calibrate_opts o = {.method = (enum ew_calibrate_method)m,
                                            .percentile = 99.9};
        if (relu_net(&n) && ranges(&n, &o, BATCH, r, &c)) {
            EW_EXPECT_NEAR(r[0].lo, -3, 1e-6);
            EW_EXPECT(r[0].hi >= r[0].lo && r[1].hi >= r[1].lo);
        }
        ew_calibrator_free(c);
        ew_graph_free(n.g);
    }
}

static void what_is_not_finite_is_refused(void)
{
    struct net n = {0};
    struct ew_calibrator *c = NULL;
    struct ew_value_range r;
    fill(INFINITY);
    const struct ew_calibrate_opts o = {.method = EW_CALIBRATE_MINMAX};
    if (relu_net(&n) && EW_EXPECT_OK(ew_calibrator_new(n.g, &n.out, 1, &o, &c))) {
        EW_EXPECT_ERR(ew_calibrator_range(c, 0, &r), EW_ERR_ARG, "nothing");
        EW_EXPECT_ERR(ew_calibrator_feed(c, images, BATCH), EW_ERR_FORMAT, "not finite");
    }
    ew_calibrator_free(c);
    ew_graph_free(n.g);
}

EW_TEST_MAIN(EW_TEST(minmax_holds_all), EW_TEST(short_batches_count_their_images),
             EW_TEST(outliers_are_clipped), EW_TEST(constants_have_a_range),
             EW_TEST(what_is_not_finite_is_refused))
