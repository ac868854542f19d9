/* SPDX-License-Identifier: Apache-2.0 */
/* What is in this image?  Loads an engine, runs an image through it, prints the five best classes.
 *
 *   cc classify.c $(pkg-config --cflags --libs edgewise) -lm -o classify
 *   edgewise compile mobilenet_v2.onnx -o net.ewe --mean imagenet --class-names classes.txt
 *   ./classify net.ewe cat.jpg */
#include <edgewise.h>
#include <math.h>
#include <stdio.h>

/* Prints the best of n scores, each with its softmax probability. */
static void print_best(const struct ew_engine *e, const float *score, int n)
{
    double sum = 0;
    int shown[5];
    for (int i = 0; i < n; i++)
        sum += exp((double)score[i]);
    for (int k = 0; k < 5 && k < n; k++) {
        int best = -1;
        for (int i = 0; i < n; i++) {
            int seen = 0;
            for (int j = 0; j < k; j++)
                seen |= shown[j] == i;
            if (!seen && (best < 0 || score[i] > score[best]))
                best = i;
        }
        shown[k] = best;
        printf("%5.1f %%  class %d  %s\n", 100 * exp((double)score[best]) / sum, best,
               ew_engine_class(e, best));
    }
}

static ew_err classify(const struct ew_engine *e, struct ew_context *c, const char *path)
{
    size_t bytes;
    ew_err err = ew_context_read_image(c, 0, path);
    if (!err)
        err = ew_context_run(c);
    const float *score = ew_context_output(c, 0, &bytes);
    if (!err)
        print_best(e, score, (int)(bytes / sizeof(*score)));
    return err;
}

int main(int argc, char **argv)
{
    struct ew_engine *e = NULL;
    struct ew_context *c = NULL;
    if (argc != 3)
        return fprintf(stderr, "usage: classify ENGINE.ewe IMAGE\n"), 2;
    ew_err err = ew_engine_load(argv[1], &e);
    if (!err)
        err = ew_context_new(e, 0, &c);
    if (!err)
        err = classify(e, c, argv[2]);
    if (err)
        fprintf(stderr, "classify: %s\n", ew_error_message());
    ew_context_free(c);
    ew_engine_free(e);
    return err ? 1 : 0;
}
