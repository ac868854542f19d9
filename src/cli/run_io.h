/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs of `edgewise run`. */
#ifndef EW_CLI_RUN_IO_H
#define EW_CLI_RUN_IO_H

#include "base/json.h"
#include "data/image_file.h"
#include "format/image_input.h"
#include "network/network.h"
#include "plan/plan.h"

#define EW_RUN_INPUTS 16

/* Input files: "FILE" or "NAME=FILE", tensors (.npy, .pb) or images. */
struct ew_run_inputs {
    struct ew_arena arena;
    struct ew_run_input {
        const char *name; /* "": by position */
        const char *path;
        bool is_image;      /* decoded when the network's input size is known */
        struct ew_tensor t; /* of a tensor file */
    } list[EW_RUN_INPUTS];
    int n;
};

/* Reads `words`; a word may be a comma-separated list.  Release with fini, also on failure. */
ew_err ew_run_inputs_read(const char *const *words, int n, struct ew_run_inputs *out);
void ew_run_inputs_fini(struct ew_run_inputs *in);

/* The shapes and values known before import: of tensors, and of images with shape `image` ([N, C,
 * H, W]; NULL: not known); returns the number of elements of `out`. */
int ew_run_known(const struct ew_run_inputs *in, const int64_t *image,
                 struct ew_onnx_input out[EW_RUN_INPUTS]);

/* The batch of the first tensor; 1 without tensors. */
int64_t ew_run_batch(const struct ew_run_inputs *in);

/* Copies tensors and decodes images into the plan's inputs, or fills them with random numbers. */
ew_err ew_run_fill(const struct ew_network *net, struct ew_plan *p, struct ew_run_inputs *in);
ew_err ew_run_fill_random(const struct ew_graph *g, struct ew_plan *p, uint64_t seed);

/* How outputs are shown. */
struct ew_run_show {
    int top;
    const char *const *labels; /* or NULL */
    int n_labels;
};

void ew_run_print(const char *name, const struct ew_tensor *t, const struct ew_run_show *how);
void ew_run_print_json(struct ew_json *j, const char *name, const struct ew_tensor *t,
                       const struct ew_run_show *how);

/* The array "top" of classes; nothing if the tensor is not one row of scores. */
void ew_run_top_json(struct ew_json *j, const struct ew_tensor *t, const struct ew_run_show *how);
/* Columns of a CSV file with one line per image, and those of its top classes. */
void ew_run_csv_head(FILE *f, const struct ew_run_show *how);
ew_err ew_run_csv_top(FILE *f, const struct ew_tensor *t, const struct ew_run_show *how);

/* ---- Many images ---- */

/* Images that run one after the other. */
struct ew_run_frames {
    const char *const *paths;
    int n;
};

/* The images of folders and of "-" (names on standard input), and with `always` the named files.  n
 * is 0 if the words are one input each. */
ew_err ew_run_frames_find(const char *const *words, int n, bool always, struct ew_arena *a,
                          struct ew_run_frames *out);

/* The files of the inputs, which are all images. */
ew_err ew_run_frames_of(const struct ew_run_inputs *in, struct ew_arena *a,
                        struct ew_run_frames *out);

struct ew_run_stream {
    const char *name;
    const struct ew_network *net;
    struct ew_plan *p;
    struct ew_run_show show;
    struct ew_run_frames frames;
    double fps;                /* 0: back to back */
    double seconds, budget_ms; /* budget_ms 0: none */
    const char *csv;           /* file for the classes of every image; NULL: none */
    bool json;
};

/* Runs the frames and prints their results. */
ew_err ew_run_stream(const struct ew_run_stream *s);

/* "a.npy" for the first of several outputs, "a_1.npy" for the second. */
const char *ew_run_output_path(struct ew_arena *a, const char *path, int index);

/* Fails with a hint if the network argument is an image: the arguments are swapped. */
ew_err ew_run_check_order(const char *network);

#endif
