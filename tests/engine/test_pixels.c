/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels from memory: every format, stride and direction gives the same input as the plain one. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "edgewise_pixels.h"
#include "ew_test.h"

#define W 40
#define H 30

static struct ew_engine *engine;
static struct ew_context *context;
static uint8_t rgb[H][W][3];

/* MobileNetV2 for 32 x 32 takes colour images; its weights do not matter here. */
static bool open_engine(void)
{
    struct ew_graph *g = NULL;
    const struct ew_model_opts m = {.size = sizeof(m), .scale = 0.25};
    const struct ew_compile_opts o = {
        .size = sizeof(o), .threads = 1, .mean = {0.5, 0.4, 0.3}, .std = {0.2, 0.3, 0.4, 1}};
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int k = 0; k < 3; k++)
                rgb[y][x][k] = (uint8_t)(y * 7 + x * 3 + k * 50);
    const char *path = ew_test_path("net.ewe");
    const bool ok = EW_EXPECT_OK(ew_model_build("mobilenet_v2_cifar", &m, &g)) &&
                    EW_EXPECT_OK(ew_model_init("mobilenet_v2_cifar", 1, g)) &&
                    EW_EXPECT_OK(ew_engine_compile(g, &o, path)) &&
                    EW_EXPECT_OK(ew_engine_load(path, &engine)) &&
                    EW_EXPECT_OK(ew_context_new(engine, 1, &context));
    ew_graph_free(g);
    return ok;
}

/* The input tensor for these pixels. */
static const float *put(const struct ew_pixels *p, float *copy, size_t n)
{
    size_t bytes;
    EW_EXPECT_OK(ew_context_put_pixels(context, 0, p));
    const float *in = ew_context_input(context, 0, &bytes);
    EW_EXPECT_INT((int64_t)bytes, (int64_t)(n * sizeof(float)));
    memcpy(copy, in, bytes);
    return copy;
}

enum { ELEMENTS = 32 * 32 * 3 };

static struct ew_pixels pixels(int format, const void *data, int64_t stride)
{
    return (struct ew_pixels){.size = sizeof(struct ew_pixels),
                              .format = format,
                              .width = W,
                              .height = H,
                              .data = data,
                              .stride = stride};
}

static void formats_agree(void)
{
    static float want[ELEMENTS], got[ELEMENTS];
    static uint8_t bgr[H][W + 5][3], rgba[H][W][4], bgra[H][W][4], turned[H][W][3];
    struct ew_pixels p = pixels(EW_PIXEL_RGB, rgb, 0);
    put(&p, want, ELEMENTS);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int k = 0; k < 3; k++) {
                bgr[y][x][2 - k] = rgba[y][x][k] = bgra[y][x][2 - k] = rgb[y][x][k];
                turned[H - 1 - y][x][k] = rgb[y][x][k];
            }
    const struct ew_pixels all[] = {pixels(EW_PIXEL_BGR, bgr, sizeof(bgr[0])),
                                    pixels(EW_PIXEL_RGBA, rgba, 0), pixels(EW_PIXEL_BGRA, bgra, 0),
                                    pixels(EW_PIXEL_RGB, turned[H - 1], -3 * W)};
    for (size_t i = 0; i < EW_COUNT(all); i++) {
        put(&all[i], got, ELEMENTS);
        EW_EXPECT(memcmp(want, got, sizeof(got)) == 0);
    }
}

/* Grey has equal channels before normalisation, and NV12 without colour is grey: Y = 16 + 219 / 255
 * of it, within 8-bit rounding. */
static void nv12_without_colour_is_grey(void)
{
    static float want[ELEMENTS], got[ELEMENTS];
    static uint8_t grey[H][W], luma[H][W + 8], chroma[H / 2][W];
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            grey[y][x] = (uint8_t)(y * 5 + x * 2);
            luma[y][x] = (uint8_t)((grey[y][x] * 219 + 127) / 255 + 16);
        }
    memset(chroma, 128, sizeof(chroma));
    struct ew_pixels p = pixels(EW_PIXEL_GREY, grey, 0);
    put(&p, want, ELEMENTS);
    p = pixels(EW_PIXEL_NV12, luma, sizeof(luma[0]));
    p.chroma = chroma;
    p.chroma_stride = W;
    put(&p, got, ELEMENTS);
    EW_EXPECT_CLOSE(got, want, ELEMENTS, 0, 2.0 / 255 / 0.2);
}

/* Pure red in BT.601: Y 81, U 90, V 240. */
static void nv12_has_its_colours(void)
{
    static float want[ELEMENTS], got[ELEMENTS];
    static uint8_t red[H][W][3], frame[H * W * 3 / 2];
    memset(frame, 81, H * W);
    for (int i = 0; i < H * W / 2; i++)
        frame[H * W + i] = i % 2 ? 240 : 90;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            red[y][x][0] = 255;
    struct ew_pixels p = pixels(EW_PIXEL_RGB, red, 0);
    put(&p, want, ELEMENTS);
    p = pixels(EW_PIXEL_NV12, frame, 0);
    put(&p, got, ELEMENTS);
    EW_EXPECT_CLOSE(got, want, ELEMENTS, 0, 3.0 / 255 / 0.2);
}

static void what_makes_no_sense_is_refused(void)
{
    struct ew_pixels p = pixels(EW_PIXEL_RGB, rgb, 3 * W - 1);
    EW_EXPECT_ERR(ew_context_put_pixels(context, 0, &p), EW_ERR_ARG, "a row of 119 bytes");
    p = pixels(EW_PIXEL_NV12, rgb, 0);
    p.width = W - 1;
    EW_EXPECT_ERR(ew_context_put_pixels(context, 0, &p), EW_ERR_ARG, "even sides");
    p = pixels(17, rgb, 0);
    EW_EXPECT_ERR(ew_context_put_pixels(context, 0, &p), EW_ERR_ARG, "no pixel format 17");
    p = pixels(EW_PIXEL_RGB, NULL, 0);
    EW_EXPECT_ERR(ew_context_put_pixels(context, 0, &p), EW_ERR_ARG, "pixels of 40 x 30");
    p = pixels(EW_PIXEL_RGB, rgb, 0);
    EW_EXPECT_ERR(ew_context_put_pixels(context, 1, &p), EW_ERR_ARG, "image 1 of a batch of 1");
    p.size = 8;
    EW_EXPECT_ERR(ew_context_put_pixels(context, 0, &p), EW_ERR_ARG, "size is 8 bytes");
}

static const struct ew_test tests[] = {EW_TEST(formats_agree), EW_TEST(nv12_without_colour_is_grey),
                                       EW_TEST(nv12_has_its_colours),
                                       EW_TEST(what_makes_no_sense_is_refused)};

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    ew_test_begin("open_engine");
    const bool ready = open_engine();
    ew_test_end();
    for (size_t i = 0; ready && i < EW_COUNT(tests); i++) {
        ew_test_begin("%s", tests[i].name);
        tests[i].run();
        ew_test_end();
    }
    ew_context_free(context);
    ew_engine_free(engine);
    return ew_test_status();
}
