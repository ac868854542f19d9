/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum: eight bytes at a time, mixed as splitmix64 does (Steele et al., "Fast splittable
 * pseudorandom number generators", OOPSLA 2014). */
#include "base/hash.h"

#include <string.h>

static uint64_t mix(uint64_t state, uint64_t word)
{
    uint64_t x = (state ^ word) + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 27);
}

/* Little-endian on all machines, so that checksums are portable. */
static uint64_t word_of(const unsigned char *p)
{
    uint64_t w = 0;
    for (int i = 0; i < 8; i++)
        w |= (uint64_t)p[i] << (8 * i);
    return w;
}

void ew_hash_add(struct ew_hash *h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    size_t held = h->total % 8;
    h->total += n;
    while (held && n) {
        h->tail[held++] = *p++;
        n--;
        if (held == 8) {
            h->state = mix(h->state, word_of(h->tail));
            held = 0;
        }
    }
    for (; n >= 8; p += 8, n -= 8)
        h->state = mix(h->state, word_of(p));
    if (n)
        memcpy(h->tail, p, n);
}

uint64_t ew_hash_sum(const struct ew_hash *h)
{
    unsigned char last[8] = {0};
    memcpy(last, h->tail, h->total % 8);
    return mix(mix(h->state, word_of(last)), h->total);
}

uint64_t ew_hash_of(const void *bytes, size_t n)
{
    struct ew_hash h = {0};
    ew_hash_add(&h, bytes, n);
    return ew_hash_sum(&h);
}

/* ---- Eight at a time ---- */

static void add_blocks(struct ew_hash_wide *h, const unsigned char *p, size_t blocks)
{
    uint64_t lane[EW_HASH_LANES];
    memcpy(lane, h->lane, sizeof(lane));
    for (; blocks > 0; blocks--, p += sizeof(h->tail))
        for (int i = 0; i < EW_HASH_LANES; i++)
            lane[i] = mix(lane[i], word_of(p + 8 * i));
    memcpy(h->lane, lane, sizeof(lane));
}

void ew_hash_wide_add(struct ew_hash_wide *h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    const size_t held = h->total % sizeof(h->tail);
    h->total += n;
    if (held) {
        const size_t room = sizeof(h->tail) - held, take = n < room ? n : room;
        memcpy(h->tail + held, p, take);
        p += take;
        n -= take;
        if (take < room)
            return;
        add_blocks(h, h->tail, 1);
    }
    add_blocks(h, p, n / sizeof(h->tail));
    const size_t left = n % sizeof(h->tail);
    if (left)
        memcpy(h->tail, p + n - left, left);
}

uint64_t ew_hash_wide_sum(const struct ew_hash_wide *h)
{
    struct ew_hash_wide end = *h;
    const size_t held = h->total % sizeof(h->tail);
    if (held) {
        memset(end.tail + held, 0, sizeof(end.tail) - held);
        add_blocks(&end, end.tail, 1);
    }
    uint64_t sum = 0;
    for (int i = 0; i < EW_HASH_LANES; i++)
        sum = mix(sum, end.lane[i]);
    return mix(sum, h->total);
}

uint64_t ew_hash_wide_of(const void *bytes, size_t n)
{
    struct ew_hash_wide h = {.total = 0};
    ew_hash_wide_add(&h, bytes, n);
    return ew_hash_wide_sum(&h);
}
