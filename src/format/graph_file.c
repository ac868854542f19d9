/* SPDX-License-Identifier: Apache-2.0 */
/* Serialisation of a graph:
 *
 *   name
 *   count, then each value that no node produces: kind, flags, name, tensor
 *   count, then each node: operator, name, inputs, names of outputs, attributes as text
 *   inputs, outputs
 *
 * Values are numbered in this order; an absent one is -1.  Attributes are written by name in the
 * text form of the operator's field table, so that a new one with a default keeps old files
 * readable. */
#include "format/graph_file.h"

#include <stdlib.h>
#include <string.h>

#define MAX_COUNT          (1 << 24) /* values or nodes */
#define MAX_PORTS          (1 << 16) /* inputs or outputs of a node */
#define ATTR_CHARS         4096      /* an attribute as text */
#define MARK_FROZEN        1
#define MARK_CHANNELS_LAST 2

/* ---- Writing ---- */

static bool is_made(const struct ew_value *v)
{
    return v->kind == EW_VALUE_ACT;
}

static void put_value(struct ew_byte_writer *p, const struct ew_value *v)
{
    struct ew_tensor t = v->t;
    if (v->kind == EW_VALUE_INPUT)
        t.data = NULL;
    ew_write_int(p, v->kind);
    ew_write_int(p, (v->frozen ? MARK_FROZEN : 0) | (v->channels_last ? MARK_CHANNELS_LAST : 0));
    ew_write_int(p, v->dynamic);
    ew_write_text(p, v->name);
    ew_write_tensor(p, &t);
}

static bool is_set(const struct ew_field *f, const void *attr)
{
    const void *at = (const char *)attr + f->offset;
    return f->type != EW_FIELD_STR || *(const char *const *)at;
}

static void put_attrs(struct ew_byte_writer *p, const struct ew_node *n)
{
    char text[ATTR_CHARS];
    int count = 0;
    for (const struct ew_field *f = n->op->attrs; f && f->name; f++)
        count += is_set(f, n->attr);
    ew_write_int(p, count);
    for (const struct ew_field *f = n->op->attrs; f && f->name; f++) {
        if (!is_set(f, n->attr))
            continue;
        const int length = ew_field_print(f, n->attr, text, sizeof(text));
        EW_ASSERT(length < (int)sizeof(text));
        (void)length;
        ew_write_text(p, f->name);
        ew_write_text(p, text);
    }
}

static void put_node(struct ew_byte_writer *p, const struct ew_graph *g, const struct ew_node *n,
                     const int *number)
{
    EW_ASSERT(!n->channels_first);
    ew_write_text(p, n->op->name);
    ew_write_text(p, n->name);
    ew_write_int(p, n->n_in);
    for (int i = 0; i < n->n_in; i++)
        ew_write_int(p, n->in[i] < 0 ? -1 : number[n->in[i]]);
    ew_write_int(p, n->n_out);
    for (int i = 0; i < n->n_out; i++)
        ew_write_text(p, n->out[i] < 0 ? "" : g->values[n->out[i]].name);
    put_attrs(p, n);
}

static void put_list(struct ew_byte_writer *p, const int *list, int n, const int *number)
{
    ew_write_int(p, n);
    for (int i = 0; i < n; i++)
        ew_write_int(p, number[list[i]]);
}

/* Assigns the file's number to each value. */
static int number_values(const struct ew_graph *g, int *number)
{
    int next = 0;
    for (int i = 0; i < g->n_values; i++)
        if (!is_made(&g->values[i]))
            number[i] = next++;
    const int given = next;
    for (int k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k].n_out; i++, next++)
            if (g->nodes[k].out[i] >= 0)
                number[g->nodes[k].out[i]] = next;
    return given;
}

ew_err ew_graph_write(struct ew_byte_writer *p, const struct ew_graph *g)
{
    EW_CLEANUP(ew_free_ptr) int *number = calloc((size_t)g->n_values + 1, sizeof(*number));
    EW_CHECK(number, EW_ERR_MEMORY, "no memory to write graph %s", g->name);
    ew_write_text(p, g->name);
    ew_write_int(p, number_values(g, number));
    for (int i = 0; i < g->n_values; i++)
        if (!is_made(&g->values[i]))
            put_value(p, &g->values[i]);
    ew_write_int(p, g->n_nodes);
    for (int k = 0; k < g->n_nodes; k++)
        put_node(p, g, &g->nodes[k], number);
    put_list(p, g->inputs, g->n_inputs, number);
    put_list(p, g->outputs, g->n_outputs, number);
    return EW_OK;
}

/* ---- Reading ---- */

/* A graph being read. */
struct reader {
    struct ew_byte_reader *in;
    struct ew_graph *g;
    int *value; /* by number in the file: value of g; -1: an absent output */
    int n_values, cap_values;
};

static ew_err add_number(struct reader *r, int value)
{
    EW_TRY(ew_grow((void **)&r->value, &r->cap_values, r->n_values + 1, sizeof(*r->value)));
    r->value[r->n_values++] = value;
    return EW_OK;
}

static ew_err get_value(struct reader *r)
{
    int64_t kind, marks, dynamic;
    const char *name;
    struct ew_tensor t;
    int value;
    EW_TRY(ew_read_int(r->in, EW_VALUE_INPUT, EW_VALUE_STATE, &kind));
    EW_TRY(ew_read_int(r->in, 0, MARK_FROZEN | MARK_CHANNELS_LAST, &marks));
    EW_TRY(ew_read_int(r->in, 0, UINT32_MAX, &dynamic));
    EW_TRY(ew_read_text(r->in, &name));
    EW_TRY(ew_read_tensor(r->in, &t));
    EW_CHECK(t.data || kind != EW_VALUE_CONST, EW_ERR_FORMAT, "%s: constant %s has no value",
             r->in->what, name);
    if (kind == EW_VALUE_INPUT)
        EW_TRY(ew_graph_input(r->g, name, t.dtype, &t.shape, &value));
    else
        EW_TRY(ew_graph_const(r->g, name, (enum ew_value_kind)kind, &t, !r->in->borrow, &value));
    struct ew_value *v = &r->g->values[value];
    v->dynamic = (uint32_t)dynamic;
    v->frozen = marks & MARK_FROZEN;
    v->channels_last = marks & MARK_CHANNELS_LAST;
    return add_number(r, value);
}

static ew_err get_attrs(struct reader *r, const struct ew_op *op, void *attr)
{
    int64_t n;
    EW_TRY(ew_read_int(r->in, 0, MAX_PORTS, &n));
    for (int64_t i = 0; i < n; i++) {
        const char *name, *text;
        EW_TRY(ew_read_text(r->in, &name));
        EW_TRY(ew_read_text(r->in, &text));
        const struct ew_field *f = ew_field_find(op->attrs, name);
        EW_CHECK(f, EW_ERR_FORMAT, "%s: operator %s has no attribute %s", r->in->what, op->name,
                 name);
        const ew_err e = ew_field_parse(f, text, attr);
        EW_CHECK(e == EW_OK, EW_ERR_FORMAT,
                 "%s: operator %s: %s: '%.100s' is not a valid attribute", r->in->what, op->name,
                 name, text);
    }
    return EW_OK;
}

/* Reads a number and maps it to a value; -1, if `least` allows it, is none. */
static ew_err get_number(struct reader *r, int64_t least, int *out)
{
    int64_t v;
    EW_TRY(ew_read_int(r->in, least, r->n_values - 1, &v));
    EW_ASSERT(v < 0 || r->value);
    *out = v < 0 ? -1 : r->value[v];
    EW_CHECK(v < 0 || *out >= 0, EW_ERR_FORMAT, "%s: value %lld is used, but its node omits it",
             r->in->what, (long long)v);
    return EW_OK;
}

/* Reads a node's inputs, and the names of its outputs. */
static ew_err get_ports(struct reader *r, struct ew_node *n, const char ***names)
{
    int64_t count;
    EW_TRY(ew_read_int(r->in, 0, MAX_PORTS, &count));
    n->n_in = (int)count;
    n->in = ew_arena_array(r->in->arena, (size_t)count + 1, sizeof(*n->in));
    EW_CHECK(n->in, EW_ERR_MEMORY, "%s: no memory", r->in->what);
    for (int i = 0; i < n->n_in; i++)
        EW_TRY(get_number(r, -1, &n->in[i]));
    EW_TRY(ew_read_int(r->in, 1, MAX_PORTS, &count));
    n->n_out = (int)count;
    *names = ew_arena_array(r->in->arena, (size_t)count, sizeof(**names));
    n->out = ew_arena_array(r->in->arena, (size_t)count, sizeof(*n->out));
    EW_CHECK(*names && n->out, EW_ERR_MEMORY, "%s: no memory", r->in->what);
    for (int i = 0; i < n->n_out; i++)
        EW_TRY(ew_read_text(r->in, &(*names)[i]));
    return EW_OK;
}

/* Names the outputs as in the file; one without a name is absent. */
static ew_err name_outputs(struct reader *r, const int *out, int n, const char *const *names)
{
    for (int i = 0; i < n; i++) {
        EW_TRY(add_number(r, *names[i] ? out[i] : -1));
        if (*names[i])
            EW_TRY(ew_graph_rename(r->g, out[i], names[i]));
        else
            r->g->nodes[r->g->n_nodes - 1].out[i] = -1; /* the sweep removes its value */
    }
    return EW_OK;
}

static ew_err get_node(struct reader *r)
{
    const char *op, **names = NULL;
    struct ew_node n = {0};
    EW_TRY(ew_read_text(r->in, &op));
    EW_TRY(ew_read_text(r->in, &n.name));
    n.op = ew_op_find(op);
    EW_CHECK(n.op, EW_ERR_FORMAT, "%s: has operator %s, which this program lacks", r->in->what, op);
    EW_TRY(get_ports(r, &n, &names));
    n.attr = ew_arena_alloc(r->in->arena, n.op->attr_size + 1);
    EW_CHECK(n.attr, EW_ERR_MEMORY, "%s: no memory", r->in->what);
    if (n.op->attrs)
        ew_fields_default(n.op->attrs, n.attr, n.op->attr_size);
    EW_TRY(get_attrs(r, n.op, n.attr));
    EW_TRY(ew_graph_add_node(r->g, &n, n.out));
    return name_outputs(r, n.out, n.n_out, names);
}

static ew_err get_inputs(struct reader *r)
{
    int64_t n;
    EW_TRY(ew_read_int(r->in, r->g->n_inputs, r->g->n_inputs, &n));
    for (int i = 0; i < n; i++) {
        int value = 0;
        EW_TRY(get_number(r, 0, &value));
        bool new = r->g->values[value].kind == EW_VALUE_INPUT;
        for (int k = 0; k < i; k++)
            new &= r->g->inputs[k] != value;
        EW_CHECK(new, EW_ERR_FORMAT, "%s: its list of inputs is wrong", r->in->what);
        r->g->inputs[i] = value;
    }
    return EW_OK;
}

static ew_err get_outputs(struct reader *r)
{
    int64_t n;
    EW_TRY(ew_read_int(r->in, 0, MAX_COUNT, &n));
    for (int64_t i = 0; i < n; i++) {
        int value = 0;
        EW_TRY(get_number(r, 0, &value));
        EW_TRY(ew_graph_output(r->g, value));
    }
    return EW_OK;
}

static ew_err get_graph(struct reader *r)
{
    int64_t n;
    EW_TRY(ew_read_int(r->in, 0, MAX_COUNT, &n));
    for (int64_t i = 0; i < n; i++)
        EW_TRY(get_value(r));
    EW_TRY(ew_read_int(r->in, 0, MAX_COUNT, &n));
    for (int64_t i = 0; i < n; i++)
        EW_TRY(get_node(r));
    EW_TRY(get_inputs(r));
    EW_TRY(get_outputs(r));
    EW_TRY(ew_graph_sweep(r->g));
    EW_TRY(ew_graph_check(r->g));
    return ew_graph_infer(r->g);
}

ew_err ew_graph_read(struct ew_byte_reader *in, struct ew_graph **out)
{
    const char *name;
    struct ew_graph *g;
    EW_TRY(ew_read_text(in, &name));
    EW_TRY(ew_graph_new(name, &g));
    struct ew_arena *before = in->arena;
    in->arena = &g->arena; /* owns strings of attributes */
    struct reader r = {.in = in, .g = g};
    ew_err e = get_graph(&r);
    in->arena = before;
    free(r.value);
    if (e != EW_OK) {
        ew_graph_free(g);
        return strncmp(ew_error_message(), in->what, strlen(in->what)) == 0
                   ? e
                   : ew_fail_in(EW_ERR_FORMAT, "%s", in->what);
    }
    *out = g;
    return EW_OK;
}
