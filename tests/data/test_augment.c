/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation against plain arithmetic: crop, flip, rotation and resize. */
#include "data/augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ew_test.h"

#define H 9
#define W 7

/* Three planes whose values encode their position. */
static void make_sample(struct ew_sample *s, uint8_t pixels[3 * H * W])
{
    for (int i = 0; i < 3 * H * W; i++)
        pixels[i] = (uint8_t)(1 + i);
    *s = (struct ew_sample){
        .pixels = pixels, .h = H, .w = W, .c = 3, .sy = W, .sx = 1, .sc = (int64_t)H * W};
}

static struct ew_image_spec plain_spec(int64_t h, int64_t w, int64_t c)
{
    return (struct ew_image_spec){.h = h,
                                  .w = w,
                                  .c = c,
                                  .prep = {.mean = {0.5, 0.25, 0.125}, .std = {0.5, 0.25, 2}},
                                  .seed = 7};
}

static float normal(const struct ew_image_spec *p, int v, int c)
{
    return (float)((v / 255.0 - p->prep.mean[c]) / p->prep.std[c]);
}

/* True if `out` is the sample from (y0, x0) on, black outside, mirrored or not. */
static bool is_window(const struct ew_image_spec *p, const struct ew_sample *s, const float *out,
                      const int64_t at[2], bool mirrored)
{
    for (int64_t y = 0; y < p->h; y++)
        for (int64_t x = 0; x < p->w; x++)
            for (int c = 0; c < p->c; c++) {
                const int64_t sy = y + at[0];
                const int64_t sx = mirrored ? s->w - 1 - (x + at[1]) : x + at[1];
                const bool inside = sy >= 0 && sy < s->h && sx >= 0 && sx < s->w;
                const int v = inside ? s->pixels[sy * s->sy + sx * s->sx + c * s->sc] : 0;
                if (fabsf(*out++ - normal(p, v, c)) > 1e-6f)
                    return false;
            }
    return true;
}

static void normalises(void)
{
    uint8_t pixels[3 * H * W];
    struct ew_sample s;
    make_sample(&s, pixels);
    const struct ew_image_spec p = plain_spec(H, W, 3);
    struct ew_augmenter *a = NULL;
    float out[H * W * 3];
    if (!EW_EXPECT_OK(ew_augmenter_new(&p, &a)))
        return;
    EW_EXPECT_OK(ew_augmenter_run(a, &s, 0, 0, out));
    EW_EXPECT(is_window(&p, &s, out, (const int64_t[2]){0, 0}, false));
    ew_augmenter_free(a);
}

/* All windows within the border occur, with and without mirroring, and no others. */
static void crops_and_flips(void)
{
    uint8_t pixels[3 * H * W];
    struct ew_sample s;
    make_sample(&s, pixels);
    struct ew_image_spec p = plain_spec(H, W, 3);
    p.augment = (struct ew_augment){.crop = 2, .flip = true};
    struct ew_augmenter *a = NULL;
    float out[H * W * 3], again[H * W * 3];
    if (!EW_EXPECT_OK(ew_augmenter_new(&p, &a)))
        return;
    int seen[2][5][5] = {0};
    for (int64_t i = 0; i < 1000; i++) {
        EW_EXPECT_OK(ew_augmenter_run(a, &s, 3, i, out));
        int found = 0;
        for (int k = 0; k < 50; k++)
            if (is_window(&p, &s, out, (const int64_t[2]){k / 2 / 5 - 2, k / 2 % 5 - 2}, k % 2)) {
                seen[k % 2][k / 2 / 5][k / 2 % 5]++;
                found++;
            }
        EW_EXPECT_INT(found, 1);
    }
    for (int k = 0; k < 50; k++) /* 20 expected; 1 in a million is below 3 or above 45 */
        EW_EXPECT(seen[k % 2][k / 2 / 5][k / 2 % 5] > 2 && seen[k % 2][k / 2 / 5][k / 2 % 5] < 45);
    EW_EXPECT_OK(ew_augmenter_run(a, &s, 3, 999, again));
    EW_EXPECT(memcmp(out, again, sizeof(out)) == 0);
    EW_EXPECT_OK(ew_augmenter_run(a, &s, 4, 999, again));
    ew_augmenter_free(a);
}

static void grey_and_colour(void)
{
    uint8_t pixels[3 * H * W];
    struct ew_sample s;
    make_sample(&s, pixels);
    struct ew_image_spec p = plain_spec(H, W, 1);
    struct ew_augmenter *a = NULL;
    float out[H * W * 3];
    if (!EW_EXPECT_OK(ew_augmenter_new(&p, &a)))
        return;
    EW_EXPECT_OK(ew_augmenter_run(a, &s, 0, 0, out));
    EW_EXPECT_NEAR(out[5], normal(&p, (int)lrint(0.299 * 6 + 0.587 * 69 + 0.114 * 132), 0), 1e-5);
    ew_augmenter_free(a);
    s.c = 1;
    p = plain_spec(H, W, 3);
    if (!EW_EXPECT_OK(ew_augmenter_new(&p, &a)))
        return;
    EW_EXPECT_OK(ew_augmenter_run(a, &s, 0, 0, out));
    for (int c = 0; c < 3; c++)
        EW_EXPECT_NEAR(out[3 * 5 + c], normal(&p, 6, c), 1e-6);
    ew_augmenter_free(a);
}

/* A gradient is preserved at any size; a uniform colour stays unchanged. */
static void resizes(void)
{
    uint8_t slope[40 * 60];
    for (int i = 0; i < 40 * 60; i++)
        slope[i] = (uint8_t)(4 * (i % 60));
    const struct ew_sample s = {.pixels = slope, .h = 40, .w = 60, .c = 1, .sy = 60, .sx = 1};
    static const int64_t sizes[][2] = {{20, 30}, {80, 120}, {13, 13}, {40, 20}, {101, 50}};
    for (size_t i = 0; i < EW_COUNT(sizes); i++) {
        const int64_t h = sizes[i][0], w = sizes[i][1];
        const struct ew_image_spec p = {
            .h = h, .w = w, .c = 1, .prep = {.resize = EW_RESIZE_COVER, .std = {1 / 255.0}}};
        struct ew_augmenter *a = NULL;
        float *out = malloc((size_t)(h * w) * sizeof(*out));
        if (!EW_EXPECT_OK(ew_augmenter_new(&p, &a)))
            return;
        EW_EXPECT_OK(ew_augmenter_run(a, &s, 0, 0, out));
        const double grow = fmax((double)h / 40, (double)w / 60);
        const double left = floor((round(60 * grow) - (double)w) / 2); /* the centre is taken */
        for (int64_t x = 2; x < w - 2; x++) {
            const double at = ((double)x + left + 0.5) * 60 / round(60 * grow) - 0.5;
            if (at > 1 && at < 58)
                EW_EXPECT_NEAR(out[h / 2 * w + x], 4 * at, 1.6);
        }
        ew_augmenter_free(a);
        free(out);
    }
}

/* Regression: covering 224 x 224, an image of 65500 x 1 pixels was resized to 10 GB. */
static void thin_images(void)
{
    static uint8_t line[65500];
    static float out[224 * 224];
    struct ew_sample s = {.pixels = line, .h = 1, .w = 65500, .c = 1, .sy = 65500, .sx = 1};
    const struct ew_image_spec p = {.h = 224, .w = 224, .c = 1, .prep = {.std = {1}}};
    struct ew_augmenter *a = NULL;
    if (!EW_EXPECT_OK(ew_augmenter_new(&p, &a)))
        return;
    EW_EXPECT_ERR(ew_augmenter_run(a, &s, 0, 0, out), EW_ERR_LIMIT, "65500 x 1 pixels, resized to");
    s = (struct ew_sample){.pixels = line, .h = 1000, .w = 1, .c = 1, .sy = 1, .sx = 1};
    EW_EXPECT_OK(ew_augmenter_run(a, &s, 0, 0, out));
    ew_augmenter_free(a);
}

static void turns(void)
{
    uint8_t pixels[3 * H * W];
    struct ew_sample s;
    make_sample(&s, pixels);
    struct ew_image_spec p = plain_spec(H, W, 3);
    p.augment.rotate = 180;
    struct ew_augmenter *a = NULL;
    float out[H * W * 3];
    if (!EW_EXPECT_OK(ew_augmenter_new(&p, &a)))
        return;
    for (int64_t i = 0; i < 20; i++) { /* the centre stays at any angle */
        EW_EXPECT_OK(ew_augmenter_run(a, &s, 0, i, out));
        EW_EXPECT_NEAR(out[(H / 2 * W + W / 2) * 3], normal(&p, 1 + H / 2 * W + W / 2, 0), 0.01);
    }
    ew_augmenter_free(a);
}

static void erases(void)
{
    uint8_t pixels[32 * 32];
    memset(pixels, 200, sizeof(pixels));
    const struct ew_sample s = {.pixels = pixels, .h = 32, .w = 32, .c = 1, .sy = 32, .sx = 1};
    struct ew_image_spec p = {.h = 32, .w = 32, .c = 1, .prep.std = {1}, .augment = {.erase = 0.5}};
    struct ew_augmenter *a = NULL;
    float out[32 * 32];
    if (!EW_EXPECT_OK(ew_augmenter_new(&p, &a)))
        return;
    int erased = 0;
    for (int64_t i = 0; i < 400; i++) {
        EW_EXPECT_OK(ew_augmenter_run(a, &s, 0, i, out));
        int gone = 0;
        for (int k = 0; k < 1024; k++)
            gone += out[k] < 0.1f;
        EW_EXPECT(gone == 0 || (gone >= 10 && gone <= 400));
        erased += gone > 0;
    }
    EW_EXPECT(erased > 140 && erased < 260);
    ew_augmenter_free(a);
}

/* Every window contains only values of the image, and windows differ. */
static void zooms(void)
{
    uint8_t slope[64 * 64];
    for (int i = 0; i < 64 * 64; i++)
        slope[i] = (uint8_t)(50 + 3 * (i % 64));
    const struct ew_sample s = {.pixels = slope, .h = 64, .w = 64, .c = 1, .sy = 64, .sx = 1};
    struct ew_image_spec p = {
        .h = 16, .w = 16, .c = 1, .prep = {.resize = EW_RESIZE_COVER, .std = {1 / 255.0}}};
    p.augment.zoom = 0.1;
    struct ew_augmenter *a = NULL;
    float out[256];
    if (!EW_EXPECT_OK(ew_augmenter_new(&p, &a)))
        return;
    double widest = 0, narrowest = 1000;
    for (int64_t i = 0; i < 200; i++) {
        EW_EXPECT_OK(ew_augmenter_run(a, &s, 0, i, out));
        EW_EXPECT(out[0] >= 49.5f && out[255] <= 239.5f + 0.6f);
        widest = fmax(widest, (double)(out[15] - out[0]));
        narrowest = fmin(narrowest, (double)(out[15] - out[0]));
    }
    EW_EXPECT(widest > 150 && narrowest < 75 && narrowest > 40);
    ew_augmenter_free(a);
}

static void parses(void)
{
    struct ew_augment g;
    EW_EXPECT_OK(ew_augment_parse("none", &g));
    EW_EXPECT(g.crop == 0 && !g.flip);
    EW_EXPECT_OK(ew_augment_parse("standard", &g));
    EW_EXPECT(g.crop == 4 && g.flip);
    EW_EXPECT_OK(ew_augment_parse("flip,rotate=12.5,erase=0.25,zoom=0.5,crop=3", &g));
    EW_EXPECT(g.crop == 3 && g.flip && g.rotate > 12.4 && g.erase > 0.2 && g.zoom > 0.4);
    EW_EXPECT_ERR(ew_augment_parse("flop", &g), EW_ERR_USAGE, "'flop' is not one of");
    EW_EXPECT_ERR(ew_augment_parse("crop", &g), EW_ERR_USAGE, "crop needs a value");
    EW_EXPECT_ERR(ew_augment_parse("erase=2", &g), EW_ERR_USAGE, "not between 0 and 1");
}

EW_TEST_MAIN(EW_TEST(normalises), EW_TEST(crops_and_flips), EW_TEST(grey_and_colour),
             EW_TEST(resizes), EW_TEST(thin_images), EW_TEST(turns), EW_TEST(erases),
             EW_TEST(zooms), EW_TEST(parses))
