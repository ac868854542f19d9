/* SPDX-License-Identifier: Apache-2.0 */
/* Heap allocation with overflow checks, and the arena allocator: one arena per lifetime. */
#ifndef EW_BASE_MEM_H
#define EW_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define EW_ALIGN 64 /* bytes: a cache line, and the widest vector */

#define EW_COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline int64_t ew_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t ew_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Rounds up to a multiple of EW_ALIGN. */
static inline size_t ew_align_up(size_t n)
{
    return (n + (EW_ALIGN - 1)) & ~(size_t)(EW_ALIGN - 1);
}

/* a * b into *out; false on overflow. */
static inline bool ew_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* Grows a heap array of `item` bytes per element to hold at least `need`; *cap is updated. */
ew_err ew_grow(void **array, int *cap, int need, size_t item);

/* 64-byte aligned and zeroed (large blocks by fresh pages); free with free(). */
ew_err ew_aligned_new(size_t bytes, void **out);

/* For EW_CLEANUP on a pointer variable: frees what it points to. */
void ew_free_ptr(void *ptr_to_ptr);

/* A bump allocator over a list of chunks.
 *
 *   chunks:  [ head | objects ......... free ] -> [ head | objects ... ] -> NULL
 *
 * Objects are zeroed, aligned to 16 bytes (64 from 1 KiB on), and live until fini or reset.  When
 * memory runs out alloc returns NULL and sets `failed`, so that a builder may check once at its
 * end.  Not thread-safe. */
struct ew_arena {
    struct ew_arena_chunk *chunks;
    size_t used; /* allocated bytes, for reports */
    bool failed; /* an alloc returned NULL */
};

void ew_arena_init(struct ew_arena *a);
void ew_arena_fini(struct ew_arena *a);
void ew_arena_reset(struct ew_arena *a); /* frees all objects, keeps the arena */
void ew_arena_join(struct ew_arena *a, struct ew_arena *from); /* moves all chunks of `from` */
void *ew_arena_alloc(struct ew_arena *a, size_t bytes);
/* Frees an object of `bytes` early, if it has a chunk of its own; else returns false and does
 * nothing. */
bool ew_arena_release(struct ew_arena *a, const void *p, size_t bytes);
void *ew_arena_array(struct ew_arena *a, size_t n, size_t item); /* NULL on overflow too */
char *ew_arena_strdup(struct ew_arena *a, const char *s);
char *ew_arena_printf(struct ew_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
