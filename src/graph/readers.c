/* SPDX-License-Identifier: Apache-2.0 */
/* Use lists: every use (an input slot of a node, or a graph output) is an entry of the doubly
 * linked list of its value. */
#include "graph/readers.h"

#include <stdlib.h>
#include <string.h>

#define NONE (-1)

struct read {
    int node;  /* NONE: a graph output */
    int slot;  /* the node's input, or the number of the output */
    int value; /* NONE: in no list */
    int next, prev;
};

struct list {
    int head; /* index of a use + 1; 0: empty, so that zeroed lists are valid */
    int count;
};

struct ew_readers {
    struct ew_graph *g;
    struct list *lists; /* by value */
    int n_lists, cap_lists;
    struct read *reads;
    int n_reads, cap_reads;
    int *first; /* by node: the use of its input 0, followed by those of its other inputs */
    int n_nodes, cap_nodes;
};

/* ---- Lists ---- */

static ew_err grow_lists(struct ew_readers *r)
{
    const int old = r->n_lists;
    if (old >= r->g->n_values)
        return EW_OK;
    EW_TRY(ew_grow((void **)&r->lists, &r->cap_lists, r->g->n_values, sizeof(*r->lists)));
    r->n_lists = r->g->n_values;
    memset(&r->lists[old], 0, (size_t)(r->n_lists - old) * sizeof(*r->lists));
    return EW_OK;
}

static void unlink_read(struct ew_readers *r, int at)
{
    struct read *e = &r->reads[at];
    if (e->value == NONE)
        return;
    if (e->prev != NONE)
        r->reads[e->prev].next = e->next;
    else
        r->lists[e->value].head = e->next + 1;
    if (e->next != NONE)
        r->reads[e->next].prev = e->prev;
    r->lists[e->value].count--;
    e->value = e->next = e->prev = NONE;
}

static void link_read(struct ew_readers *r, int at, int value)
{
    struct read *e = &r->reads[at];
    e->value = value;
    e->prev = e->next = NONE;
    if (value == NONE)
        return;
    struct list *l = &r->lists[value];
    e->next = l->head - 1;
    if (e->next != NONE)
        r->reads[e->next].prev = at;
    l->head = at + 1;
    l->count++;
}

/* Appends n unlinked uses of a node (NONE: of the graph outputs). */
static ew_err add_reads(struct ew_readers *r, int node, int n, int *first)
{
    EW_TRY(ew_grow((void **)&r->reads, &r->cap_reads, r->n_reads + n + 1, sizeof(*r->reads)));
    *first = r->n_reads;
    for (int i = 0; i < n; i++)
        r->reads[r->n_reads++] =
            (struct read){.node = node, .slot = i, .value = NONE, .next = NONE, .prev = NONE};
    return EW_OK;
}

ew_err ew_readers_adopt(struct ew_readers *r)
{
    const struct ew_graph *g = r->g;
    EW_TRY(grow_lists(r));
    EW_TRY(ew_grow((void **)&r->first, &r->cap_nodes, g->n_nodes + 1, sizeof(*r->first)));
    for (; r->n_nodes < g->n_nodes; r->n_nodes++) {
        const int k = r->n_nodes;
        EW_TRY(add_reads(r, k, g->nodes[k].n_in, &r->first[k]));
        for (int i = 0; i < g->nodes[k].n_in; i++)
            link_read(r, r->first[k] + i, g->nodes[k].in[i]);
    }
    return EW_OK;
}

static ew_err fill(struct ew_readers *r)
{
    const struct ew_graph *g = r->g;
    int first;
    EW_TRY(ew_readers_adopt(r));
    EW_TRY(add_reads(r, NONE, g->n_outputs, &first));
    for (int i = 0; i < g->n_outputs; i++)
        link_read(r, first + i, g->outputs[i]);
    return EW_OK;
}

/* ---- New and free ---- */

static void release(struct ew_readers *r)
{
    free(r->first);
    free(r->lists);
    free(r->reads);
    free(r);
}

ew_err ew_readers_new(struct ew_graph *g, struct ew_readers **out)
{
    struct ew_readers *r = calloc(1, sizeof(*r));
    EW_CHECK(r, EW_ERR_MEMORY, "no memory for a pass over graph %s", g->name);
    r->g = g;
    const ew_err e = fill(r);
    if (e == EW_OK)
        *out = r;
    else
        release(r);
    return e;
}

/* True if the lists match the graph. */
static bool is_current(const struct ew_readers *r)
{
    const struct ew_graph *g = r->g;
    for (int i = 0; i < r->n_reads; i++) {
        const struct read *e = &r->reads[i];
        const bool dropped =
            e->node != NONE && (i < r->first[e->node] || e->slot >= g->nodes[e->node].n_in);
        const int reads = dropped           ? NONE
                          : e->node == NONE ? g->outputs[e->slot]
                                            : g->nodes[e->node].in[e->slot];
        if (reads != e->value)
            return false;
    }
    return true;
}

void ew_readers_free(struct ew_readers *r)
{
    if (!r)
        return;
    EW_ASSERT(is_current(r));
    release(r);
}

void ew_readers_free_ptr(void *ptr_to_ptr)
{
    ew_readers_free(*(struct ew_readers **)ptr_to_ptr);
}

/* ---- Queries ---- */

int ew_readers_count(const struct ew_readers *r, int value)
{
    return value >= 0 && value < r->n_lists ? r->lists[value].count : 0;
}

bool ew_readers_next(const struct ew_readers *r, int value, int *at, int *node, int *slot)
{
    *at = *at == NONE ? (value < r->n_lists ? r->lists[value].head - 1 : NONE) : r->reads[*at].next;
    if (*at == NONE)
        return false;
    *node = r->reads[*at].node;
    *slot = r->reads[*at].slot;
    return true;
}

int ew_readers_only(const struct ew_readers *r, int value)
{
    return ew_readers_count(r, value) == 1 ? r->reads[r->lists[value].head - 1].node : NONE;
}

int ew_readers_sole_producer(const struct ew_readers *r, int value)
{
    return ew_readers_count(r, value) == 1 ? r->g->values[value].producer : NONE;
}

/* ---- Changes ---- */

ew_err ew_readers_set(struct ew_readers *r, int node, int slot, int value)
{
    EW_ASSERT(slot < r->g->nodes[node].n_in);
    EW_TRY(grow_lists(r));
    unlink_read(r, r->first[node] + slot);
    link_read(r, r->first[node] + slot, value);
    r->g->nodes[node].in[slot] = value;
    return EW_OK;
}

ew_err ew_readers_set_all(struct ew_readers *r, int node, const int *in, int n_in)
{
    struct ew_node *n = &r->g->nodes[node];
    int *own = ew_arena_array(&r->g->arena, (size_t)n_in, sizeof(*own)), first;
    EW_CHECK(own, EW_ERR_MEMORY, "%s: no memory for its inputs", n->name);
    EW_TRY(grow_lists(r));
    EW_TRY(add_reads(r, node, n_in, &first));
    ew_readers_detach(r, node);
    for (int i = 0; i < n_in; i++) {
        own[i] = in[i];
        link_read(r, first + i, in[i]);
    }
    r->first[node] = first;
    n->in = own;
    n->n_in = n_in;
    return EW_OK;
}

ew_err ew_readers_replace(struct ew_readers *r, int old, int new)
{
    EW_TRY(grow_lists(r));
    if (old == new)
        return EW_OK;
    for (int at; (at = r->lists[old].head - 1) != NONE;) {
        const struct read *e = &r->reads[at];
        if (e->node == NONE)
            r->g->outputs[e->slot] = new;
        else
            r->g->nodes[e->node].in[e->slot] = new;
        unlink_read(r, at);
        link_read(r, at, new);
    }
    return EW_OK;
}

void ew_readers_detach(struct ew_readers *r, int node)
{
    struct ew_node *n = &r->g->nodes[node];
    for (int i = 0; i < n->n_in; i++)
        unlink_read(r, r->first[node] + i);
    n->n_in = 0;
}
