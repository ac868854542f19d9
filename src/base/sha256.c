/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4). */
#include "base/sha256.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* Section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64
 * primes. */
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* Section 6.2.2. */
static void block(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[64], v[8];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)p[4 * t] << 24 | (uint32_t)p[4 * t + 1] << 16 |
               (uint32_t)p[4 * t + 2] << 8 | p[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        const uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = (turn(b, 17) ^ turn(b, 19) ^ b >> 10) + w[t - 7] +
               (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[t - 16];
    }
    memcpy(v, h, sizeof(v));
    for (int t = 0; t < 64; t++) {
        const uint32_t e = v[4], a = v[0];
        const uint32_t t1 = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
                            ((e & v[5]) ^ (~e & v[6])) + k[t] + w[t];
        const uint32_t t2 =
            (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof(*v));
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

void ew_sha256_init(struct ew_sha256 *s)
{
    *s = (struct ew_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                      0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void ew_sha256_add(struct ew_sha256 *s, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t held = (size_t)(s->total % 64);
    s->total += n;
    while (n > 0) {
        if (held == 0 && n >= 64) {
            block(s->state, p);
            p += 64;
            n -= 64;
            continue;
        }
        const size_t take = n < 64 - held ? n : 64 - held;
        memcpy(s->block + held, p, take);
        held += take;
        p += take;
        n -= take;
        if (held == 64) {
            block(s->state, s->block);
            held = 0;
        }
    }
}

void ew_sha256_text(struct ew_sha256 *s, char text[EW_SHA256_TEXT])
{
    const uint64_t bits = s->total * 8;
    uint8_t pad[72] = {0x80};
    const size_t held = (size_t)(s->total % 64), zeros = (held < 56 ? 56 : 120) - held;
    for (int i = 0; i < 8; i++)
        pad[zeros + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
    ew_sha256_add(s, pad, zeros + 8);
    for (int i = 0; i < 8; i++)
        snprintf(text + 8 * i, 9, "%08x", (unsigned)s->state[i]);
}

ew_err ew_sha256_file(const char *path, char text[EW_SHA256_TEXT])
{
    int fd;
    EW_TRY(ew_file_open(path, &fd));
    FILE *f = fdopen(fd, "rb");
    if (!f) {
        close(fd);
        return ew_fail(EW_ERR_MEMORY, "%s: no memory to read it", path);
    }
    struct ew_sha256 s;
    ew_sha256_init(&s);
    uint8_t buf[16384];
    for (size_t n; (n = fread(buf, 1, sizeof(buf), f)) > 0;)
        ew_sha256_add(&s, buf, n);
    const bool ok = !ferror(f);
    const int reason = errno;
    fclose(f);
    EW_CHECK(ok, EW_ERR_IO, "%s: %s", path, strerror(reason));
    ew_sha256_text(&s, text);
    return EW_OK;
}
