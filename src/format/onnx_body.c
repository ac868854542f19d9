/* SPDX-License-Identifier: Apache-2.0 */
/* Inlining of subgraphs: calls of model functions, branches of If and bodies of Loop are replaced
 * by their nodes, loops by unrolling.  Conditions and trip counts must be known at import
 * (constants, shapes, given inputs), so that no control flow is left at run time.
 *
 * Nesting is limited to MAX_DEPTH, which also ends recursive functions, and the total number of
 * inlined nodes is bounded. */
#include <stdio.h>
#include <string.h>

#include "format/onnx_import.h"
#include "graph/ops.h"

#define MAX_DEPTH  16
#define MAX_ROUNDS 1000 /* of an unrolled loop */

/* ---- Which nodes have a body ---- */

/* "domain:name" in a buffer of KEY bytes; false: too long. */
#define KEY 256
static bool function_key(const char *domain, const char *name, char *key)
{
    const char *d = strcmp(ew_onnx_text(domain), "ai.onnx") == 0 ? "" : ew_onnx_text(domain);
    return snprintf(key, KEY, "%s:%s", d, ew_onnx_text(name)) < KEY;
}

ew_err ew_onnx_find_functions(struct ew_onnx_import *im)
{
    for (size_t i = 0; i < im->model->n_functions; i++) {
        const Ew__OnnxFunction *f = im->model->functions[i];
        char key[KEY];
        EW_CHECK(function_key(f->domain, f->name, key), EW_ERR_LIMIT,
                 "the name of function %.100s is too long", ew_onnx_text(f->name));
        EW_CHECK(ew_names_find(&im->shared->functions, key) < 0, EW_ERR_FORMAT,
                 "function %.100s (%.100s) is defined twice", ew_onnx_text(f->name),
                 ew_onnx_text(f->domain));
        const char *kept = ew_arena_strdup(&im->file->arena, key);
        EW_CHECK(kept, EW_ERR_MEMORY, "no memory for functions");
        EW_TRY(ew_names_add(&im->shared->functions, kept, (int)i));
    }
    return EW_OK;
}

static const Ew__OnnxFunction *function_of(const struct ew_onnx_import *im, const Ew__OnnxNode *n)
{
    char key[KEY];
    const int i = im->model->n_functions && function_key(n->domain, n->op_type, key)
                      ? ew_names_find(&im->shared->functions, key)
                      : -1;
    return i < 0 ? NULL : im->model->functions[i];
}

static bool is_plain(const Ew__OnnxNode *n, const char *type)
{
    const char *domain = ew_onnx_text(n->domain);
    return strcmp(ew_onnx_text(n->op_type), type) == 0 &&
           (!*domain || strcmp(domain, "ai.onnx") == 0);
}

bool ew_onnx_is_call(const struct ew_onnx_import *im, const Ew__OnnxNode *n)
{
    return is_plain(n, "If") || is_plain(n, "Loop") || function_of(im, n);
}

unsigned ew_onnx_call_known(const struct ew_onnx_import *im, int node)
{
    const Ew__OnnxNode *n = im->graph->node[node];
    return is_plain(n, "If") ? 1 : is_plain(n, "Loop") ? 1 | 1 << 1 : 0;
}

/* ---- A body ---- */

struct body {
    Ew__OnnxGraph graph; /* its inputs, followed by the values captured from outside */
    int n_in;            /* its own inputs */
};

/* The value of this name in the scopes around a branch or loop, or -1. */
static int find_outside(const struct ew_onnx_import *im, const char *name)
{
    for (; im; im = im->outer) {
        const int wired = ew_names_find(&im->topology.names, name);
        if (wired >= 0)
            return im->value[wired];
    }
    return -1;
}

static ew_err enter(struct ew_names *names, const char *name)
{
    return *name && ew_names_find(names, name) < 0 ? ew_names_add(names, name, 0) : EW_OK;
}

/* Collects the names that the body defines. */
static ew_err own_names(const Ew__OnnxGraph *g, struct ew_names *names)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        EW_TRY(enter(names, ew_onnx_text(g->initializer[i]->name)));
    for (size_t i = 0; i < g->n_input; i++)
        EW_TRY(enter(names, ew_onnx_text(g->input[i]->name)));
    for (size_t k = 0; k < g->n_node; k++)
        for (size_t i = 0; i < g->node[k]->n_output; i++)
            EW_TRY(enter(names, g->node[k]->output[i]));
    return EW_OK;
}

static ew_err add_outside(struct ew_onnx_import *im, struct body *b, struct ew_names *names,
                          const char *name)
{
    if (!*name || ew_names_find(names, name) >= 0 || find_outside(im, name) < 0)
        return EW_OK; /* unknown names are reported by the topology */
    Ew__OnnxValue *v = ew_arena_alloc(&im->file->arena, sizeof(*v));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory for a body's inputs");
    ew__onnx_value__init(v);
    v->name = ew_arena_strdup(&im->file->arena, name);
    EW_CHECK(v->name, EW_ERR_MEMORY, "no memory for a body's inputs");
    b->graph.input[b->graph.n_input++] = v;
    return ew_names_add(names, name, 0);
}

/* Adds an input for each value that the body captures from outside. */
static ew_err find_taken(struct ew_onnx_import *im, struct body *b, struct ew_names *names)
{
    size_t room = b->graph.n_input + b->graph.n_output;
    for (size_t k = 0; k < b->graph.n_node; k++)
        room += b->graph.node[k]->n_input;
    Ew__OnnxValue **list = ew_arena_array(&im->file->arena, room, sizeof(Ew__OnnxValue *));
    EW_CHECK(list, EW_ERR_MEMORY, "no memory for a body's inputs");
    for (size_t i = 0; i < b->graph.n_input; i++)
        list[i] = b->graph.input[i];
    b->graph.input = list;
    EW_TRY(own_names(&b->graph, names));
    for (size_t k = 0; k < b->graph.n_node; k++)
        for (size_t i = 0; i < b->graph.node[k]->n_input; i++)
            EW_TRY(add_outside(im, b, names, b->graph.node[k]->input[i]));
    for (size_t i = 0; i < b->graph.n_output; i++)
        EW_TRY(add_outside(im, b, names, ew_onnx_text(b->graph.output[i]->name)));
    return EW_OK;
}

/* The graph in attribute `name`. */
static ew_err unpack_body(struct ew_onnx_import *im, const Ew__OnnxNode *from, const char *name,
                          struct body *b)
{
    const Ew__OnnxAttr *a = NULL;
    for (size_t i = 0; i < from->n_attribute; i++)
        if (strcmp(ew_onnx_text(from->attribute[i]->name), name) == 0)
            a = from->attribute[i];
    EW_CHECK(a && a->has_g && a->g.len, EW_ERR_FORMAT, "has no graph %s", name);
    im->shared->bytes_left -= (int64_t)a->g.len;
    EW_CHECK(im->shared->bytes_left >= 0, EW_ERR_LIMIT, "its graphs are too large together");
    ProtobufCMessage *m;
    EW_TRY(ew_onnx_unpack(im->file, a->g.data, a->g.len, &ew__onnx_graph__descriptor, &m));
    b->graph = *(const Ew__OnnxGraph *)(const void *)m;
    b->n_in = (int)b->graph.n_input;
    EW_CHECK(!ew_onnx_has_unknown(&b->graph.base, 15), EW_ERR_UNSUPPORTED,
             "sparse initializers are not supported");
    struct ew_names names = {0};
    const ew_err e = find_taken(im, b, &names);
    ew_names_fini(&names);
    return e;
}

static ew_err fill_body(struct ew_onnx_import *child, const struct body *b, const int *in, int *out)
{
    EW_TRY(ew_onnx_begin(child));
    for (size_t i = 0; i < b->graph.n_input; i++) {
        const char *name = b->graph.input[i]->name;
        const int wired = ew_names_find(&child->topology.names, name);
        child->value[wired] = (int)i < b->n_in ? in[i] : find_outside(child->outer, name);
    }
    EW_TRY(ew_onnx_add_constants(child));
    for (int o = 0; o < child->topology.n_nodes; o++)
        EW_TRY(ew_onnx_import_node(child, child->topology.order[o]));
    for (size_t i = 0; i < b->graph.n_output; i++) {
        const char *name = ew_onnx_text(b->graph.output[i]->name);
        const int wired = ew_names_find(&child->topology.names, name);
        EW_CHECK(wired >= 0 && child->value[wired] >= 0, EW_ERR_FORMAT,
                 "nothing computes output %.150s of its body", name);
        out[i] = child->value[wired];
    }
    return EW_OK;
}

/* Inlines the body: `in` are its own inputs (-1: absent), `out` gets its outputs. */
static ew_err import_body(const struct ew_onnx_import *settings, const struct body *b,
                          const int *in, int *out)
{
    struct ew_onnx_import child = *settings;
    EW_CHECK(child.depth <= MAX_DEPTH, EW_ERR_UNSUPPORTED,
             "bodies are more than %d deep, or a function calls itself", MAX_DEPTH);
    child.shared->nodes_left -= (int64_t)b->graph.n_node + 1;
    EW_CHECK(child.shared->nodes_left >= 0, EW_ERR_LIMIT,
             "functions, branches and loops add too many nodes");
    child.graph = &b->graph;
    child.topology = (struct ew_onnx_topology){0};
    const ew_err e = fill_body(&child, b, in, out);
    ew_onnx_topology_fini(&child.topology);
    return e;
}

/* The scope of a branch or loop: it sees the values around it, and the attributes of the function
 * it is in. */
static struct ew_onnx_import inside(const struct ew_onnx_import *im)
{
    struct ew_onnx_import child = *im;
    child.outer = im;
    child.depth++;
    child.opts = NULL;
    return child;
}

/* ---- Functions ---- */

static ew_err as_values(struct ew_arena *a, char **names, size_t n, Ew__OnnxValue ***out)
{
    Ew__OnnxValue *v = ew_arena_array(a, n, sizeof(*v));
    *out = ew_arena_array(a, n, sizeof(**out));
    EW_CHECK(v && *out, EW_ERR_MEMORY, "no memory for a function's values");
    for (size_t i = 0; i < n; i++) {
        ew__onnx_value__init(&v[i]);
        v[i].name = names[i];
        (*out)[i] = &v[i];
    }
    return EW_OK;
}

static ew_err import_function(struct ew_onnx_import *im, const Ew__OnnxFunction *f,
                              const struct ew_onnx_node *n, int *out)
{
    struct ew_arena *a = &im->file->arena;
    struct body b = {.n_in = (int)f->n_input};
    EW_CHECK((size_t)n->n_in <= f->n_input && (size_t)n->n_out <= f->n_output, EW_ERR_FORMAT,
             "has %d inputs and %d outputs, function %.100s %zu and %zu", n->n_in, n->n_out,
             ew_onnx_text(f->name), f->n_input, f->n_output);
    EW_TRY(ew_onnx_check_opset(f->opset_import, f->n_opset_import));
    ew__onnx_graph__init(&b.graph);
    b.graph.n_node = f->n_node;
    b.graph.node = f->node;
    b.graph.n_input = f->n_input;
    b.graph.n_output = f->n_output;
    EW_TRY(as_values(a, f->input, f->n_input, &b.graph.input));
    EW_TRY(as_values(a, f->output, f->n_output, &b.graph.output));
    int *in = ew_arena_array(a, f->n_input, sizeof(*in));
    int *all = ew_arena_array(a, f->n_output, sizeof(*all));
    EW_CHECK(in && all, EW_ERR_MEMORY, "no memory for a call");
    for (size_t i = 0; i < f->n_input; i++)
        in[i] = (int)i < n->n_in ? n->in[i] : -1;
    struct ew_onnx_import child = inside(im);
    child.outer = NULL;
    child.call = n;
    child.function = f;
    child.opsets = f->opset_import;
    child.n_opsets = f->n_opset_import;
    EW_TRY(import_body(&child, &b, in, all));
    memcpy(out, all, (size_t)n->n_out * sizeof(*out));
    return EW_OK;
}

/* ---- Branches and loops ---- */

/* The value of a scalar, which must be known.  If it depends on the batch this becomes fixed, since
 * another one could decide differently. */
static ew_err known_scalar(struct ew_onnx_import *im, int value, const char *what, int64_t *out)
{
    struct ew_graph *g = im->g;
    const struct ew_value *v = &g->values[value];
    bool varies;
    EW_CHECK(v->t.data && ew_tensor_count(&v->t) == 1, EW_ERR_UNSUPPORTED,
             "its %s depends on the data: it must be known when the file is read", what);
    *out = ew_tensor_get_int(&v->t, 0);
    EW_TRY(ew_onnx_varies(im, value, &varies));
    for (int i = 0; varies && i < g->n_inputs; i++)
        g->values[g->inputs[i]].dynamic = 0;
    return EW_OK;
}

static ew_err import_if(struct ew_onnx_import *im, const Ew__OnnxNode *from,
                        const struct ew_onnx_node *n, int *out)
{
    int64_t yes;
    struct body b;
    EW_CHECK(n->n_in == 1 && n->in[0] >= 0, EW_ERR_FORMAT, "has no condition");
    EW_TRY(known_scalar(im, n->in[0], "condition", &yes));
    EW_TRY(unpack_body(im, from, yes ? "then_branch" : "else_branch", &b));
    EW_CHECK(b.n_in == 0 && b.graph.n_output == (size_t)n->n_out, EW_ERR_FORMAT,
             "its branch has %d inputs and %zu outputs, must be 0 and %d", b.n_in, b.graph.n_output,
             n->n_out);
    const struct ew_onnx_import child = inside(im);
    return import_body(&child, &b, NULL, out);
}

/* A loop during unrolling. */
struct loop {
    struct body body;
    int n_carried, n_scans;
    int *in, *out; /* of the body */
    int64_t rounds_max, rounds;
    int *scans; /* [n_scans][rounds_max]: scan outputs of each iteration */
};

static ew_err open_loop(struct ew_onnx_import *im, const Ew__OnnxNode *from,
                        const struct ew_onnx_node *n, struct loop *l)
{
    EW_TRY(unpack_body(im, from, "body", &l->body));
    l->n_carried = n->n_in > 2 ? n->n_in - 2 : 0;
    l->n_scans = n->n_out - l->n_carried;
    EW_CHECK(l->n_scans >= 0 && l->body.n_in == l->n_carried + 2 &&
                 l->body.graph.n_output == (size_t)n->n_out + 1,
             EW_ERR_FORMAT, "its body has %d inputs and %zu outputs for %d and %d of its own",
             l->body.n_in, l->body.graph.n_output, n->n_in, n->n_out);
    l->in = ew_arena_array(&im->file->arena, (size_t)l->body.n_in, sizeof(int));
    l->out = ew_arena_array(&im->file->arena, (size_t)n->n_out + 1, sizeof(int));
    EW_CHECK(l->n_scans * l->rounds_max <= im->shared->nodes_left, EW_ERR_LIMIT,
             "%lld rounds of %d outputs are too many", (long long)l->rounds_max, l->n_scans);
    l->scans = ew_arena_array(&im->file->arena, (size_t)(l->n_scans * l->rounds_max), sizeof(int));
    EW_CHECK(l->in && l->out && l->scans, EW_ERR_MEMORY, "no memory for a loop");
    for (int i = 0; i < l->n_carried; i++)
        l->in[2 + i] = n->in[2 + i];
    return EW_OK;
}

/* Unsqueezes an iteration's scan output, for the concatenation over iterations. */
static ew_err add_axis(struct ew_graph *g, int value, int *out)
{
    int in[2] = {value};
    EW_TRY(ew_graph_const_ints(g, NULL, &(int64_t){0}, 1, &in[1]));
    return ew_graph_add(g, &ew_op_unsqueeze, NULL, NULL, ew_inputs(in, 2), out);
}

static ew_err run_round(struct ew_onnx_import *im, struct loop *l, int64_t *go_on)
{
    const struct ew_onnx_import child = inside(im);
    struct ew_tensor number = {.dtype = EW_S64, .data = &l->rounds};
    EW_TRY(ew_graph_const(im->g, NULL, EW_VALUE_CONST, &number, true, &l->in[0]));
    EW_TRY(ew_onnx_scalar(im->g, EW_BOOL, 1, &l->in[1]));
    EW_TRY(import_body(&child, &l->body, l->in, l->out));
    for (int i = 0; i < l->n_carried; i++)
        l->in[2 + i] = l->out[1 + i];
    for (int i = 0; i < l->n_scans; i++)
        EW_TRY(add_axis(im->g, l->out[1 + l->n_carried + i],
                        &l->scans[i * l->rounds_max + l->rounds]));
    return known_scalar(im, l->out[0], "condition", go_on);
}

static ew_err join_rounds(struct ew_onnx_import *im, const struct loop *l, int scan, int *out)
{
    const struct {
        int64_t axis;
    } first = {0};
    EW_CHECK(l->rounds > 0, EW_ERR_UNSUPPORTED, "it has no rounds, and output %d no shape",
             l->n_carried + scan);
    return ew_graph_add(im->g, &ew_op_concat, NULL, &first,
                        ew_inputs(&l->scans[scan * l->rounds_max], (int)l->rounds), out);
}

static ew_err import_loop(struct ew_onnx_import *im, const Ew__OnnxNode *from,
                          const struct ew_onnx_node *n, int *out)
{
    struct loop l = {0};
    int64_t trips = INT64_MAX, go_on = 1;
    if (n->n_in > 0 && n->in[0] >= 0)
        EW_TRY(known_scalar(im, n->in[0], "number of rounds", &trips));
    if (n->n_in > 1 && n->in[1] >= 0)
        EW_TRY(known_scalar(im, n->in[1], "condition", &go_on));
    l.rounds_max = ew_max_i64(0, ew_min_i64(trips, MAX_ROUNDS));
    EW_TRY(open_loop(im, from, n, &l));
    for (; l.rounds < l.rounds_max && go_on; l.rounds++)
        EW_TRY(run_round(im, &l, &go_on));
    EW_CHECK(!go_on || l.rounds >= trips, EW_ERR_UNSUPPORTED, "it has more than %d rounds",
             MAX_ROUNDS);
    for (int i = 0; i < n->n_out; i++) {
        if (i < l.n_carried)
            out[i] = l.in[2 + i];
        else if (n->out_used[i])
            EW_TRY(join_rounds(im, &l, i - l.n_carried, &out[i]));
    }
    return EW_OK;
}

ew_err ew_onnx_import_call(struct ew_onnx_import *im, const Ew__OnnxNode *from,
                           const struct ew_onnx_node *n, int *out)
{
    const Ew__OnnxFunction *f = function_of(im, from);
    if (f)
        return import_function(im, f, n, out);
    return is_plain(from, "If") ? import_if(im, from, n, out) : import_loop(im, from, n, out);
}
