/* SPDX-License-Identifier: Apache-2.0 */
/* What does the camera see?  Frames of raw NV12 from standard input, classified one by one, with
 * the time that each takes.
 *
 *   cc camera.c $(pkg-config --cflags --libs edgewise) -o camera
 *   edgewise compile resnet9-cifar10 -o net.ewe
 *   ffmpeg -loglevel error -f v4l2 -i /dev/video0 -f rawvideo -pix_fmt nv12 -s 640x480 - |
 *       ./camera net.ewe 640 480
 *   libcamera-vid -t 0 --codec yuv420 ... or any other source works as well, converted to NV12. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime, also with -std=c11 */
#include <edgewise_pixels.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* One frame through the network: the class with the highest score. */
static ew_err classify(struct ew_context *c, const struct ew_pixels *frame, int *best)
{
    size_t bytes;
    ew_err err = ew_context_put_pixels(c, 0, frame);
    if (!err)
        err = ew_context_run(c);
    const float *score = ew_context_output(c, 0, &bytes);
    *best = 0;
    for (int i = 1; !err && i < (int)(bytes / sizeof(*score)); i++)
        if (score[i] > score[*best])
            *best = i;
    return err;
}

static ew_err watch(const struct ew_engine *e, struct ew_context *c, long width, long height)
{
    const size_t size = (size_t)(width * height * 3 / 2);
    unsigned char *data = malloc(size);
    const struct ew_pixels frame = {.size = sizeof(frame),
                                    .format = EW_PIXEL_NV12,
                                    .width = width,
                                    .height = height,
                                    .data = data};
    ew_err err = EW_OK;
    for (long n = 1; data && !err && fread(data, 1, size, stdin) == size; n++) {
        int best;
        const double start = now_ms();
        err = classify(c, &frame, &best);
        if (!err)
            printf("frame %ld: class %d %s, %.2f ms\n", n, best, ew_engine_class(e, best),
                   now_ms() - start);
    }
    free(data);
    return err;
}

int main(int argc, char **argv)
{
    struct ew_engine *e = NULL;
    struct ew_context *c = NULL;
    if (argc != 4 || atol(argv[2]) <= 0 || atol(argv[3]) <= 0)
        return fprintf(stderr, "usage: camera ENGINE.ewe WIDTH HEIGHT <FRAMES\n"), 2;
    ew_err err = ew_engine_load(argv[1], &e);
    if (!err)
        err = ew_context_new(e, 0, &c);
    if (!err)
        err = watch(e, c, atol(argv[2]), atol(argv[3]));
    if (err)
        fprintf(stderr, "camera: %s\n", ew_error_message());
    ew_context_free(c);
    ew_engine_free(e);
    return err ? 1 : 0;
}
