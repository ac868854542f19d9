/* SPDX-License-Identifier: Apache-2.0 */
/* Images decoded in a sandboxed process: one that crashes the decoder is reported and affects
 * nothing else, and code in the process cannot reach anything.  libpng's first function is
 * replaced, so that a file can trigger faults. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <png.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "data/image_decoder.h"
#include "data/image_file.h"
#include "data/loader.h"
#include "data_files.h"
#include "ew_test.h"

/* ---- A faulty decoder ------------------------------------------------------------------------ */

#define CRASH "EW-CRASH"
#define REACH "EW-REACH"

/* Attempts that malicious code would make. */
static const char *reach_out(void)
{
    char *const argv[] = {(char[]){"true"}, NULL};
    if (open("/etc/passwd", O_RDONLY) >= 0 || open("/tmp/made", O_WRONLY | O_CREAT, 0600) >= 0)
        return "a file";
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0)
        return "a socket";
    if (kill(getppid(), 0) == 0)
        return "its parent";
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        return "memory to run";
    execv("/bin/true", argv);
    return errno == EPERM ? "nothing" : "a program";
}

/* How the decoder's `struct png_file` begins. */
struct encoded {
    const uint8_t *bytes;
    size_t size;
};

void png_set_read_fn(png_structrp png, png_voidp from, png_rw_ptr take)
{
    static void (*real)(png_structrp, png_voidp, png_rw_ptr);
    const struct encoded *e = from;
    char text[64];
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "png_set_read_fn");
        memcpy(&real, &found, sizeof(real));
    }
    if (memmem(e->bytes, e->size, CRASH, strlen(CRASH)))
        abort();
    if (memmem(e->bytes, e->size, REACH, strlen(REACH))) {
        snprintf(text, sizeof(text), "reaches %s", reach_out());
        png_error(png, text);
    }
    real(png, from, take);
}

static void append(const char *dir, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "ab");
    EW_EXPECT(f && fputs(text, f) >= 0);
    if (f)
        fclose(f);
}

/* ---- Data sets ------------------------------------------------------------------------------- */

#define N 12

static struct ew_dataset *set_with(const char *name, const char *text)
{
    struct ew_dataset *d = NULL;
    const char *dir = ew_data_files_folder(
        name, "train/a/0.png train/a/1.png train/a/2.png train/a/3.png train/a/4.png train/a/5.png "
              "train/b/0.png train/b/1.png train/b/2.png train/b/3.png train/b/4.png "
              "train/b/5.png");
    append(dir, "train/b/1.png", text);
    EW_EXPECT_OK(ew_dataset_open(dir, &d));
    return d;
}

/* Reads the samples of an epoch. */
static int64_t read_all(struct ew_loader *l, int64_t epoch, ew_err *err)
{
    const struct ew_batch *b = NULL;
    int64_t n = 0;
    *err = ew_loader_start(l, epoch, 0);
    while (*err == EW_OK && (*err = ew_loader_next(l, &b)) == EW_OK && b) {
        n += b->n;
        ew_loader_release(l, b);
    }
    return n;
}

static void one_image_crashes(void)
{
    struct ew_dataset *d = set_with("crash", CRASH);
    struct ew_pool *pool = NULL;
    EW_EXPECT_OK(ew_pool_new(2, &pool));
    for (int64_t k = 0; d && k < 4; k++) {
        struct ew_loader_opts o = {
            .data = d, .batch = 5, .workers = k % 3, .pool = k == 3 ? pool : NULL, .shuffle = true};
        struct ew_loader *l = NULL;
        ew_err err;
        o.on_bad = EW_ON_BAD_SKIP;
        ew_test_listen();
        if (!EW_EXPECT_OK(ew_loader_open(&o, &l)))
            break;
        EW_EXPECT_INT(read_all(l, 0, &err), N - 1);
        EW_EXPECT_INT(read_all(l, 1, &err), N - 1);
        EW_EXPECT_INT(ew_test_heard("skipped: "), 1);
        EW_EXPECT_INT(ew_test_heard("b/1.png: the image's decoder died of signal 6"), 1);
        ew_loader_close(l);
        o.on_bad = EW_ON_BAD_STOP;
        if (!EW_EXPECT_OK(ew_loader_open(&o, &l)))
            break;
        read_all(l, 0, &err);
        EW_EXPECT_INT(err, EW_ERR_FORMAT);
        EW_EXPECT_HAS(ew_error_message(), "b/1.png: the image's decoder died of signal 6");
        ew_loader_close(l);
    }
    ew_pool_free(pool);
    ew_dataset_close(d);
}

static void reaches_nothing(void)
{
    struct ew_dataset *d = set_with("reach", REACH);
    struct ew_sample s = {0};
    if (!d)
        return;
    EW_EXPECT_ERR(ew_dataset_read(d, EW_SPLIT_TRAIN, 7, &s), EW_ERR_FORMAT,
                  "b/1.png: reaches nothing");
    ew_sample_fini(&s);
    ew_dataset_close(d);
}

/* ---- Single images --------------------------------------------------------------------------- */

/* A uniform grey picture, as a PNG. */
static struct ew_image_job picture(int side, uint8_t grey)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)side,
                       .height = (png_uint_32)side,
                       .format = PNG_FORMAT_GRAY};
    const size_t n = (size_t)side * (size_t)side;
    uint8_t *pixels = malloc(n), *out = malloc(n + 65536);
    png_alloc_size_t size = n + 65536;
    memset(pixels, grey, n);
    EW_EXPECT(png_image_write_to_memory(&image, out, &size, 0, pixels, 0, NULL));
    free(pixels);
    return (struct ew_image_job){.bytes = out, .size = size};
}

static void free_picture(struct ew_image_job *j)
{
    void *bytes;
    memcpy(&bytes, &j->bytes, sizeof(bytes));
    free(bytes);
}

/* Killed while idle: the next request starts a new one. */
static void killed_while_idle(void)
{
    struct ew_image_decoder *d = NULL;
    struct ew_image_job j = picture(4, 77);
    EW_EXPECT_OK(ew_image_decoder_run(&d, 1, &j, 1));
    const int pid = ew_image_decoder_process(d);
    EW_EXPECT(pid > 0 && kill(pid, SIGKILL) == 0);
    if (ew_image_decoder_run(&d, 1, &j, 1) != EW_OK) /* the request arrived while it died */
        EW_EXPECT_HAS(ew_error_message(), "died of signal 9");
    EW_EXPECT_OK(ew_image_decoder_run(&d, 1, &j, 1));
    EW_EXPECT(ew_image_decoder_process(d) != pid);
    EW_EXPECT(j.err == EW_OK && j.pixels && j.pixels[15] == 77);
    ew_image_decoder_free(d);
    free_picture(&j);
}

/* Signals to the whole group, as systemd's and Slurm's to end it in order, are for the program
 * alone: a network in training still needs the images of its batch. */
static void signals_are_for_the_program(void)
{
    static const int signals[] = {SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGALRM};
    struct ew_image_decoder *d = NULL;
    struct ew_image_job j = picture(4, 77);
    EW_EXPECT_OK(ew_image_decoder_run(&d, 1, &j, 1));
    const int pid = ew_image_decoder_process(d);
    for (size_t i = 0; i < EW_COUNT(signals); i++) {
        EW_EXPECT_INT(kill(pid, signals[i]), 0);
        EW_EXPECT_OK(ew_image_decoder_run(&d, 1, &j, 1));
        EW_EXPECT_INT(ew_image_decoder_process(d), pid);
    }
    ew_image_decoder_free(d);
    free_picture(&j);
}

/* An image larger than the initial shared memory, alone and among others. */
static void large_images(void)
{
    struct ew_image_decoder *d = NULL;
    struct ew_image_job j[3] = {picture(3000, 7), picture(5, 8), picture(6, 9)};
    EW_EXPECT_ERR(ew_image_decoder_run(&d, 3, j, 3), EW_ERR_LIMIT, "no room together");
    for (int i = 0; i < 3; i++) {
        EW_EXPECT_OK(ew_image_decoder_run(&d, 3, &j[i], 1));
        EW_EXPECT_INT(j[i].err, EW_OK);
        const int64_t side = j[i].shape[0];
        EW_EXPECT(side == j[i].shape[1] && j[i].shape[2] == 3);
        EW_EXPECT_INT(j[i].pixels[3 * side * side - 1], 7 + i);
    }
    EW_EXPECT_OK(ew_image_decoder_run(&d, 0, j, 3)); /* the memory has grown */
    EW_EXPECT(j[0].shape[2] == 1 && j[2].pixels[35] == 9);
    ew_image_decoder_free(d);
    for (int i = 0; i < 3; i++)
        free_picture(&j[i]);
}

EW_TEST_MAIN(EW_TEST(one_image_crashes), EW_TEST(reaches_nothing), EW_TEST(killed_while_idle),
             EW_TEST(signals_are_for_the_program), EW_TEST(large_images))
