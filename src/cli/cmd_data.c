/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise data: downloads, lists, generates, packs and times data sets.  Listing is in
 * data_show.c, timing in data_bench.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/progress.h"
#include "cli/data_cmd.h"
#include "data/get.h"
#include "data/packed.h"
#include "data/write_set.h"
#include "report/text_table.h"

static const char *const splits[] = {"train", "test", "unlabelled", NULL};
static const char *const kinds[] = {"digits", "shapes", "motion", NULL};
static const char *const formats[] = {"folder", "idx", "packed", NULL};

#define STR_FIELD(member, value, who, what)                                                        \
    {                                                                                              \
        .name = #member, .type = EW_FIELD_STR, .offset = offsetof(struct ew_data_opts, member),    \
        .metavar = value, .verbs = who, .help = what                                               \
    }
#define INT_FIELD(member, value, low, high, who, what)                                             \
    {                                                                                              \
        .name = #member, .type = EW_FIELD_INT, .offset = offsetof(struct ew_data_opts, member),    \
        .def = value, .min = low, .max = high, .metavar = "N", .verbs = who, .help = what          \
    }

static const struct ew_field fields[] = {
    STR_FIELD(from, "PLACE", "get", "take it from this folder, archive or URL, or 'package'"),
    STR_FIELD(to, "PATH", "get, make, pack", "destination folder; pack: destination file"),
    {.name = "split",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct ew_data_opts, split),
     .choices = splits,
     .def = "train",
     .verbs = "info, bench",
     .help = "which split"},
    STR_FIELD(sheet, "FILE.png", "info", "write a contact sheet"),
    {.name = "kind",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct ew_data_opts, kind),
     .choices = kinds,
     .def = "digits",
     .verbs = "make",
     .help = "what is drawn; motion: clips whose class is the kind of motion"},
    {.name = "format",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct ew_data_opts, format),
     .choices = formats,
     .def = "folder",
     .verbs = "make",
     .help = "file layout"},
    INT_FIELD(train, "6000", 1, 1e8, "make", "training samples"),
    INT_FIELD(test, "1000", 1, 1e8, "make", "test samples"),
    INT_FIELD(classes, "0", 0, 100, "make",
              "classes, at most 10 for digits and 8 for motion; 0: that maximum"),
    INT_FIELD(side, "0", 0, 1024, "make",
              "height and width; 0: 28 for digits and motion, 32 for shapes"),
    INT_FIELD(channels, "0", 0, 3, "make", "1 or 3; 0: 1 for digits, else 3"),
    {.name = "noise",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_data_opts, noise),
     .def = "0.1",
     .min = 0,
     .max = 1,
     .metavar = "X",
     .verbs = "make",
     .help = "standard deviation of the pixel noise"},
    INT_FIELD(seed, "1", 0, 1e15, "make, bench", "random seed"),
    {.name = "raw",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_data_opts, raw),
     .verbs = "pack",
     .help = "store decoded pixels instead of PNG and JPEG files"},
    {.name = "size",
     .type = EW_FIELD_INTS,
     .offset = offsetof(struct ew_data_opts, size),
     .min = 1,
     .max = 16384,
     .metavar = "HxW",
     .verbs = "pack, bench",
     .help = "resize to this"},
    INT_FIELD(batch, "64", 1, 1e6, "bench", "batch size"),
    INT_FIELD(epochs, "2", 1, 1e6, "bench", "number of epochs"),
    EW_LOAD_FIELDS(struct ew_data_opts, load),
    EW_FIELD_END,
};

/* ---- get ------------------------------------------------------------------------------------- */

static ew_err print_got(const struct ew_cmd_call *c, const char *name,
                        const struct ew_get_result *r)
{
    if (c->json) {
        struct ew_json j;
        ew_json_init(&j, stdout);
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", name);
        ew_json_str(&j, "path", r->path);
        ew_json_bool(&j, "already", r->already);
        if (!r->already) {
            ew_json_str(&j, "from", r->from);
            ew_json_bool(&j, "checksums", r->checked);
        }
        ew_json_end(&j);
        return ew_json_finish(&j);
    }
    if (r->already)
        printf("%s: already stored\n", r->path);
    else
        printf("%s: from %s; %s\n", r->path, r->from,
               r->checked ? "published checksums agree"
                          : "no published checksum is known: sizes and structure agree");
    return EW_OK;
}

static ew_err get(struct ew_cmd_call *c, const char *name)
{
    const struct ew_data_opts *o = c->opts;
    struct ew_get_result r = {0};
    ew_err err = ew_dataset_get(name, o->from, o->to, &r);
    if (err == EW_OK)
        err = print_got(c, name, &r);
    else if (err == EW_ERR_NOT_FOUND && !ew_known_find(name)) {
        const char *near = ew_data_nearest(name);
        ew_cmd_hint(c, "%s%s%sedgewise data list shows what can be fetched",
                    near ? "did you mean " : "", near ? near : "", near ? "? " : "");
    }
    free(r.path);
    return err;
}

/* ---- make, pack ------------------------------------------------------------------------------ */

static ew_err print_made(const struct ew_cmd_call *c, const char *path,
                         const struct ew_pack_result *r)
{
    if (!c->json) {
        char count[EW_TEXT_CHARS], bytes[EW_TEXT_CHARS];
        printf("%s: %s samples", path, ew_text_count(r->samples, count));
        if (r->bytes)
            printf(", %s", ew_text_bytes(r->bytes, bytes));
        if (r->bad)
            printf(", %lld bad samples left out", (long long)r->bad);
        printf("\n");
        return EW_OK;
    }
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "path", path);
    ew_json_int(&j, "samples", r->samples);
    ew_json_int(&j, "bad", r->bad);
    if (r->bytes)
        ew_json_int(&j, "bytes", r->bytes);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err make(struct ew_cmd_call *c)
{
    const struct ew_data_opts *o = c->opts;
    EW_CHECK(o->to, EW_ERR_USAGE, "data: make needs --to");
    char spec[320];
    snprintf(spec, sizeof(spec),
             "synthetic:kind=%s,size=%lld,channels=%lld,classes=%lld,train=%lld,test=%lld,"
             "seed=%lld,noise=%g",
             kinds[o->kind], (long long)o->side, (long long)o->channels, (long long)o->classes,
             (long long)o->train, (long long)o->test, (long long)o->seed, o->noise);
    struct ew_dataset *d = NULL;
    EW_TRY(ew_dataset_open(spec, &d));
    struct ew_progress progress;
    ew_progress_begin(&progress, stderr, "writing", o->train + o->test);
    const ew_err err = ew_dataset_write(d, (enum ew_set_format)o->format, o->to, &progress);
    ew_progress_end(&progress);
    ew_dataset_close(d);
    EW_TRY(err);
    return print_made(c, o->to, &(struct ew_pack_result){.samples = o->train + o->test});
}

static ew_err pack(struct ew_cmd_call *c, const char *what)
{
    const struct ew_data_opts *o = c->opts;
    EW_CHECK(o->to, EW_ERR_USAGE, "data: pack needs --to");
    EW_CHECK(o->size.n == 0 || o->size.n == 2, EW_ERR_USAGE, "--size: %d numbers, not HxW",
             o->size.n);
    struct ew_dataset *d = NULL;
    EW_TRY(ew_data_open(c, what, &d));
    struct ew_progress progress;
    const struct ew_pack_opts p = {.raw = o->raw,
                                   .h = o->size.v[0],
                                   .w = o->size.v[1],
                                   .skip_bad = o->load.on_bad_sample == EW_ON_BAD_SKIP,
                                   .progress = &progress};
    int64_t all = 0;
    for (int i = 0; i < EW_SPLIT_COUNT; i++)
        all += ew_dataset_info(d)->count[i];
    struct ew_pack_result r = {0};
    ew_progress_begin(&progress, stderr, "packing", all);
    const ew_err err = ew_dataset_pack(d, o->to, &p, &r);
    ew_progress_end(&progress);
    ew_dataset_close(d);
    EW_TRY(err);
    return print_made(c, o->to, &r);
}

/* ---- The command ----------------------------------------------------------------------------- */

enum verb { GET, LIST, INFO, MAKE, PACK, BENCH, N_VERBS };

static ew_err run(struct ew_cmd_call *c)
{
    static const char *const verbs[N_VERBS] = {"get", "list", "info", "make", "pack", "bench"};
    int v = 0;
    while (v < N_VERBS && strcmp(verbs[v], c->args[0]) != 0)
        v++;
    EW_CHECK(v < N_VERBS, EW_ERR_USAGE,
             "data: '%s' is not one of get, list, info, make, pack, bench", c->args[0]);
    const bool alone = v == LIST || v == MAKE;
    EW_CHECK(alone || c->n_args == 2, EW_ERR_USAGE, "data: %s needs a data set", verbs[v]);
    EW_CHECK(!alone || c->n_args == 1, EW_ERR_USAGE, "data: unexpected '%s'", c->args[1]);
    switch (v) {
    case GET:
        return get(c, c->args[1]);
    case LIST:
        return ew_data_list(c);
    case INFO:
        return ew_data_info(c, c->args[1]);
    case MAKE:
        return make(c);
    case PACK:
        return pack(c, c->args[1]);
    default:
        return ew_data_bench(c, c->args[1]);
    }
}

const struct ew_cmd ew_cmd_data = {
    .name = "data",
    .group = EW_CMD_TRAIN,
    .summary = "data sets: download, inspect, generate, pack, benchmark",
    .args = "get SET|list|info SET|make|pack SET|bench SET",
    .about = "get: download mnist, fashion-mnist, cifar10, cifar100 or stl10 from its official "
             "site, or, if that cannot be reached, from a package; checksums are verified.\n"
             "list: data sets that can be downloaded, and where they are stored.\n"
             "info: number of samples, classes, mean and deviation, bytes, share in the page "
             "cache; --sheet writes a contact sheet.\n"
             "make: generate a synthetic data set (digits, shapes or clips of moving shapes) as "
             "files.\n"
             "pack: write all samples of a set into one checksummed file.\n"
             "bench: loader throughput, and where its time goes.\n"
             "SET is a folder or file, a name stored by 'get', or synthetic[:key=value,...].",
    .examples = "data get mnist\ndata info mnist --sheet mnist.png\n"
                "data make --kind shapes --to shapes\ndata pack photos --size 224x224 --to "
                "photos.ewpack\ndata bench cifar10 --augment standard --workers 2",
    .min_args = 1,
    .max_args = 2,
    .opts_size = sizeof(struct ew_data_opts),
    .opts = fields,
    .run = run,
};
