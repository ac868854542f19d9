/* SPDX-License-Identifier: Apache-2.0 */
/* Heap helpers and the arena allocator. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena_move.h"

#define HUGE_BYTES   ((size_t)2 << 20)
#define CHUNK_BYTES  ((size_t)64 << 10)
#define MAPPED_BYTES ((size_t)128 << 10)
#define BIG_OBJECT   ((size_t)1 << 10) /* objects from this size on are cache line aligned */

struct ew_arena_chunk {
    struct ew_arena_chunk *next;
    size_t size, used; /* bytes */
    char *base;        /* behind this header, or a separate mapping */
    bool mapped;
};

/* Requests transparent huge pages.  Weights of a dense layer are streamed once: with 4 KiB pages
 * TLB misses leave one core little more than half of the memory bandwidth.  The kernel merges
 * adjacent mappings with equal flags, so a huge page may span several mappings; nothing beyond a
 * mapping's end becomes resident.  Ignored by kernels without huge pages. */
static void ask_for_huge_pages(void *p, size_t size)
{
    (void)madvise(p, size, MADV_HUGEPAGE);
}

/* Large chunks are mapped, so that freeing one returns its memory to the system at once, which the
 * heap would not.  Their headers are separate, so that mappings stay untouched and adjacent ones
 * can share huge pages. */
static struct ew_arena_chunk *chunk_new(size_t size)
{
    const bool mapped = size >= MAPPED_BYTES;
    struct ew_arena_chunk *c = calloc(1, sizeof(*c) + (mapped ? 0 : size));
    if (!c)
        return NULL;
    *c = (struct ew_arena_chunk){.size = size, .base = (char *)(c + 1), .mapped = mapped};
    if (!mapped)
        return c;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        free(c);
        return NULL;
    }
    ask_for_huge_pages(p, size);
    c->base = p;
    return c;
}

static void chunk_free(struct ew_arena_chunk *c)
{
    if (c->mapped)
        munmap(c->base, c->size);
    free(c);
}

ew_err ew_grow(void **array, int *cap, int need, size_t item)
{
    if (need <= *cap)
        return EW_OK;
    EW_CHECK(need < (1 << 28), EW_ERR_LIMIT, "a list would need %d entries", need);
    const int new_cap = need < 16 ? 16 : need + need / 2;
    void *p = realloc(*array, (size_t)new_cap * item);
    EW_CHECK(p, EW_ERR_MEMORY, "no memory for a list of %d entries", new_cap);
    *array = p;
    *cap = new_cap;
    return EW_OK;
}

/* Zeros whole pages by discarding them, so that they are only allocated, on the local node, when
 * written. */
static void clear_pages(void *p, size_t size)
{
    if (madvise(p, size, MADV_DONTNEED) != 0)
        memset(p, 0, size);
}

ew_err ew_aligned_new(size_t bytes, void **out)
{
    const size_t size = ew_align_up(bytes ? bytes : 1);
    EW_CHECK(size >= bytes, EW_ERR_MEMORY, "a buffer of %zu bytes is too large", bytes);
    const bool large = size >= 2 * HUGE_BYTES;
    void *p = NULL; /* aligned_alloc requires a multiple of the alignment */
    EW_CHECK(posix_memalign(&p, large ? HUGE_BYTES : EW_ALIGN, size) == 0, EW_ERR_MEMORY,
             "no memory for a buffer of %zu bytes", bytes);
    const size_t whole = large ? size / HUGE_BYTES * HUGE_BYTES : 0;
    if (large) {
        ask_for_huge_pages(p, whole);
        clear_pages(p, whole);
    }
    memset((char *)p + whole, 0, size - whole);
    *out = p;
    return EW_OK;
}

void ew_free_ptr(void *ptr_to_ptr)
{
    void *p;
    memcpy(&p, ptr_to_ptr, sizeof(p));
    free(p);
}

void ew_arena_init(struct ew_arena *a)
{
    memset(a, 0, sizeof(*a));
}

void ew_arena_fini(struct ew_arena *a)
{
    struct ew_arena_chunk *c = a->chunks;
    while (c) {
        struct ew_arena_chunk *next = c->next;
        chunk_free(c);
        c = next;
    }
    ew_arena_init(a);
}

void ew_arena_reset(struct ew_arena *a)
{
    ew_arena_fini(a);
}

/* The link to the chunk that contains only this object; NULL: none.  Objects that fill a chunk have
 * their own, but the first chunk may hold others too. */
static struct ew_arena_chunk **find_alone(const struct ew_arena *a, const void *p, size_t bytes)
{
    if (!a->chunks || bytes + EW_ALIGN <= CHUNK_BYTES)
        return NULL;
    for (struct ew_arena_chunk **c = &a->chunks->next; *c; c = &(*c)->next) {
        const char *base = (*c)->base;
        if ((const char *)p >= base && (const char *)p < base + (*c)->size)
            return (const char *)p + bytes == base + (*c)->used ? c : NULL;
    }
    return NULL;
}

bool ew_arena_is_alone(const struct ew_arena *a, const void *p, size_t bytes)
{
    return find_alone(a, p, bytes) != NULL;
}

static struct ew_arena_chunk *take_chunk(struct ew_arena *a, const void *p, size_t bytes)
{
    struct ew_arena_chunk **c = find_alone(a, p, bytes), *chunk = c ? *c : NULL;
    if (chunk) {
        *c = chunk->next;
        a->used -= bytes;
    }
    return chunk;
}

bool ew_arena_release(struct ew_arena *a, const void *p, size_t bytes)
{
    struct ew_arena_chunk *chunk = take_chunk(a, p, bytes);
    if (chunk)
        chunk_free(chunk);
    return chunk != NULL;
}

bool ew_arena_move(struct ew_arena *to, struct ew_arena *from, const void *p, size_t bytes)
{
    struct ew_arena_chunk *chunk = to->chunks ? take_chunk(from, p, bytes) : NULL;
    if (!chunk)
        return false;
    chunk->next = to->chunks->next; /* behind the first, which is the current one */
    to->chunks->next = chunk;
    to->used += bytes;
    return true;
}

void ew_arena_join(struct ew_arena *a, struct ew_arena *from)
{
    struct ew_arena_chunk **tail = &a->chunks;
    while (*tail)
        tail = &(*tail)->next;
    *tail = from->chunks;
    a->used += from->used;
    a->failed |= from->failed;
    ew_arena_init(from);
}

/* Offset of the next object of this size in the chunk. */
static size_t object_start(const struct ew_arena_chunk *c, size_t bytes)
{
    const uintptr_t align = bytes >= BIG_OBJECT ? EW_ALIGN : 16;
    const uintptr_t base = (uintptr_t)c->base;
    return (size_t)(((base + c->used + align - 1) & ~(align - 1)) - base);
}

static struct ew_arena_chunk *new_chunk(struct ew_arena *a, size_t bytes)
{
    size_t size = bytes + EW_ALIGN;
    if (size < bytes || size > SIZE_MAX - sizeof(struct ew_arena_chunk))
        return NULL;
    if (size < CHUNK_BYTES)
        size = CHUNK_BYTES;
    struct ew_arena_chunk *c = chunk_new(size);
    if (!c)
        return NULL;
    /* a big object's chunk goes behind the current one, which remains current */
    if (a->chunks && size > CHUNK_BYTES) {
        c->next = a->chunks->next;
        a->chunks->next = c;
    } else {
        c->next = a->chunks;
        a->chunks = c;
    }
    return c;
}

void *ew_arena_alloc(struct ew_arena *a, size_t bytes)
{
    if (bytes == 0)
        bytes = 1;
    struct ew_arena_chunk *c = a->chunks;
    if (!c || object_start(c, bytes) > c->size || c->size - object_start(c, bytes) < bytes)
        c = new_chunk(a, bytes);
    if (!c) {
        a->failed = true;
        return NULL;
    }
    const size_t start = object_start(c, bytes);
    c->used = start + bytes;
    a->used += bytes;
    return c->base + start;
}

void *ew_arena_array(struct ew_arena *a, size_t n, size_t item)
{
    size_t bytes;
    if (!ew_mul_size(n, item, &bytes)) {
        a->failed = true;
        return NULL;
    }
    return ew_arena_alloc(a, bytes);
}

char *ew_arena_strdup(struct ew_arena *a, const char *s)
{
    const size_t n = strlen(s) + 1;
    char *p = ew_arena_alloc(a, n);
    if (p)
        memcpy(p, s, n);
    return p;
}

char *ew_arena_printf(struct ew_arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = n < 0 ? NULL : ew_arena_alloc(a, (size_t)n + 1);
    if (!p)
        return NULL;
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}
