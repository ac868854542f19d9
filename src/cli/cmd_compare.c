/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise compare: whether two networks, or a network and saved tensors, agree, and the first
 * layer that differs. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/data_cmd.h"
#include "measure/compare_sides.h"
#include "report/text_table.h"

#define RANDOM_INPUTS 4

struct opts {
    bool layers, all, gate, save;
    const char *data, *input;
    struct ew_image_opts images;
    double min_sqnr;
    int64_t threads, seed;
};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "layers", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, layers),
     .help = "compare every value with the same name in both, in execution order"},
    {.name = "all", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, all),
     .help = "with --layers: list values that agree too"},
    {.name = "data", .type = EW_FIELD_STR, .offset = offsetof(struct opts, data), .letter = 'd',
     .metavar = "DATA[:N]",
     .help = "images to compare on, 32 unless N is given; default: random numbers, which are not "
     "representative for quantised networks"},
    {.name = "input", .type = EW_FIELD_STR, .offset = offsetof(struct opts, input), .letter = 'i',
     .metavar = "FILE", .help = "tensor (.npy, .pb) from which the saved values were computed"},
    {.name = "save", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, save),
     .help = "write every value of the network on --input to FOLDER instead of comparing"},
    EW_PREPROCESS_FIELDS(struct opts, images),
    {.name = "min-sqnr", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, min_sqnr),
     .def = "40", .min = -200, .max = 200, .metavar = "DB",
     .help = "values below this differ; int8 gives 20 to 40 dB, a different summation order over "
     "100"},
    {.name = "gate", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, gate),
     .help = "for scripts: exit with status 1 if a value differs"},
    {.name = "seed", .type = EW_FIELD_INT, .offset = offsetof(struct opts, seed), .def = "1",
     .min = 0, .max = 1e15, .metavar = "N", .help = "seed of the random inputs"},
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads),
     .def = "0", .min = 0, .max = 256, .metavar = "N",
     .help = "number of threads; 0: one per CPU"},
    EW_FIELD_END};
/* clang-format on */

/* The first layer below `least`; -1: none. */
static int first_different(const struct ew_compared *k, double least)
{
    for (int i = 0; i < k->n; i++)
        if (ew_agreement_db(&k->v[i]) < least)
            return i;
    return -1;
}

/* ---- Showing ---- */

static ew_err print_values(const struct opts *o, const struct ew_compared *k)
{
    struct ew_table t;
    char shape[EW_SHAPE_TEXT];
    static const char *const head[] = {"value", "operator", "shape", "SQNR dB", "worst", "largest"};
    ew_table_init(&t, "lllrrr");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < k->n; i++) {
        const struct ew_agreement *v = &k->v[i];
        if (!o->all && !v->output && ew_agreement_db(v) >= o->min_sqnr)
            continue;
        ew_table_cell(&t, "%s", v->name);
        ew_table_cell(&t, "%s", v->op);
        ew_table_cell(&t, "%s", ew_shape_text(&v->shape, shape));
        ew_table_cell(&t, "%.1f", ew_agreement_db(v));
        ew_table_cell(&t, "%.3g", v->worst);
        ew_table_cell(&t, "%.3g", v->largest);
    }
    return ew_table_print(&t, stdout);
}

static ew_err print_text(const struct opts *o, const struct ew_compared *k)
{
    const int first = first_different(k, o->min_sqnr);
    EW_TRY(print_values(o, k));
    printf("\n%lld input%s, %d value%s compared", (long long)k->inputs, k->inputs == 1 ? "" : "s",
           k->n, k->n == 1 ? "" : "s");
    if (k->same_top >= 0)
        printf("; the top class is the same for %lld", (long long)k->same_top);
    printf("\n");
    if (first < 0)
        printf("they agree: no value below %g dB\n", o->min_sqnr);
    else
        printf("first value that differs: %s (%s), %.1f dB\n", k->v[first].name, k->v[first].op,
               ew_agreement_db(&k->v[first]));
    return EW_OK;
}

static ew_err print_json(const struct opts *o, const struct ew_compared *k)
{
    const int first = first_different(k, o->min_sqnr);
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_int(&j, "inputs", k->inputs);
    if (k->same_top >= 0)
        ew_json_int(&j, "same_top", k->same_top);
    else
        ew_json_null(&j, "same_top");
    ew_json_str(&j, "first_different", first < 0 ? NULL : k->v[first].name);
    ew_json_array(&j, "values");
    for (int i = 0; i < k->n; i++) {
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", k->v[i].name);
        ew_json_str(&j, "op", k->v[i].op);
        ew_json_bool(&j, "output", k->v[i].output);
        ew_json_num(&j, "sqnr_db", ew_agreement_db(&k->v[i]));
        ew_json_num(&j, "worst", k->v[i].worst);
        ew_json_num(&j, "largest", k->v[i].largest);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- Running ---- */

#define IMAGES 32

static ew_err feed(struct ew_cmd_call *c, struct ew_compared *k)
{
    const struct opts *o = c->opts;
    if (!o->data) {
        for (int i = 0; i < RANDOM_INPUTS; i++)
            EW_TRY(ew_compare_random(k, (uint64_t)o->seed + (uint64_t)i));
        return EW_OK;
    }
    struct ew_image_set s = {0};
    ew_err e =
        ew_data_hint(c, o->data, ew_image_set_open(o->data, &k->side[0], EW_FOR_COMPARISON, &s));
    if (e == EW_OK)
        e = ew_compare_images(k, &s.loader, s.asked ? s.asked : IMAGES);
    ew_image_set_close(&s);
    return e;
}

/* Whether the argument is a folder of tensors or a tensor file. */
static bool is_saved(const char *what)
{
    struct stat st;
    return ew_ends_with(what, ".npy") || ew_ends_with(what, ".pb") ||
           (stat(what, &st) == 0 && S_ISDIR(st.st_mode));
}

static ew_err open_and_run(struct ew_cmd_call *c, const struct ew_compare_values_opts *how,
                           struct ew_compared *k)
{
    const struct opts *o = c->opts;
    if (is_saved(c->args[1]))
        return ew_compare_saved(c->args[0], c->args[1], o->input, how, k);
    EW_TRY(ew_compare_open(c->args[0], c->args[1], how, k));
    return feed(c, k);
}

/* Writes the values for another program, or another machine, to compare with. */
static ew_err save(const struct ew_cmd_call *c, const struct ew_compare_values_opts *how)
{
    const struct opts *o = c->opts;
    struct ew_compared k;
    EW_CHECK(o->input && !o->data && !o->gate && !o->all, EW_ERR_USAGE,
             "--save needs --input FILE, and compares nothing");
    const ew_err e = ew_compare_save(c->args[0], c->args[1], o->input, how, &k);
    if (e == EW_OK)
        EW_INFO("%s: %d values of %s, NAME.npy each, [N, C, H, W]", c->args[1], k.n, c->args[0]);
    ew_compare_close(&k);
    return e;
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    const struct ew_compare_values_opts how = {
        .layers = o->layers, .images = o->images, .threads = (int)o->threads};
    struct ew_compared k;
    if (o->save)
        return save(c, &how);
    EW_CHECK(o->layers || !o->all, EW_ERR_USAGE, "--all needs --layers");
    EW_CHECK(!is_saved(c->args[1]) || (o->input && !o->data), EW_ERR_USAGE,
             "%s has saved values: --input FILE says what they were computed from", c->args[1]);
    EW_CHECK(is_saved(c->args[1]) || !o->input, EW_ERR_USAGE,
             "--input is for saved values; two networks run on --data, or on random numbers");
    ew_err e = open_and_run(c, &how, &k);
    if (e == EW_OK)
        e = c->json ? print_json(o, &k) : print_text(o, &k);
    const int first = e == EW_OK && o->gate ? first_different(&k, o->min_sqnr) : -1;
    if (first >= 0)
        e = ew_fail(EW_ERR_LIMIT, "%s: %.1f dB is below --min-sqnr, %g dB", k.v[first].name,
                    ew_agreement_db(&k.v[first]), o->min_sqnr);
    ew_compare_close(&k);
    return e;
}

const struct ew_cmd ew_cmd_compare = {
    .name = "compare",
    .group = EW_CMD_NETWORK,
    .summary = "numerical difference between two networks, layer by layer",
    .args = "NAME|FILE.onnx|CKPT NAME|FILE.onnx|CKPT|SAVED.npy|FOLDER",
    .about = "Runs both networks on the same inputs and prints the signal-to-noise ratio (SQNR) "
             "and the largest difference of their outputs.\n"
             "With --layers every operator runs as in the file, without fusion, and the first "
             "value that differs is named.\n"
             "Instead of the second network it takes the values that another program computed "
             "from the tensor of --input: a file with the output, or a folder with NAME.npy for "
             "each value to compare ('_' for '/'), in ONNX's layout [N, C, H, W].\n"
             "--save writes such a folder, to find the layer where another runtime or "
             "accelerator differs.",
    .examples = "compare net.onnx int8.onnx --data cifar10:100 --min-sqnr 20 --gate\n"
                "compare old.onnx new.onnx --layers\n"
                "compare net.onnx saved/ --input x.npy\n"
                "compare net.onnx values/ --input x.npy --save",
    .min_args = 2,
    .max_args = 2,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
    .starts_nothing = true,
};
