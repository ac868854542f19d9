/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise run: one input through a network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/cmd.h"
#include "cli/device_opt.h"
#include "cli/image_opts.h"
#include "cli/network.h"
#include "cli/run_io.h"
#include "engine/engine.h"
#include "format/checkpoint.h"
#include "format/image_card.h"
#include "format/tensor_file.h"

struct opts {
    const char *device;
    const char *input, *output;
    struct ew_image_opts image;
    bool random, reference;
    struct ew_ints size;
    double scale, fps, budget, seconds;
    int64_t top, seed, threads;
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
    EW_IMAGE_FIELDS(struct opts, image),
    {.name = "scale", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, scale),
     .def = "0.00392156862745098", .metavar = "S",
     .help = "images: pixels (0 to 255) are multiplied by it, then mean and std apply"},
    {.name = "size", .type = EW_FIELD_INTS, .offset = offsetof(struct opts, size), .min = 1,
     .max = 65536, .metavar = "HxWxC", .help = "size of the first input, where it is open"},
    {.name = "seed", .type = EW_FIELD_INT, .offset = offsetof(struct opts, seed), .def = "1",
     .metavar = "N", .help = "of --random, and of the weights of a network of the zoo"},
    EW_DEVICE_FIELD(struct opts),
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads), .def = "0",
     .min = 0, .max = 256, .metavar = "N", .help = "threads; 0: one for each CPU"},
    {.name = "reference", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, reference),
     .help = "the plain kernels and the graph as it is: slow, and what the others are tested by"},
    {.name = "fps", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, fps), .def = "0",
     .min = 0, .max = 100000, .metavar = "F",
     .help = "images come like a camera's, so many a second; what is not taken in time is lost"},
    {.name = "seconds", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, seconds),
     .def = "0", .min = 0, .max = 1e7, .metavar = "S",
     .help = "--fps: how long, over and over again; 0: every image once"},
    {.name = "budget", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, budget),
     .def = "16.67", .min = 0, .max = 1e7, .metavar = "MS",
     .help = "folders and --fps: images that take longer are counted as missed"},
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
    struct ew_engine *engine; /* where the network is one: g and p are its context's */
    struct ew_context *context;
    struct ew_run_frames frames; /* many images: a folder, a list, a camera */
    double run_ms;
};

/* ---- Options ---- */

static ew_err read_prep(struct job *j)
{
    j->prep = (struct ew_image_prep){.scale = j->o->scale, .std = {1, 1, 1, 1}};
    j->show.top = (int)j->o->top;
    EW_TRY(ew_image_opts_read(&j->o->image, &j->prep));
    return ew_labels_read(j->o->image.labels, &j->arena, &j->show.labels, &j->show.n_labels);
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
    const bool many = j->o->fps > 0 || n > EW_RUN_INPUTS;
    EW_TRY(ew_run_frames_find(words, n, many, &j->arena, &j->frames));
    return j->frames.n ? EW_OK : ew_run_inputs_read(words, n, &j->in);
}

/* ---- The network ---- */

/* The engine knows how its images are made and what its classes are called. */
static ew_err load_engine(struct job *j, const char *path)
{
    const struct opts *o = j->o;
    EW_CHECK(!o->reference && o->size.n == 0, EW_ERR_USAGE,
             "%s: --reference and --size are for networks that are not compiled", path);
    EW_TRY(ew_engine_load(path, &j->engine));
    EW_TRY(ew_context_new(j->engine, (int)o->threads, &j->context));
    const struct ew_engine_card *card = &j->engine->file.card;
    if (j->in.n && !j->in.list[0].is_image && j->in.list[0].t.shape.rank &&
        card->batch_max > card->batch_min)
        EW_TRY(ew_context_set_batch(j->context, j->in.list[0].t.shape.dim[0]));
    j->g = ew_context_graph(j->context);
    j->p = ew_context_plan(j->context);
    memcpy(j->prep.mean, card->mean, sizeof(j->prep.mean));
    for (int i = 0; i < EW_IMAGE_CHANNELS; i++)
        j->prep.std[i] = card->std[i] > 0 ? card->std[i] : 1;
    j->prep.resize = card->resize;
    if (!o->image.labels) {
        j->show.labels = card->classes;
        j->show.n_labels = card->n_classes;
    }
    return ew_image_opts_read(&o->image, &j->prep);
}

/* A file may say so too. */
static ew_err load_file(struct job *j, const char *path)
{
    struct ew_image_card card;
    EW_TRY(ew_network_check_file(path));
    EW_TRY(ew_run_load(path, &j->in, &j->o->size, &j->g));
    EW_TRY(ew_fail_in(ew_image_card_get(j->g, &j->arena, &card), "%s", path));
    ew_image_card_prep(&card, &j->prep);
    if (!j->o->image.labels) {
        j->show.labels = card.classes;
        j->show.n_labels = card.n_classes;
    }
    return ew_image_opts_read(&j->o->image, &j->prep);
}

static ew_err load(struct job *j)
{
    const char *what = j->c->args[0];
    if (ew_engine_file_is(what))
        return load_engine(j, what);
    if (ew_network_is_file(what))
        return load_file(j, what);
    const struct ew_network_opts net = {.input = j->o->size, .width = 1, .batch = 1};
    const ew_err e = ew_network_load(what, &net, &j->g);
    if (e == EW_ERR_NOT_FOUND)
        ew_cmd_hint(j->c, "edgewise models lists the networks");
    EW_TRY(e);
    EW_INFO("%s has random weights (seed %lld)", what, (long long)j->o->seed);
    EW_TRY(ew_model_init(what, (uint64_t)j->o->seed, j->g));
    return ew_run_fit_batch(j->g, &j->in);
}

static ew_err compile(struct job *j)
{
    if (j->p)
        return EW_OK;
    const struct ew_plan_opts po = {
        .mode = EW_PLAN_INFER,
        .seed = (uint64_t)j->o->seed,
        .optimize = !j->o->reference,
        .consume = !j->o->reference,
        .backend = {.threads = (int)j->o->threads, .reference = j->o->reference}};
    return ew_plan_compile(j->g, &po, &j->p);
}

static ew_err compute(struct job *j)
{
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

static ew_err run_frames(struct job *j)
{
    const struct opts *o = j->o;
    EW_CHECK(!o->output, EW_ERR_USAGE, "--output is for one input");
    const struct ew_run_stream s = {.name = j->c->args[0],
                                    .g = j->g,
                                    .p = j->p,
                                    .prep = j->prep,
                                    .show = j->show,
                                    .frames = j->frames,
                                    .fps = o->fps,
                                    .seconds = o->seconds,
                                    .budget_ms = o->budget,
                                    .json = j->c->json};
    return ew_run_stream(&s);
}

/* The importer knows the file's inputs by name, also those whose value became a constant. */
static bool names_are_checked(const struct job *j)
{
    const char *what = j->c->args[0];
    return !j->engine && ew_network_is_file(what) && !ew_checkpoint_is(what);
}

/* Several images for a network with one input are one after the other; more files than inputs are
 * a mistake. */
static ew_err sort_inputs(struct job *j)
{
    const struct ew_run_inputs *in = &j->in;
    bool images = j->g->n_inputs == 1;
    int counted = 0;
    for (int i = 0; i < in->n; i++) {
        images = images && in->list[i].is_image && !*in->list[i].name;
        counted += !*in->list[i].name || !names_are_checked(j);
    }
    EW_CHECK(counted <= j->g->n_inputs || images, EW_ERR_USAGE, "%d files for %d input%s", counted,
             j->g->n_inputs, j->g->n_inputs == 1 ? "" : "s");
    return in->n > 1 && images ? ew_run_frames_of(in, &j->arena, &j->frames) : EW_OK;
}

static ew_err work(struct job *j)
{
    if (j->o->output)
        EW_TRY(ew_tensor_file_check(j->o->output));
    EW_TRY(read_prep(j));
    EW_TRY(read_inputs(j));
    EW_TRY(load(j));
    EW_TRY(sort_inputs(j));
    EW_TRY(compile(j));
    if (j->frames.n)
        return run_frames(j);
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
    if (!j->engine) {
        ew_plan_free(j->p);
        ew_graph_free(j->g);
    }
    ew_context_free(j->context);
    ew_engine_free(j->engine);
    ew_run_inputs_fini(&j->in);
    ew_arena_fini(&j->arena);
    free(j);
    return e;
}

const struct ew_cmd ew_cmd_run = {
    .name = "run",
    .group = EW_CMD_NETWORK,
    .summary = "put inputs through a network and show what comes out",
    .args = "NAME|FILE.onnx|CKPT|FILE.ewe [[NAME=]FILE|FOLDER|-...]",
    .about =
        "An input is a tensor (.npy or ONNX's .pb) or an image, of which the middle is taken, "
        "resized only where it is too small or --resize says so.\n"
        "Pixels become (pixel x scale - mean) / std.\n"
        "One row of scores is shown as classes, anything else by its statistics.\n"
        "The images of a folder or of - (names on standard input), and several, are run one after "
        "the other;\n"
        "with --fps they come like a camera's, and deadlines that were missed are counted.",
    .examples = "run squeezenet.onnx --input cat.jpg --mean imagenet\n"
                "run model.onnx --input x=x.npy,mask=mask.npy --output y.npy\n"
                "run resnet18.ewe images/ --fps 60 --seconds 10\n"
                "run resnet18 --random --json",
    .min_args = 1,
    .max_args = -1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
