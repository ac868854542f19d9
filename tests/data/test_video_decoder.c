/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxed video decoding: crashes of that process, and files that are not videos, end one clip
 * and nothing else. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "data/clip_writer.h"
#include "data/video_decoder.h"
#include "ew_test.h"

#define CLIP "tests/fixtures/clips/left/a.mp4"
#define SIDE 16

static const struct ew_video_opts all = {.stride = 1, .h = SIDE, .w = SIDE};

static bool can_read(void)
{
    struct ew_video *f;
    const ew_err e = ew_video_open(CLIP, &all, &f);
    if (e == EW_OK)
        ew_video_close(f);
    return e != EW_ERR_UNSUPPORTED;
}

/* Number of frames of a file; -1: an error. */
static int64_t count(const char *path)
{
    struct ew_video *f;
    struct ew_video_frame frame = {0};
    bool end = false;
    int64_t n = 0;
    ew_err e = ew_video_open(path, &all, &f);
    if (e != EW_OK)
        return -1;
    while (e == EW_OK && !end) {
        e = ew_video_next(f, &frame, &end);
        n += e == EW_OK && !end;
    }
    ew_video_frame_fini(&frame);
    ew_video_close(f);
    return e == EW_OK ? n : -1;
}

static void whole_files(void)
{
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    EW_EXPECT_INT(count(CLIP), 24);
    EW_EXPECT_INT(count(CLIP), 24); /* by the waiting process */
}

/* A decoder killed in the middle: the clip fails with a message; the next one is read. */
static void a_decoder_dies(void)
{
    struct ew_video *f;
    struct ew_video_frame frame = {0};
    bool end = false;
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    /* Frames larger than a socket's buffer, so that the decoder is in the middle. */
    const struct ew_video_opts large = {.stride = 1, .h = 1024, .w = 1024};
    if (!EW_EXPECT_OK(ew_video_open(CLIP, &large, &f)))
        return;
    EW_EXPECT_OK(ew_video_next(f, &frame, &end));
    EW_EXPECT_INT(frame.full_h * 100 + frame.full_w, 4864);
    EW_EXPECT_INT(kill(ew_video_process(f), SIGKILL), 0);
    ew_err e = EW_OK;
    for (int i = 0; i < 24 && e == EW_OK && !end; i++)
        e = ew_video_next(f, &frame, &end);
    EW_EXPECT(e == EW_ERR_FORMAT && strstr(ew_error_message(), "died of signal 9"));
    EW_EXPECT_OK(ew_video_next(f, &frame, &end));
    EW_EXPECT(end);
    ew_video_close(f);
    ew_video_frame_fini(&frame);
    EW_EXPECT_INT(count(CLIP), 24);
}

/* Signals to the whole group are for the program alone. */
static void signals_are_for_the_program(void)
{
    struct ew_video *f;
    struct ew_video_frame frame = {0};
    bool end = false;
    int n = 0;
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    EW_EXPECT_OK(ew_video_open(CLIP, &all, &f));
    for (; !end && EW_EXPECT_OK(ew_video_next(f, &frame, &end)); n += !end)
        kill(ew_video_process(f), n % 2 ? SIGTERM : SIGHUP);
    EW_EXPECT_INT(n, 24);
    ew_video_close(f);
    ew_video_frame_fini(&frame);
}

/* Decoders are forked by a process with no other threads, whose locks they would inherit. */
static void forked_apart(void)
{
    struct ew_video *f;
    char path[64], text[512] = "";
    int parent = 0;
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    EW_EXPECT_OK(ew_video_open(CLIP, &all, &f));
    snprintf(path, sizeof(path), "/proc/%d/stat", ew_video_process(f));
    const size_t n = ew_file_head(path, text, sizeof(text) - 1);
    const char *state = strrchr(text, ')');
    if (n == 0 || !state)
        EW_SKIP("no /proc");
    EW_EXPECT(sscanf(state, ") %*c %d", &parent) == 1 && parent != (int)getpid());
    ew_video_close(f);
}

/* An idle one is killed without effect. */
static void a_waiting_decoder_dies(void)
{
    struct ew_video *f;
    struct ew_video_frame frame = {0};
    bool end = false;
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    EW_EXPECT_OK(ew_video_open(CLIP, &all, &f));
    while (!end && EW_EXPECT_OK(ew_video_next(f, &frame, &end)))
        continue;
    const int pid = ew_video_process(f);
    ew_video_close(f);
    ew_video_frame_fini(&frame);
    EW_EXPECT_INT(kill(pid, SIGKILL), 0);
    usleep(100000);
    const int64_t n = count(CLIP);
    EW_EXPECT(n == 24 || n == -1); /* it may be found dead during the request */
    EW_EXPECT_INT(count(CLIP), 24);
}

static void expect_bad(const char *path, const char *text)
{
    struct ew_video *f;
    struct ew_video_frame frame = {0};
    bool end = false;
    ew_err e = ew_video_open(path, &all, &f);
    if (e == EW_OK) {
        e = ew_video_next(f, &frame, &end);
        ew_video_close(f);
    }
    ew_video_frame_fini(&frame);
    EW_EXPECT(e == EW_ERR_FORMAT);
    if (!strstr(ew_error_message(), text))
        EW_FAIL("%s: says %s", path, ew_error_message());
}

/* A WAV file of a few samples. */
static const char *make_audio(void)
{
    static char bytes[44 + 800] = "RIFF";
    const uint32_t sizes[] = {36 + 800, 16, 8000, 8000, 800};
    const uint16_t kind[] = {1, 1}, depth[] = {1, 8};
    memcpy(bytes + 4, &sizes[0], 4);
    memcpy(bytes + 8, "WAVEfmt ", 8);
    memcpy(bytes + 16, &sizes[1], 4);
    memcpy(bytes + 20, kind, 4);
    memcpy(bytes + 24, &sizes[2], 8);
    memcpy(bytes + 32, depth, 4);
    memcpy(bytes + 36, "data", 4);
    memcpy(bytes + 40, &sizes[4], 4);
    memset(bytes + 44, 128, 800);
    return ew_test_file("audio.mp4", bytes, sizeof(bytes));
}

static void files_that_are_none(void)
{
    char here[4096], list[8192];
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    expect_bad(ew_test_file("empty.mp4", "", 0), "empty.mp4");
    expect_bad(ew_test_file("text.mp4", "no video", 8), "no video file");
    expect_bad(make_audio(), "has no video");
    /* A playlist of other files, which FFmpeg would open: the sandbox prevents it. */
    if (EW_EXPECT(getcwd(here, sizeof(here)))) {
        const int n =
            snprintf(list, sizeof(list), "ffconcat version 1.0\nfile '%s/%s'\n", here, CLIP);
        expect_bad(ew_test_file("list.mp4", list, (size_t)n), "list.mp4");
    }
    EW_EXPECT_INT(count(CLIP), 24);
    struct ew_video *f;
    const struct ew_video_opts huge = {.stride = 1, .h = 100000, .w = 4};
    EW_EXPECT(ew_video_open(CLIP, &huge, &f) == EW_ERR_LIMIT);
    EW_EXPECT(ew_video_open(ew_test_path("none.mp4"), &all, &f) != EW_OK);
}

/* Written frames are read back; too large ones are refused. */
static void written_files(void)
{
    enum { H = 32, W = 48, WIDE = 8200 };
    static uint8_t rgb[16 * WIDE * 3];
    struct ew_clip_writer *w = NULL;
    if (!can_read())
        EW_SKIP("%s", ew_error_message());
    const char *path = ew_test_path("written.mp4");
    const ew_err e = ew_clip_writer_open(path, H, W, &w);
    if (e == EW_ERR_UNSUPPORTED)
        EW_SKIP("%s", ew_error_message());
    if (!EW_EXPECT_OK(e))
        return;
    for (int i = 0; i < 10; i++) {
        memset(rgb, 20 * i, H * W * 3);
        EW_EXPECT_OK(ew_clip_writer_put(w, rgb, (const int64_t[]){H, W}, i * 40000));
        if (i == 5) /* another size, and without a timestamp */
            EW_EXPECT_OK(ew_clip_writer_put(w, rgb, (const int64_t[]){16, 64}, 0));
    }
    EW_EXPECT_OK(ew_clip_writer_close(w));
    EW_EXPECT_INT(count(path), 11);
    EW_EXPECT(ew_clip_writer_open(ew_test_path("kind.unknown"), H, W, &w) == EW_ERR_USAGE);
    path = ew_test_path("wide.mp4");
    if (ew_clip_writer_open(path, 16, WIDE, &w) != EW_OK)
        return; /* this encoder does not produce any */
    EW_EXPECT_OK(ew_clip_writer_put(w, rgb, (const int64_t[]){16, WIDE}, 0));
    EW_EXPECT_OK(ew_clip_writer_close(w));
    expect_bad(path, "8200");
}

EW_TEST_MAIN(EW_TEST(whole_files), EW_TEST(signals_are_for_the_program), EW_TEST(forked_apart),
             EW_TEST(a_decoder_dies), EW_TEST(a_waiting_decoder_dies), EW_TEST(files_that_are_none),
             EW_TEST(written_files))
