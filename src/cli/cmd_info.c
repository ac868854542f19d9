/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise info: size, arithmetic and memory of a network, by layer, and its picture. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "cli/info_engine.h"
#include "cli/info_onnx.h"
#include "compress/pass.h"
#include "format/checkpoint.h"
#include "format/engine_file.h"
#include "graph/facts.h"
#include "model/model.h"
#include "model/objective.h"
#include "network/network.h"
#include "plan/plan.h"
#include "report/graph_page.h"
#include "report/graph_svg.h"
#include "report/text_table.h"

struct opts {
    struct ew_network_opts net;
    struct ew_info_files files;
};

static const struct ew_field fields[] = {
    EW_NETWORK_FIELDS(struct opts, net),
    {.name = "svg",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, files.svg),
     .metavar = "FILE",
     .help = "write a picture of the graph"},
    {.name = "html",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, files.html),
     .metavar = "FILE",
     .help = "write an interactive page of the graph, coloured by size, MACs or precision; "
             "`bench --html` adds times"},
    EW_FIELD_END,
};

/* Memory is at the requested batch; the other facts are for one image. */
struct info {
    struct ew_facts facts;
    int64_t activation_bytes, packed_bytes;
    int64_t train_bytes;
    char no_train[256];             /* why train_bytes is unknown; "": it is known */
    const struct ew_family *family; /* NULL: the network comes from a file */
    int32_t filters[EW_MAX_GATES];
    int n_filters;
};

static ew_err plan_bytes(struct ew_graph *g, enum ew_plan_mode mode, struct ew_plan_stats *out)
{
    const struct ew_plan_opts o = {
        .mode = mode,
        .dry = true,
        .update = mode == EW_PLAN_TRAIN,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 0.01, .momentum = 0.9}};
    struct ew_plan *p;
    EW_TRY(ew_plan_compile(g, &o, &p));
    ew_plan_stats(p, out);
    ew_plan_free(p);
    return EW_OK;
}

static ew_err train_bytes(const struct ew_graph *g, int64_t *out)
{
    struct ew_graph *copy;
    struct ew_plan_stats s;
    EW_TRY(ew_graph_clone(g, &copy));
    ew_err e = ew_objective_add(copy);
    if (e == EW_OK)
        e = ew_graph_infer(copy);
    if (e == EW_OK)
        e = plan_bytes(copy, EW_PLAN_TRAIN, &s);
    ew_graph_free(copy);
    if (e == EW_OK)
        *out = (int64_t)(s.arena_bytes + s.weight_bytes);
    return e;
}

/* Memory of the inference plan after the graph passes, which a dry plan does not run. */
static ew_err infer_bytes(const struct ew_graph *g, struct ew_plan_stats *out)
{
    struct ew_graph *copy;
    EW_TRY(ew_graph_clone(g, &copy));
    ew_err e = ew_pass_all(copy);
    if (e == EW_OK)
        e = plan_bytes(copy, EW_PLAN_INFER, out);
    ew_graph_free(copy);
    return e;
}

static ew_err collect(struct ew_graph *g, int64_t batch, struct info *out)
{
    *out = (struct info){0};
    struct ew_plan_stats s;
    EW_TRY(ew_graph_set_batch(g, batch));
    EW_TRY(infer_bytes(g, &s));
    out->activation_bytes = (int64_t)(s.arena_bytes - s.packed_bytes);
    out->packed_bytes = (int64_t)s.packed_bytes;
    /* Not an error: networks that cannot be trained are shown without it. */
    if (train_bytes(g, &out->train_bytes) != EW_OK)
        snprintf(out->no_train, sizeof(out->no_train), "%s", ew_error_message());
    EW_TRY(ew_graph_set_batch(g, 1));
    return ew_graph_facts(g, &out->facts);
}

static ew_err find_family(const char *what, const struct ew_network_opts *o, struct info *out)
{
    const struct ew_variant *v;
    if (ew_network_is_file(what) || ew_variant_find(what, &out->family, &v) != EW_OK)
        return EW_OK; /* from a file, or a trained network by name */
    return ew_network_filters(what, o, out->filters, EW_MAX_GATES, &out->n_filters);
}

/* ---- JSON ---- */

static void json_shape(struct ew_json *j, const char *key, const struct ew_shape *s)
{
    ew_json_array(j, key);
    for (int i = 0; i < s->rank; i++)
        ew_json_int(j, NULL, s->dim[i]);
    ew_json_end(j);
}

static ew_err print_json(const struct ew_graph *g, const struct info *n, int64_t batch,
                         const struct ew_onnx_summary *file)
{
    const struct ew_facts *f = &n->facts;
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", g->name);
    if (file)
        ew_info_onnx_json(&j, file);
    if (g->n_inputs)
        json_shape(&j, "input", &g->values[g->inputs[0]].t.shape);
    if (g->n_outputs)
        json_shape(&j, "output", &g->values[g->outputs[0]].t.shape);
    ew_json_int(&j, "params", f->params);
    ew_json_int(&j, "macs", f->macs);
    ew_json_int(&j, "flops", f->flops);
    ew_json_int(&j, "flops_thop", f->flops_thop);
    ew_json_int(&j, "cdl", f->cdl);
    ew_json_int(&j, "cdl_nodes", f->cdl_nodes);
    ew_json_int(&j, "nodes", f->nodes);
    ew_json_int(&j, "batch", batch);
    ew_json_int(&j, "weight_bytes", f->weight_bytes);
    ew_json_int(&j, "activation_bytes", n->activation_bytes);
    ew_json_int(&j, "packed_bytes", n->packed_bytes);
    if (n->no_train[0]) {
        ew_json_null(&j, "train_bytes");
        ew_json_str(&j, "train_bytes_reason", n->no_train);
    } else {
        ew_json_int(&j, "train_bytes", n->train_bytes);
    }
    if (n->family) {
        ew_json_array(&j, "filters");
        for (int i = 0; i < n->n_filters; i++)
            ew_json_int(&j, NULL, n->filters[i]);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- Text ---- */

static ew_err print_layers(const struct ew_graph *g)
{
    static const char *const head[] = {"layer", "operator", "output", "parameters", "MACs"};
    struct ew_table t;
    struct ew_cost total;
    EW_CLEANUP(ew_free_ptr) struct ew_cost *each = calloc((size_t)g->n_nodes + 1, sizeof(*each));
    EW_CHECK(each, EW_ERR_MEMORY, "no memory for the layers of %s", g->name);
    EW_TRY(ew_graph_cost(g, &total, each));
    ew_table_init(&t, "lllrr");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (ew_node_is_known(g, n))
            continue;
        char shape[EW_SHAPE_TEXT];
        ew_table_cell(&t, "%s", n->name);
        ew_table_cell(&t, "%s", n->op->name);
        ew_table_cell(&t, "%s", ew_shape_text(&g->values[n->out[0]].t.shape, shape));
        ew_table_count(&t, each[k].params);
        ew_table_count(&t, each[k].macs);
    }
    return ew_table_print(&t, stdout);
}

static void row(struct ew_table *t, const char *what, int64_t n, const char *unit)
{
    char buf[EW_TEXT_CHARS];
    ew_table_cell(t, "%s", what);
    ew_table_cell(t, "%s", ew_text_count(n, buf));
    ew_table_cell(t, "%s", unit);
}

static void bytes_row(struct ew_table *t, const char *what, int64_t n, const char *note)
{
    char buf[EW_TEXT_CHARS];
    ew_table_cell(t, "%s", what);
    ew_table_cell(t, "%s", ew_text_bytes(n, buf));
    ew_table_cell(t, "%s", note);
}

static ew_err print_summary(const struct ew_graph *g, const struct info *n, int64_t batch)
{
    const struct ew_facts *f = &n->facts;
    char note[300], shape[EW_SHAPE_TEXT];
    struct ew_table t;
    if (g->n_inputs)
        printf("\n%s, input %s\n", g->name, ew_shape_text(&g->values[g->inputs[0]].t.shape, shape));
    ew_table_init(&t, "lrl");
    row(&t, "parameters", f->params, "");
    const int64_t images = ew_graph_images(g); /* more than 1 if the file fixes the batch */
    snprintf(note, sizeof(note), "of convolutions and dense layers, %lld images, the file's batch",
             (long long)images);
    row(&t, "MACs", f->macs, images > 1 ? note : "of convolutions and dense layers, one image");
    row(&t, "FLOPs", f->flops, "all arithmetic; a MAC counts as two");
    row(&t, "FLOPs (thop)", f->flops_thop, "2 x thop's MACs");
    snprintf(note, sizeof(note), "operators on the longest path, of %lld", (long long)f->cdl_nodes);
    row(&t, "CDL", f->cdl, note);
    row(&t, "nodes", f->nodes, "");
    if (n->family)
        row(&t, "widths", n->n_filters, n->family->widths);
    bytes_row(&t, "weights", f->weight_bytes, "with running statistics");
    bytes_row(&t, "packed", n->packed_bytes, "copies of weights in the kernels' layout");
    snprintf(note, sizeof(note), "planned to run batch %lld", (long long)batch);
    bytes_row(&t, "activations", n->activation_bytes, note);
    snprintf(note, sizeof(note), "total planned for a step of SGD with momentum at batch %lld",
             (long long)batch);
    if (!n->no_train[0]) {
        bytes_row(&t, "training", n->train_bytes, note);
    } else {
        ew_table_cell(&t, "training");
        ew_table_cell(&t, "-");
        ew_table_cell(&t, "%s", n->no_train);
    }
    return ew_table_print(&t, stdout);
}

static ew_err write_svg(const struct ew_graph *g, const char *path)
{
    struct ew_file_out o;
    EW_TRY(ew_file_out_open(path, &o));
    const ew_err e = ew_graph_svg(g, o.f);
    if (e != EW_OK) {
        ew_file_out_abort(&o);
        return ew_fail_in(e, "%s", path);
    }
    return ew_file_out_commit(&o);
}

ew_err ew_info_write(const struct ew_graph *g, const struct ew_info_files *files)
{
    if (files->svg)
        EW_TRY(write_svg(g, files->svg));
    return files->html ? ew_graph_page_save(g, NULL, files->html) : EW_OK;
}

static ew_err show(struct ew_graph *g, const struct ew_cmd_call *c,
                   const struct ew_onnx_summary *file)
{
    const struct opts *o = c->opts;
    struct info n;
    EW_TRY(collect(g, o->net.batch, &n));
    const int64_t fixed = ew_graph_images(g), batch = fixed > 1 ? fixed : o->net.batch;
    EW_TRY(find_family(c->args[0], &o->net, &n));
    EW_TRY(ew_info_write(g, &o->files));
    if (c->json)
        return print_json(g, &n, batch, file);
    EW_TRY(print_layers(g));
    return print_summary(g, &n, batch);
}

static ew_err show_network(const struct ew_cmd_call *c, const struct ew_onnx_summary *file)
{
    const struct opts *o = c->opts;
    const struct ew_network_open_opts how = {.opts = o->net, .shapes = true};
    struct ew_network n;
    ew_err e = ew_network_open(c->args[0], &how, &n);
    if (e == EW_OK)
        e = ew_graph_alloc_weights(n.graph); /* nothing shown depends on them */
    if (e == EW_OK)
        e = show(n.graph, c, file);
    ew_network_close(&n);
    return e;
}

/* Shows the file's summary first: it is readable even if the network cannot be built. */
static ew_err show_onnx(const struct ew_cmd_call *c, struct ew_arena *a)
{
    struct ew_onnx_summary s;
    struct ew_json j;
    EW_TRY(ew_onnx_summarise(c->args[0], a, &s));
    if (!c->json) {
        ew_info_onnx_print(&s);
        printf("\n");
    } else if (s.n_unsupported) {
        ew_json_init(&j, stdout);
        ew_json_object(&j, NULL);
        ew_info_onnx_json(&j, &s);
        ew_json_end(&j);
        EW_TRY(ew_json_finish(&j));
    }
    EW_TRY(ew_info_onnx_check(&s, c->args[0]));
    return show_network(c, &s);
}

static ew_err run(struct ew_cmd_call *c)
{
    const char *what = c->args[0];
    if (ew_engine_file_is(what))
        return ew_info_engine(c, what, &((const struct opts *)c->opts)->files);
    if (!ew_network_is_file(what) || ew_checkpoint_is(what) || ew_network_is_xir(what))
        return show_network(c, NULL);
    struct ew_arena a;
    ew_arena_init(&a);
    const ew_err e = show_onnx(c, &a);
    ew_arena_fini(&a);
    return e;
}

const struct ew_cmd ew_cmd_info = {
    .name = "info",
    .group = EW_CMD_NETWORK,
    .summary = "show a network: parameters, MACs, memory, layers, graph",
    .args = "NAME|FILE.onnx|FILE.xmodel|CKPT|FILE.ewe",
    .about = "Parameters, MACs, FLOPs and the layer table are for one image; --batch applies to "
             "the memory.\n"
             "For an ONNX file it first prints producer, opset, inputs and outputs, and every "
             "unsupported operator with its nodes.\n"
             "CDL, the critical datapath length, is the number of operators on the longest path, "
             "with batch norms folded into convolutions.\n"
             "--width scales all filter counts of a zoo network: trunc(count x R), in whole "
             "groups for grouped layers.",
    .examples = "info resnet50\n"
                "info resnet50 --input 32x32x3 --classes 10 --width 0.25 --json\n"
                "info lenet5 --svg lenet5.svg\n"
                "info mobilenet_v2 --html mobilenet_v2.html\n"
                "info model.onnx --batch 16",
    .min_args = 1,
    .max_args = 1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
    .starts_nothing = true,
};
