/* SPDX-License-Identifier: Apache-2.0 */
/* Packing weights, and giving back those that a plan has copies of then, so that a network is in
 * memory about once.
 *
 *   graph's weights --passes--> folded copies, in the plan's own graph --packing--> packed
 *
 * Folded copies go when they are packed.  The caller's weights stay, since other plans may want
 * them, unless the caller has said otherwise (`consume`). */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena_move.h"
#include "plan/plan_impl.h"

#define LARGE ((size_t)16 << 20) /* bytes: such weights are given back as they are packed */
#define TAKEN ((size_t)1 << 20)  /* such change over to the plan, and passes fold into them */

/* Data of a graph's values. */
struct held {
    const void *data;
    int value; /* one of those that have it */
    int count; /* how many do; 0: it is released */
};

/* Sorted by address, so that finding who has some data takes log n. */
struct index {
    struct held *held;
    int n;
};

struct release {
    struct index mine, theirs; /* of the plan's graph and of the caller's */
};

/* ---- Who has which data ---- */

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const struct held *)a)->data;
    const uintptr_t y = (uintptr_t)((const struct held *)b)->data;
    return (x > y) - (x < y);
}

static ew_err make_index(const struct ew_graph *g, struct index *out)
{
    *out = (struct index){.held = calloc((size_t)g->n_values + 1, sizeof(*out->held))};
    EW_CHECK(out->held, EW_ERR_MEMORY, "no memory for the weights of graph %s", g->name);
    int n = 0;
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].t.data)
            out->held[n++] = (struct held){g->values[i].t.data, i, 1};
    qsort(out->held, (size_t)n, sizeof(*out->held), by_address);
    for (int i = 0; i < n; i++) {
        if (out->n && out->held[out->n - 1].data == out->held[i].data)
            out->held[out->n - 1].count++;
        else
            out->held[out->n++] = out->held[i];
    }
    return EW_OK;
}

/* The entry of data that somebody has; NULL: nobody. */
static struct held *find(const struct index *x, const void *data)
{
    const struct held key = {.data = data};
    struct held *h = bsearch(&key, x->held, (size_t)x->n, sizeof(key), by_address);
    return h && h->count ? h : NULL;
}

static ew_err release_init(const struct ew_plan *p, struct release *r)
{
    EW_TRY(make_index(p->g, &r->mine));
    return make_index(p->source, &r->theirs);
}

static void release_fini(struct release *r)
{
    free(r->mine.held);
    free(r->theirs.held);
}

/* ---- Releasing ---- */

/* Weights of the caller's, unless they are shared or too small to be worth it. */
static bool release_source(struct ew_plan *p, struct held *h)
{
    struct ew_tensor *t = &p->source->values[h->value].t;
    const size_t bytes = ew_tensor_bytes(t);
    if (h->count != 1 || !ew_arena_release(&p->source->arena, t->data, bytes))
        return false;
    t->data = NULL;
    h->count = 0;
    p->released += bytes;
    return true;
}

ew_err ew_plan_take_weights(struct ew_plan *p)
{
    EW_CLEANUP(release_fini) struct release r = {0};
    EW_TRY(release_init(p, &r));
    p->moved = ew_arena_array(&p->clone->arena, (size_t)r.theirs.n + 1, sizeof(*p->moved));
    EW_CHECK(p->moved, EW_ERR_MEMORY, "no memory for the weights of graph %s", p->g->name);
    for (int i = 0; i < r.theirs.n; i++) {
        const struct held *h = &r.theirs.held[i], *own = find(&r.mine, h->data);
        struct ew_tensor *t = &p->source->values[h->value].t;
        const size_t bytes = ew_tensor_bytes(t);
        if (h->count != 1 || !own || own->count != 1 || bytes < TAKEN ||
            !ew_arena_move(&p->clone->arena, &p->source->arena, t->data, bytes))
            continue;
        p->moved[p->n_moved++] = (struct ew_plan_moved){t->data, bytes};
        t->data = NULL;
        p->released += bytes;
    }
    return EW_OK;
}

ew_err ew_plan_release_replaced(struct ew_plan *p)
{
    EW_CLEANUP(release_fini) struct release r = {0};
    if (!p->opts.consume)
        return EW_OK;
    EW_TRY(release_init(p, &r));
    for (int i = 0; i < r.theirs.n; i++) {
        struct held *h = &r.theirs.held[i];
        if (ew_value_is_weight(&p->source->values[h->value]) && !find(&r.mine, h->data))
            release_source(p, h);
    }
    for (int i = 0; i < p->n_moved; i++)
        if (!find(&r.mine, p->moved[i].data))
            ew_arena_release(&p->clone->arena, p->moved[i].data, p->moved[i].bytes);
    return EW_OK;
}

/* True where nobody else has the value's data or reads it, so that it may go. */
static bool may_go(const struct ew_plan *p, const struct release *r, int value)
{
    const struct ew_tensor *t = &p->g->values[value].t;
    const struct held *h = t->data ? find(&r->mine, t->data) : NULL;
    if (!h || h->count != 1 || p->reading[value].count != 1)
        return false;
    const struct held *theirs = find(&r->theirs, t->data);
    return !theirs || (p->opts.consume && theirs->count == 1);
}

static struct ew_arena *arena_of(struct ew_plan *p, const struct release *r, int value)
{
    return find(&r->theirs, p->g->values[value].t.data) ? &p->source->arena : &p->clone->arena;
}

/* The value's data is no longer in its arena. */
static void forget(struct ew_plan *p, struct release *r, int value)
{
    struct ew_tensor *t = &p->g->values[value].t;
    struct held *theirs = find(&r->theirs, t->data);
    if (theirs) {
        p->source->values[theirs->value].t.data = NULL;
        theirs->count = 0;
        p->released += ew_tensor_bytes(t);
    }
    find(&r->mine, t->data)->count = 0;
    t->data = NULL;
    p->values[value].t.data = NULL;
}

/* Gives back the weights that only this step reads, now that it has packed them. */
static void release_packed(struct ew_plan *p, struct release *r, struct ew_step *s)
{
    if (!r || s->node < 0)
        return;
    const struct ew_node *n = &p->g->nodes[s->node];
    for (int i = 0; i < n->n_in && i < 32; i++) {
        const int value = n->in[i];
        if (!(s->kernel.packs >> i & 1) || value < 0 || !may_go(p, r, value))
            continue;
        const struct ew_tensor *t = &p->g->values[value].t;
        if (!ew_arena_release(arena_of(p, r, value), t->data, ew_tensor_bytes(t)))
            continue;
        forget(p, r, value);
        s->weights_released = true;
    }
}

/* Whole pages of [from, to): the system takes them back, and their contents are lost. */
static void give_pages_back(char *data, size_t from, size_t to)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)data + from + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)data + to) / page * page;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* What is packed is given back at once. */
static void pack_pieces(struct ew_step *s, char *data)
{
    const struct ew_call *c = s->host ? &s->host->call : &s->call;
    size_t done = 0;
    for (int64_t next = 0; next >= 0;) {
        const size_t read = s->kernel.pack_piece(c, &next);
        give_pages_back(data, done, read);
        done = read;
    }
}

/* Packs the step; weights that go then are given back while it does, where they are large: a
 * network of few large layers (VGG) would else be in memory nearly twice. */
static ew_err pack_step(struct ew_plan *p, struct release *r, struct ew_step *s)
{
    const int value = s->node >= 0 && s->kernel.pack_piece ? p->g->nodes[s->node].in[1] : -1;
    const struct ew_tensor *t = value >= 0 ? &p->g->values[value].t : NULL;
    struct ew_arena own; /* what has moved here is the plan's alone, and by itself in memory */
    ew_arena_init(&own);
    const bool goes = r && t && ew_tensor_bytes(t) >= LARGE && may_go(p, r, value) &&
                      ew_arena_alloc(&own, 1) &&
                      ew_arena_move(&own, arena_of(p, r, value), t->data, ew_tensor_bytes(t));
    ew_err e = EW_OK;
    if (goes) {
        pack_pieces(s, t->data);
        forget(p, r, value);
        s->weights_released = true;
    } else {
        e = s->kernel.pack(s->host ? &s->host->call : &s->call);
    }
    ew_arena_fini(&own);
    return e;
}

ew_err ew_plan_pack(struct ew_plan *p)
{
    EW_CLEANUP(release_fini) struct release all = {0};
    const bool may = p->clone && p->opts.optimize && p->opts.mode == EW_PLAN_INFER;
    struct release *r = may ? &all : NULL; /* NULL: nothing is the plan's to release */
    if (may)
        EW_TRY(release_init(p, r));
    for (int k = 0; k < p->n_steps; k++) {
        struct ew_step *s = &p->steps[k];
        if (!s->kernel.pack || s->given || s->weights_released)
            continue;
        EW_TRY(pack_step(p, r, s));
        release_packed(p, r, s);
    }
    return EW_OK;
}
