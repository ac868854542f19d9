/* SPDX-License-Identifier: Apache-2.0 */
/* What `edgewise run` puts into a network and shows of what comes out. */
#ifndef EW_CLI_RUN_IO_H
#define EW_CLI_RUN_IO_H

#include "base/json.h"
#include "data/image_file.h"
#include "format/image_input.h"
#include "network/network.h"
#include "plan/plan.h"

#define EW_RUN_INPUTS 16

/* Files for inputs: "FILE" or "NAME=FILE", tensors (.npy, .pb) or images. */
struct ew_run_inputs {
    struct ew_arena arena;
    struct ew_run_input {
        const char *name; /* "": the input at this position */
        const char *path;
        bool is_image;      /* decoded once the network says how large */
        struct ew_tensor t; /* else */
    } list[EW_RUN_INPUTS];
    int n;
};

/* Reads `words`; a word may be a list, divided by commas.  Release with fini, also on failure. */
ew_err ew_run_inputs_read(const char *const *words, int n, struct ew_run_inputs *out);
void ew_run_inputs_fini(struct ew_run_inputs *in);

/* What is known of the network's inputs from tensors, and of images from `image` ([N, C, H, W];
 * NULL: nothing); returns how many of `out` were filled. */
int ew_run_known(const struct ew_run_inputs *in, const int64_t *image,
                 struct ew_onnx_input out[EW_RUN_INPUTS]);

/* The batch of the first tensor; 1 where there is none. */
int64_t ew_run_batch(const struct ew_run_inputs *in);

/* Copies tensors and decodes images, or draws; the graph's inputs are the plan's. */
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

/* ---- Many images ---- */

/* Files that are shown one after the other. */
struct ew_run_frames {
    const char *const *paths;
    int n;
};

/* The images of folders and of "-" (names on standard input), and with `always` those that are
 * named.  None (n 0) where the words are one input each. */
ew_err ew_run_frames_find(const char *const *words, int n, bool always, struct ew_arena *a,
                          struct ew_run_frames *out);

/* The files of the inputs, all of them images. */
ew_err ew_run_frames_of(const struct ew_run_inputs *in, struct ew_arena *a,
                        struct ew_run_frames *out);

struct ew_run_stream {
    const char *name;
    const struct ew_network *net;
    struct ew_plan *p;
    struct ew_run_show show;
    struct ew_run_frames frames;
    double fps; /* 0: each as soon as the one before is done */
    double seconds, budget_ms;
    bool json;
};

/* Runs and prints them. */
ew_err ew_run_stream(const struct ew_run_stream *s);

/* "a.npy" for the first of several outputs, "a_1.npy" for the second. */
const char *ew_run_output_path(struct ew_arena *a, const char *path, int index);

/* Refuses an image where the network is named: the arguments were given the other way round. */
ew_err ew_run_check_order(const char *network);

#endif
