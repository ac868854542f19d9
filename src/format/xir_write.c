/* SPDX-License-Identifier: Apache-2.0 */
/* Export to XIR files: messages, constants, quantisers.  Nodes are in xir_ops.c. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "format/xir.h"
#include "format/xir_out.h"
#include "graph/layout.h"
#include "graph/ops.h"

#define MAX_ATTRS 8
#define MAX_ARGS  3
#define MAX_FILE  ((size_t)INT32_MAX) /* what protobuf allows */

enum { FLOAT = 4 }; /* XIR's data type */

/* ---- Operators ---- */

/* Makes a name valid (letters, digits, underscores, as the vendor's tools write them) and unique.
 */
static const char *fit_name(struct ew_xir_out *x, const char *name)
{
    char *fit = ew_arena_strdup(&x->arena, *name ? name : "op");
    for (char *c = fit; c && *c; c++)
        *c = (char)(isalnum((unsigned char)*c) ? *c : '_');
    const char *out = fit;
    for (int i = 1; out && ew_names_find(&x->names, out) >= 0; i++)
        out = ew_arena_printf(&x->arena, "%s_%d", fit, i);
    return out;
}

static ew_err put_tensor(struct ew_xir_out *x, Ew__XirOp *op, const struct ew_shape *shape)
{
    Ew__XirTensor *t = ew_arena_alloc(&x->arena, sizeof(*t));
    uint32_t *dims = ew_arena_array(&x->arena, EW_MAX_RANK, sizeof(*dims));
    EW_CHECK(t && dims, EW_ERR_MEMORY, "no memory for operator %s", op->op_name);
    ew__xir_tensor__init(t);
    t->tensor_name = op->op_name;
    t->has_data_type = t->has_tensor_bit_width = true;
    t->data_type = FLOAT;
    t->tensor_bit_width = 32;
    t->tensor_dim = dims;
    for (int i = 0; i < shape->rank; i++) {
        EW_CHECK(shape->dim[i] <= INT32_MAX, EW_ERR_LIMIT, "%s: dimension %d is %lld", op->op_name,
                 i, (long long)shape->dim[i]);
        dims[t->n_tensor_dim++] = (uint32_t)shape->dim[i];
    }
    if (shape->rank == 0) /* XIR has no scalars */
        dims[t->n_tensor_dim++] = 1;
    op->output_tensor = t;
    return EW_OK;
}

ew_err ew_xir_op(struct ew_xir_out *x, const char *name, const char *type,
                 const struct ew_shape *shape, Ew__XirOp **out)
{
    Ew__XirOp *op = ew_arena_alloc(&x->arena, sizeof(*op));
    EW_TRY(
        ew_grow((void **)&x->graph.op_node, &x->cap_ops, (int)x->graph.n_op_node + 1, sizeof(op)));
    EW_CHECK(op, EW_ERR_MEMORY, "no memory for operator %s", name);
    ew__xir_op__init(op);
    op->op_name = ew_arena_strdup(&x->arena, fit_name(x, name));
    op->op_type = ew_arena_strdup(&x->arena, type);
    op->op_attr = ew_arena_array(&x->arena, MAX_ATTRS, sizeof(*op->op_attr));
    op->args = ew_arena_array(&x->arena, MAX_ARGS, sizeof(*op->args));
    EW_CHECK(!x->arena.failed, EW_ERR_MEMORY, "no memory for operator %s", name);
    EW_TRY(put_tensor(x, op, shape));
    EW_TRY(ew_names_add(&x->names, op->op_name, (int)x->graph.n_op_node));
    x->graph.op_node[x->graph.n_op_node++] = op;
    *out = op;
    return EW_OK;
}

/* Adds an entry with an empty value; NULL: no memory. */
static Ew__XirAttr *put_entry(struct ew_xir_out *x, const char *key, Ew__XirEntry **slot)
{
    Ew__XirEntry *e = ew_arena_alloc(&x->arena, sizeof(*e));
    Ew__XirAttr *a = ew_arena_alloc(&x->arena, sizeof(*a));
    if (!e || !a)
        return NULL;
    ew__xir_entry__init(e);
    ew__xir_attr__init(a);
    e->key = ew_arena_strdup(&x->arena, key);
    e->value = a;
    *slot = e;
    return a;
}

static Ew__XirAttr *attr(struct ew_xir_out *x, Ew__XirOp *op, const char *key)
{
    EW_ASSERT(op->n_op_attr < MAX_ATTRS);
    Ew__XirAttr *a = put_entry(x, key, &op->op_attr[op->n_op_attr]);
    op->n_op_attr += a != NULL;
    return a;
}

void ew_xir_int(struct ew_xir_out *x, Ew__XirOp *op, const char *key, int64_t v)
{
    Ew__XirAttr *a = attr(x, op, key);
    if (!a)
        return;
    a->has_int32_value = true;
    a->int32_value = (int32_t)v;
}

void ew_xir_bool(struct ew_xir_out *x, Ew__XirOp *op, const char *key, bool v)
{
    Ew__XirAttr *a = attr(x, op, key);
    if (!a)
        return;
    a->has_bool_value = true;
    a->bool_value = v;
}

void ew_xir_float(struct ew_xir_out *x, Ew__XirOp *op, const char *key, double v)
{
    Ew__XirAttr *a = attr(x, op, key);
    if (!a)
        return;
    a->has_float_value = true;
    a->float_value = (float)v;
}

void ew_xir_text(struct ew_xir_out *x, Ew__XirOp *op, const char *key, const char *v)
{
    Ew__XirAttr *a = attr(x, op, key);
    if (a)
        a->string_value = ew_arena_strdup(&x->arena, v);
}

void ew_xir_ints(struct ew_xir_out *x, Ew__XirOp *op, const char *key, const int64_t *v, int n)
{
    Ew__XirAttr *a = attr(x, op, key);
    Ew__XirInts *list = ew_arena_alloc(&x->arena, sizeof(*list));
    int32_t *values = ew_arena_array(&x->arena, (size_t)n + 1, sizeof(*values));
    if (!a || !list || !values)
        return;
    ew__xir_ints__init(list);
    for (int i = 0; i < n; i++)
        values[i] = (int32_t)v[i];
    list->value = values;
    list->n_value = (size_t)n;
    a->int32_vec_value = list;
}

void ew_xir_arg(struct ew_xir_out *x, Ew__XirOp *op, const char *key, const char *const *ops, int n)
{
    Ew__XirArg *a = ew_arena_alloc(&x->arena, sizeof(*a));
    char **list = ew_arena_array(&x->arena, (size_t)n + 1, sizeof(*list));
    if (!a || !list)
        return;
    EW_ASSERT(op->n_args < MAX_ARGS);
    ew__xir_arg__init(a);
    a->arg_name = ew_arena_strdup(&x->arena, key);
    for (int i = 0; i < n; i++)
        list[i] = ew_arena_strdup(&x->arena, ops[i]);
    a->arg_ops = list;
    a->n_arg_ops = (size_t)n;
    op->args[op->n_args++] = a;
}

/* ---- Constants and quantisers ---- */

/* Adds shape and type, which `data` and `const` repeat as attributes. */
static void put_source(struct ew_xir_out *x, Ew__XirOp *op)
{
    int64_t dims[EW_MAX_RANK];
    const Ew__XirTensor *t = op->output_tensor;
    for (size_t i = 0; i < t->n_tensor_dim; i++)
        dims[i] = t->tensor_dim[i];
    ew_xir_ints(x, op, "shape", dims, (int)t->n_tensor_dim);
    ew_xir_text(x, op, "data_type", "FLOAT32");
}

ew_err ew_xir_const(struct ew_xir_out *x, const char *name, const struct ew_shape *shape,
                    const float *data, const char **op)
{
    Ew__XirOp *o;
    Ew__XirBytes *bytes = ew_arena_alloc(&x->arena, sizeof(*bytes));
    EW_TRY(ew_xir_op(x, name, "const", shape, &o));
    put_source(x, o);
    Ew__XirAttr *a = attr(x, o, "data");
    EW_CHECK(a && bytes, EW_ERR_MEMORY, "no memory for constant %s", name);
    ew__xir_bytes__init(bytes);
    bytes->has_value = true;
    /* a cast from const: packing only reads it */
    bytes->value.data = (uint8_t *)(uintptr_t)data;
    bytes->value.len = (size_t)ew_shape_count(shape) * sizeof(*data);
    a->bytes_value = bytes;
    *op = o->op_name;
    return EW_OK;
}

ew_err ew_xir_fix(struct ew_xir_out *x, const char *from, const struct ew_shape *shape,
                  int position, const char **op)
{
    Ew__XirOp *o;
    const char *name = ew_arena_printf(&x->arena, "%s_fix", from);
    EW_CHECK(name, EW_ERR_MEMORY, "no memory for operator %s", from);
    EW_TRY(ew_xir_op(x, name, "fix", shape, &o));
    ew_xir_int(x, o, "fix_point", position);
    ew_xir_int(x, o, "bit_width", 8);
    ew_xir_text(x, o, "round_mode", "DPU_ROUND");
    ew_xir_bool(x, o, "if_signed", true);
    ew_xir_arg(x, o, "input", &from, 1);
    *op = o->op_name;
    return EW_OK;
}

static bool is(const struct ew_graph *g, int node, const struct ew_op *op)
{
    return node >= 0 && g->nodes[node].op == op;
}

/* The position of a quantiser's or dequantiser's scale, 2^-position. */
static ew_err position_of(const struct ew_graph *g, int node, int *out)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_tensor *scale = &g->values[n->in[1]].t;
    const int zero = n->n_in > 2 ? n->in[2] : -1;
    int exponent = 0;
    const double mantissa =
        scale->data && ew_tensor_count(scale) == 1 ? frexp(ew_tensor_get(scale, 0), &exponent) : 0;
    const bool none = zero < 0 || (g->values[zero].t.data && g->values[zero].t.dtype == EW_S8 &&
                                   ew_tensor_count(&g->values[zero].t) == 1 &&
                                   ew_tensor_get_int(&g->values[zero].t, 0) == 0);
    EW_CHECK(mantissa >= 0.5 && mantissa <= 0.5 && none, EW_ERR_UNSUPPORTED,
             "%s: XIR has one power-of-two scale a tensor, int8 and zero point 0: quantize with "
             "--scheme pow2",
             n->name);
    *out = 1 - exponent;
    return EW_OK;
}

/* Copies the elements to the arena as float32, permuted by `perm`. */
static ew_err copy_floats(struct ew_xir_out *x, const struct ew_tensor *t, const int *perm,
                          double scale, struct ew_tensor *out)
{
    *out = (struct ew_tensor){.dtype = EW_F32, .shape = t->shape};
    const size_t n = (size_t)ew_tensor_count(t);
    float *plain = ew_arena_array(&x->arena, n + 1, sizeof(*plain));
    EW_CHECK(plain, EW_ERR_MEMORY, "no memory for a constant of %zu elements", n);
    for (size_t i = 0; i < n; i++)
        plain[i] = (float)(ew_tensor_get(t, (int64_t)i) * scale);
    out->data = plain;
    if (!perm)
        return EW_OK;
    const struct ew_tensor from = *out;
    for (int i = 0; i < t->shape.rank; i++)
        out->shape.dim[i] = t->shape.dim[perm[i]];
    out->data = ew_arena_array(&x->arena, n + 1, sizeof(*plain));
    EW_CHECK(out->data, EW_ERR_MEMORY, "no memory for a constant of %zu elements", n);
    ew_tensor_permute(&from, perm, out);
    return EW_OK;
}

ew_err ew_xir_value(struct ew_xir_out *x, int value, const int *perm, const char **op)
{
    const struct ew_graph *g = x->g;
    const int from = g->values[value].producer;
    const bool dequantised = is(g, from, &ew_op_dequantize_linear);
    const int source = dequantised ? g->nodes[from].in[0] : value;
    const struct ew_value *v = &g->values[source];
    if (x->op[value] || !v->t.data) {
        *op = x->op[value];
        EW_CHECK(*op && !perm, EW_ERR_UNSUPPORTED, "%s is computed, XIR wants a constant", v->name);
        return EW_OK;
    }
    int position = 0;
    if (dequantised)
        EW_TRY(position_of(g, from, &position));
    EW_CHECK(!dequantised || v->t.dtype == EW_S8, EW_ERR_UNSUPPORTED,
             "%s is %s, XIR's fix is to int8: quantize with --scheme pow2", v->name,
             ew_dtype_name(v->t.dtype));
    struct ew_tensor t;
    EW_TRY(copy_floats(x, &v->t, perm, ldexp(1, -position), &t));
    EW_TRY(ew_xir_const(x, v->name, &t.shape, t.data, op));
    return dequantised ? ew_xir_fix(x, *op, &t.shape, position, op) : EW_OK;
}

/* quantize_linear and the dequantize_linear after it become one `fix`, or none if the value already
 * has the same. */
static ew_err put_quantizer(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    const int in = n->in[0], out = n->out[0];
    struct ew_shape shape = x->g->values[out].t.shape;
    int position;
    EW_TRY(position_of(x->g, node, &position));
    x->fix[out] = (struct ew_xir_fix){true, position};
    x->turned[out] = x->turned[in];
    if (x->fix[in].is && x->fix[in].position == position) {
        x->op[out] = x->op[in];
        return EW_OK;
    }
    const char *from;
    EW_TRY(ew_xir_value(x, in, NULL, &from));
    if (x->turned[in])
        shape = (struct ew_shape){4, {shape.dim[0], shape.dim[2], shape.dim[3], shape.dim[1]}};
    return ew_xir_fix(x, from, &shape, position, &x->op[out]);
}

static ew_err put_dequantizer(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    const int in = n->in[0], out = n->out[0];
    int position;
    if (x->g->values[in].t.data)
        return EW_OK; /* written where it is read: ew_xir_value */
    EW_TRY(position_of(x->g, node, &position));
    EW_CHECK(x->fix[in].is && x->fix[in].position == position, EW_ERR_UNSUPPORTED,
             "%s: its scale differs from its quantiser's", n->name);
    x->op[out] = x->op[in];
    x->fix[out] = x->fix[in];
    x->turned[out] = x->turned[in];
    return EW_OK;
}

/* ---- Inputs ---- */

static bool to_last(const struct ew_node *n)
{
    const struct ew_transpose_attr *a = n->attr;
    static const int64_t last[] = {0, 2, 3, 1};
    return n->op == &ew_op_transpose && a->perm.n == 4 &&
           memcmp(a->perm.v, last, sizeof(last)) == 0;
}

/* True if all readers, behind quantisers, transpose it to channels-last. */
static bool is_turned(const struct ew_graph *g, int value)
{
    bool any = false;
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == value)
            return false;
    for (int k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k].n_in; i++) {
            if (g->nodes[k].in[i] != value)
                continue;
            const bool pair =
                is(g, k, &ew_op_quantize_linear) || is(g, k, &ew_op_dequantize_linear);
            /* recursion through quantiser and dequantiser only */
            if (!to_last(&g->nodes[k]) && !(pair && is_turned(g, g->nodes[k].out[0])))
                return false;
            any = true;
        }
    return any;
}

static ew_err put_input(struct ew_xir_out *x, int value)
{
    const struct ew_value *v = &x->g->values[value];
    struct ew_shape s = v->t.shape;
    Ew__XirOp *op;
    EW_CHECK(v->t.dtype == EW_F32, EW_ERR_UNSUPPORTED, "input %s is %s, XIR's data is float32",
             v->name, ew_dtype_name(v->t.dtype));
    x->turned[value] = s.rank == 4 && !v->channels_last && is_turned(x->g, value);
    if (x->turned[value])
        s = (struct ew_shape){4, {s.dim[0], s.dim[2], s.dim[3], s.dim[1]}};
    EW_TRY(ew_xir_op(x, v->name, "data", &s, &op));
    put_source(x, op);
    x->op[value] = op->op_name;
    return EW_OK;
}

/* ---- Export ---- */

static ew_err put_nodes(struct ew_xir_out *x)
{
    struct ew_graph *g = x->g;
    bool any = false;
    for (int i = 0; i < g->n_inputs; i++)
        EW_TRY(put_input(x, g->inputs[i]));
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (is(g, k, &ew_op_quantize_linear))
            EW_TRY(put_quantizer(x, k));
        else if (is(g, k, &ew_op_dequantize_linear))
            EW_TRY(put_dequantizer(x, k));
        else if (x->turned[n->in[0]] && to_last(n))
            x->op[n->out[0]] = x->op[n->in[0]], x->fix[n->out[0]] = x->fix[n->in[0]];
        else
            EW_TRY(ew_xir_put_node(x, k));
        any |= x->fix[n->out[0]].is;
    }
    EW_CHECK(any, EW_ERR_UNSUPPORTED,
             "nothing in it is quantised, and a DPU has no floating point: quantize with --scheme "
             "pow2 first");
    return EW_OK;
}

/* XIR has no list of outputs: fails if an output has readers. */
static ew_err check_outputs(struct ew_xir_out *x)
{
    for (int i = 0; i < x->g->n_outputs; i++) {
        const char *name = x->op[x->g->outputs[i]];
        EW_CHECK(name, EW_ERR_UNSUPPORTED, "output %s is a constant",
                 x->g->values[x->g->outputs[i]].name);
        for (size_t k = 0; k < x->graph.n_op_node; k++)
            for (size_t a = 0; a < x->graph.op_node[k]->n_args; a++)
                for (size_t m = 0; m < x->graph.op_node[k]->args[a]->n_arg_ops; m++)
                    EW_CHECK(strcmp(x->graph.op_node[k]->args[a]->arg_ops[m], name) != 0,
                             EW_ERR_UNSUPPORTED,
                             "output %s is read by another node, which XIR cannot say", name);
    }
    return EW_OK;
}

/* Adds the root subgraph with all operators, which the vendor's compiler partitions. */
static ew_err put_root(struct ew_xir_out *x)
{
    Ew__XirSubgraph *root = ew_arena_alloc(&x->arena, sizeof(*root));
    char **names = ew_arena_array(&x->arena, x->graph.n_op_node + 1, sizeof(*names));
    EW_CHECK(root && names, EW_ERR_MEMORY, "no memory");
    ew__xir_subgraph__init(root);
    root->subgraph_name = ew_arena_strdup(&x->arena, "root");
    root->op_name = names;
    for (; root->n_op_name < x->graph.n_op_node; root->n_op_name++)
        names[root->n_op_name] = x->graph.op_node[root->n_op_name]->op_name;
    x->graph.subg_root = root;
    return EW_OK;
}

/* Writes the notes. */
static ew_err put_notes(struct ew_xir_out *x)
{
    size_t n = 0;
    for (const struct ew_note *at = x->g->notes; at; at = at->next)
        n++;
    x->graph.graph_attr = ew_arena_array(&x->arena, n + 1, sizeof(*x->graph.graph_attr));
    EW_CHECK(x->graph.graph_attr, EW_ERR_MEMORY, "no memory");
    for (const struct ew_note *at = x->g->notes; at; at = at->next) {
        Ew__XirAttr *a = put_entry(x, at->key, &x->graph.graph_attr[x->graph.n_graph_attr++]);
        EW_CHECK(a, EW_ERR_MEMORY, "no memory");
        a->string_value = ew_arena_strdup(&x->arena, at->value);
    }
    return EW_OK;
}

static ew_err put_graph(struct ew_xir_out *x, const struct ew_graph *g, int64_t batch)
{
    EW_TRY(ew_graph_clone(g, &x->g));
    EW_TRY(ew_graph_set_batch(x->g, batch));
    EW_TRY(ew_graph_infer(x->g));
    const size_t n = (size_t)x->g->n_values + 1;
    x->op = ew_arena_array(&x->arena, n, sizeof(*x->op));
    x->fix = ew_arena_array(&x->arena, n, sizeof(*x->fix));
    x->turned = ew_arena_array(&x->arena, n, sizeof(*x->turned));
    EW_CHECK(x->op && x->fix && x->turned, EW_ERR_MEMORY, "no memory for %zu values", n);
    ew__xir_graph__init(&x->graph);
    x->graph.graph_name = ew_arena_strdup(&x->arena, x->g->name);
    EW_TRY(put_nodes(x));
    EW_TRY(check_outputs(x));
    EW_TRY(put_root(x));
    EW_TRY(put_notes(x));
    EW_CHECK(!x->arena.failed, EW_ERR_MEMORY, "no memory for the file's messages");
    return EW_OK;
}

static ew_err write_file(const struct ew_xir_out *x, const char *path)
{
    const size_t size = ew__xir_graph__get_packed_size(&x->graph);
    EW_CHECK(size <= MAX_FILE, EW_ERR_LIMIT, "has %zu bytes, protobuf allows 2 GiB", size);
    EW_CLEANUP(ew_free_ptr) uint8_t *bytes = malloc(size + 1);
    EW_CHECK(bytes, EW_ERR_MEMORY, "no memory for %zu bytes", size);
    ew__xir_graph__pack(&x->graph, bytes);
    return ew_file_write(path, bytes, size);
}

ew_err ew_xir_save(const struct ew_graph *g, const char *path, int64_t batch)
{
    struct ew_xir_out x = {0};
    ew_arena_init(&x.arena);
    ew_err e = put_graph(&x, g, batch < 1 ? 1 : batch);
    if (e == EW_OK)
        e = write_file(&x, path);
    free(x.graph.op_node);
    ew_names_fini(&x.names);
    ew_graph_free(x.g);
    ew_arena_fini(&x.arena);
    return ew_fail_in(e, "%s", path);
}
