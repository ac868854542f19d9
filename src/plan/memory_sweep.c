/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of very many buffers: one sweep over the steps with a heap allocator.
 *
 * The arena is a list of regions in address order, in use or free, with adjacent free ones merged.
 * Free regions are also in segregated lists, four size classes per power of two: a buffer takes one
 * of the first few large enough regions of its own class, else any of the next non-empty class, all
 * of which are large enough (Masmano et al. 2004, TLSF); else the arena grows. */
#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"
#include "plan/memory.h"

#define NONE        (-1)
#define CLASSES     256
#define CLASS_TRIES 8 /* regions of the buffer's own class that are examined */

struct region {
    size_t at, size;
    int below, above; /* neighbours in address order */
    int prev, next;   /* in its class's list, if free */
    bool free;
};

struct heap {
    struct region *regions;
    int n_regions;
    int top;            /* the last region in address order, or NONE */
    int class[CLASSES]; /* first free region, or NONE */
    int64_t *probes;
};

/* Size class, increasing with size; every region of a class is at least as large as any of a lower
 * class. */
static int class_of(size_t size)
{
    const size_t units = size / EW_ALIGN;
    if (units < 4)
        return (int)units;
    const int log = (int)(sizeof(long) * CHAR_BIT) - 1 - __builtin_clzl(units);
    return 4 * log + (int)(units >> (log - 2) & 3);
}

static void unlink_free(struct heap *h, int at)
{
    const struct region *r = &h->regions[at];
    if (r->prev != NONE)
        h->regions[r->prev].next = r->next;
    else
        h->class[class_of(r->size)] = r->next;
    if (r->next != NONE)
        h->regions[r->next].prev = r->prev;
    h->regions[at].free = false;
}

static void link_free(struct heap *h, int at)
{
    struct region *r = &h->regions[at];
    int *first = &h->class[class_of(r->size)];
    r->free = true;
    r->prev = NONE;
    r->next = *first;
    if (r->next != NONE)
        h->regions[r->next].prev = at;
    *first = at;
}

/* Appends a region after `below` (NONE: the first region). */
static int add_region(struct heap *h, int below, size_t at, size_t size)
{
    const int id = h->n_regions++;
    const int above = below == NONE ? NONE : h->regions[below].above;
    h->regions[id] = (struct region){.at = at, .size = size, .below = below, .above = above};
    if (below != NONE)
        h->regions[below].above = id;
    if (above != NONE)
        h->regions[above].below = id;
    else
        h->top = id;
    return id;
}

/* Merges `gone`, the next region, into `at`.  Region numbers are not reused: a buffer adds two at
 * most. */
static void merge_next(struct heap *h, int at, int gone)
{
    struct region *r = &h->regions[at];
    r->size += h->regions[gone].size;
    r->above = h->regions[gone].above;
    if (r->above != NONE)
        h->regions[r->above].below = at;
    else
        h->top = at;
}

static int find_free(const struct heap *h, size_t size)
{
    int class = class_of(size), tried = 0;
    for (int at = h->class[class]; at != NONE && tried < CLASS_TRIES; at = h->regions[at].next) {
        ++*h->probes;
        tried++;
        if (h->regions[at].size >= size)
            return at;
    }
    while (++class < CLASSES)
        if (h->class[class] != NONE)
            return h->class[class];
    return NONE;
}

static int alloc_region(struct heap *h, size_t size)
{
    int at = find_free(h, size);
    ++*h->probes;
    if (at == NONE && h->top != NONE && h->regions[h->top].free) { /* the arena grows */
        at = h->top;
        unlink_free(h, at);
        h->regions[at].size = size;
        return at;
    }
    if (at == NONE)
        return add_region(
            h, h->top, h->top == NONE ? 0 : h->regions[h->top].at + h->regions[h->top].size, size);
    unlink_free(h, at);
    if (h->regions[at].size > size) {
        const size_t rest = h->regions[at].size - size;
        h->regions[at].size = size;
        link_free(h, add_region(h, at, h->regions[at].at + size, rest));
    }
    return at;
}

static void free_region(struct heap *h, int at)
{
    const int below = h->regions[at].below, above = h->regions[at].above;
    ++*h->probes;
    if (above != NONE && h->regions[above].free) {
        unlink_free(h, above);
        merge_next(h, at, above);
    }
    if (below != NONE && h->regions[below].free) {
        unlink_free(h, below);
        merge_next(h, below, at);
        at = below;
    }
    link_free(h, at);
}

/* `begin` is sorted by first step, `end` by last step; both end with a NULL buffer. */
static void sweep(struct heap *h, const struct ew_buffer *buffers, const struct ew_ranked *begin,
                  const struct ew_ranked *end, int *region)
{
    for (; begin->b; begin++) {
        struct ew_buffer *b = begin->b;
        for (; end->b && end->b->last < b->first; end++)
            if (end->b->size)
                free_region(h, region[end->b - buffers]);
        b->offset = 0;
        if (b->size == 0)
            continue;
        region[b - buffers] = alloc_region(h, ew_align_up(b->size));
        b->offset = h->regions[region[b - buffers]].at;
    }
}

ew_err ew_memory_sweep(struct ew_buffer *buffers, int n, size_t *total, int64_t *probes)
{
    const size_t room = (size_t)n + 1;
    struct heap h = {.top = NONE, .probes = probes};
    EW_CLEANUP(ew_free_ptr) struct region *regions = calloc(2 * room, sizeof(*regions));
    EW_CLEANUP(ew_free_ptr) struct ew_ranked *begin = calloc(room, sizeof(*begin));
    EW_CLEANUP(ew_free_ptr) struct ew_ranked *end = calloc(room, sizeof(*end));
    EW_CLEANUP(ew_free_ptr) int *region = calloc(room, sizeof(*region));
    EW_CHECK(regions && begin && end && region, EW_ERR_MEMORY, "no memory to plan %d buffers", n);
    h.regions = regions;
    for (int i = 0; i < CLASSES; i++)
        h.class[i] = NONE;
    /* of those that begin together, the longest-lived first, at low addresses */
    for (int i = 0; i < n; i++) {
        begin[i] = (struct ew_ranked){-(double)buffers[i].first, buffers[i].last, &buffers[i]};
        end[i] = (struct ew_ranked){-(double)buffers[i].last, -(double)i, &buffers[i]};
    }
    qsort(begin, (size_t)n, sizeof(*begin), ew_memory_by_rank);
    qsort(end, (size_t)n, sizeof(*end), ew_memory_by_rank);
    sweep(&h, buffers, begin, end, region);
    *total = h.top == NONE ? 0 : h.regions[h.top].at + h.regions[h.top].size;
    return EW_OK;
}
