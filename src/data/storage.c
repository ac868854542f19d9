/* SPDX-License-Identifier: Apache-2.0 */
/* Emulated media and the page cache. */
#include "data/storage.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"

/* Order of magnitude of the media that boards have: a SATA solid-state disk, a hard disk at 7,200
 * turns a minute (seek and half a turn), an A1 memory card. */
static const struct {
    const char *name;
    struct ew_storage s;
} media[] = {
    {"none", {0, 0}},
    {"ssd", {500, 100}},
    {"hdd", {120, 12000}},
    {"sdcard", {40, 800}},
};

ew_err ew_storage_parse(const char *text, struct ew_storage *out)
{
    for (size_t i = 0; i < EW_COUNT(media); i++)
        if (strcmp(text, media[i].name) == 0) {
            *out = media[i].s;
            return EW_OK;
        }
    char rate[EW_NUM_CHARS];
    const size_t n = strcspn(text, ",");
    double mb = 0, ms = 0;
    bool ok = n < sizeof(rate);
    if (ok) {
        memcpy(rate, text, n);
        rate[n] = '\0';
        ok = ew_num_float(rate, &mb) && mb > 0 && mb <= 1e6;
    }
    if (ok && text[n])
        ok = ew_num_float(text + n + 1, &ms) && ms >= 0 && ms <= 1e4;
    EW_CHECK(ok, EW_ERR_USAGE,
             "storage: '%.100s' is not none, ssd, hdd, sdcard or MB/s[,milliseconds]", text);
    *out = (struct ew_storage){mb, ms * 1000};
    return EW_OK;
}

/* ---- An emulated medium ---------------------------------------------------------------------- */

#define PAGE 4096 /* bytes that are cached together */

struct ew_medium {
    struct ew_storage speed;
    pthread_mutex_t lock; /* guards all below */
    int64_t free_ns;      /* when the request before this one is done */
    uint8_t *cached;      /* one bit per page of the split's file, or per sample */
    int64_t room;         /* bits */
};

ew_err ew_medium_new(const struct ew_storage *s, int64_t samples, struct ew_medium **out)
{
    struct ew_medium *m = calloc(1, sizeof(*m));
    EW_CHECK(m, EW_ERR_MEMORY, "no memory for an emulated medium");
    m->speed = *s;
    m->room = samples + 8;
    m->cached = calloc((size_t)m->room / 8 + 1, 1);
    if (!m->cached) {
        free(m);
        return ew_fail(EW_ERR_MEMORY, "no memory for an emulated medium");
    }
    pthread_mutex_init(&m->lock, NULL);
    *out = m;
    return EW_OK;
}

void ew_medium_free(struct ew_medium *m)
{
    if (!m)
        return;
    pthread_mutex_destroy(&m->lock);
    free(m->cached);
    free(m);
}

/* With the lock held: room for bit `last`.  Without memory everything counts as not cached. */
static void need_bits(struct ew_medium *m, int64_t last)
{
    if (last < m->room)
        return;
    const int64_t room = last + last / 2 + 64;
    uint8_t *p = realloc(m->cached, (size_t)room / 8 + 1);
    if (!p)
        return;
    memset(p + m->room / 8 + 1, 0, (size_t)(room / 8 - m->room / 8));
    m->cached = p;
    m->room = room;
}

/* With the lock held: of [first, last] how many were not cached; they are now. */
static int64_t take_bits(struct ew_medium *m, int64_t first, int64_t last)
{
    int64_t missing = 0;
    need_bits(m, last);
    for (int64_t i = first; i <= last; i++) {
        const uint8_t bit = (uint8_t)(1u << (i & 7));
        if (i >= m->room) {
            missing++;
        } else if (!(m->cached[i >> 3] & bit)) {
            m->cached[i >> 3] |= bit;
            missing++;
        }
    }
    return missing;
}

static void sleep_until(int64_t ns)
{
    const struct timespec t = {.tv_sec = ns / EW_NS_PER_S, .tv_nsec = ns % EW_NS_PER_S};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

int64_t ew_medium_wait(struct ew_medium *m, int64_t i, const struct ew_sample *s)
{
    if (s->bytes_read <= 0)
        return 0;
    const bool own = s->position < 0;
    pthread_mutex_lock(&m->lock);
    const int64_t now = ew_clock_ns();
    int64_t bytes = s->bytes_read, done = now;
    if (own)
        bytes *= take_bits(m, i, i);
    else
        bytes = PAGE * take_bits(m, s->position / PAGE, (s->position + bytes - 1) / PAGE);
    if (bytes > 0) {
        done = (m->free_ns > now ? m->free_ns : now) + (int64_t)(m->speed.latency_us * 1e3) +
               (int64_t)((double)bytes / m->speed.mb_per_s * 1e3);
        m->free_ns = done;
    }
    pthread_mutex_unlock(&m->lock);
    if (done > now)
        sleep_until(done);
    return done - now;
}
