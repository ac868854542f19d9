/* SPDX-License-Identifier: Apache-2.0 */
/* Import of an ONNX file: inputs, constants, nodes in topological order, then conversion to
 * channels-last.  Nodes are in onnx_node.c, tensors in onnx_tensor.c. */
#include "format/onnx_import.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "base/sized.h"
#include "format/onnx_large_weights.h"
#include "graph/ops.h"

#define IR_MAX 13

/* Budgets of inlined bodies: nodes in total, and bytes to unpack per byte of file.  A nested graph
 * is unpacked again at each level, and in each iteration of a loop. */
#define BODY_NODES (1 << 18)
#define BODY_BYTES 16

#define MAX_FILE ((size_t)INT32_MAX) /* what protobuf allows */

/* ---- Checks of the model ---- */

static ew_err check_model(const Ew__OnnxModel *m)
{
    EW_CHECK(m->graph, EW_ERR_FORMAT, "is not an ONNX model: there is no graph in it");
    EW_CHECK(m->ir_version >= 1 && m->ir_version <= IR_MAX, EW_ERR_UNSUPPORTED,
             "IR version %lld is not supported, only up to %d", (long long)m->ir_version, IR_MAX);
    EW_CHECK(!ew_onnx_has_unknown(&m->graph->base, 15), EW_ERR_UNSUPPORTED,
             "sparse initializers are not supported");
    return ew_onnx_check_opset(m->opset_import, m->n_opset_import);
}

/* ---- Inputs ---- */

/* The caller's options for input `index`, or NULL. */
static const struct ew_onnx_input *find_given(const struct ew_onnx_import *im, int index,
                                              const char *name)
{
    for (int i = 0; im->opts && i < im->opts->n_inputs; i++) {
        const char *given = im->opts->inputs[i].name;
        if (given && *given ? strcmp(given, name) == 0 : i == index)
            return &im->opts->inputs[i];
    }
    return NULL;
}

static ew_err input_dtype(const Ew__OnnxValue *v, const struct ew_onnx_input *given,
                          enum ew_dtype *out)
{
    const Ew__OnnxTensorType *t = v->type ? v->type->tensor_type : NULL;
    EW_CHECK(t, EW_ERR_UNSUPPORTED, "input %.150s is not a tensor", v->name);
    EW_CHECK(ew_dtype_from_onnx(t->elem_type, out), EW_ERR_UNSUPPORTED,
             "input %.150s has elements of type %s (%d)", v->name, ew_onnx_dtype_text(t->elem_type),
             t->elem_type);
    EW_CHECK(!given || !given->dtype || strcmp(given->dtype, ew_dtype_name(*out)) == 0, EW_ERR_TYPE,
             "input %.150s is %s, given is %s", v->name, ew_dtype_name(*out), given->dtype);
    return EW_OK;
}

static bool is_open(const Ew__OnnxDim *d)
{
    return !d->has_dim_value || d->dim_value == -1; /* some tools write -1 for unknown */
}

/* Merges the shapes of file and caller; `dynamic` gets the symbolic dimensions. */
static ew_err input_shape(const Ew__OnnxValue *v, const struct ew_onnx_input *given,
                          struct ew_shape *out, uint32_t *dynamic)
{
    const Ew__OnnxShape *s = v->type->tensor_type->shape;
    if (given && given->rank < 0)
        given = NULL;
    EW_CHECK(s || given, EW_ERR_UNSUPPORTED, "input %.150s has no shape: it must be given",
             v->name);
    const size_t rank = s ? s->n_dim : (size_t)given->rank;
    EW_CHECK(rank <= EW_MAX_RANK, EW_ERR_LIMIT, "input %.150s has %zu dimensions, at most %d",
             v->name, rank, EW_MAX_RANK);
    EW_CHECK(!given || (size_t)given->rank == rank, EW_ERR_SHAPE,
             "input %.150s has %zu dimensions, given are %d", v->name, rank, given->rank);
    *out = (struct ew_shape){.rank = (int32_t)rank};
    *dynamic = s ? 0 : ~0u;
    for (int i = 0; i < out->rank; i++) {
        const bool open = !s || is_open(s->dim[i]);
        EW_CHECK(!open || given || i == 0, EW_ERR_UNSUPPORTED,
                 "input %.150s: dimension %d (%.50s) is open: its shape must be given", v->name, i,
                 ew_onnx_text(s->dim[i]->dim_param));
        EW_CHECK(open || !given || given->dims[i] == s->dim[i]->dim_value, EW_ERR_SHAPE,
                 "input %.150s: dimension %d is %lld, given is %lld", v->name, i,
                 (long long)s->dim[i]->dim_value, (long long)given->dims[i]);
        out->dim[i] = given ? given->dims[i] : open ? 1 : s->dim[i]->dim_value;
        *dynamic |= open ? 1u << i : 0;
    }
    return ew_shape_check(out, v->name);
}

static ew_err add_input(struct ew_onnx_import *im, const Ew__OnnxValue *v, int index, int value)
{
    const struct ew_onnx_input *given = find_given(im, index, v->name);
    struct ew_tensor t = {0};
    uint32_t dynamic = 0;
    EW_TRY(input_dtype(v, given, &t.dtype));
    EW_TRY(input_shape(v, given, &t.shape, &dynamic));
    int id;
    EW_TRY(ew_graph_input(im->g, v->name, t.dtype, &t.shape, &id));
    im->g->values[id].dynamic = dynamic;
    im->value[value] = id;
    if (!given || !given->data || !im->needed[value])
        return EW_OK;
    const size_t bytes = ew_tensor_bytes(&t);
    t.data = ew_arena_alloc(&im->file->arena, bytes);
    EW_CHECK(t.data, EW_ERR_MEMORY, "input %.150s: no memory", v->name);
    if (bytes)
        memcpy(t.data, given->data, bytes);
    return ew_graph_bind(im->g, id, &t);
}

static ew_err add_inputs(struct ew_onnx_import *im)
{
    const Ew__OnnxGraph *og = im->graph;
    int index = 0;
    for (int i = 0; im->opts && i < im->opts->n_inputs; i++) {
        const char *name = ew_onnx_text(im->opts->inputs[i].name);
        const int value = ew_names_find(&im->topology.names, name);
        EW_CHECK(!*name || (value >= (int)og->n_initializer && im->topology.producer[value] < 0),
                 EW_ERR_ARG, "the model has no input %.150s", name);
    }
    for (size_t i = 0; i < og->n_input; i++) {
        const int value = ew_names_find(&im->topology.names, og->input[i]->name);
        if (value >= (int)og->n_initializer)
            EW_TRY(add_input(im, og->input[i], index++, value));
    }
    return EW_OK;
}

/* Marks the values on whose data some shape depends. */
static void mark_needed(struct ew_onnx_import *im)
{
    const struct ew_onnx_topology *w = &im->topology;
    for (int o = w->n_nodes - 1; o >= 0; o--) {
        const int k = w->order[o];
        bool any = false;
        for (int i = w->first_out[k]; i < w->first_out[k + 1]; i++)
            any |= w->out[i] >= 0 && im->needed[w->out[i]];
        any &= !im->op[k] || !(im->op[k]->flags & EW_OP_SHAPE_ONLY);
        const unsigned known = im->op[k] ? im->op[k]->known_in : ew_onnx_call_known(im, k);
        for (int i = w->first_in[k]; i < w->first_in[k + 1]; i++) {
            const int slot = i - w->first_in[k];
            if (w->in[i] >= 0 && (any || (slot < 32 && (known >> slot & 1))))
                im->needed[w->in[i]] = true;
        }
    }
}

/* ---- Constants and outputs ---- */

ew_err ew_onnx_add_constants(struct ew_onnx_import *im)
{
    const Ew__OnnxGraph *og = im->graph;
    for (size_t i = 0; i < og->n_initializer; i++) {
        struct ew_tensor t;
        const char *name = og->initializer[i]->name;
        EW_TRY(ew_onnx_tensor(im->file, og->initializer[i], name, &im->g->arena, &t));
        EW_TRY(ew_graph_const(im->g, name, EW_VALUE_CONST, &t, false, &im->value[i]));
    }
    return EW_OK;
}

/* Adds a graph output under its own name, also where an import hook passed a value through or an
 * inner value has taken the name. */
static ew_err add_output(struct ew_onnx_import *im, const char *name)
{
    const int wired = ew_names_find(&im->topology.names, name);
    EW_CHECK(*name && wired >= 0, EW_ERR_FORMAT, "nothing defines output %.150s", name);
    int id = im->value[wired];
    EW_CHECK(id >= 0, EW_ERR_FORMAT, "nothing computes output %.150s", name);
    if (strcmp(im->g->values[id].name, name) != 0)
        EW_TRY(ew_graph_add(im->g, &ew_op_identity, NULL, NULL, EW_INPUTS(id), &id));
    EW_TRY(ew_graph_claim_name(im->g, id, name));
    im->value[wired] = id;
    return ew_graph_output(im->g, id);
}

static ew_err add_outputs(struct ew_onnx_import *im)
{
    const Ew__OnnxGraph *og = im->graph;
    EW_CHECK(og->n_output > 0, EW_ERR_FORMAT, "the graph has no outputs");
    for (size_t i = 0; i < og->n_output; i++)
        EW_TRY(add_output(im, ew_onnx_text(og->output[i]->name)));
    return EW_OK;
}

/* ---- Import ---- */

ew_err ew_onnx_begin(struct ew_onnx_import *im)
{
    EW_TRY(ew_onnx_topology_init(&im->topology, im->graph, &im->file->arena));
    const size_t n = (size_t)im->topology.n_names;
    im->value = ew_arena_array(&im->file->arena, n, sizeof(*im->value));
    im->needed = ew_arena_array(&im->file->arena, n, sizeof(*im->needed));
    EW_CHECK(im->value && im->needed, EW_ERR_MEMORY, "no memory for %zu values", n);
    for (size_t i = 0; i < n; i++)
        im->value[i] = -1;
    return ew_onnx_find_ops(im);
}

static ew_err build(struct ew_onnx_import *im)
{
    EW_TRY(ew_onnx_begin(im));
    mark_needed(im);
    EW_TRY(add_inputs(im));
    EW_TRY(ew_onnx_add_constants(im));
    for (int o = 0; o < im->topology.n_nodes; o++)
        EW_TRY(ew_onnx_import_node(im, im->topology.order[o]));
    return add_outputs(im);
}

/* Writes c + x and c * x as x + c and x * c: only the second operand can be a weight.  PyTorch adds
 * the bias of a dense layer over tokens in the other order. */
static void put_constants_second(struct ew_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        struct ew_node *n = &g->nodes[k];
        if ((n->op != &ew_op_add && n->op != &ew_op_mul) || n->n_in != 2)
            continue;
        const int first = n->in[0];
        if (g->values[first].kind == EW_VALUE_CONST && g->values[n->in[1]].kind != EW_VALUE_CONST) {
            n->in[0] = n->in[1];
            n->in[1] = first;
        }
    }
}

/* Finishes the graph: constants, shuffles, group norms, conversion to channels-last, parameters. */
static ew_err settle(struct ew_onnx_import *im)
{
    struct ew_graph *g = im->g;
    EW_TRY(ew_graph_keep_known(g)); /* weights that a file reshapes before use */
    EW_TRY(ew_graph_sweep(g));
    put_constants_second(g);
    EW_TRY(ew_graph_mark_params(g));
    EW_TRY(ew_graph_find_shuffles(g));
    EW_TRY(ew_onnx_find_group_norms(g));
    ew_onnx_file_hand_over(im->file,
                           g); /* so that the originals of permuted weights can be freed */
    EW_TRY(ew_graph_channels_last(g));
    EW_TRY(ew_graph_sweep(g));
    EW_TRY(ew_onnx_file_keep(im->file, g));
    EW_TRY(ew_graph_infer(g));
    return ew_graph_check(g);
}

/* `large`: large weights that were cut out of `bytes`; NULL: none. */
static ew_err unpack(struct ew_onnx_import *im, const void *bytes, size_t size,
                     const struct ew_onnx_large_weights *large)
{
    ProtobufCMessage *m;
    EW_TRY(ew_onnx_unpack(im->file, bytes, size, &ew__onnx_model__descriptor, &m));
    if (large)
        EW_TRY(ew_onnx_large_weights_copy(large, im->file, (Ew__OnnxModel *)(void *)m));
    im->model = (const Ew__OnnxModel *)(const void *)m;
    EW_TRY(check_model(im->model));
    im->shared->nodes_left = BODY_NODES;
    im->shared->bytes_left = BODY_BYTES * (int64_t)size;
    im->graph = im->model->graph;
    im->opsets = im->model->opset_import;
    im->n_opsets = im->model->n_opset_import;
    return ew_onnx_find_functions(im);
}

/* Setting a note is linear in their number; the limit bounds crafted files. */
#define MAX_NOTES 1000

static ew_err keep_notes(struct ew_onnx_import *im)
{
    const Ew__OnnxModel *m = im->model;
    for (size_t i = 0; i < m->n_metadata_props && i < MAX_NOTES; i++) {
        const Ew__OnnxEntry *e = m->metadata_props[i];
        if (e->key && e->value)
            EW_TRY(ew_graph_note_set(im->g, e->key, e->value));
    }
    return EW_OK;
}

static ew_err import(struct ew_onnx_import *im)
{
    const char *name = ew_onnx_text(im->graph->name);
    EW_TRY(ew_graph_new(*name ? name : "onnx", &im->g));
    EW_TRY(build(im));
    EW_TRY(keep_notes(im));
    return settle(im);
}

static ew_err finish(struct ew_onnx_import *im, ew_err e, struct ew_graph **out)
{
    if (e == EW_OK)
        *out = im->g;
    else
        ew_graph_free(im->g);
    const ew_err named = ew_fail_in(e, "%s", im->file->path);
    ew_onnx_topology_fini(&im->topology);
    ew_names_fini(&im->shared->functions);
    ew_onnx_file_fini(im->file);
    return named;
}

ew_err ew_onnx_parse(const void *bytes, size_t size, const char *name,
                     const struct ew_onnx_opts *opts, struct ew_graph **out)
{
    struct ew_onnx_file file;
    struct ew_onnx_shared shared = {0};
    struct ew_onnx_import im = {.file = &file, .shared = &shared, .opts = opts};
    ew_onnx_file_init(&file, name, true);
    ew_err e = unpack(&im, bytes, size, NULL);
    if (e == EW_OK)
        e = import(&im);
    return finish(&im, e, out);
}

/* Without having large weights in memory twice. */
static ew_err unpack_mapped(struct ew_onnx_import *im, const void *map, size_t size)
{
    struct ew_onnx_large_weights large;
    ew_err e = ew_onnx_large_weights_find(&large, map, size);
    if (e == EW_OK && large.rest)
        e = unpack(im, large.rest, large.rest_bytes, &large);
    else if (e == EW_OK)
        e = unpack(im, map, size, NULL);
    ew_onnx_large_weights_fini(&large);
    return e;
}

/* Maps the file, if it can be mapped; else *out stays NULL. */
static ew_err map_file(const char *path, void **out, size_t *size)
{
    struct stat st;
    int fd;
    EW_TRY(ew_file_open(path, &fd));
    const bool maps = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
                      (size_t)st.st_size <= MAX_FILE;
    void *map = maps ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    *out = map == MAP_FAILED ? NULL : map;
    *size = maps ? (size_t)st.st_size : 0;
    return EW_OK;
}

static ew_err check_opts(const struct ew_onnx_opts *o)
{
    EW_CHECK(o->n_inputs <= 0 || o->inputs, EW_ERR_ARG, "n_inputs is %d, but inputs is NULL",
             o->n_inputs);
    for (int i = 0; i < o->n_inputs; i++)
        EW_CHECK(o->inputs[i].rank <= 0 || o->inputs[i].dims, EW_ERR_ARG,
                 "dims of given input %d is NULL", i);
    return EW_OK;
}

EW_API ew_err ew_onnx_load_memory(const void *bytes, size_t n_bytes,
                                  const struct ew_onnx_opts *opts, struct ew_graph **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(bytes);
    struct ew_onnx_opts o;
    EW_TRY(ew_sized_import(opts, &o, sizeof(o)));
    EW_TRY(check_opts(&o));
    return ew_onnx_parse(bytes, n_bytes, "ONNX in memory", &o, out);
}

EW_API ew_err ew_onnx_load(const char *path, const struct ew_onnx_opts *opts, struct ew_graph **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(path);
    struct ew_onnx_opts o;
    void *map;
    char *bytes = NULL;
    size_t size;
    EW_TRY(ew_sized_import(opts, &o, sizeof(o)));
    EW_TRY(check_opts(&o));
    EW_TRY(map_file(path, &map, &size));
    if (!map) /* a pipe, empty or too large */
        EW_TRY(ew_file_read(path, MAX_FILE, &bytes, &size));
    struct ew_onnx_file file;
    struct ew_onnx_shared shared = {0};
    struct ew_onnx_import im = {.file = &file, .shared = &shared, .opts = &o};
    ew_onnx_file_init(&file, path, false);
    file.mapped = map;
    file.mapped_size = map ? size : 0;
    ew_err e = map ? unpack_mapped(&im, map, size) : unpack(&im, bytes, size, NULL);
    file.mapped = NULL;
    if (map) /* messages are copies */
        munmap(map, size);
    free(bytes);
    if (e == EW_OK)
        e = import(&im);
    return finish(&im, e, out);
}
