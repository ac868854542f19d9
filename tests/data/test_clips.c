/* SPDX-License-Identifier: Apache-2.0 */
/* Clips from video files: a square that moves left or right, in 24 frames of 64x48. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/clip_file.h"
#include "data/data.h"
#include "data/loader.h"
#include "data/packed.h"
#include "ew_test.h"

#define CLIPS "tests/fixtures/clips"
#define SIDE  32

/* Centre of brightness of a frame, along x. */
static double centre(const uint8_t *frame)
{
    double sum = 0, at = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        sum += frame[3 * i];
        at += frame[3 * i] * (double)(i % SIDE);
    }
    return sum > 0 ? at / sum : -1;
}

/* False without FFmpeg. */
static bool can_read(void)
{
    static uint8_t to[SIDE * SIDE * 3];
    const struct ew_clip_opts o = {.frames = 1, .stride = 1, .h = SIDE, .w = SIDE};
    return ew_clip_read(CLIPS "/left/a.mp4", &o, to) != EW_ERR_UNSUPPORTED;
}

static void frames_in_order(void)
{
    enum { N = 8 };
    static uint8_t to[2][N * SIDE * SIDE * 3];
    const struct ew_clip_opts o = {.frames = N, .stride = 2, .h = SIDE, .w = SIDE};
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    EW_EXPECT_OK(ew_clip_read(CLIPS "/left/a.mp4", &o, to[0]));
    EW_EXPECT_OK(ew_clip_read(CLIPS "/right/a.mp4", &o, to[1]));
    for (int f = 1; f < N; f++) {
        const int size = SIDE * SIDE * 3;
        EW_EXPECT(centre(to[0] + f * size) < centre(to[0] + (f - 1) * size) - 1);
        EW_EXPECT(centre(to[1] + f * size) > centre(to[1] + (f - 1) * size) + 1);
    }
}

/* More frames than the file has: the last one is repeated. */
static void short_files(void)
{
    enum { N = 40, SIZE = SIDE * SIDE * 3 };
    static uint8_t to[N * SIZE];
    const struct ew_clip_opts o = {.frames = N, .stride = 1, .h = SIDE, .w = SIDE};
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    EW_EXPECT_OK(ew_clip_read(CLIPS "/left/a.mp4", &o, to));
    EW_EXPECT(memcmp(to + 23 * SIZE, to + 39 * SIZE, SIZE) == 0);
    EW_EXPECT(memcmp(to + 22 * SIZE, to + 23 * SIZE, SIZE) != 0);
}

static void as_a_data_set(void)
{
    struct ew_dataset *d;
    struct ew_sample s = {0};
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    if (!EW_EXPECT_OK(ew_dataset_open("clips:path=" CLIPS ",frames=4,stride=3,size=32", &d)))
        return;
    const struct ew_dataset_info *info = ew_dataset_info(d);
    EW_EXPECT_INT(info->count[EW_SPLIT_TRAIN], 2);
    EW_EXPECT_INT(info->classes, 2);
    EW_EXPECT(info->frames == 4 && info->h == 4 * SIDE && info->w == SIDE && info->c == 3);
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 1, &s));
    EW_EXPECT_STR(ew_dataset_class(d, s.label), "right");
    EW_EXPECT(s.h == 4 * SIDE && s.w == SIDE);
    ew_sample_fini(&s);
    ew_dataset_close(d);
    EW_EXPECT_ERR(ew_dataset_open("clips:frames=4", &d), EW_ERR_USAGE, "path=FOLDER");
    EW_EXPECT_ERR(ew_dataset_open("clips:path=tests/fixtures/boards", &d), EW_ERR_FORMAT,
                  "no video files");
}

/* Truncated or damaged anywhere: an error or frames, never a crash. */
static void damaged_files(void)
{
    static uint8_t to[4 * SIDE * SIDE * 3];
    const struct ew_clip_opts o = {.frames = 4, .stride = 1, .h = SIDE, .w = SIDE};
    char *bytes = NULL;
    size_t size;
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    EW_EXPECT_ERR(ew_clip_read(ew_test_file("text.mp4", "no video", 8), &o, to), EW_ERR_FORMAT,
                  "text.mp4: no video file");
    EW_EXPECT_ERR(ew_clip_read(ew_test_path("none.mp4"), &o, to), EW_ERR_NOT_FOUND, "none.mp4");
    if (!EW_EXPECT_OK(ew_file_read(CLIPS "/left/a.mp4", 1 << 20, &bytes, &size)))
        return;
    for (size_t cut = 0; cut < size; cut += 97)
        (void)ew_clip_read(ew_test_file("cut.mp4", bytes, cut), &o, to);
    for (size_t at = 5; at < size; at += 61) {
        bytes[at] ^= 0x55;
        (void)ew_clip_read(ew_test_file("bent.mp4", bytes, size), &o, to);
        bytes[at] ^= 0x55;
    }
    free(bytes);
}

/* Clips from the beginning to the end of a file. */
static void places_in_a_file(void)
{
    enum { SIZE = SIDE * SIDE * 3 };
    static uint8_t whole[24 * SIZE], part[4 * SIZE];
    struct ew_clip_opts o = {.frames = 24, .stride = 1, .h = SIDE, .w = SIDE};
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    EW_EXPECT_OK(ew_clip_read(CLIPS "/left/a.mp4", &o, whole));
    static const double places[] = {-0.5, 0, 0.5};
    for (int i = 0; i < 3; i++) {
        o.frames = 4;
        o.place = places[i];
        EW_EXPECT_OK(ew_clip_read(CLIPS "/left/a.mp4", &o, part));
        EW_EXPECT(memcmp(part, whole + 10 * i * SIZE, sizeof(part)) == 0);
    }
    o.place = 0.6;
    EW_EXPECT(ew_clip_read(CLIPS "/left/a.mp4", &o, part) == EW_ERR_ARG);
}

static void official_splits(void)
{
    struct ew_dataset *d;
    struct ew_sample s = {0};
    char spec[2048];
    static const char train[] = "right/a.mp4 2\n", test[] = "left/a.mp4\r\n\n",
                      none[] = "up/a.mp4\n";
    char a[512], b[512];
    snprintf(a, sizeof(a), "%s", ew_test_file("trainlist.txt", train, sizeof(train) - 1));
    snprintf(b, sizeof(b), "%s", ew_test_file("testlist.txt", test, sizeof(test) - 1));
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    snprintf(spec, sizeof(spec), "clips:path=" CLIPS ",frames=2,size=32,train=%s,test=%s", a, b);
    if (!EW_EXPECT_OK(ew_dataset_open(spec, &d)))
        return;
    EW_EXPECT_INT(ew_dataset_info(d)->count[EW_SPLIT_TRAIN], 1);
    EW_EXPECT_INT(ew_dataset_info(d)->count[EW_SPLIT_TEST], 1);
    EW_EXPECT_INT(ew_dataset_info(d)->classes, 2);
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 0, &s));
    EW_EXPECT_STR(ew_dataset_class(d, s.label), "right");
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TEST, 0, &s));
    EW_EXPECT_STR(ew_dataset_class(d, s.label), "left");
    ew_sample_fini(&s);
    ew_dataset_close(d);
    snprintf(spec, sizeof(spec), "clips:path=" CLIPS ",train=%s",
             ew_test_file("nolist.txt", none, sizeof(none) - 1));
    EW_EXPECT_ERR(ew_dataset_open(spec, &d), EW_ERR_NOT_FOUND, "up/a.mp4");
}

/* Packed clips equal the original ones. */
static void packed_clips(void)
{
    struct ew_dataset *d = NULL, *e = NULL;
    struct ew_sample a = {0}, b = {0};
    struct ew_pack_result r;
    const struct ew_pack_opts o = {0}, resized = {.h = 8, .w = 8};
    const char *path = ew_test_path("motion.ewpack");
    if (!EW_EXPECT_OK(ew_dataset_open(
            "synthetic:kind=motion,frames=6,size=16,train=4,test=2,classes=2", &d)) ||
        !EW_EXPECT_OK(ew_dataset_pack(d, path, &o, &r)) || !EW_EXPECT_OK(ew_dataset_open(path, &e)))
        return;
    EW_EXPECT_INT(ew_dataset_info(e)->frames, 6);
    EW_EXPECT_INT(ew_dataset_info(e)->h, 6 * 16);
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 3, &a));
    EW_EXPECT_OK(ew_dataset_read(e, EW_SPLIT_TRAIN, 3, &b));
    EW_EXPECT(a.h == b.h && a.label == b.label && memcmp(a.pixels, b.pixels, 6 * 16 * 16 * 3) == 0);
    EW_EXPECT(ew_dataset_pack(d, path, &resized, &r) == EW_ERR_USAGE);
    ew_sample_fini(&a);
    ew_sample_fini(&b);
    ew_dataset_close(e);
    ew_dataset_close(d);
}

/* ---- Augmentation ---- */

#define FRAMES 6
#define DATA   "synthetic:kind=motion,frames=6,size=16,noise=0,train=4,test=1"

/* Loads the first batch of an epoch. */
static bool load(const struct ew_augment *a, int64_t epoch, float *to)
{
    struct ew_loader_opts o = {.split = EW_SPLIT_TRAIN,
                               .batch = 4,
                               .h = FRAMES * 16,
                               .w = 16,
                               .c = 3,
                               .frames = FRAMES,
                               .seed = 3,
                               .augment = *a};
    struct ew_dataset *d = NULL;
    struct ew_loader *l = NULL;
    const struct ew_batch *b = NULL;
    const bool ok = EW_EXPECT_OK(ew_dataset_open(DATA, &d)) && (o.data = d) &&
                    EW_EXPECT_OK(ew_loader_open(&o, &l)) &&
                    EW_EXPECT_OK(ew_loader_start(l, epoch, 0)) &&
                    EW_EXPECT_OK(ew_loader_next(l, &b)) && EW_EXPECT(b && b->n == 4);
    if (ok) {
        memcpy(to, b->images, 4 * FRAMES * 16 * 16 * 3 * sizeof(*to));
        ew_loader_release(l, b);
    }
    ew_loader_close(l);
    ew_dataset_close(d);
    return ok;
}

/* Bit masks of the rows and columns of a frame that are black border. */
static uint32_t border(const float *frame)
{
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++) {
        bool black = true;
        for (int k = 0; k < 16 && black; k++)
            for (int c = 0; c < 3; c++)
                black = black && frame[((i < 16 ? i * 16 + k : k * 16 + i - 16)) * 3 + c] <= 0;
        bits |= (uint32_t)black << i;
    }
    return bits;
}

/* A crop is the same for all frames of a clip, and differs between clips and epochs. */
static void frames_move_together(void)
{
    static float one[4][FRAMES][16 * 16 * 3], again[4][FRAMES][16 * 16 * 3],
        other[4][FRAMES][16 * 16 * 3];
    const struct ew_augment a = {.crop = 4, .flip = true};
    if (!load(&a, 1, one[0][0]) || !load(&a, 1, again[0][0]) || !load(&a, 2, other[0][0]))
        return;
    EW_EXPECT(memcmp(one, again, sizeof(one)) == 0);
    EW_EXPECT(memcmp(one, other, sizeof(one)) != 0);
    int moved = 0;
    for (int i = 0; i < 4; i++) {
        moved += border(one[i][0]) != border(other[i][0]);
        for (int f = 1; f < FRAMES; f++)
            EW_EXPECT(border(one[i][f]) == border(one[i][0]));
    }
    EW_EXPECT(moved > 0);
}

static void places_are_drawn(void)
{
    double low = 1, high = -1;
    for (int64_t i = 0; i < 200; i++) {
        const double p = ew_augment_place(3, 1, i);
        EW_EXPECT(p >= -0.5 && p < 0.5);
        low = p < low ? p : low;
        high = p > high ? p : high;
    }
    EW_EXPECT(low < -0.45 && high > 0.45);
    EW_EXPECT(ew_augment_place(3, 1, 5) < ew_augment_place(3, 2, 5) ||
              ew_augment_place(3, 1, 5) > ew_augment_place(3, 2, 5));
}

EW_TEST_MAIN(EW_TEST(frames_in_order), EW_TEST(short_files), EW_TEST(as_a_data_set),
             EW_TEST(damaged_files), EW_TEST(places_in_a_file), EW_TEST(official_splits),
             EW_TEST(packed_clips), EW_TEST(frames_move_together), EW_TEST(places_are_drawn))
