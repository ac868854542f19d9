/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise run: inference on files, images or video. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cmd.h"
#include "cli/device_opt.h"
#include "cli/run_io.h"
#include "cli/run_video.h"
#include "data/clip_file.h"
#include "data/video_decoder.h"
#include "engine/engine.h"
#include "format/tensor_file.h"
#include "network/image_opts.h"
#include "network/labels.h"
#include "network/network.h"

#define VIDEO_BUDGET_MS (1000.0 / 60) /* one frame at 60 frames/s */

struct opts {
    const char *device;
    int precision;
    const char *input, *output;
    struct ew_image_opts image;
    bool random, reference;
    struct ew_ints size;
    double fps, budget, seconds;
    int64_t top, seed, threads, memory_limit;
    int64_t window, hop;
    const char *annotate, *sheet, *live;
};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "input", .type = EW_FIELD_STR, .offset = offsetof(struct opts, input),
     .metavar = "[NAME=]FILE", .letter = 'i',
     .help = "input tensor (.npy, .pb) or image (PNG, JPEG); several: separated by commas, or as "
     "arguments"},
    {.name = "random", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, random),
     .help = "run on standard normal random inputs (see --seed)"},
    {.name = "output", .type = EW_FIELD_STR, .offset = offsetof(struct opts, output),
     .metavar = "FILE", .letter = 'o',
     .help = "write the output as .npy or .pb; a second output goes to FILE_1.npy, a third to "
     "FILE_2.npy, in the network's order; FILE.csv: --top classes, probabilities and times of "
     "every image"},
    {.name = "top", .type = EW_FIELD_INT, .offset = offsetof(struct opts, top), .def = "5",
     .min = 0, .max = 100, .metavar = "N",
     .help = "number of classes to show; 0: statistics instead"},
    EW_CLASS_NAMES_FIELD(struct opts, image),
    EW_PREPROCESS_FIELDS(struct opts, image),
    {.name = "size", .type = EW_FIELD_INTS, .offset = offsetof(struct opts, size), .min = 1,
     .max = 65536, .metavar = "HxWxC",
     .help = "size of the first input, where the file leaves it open"},
    {.name = "seed", .type = EW_FIELD_INT, .offset = offsetof(struct opts, seed), .def = "1",
     .metavar = "N", .help = "random seed of --random, and of the weights of a zoo network"},
    EW_DEVICE_FIELD(struct opts),
    EW_PRECISION_FIELD(struct opts),
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads), .def = "0",
     .min = 0, .max = 256, .metavar = "N", .help = "number of threads; 0: one per CPU"},
    {.name = "memory-limit", .type = EW_FIELD_SIZE, .offset = offsetof(struct opts, memory_limit),
     .min = 0, .max = 1e15, .metavar = "BYTES",
     .help = "fit into this much memory, weights included, with slower kernels that pack less"},
    {.name = "reference", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, reference),
     .help = "unoptimised reference kernels and no graph passes: slow, for comparison"},
    {.name = "fps", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, fps), .def = "0",
     .min = 0, .max = 100000, .metavar = "F",
     .help = "images arrive at this rate per second, as from a camera, and those that cannot be "
     "processed in time are dropped; 0: as fast as they are processed"},
    {.name = "seconds", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, seconds),
     .def = "0", .min = 0, .max = 1e7, .metavar = "S",
     .help = "with --fps: repeat the images for this long; 0: each image once"},
    {.name = "budget", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, budget),
     .min = 0, .max = 1e7, .metavar = "MS",
     .help = "several images and video: deadline per image, longer ones are counted as missed; "
     "default: 1000 / fps; without --fps none, for video 16.67"},
    {.name = "window", .type = EW_FIELD_INT, .offset = offsetof(struct opts, window), .def = "0",
     .min = 0, .max = 65536, .metavar = "N",
     .help = "video: frames per answer; 0: as many as the network takes"},
    {.name = "hop", .type = EW_FIELD_INT, .offset = offsetof(struct opts, hop), .def = "0",
     .min = 0, .max = 65536, .metavar = "N",
     .help = "video: frames between answers; 0: as many as the network takes"},
    {.name = "annotate", .type = EW_FIELD_STR, .offset = offsetof(struct opts, annotate),
     .metavar = "FILE.mp4", .help = "video: write the video with the answers drawn into it"},
    {.name = "sheet", .type = EW_FIELD_STR, .offset = offsetof(struct opts, sheet),
     .metavar = "FILE.png",
     .help = "video: write a contact sheet of frames and answers (48 at most)"},
    {.name = "live", .type = EW_FIELD_STR, .offset = offsetof(struct opts, live),
     .metavar = "FILE.db",
     .help = "video: show frames and answers live on the page of `edgewise serve --db FILE.db`"},
    EW_FIELD_END};
/* clang-format on */

/* State of one call. */
struct job {
    struct ew_cmd_call *c;
    const struct opts *o;
    struct ew_arena arena;
    struct ew_run_inputs in;
    struct ew_run_show show;
    struct ew_network net;
    struct ew_plan *p;           /* of an engine: owned by its context */
    struct ew_slide *slide;      /* video with overlapping windows: instead of p */
    struct ew_run_frames frames; /* several images: a folder or a list */
    const char *video;           /* video file, camera or stream; NULL: none */
    double run_ms;
};

/* ---- Options ---- */

/* Cameras and network streams are always video; a video file, or raw frames on standard input, only
 * with options of continuous classification. */
static bool is_video(const struct opts *o, const char *word)
{
    const bool over_time = o->window || o->hop || o->annotate || o->sheet || o->live;
    return ew_video_is_live(word) || (ew_clip_is(word) && (over_time || o->fps > 0)) ||
           (strcmp(word, "-") == 0 && over_time);
}

static bool wants_csv(const struct opts *o)
{
    return o->output && ew_ends_with(o->output, ".csv");
}

/* In other commands --input is the size. */
static void check_input(struct job *j)
{
    const char *w = j->o->input;
    const bool size = w && strspn(w, "0123456789x") == strlen(w) && strchr(w, 'x');
    if (size && access(w, F_OK) != 0)
        ew_cmd_hint(j->c, "--size %s sets the size of the input; --input names a file", w);
}

static ew_err read_inputs(struct job *j)
{
    const struct ew_cmd_call *c = j->c;
    const char **words = ew_arena_array(&j->arena, (size_t)c->n_args, sizeof(*words));
    EW_CHECK(words, EW_ERR_MEMORY, "no memory");
    int n = 0;
    check_input(j);
    if (j->o->input)
        words[n++] = j->o->input;
    for (int i = 1; i < c->n_args; i++)
        words[n++] = c->args[i];
    EW_CHECK(n > 0 || j->o->random, EW_ERR_USAGE, "there is no input: --input FILE or --random");
    EW_CHECK(n == 0 || !j->o->random, EW_ERR_USAGE, "give either --random or input files");
    if (n == 1 && is_video(j->o, words[0])) {
        j->video = words[0];
        return EW_OK;
    }
    EW_CHECK(!j->o->window && !j->o->hop && !j->o->annotate && !j->o->sheet && !j->o->live,
             EW_ERR_USAGE,
             "--window, --hop, --annotate, --sheet and --live are for one video file, camera or "
             "stream");
    const bool many = j->o->fps > 0 || n > EW_RUN_INPUTS || (wants_csv(j->o) && n > 0);
    EW_TRY(ew_run_frames_find(words, n, many, &j->arena, &j->frames));
    return j->frames.n ? EW_OK : ew_run_inputs_read(words, n, &j->in);
}

/* ---- The network ---- */

#define IMAGENET_CLASSES 1000

/* Networks with 1,000 classes and no names get those of ImageNet. */
static ew_err name_classes(struct job *j, struct ew_image_card *card)
{
    if (card->n_classes > 0 || j->net.random ||
        ew_image_opts_classes(j->net.graph) != IMAGENET_CLASSES)
        return EW_OK;
    bool found;
    EW_INFO("1,000 classes: showing ImageNet's names; --class-names FILE gives others");
    return ew_labels_builtin("imagenet", &j->arena, card, &found);
}

/* The image card of the network, changed by the options. */
static ew_err read_card(struct job *j)
{
    struct ew_image_card *card = &j->net.card;
    EW_TRY(ew_image_opts_apply(&j->o->image, j->net.graph, &j->arena, card));
    EW_TRY(name_classes(j, card));
    j->show = (struct ew_run_show){
        .top = (int)j->o->top, .labels = card->classes, .n_labels = card->n_classes};
    return EW_OK;
}

static ew_err load(struct job *j)
{
    const struct opts *o = j->o;
    const char *what = j->c->args[0];
    struct ew_onnx_input given[EW_RUN_INPUTS];
    struct ew_network_open_opts how = {.opts = {.input = o->size, .batch = ew_run_batch(&j->in)},
                                       .inputs = given,
                                       .seed = (uint64_t)o->seed,
                                       .engines = true,
                                       .threads = (int)o->threads};
    const int64_t image[] = {1, o->size.v[2], o->size.v[0], o->size.v[1]};
    how.n_inputs = ew_run_known(&j->in, o->size.n == 3 ? image : NULL, given);
    EW_TRY(ew_network_open(what, &how, &j->net));
    EW_CHECK(!j->net.engine || (!o->reference && !o->memory_limit), EW_ERR_USAGE,
             "%s: is a compiled engine; --reference and --memory-limit are for other network files",
             what);
    EW_CHECK(!o->reference || !o->memory_limit, EW_ERR_USAGE,
             "--memory-limit chooses kernels: not with --reference");
    if (j->net.random)
        EW_WARN("%s has random weights: its scores mean nothing", what);
    return read_card(j);
}

static ew_err compile(struct job *j)
{
    if (j->net.engine) {
        j->p = ew_context_plan(j->net.context);
        return EW_OK;
    }
    const struct ew_plan_opts po = {
        .mode = EW_PLAN_INFER,
        .seed = (uint64_t)j->o->seed,
        .optimize = !j->o->reference,
        .consume = !j->o->reference,
        .memory_limit = (size_t)j->o->memory_limit,
        .backend = {.threads = (int)j->o->threads, .reference = j->o->reference}};
    if (j->video && !j->o->reference && !j->o->memory_limit)
        EW_TRY(ew_video_stream_slide(j->net.graph, j->o->window, j->o->hop, &po, &j->slide));
    if (j->slide)
        return EW_OK;
    EW_TRY(ew_plan_compile(j->net.graph, &po, &j->p));
    struct ew_plan_stats s;
    ew_plan_stats(j->p, &s);
    if (s.swapped)
        EW_INFO("to fit: %d layers with kernels that pack less, about %.0f%% more cycles",
                s.swapped, 100 * s.slower);
    return EW_OK;
}

static ew_err compute(struct job *j)
{
    if (j->o->random)
        EW_TRY(ew_run_fill_random(j->net.graph, j->p, (uint64_t)j->o->seed));
    else
        EW_TRY(ew_run_fill(&j->net, j->p, &j->in));
    const int64_t start = ew_clock_ns();
    EW_TRY(ew_plan_run(j->p));
    j->run_ms = (double)(ew_clock_ns() - start) * 1e-6;
    return EW_OK;
}

/* ---- What came out ---- */

static const char *output_name(const struct job *j, int i)
{
    return j->net.graph->values[j->net.graph->outputs[i]].name;
}

static ew_err write_outputs(struct job *j)
{
    for (int i = 0; j->o->output && i < j->net.graph->n_outputs; i++) {
        const char *path = ew_run_output_path(&j->arena, j->o->output, i);
        EW_CHECK(path, EW_ERR_MEMORY, "no memory");
        EW_TRY(ew_tensor_file_write(path, ew_plan_output(j->p, i), output_name(j, i)));
    }
    return EW_OK;
}

static ew_err print(struct job *j)
{
    if (!j->c->json) {
        for (int i = 0; i < j->net.graph->n_outputs; i++)
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
    for (int i = 0; i < j->net.graph->n_outputs; i++)
        ew_run_print_json(&json, output_name(j, i), ew_plan_output(j->p, i), &j->show);
    ew_json_end(&json);
    ew_json_end(&json);
    return ew_json_finish(&json);
}

/* The deadline of an image in ms; `other` if neither --budget nor --fps is given. */
static double budget_of(const struct opts *o, double other)
{
    return o->budget > 0 ? o->budget : o->fps > 0 ? 1000 / o->fps : other;
}

static ew_err run_video(struct job *j)
{
    const struct opts *o = j->o;
    EW_CHECK(!o->output, EW_ERR_USAGE, "--output is for tensors and images");
    const struct ew_run_video v = {.stream = {.name = j->c->args[0],
                                              .source = j->video,
                                              .net = &j->net,
                                              .p = j->p,
                                              .slide = j->slide,
                                              .window = o->window,
                                              .hop = o->hop,
                                              .fps = o->fps,
                                              .seconds = o->seconds,
                                              .budget_ms = budget_of(o, VIDEO_BUDGET_MS)},
                                   .show = j->show,
                                   .annotate = o->annotate,
                                   .sheet = o->sheet,
                                   .live = o->live,
                                   .json = j->c->json};
    return ew_run_video(&v);
}

static ew_err run_frames(struct job *j)
{
    const struct opts *o = j->o;
    EW_CHECK(!o->output || wants_csv(o), EW_ERR_USAGE,
             "--output %s: of several images only FILE.csv can be written", o->output);
    EW_CHECK(!o->output || o->fps <= 0, EW_ERR_USAGE, "--output is not for --fps");
    const struct ew_run_stream s = {.name = j->c->args[0],
                                    .net = &j->net,
                                    .p = j->p,
                                    .show = j->show,
                                    .frames = j->frames,
                                    .fps = o->fps,
                                    .seconds = o->seconds,
                                    .budget_ms = budget_of(o, 0),
                                    .csv = o->output,
                                    .json = j->c->json};
    return ew_run_stream(&s);
}

/* The ONNX importer has checked named inputs, including those that became constants. */
static bool names_are_checked(const struct job *j)
{
    return j->net.kind == EW_NETWORK_ONNX;
}

/* Several unnamed images for a network with one input run one after the other; otherwise more files
 * than inputs are an error. */
static ew_err sort_inputs(struct job *j)
{
    const struct ew_run_inputs *in = &j->in;
    bool images = j->net.graph->n_inputs == 1;
    int counted = 0;
    for (int i = 0; i < in->n; i++) {
        images = images && in->list[i].is_image && !*in->list[i].name;
        counted += !*in->list[i].name || !names_are_checked(j);
    }
    EW_CHECK(counted <= j->net.graph->n_inputs || images, EW_ERR_USAGE, "%d files for %d input%s",
             counted, j->net.graph->n_inputs, j->net.graph->n_inputs == 1 ? "" : "s");
    return in->n > 1 && images ? ew_run_frames_of(in, &j->arena, &j->frames) : EW_OK;
}

static ew_err work(struct job *j)
{
    EW_CHECK(!wants_csv(j->o) || !j->o->random, EW_ERR_USAGE, "--output FILE.csv is for images");
    if (j->o->output && !wants_csv(j->o))
        EW_TRY(ew_tensor_file_check(j->o->output));
    EW_TRY(ew_run_check_order(j->c->args[0]));
    EW_TRY(read_inputs(j));
    EW_TRY(load(j));
    EW_TRY(sort_inputs(j));
    EW_TRY(compile(j));
    if (j->video)
        return run_video(j);
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
    if (!j->net.engine)
        ew_plan_free(j->p);
    ew_slide_free(j->slide);
    ew_network_close(&j->net);
    ew_run_inputs_fini(&j->in);
    ew_arena_fini(&j->arena);
    free(j);
    return e;
}

const struct ew_cmd ew_cmd_run = {
    .name = "run",
    .group = EW_CMD_NETWORK,
    .summary = "run a network on images, tensors or video and show its output",
    .args = "NAME|FILE.onnx|CKPT|FILE.ewe [[NAME=]FILE|FOLDER|-...]",
    .about = "An input is a tensor (.npy or ONNX's .pb) or an image (PNG, JPEG).\n"
             "Images are resized so that the shorter side is the input's / 0.875 (or as stored in "
             "the file, or --resize), cropped to the centre, and normalised: (pixel / 255 - mean) "
             "/ std.\n"
             "An image that already has the input's size is not resized.\n"
             "A row of scores is printed as the top classes with their softmax probabilities, any "
             "other output as min, mean, max and deviation; -o writes the values.\n"
             "Several images, a folder, or - (file names on standard input) are run one after the "
             "other; with --fps they arrive at a camera's rate, and missed deadlines are counted.\n"
             "Networks for video take a file, a camera (/dev/video0) or a stream (rtsp://...). A "
             "file alone gives one answer, for a clip from its middle; cameras and streams, and "
             "files with --window, --hop, --fps, --annotate or --sheet, are classified "
             "continuously. - reads raw RGB frames of the network's input size.",
    .examples = "run squeezenet.onnx --input cat.jpg --mean imagenet\n"
                "run model.onnx --input x=x.npy,mask=mask.npy --output y.npy\n"
                "run resnet18.ewe images/ -o classes.csv --top 3\n"
                "run resnet18.ewe images/ --fps 60 --seconds 10\n"
                "run r2plus1d_18.onnx clip.mp4 --hop 8 --fps 30\n"
                "run resnet18 --random --json",
    .min_args = 1,
    .max_args = -1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
    .starts_nothing = true,
};
