/* SPDX-License-Identifier: Apache-2.0 */
/* Clips from video files: a square that moves to the left or to the right, in 24 frames of 64x48.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/clip_file.h"
#include "data/data.h"
#include "ew_test.h"

#define CLIPS "tests/fixtures/clips"
#define SIDE  32

/* Where the light of a frame is, along x. */
static double centre(const uint8_t *frame)
{
    double sum = 0, at = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        sum += frame[3 * i];
        at += frame[3 * i] * (double)(i % SIDE);
    }
    return sum > 0 ? at / sum : -1;
}

/* False where there is no FFmpeg. */
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

/* More frames than there are: the last one again. */
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
    EW_EXPECT_ERR(ew_dataset_open("clips:path=tests/fixtures", &d), EW_ERR_FORMAT,
                  "no video files");
}

/* Cut off and damaged anywhere: an error or frames, never a fault. */
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

EW_TEST_MAIN(EW_TEST(frames_in_order), EW_TEST(short_files), EW_TEST(as_a_data_set),
             EW_TEST(damaged_files))
