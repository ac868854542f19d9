/* SPDX-License-Identifier: Apache-2.0 */
/* Runs two networks on the same inputs, or one beside saved tensors.  To compare all values, graphs
 * run without passes, so that every value exists; to compare outputs only, they run optimised. */
#include "measure/compare_sides.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "format/tensor_file.h"
#include "graph/ops.h"
#include "measure/file_layout.h"

#define NOTHING_DB 200.0

double ew_agreement_db(const struct ew_agreement *a)
{
    if (!(a->noise > 0))
        return isnan(a->noise) ? -NOTHING_DB : NOTHING_DB;
    if (isinf(a->noise)) /* the signal may be infinite, too */
        return -NOTHING_DB;
    return a->signal > 0 ? fmin(10 * log10(a->signal / a->noise), NOTHING_DB) : -NOTHING_DB;
}

/* ---- Opening ---- */

static bool is_output(const struct ew_graph *g, int value)
{
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == value)
            return true;
    return false;
}

/* A copy of the graph with every float value of a node as an additional output. */
static ew_err with_all_values(const struct ew_graph *g, struct ew_graph **out)
{
    EW_TRY(ew_graph_clone(g, out));
    for (int v = 0; v < g->n_values; v++)
        if (g->values[v].kind == EW_VALUE_ACT && g->values[v].t.dtype == EW_F32 && !is_output(g, v))
            EW_TRY(ew_graph_output(*out, v));
    return EW_OK;
}

/* Compiles side i, which is loaded. */
static ew_err compile_side(const struct ew_compare_values_opts *how, int i, struct ew_compared *c)
{
    const struct ew_plan_opts po = {
        .mode = EW_PLAN_INFER, .optimize = !how->layers, .backend = {.threads = how->threads}};
    const struct ew_graph *g = c->side[i].net;
    EW_TRY(how->layers ? with_all_values(g, &c->graph[i]) : ew_graph_clone(g, &c->graph[i]));
    return ew_plan_compile(c->graph[i], &po, &c->plan[i]);
}

static const char *op_of(const struct ew_graph *g, int value)
{
    const int k = g->values[value].producer;
    return k >= 0 ? g->nodes[k].op->name : "";
}

/* The index of the output of g with this name, or -1. */
static int find_output(const struct ew_graph *g, const char *name)
{
    for (int i = 0; i < g->n_outputs; i++)
        if (strcmp(g->values[g->outputs[i]].name, name) == 0)
            return i;
    return -1;
}

/* Whether a batch norm reads the value. */
static bool normalised(const struct ew_graph *g, int value)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (n->n_in > 0 && n->in[0] == value && n->op == &ew_op_batch_norm)
            return true;
    }
    return false;
}

/* In execution order; a node may have several outputs. */
static int by_node(const void *x, const void *y)
{
    const struct ew_agreement *p = x, *q = y;
    return p->node != q->node ? p->node - q->node : p->a - q->a;
}

/* Matches values by name and shape, outputs also by position.  If only one graph has a batch norm
 * folded into a layer, the layer's output differs and is skipped; the next values are compared. */
static ew_err match(struct ew_compared *c)
{
    const struct ew_graph *g = c->graph[0], *h = c->graph[1];
    const int own = c->side[0].net->n_outputs;
    c->v = ew_arena_array(&c->arena, (size_t)g->n_outputs, sizeof(*c->v));
    EW_CHECK(c->v, EW_ERR_MEMORY, "no memory for %d values", g->n_outputs);
    for (int i = 0; i < g->n_outputs; i++) {
        const struct ew_value *v = &g->values[g->outputs[i]];
        int j = find_output(h, v->name);
        if (j < 0 && i < own && i < c->side[1].net->n_outputs)
            j = i;
        if (j < 0 || !ew_shape_equal(&v->t.shape, &h->values[h->outputs[j]].t.shape) ||
            v->t.dtype != EW_F32 || h->values[h->outputs[j]].t.dtype != EW_F32)
            continue;
        if (normalised(g, g->outputs[i]) != normalised(h, h->outputs[j]))
            continue;
        c->v[c->n++] = (struct ew_agreement){.name = v->name,
                                             .op = op_of(g, g->outputs[i]),
                                             .shape = v->t.shape,
                                             .a = i,
                                             .b = j,
                                             .node = v->producer >= 0 ? v->producer : g->n_nodes,
                                             .output = i < own};
    }
    qsort(c->v, (size_t)c->n, sizeof(*c->v), by_node);
    EW_CHECK(c->n > 0, EW_ERR_SHAPE, "%s and %s have no value of the same name and shape",
             c->side[0].net->name, c->side[1].net->name);
    return EW_OK;
}

ew_err ew_compare_open(const char *a, const char *b, const struct ew_compare_values_opts *how,
                       struct ew_compared *out)
{
    *out = (struct ew_compared){0};
    ew_arena_init(&out->arena);
    for (int i = 0; i < 2; i++) {
        EW_TRY(ew_classifier_load(i ? b : a, &how->images, &out->side[i]));
        EW_TRY(compile_side(how, i, out));
    }
    const struct ew_tensor *x = ew_plan_input(out->plan[0], 0), *y = ew_plan_input(out->plan[1], 0);
    char s[EW_SHAPE_TEXT], t[EW_SHAPE_TEXT];
    EW_CHECK(ew_shape_equal(&x->shape, &y->shape) && x->dtype == y->dtype, EW_ERR_SHAPE,
             "%s takes %s of %s, %s %s of %s: not the same inputs", a, ew_shape_text(&x->shape, s),
             ew_dtype_name(x->dtype), b, ew_shape_text(&y->shape, t), ew_dtype_name(y->dtype));
    return match(out);
}

void ew_compare_close(struct ew_compared *c)
{
    for (int i = 0; i < 2; i++) {
        ew_plan_free(c->plan[i]);
        ew_graph_free(c->graph[i]);
        ew_classifier_fini(&c->side[i]);
    }
    ew_arena_fini(&c->arena);
    *c = (struct ew_compared){0};
}

/* ---- Running ---- */

static void add_value(struct ew_agreement *v, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)a[i], d = x - (double)b[i];
        if (isinf(a[i]) && isinf(b[i]) && (a[i] > 0) == (b[i] > 0))
            continue; /* equal infinities, as in masks */
        v->signal += x * x;
        v->noise += d * d;
        v->worst = isnan(d) ? d : fabs(d) > v->worst ? fabs(d) : v->worst; /* NaN is kept */
        v->largest = fmax(v->largest, fabs(x));
    }
}

/* The index of the largest element; -1: an element is NaN. */
static int64_t largest_at(const struct ew_tensor *t)
{
    int64_t best = 0;
    for (int64_t i = 0; i < ew_tensor_count(t); i++) {
        if (isnan(ew_tensor_get(t, i)))
            return -1;
        best = ew_tensor_get(t, i) > ew_tensor_get(t, best) ? i : best;
    }
    return best;
}

static ew_err run_both(struct ew_compared *c)
{
    for (int i = 0; i < 2; i++)
        EW_TRY(ew_plan_run(c->plan[i]));
    for (int i = 0; i < c->n; i++) {
        const struct ew_tensor *a = ew_plan_output(c->plan[0], c->v[i].a);
        add_value(&c->v[i], a->data, ew_plan_output(c->plan[1], c->v[i].b)->data,
                  ew_tensor_count(a));
    }
    const int64_t top = largest_at(ew_plan_output(c->plan[0], 0));
    c->same_top += top >= 0 && top == largest_at(ew_plan_output(c->plan[1], 0));
    c->inputs++;
    return EW_OK;
}

ew_err ew_compare_random(struct ew_compared *c, uint64_t seed)
{
    for (int i = 0; i < 2; i++)
        ew_bench_fill(c->plan[i], c->graph[i], 2, seed);
    return run_both(c);
}

ew_err ew_compare_images(struct ew_compared *c, const struct ew_loader_opts *set, int64_t most)
{
    const struct ew_tensor *in = ew_plan_input(c->plan[0], 0);
    struct ew_loader_opts o = *set;
    struct ew_loader *l;
    const struct ew_batch *b = NULL;
    o.batch = 1;
    ew_loader_fit(&o, &in->shape);
    EW_TRY(ew_loader_open(&o, &l));
    ew_err e = ew_loader_start(l, 0, 0);
    while (e == EW_OK && c->inputs < most && (e = ew_loader_next(l, &b)) == EW_OK && b) {
        for (int i = 0; i < 2; i++)
            memcpy(ew_plan_input(c->plan[i], 0)->data, b->images, ew_tensor_bytes(in));
        e = run_both(c);
        ew_loader_release(l, b);
    }
    ew_loader_close(l);
    return e;
}

/* ---- Saved values ---- */

/* Transposes [N, C, ...] of files to [N, ..., C]. */
static void channels_last(const struct ew_shape *s, const float *from, float *to)
{
    const int64_t n = s->dim[0], c = s->dim[s->rank - 1];
    int64_t places = 1;
    for (int i = 1; i < s->rank - 1; i++)
        places *= s->dim[i];
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < c; k++)
            for (int64_t p = 0; p < places; p++)
                to[(i * places + p) * c + k] = from[(i * c + k) * places + p];
}

/* Transposes [N, ..., C] to [N, C, ...] for files. */
static void channels_first(const struct ew_shape *s, const float *from, float *to)
{
    const int64_t n = s->dim[0], c = s->dim[s->rank - 1];
    int64_t places = 1;
    for (int i = 1; i < s->rank - 1; i++)
        places *= s->dim[i];
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = 0; p < places; p++)
            for (int64_t k = 0; k < c; k++)
                to[(i * c + k) * places + p] = from[(i * places + p) * c + k];
}

/* The file's shape of a value. */
static struct ew_shape file_shape(const struct ew_shape *own, bool last)
{
    struct ew_shape s = *own;
    if (!last)
        return s;
    s.dim[1] = own->dim[own->rank - 1];
    for (int i = 2; i < own->rank; i++)
        s.dim[i] = own->dim[i - 1];
    return s;
}

/* last: the value is [N, ..., C] and the file [N, C, ...], else both are alike. */
static ew_err read_saved(const char *path, const struct ew_shape *own, bool last,
                         struct ew_arena *a, float **out)
{
    struct ew_tensor t;
    char s[EW_SHAPE_TEXT], want[EW_SHAPE_TEXT];
    const struct ew_shape file = file_shape(own, last);
    EW_TRY(ew_tensor_file_read(path, a, &t, NULL));
    EW_CHECK(t.dtype == EW_F32 && ew_shape_equal(&t.shape, &file), EW_ERR_SHAPE,
             "%s: holds %s of %s, must be %s of float32%s", path, ew_shape_text(&t.shape, s),
             ew_dtype_name(t.dtype), ew_shape_text(&file, want),
             last ? " in the order [N, C, H, W]" : "");
    *out = t.data;
    if (!last)
        return EW_OK;
    *out = ew_arena_array(a, (size_t)ew_tensor_count(&t), sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for %s", path);
    channels_last(own, t.data, *out);
    return EW_OK;
}

/* FOLDER/NAME.npy, with '_' for '/' in the name.  False: too long. */
static bool value_path(const char *folder, const char *name, char *path, size_t size)
{
    const int n = snprintf(path, size, "%s/", folder);
    if (n >= (int)size || snprintf(path + n, size - (size_t)n, "%s.npy", name) >= (int)size - n)
        return false;
    for (char *p = path + n; *p; p++)
        if (*p == '/')
            *p = '_';
    return true;
}

/* The file of a value: for the first output `saved` itself, in a folder its own.  False: none. */
static bool saved_path(const char *saved, bool folder, const char *name, int output, char *path,
                       size_t size)
{
    if (!folder)
        return output == 0 && snprintf(path, size, "%s", saved) < (int)size;
    return value_path(saved, name, path, size) && access(path, F_OK) == 0;
}

static ew_err compare_file(struct ew_compared *c, int output, const char *path)
{
    const struct ew_graph *g = c->graph[0];
    const struct ew_tensor *own = ew_plan_output(c->plan[0], output);
    float *saved;
    EW_TRY(read_saved(path, &own->shape, c->last[g->outputs[output]], &c->arena, &saved));
    struct ew_agreement *v = &c->v[c->n++];
    *v = (struct ew_agreement){.name = g->values[g->outputs[output]].name,
                               .op = op_of(g, g->outputs[output]),
                               .shape = own->shape,
                               .a = output,
                               .node = g->values[g->outputs[output]].producer,
                               .output = output < c->side[0].net->n_outputs};
    add_value(v, own->data, saved, ew_tensor_count(own));
    if (output == 0) {
        const struct ew_tensor other = {.dtype = EW_F32, .shape = own->shape, .data = saved};
        c->same_top = largest_at(own) == largest_at(&other);
    }
    return EW_OK;
}

/* Opens the network and runs it on the file `input`. */
static ew_err run_on_file(const char *network, const char *input,
                          const struct ew_compare_values_opts *how, struct ew_compared *out)
{
    float *x;
    *out = (struct ew_compared){.same_top = -1, .inputs = 1};
    ew_arena_init(&out->arena);
    EW_TRY(ew_classifier_load_whole(network, &how->images, &out->side[0]));
    EW_TRY(compile_side(how, 0, out));
    const struct ew_graph *g = out->graph[0];
    struct ew_tensor *in = ew_plan_input(out->plan[0], 0);
    out->last = ew_arena_array(&out->arena, (size_t)g->n_values, sizeof(*out->last));
    EW_CHECK(out->last, EW_ERR_MEMORY, "no memory for %d values", g->n_values);
    ew_file_layout(g, out->last);
    EW_TRY(read_saved(input, &in->shape, out->last[g->inputs[0]], &out->arena, &x));
    memcpy(in->data, x, ew_tensor_bytes(in));
    return ew_plan_run(out->plan[0]);
}

ew_err ew_compare_saved(const char *network, const char *saved, const char *input,
                        const struct ew_compare_values_opts *how, struct ew_compared *out)
{
    struct stat st;
    char path[4096];
    const bool folder = stat(saved, &st) == 0 && S_ISDIR(st.st_mode);
    struct ew_compare_values_opts all = *how;
    all.layers = folder || how->layers;
    EW_TRY(run_on_file(network, input, &all, out));
    const struct ew_graph *g = out->graph[0];
    out->v = ew_arena_array(&out->arena, (size_t)g->n_outputs, sizeof(*out->v));
    EW_CHECK(out->v, EW_ERR_MEMORY, "no memory for %d values", g->n_outputs);
    for (int i = 0; i < g->n_outputs; i++)
        if (ew_plan_output(out->plan[0], i)->dtype == EW_F32 &&
            saved_path(saved, folder, g->values[g->outputs[i]].name, i, path, sizeof(path)))
            EW_TRY(compare_file(out, i, path));
    EW_CHECK(out->n > 0, EW_ERR_NOT_FOUND, "%s: has no NAME.npy for any value of %s", saved,
             network);
    qsort(out->v, (size_t)out->n, sizeof(*out->v), by_node);
    return EW_OK;
}

/* Writes a value in the file's layout. */
static ew_err write_value(const struct ew_tensor *t, bool last, const char *name, const char *path,
                          struct ew_arena *a)
{
    struct ew_tensor file = {.dtype = t->dtype, .shape = file_shape(&t->shape, last)};
    if (!last)
        return ew_tensor_file_write(path, t, name);
    file.data = ew_arena_alloc(a, ew_tensor_bytes(t));
    EW_CHECK(file.data, EW_ERR_MEMORY, "no memory for %s", path);
    channels_first(&t->shape, t->data, file.data);
    return ew_tensor_file_write(path, &file, name);
}

/* Two names that differ only in '/' and '_' have one file. */
static bool same_file(const char *x, const char *y)
{
    while (*x && (*x == '/' ? '_' : *x) == (*y == '/' ? '_' : *y)) {
        x++;
        y++;
    }
    return *x == *y;
}

static ew_err check_names(const struct ew_graph *g)
{
    for (int i = 0; i < g->n_outputs; i++)
        for (int j = 0; j < i; j++) {
            const char *x = g->values[g->outputs[i]].name, *y = g->values[g->outputs[j]].name;
            EW_CHECK(g->outputs[i] == g->outputs[j] || !same_file(x, y), EW_ERR_UNSUPPORTED,
                     "values %.80s and %.80s would have the same file", y, x);
        }
    return EW_OK;
}

ew_err ew_compare_save(const char *network, const char *folder, const char *input,
                       const struct ew_compare_values_opts *how, struct ew_compared *out)
{
    char path[4096];
    struct ew_compare_values_opts all = *how;
    all.layers = true;
    EW_TRY(run_on_file(network, input, &all, out));
    EW_TRY(check_names(out->graph[0]));
    EW_CHECK(mkdir(folder, 0777) == 0 || errno == EEXIST, EW_ERR_IO, "%s: %s", folder,
             strerror(errno));
    const struct ew_graph *g = out->graph[0];
    for (int i = 0; i < g->n_outputs; i++) {
        const char *name = g->values[g->outputs[i]].name;
        const struct ew_tensor *t = ew_plan_output(out->plan[0], i);
        if (t->dtype != EW_F32)
            continue;
        EW_CHECK(value_path(folder, name, path, sizeof(path)), EW_ERR_LIMIT,
                 "%s: too long a path for %.80s", folder, name);
        EW_TRY(write_value(t, out->last[g->outputs[i]], name, path, &out->arena));
        out->n++;
    }
    return EW_OK;
}
