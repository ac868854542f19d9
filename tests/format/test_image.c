/* SPDX-License-Identifier: Apache-2.0 */
/* Images: decoding, rejection, and preprocessing for a network. */
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include "data/image_file.h"
#include "ew_test.h"
#include "format/image_input.h"

#define W 13
#define H 9

static uint8_t pixels[H * W * 4];

/* A smooth picture, which JPEG preserves; `channels` 1 to 4. */
static void draw(int channels)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < channels; c++)
                pixels[(y * W + x) * channels + c] =
                    (uint8_t)(c == 3 ? 99 : 20 + 8 * x + 6 * y + 20 * c);
}

static const void *make_png(unsigned format, size_t *size)
{
    static uint8_t out[1 << 16];
    png_image image = {.version = PNG_IMAGE_VERSION, .width = W, .height = H, .format = format};
    png_alloc_size_t n = sizeof(out);
    EW_EXPECT(png_image_write_to_memory(&image, out, &n, 0, pixels, 0, NULL));
    *size = n;
    return out;
}

static const void *make_jpeg(int format, int subsampling, size_t *size)
{
    static uint8_t out[1 << 16];
    tjhandle h = tjInitCompress();
    unsigned char *p = out;
    unsigned long n = sizeof(out);
    EW_EXPECT_INT(
        tjCompress2(h, pixels, W, 0, H, format, &p, &n, subsampling, 95, TJFLAG_NOREALLOC), 0);
    tjDestroy(h);
    *size = n;
    return out;
}

/* The decoded image is the picture drawn with `channels`, within `most` levels. */
static void same(const struct ew_tensor *t, int channels, int most)
{
    draw(channels);
    const uint8_t *got = t->data;
    int worst = 0;
    EW_EXPECT_INT(t->shape.dim[0], H);
    EW_EXPECT_INT(t->shape.dim[1], W);
    if (!EW_EXPECT_INT(t->shape.dim[2], channels))
        return;
    for (int i = 0; i < H * W * channels; i++)
        worst = abs(got[i] - pixels[i]) > worst ? abs(got[i] - pixels[i]) : worst;
    EW_EXPECT(worst <= most);
}

static void decodes(void)
{
    struct ew_arena a;
    ew_arena_init(&a);
    struct ew_tensor t;
    size_t n;
    draw(3);
    const void *bytes = make_png(PNG_FORMAT_RGB, &n);
    EW_EXPECT(ew_image_is(bytes, n));
    if (EW_EXPECT_OK(ew_image_decode(bytes, n, "p", 0, &a, &t)))
        same(&t, 3, 0);
    draw(4);
    bytes = make_png(PNG_FORMAT_RGBA, &n);
    if (EW_EXPECT_OK(ew_image_decode(bytes, n, "p", 3, &a, &t)))
        same(&t, 3, 0);
    draw(1);
    bytes = make_png(PNG_FORMAT_GRAY, &n);
    if (EW_EXPECT_OK(ew_image_decode(bytes, n, "p", 0, &a, &t)))
        same(&t, 1, 0);
    if (EW_EXPECT_OK(ew_image_decode(bytes, n, "p", 3, &a, &t)))
        EW_EXPECT_INT(t.shape.dim[2], 3);
    draw(3);
    bytes = make_jpeg(TJPF_RGB, TJSAMP_444, &n);
    EW_EXPECT(ew_image_is(bytes, n));
    if (EW_EXPECT_OK(ew_image_decode(bytes, n, "j", 0, &a, &t)))
        same(&t, 3, 6);
    draw(1);
    bytes = make_jpeg(TJPF_GRAY, TJSAMP_GRAY, &n);
    if (EW_EXPECT_OK(ew_image_decode(bytes, n, "j", 0, &a, &t)))
        same(&t, 1, 6);
    draw(4);
    bytes = make_jpeg(TJPF_CMYK, TJSAMP_444, &n);
    EW_EXPECT_OK(ew_image_decode(bytes, n, "j", 3, &a, &t));
    EW_EXPECT_OK(ew_image_decode(bytes, n, "j", 1, &a, &t));
    ew_arena_fini(&a);
}

static void refuses(void)
{
    struct ew_arena a;
    ew_arena_init(&a);
    struct ew_tensor t;
    size_t n;
    draw(3);
    const void *png = make_png(PNG_FORMAT_RGB, &n);
    for (size_t cut = 0; cut < n - 12; cut++) /* the last 12 bytes are only the end marker */
        EW_EXPECT(ew_image_decode(png, cut, "p.png", 3, &a, &t) != EW_OK);
    const void *jpeg = make_jpeg(TJPF_RGB, TJSAMP_420, &n);
    for (size_t cut = 0; cut < n - 2; cut++)
        EW_EXPECT(ew_image_decode(jpeg, cut, "j.jpg", 3, &a, &t) != EW_OK);
    EW_EXPECT_HAS(ew_error_message(), "j.jpg: ");
    EW_EXPECT_ERR(ew_image_decode("GIF89a..", 8, "g.gif", 3, &a, &t), EW_ERR_FORMAT,
                  "g.gif: is neither PNG nor JPEG");
    EW_EXPECT_ERR(ew_image_read("/nowhere.png", 3, &a, &t), EW_ERR_NOT_FOUND, "/nowhere.png");
    ew_arena_fini(&a);
}

/* Regression: a JPEG truncated in its header left the library in that state, and the next, complete
 * image was refused. */
static void whole_after_cut(void)
{
    size_t n;
    draw(3);
    const uint8_t *jpeg = make_jpeg(TJPF_RGB, TJSAMP_444, &n);
    struct ew_bytes out = {0};
    void *kept = NULL;
    int64_t shape[3];
    for (size_t cut = 3; cut < n; cut += 7) {
        (void)ew_image_decode_here(jpeg, cut, 3, &kept, &out, shape);
        if (!EW_EXPECT_OK(ew_image_decode_here(jpeg, n, 3, &kept, &out, shape)))
            break;
    }
    ew_image_kept_free(kept);
    free(out.at);
}

/* A header that claims 100,000 x 100,000 pixels, without data. */
static void absurd_size(void)
{
    static const uint8_t big[] = {0x89, 'P',  'N', 'G', 13,  10, 26, 10,   0,    0,    0,
                                  13,   'I',  'H', 'D', 'R', 0,  1,  0x86, 0xa0, 0,    1,
                                  0x86, 0xa0, 8,   0,   0,   0,  0,  0x3d, 0x6d, 0x0e, 0x3b};
    struct ew_arena a;
    ew_arena_init(&a);
    struct ew_tensor t;
    EW_EXPECT(ew_image_decode(big, sizeof(big), "big.png", 3, &a, &t) != EW_OK);
    EW_EXPECT(a.used == 0);
    size_t n;
    draw(3);
    uint8_t *jpeg = malloc(1 << 16);
    memcpy(jpeg, make_jpeg(TJPF_RGB, TJSAMP_444, &n), 1 << 16);
    for (size_t i = 0; i + 8 < n; i++)
        if (jpeg[i] == 0xff && jpeg[i + 1] == 0xc0) /* frame header; height and width follow */
            memcpy(jpeg + i + 5, "\xfd\xe8\xfd\xe8", 4);
    EW_EXPECT_ERR(ew_image_decode(jpeg, n, "big.jpg", 3, &a, &t), EW_ERR_LIMIT,
                  "big.jpg: an image of 65000 x 65000");
    free(jpeg);
    ew_arena_fini(&a);
}

/* Fills the network's input in memory `at` by the preprocessing rule. */
static ew_err fill(const struct ew_tensor *image, const struct ew_preprocess *p,
                   const struct ew_shape *shape, void *at)
{
    const struct ew_value v = {.name = "x", .t = {.dtype = EW_F32, .shape = *shape, .data = at}};
    const struct ew_sample sample = ew_image_sample(image);
    struct ew_tensor to = v.t;
    struct ew_image_input *in;
    EW_TRY(ew_image_input_new(&v, p, "net", &in));
    const ew_err e = ew_image_input_put(in, &sample, 0, &to);
    ew_image_input_free(in);
    return e;
}

static void crops_and_normalises(void)
{
    draw(3);
    struct ew_tensor image = {.dtype = EW_U8, .shape = {3, {H, W, 3}}, .data = pixels};
    float first[3 * 5 * 7], last[3 * 5 * 7];
    const struct ew_preprocess p = {
        .resize = H, .normalised = true, .mean = {0.5, 0.25, 0}, .std = {0.5, 1, 2}};
    EW_EXPECT_OK(fill(&image, &p, &(struct ew_shape){4, {1, 3, 5, 7}}, first));
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < 5; y++)
            for (int x = 0; x < 7; x++) {
                const double want =
                    (pixels[((y + 2) * W + x + 3) * 3 + c] / 255.0 - p.mean[c]) / p.std[c];
                EW_EXPECT_NEAR(first[(c * 5 + y) * 7 + x], want, 1e-6);
            }
    EW_EXPECT_OK(fill(&image, &p, &(struct ew_shape){4, {1, 5, 7, 3}}, last));
    EW_EXPECT_NEAR(last[(4 * 7 + 6) * 3 + 1], first[(1 * 5 + 4) * 7 + 6], 0);
}

static void resizes(void)
{
    draw(1);
    struct ew_tensor image = {.dtype = EW_U8, .shape = {3, {H, W, 1}}, .data = pixels};
    static float big[40 * 40], small[3 * 3];
    struct ew_preprocess p = {.resize = EW_RESIZE_COVER, .normalised = true, .std = {1 / 255.0}};
    EW_EXPECT_OK(fill(&image, &p, &(struct ew_shape){4, {1, 1, 40, 40}}, big));
    for (int i = 1; i < 40; i++) /* too small: enlarged to cover the input */
        EW_EXPECT(big[20 * 40 + i] >= big[20 * 40 + i - 1]);
    p.resize = 3;
    EW_EXPECT_OK(fill(&image, &p, &(struct ew_shape){4, {1, 1, 3, 3}}, small));
    EW_EXPECT_NEAR(small[4], pixels[4 * W + 4], 3.5); /* the mean of the pixels that it covers */
    EW_EXPECT_ERR(fill(&image, &p, &(struct ew_shape){4, {1, 5, 3, 5}}, small), EW_ERR_SHAPE,
                  "5 channels");
    EW_EXPECT_ERR(fill(&image, &p, &(struct ew_shape){2, {3, 3}}, small), EW_ERR_SHAPE,
                  "3x3 takes neither images nor clips");
}

/* Regression: --resize cropped all frames as one tall image, so that the first and last frames were
 * lost and others cut in two; the message named "448x28" for 16x28x28. */
static void crops_each_frame_of_a_clip(void)
{
    enum { FRAMES = 3, SIDE = 8, IN = 4 };
    uint8_t clip[FRAMES * SIDE * SIDE * 3];
    float in[FRAMES * IN * IN * 3];
    for (int i = 0; i < FRAMES * SIDE * SIDE; i++)
        memset(clip + (ptrdiff_t)3 * i, 64 * (i / (SIDE * SIDE)) + i % SIDE, 3);
    struct ew_tensor image = {.dtype = EW_U8, .shape = {3, {FRAMES * SIDE, SIDE, 3}}, .data = clip};
    const struct ew_preprocess p = {
        .resize = SIDE, .normalised = true, .std = {1 / 255.0, 1 / 255.0, 1 / 255.0}};
    const struct ew_shape shape = {5, {1, 3, FRAMES, IN, IN}};
    EW_EXPECT_OK(fill(&image, &p, &shape, in));
    for (int f = 0; f < FRAMES; f++)
        for (int y = 0; y < IN; y++)
            for (int x = 0; x < IN; x++)
                EW_EXPECT_NEAR(in[(f * IN + y) * IN + x], 64 * f + x + (SIDE - IN) / 2, 1e-4);
    image.shape.dim[0]--;
    EW_EXPECT_ERR(fill(&image, &p, &shape, in), EW_ERR_SHAPE, "3 frames");
}

static void says_what_becomes_of_frames(void)
{
    static const struct {
        int64_t resize;
        struct ew_shape shape;
        const char *want;
    } k[] = {
        {EW_RESIZE_DEFAULT,
         {5, {1, 16, 28, 24, 3}},
         "16 frames, each resized to cover 28x24, mean 0, std 0.5"},
        {40,
         {5, {1, 3, 16, 28, 24}},
         "16 frames, each shorter side to 40, centre 28x24, mean 0, std 0.5"},
        {EW_RESIZE_COVER, {4, {1, 3, 28, 24}}, "resized to cover 28x24, mean 0, std 0.5"},
    };
    for (size_t i = 0; i < EW_COUNT(k); i++) {
        const struct ew_value v = {.name = "x", .t = {.dtype = EW_F32, .shape = k[i].shape}};
        const struct ew_preprocess p = {
            .resize = k[i].resize, .normalised = true, .std = {0.5, 0.5, 0.5}};
        char text[EW_IMAGE_INPUT_CHARS];
        struct ew_image_input *in;
        if (!EW_EXPECT_OK(ew_image_input_new(&v, &p, "net", &in)))
            continue;
        EW_EXPECT_STR(ew_image_input_text(in, text), k[i].want);
        ew_image_input_free(in);
    }
}

/* Regression: a photograph of 3000x3000 was silently cropped to its centre 224x224, without
 * resizing. */
static void resizes_large_photographs(void)
{
    enum { SIDE = 96, IN = 28 };
    static uint8_t photo[SIDE * SIDE];
    static float in[IN * IN];
    for (int i = 0; i < SIDE * SIDE; i++)
        photo[i] = (uint8_t)(i % SIDE);
    struct ew_tensor image = {.dtype = EW_U8, .shape = {3, {SIDE, SIDE, 1}}, .data = photo};
    struct ew_preprocess p = {.normalised = true, .std = {1 / 255.0}};
    const struct ew_shape shape = {4, {1, 1, IN, IN}};
    EW_EXPECT_OK(fill(&image, &p, &shape, in));
    /* 28 / 0.875 = 32 pixels of width 3: the crop begins after 2 of them, sampled at the centre of
     * the third. */
    EW_EXPECT_NEAR(in[0], 2 * 3 + 1, 0.6);
    EW_EXPECT_NEAR(in[IN - 1], 29 * 3 + 1, 0.6);
    image.shape = (struct ew_shape){3, {IN, IN, 1}}; /* the input's own size is kept */
    EW_EXPECT_OK(fill(&image, &p, &shape, in));
    for (int i = 0; i < IN * IN; i++)
        EW_EXPECT_NEAR(in[i], photo[i], 1e-4);
    p.normalised = false;
    EW_EXPECT_ERR(fill(&image, &p, &shape, in), EW_ERR_USAGE, "net does not say how its images");
}

/* Unchanged pixels, if the network takes bytes and has no image card. */
static void gives_bytes_to_networks_of_bytes(void)
{
    draw(3);
    uint8_t in[H * W * 3];
    const struct ew_value v = {.name = "x",
                               .t = {.dtype = EW_U8, .shape = {3, {H, W, 3}}, .data = in}};
    const struct ew_tensor image = {.dtype = EW_U8, .shape = {3, {H, W, 3}}, .data = pixels};
    const struct ew_sample sample = ew_image_sample(&image);
    const struct ew_preprocess p = {0};
    struct ew_tensor to = v.t;
    struct ew_image_input *images = NULL;
    if (!EW_EXPECT_OK(ew_image_input_new(&v, &p, "net", &images)))
        return;
    EW_EXPECT_OK(ew_image_input_put(images, &sample, 0, &to));
    EW_EXPECT(memcmp(in, pixels, sizeof(in)) == 0);
    EW_EXPECT_ERR(ew_image_input_put(images, &sample, 1, &to), EW_ERR_ARG,
                  "image 1 of a batch of 1");
    ew_image_input_free(images);
}

static void options_go_over_what_is_known(void)
{
    struct ew_preprocess p = {0};
    char text[EW_PREPROCESS_CHARS];
    EW_EXPECT_OK(ew_preprocess_parse(NULL, NULL, &p));
    EW_EXPECT(!p.normalised);
    EW_EXPECT_OK(ew_preprocess_parse("imagenet", NULL, &p));
    EW_EXPECT_STR(ew_preprocess_text(&p, (const int64_t[]){224, 224, 3}, text),
                  "shorter side to 256, centre 224x224, mean 0.485,0.456,0.406, std "
                  "0.229,0.224,0.225");
    EW_EXPECT_OK(ew_preprocess_parse("0.5", NULL, &p)); /* std is kept */
    EW_EXPECT_NEAR(p.mean[2], 0.5, 0);
    EW_EXPECT_NEAR(p.std[0], 0.229, 0);
    p = (struct ew_preprocess){.resize = EW_RESIZE_COVER};
    EW_EXPECT_OK(ew_preprocess_parse(NULL, "0.5", &p));
    EW_EXPECT_STR(ew_preprocess_text(&p, (const int64_t[]){32, 32, 3}, text),
                  "resized to cover 32x32, mean 0, std 0.5");
    EW_EXPECT_ERR(ew_preprocess_parse("1,2", NULL, &p), EW_ERR_USAGE, "two numbers");
    EW_EXPECT_ERR(ew_preprocess_parse("red", NULL, &p), EW_ERR_USAGE, "not a list");
    EW_EXPECT_ERR(ew_preprocess_parse(NULL, "0", &p), EW_ERR_USAGE, "must be over 0");
}

/* Numbers are taken as stored, whatever colour space the file names: a grey picture of 16 bits, of
 * which the upper 8 are read, and a colour one that says that it is linear. */
static void takes_pixels_as_stored(void)
{
    static const uint8_t deep[] = {
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
        0x52, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x01, 0x10, 0x00, 0x00, 0x00, 0x00, 0x6e,
        0x1b, 0x97, 0x2b, 0x00, 0x00, 0x00, 0x0f, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x10,
        0x70, 0x68, 0xf8, 0xff, 0x8f, 0x01, 0x00, 0x08, 0xa0, 0x02, 0xce, 0xee, 0x06, 0x46, 0x1c,
        0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
    static const uint8_t linear[] = {
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
        0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90,
        0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x04, 0x67, 0x41, 0x4d, 0x41, 0x00, 0x01, 0x86, 0xa0,
        0x31, 0xe8, 0x96, 0x5f, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63,
        0x10, 0x68, 0x38, 0x01, 0x00, 0x01, 0xfc, 0x01, 0x59, 0x4f, 0x0a, 0xea, 0x66, 0x00, 0x00,
        0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
    struct ew_arena a;
    struct ew_tensor t;
    ew_arena_init(&a);
    if (EW_EXPECT_OK(ew_image_decode(deep, sizeof(deep), "deep", 1, &a, &t)))
        EW_EXPECT(memcmp(t.data, (const uint8_t[]){0x10, 0x80, 0xfe}, 3) == 0);
    if (EW_EXPECT_OK(ew_image_decode(linear, sizeof(linear), "linear", 3, &a, &t)))
        EW_EXPECT(memcmp(t.data, (const uint8_t[]){0x10, 0x80, 0xc8}, 3) == 0);
    if (EW_EXPECT_OK(ew_image_decode(linear, sizeof(linear), "linear", 1, &a, &t)))
        EW_EXPECT_INT(*(const uint8_t *)t.data,
                      (299 * 0x10 + 587 * 0x80 + 114 * 0xc8 + 500) / 1000);
    ew_arena_fini(&a);
}

EW_TEST_MAIN(EW_TEST(decodes), EW_TEST(takes_pixels_as_stored), EW_TEST(refuses),
             EW_TEST(whole_after_cut), EW_TEST(absurd_size), EW_TEST(crops_and_normalises),
             EW_TEST(resizes), EW_TEST(crops_each_frame_of_a_clip),
             EW_TEST(says_what_becomes_of_frames), EW_TEST(resizes_large_photographs),
             EW_TEST(gives_bytes_to_networks_of_bytes), EW_TEST(options_go_over_what_is_known))
