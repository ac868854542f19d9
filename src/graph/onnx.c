/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX nodes as plain C structs: conversion of attributes to and from operators' field tables,
 * generic import and export.  The file itself is read and written in format/. */
#include "graph/onnx.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const struct ew_onnx_attr *ew_onnx_attr(const struct ew_onnx_node *n, const char *name)
{
    for (int i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, name) == 0)
            return &n->attrs[i];
    return NULL;
}

int64_t ew_onnx_int(const struct ew_onnx_node *n, const char *name, int64_t def)
{
    const struct ew_onnx_attr *a = ew_onnx_attr(n, name);
    return a && a->type == EW_ONNX_INT ? a->i : def;
}

double ew_onnx_float(const struct ew_onnx_node *n, const char *name, double def)
{
    const struct ew_onnx_attr *a = ew_onnx_attr(n, name);
    return a && a->type == EW_ONNX_FLOAT ? (double)a->f : def;
}

const char *ew_onnx_str(const struct ew_onnx_node *n, const char *name, const char *def)
{
    const struct ew_onnx_attr *a = ew_onnx_attr(n, name);
    return a && a->type == EW_ONNX_STRING ? a->s : def;
}

/* ---- Attributes in ---- */

static const char *type_name(enum ew_onnx_attr_type t)
{
    static const char *const names[] = {"an int", "a float",  "a string",           "ints",
                                        "floats", "a tensor", "a graph or the like"};
    return names[t];
}

/* The ONNX attribute of a field; NULL: not exchanged. */
static const char *onnx_name(const struct ew_op *op, const struct ew_field *f)
{
    for (const char *const *r = op->onnx.rename; r && r[0]; r += 2)
        if (strcmp(r[0], f->name) == 0)
            return r[1];
    return f->name;
}

static const struct ew_field *find_field(const struct ew_op *op, const char *name)
{
    for (const struct ew_field *f = op->attrs; f && f->name; f++) {
        const char *onnx = onnx_name(op, f);
        if (onnx && strcmp(onnx, name) == 0)
            return f;
    }
    return NULL;
}

static ew_err check_range(const struct ew_field *f, const char *name, double v)
{
    EW_CHECK(!(f->min < f->max) || (v >= f->min && v <= f->max), EW_ERR_FORMAT,
             "attribute %s is %g, must be %g to %g", name, v, f->min, f->max);
    return EW_OK;
}

static ew_err fill_ints(const struct ew_field *f, const struct ew_onnx_attr *a, struct ew_ints *out)
{
    const int64_t n = a->type == EW_ONNX_INT ? 1 : a->n;
    const int64_t *v = a->type == EW_ONNX_INT ? &a->i : a->ints;
    EW_CHECK(n <= EW_MAX_INTS, EW_ERR_LIMIT, "attribute %s has %lld entries, at most %d are read",
             a->name, (long long)n, EW_MAX_INTS);
    out->n = (int32_t)n;
    for (int i = 0; i < out->n; i++) {
        EW_TRY(check_range(f, a->name, (double)v[i]));
        out->v[i] = v[i];
    }
    return EW_OK;
}

static ew_err fill_enum(const struct ew_field *f, const struct ew_onnx_attr *a, int *out)
{
    for (int i = 0; f->choices[i]; i++) {
        if (strcasecmp(f->choices[i], a->s) == 0) {
            *out = i;
            return EW_OK;
        }
    }
    return ew_fail(EW_ERR_UNSUPPORTED, "attribute %s is \"%.40s\"", a->name, a->s);
}

static bool type_fits(enum ew_field_type f, enum ew_onnx_attr_type a)
{
    switch (f) {
    case EW_FIELD_BOOL:
    case EW_FIELD_INT:
    case EW_FIELD_SIZE:
        return a == EW_ONNX_INT;
    case EW_FIELD_FLOAT:
        return a == EW_ONNX_FLOAT;
    case EW_FIELD_STR:
    case EW_FIELD_ENUM:
        return a == EW_ONNX_STRING;
    case EW_FIELD_INTS:
        return a == EW_ONNX_INTS || a == EW_ONNX_INT;
    }
    return false;
}

static ew_err fill_field(const struct ew_field *f, const struct ew_onnx_attr *a, void *attr)
{
    void *p = (char *)attr + f->offset;
    EW_CHECK(type_fits(f->type, a->type), EW_ERR_TYPE, "attribute %s is %s", a->name,
             type_name(a->type));
    switch (f->type) {
    case EW_FIELD_BOOL:
        *(bool *)p = a->i != 0;
        return EW_OK;
    case EW_FIELD_INT:
    case EW_FIELD_SIZE:
        *(int64_t *)p = a->i;
        return check_range(f, a->name, (double)a->i);
    case EW_FIELD_FLOAT: /* NaN stands for an absent field */
        EW_CHECK(!isnan(a->f), EW_ERR_FORMAT, "attribute %s is not a number", a->name);
        *(double *)p = (double)a->f;
        return check_range(f, a->name, (double)a->f);
    case EW_FIELD_STR:
        *(const char **)p = a->s;
        return EW_OK;
    case EW_FIELD_ENUM:
        return fill_enum(f, a, p);
    case EW_FIELD_INTS:
        return fill_ints(f, a, p);
    }
    return EW_OK;
}

ew_err ew_onnx_fill(const struct ew_op *op, const struct ew_onnx_node *n, const char *const *ignore,
                    void *attr)
{
    if (op->attrs)
        ew_fields_default(op->attrs, attr, op->attr_size);
    for (int i = 0; i < n->n_attrs; i++) {
        const struct ew_field *f = find_field(op, n->attrs[i].name);
        bool skip = false;
        for (const char *const *p = ignore; !f && p && *p; p++)
            skip |= strcmp(*p, n->attrs[i].name) == 0;
        EW_CHECK(f || skip, EW_ERR_UNSUPPORTED, "attribute %s is not supported", n->attrs[i].name);
        if (f)
            EW_TRY(fill_field(f, &n->attrs[i], attr));
    }
    return EW_OK;
}

/* ---- Import ---- */

/* The attribute as a tensor without data, and the address of its elements. */
static ew_err attr_elements(const struct ew_onnx_attr *a, struct ew_tensor *t, const void **from)
{
    *t = (struct ew_tensor){.dtype = EW_S64, .shape = {1, {a->n}}};
    switch (a->type) {
    case EW_ONNX_INT:
        t->shape.rank = 0;
        *from = &a->i;
        return EW_OK;
    case EW_ONNX_INTS:
        *from = a->ints;
        return EW_OK;
    case EW_ONNX_FLOAT:
        t->dtype = EW_F32;
        t->shape.rank = 0;
        *from = &a->f;
        return EW_OK;
    case EW_ONNX_FLOATS:
        t->dtype = EW_F32;
        *from = a->floats;
        return EW_OK;
    case EW_ONNX_TENSOR:
        *t = a->tensor;
        *from = a->tensor.data;
        return EW_OK;
    case EW_ONNX_STRING:
    case EW_ONNX_OTHER:
        break;
    }
    return ew_fail(EW_ERR_TYPE, "attribute %s is %s", a->name, type_name(a->type));
}

/* Copies the elements at `from` into the arena as t's data. */
static ew_err copy_elements(struct ew_arena *arena, const void *from, struct ew_tensor *t)
{
    const size_t bytes = ew_tensor_bytes(t);
    t->data = ew_arena_alloc(arena, bytes);
    EW_CHECK(t->data, EW_ERR_MEMORY, "no memory for %zu bytes", bytes);
    EW_ASSERT(from || !bytes);
    if (bytes)
        memcpy(t->data, from, bytes);
    return EW_OK;
}

ew_err ew_onnx_input_or_attr(struct ew_graph *g, const struct ew_onnx_node *n, int slot,
                             const char *attr, int *out)
{
    *out = slot < n->n_in ? n->in[slot] : -1;
    const struct ew_onnx_attr *a = ew_onnx_attr(n, attr);
    if (*out >= 0 || !a)
        return EW_OK;
    struct ew_tensor t;
    const void *from = NULL;
    EW_TRY(attr_elements(a, &t, &from));
    EW_TRY(copy_elements(&g->arena, from, &t));
    char name[256];
    snprintf(name, sizeof(name), "%.200s_%.40s", n->name, attr);
    return ew_graph_const(g, name, EW_VALUE_CONST, &t, false, out);
}

ew_err ew_onnx_scalar(struct ew_graph *g, enum ew_dtype dtype, double v, int *out)
{
    union {
        int64_t i;
        double d;
    } room;
    struct ew_tensor t = {.dtype = dtype, .data = &room};
    ew_tensor_store(&t, 0, 1, &v);
    return ew_graph_const(g, NULL, EW_VALUE_CONST, &t, true, out);
}

/* Copies string attributes, which must outlive the file they were read from. */
static ew_err keep_strings(struct ew_graph *g, const struct ew_op *op, void *attr)
{
    for (const struct ew_field *f = op->attrs; f && f->name; f++) {
        if (f->type != EW_FIELD_STR)
            continue;
        const char **s = (const char **)(void *)((char *)attr + f->offset);
        if (*s)
            *s = ew_arena_strdup(&g->arena, *s);
        EW_CHECK(!g->arena.failed, EW_ERR_MEMORY, "no memory for attribute %s", f->name);
    }
    return EW_OK;
}

ew_err ew_onnx_import_default(struct ew_graph *g, const struct ew_op *op,
                              const struct ew_onnx_node *n, const void *attr, int *out)
{
    void *own = ew_arena_alloc(&g->arena, op->attr_size);
    int *list = ew_arena_array(&g->arena, (size_t)n->n_in, sizeof(*list));
    EW_CHECK(own && list, EW_ERR_MEMORY, "no memory for node %s", n->name);
    if (attr && op->attr_size)
        memcpy(own, attr, op->attr_size);
    else if (!attr)
        EW_TRY(ew_onnx_fill(op, n, NULL, own));
    EW_TRY(keep_strings(g, op, own));
    struct ew_node node = {.op = op,
                           .name = n->name,
                           .attr = own,
                           .n_in = n->n_in,
                           .n_out = n->n_out,
                           .in = list,
                           .channels_first = (op->flags & EW_OP_SPATIAL) != 0};
    if (node.n_in)
        memcpy(list, n->in, (size_t)node.n_in * sizeof(*list));
    while (node.n_in > op->min_in && node.in[node.n_in - 1] < 0)
        node.n_in--;
    while (node.n_out > 1 && n->out_used && !n->out_used[node.n_out - 1])
        node.n_out--;
    return ew_graph_add_node(g, &node, out);
}

ew_err ew_onnx_import(struct ew_graph *g, const struct ew_op *op, const struct ew_onnx_node *n,
                      int *out)
{
    /* Hooks may rely on the first input; the others are checked when the node is added. */
    const bool sourceless =
        op->min_in == 0 || (op->onnx.sourceless && strcmp(n->type, op->onnx.sourceless) == 0);
    EW_CHECK(sourceless || (n->n_in > 0 && n->in[0] >= 0), EW_ERR_FORMAT,
             "operator %s needs its first input", n->type);
    if (op->onnx.import)
        return op->onnx.import(g, n, out);
    EW_CHECK(n->opset >= op->onnx.since, EW_ERR_UNSUPPORTED,
             "operator %s of opset %d is not supported, only %d and later", n->type, n->opset,
             op->onnx.since);
    return ew_onnx_import_default(g, op, n, NULL, out);
}

/* ---- Attributes out ---- */

/* A cleared entry for the attribute: the existing one or a new one. */
static ew_err claim(struct ew_onnx_node *n, const char *name, enum ew_onnx_attr_type type,
                    struct ew_onnx_attr **out)
{
    int i = 0;
    while (i < n->n_attrs && strcmp(n->attrs[i].name, name) != 0)
        i++;
    EW_CHECK(i < EW_ONNX_MAX_ATTRS, EW_ERR_LIMIT, "node %s has more than %d attributes", n->name,
             EW_ONNX_MAX_ATTRS);
    if (i == n->n_attrs)
        n->n_attrs++;
    n->attrs[i] = (struct ew_onnx_attr){.name = name, .type = type};
    *out = &n->attrs[i];
    return EW_OK;
}

ew_err ew_onnx_set_int(struct ew_onnx_node *n, const char *name, int64_t v)
{
    struct ew_onnx_attr *a;
    EW_TRY(claim(n, name, EW_ONNX_INT, &a));
    a->i = v;
    return EW_OK;
}

static ew_err set_float(struct ew_onnx_node *n, const char *name, double v)
{
    struct ew_onnx_attr *a;
    EW_TRY(claim(n, name, EW_ONNX_FLOAT, &a));
    a->f = (float)v;
    return EW_OK;
}

ew_err ew_onnx_set_str(struct ew_onnx_node *n, const char *name, const char *v)
{
    struct ew_onnx_attr *a;
    EW_TRY(claim(n, name, EW_ONNX_STRING, &a));
    a->s = ew_arena_strdup(n->arena, v);
    EW_CHECK(a->s, EW_ERR_MEMORY, "no memory for attribute %s", name);
    return EW_OK;
}

ew_err ew_onnx_set_ints(struct ew_onnx_node *n, const char *name, const int64_t *v, int count)
{
    struct ew_tensor t = {.dtype = EW_S64, .shape = {1, {count}}};
    EW_TRY(copy_elements(n->arena, v, &t));
    struct ew_onnx_attr *a;
    EW_TRY(claim(n, name, EW_ONNX_INTS, &a));
    a->n = count;
    a->ints = t.data;
    return EW_OK;
}

ew_err ew_onnx_set_tensor(struct ew_onnx_node *n, const char *name, const struct ew_tensor *v)
{
    struct ew_tensor t = *v;
    EW_TRY(copy_elements(n->arena, v->data, &t));
    struct ew_onnx_attr *a;
    EW_TRY(claim(n, name, EW_ONNX_TENSOR, &a));
    a->tensor = t;
    return EW_OK;
}

void ew_onnx_drop(struct ew_onnx_node *n, const char *name)
{
    for (int i = 0; i < n->n_attrs; i++) {
        if (strcmp(n->attrs[i].name, name) != 0)
            continue;
        n->attrs[i] = n->attrs[--n->n_attrs];
        return;
    }
}

ew_err ew_onnx_set_input(struct ew_onnx_node *n, int slot, const struct ew_tensor *t)
{
    EW_CHECK(n->n_consts < EW_ONNX_MAX_CONSTS, EW_ERR_LIMIT,
             "node %s has more than %d constant inputs", n->name, EW_ONNX_MAX_CONSTS);
    struct ew_tensor copy = *t;
    EW_TRY(copy_elements(n->arena, t->data, &copy));
    if (slot >= n->n_in) {
        int *in = ew_arena_array(n->arena, (size_t)slot + 1, sizeof(*in));
        EW_CHECK(in, EW_ERR_MEMORY, "no memory for node %s", n->name);
        for (int i = 0; i <= slot; i++)
            in[i] = i < n->n_in ? n->in[i] : -1;
        n->in = in;
        n->n_in = slot + 1;
    }
    n->consts[n->n_consts++] = (struct ew_onnx_const){.slot = slot, .t = copy};
    return EW_OK;
}

ew_err ew_onnx_set_input_ints(struct ew_onnx_node *n, int slot, const int64_t *v, int count)
{
    struct ew_tensor t = {.dtype = EW_S64, .shape = {1, {count}}};
    EW_TRY(copy_elements(n->arena, v, &t));
    return ew_onnx_set_input(n, slot, &t);
}

/* ---- Export ---- */

ew_err ew_onnx_export_arithmetic(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const enum ew_dtype t = g->values[n->in[0]].t.dtype;
    if (!ew_dtype_is_float(t) && ew_dtype_size(t) < 4 && n->opset < 14)
        n->opset = 14;
    return EW_OK;
}

static ew_err export_field(const struct ew_field *f, const char *name, const void *attr,
                           struct ew_onnx_node *n)
{
    const void *p = (const char *)attr + f->offset;
    const struct ew_ints *ints = p;
    switch (f->type) {
    case EW_FIELD_BOOL:
        return ew_onnx_set_int(n, name, *(const bool *)p);
    case EW_FIELD_INT:
    case EW_FIELD_SIZE:
        return ew_onnx_set_int(n, name, *(const int64_t *)p);
    case EW_FIELD_FLOAT:
        return set_float(n, name, *(const double *)p);
    case EW_FIELD_ENUM:
        return ew_onnx_set_str(n, name, f->choices[*(const int *)p]);
    case EW_FIELD_STR:
        return *(const char *const *)p ? ew_onnx_set_str(n, name, *(const char *const *)p) : EW_OK;
    case EW_FIELD_INTS:
        return ints->n ? ew_onnx_set_ints(n, name, ints->v, ints->n) : EW_OK;
    }
    return EW_OK;
}

ew_err ew_onnx_export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_node *from = &g->nodes[node];
    const struct ew_onnx_map *map = &from->op->onnx;
    EW_CHECK(map->type || map->export, EW_ERR_UNSUPPORTED,
             "operator %s of node %s has no ONNX form", from->op->name, from->name);
    n->type = map->type;
    n->domain = map->domain;
    n->name = from->name;
    n->in = from->in;
    n->n_in = from->n_in;
    n->n_out = from->n_out;
    n->n_attrs = n->n_consts = 0;
    n->opset = map->since > n->opset ? map->since : n->opset;
    for (const struct ew_field *f = from->op->attrs; f && f->name; f++) {
        const char *name = onnx_name(from->op, f);
        if (name)
            EW_TRY(export_field(f, name, from->attr, n));
    }
    return map->export ? map->export(g, node, n) : EW_OK;
}
