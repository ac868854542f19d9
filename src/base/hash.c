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

/* Little-endian whatever the machine, so that a file has the same sum everywhere. */
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
