/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder process and its protocol: requests are in shared memory, and a byte over the socket
 * each way signals.  Its results are untrusted: copied, then checked. */
#include "data/image_decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fork_server.h"
#include "base/mem.h"
#include "base/sandbox.h"
#include "data/image_file.h"
#include "data/video_wire.h"

#define SILENCE_MS 30000 /* timeout of a request */
#define ROOM       ((size_t)16 << 20)
/* The largest file and its pixels; untouched pages take no memory. */
#define ROOM_LARGE ((size_t)512 << 20)
#define KEPT       ((size_t)1 << 20) /* memory that an idle process may keep */

/* Header of the shared memory. */
struct image_slot {
    uint64_t at, size; /* the image's bytes */
    uint64_t pixels_at;
    int64_t shape[3];
    int32_t err;
    char message[EW_IMAGE_TEXT];
};

struct request {
    int32_t n, channels;
    uint64_t used; /* bytes in use */
    struct image_slot place[EW_IMAGE_JOBS];
};

#define HEAD ew_align_up(sizeof(struct request))

struct ew_image_decoder {
    struct ew_server server; /* pid 0: none */
};

/* ---- Inside the process ---- */

struct shared_block {
    uint8_t *memory;
    size_t size;
};

static void decode_one(const struct shared_block *room, struct request *r, int i, void **kept)
{
    struct image_slot *p = &r->place[i];
    struct ew_bytes out = {
        .at = room->memory + r->used, .room = room->size - r->used, .borrowed = true};
    p->err = (int32_t)ew_image_decode_here(room->memory + p->at, p->size, r->channels, kept, &out,
                                           p->shape);
    p->message[0] = 0;
    if (p->err != EW_OK)
        strncat(p->message, ew_error_message(), EW_IMAGE_TEXT - 1);
    p->pixels_at = r->used;
    r->used = p->err == EW_OK ? ew_align_up(r->used + out.size) : r->used;
}

static void confine(void)
{
    const struct rlimit none = {0, 0};
    static const char *const nothing[] = {NULL};
    setrlimit(RLIMIT_CORE, &none);
    ew_sandbox_files(nothing, nothing);
    ew_sandbox_compute_only();
}

static void serve(int socket, void *memory, size_t size)
{
    const struct shared_block room = {memory, size};
    struct request *r = memory;
    void *kept = NULL;
    char byte;
    confine();
    while (read(socket, &byte, 1) == 1) {
        for (int i = 0; i < r->n; i++)
            decode_one(&room, r, i, &kept);
        if (write(socket, &byte, 1) != 1)
            break;
    }
}

/* ---- Starting and ending ---- */

static struct ew_idle_servers idle = EW_IDLE_SERVERS_INIT;

static struct ew_fork_server decoders = EW_FORK_SERVER_INIT(serve);

static ew_err need_server(struct ew_image_decoder **d, size_t size)
{
    if (!*d)
        *d = calloc(1, sizeof(**d));
    EW_CHECK(*d, EW_ERR_MEMORY, "no memory for decoding images");
    struct ew_server *s = &(*d)->server;
    if (s->pid && s->memory_size < size)
        ew_fork_server_stop(&decoders, s, 0);
    if (!s->pid && size == ROOM && ew_idle_take(&idle, s))
        return EW_OK;
    return s->pid ? EW_OK : ew_fork_server_start(&decoders, size, s);
}

void ew_image_decoder_free(struct ew_image_decoder *d)
{
    if (!d)
        return;
    struct ew_server *s = &d->server;
    if (s->pid && s->memory_size == ROOM)
        madvise((char *)s->memory + KEPT, ROOM - KEPT, MADV_REMOVE);
    if (s->pid && (s->memory_size != ROOM || !ew_idle_put(&idle, s)))
        ew_fork_server_stop(&decoders, s, 0);
    free(d);
}

int ew_image_decoder_process(const struct ew_image_decoder *d)
{
    return d ? (int)d->server.pid : 0;
}

/* ---- Asking ---- */

static size_t bytes_of(const struct ew_image_job *jobs, int n)
{
    size_t sum = HEAD;
    for (int i = 0; i < n; i++)
        sum += ew_align_up(jobs[i].size);
    return sum;
}

static void put_request(const struct ew_server *s, int channels, const struct ew_image_job *jobs,
                        int n)
{
    struct request *r = s->memory;
    uint64_t at = HEAD;
    for (int i = 0; i < n; i++) {
        memcpy((char *)s->memory + at, jobs[i].bytes, jobs[i].size);
        r->place[i] = (struct image_slot){.at = at, .size = jobs[i].size};
        at = ew_align_up(at + jobs[i].size);
    }
    r->n = n;
    r->channels = channels;
    r->used = at;
}

static ew_err died(struct ew_server *s)
{
    char what[EW_IMAGE_TEXT];
    snprintf(what, sizeof(what), "%s", ew_error_message());
    const int signal = ew_fork_server_stop(&decoders, s, 1000); /* it is ending already */
    if (signal)
        return ew_fail(EW_ERR_FORMAT, "the image's decoder died of signal %d (%s)", signal,
                       strsignal(signal));
    return ew_fail(EW_ERR_FORMAT, "the image's decoder: %s", what);
}

static bool possible(const struct image_slot *p, int channels, size_t size)
{
    const int64_t h = p->shape[0], w = p->shape[1], c = p->shape[2];
    const bool sizes = h > 0 && w > 0 && h <= INT32_MAX && w <= INT32_MAX &&
                       (c == channels || (channels == 0 && (c == 1 || c == 3)));
    return sizes && p->pixels_at >= HEAD && p->pixels_at <= size &&
           (uint64_t)(h * w) <= (size - p->pixels_at) / (uint64_t)c;
}

/* *room: an image did not fit beside the others. */
static ew_err take_answer(const struct ew_server *s, int channels, struct ew_image_job *jobs, int n,
                          bool *room)
{
    const struct request *r = s->memory;
    for (int i = 0; i < n; i++) {
        struct ew_image_job *j = &jobs[i];
        struct image_slot p;
        memcpy(&p, &r->place[i], sizeof(p));
        p.message[EW_IMAGE_TEXT - 1] = 0;
        *room = *room && p.err != EW_ERR_MEMORY;
        const bool known = p.err == EW_OK || p.err == EW_ERR_LIMIT || p.err == EW_ERR_MEMORY ||
                           p.err == EW_ERR_UNSUPPORTED;
        j->err = known ? (ew_err)p.err : EW_ERR_FORMAT;
        memcpy(j->message, p.message, sizeof(j->message));
        if (j->err != EW_OK)
            continue;
        EW_CHECK(possible(&p, channels, s->memory_size), EW_ERR_FORMAT,
                 "the image's decoder answers nonsense");
        j->pixels = (const uint8_t *)s->memory + p.pixels_at;
        memcpy(j->shape, p.shape, sizeof(j->shape));
    }
    return EW_OK;
}

/* An idle process may have been killed: retries with a new one. */
static ew_err ask(struct ew_image_decoder **d, size_t size, int channels,
                  const struct ew_image_job *jobs, int n)
{
    const char byte = 0;
    EW_TRY(need_server(d, size));
    struct ew_server *s = &(*d)->server;
    put_request(s, channels, jobs, n);
    if (ew_server_write(s->fd, &byte, 1) == EW_OK)
        return EW_OK;
    ew_fork_server_stop(&decoders, s, 0);
    EW_TRY(ew_fork_server_start(&decoders, size, s));
    put_request(s, channels, jobs, n);
    return ew_server_write(s->fd, &byte, 1);
}

static ew_err run_in(struct ew_image_decoder **d, size_t size, int channels,
                     struct ew_image_job *jobs, int n, bool *room)
{
    char byte;
    EW_TRY(ask(d, size, channels, jobs, n));
    struct ew_server *s = &(*d)->server;
    if (ew_server_read(s->fd, &byte, 1, SILENCE_MS) != EW_OK)
        return died(s);
    const ew_err e = take_answer(s, channels, jobs, n, room);
    if (e != EW_OK)
        ew_fork_server_stop(&decoders, s, 0);
    return e;
}

ew_err ew_image_decoder_run(struct ew_image_decoder **d, int channels, struct ew_image_job *jobs,
                            int n)
{
    const size_t bytes = bytes_of(jobs, n);
    bool room = bytes <= ROOM;
    EW_ASSERT(n >= 1 && n <= EW_IMAGE_JOBS);
    EW_CHECK(bytes <= ROOM_LARGE, EW_ERR_LIMIT, "%zu bytes are more than an image may have", bytes);
    if (room)
        EW_TRY(run_in(d, ROOM, channels, jobs, n, &room));
    if (room)
        return EW_OK;
    EW_CHECK(n == 1, EW_ERR_LIMIT, "%d images have no room together", n);
    room = true;
    return run_in(d, ROOM_LARGE, channels, jobs, n, &room);
}
