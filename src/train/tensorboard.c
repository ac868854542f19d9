/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard event files. */
#include "train/tensorboard.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_TAG   200
#define MAX_EVENT 512

uint32_t ew_crc32c(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint32_t c = 0xffffffffU;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++) /* reflected polynomial; too few events for a table */
            c = c >> 1 ^ (c & 1 ? 0x82f63b78U : 0);
    }
    return ~c;
}

static uint32_t masked(const void *bytes, size_t n)
{
    const uint32_t c = ew_crc32c(bytes, n);
    return (c >> 15 | c << 17) + 0xa282ead8U;
}

static void put_le(unsigned char *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(v >> 8 * i);
}

/* ---- Messages ---- */

struct message {
    unsigned char bytes[MAX_EVENT];
    size_t n;
};

static void put_varint(struct message *m, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        m->bytes[m->n++] = (unsigned char)(v | 0x80);
    m->bytes[m->n++] = (unsigned char)v;
}

static void put_fixed(struct message *m, int field, uint64_t v, int bytes)
{
    put_varint(m, (uint64_t)field << 3 | (bytes == 8 ? 1 : 5));
    put_le(m->bytes + m->n, v, bytes);
    m->n += (size_t)bytes;
}

static void put_bytes(struct message *m, int field, const void *data, size_t n)
{
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, n);
    memcpy(m->bytes + m->n, data, n);
    m->n += n;
}

/* An Event with the present time, for the caller to complete. */
static struct message begin_event(int64_t step)
{
    struct message m = {.n = 0};
    struct timespec t;
    uint64_t bits;
    clock_gettime(CLOCK_REALTIME, &t);
    const double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    memcpy(&bits, &now, sizeof(bits));
    put_fixed(&m, 1, bits, 8);
    put_varint(&m, 2 << 3);
    put_varint(&m, (uint64_t)step);
    return m;
}

static ew_err write_record(struct ew_tensorboard *t, const struct message *m)
{
    unsigned char head[12], tail[4];
    put_le(head, m->n, 8);
    put_le(head + 8, masked(head, 8), 4);
    put_le(tail, masked(m->bytes, m->n), 4);
    const bool ok = fwrite(head, 1, 12, t->f) == 12 && fwrite(m->bytes, 1, m->n, t->f) == m->n &&
                    fwrite(tail, 1, 4, t->f) == 4;
    EW_CHECK(ok, EW_ERR_IO, "%s: %s", t->path, strerror(errno));
    return EW_OK;
}

/* ---- Files ---- */

ew_err ew_tensorboard_open(const char *folder, struct ew_tensorboard *out)
{
    static const char version[] = "brain.Event:2";
    *out = (struct ew_tensorboard){0};
    EW_CHECK(mkdir(folder, 0777) == 0 || errno == EEXIST, EW_ERR_IO, "%s: %s", folder,
             strerror(errno));
    /* "x": never overwrites a file of the same second */
    for (int i = 0; i < 100 && !out->f; i++) {
        snprintf(out->path, sizeof(out->path), "%s/events.out.tfevents.%lld.edgewise.%d.%d", folder,
                 (long long)time(NULL), (int)getpid(), i);
        out->f = fopen(out->path, "wbxe");
        EW_CHECK(out->f || errno == EEXIST, EW_ERR_IO, "%s: %s", out->path, strerror(errno));
    }
    EW_CHECK(out->f, EW_ERR_IO, "%s: has too many files of this second", folder);
    struct message m = begin_event(0);
    put_bytes(&m, 3, version, sizeof(version) - 1);
    return write_record(out, &m);
}

ew_err ew_tensorboard_scalar(struct ew_tensorboard *t, const char *tag, int64_t step, double value)
{
    struct message m = begin_event(step), v = {.n = 0}, summary = {.n = 0};
    const float f = (float)value;
    uint32_t bits;
    if (!isfinite(value))
        return EW_OK;
    memcpy(&bits, &f, sizeof(bits));
    const size_t n = strlen(tag);
    put_bytes(&v, 1, tag, n < MAX_TAG ? n : MAX_TAG);
    put_fixed(&v, 2, bits, 4);
    put_bytes(&summary, 1, v.bytes, v.n);
    put_bytes(&m, 5, summary.bytes, summary.n);
    return write_record(t, &m);
}

ew_err ew_tensorboard_close(struct ew_tensorboard *t)
{
    if (!t->f)
        return EW_OK;
    const bool ok = fclose(t->f) == 0;
    t->f = NULL;
    EW_CHECK(ok, EW_ERR_IO, "%s: %s", t->path, strerror(errno));
    return EW_OK;
}
