/* SPDX-License-Identifier: Apache-2.0 */
/* Import of one node: to struct ew_onnx_node, then through the operator's hook. */
#include <string.h>

#include "format/onnx_import.h"

#define OPSET_MAX 24

/* AttributeProto.AttributeType */
enum { FLOAT = 1, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS };

/* The attribute's type; in IR 1, which does not store it, that of the field present. */
static int attr_type(const Ew__OnnxAttr *a)
{
    if (a->has_type && a->type)
        return a->type;
    if (a->has_f)
        return FLOAT;
    if (a->has_i)
        return INT;
    if (a->has_s)
        return STRING;
    if (a->t)
        return TENSOR;
    if (a->n_floats)
        return FLOATS;
    return a->n_ints ? INTS : 0;
}

/* Joins a list of strings with commas. */
static ew_err join_strings(struct ew_onnx_import *im, const Ew__OnnxAttr *a,
                           struct ew_onnx_attr *out)
{
    size_t size = 1;
    for (size_t i = 0; i < a->n_strings; i++)
        size += a->strings[i].len + 1;
    char *text = ew_arena_alloc(&im->file->arena, size), *at = text;
    EW_CHECK(text, EW_ERR_MEMORY, "no memory for attribute %.100s", out->name);
    for (size_t i = 0; i < a->n_strings; i++) {
        if (i)
            *at++ = ',';
        if (a->strings[i].len)
            memcpy(at, a->strings[i].data, a->strings[i].len);
        at += a->strings[i].len;
    }
    *at = '\0';
    out->type = EW_ONNX_STRING;
    out->s = text;
    return EW_OK;
}

static ew_err read_attr(struct ew_onnx_import *im, const Ew__OnnxAttr *a, struct ew_onnx_attr *out)
{
    *out = (struct ew_onnx_attr){.name = ew_onnx_text(a->name), .type = EW_ONNX_OTHER};
    char *text;
    switch (attr_type(a)) {
    case FLOAT:
        out->type = EW_ONNX_FLOAT;
        out->f = a->f;
        return EW_OK;
    case INT:
        out->type = EW_ONNX_INT;
        out->i = a->i;
        return EW_OK;
    case STRING:
        text = ew_arena_alloc(&im->file->arena, a->s.len + 1);
        EW_CHECK(text, EW_ERR_MEMORY, "no memory for attribute %.100s", out->name);
        if (a->s.len)
            memcpy(text, a->s.data, a->s.len);
        out->type = EW_ONNX_STRING;
        out->s = text;
        return EW_OK;
    case TENSOR:
        EW_CHECK(a->t, EW_ERR_FORMAT, "attribute %.100s: its tensor is missing", out->name);
        out->type = EW_ONNX_TENSOR;
        return ew_onnx_tensor(im->file, a->t, out->name, &im->g->arena, &out->tensor);
    case FLOATS:
        out->type = EW_ONNX_FLOATS;
        out->n = (int64_t)a->n_floats;
        out->floats = a->floats;
        return EW_OK;
    case INTS:
        out->type = EW_ONNX_INTS;
        out->n = (int64_t)a->n_ints;
        out->ints = a->ints;
        return EW_OK;
    case STRINGS:
        return join_strings(im, a, out);
    default:
        return EW_OK;
    }
}

/* Resolves an attribute reference in a function: the call's attribute, or the function's default.
 */
static ew_err read_reference(struct ew_onnx_import *im, const Ew__OnnxAttr *a,
                             struct ew_onnx_attr *out, bool *there)
{
    EW_CHECK(im->function, EW_ERR_FORMAT, "attribute %.100s belongs to a function",
             ew_onnx_text(a->name));
    const struct ew_onnx_attr *given = ew_onnx_attr(im->call, a->ref_attr_name);
    *there = given != NULL;
    if (given)
        *out = *given;
    for (size_t i = 0; !*there && i < im->function->n_attribute_proto; i++) {
        const Ew__OnnxAttr *def = im->function->attribute_proto[i];
        if (strcmp(ew_onnx_text(def->name), a->ref_attr_name) != 0)
            continue;
        EW_TRY(read_attr(im, def, out));
        *there = true;
    }
    out->name = ew_onnx_text(a->name);
    return EW_OK;
}

static ew_err read_attrs(struct ew_onnx_import *im, const Ew__OnnxNode *from,
                         struct ew_onnx_node *n)
{
    EW_CHECK(from->n_attribute <= EW_ONNX_MAX_ATTRS, EW_ERR_LIMIT,
             "has %zu attributes, at most %d are read", from->n_attribute, EW_ONNX_MAX_ATTRS);
    for (size_t i = 0; i < from->n_attribute; i++) {
        const Ew__OnnxAttr *a = from->attribute[i];
        EW_CHECK(!ew_onnx_attr(n, ew_onnx_text(a->name)), EW_ERR_FORMAT,
                 "attribute %.100s is there twice", ew_onnx_text(a->name));
        bool there = true;
        if (a->ref_attr_name && *a->ref_attr_name)
            EW_TRY(read_reference(im, a, &n->attrs[n->n_attrs], &there));
        else
            EW_TRY(read_attr(im, a, &n->attrs[n->n_attrs]));
        n->n_attrs += there;
    }
    return EW_OK;
}

/* ---- Operators ---- */

static const char *plain_domain(const char *domain)
{
    return domain && strcmp(domain, "ai.onnx") != 0 ? domain : "";
}

/* The opset of a domain; fails if the file does not import it. */
static ew_err find_opset(Ew__OnnxOpset *const *list, size_t n, const char *domain, int *out)
{
    for (size_t i = 0; i < n; i++) {
        const Ew__OnnxOpset *o = list[i];
        if (strcmp(plain_domain(o->domain), plain_domain(domain)) != 0)
            continue;
        EW_CHECK(o->version >= 1 && o->version <= 1000, EW_ERR_FORMAT, "opset is %lld",
                 (long long)o->version);
        *out = (int)o->version;
        return EW_OK;
    }
    if (domain && strcmp(domain, "com.microsoft") == 0) {
        *out = 1; /* the only version; ONNX Runtime does not require the import either */
        return EW_OK;
    }
    return ew_fail(EW_ERR_FORMAT, "the file names no opset for domain \"%.100s\"",
                   *plain_domain(domain) ? domain : "ai.onnx");
}

ew_err ew_onnx_check_opset(Ew__OnnxOpset *const *list, size_t n)
{
    int opset = 0;
    if (find_opset(list, n, "", &opset) == EW_OK) /* else each node reports it */
        EW_CHECK(opset <= OPSET_MAX, EW_ERR_UNSUPPORTED, "opset %d is not supported, only up to %d",
                 opset, OPSET_MAX);
    return EW_OK;
}

static ew_err find_op(const struct ew_onnx_import *im, int node, const struct ew_op **out)
{
    const Ew__OnnxNode *n = im->graph->node[node];
    char label[EW_ONNX_LABEL];
    int opset;
    const char *type = ew_onnx_text(n->op_type);
    *out = NULL;
    if (ew_onnx_is_call(im, n))
        return EW_OK;
    const ew_err e = find_opset(im->opsets, im->n_opsets, n->domain, &opset);
    if (e != EW_OK)
        return ew_fail_in(e, "node %s", ew_onnx_label(im->graph, node, label));
    *out = ew_op_find_onnx(type, plain_domain(n->domain));
    const char *domain = *plain_domain(n->domain) ? n->domain : "ai.onnx";
    EW_CHECK(*out, EW_ERR_UNSUPPORTED,
             "operator %.100s (%.100s, opset %d) of node %s is not supported", type, domain, opset,
             ew_onnx_label(im->graph, node, label));
    return EW_OK;
}

ew_err ew_onnx_find_ops(struct ew_onnx_import *im)
{
    const struct ew_onnx_topology *w = &im->topology;
    im->op = ew_arena_array(&im->file->arena, (size_t)w->n_nodes, sizeof(*im->op));
    EW_CHECK(im->op, EW_ERR_MEMORY, "no memory for %d nodes", w->n_nodes);
    for (int o = 0; o < w->n_nodes; o++)
        EW_TRY(find_op(im, w->order[o], &im->op[w->order[o]]));
    return EW_OK;
}

/* ---- Nodes ---- */

/* Names the node's outputs as in the file; a value that the import hook passed through keeps its
 * own name. */
static ew_err name_outputs(struct ew_onnx_import *im, int node, const int *out, int n_before)
{
    const struct ew_onnx_topology *w = &im->topology;
    for (int i = w->first_out[node]; i < w->first_out[node + 1]; i++) {
        const int id = out[i - w->first_out[node]];
        if (w->out[i] < 0)
            continue;
        const bool computed = id >= 0 && id < im->g->n_values;
        im->value[w->out[i]] = computed ? id : EW_ONNX_NOT_COMPUTED;
        if (id >= n_before)
            EW_TRY(ew_graph_rename(im->g, id, w->name[w->out[i]]));
    }
    return EW_OK;
}

/* PyTorch's exporter writes weights as initialisers, and numbers of formulas as Constant nodes. */
static void mark_literals(struct ew_graph *g, int first)
{
    for (int v = first; v < g->n_values; v++)
        g->values[v].literal = g->values[v].kind == EW_VALUE_CONST;
}

static ew_err read_value(const struct ew_onnx_import *im, int wired, int *out)
{
    *out = wired < 0 ? -1 : im->value[wired];
    EW_CHECK(*out != EW_ONNX_NOT_COMPUTED, EW_ERR_UNSUPPORTED, "its input %.150s is not computed",
             im->topology.name[wired]);
    return EW_OK;
}

static ew_err import_node(struct ew_onnx_import *im, int node, const char *label)
{
    const struct ew_onnx_topology *w = &im->topology;
    const Ew__OnnxNode *from = im->graph->node[node];
    struct ew_onnx_node n = {.type = from->op_type,
                             .domain = plain_domain(from->domain),
                             .name = label,
                             .n_in = w->first_in[node + 1] - w->first_in[node],
                             .n_out = w->first_out[node + 1] - w->first_out[node]};
    EW_CHECK(n.n_out > 0, EW_ERR_FORMAT, "has no outputs");
    if (im->op[node])
        EW_TRY(find_opset(im->opsets, im->n_opsets, from->domain, &n.opset));
    int *in = ew_arena_array(&im->file->arena, (size_t)n.n_in, sizeof(*in));
    int *used = ew_arena_array(&im->file->arena, (size_t)n.n_out, sizeof(*used));
    int *out = ew_arena_array(&im->file->arena, (size_t)n.n_out, sizeof(*out));
    EW_CHECK(in && used && out, EW_ERR_MEMORY, "no memory");
    for (int i = 0; i < n.n_in; i++)
        EW_TRY(read_value(im, w->in[w->first_in[node] + i], &in[i]));
    for (int i = 0; i < n.n_out; i++) {
        out[i] = -1;
        used[i] = w->out[w->first_out[node] + i] >= 0;
    }
    n.in = in;
    n.out_used = used;
    EW_TRY(read_attrs(im, from, &n));
    const int n_before = im->g->n_values;
    if (im->op[node]) {
        EW_TRY(ew_onnx_upgrade(im, &n, in));
        enum ew_dtype was;
        EW_TRY(ew_onnx_widen(im->g, im->op[node], in, n.n_in, &was));
        EW_TRY(ew_onnx_import(im->g, im->op[node], &n, out));
        EW_TRY(ew_onnx_narrow(im->g, was, out, n.n_out));
    } else {
        EW_TRY(ew_onnx_import_call(im, from, &n, out));
    }
    if (strcmp(from->op_type, "Constant") == 0 && !*n.domain)
        mark_literals(im->g, n_before);
    return name_outputs(im, node, out, n_before);
}

ew_err ew_onnx_import_node(struct ew_onnx_import *im, int node)
{
    char label[EW_ONNX_LABEL];
    ew_onnx_label(im->graph, node, label);
    const ew_err e = import_node(im, node, label);
    if (e == EW_OK || strncmp(ew_error_message(), "node ", 5) == 0)
        return e; /* shape inference has named the node already */
    return ew_fail_in(e, "node %s (%.100s)", label, im->graph->node[node]->op_type);
}
