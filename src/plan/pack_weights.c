/* SPDX-License-Identifier: Apache-2.0 */
/* Packing weights, and freeing those that are then duplicates, so that a network is in memory about
 * once.
 *
 *   graph's weights --passes--> folded copies, in the plan's own graph --packing--> packed
 *
 * Folded copies are freed after packing.  The caller's weights stay, since other plans may need
 * them, unless opts.consume. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena_move.h"
#include "plan/plan_impl.h"

/* Bytes from which weights are freed page by page while they are packed. */
#define LARGE ((size_t)16 << 20)
/* Bytes from which weights move to the plan, and passes fold into them in place. */
#define TAKEN ((size_t)128 << 10)

/* A block of weight data, and its references. */
struct data_block {
    const void *data;
    int mine, theirs; /* number of values in the plan's graph, in the caller's */
    int source;       /* a value of the caller's graph with it */
};

/* All blocks, sorted by address. */
struct index {
    struct data_block *blocks;
    int n;
};

/* ---- Index of data ---- */

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const struct data_block *)a)->data;
    const uintptr_t y = (uintptr_t)((const struct data_block *)b)->data;
    return (x > y) - (x < y);
}

static void add_values(const struct ew_graph *g, bool mine, struct index *x)
{
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].t.data)
            x->blocks[x->n++] =
                (struct data_block){g->values[i].t.data, mine, !mine, mine ? -1 : i};
}

static ew_err make_index(const struct ew_plan *p, struct index *x)
{
    x->blocks =
        calloc((size_t)p->g->n_values + (size_t)p->source->n_values + 1, sizeof(*x->blocks));
    EW_CHECK(x->blocks, EW_ERR_MEMORY, "no memory for the weights of graph %s", p->g->name);
    add_values(p->g, true, x);
    add_values(p->source, false, x);
    qsort(x->blocks, (size_t)x->n, sizeof(*x->blocks), by_address);
    int n = 0;
    for (int i = 0; i < x->n; i++) {
        const struct data_block *h = &x->blocks[i];
        struct data_block *last = n ? &x->blocks[n - 1] : NULL;
        if (last && last->data == h->data) {
            last->mine += h->mine;
            last->theirs += h->theirs;
            last->source = h->theirs ? h->source : last->source;
        } else {
            x->blocks[n++] = *h;
        }
    }
    x->n = n;
    return EW_OK;
}

static void index_fini(struct index *x)
{
    free(x->blocks);
}

static struct data_block *find(const struct index *x, const void *data)
{
    const struct data_block key = {.data = data};
    return bsearch(&key, x->blocks, (size_t)x->n, sizeof(key), by_address);
}

/* ---- Releasing ---- */

/* Removes the data from the caller's graph. */
static void forget_source(struct ew_plan *p, struct data_block *h)
{
    struct ew_tensor *t = &p->source->values[h->source].t;
    p->released += ew_tensor_bytes(t);
    t->data = NULL;
    h->theirs = 0;
}

ew_err ew_plan_take_weights(struct ew_plan *p)
{
    EW_CLEANUP(index_fini) struct index x = {0};
    EW_TRY(make_index(p, &x));
    p->moved = ew_arena_array(&p->g->arena, (size_t)x.n + 1, sizeof(*p->moved));
    EW_CHECK(p->moved, EW_ERR_MEMORY, "no memory for the weights of graph %s", p->g->name);
    for (int i = 0; i < x.n; i++) {
        struct data_block *h = &x.blocks[i];
        const size_t bytes = h->theirs ? ew_tensor_bytes(&p->source->values[h->source].t) : 0;
        if (h->theirs != 1 || h->mine != 1 || bytes < TAKEN ||
            !ew_arena_move(&p->g->arena, &p->source->arena, h->data, bytes))
            continue;
        p->moved[p->n_moved++] = (struct ew_plan_moved){h->data, bytes};
        forget_source(p, h);
    }
    return EW_OK;
}

ew_err ew_plan_release_replaced(struct ew_plan *p)
{
    EW_CLEANUP(index_fini) struct index x = {0};
    if (!p->opts.consume)
        return EW_OK;
    EW_TRY(make_index(p, &x));
    for (int i = 0; i < x.n; i++) {
        struct data_block *h = &x.blocks[i];
        const struct ew_value *v =
            h->theirs == 1 && !h->mine ? &p->source->values[h->source] : NULL;
        if (v && ew_value_is_weight(v) &&
            ew_arena_release(&p->source->arena, h->data, ew_tensor_bytes(&v->t)))
            forget_source(p, h);
    }
    for (int i = 0; i < p->n_moved; i++)
        if (!find(&x, p->moved[i].data))
            ew_arena_release(&p->g->arena, p->moved[i].data, p->moved[i].bytes);
    return EW_OK;
}

/* The entry of the value's data if no other value has it and one node reads it, so that it may be
 * freed; else NULL. */
static struct data_block *find_exclusive(const struct ew_plan *p, const struct index *x, int value)
{
    const void *data = p->g->values[value].t.data;
    struct data_block *h = data ? find(x, data) : NULL;
    return h && h->mine == 1 && h->theirs <= p->opts.consume && p->uses[value].count == 1 ? h
                                                                                          : NULL;
}

static struct ew_arena *arena_of(struct ew_plan *p, const struct data_block *h)
{
    return h->theirs ? &p->source->arena : &p->g->arena;
}

/* Records that the value's data was freed: its step cannot pack again. */
static void forget(struct ew_plan *p, struct data_block *h, int value, struct ew_step *s)
{
    if (h->theirs)
        forget_source(p, h);
    h->mine = 0;
    p->g->values[value].t.data = p->values[value].t.data = NULL;
    s->weights_released = true;
}

/* Frees the weights that only this step reads, after it has packed them. */
static void release_packed(struct ew_plan *p, const struct index *x, struct ew_step *s)
{
    if (!x || s->node < 0)
        return;
    const struct ew_node *n = &p->g->nodes[s->node];
    for (int i = 0; i < n->n_in; i++) {
        const int value = n->in[i];
        struct data_block *h =
            ew_plan_bit(s->kernel.packs, i) && value >= 0 ? find_exclusive(p, x, value) : NULL;
        if (h && ew_arena_release(arena_of(p, h), h->data, ew_tensor_bytes(&p->g->values[value].t)))
            forget(p, h, value, s);
    }
}

/* Returns the whole pages in [from, to) to the system. */
static void give_pages_back(char *data, size_t from, size_t to)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)data + from + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)data + to) / page * page;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Packs piece by piece, freeing what has been read. */
static void pack_pieces(struct ew_step *s, char *data)
{
    const struct ew_call *c = ew_step_call(s);
    size_t done = 0;
    for (int64_t next = 0; next >= 0;) {
        const size_t read = s->kernel.pack_piece(c, &next);
        give_pages_back(data, done, read);
        done = read;
    }
}

/* Packs the weights of a step.  Large ones that can be freed are freed as they are read: a network
 * of few large layers (VGG) would otherwise be in memory nearly twice. */
static ew_err pack_step(struct ew_plan *p, const struct index *x, struct ew_step *s)
{
    const int value = x && s->node >= 0 && s->kernel.pack_piece ? p->g->nodes[s->node].in[1] : -1;
    const size_t bytes = value >= 0 ? ew_tensor_bytes(&p->g->values[value].t) : 0;
    struct data_block *h = bytes >= LARGE ? find_exclusive(p, x, value) : NULL;
    struct ew_arena own; /* moving the data here isolates it on pages of its own */
    ew_arena_init(&own);
    ew_err e = EW_OK;
    if (h && ew_arena_alloc(&own, 1) && ew_arena_move(&own, arena_of(p, h), h->data, bytes)) {
        pack_pieces(s, p->g->values[value].t.data);
        forget(p, h, value, s);
    } else {
        e = s->kernel.pack(ew_step_call(s));
    }
    ew_arena_fini(&own);
    return e;
}

ew_err ew_plan_pack(struct ew_plan *p)
{
    EW_CLEANUP(index_fini) struct index all = {0};
    const bool may = p->g != p->source && p->opts.optimize && p->opts.mode == EW_PLAN_INFER;
    const struct index *x = may ? &all : NULL; /* NULL: nothing may be freed */
    if (may)
        EW_TRY(make_index(p, &all));
    for (int k = 0; k < p->n_steps; k++) {
        struct ew_step *s = &p->steps[k];
        if (!s->kernel.pack || s->given || s->weights_released)
            continue;
        EW_TRY(pack_step(p, x, s));
        release_packed(p, x, s);
    }
    return EW_OK;
}
