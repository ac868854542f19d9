/* SPDX-License-Identifier: Apache-2.0 */
/* Summary of an ONNX file. */
#include "format/onnx_summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "format/onnx_file.h"
#include "format/onnx_import.h"
#include "graph/op.h"

#define MAX_FILE        ((size_t)INT32_MAX)
#define MAX_UNSUPPORTED 64 /* unsupported operators listed */

struct summary {
    struct ew_arena *a;
    struct ew_onnx_file file;
    const Ew__OnnxModel *model;
    struct ew_names constants, functions; /* hashed, so that crafted files with many are not
                                           * quadratic */
    struct ew_onnx_summary *out;
};

static const char *keep(struct summary *s, const char *text)
{
    return ew_arena_strdup(s->a, ew_onnx_text(text));
}

static bool is_onnx_domain(const char *domain)
{
    return !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
}

/* ---- Header ---- */

static ew_err read_head(struct summary *s)
{
    const Ew__OnnxModel *m = s->model;
    const char *version = ew_onnx_text(m->producer_version);
    s->out->ir = m->ir_version;
    s->out->producer = ew_arena_printf(s->a, "%s%s%s", ew_onnx_text(m->producer_name),
                                       *version ? " " : "", version);
    s->out->opsets = "";
    for (size_t i = 0; i < m->n_opset_import && s->out->opsets; i++) {
        const Ew__OnnxOpset *o = m->opset_import[i];
        const bool plain = is_onnx_domain(o->domain);
        s->out->opsets =
            ew_arena_printf(s->a, "%s%s%s%s%lld", s->out->opsets, i ? ", " : "",
                            plain ? "" : o->domain, plain ? "" : " ", (long long)o->version);
    }
    s->out->nodes = (int64_t)m->graph->n_node;
    s->out->functions = (int64_t)m->n_functions;
    s->out->initializers = (int64_t)m->graph->n_initializer;
    EW_CHECK(s->out->producer && s->out->opsets, EW_ERR_MEMORY, "no memory");
    return EW_OK;
}

/* ---- Inputs and outputs ---- */

static ew_err enter(struct ew_names *t, const char *name)
{
    const char *text = ew_onnx_text(name);
    return ew_names_find(t, text) >= 0 ? EW_OK : ew_names_add(t, text, 0);
}

static ew_err enter_names(struct summary *s)
{
    const Ew__OnnxGraph *g = s->model->graph;
    for (size_t i = 0; i < g->n_initializer; i++)
        EW_TRY(enter(&s->constants, g->initializer[i]->name));
    for (size_t i = 0; i < s->model->n_functions; i++)
        EW_TRY(enter(&s->functions, s->model->functions[i]->name));
    return EW_OK;
}

static const char *shape_text(struct summary *s, const Ew__OnnxTensorType *t)
{
    const char *text = "";
    if (!t || !t->shape)
        return "?";
    if (t->shape->n_dim == 0)
        return "scalar";
    for (size_t i = 0; i < t->shape->n_dim && text; i++) {
        const Ew__OnnxDim *d = t->shape->dim[i];
        const char *sep = i ? " x " : "";
        if (d->has_dim_value)
            text = ew_arena_printf(s->a, "%s%s%lld", text, sep, (long long)d->dim_value);
        else
            text = ew_arena_printf(s->a, "%s%s%s", text, sep,
                                   d->dim_param && *d->dim_param ? d->dim_param : "?");
    }
    return text;
}

static ew_err read_ports(struct summary *s, Ew__OnnxValue *const *list, size_t n, bool inputs,
                         const struct ew_onnx_port **out, int *count)
{
    struct ew_onnx_port *ports = ew_arena_array(s->a, n + 1, sizeof(*ports));
    EW_CHECK(ports, EW_ERR_MEMORY, "no memory for %zu values", n);
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        const Ew__OnnxTensorType *t = list[i]->type ? list[i]->type->tensor_type : NULL;
        if (inputs && ew_names_find(&s->constants, ew_onnx_text(list[i]->name)) >= 0)
            continue;
        struct ew_onnx_port *p = &ports[(*count)++];
        p->name = keep(s, list[i]->name);
        p->type = t ? ew_onnx_dtype_text(t->elem_type) : "not a tensor";
        p->shape = shape_text(s, t);
        EW_CHECK(p->name && p->shape, EW_ERR_MEMORY, "no memory");
    }
    *out = ports;
    return EW_OK;
}

/* ---- Unsupported operators ---- */

static bool is_known(const struct summary *s, const Ew__OnnxNode *n)
{
    const char *type = ew_onnx_text(n->op_type);
    if (is_onnx_domain(n->domain) && (strcmp(type, "If") == 0 || strcmp(type, "Loop") == 0))
        return true;
    return ew_op_find_onnx(type, is_onnx_domain(n->domain) ? "" : n->domain) ||
           ew_names_find(&s->functions, type) >= 0;
}

static ew_err count_unsupported(struct summary *s, struct ew_onnx_unsupported_op *unsupported,
                                int node)
{
    const Ew__OnnxNode *n = s->model->graph->node[node];
    const char *domain = is_onnx_domain(n->domain) ? "" : n->domain;
    char label[EW_ONNX_LABEL];
    const char *op =
        ew_arena_printf(s->a, "%s%s%s", domain, *domain ? "::" : "", ew_onnx_text(n->op_type));
    EW_CHECK(op, EW_ERR_MEMORY, "no memory");
    for (int i = 0; i < s->out->n_unsupported; i++)
        if (strcmp(unsupported[i].op, op) == 0) {
            unsupported[i].count++;
            return EW_OK;
        }
    if (s->out->n_unsupported == MAX_UNSUPPORTED)
        return EW_OK;
    struct ew_onnx_unsupported_op *l = &unsupported[s->out->n_unsupported++];
    *l = (struct ew_onnx_unsupported_op){
        .op = op, .count = 1, .first = keep(s, ew_onnx_label(s->model->graph, node, label))};
    EW_CHECK(l->first, EW_ERR_MEMORY, "no memory");
    return EW_OK;
}

static ew_err find_lacks(struct summary *s)
{
    const Ew__OnnxGraph *g = s->model->graph;
    struct ew_onnx_unsupported_op *unsupported =
        ew_arena_array(s->a, MAX_UNSUPPORTED, sizeof(*unsupported));
    EW_CHECK(unsupported, EW_ERR_MEMORY, "no memory");
    s->out->unsupported = unsupported;
    for (size_t k = 0; k < g->n_node; k++)
        if (!is_known(s, g->node[k]))
            EW_TRY(count_unsupported(s, unsupported, (int)k));
    return EW_OK;
}

static ew_err summarise(struct summary *s, const void *bytes, size_t size)
{
    ProtobufCMessage *m;
    EW_TRY(ew_onnx_unpack(&s->file, bytes, size, &ew__onnx_model__descriptor, &m));
    s->model = (const Ew__OnnxModel *)(const void *)m;
    const Ew__OnnxGraph *g = s->model->graph;
    EW_CHECK(g, EW_ERR_FORMAT, "is not an ONNX model: there is no graph in it");
    EW_TRY(read_head(s));
    EW_TRY(enter_names(s));
    EW_TRY(read_ports(s, g->input, g->n_input, true, &s->out->inputs, &s->out->n_inputs));
    EW_TRY(read_ports(s, g->output, g->n_output, false, &s->out->outputs, &s->out->n_outputs));
    return find_lacks(s);
}

ew_err ew_onnx_summarise(const char *path, struct ew_arena *a, struct ew_onnx_summary *out)
{
    char *bytes;
    size_t size;
    struct summary s = {.a = a, .out = out};
    *out = (struct ew_onnx_summary){0};
    EW_TRY(ew_file_read(path, MAX_FILE, &bytes, &size));
    ew_onnx_file_init(&s.file, path, false);
    const ew_err e = summarise(&s, bytes, size);
    free(bytes);
    ew_names_fini(&s.constants);
    ew_names_fini(&s.functions);
    ew_onnx_file_fini(&s.file);
    return ew_fail_in(e, "%s", path);
}
