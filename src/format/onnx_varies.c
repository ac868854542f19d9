/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a value that is known when the file is read is the same at every batch.
 *
 * The graph is inferred at other batches: a number that does not change there is constant.  A truth
 * value could change at a batch that was not tried (N == 7), so the numbers that it was computed
 * from must be constant. */
#include <stdlib.h>
#include <string.h>

#include "format/onnx_import.h"

#define MAX_NUMBERS 32 /* of one condition; more are taken to vary */
#define MAX_STEPS   32 /* from it to a number */

/* Nodes to infer for all conditions of a file: many conditions in a large graph cost no more. */
#define INFERRED_NODES ((int64_t)1 << 20)

struct search {
    const struct ew_graph *g;
    bool *seen; /* by value */
    int n, numbers[MAX_NUMBERS];
    struct ew_tensor before[MAX_NUMBERS];
};

static bool is_truth(const struct ew_graph *g, const struct ew_node *n)
{
    bool any = false;
    for (int i = 0; i < n->n_in; i++)
        any |= n->in[i] >= 0 && g->values[n->in[i]].t.dtype == EW_BOOL;
    for (int i = 0; i < n->n_out; i++)
        any |= n->out[i] >= 0 && g->values[n->out[i]].t.dtype == EW_BOOL;
    return any;
}

/* Collects the numbers that the value depends on; false if it may vary for all we know. */
static bool collect(struct search *s, int value, int steps)
{
    const struct ew_value *v = &s->g->values[value];
    if (s->seen[value] || v->kind == EW_VALUE_CONST)
        return true;
    s->seen[value] = true;
    const struct ew_node *n = v->producer >= 0 ? &s->g->nodes[v->producer] : NULL;
    if (!v->t.data || s->n == MAX_NUMBERS || steps == MAX_STEPS)
        return false;
    if (!n || !is_truth(s->g, n)) {
        s->numbers[s->n++] = value;
        return true;
    }
    bool ok = true;
    for (int i = 0; ok && i < n->n_in; i++)
        ok = n->in[i] < 0 || collect(s, n->in[i], steps + 1);
    return ok;
}

static bool same(const struct ew_tensor *a, const struct ew_tensor *b)
{
    return b->data && a->dtype == b->dtype && ew_shape_equal(&a->shape, &b->shape) &&
           memcmp(a->data, b->data, ew_tensor_bytes(a)) == 0;
}

static ew_err copy_numbers(struct search *s, struct ew_arena *a)
{
    for (int i = 0; i < s->n; i++) {
        s->before[i] = s->g->values[s->numbers[i]].t;
        void *copy = ew_arena_alloc(a, ew_tensor_bytes(&s->before[i]));
        EW_CHECK(copy, EW_ERR_MEMORY, "no memory for a condition");
        memcpy(copy, s->before[i].data, ew_tensor_bytes(&s->before[i]));
        s->before[i].data = copy;
    }
    return EW_OK;
}

static bool same_at(struct search *s, struct ew_graph *g, int64_t batch)
{
    bool ok = ew_graph_set_batch(g, batch) == EW_OK;
    for (int i = 0; ok && i < s->n; i++)
        ok = same(&s->before[i], &g->values[s->numbers[i]].t);
    return ok;
}

ew_err ew_onnx_varies(struct ew_onnx_import *im, int value, bool *out)
{
    struct ew_graph *g = im->g;
    int64_t batch;
    *out = g->values[value].kind != EW_VALUE_CONST;
    im->shared->inferred += 3 * (int64_t)g->n_nodes;
    if (!*out || im->shared->inferred > INFERRED_NODES || ew_graph_batch(g, &batch) != EW_OK)
        return EW_OK;
    EW_CLEANUP(ew_free_ptr) bool *seen = calloc((size_t)g->n_values, sizeof(*seen));
    EW_CHECK(seen, EW_ERR_MEMORY, "no memory for a condition");
    struct search s = {.g = g, .seen = seen};
    if (!collect(&s, value, 0))
        return EW_OK;
    EW_TRY(copy_numbers(&s, &im->file->arena));
    *out = !same_at(&s, g, batch + 1) || !same_at(&s, g, 1009);
    return ew_graph_set_batch(g, batch);
}
