/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise models: the zoo, and trained networks. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cmd.h"
#include "graph/facts.h"
#include "model/model.h"
#include "network/trained.h"
#include "report/text_table.h"

struct opts {
    const char *from;
};

static const struct ew_field fields[] = {
    {.name = "from",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, from),
     .metavar = "URL|FILE",
     .verbs = "get",
     .help = "another location of the same file"},
    EW_FIELD_END,
};

static ew_err facts_of(const struct ew_variant *v, struct ew_facts *out)
{
    struct ew_graph *g;
    EW_TRY(ew_model_build(v->name, NULL, &g));
    const ew_err e = ew_graph_facts(g, out);
    ew_graph_free(g);
    return e;
}

static ew_err add_text(struct ew_table *t, const struct ew_family *family,
                       const struct ew_variant *v)
{
    struct ew_facts f;
    EW_TRY(facts_of(v, &f));
    ew_table_cell(t, "%s", v->name);
    ew_table_count(t, f.params);
    ew_table_count(t, f.macs);
    if (v->frames)
        ew_table_cell(t, "%dx%dx%dx%d", (int)v->frames, (int)v->height, (int)v->width,
                      (int)v->channels);
    else
        ew_table_cell(t, "%dx%dx%d", (int)v->height, (int)v->width, (int)v->channels);
    ew_table_cell(t, "%d", (int)v->classes);
    ew_table_cell(t, "%s", v->studies ? v->studies : "");
    ew_table_cell(t, "%s", v->about ? v->about : family->about);
    return EW_OK;
}

static ew_err add_json(struct ew_json *j, const struct ew_family *family,
                       const struct ew_variant *v)
{
    struct ew_facts f;
    EW_TRY(facts_of(v, &f));
    ew_json_object(j, NULL);
    ew_json_str(j, "name", v->name);
    ew_json_str(j, "family", family->name);
    ew_json_str(j, "about", v->about ? v->about : family->about);
    ew_json_str(j, "widths", family->widths);
    ew_json_str(j, "studies", v->studies);
    ew_json_int(j, "params", f.params);
    ew_json_int(j, "macs", f.macs);
    ew_json_array(j, "input");
    if (v->frames)
        ew_json_int(j, NULL, v->frames);
    ew_json_int(j, NULL, v->height);
    ew_json_int(j, NULL, v->width);
    ew_json_int(j, NULL, v->channels);
    ew_json_end(j);
    ew_json_int(j, "classes", v->classes);
    ew_json_end(j);
    return EW_OK;
}

static ew_err each_text(struct ew_table *t)
{
    static const char *const head[] = {"name",    "parameters", "MACs", "input",
                                       "classes", "studies",    "what"};
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(t, "%s", head[i]);
    for (int f = 0; f < ew_family_count(); f++)
        for (int i = 0; i < ew_family_at(f)->n_variants; i++)
            EW_TRY(add_text(t, ew_family_at(f), &ew_family_at(f)->variants[i]));
    return EW_OK;
}

static ew_err each_json(struct ew_json *j)
{
    for (int f = 0; f < ew_family_count(); f++)
        for (int i = 0; i < ew_family_at(f)->n_variants; i++)
            EW_TRY(add_json(j, ew_family_at(f), &ew_family_at(f)->variants[i]));
    return EW_OK;
}

/* ---- Trained ones ---- */

/* The path of a stored network; NULL: not stored. */
static const char *place(const struct ew_trained *t, char path[EW_TRAINED_PATH])
{
    return ew_trained_find(t->name, path) ? path : NULL;
}

static ew_err print_trained(void)
{
    static const char *const head[] = {"trained", "size", "input", "stored", "what"};
    const struct ew_trained *list;
    int n;
    struct ew_arena a;
    struct ew_table t;
    char path[EW_TRAINED_PATH], bytes[EW_TEXT_CHARS];
    ew_arena_init(&a);
    const ew_err e = ew_trained_list(&a, &list, &n);
    ew_table_init(&t, "lrlll");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; e == EW_OK && i < n; i++) {
        ew_table_cell(&t, "%s", list[i].name);
        ew_table_cell(&t, "%s", ew_text_bytes(list[i].bytes, bytes));
        ew_table_cell(&t, "%s", list[i].input);
        ew_table_cell(&t, "%s", place(&list[i], path) ? "yes" : "models get");
        ew_table_cell(&t, "%s", list[i].what);
    }
    const ew_err printed = ew_table_print(&t, stdout);
    ew_arena_fini(&a);
    return e == EW_OK ? printed : e;
}

static ew_err each_trained_json(struct ew_json *j)
{
    const struct ew_trained *list;
    int n;
    struct ew_arena a;
    char path[EW_TRAINED_PATH];
    ew_arena_init(&a);
    const ew_err e = ew_trained_list(&a, &list, &n);
    for (int i = 0; e == EW_OK && i < n; i++) {
        ew_json_object(j, NULL);
        ew_json_str(j, "name", list[i].name);
        ew_json_bool(j, "trained", true);
        ew_json_str(j, "about", list[i].what);
        ew_json_int(j, "bytes", list[i].bytes);
        ew_json_str(j, "url", list[i].url);
        ew_json_str(j, "path", place(&list[i], path));
        ew_json_end(j);
    }
    ew_arena_fini(&a);
    return e;
}

static ew_err print_zoo(bool json)
{
    if (json) {
        struct ew_json j;
        ew_json_init(&j, stdout);
        ew_json_array(&j, NULL);
        ew_err e = each_json(&j);
        if (e == EW_OK)
            e = each_trained_json(&j);
        ew_json_end(&j);
        const ew_err written = ew_json_finish(&j);
        return e == EW_OK ? written : e;
    }
    struct ew_table t;
    ew_table_init(&t, "lrrlrll");
    const ew_err e = each_text(&t);
    if (t.err == EW_OK)
        t.err = e;
    EW_TRY(ew_table_print(&t, stdout));
    fputs("\nstudies: NX      compact networks trained on a Xavier NX\n"
          "         ENGINE  an engine builder on a Nano\n"
          "         TRAIN   training across Jetsons and power modes\n"
          "         SCALE   widths against int8 on CPU, GPU and FPGA\n\n",
          stdout);
    return print_trained();
}

/* ---- get ---- */

static ew_err report(const struct ew_cmd_call *c, const struct ew_trained *t, const char *path,
                     bool already)
{
    if (!c->json) {
        printf("%s: %s\n", path, already ? "already stored" : "fetched, its SHA-256 agrees");
        return EW_OK;
    }
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", t->name);
    ew_json_str(&j, "path", path);
    ew_json_bool(&j, "already", already);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static const char *nearest(const struct ew_trained *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (ew_edit_distance(list[i].name, name) <= 3 || strstr(list[i].name, name))
            return list[i].name;
    return NULL;
}

static ew_err get(struct ew_cmd_call *c, struct ew_arena *a, const char *name)
{
    const struct opts *o = c->opts;
    const struct ew_trained *list;
    int n;
    char path[EW_TRAINED_PATH];
    bool already;
    EW_TRY(ew_trained_list(a, &list, &n));
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) {
            const ew_err e = ew_trained_get(&list[i], o->from, path, &already);
            if (e == EW_ERR_IO && !o->from)
                ew_cmd_hint(c,
                            "without internet access: fetch the file elsewhere, then models get %s "
                            "--from FILE",
                            name);
            return e == EW_OK ? report(c, &list[i], path, already) : e;
        }
    const char *near = nearest(list, n, name);
    ew_cmd_hint(c, "%s%s%sedgewise models lists them", near ? "did you mean " : "",
                near ? near : "", near ? "? " : "");
    return ew_fail(EW_ERR_NOT_FOUND, "no trained network is called %s", name);
}

static ew_err run(struct ew_cmd_call *c)
{
    const char *verb = c->n_args ? c->args[0] : "list";
    const bool list = strcmp(verb, "list") == 0;
    EW_CHECK(list || strcmp(verb, "get") == 0, EW_ERR_USAGE, "models: '%s' is neither list nor get",
             verb);
    EW_CHECK(!list || c->n_args <= 1, EW_ERR_USAGE, "models: unexpected '%s'", c->args[1]);
    EW_CHECK(list || c->n_args == 2, EW_ERR_USAGE, "models: get needs the name of a network");
    if (list)
        return print_zoo(c->json);
    struct ew_arena a;
    ew_arena_init(&a);
    const ew_err e = get(c, &a, c->args[1]);
    ew_arena_fini(&a);
    return e;
}

const struct ew_cmd ew_cmd_models = {
    .name = "models",
    .group = EW_CMD_NETWORK,
    .summary = "list the zoo and trained networks; download trained ones",
    .args = "[list|get NAME]",
    .about = "NX, ENGINE, TRAIN and SCALE are the four published studies that Edgewise repeats.\n"
             "Trained networks are used by name: `run lenet5-mnist digit.png`.\n"
             "Two come with Edgewise; `get` downloads others from their publishers, resumes an "
             "interrupted download and verifies checksums.\n"
             "$EW_MODELS is a folder of your own: NAME.onnx, .ckpt or .ewe in it is NAME.\n"
             "`edgewise info NAME` shows the details of one network.",
    .examples = "models\n"
                "models get squeezenet1_1-imagenet\n"
                "run squeezenet1_1-imagenet photo.jpg",
    .min_args = 0,
    .max_args = 2,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
