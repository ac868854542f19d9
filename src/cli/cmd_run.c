/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise run: one input through a network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "cli/cmd.h"
#include "cli/network.h"
#include "cli/run_io.h"
#include "format/tensor_file.h"

#define MAX_LABELS_BYTES ((size_t)16 << 20)

struct opts {
    const char *input, *output, *mean, *std, *labels;
    bool random, reference;
    struct ew_ints size;
    double scale;
    int64_t resize, top, seed, threads;
};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "input", .type = EW_FIELD_STR, .offset = offsetof(struct opts, input),
     .metavar = "[NAME=]FILE", .letter = 'i',
     .help = "tensor (.npy, .pb) or image (PNG, JPEG); several: divided by commas, or as arguments"},
    {.name = "random", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, random),
     .help = "standard normal numbers from --seed"},
    {.name = "output", .type = EW_FIELD_STR, .offset = offsetof(struct opts, output),
     .metavar = "FILE", .letter = 'o', .help = "write the output as .npy or .pb"},
    {.name = "top", .type = EW_FIELD_INT, .offset = offsetof(struct opts, top), .def = "5",
     .min = 0, .max = 100, .metavar = "N", .help = "classes to show; 0: statistics"},
    {.name = "labels", .type = EW_FIELD_STR, .offset = offsetof(struct opts, labels),
     .metavar = "FILE", .help = "names of the classes, one a line"},
    {.name = "scale", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, scale),
     .def = "0.00392156862745098", .metavar = "S",
     .help = "images: pixels (0 to 255) are multiplied by it, then mean and std apply"},
    {.name = "mean", .type = EW_FIELD_STR, .offset = offsetof(struct opts, mean), .def = "0",
     .metavar = "M,M,M", .help = "images: subtracted, by channel; \"imagenet\" sets mean and std"},
    {.name = "std", .type = EW_FIELD_STR, .offset = offsetof(struct opts, std), .def = "1",
     .metavar = "D,D,D", .help = "images: divided by, by channel"},
    {.name = "resize", .type = EW_FIELD_INT, .offset = offsetof(struct opts, resize), .def = "0",
     .min = 0, .max = 65536, .metavar = "PIXELS",
     .help = "images: the shorter side before the middle is taken; 0: as it is"},
    {.name = "size", .type = EW_FIELD_INTS, .offset = offsetof(struct opts, size), .min = 1,
     .max = 65536, .metavar = "HxWxC", .help = "size of the first input, where it is open"},
    {.name = "seed", .type = EW_FIELD_INT, .offset = offsetof(struct opts, seed), .def = "1",
     .metavar = "N", .help = "of --random, and of the weights of a network of the zoo"},
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads), .def = "0",
     .min = 0, .max = 256, .metavar = "N", .help = "threads; 0: one for each CPU"},
    {.name = "reference", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, reference),
     .help = "the plain kernels and the graph as it is: slow, and what the others are tested by"},
    EW_FIELD_END};
/* clang-format on */

/* One run of the command. */
struct job {
    struct ew_cmd_call *c;
    const struct opts *o;
    struct ew_arena arena;
    struct ew_run_inputs in;
    struct ew_image_prep prep;
    struct ew_run_show show;
    struct ew_graph *g;
    struct ew_plan *p;
    double run_ms;
};

/* ---- Options ---- */

/* "0.5" for all channels, or one number for each. */
static ew_err parse_channels(const char *option, const char *text, double *out)
{
    char buf[256];
    snprintf(buf, sizeof(buf), "%s", text);
    char *save = NULL;
    int n = 0;
    for (char *w = strtok_r(buf, ",x", &save); w; w = strtok_r(NULL, ",x", &save)) {
        EW_CHECK(n < EW_IMAGE_CHANNELS && ew_num_float(w, &out[n]), EW_ERR_USAGE,
                 "--%s: \"%s\" is not a list of at most %d numbers", option, text,
                 EW_IMAGE_CHANNELS);
        n++;
    }
    EW_CHECK(n > 0, EW_ERR_USAGE, "--%s needs a number", option);
    for (int i = n; i < EW_IMAGE_CHANNELS; i++)
        out[i] = out[n == 1 ? 0 : n - 1];
    return EW_OK;
}

static ew_err read_prep(struct job *j)
{
    const struct opts *o = j->o;
    const bool imagenet = strcmp(o->mean, "imagenet") == 0;
    j->prep = (struct ew_image_prep){.resize = o->resize, .scale = o->scale};
    EW_TRY(parse_channels("mean", imagenet ? "0.485,0.456,0.406" : o->mean, j->prep.mean));
    return parse_channels("std", imagenet ? "0.229,0.224,0.225" : o->std, j->prep.std);
}

static ew_err read_labels(struct job *j)
{
    j->show.top = (int)j->o->top;
    if (!j->o->labels)
        return EW_OK;
    EW_CLEANUP(ew_free_ptr) char *bytes = NULL;
    size_t size;
    EW_TRY(ew_file_read(j->o->labels, MAX_LABELS_BYTES, &bytes, &size));
    int lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == '\n';
    char *copy = ew_arena_strdup(&j->arena, bytes), *save = NULL;
    const char **list = ew_arena_array(&j->arena, (size_t)lines, sizeof(*list));
    EW_CHECK(copy && list, EW_ERR_MEMORY, "%s: no memory", j->o->labels);
    int n = 0;
    for (char *w = strtok_r(copy, "\n", &save); w && n < lines; w = strtok_r(NULL, "\n", &save))
        list[n++] = w;
    j->show.labels = list;
    j->show.n_labels = n;
    return EW_OK;
}

static ew_err read_inputs(struct job *j)
{
    const struct ew_cmd_call *c = j->c;
    const char **words = ew_arena_array(&j->arena, (size_t)c->n_args, sizeof(*words));
    EW_CHECK(words, EW_ERR_MEMORY, "no memory");
    int n = 0;
    if (j->o->input)
        words[n++] = j->o->input;
    for (int i = 1; i < c->n_args; i++)
        words[n++] = c->args[i];
    EW_CHECK(n > 0 || j->o->random, EW_ERR_USAGE, "there is no input: --input FILE or --random");
    EW_CHECK(n == 0 || !j->o->random, EW_ERR_USAGE, "--random and input files exclude each other");
    return ew_run_inputs_read(words, n, &j->in);
}

/* ---- The network ---- */

static ew_err load(struct job *j)
{
    const char *what = j->c->args[0];
    if (ew_network_is_file(what))
        return ew_run_load(what, &j->in, &j->o->size, &j->g);
    const struct ew_network_opts net = {.input = j->o->size, .width = 1, .batch = 1};
    const ew_err e = ew_network_load(what, &net, &j->g);
    if (e == EW_ERR_NOT_FOUND)
        ew_cmd_hint(j->c, "edgewise models lists the networks");
    EW_TRY(e);
    EW_INFO("%s has random weights (seed %lld)", what, (long long)j->o->seed);
    EW_TRY(ew_model_init(what, (uint64_t)j->o->seed, j->g));
    return ew_run_fit_batch(j->g, &j->in);
}

static ew_err compute(struct job *j)
{
    const struct ew_plan_opts po = {
        .mode = EW_PLAN_INFER,
        .seed = (uint64_t)j->o->seed,
        .optimize = !j->o->reference,
        .backend = {.threads = (int)j->o->threads, .reference = j->o->reference}};
    EW_TRY(ew_plan_compile(j->g, &po, &j->p));
    if (j->o->random)
        EW_TRY(ew_run_fill_random(j->g, j->p, (uint64_t)j->o->seed));
    else
        EW_TRY(ew_run_fill(j->g, j->p, &j->in, &j->prep));
    const int64_t start = ew_clock_ns();
    EW_TRY(ew_plan_run(j->p));
    j->run_ms = (double)(ew_clock_ns() - start) * 1e-6;
    return EW_OK;
}

/* ---- What came out ---- */

static const char *output_name(const struct job *j, int i)
{
    return j->g->values[j->g->outputs[i]].name;
}

static ew_err write_outputs(struct job *j)
{
    for (int i = 0; j->o->output && i < j->g->n_outputs; i++) {
        const char *path = ew_run_output_path(&j->arena, j->o->output, i);
        EW_CHECK(path, EW_ERR_MEMORY, "no memory");
        EW_TRY(ew_tensor_file_write(path, ew_plan_output(j->p, i), output_name(j, i)));
    }
    return EW_OK;
}

static ew_err print(struct job *j)
{
    if (!j->c->json) {
        for (int i = 0; i < j->g->n_outputs; i++)
            ew_run_print(output_name(j, i), ew_plan_output(j->p, i), &j->show);
        EW_INFO("one run: %.2f ms", j->run_ms);
        return EW_OK;
    }
    struct ew_json json;
    ew_json_init(&json, stdout);
    ew_json_object(&json, NULL);
    ew_json_str(&json, "name", j->c->args[0]);
    ew_json_num(&json, "run_ms", j->run_ms);
    ew_json_array(&json, "outputs");
    for (int i = 0; i < j->g->n_outputs; i++)
        ew_run_print_json(&json, output_name(j, i), ew_plan_output(j->p, i), &j->show);
    ew_json_end(&json);
    ew_json_end(&json);
    return ew_json_finish(&json);
}

static ew_err work(struct job *j)
{
    if (j->o->output)
        EW_TRY(ew_tensor_file_check(j->o->output));
    EW_TRY(read_prep(j));
    EW_TRY(read_labels(j));
    EW_TRY(read_inputs(j));
    EW_TRY(load(j));
    EW_TRY(compute(j));
    EW_TRY(write_outputs(j));
    return print(j);
}

static ew_err run(struct ew_cmd_call *c)
{
    struct job *j = calloc(1, sizeof(*j));
    EW_CHECK(j, EW_ERR_MEMORY, "no memory");
    j->c = c;
    j->o = c->opts;
    ew_arena_init(&j->arena);
    const ew_err e = work(j);
    ew_plan_free(j->p);
    ew_graph_free(j->g);
    ew_run_inputs_fini(&j->in);
    ew_arena_fini(&j->arena);
    free(j);
    return e;
}

const struct ew_cmd ew_cmd_run = {
    .name = "run",
    .group = EW_CMD_NETWORK,
    .summary = "put one input through a network and show what comes out",
    .args = "NAME|FILE.onnx|CKPT [[NAME=]FILE...]",
    .about = "An input is a tensor (.npy or ONNX's .pb) or an image, of which the middle is taken, "
             "resized only where it is too small or --resize says so.\n"
             "Pixels become (pixel x scale - mean) / std.\n"
             "One row of scores is shown as classes, anything else by its statistics.",
    .examples = "run squeezenet.onnx --input cat.jpg --mean imagenet\n"
                "run model.onnx --input x=x.npy,mask=mask.npy --output y.npy\n"
                "run resnet18 --random --json",
    .min_args = 1,
    .max_args = -1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
