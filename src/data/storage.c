/* SPDX-License-Identifier: Apache-2.0 */
/* Emulated media and the page cache. */
#include "data/storage.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "data/reader.h"

/* ssd, hdd and sdcard are TRAIN's media (4.1: a Samsung 980, a WD My Passport on USB 3, a Samsung
 * EVO Plus): rates of their data sheets, of the disk 120 MB/s, and latencies by which its images of
 * 122.5 kB take 18.85 and 7.76 ms longer from the disk and the card than from the SSD (5.2.1: 741
 * and 485 s against 306 s for 23,080 images).  The others are of an order of magnitude that boards
 * have: a SATA solid-state disk, a disk at 7,200 turns a minute (seek and half a turn), an A1
 * memory card. */
static const struct {
    const char *name;
    struct ew_storage s;
} media[] = {
    {"none", {0, 0}},         {"ssd", {3500, 50}},      {"hdd", {120, 17914}},
    {"sdcard", {100, 6620}},  {"sata-ssd", {500, 100}}, {"hdd-7200", {120, 12000}},
    {"sdcard-a1", {40, 800}},
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
             "storage: '%.100s' is not none, ssd, hdd, sdcard, sata-ssd, hdd-7200, sdcard-a1 or "
             "MB/s[,milliseconds]",
             text);
    *out = (struct ew_storage){mb, ms * 1000};
    return EW_OK;
}

/* ---- An emulated medium ---------------------------------------------------------------------- */

#define PAGE 4096 /* bytes that are cached together */

struct ew_medium {
    struct ew_storage speed;
    pthread_mutex_t lock; /* guards all below */
    int64_t free_ns;      /* when the previous request is done */
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

void ew_medium_drop_cache(struct ew_medium *m)
{
    pthread_mutex_lock(&m->lock);
    memset(m->cached, 0, (size_t)m->room / 8 + 1);
    pthread_mutex_unlock(&m->lock);
}

/* Lock held: grows the bitmap to bit `last`; without memory nothing counts as cached. */
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

/* Lock held: marks [first, last] as cached; returns how many were not. */
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
        ew_clock_sleep_until(done, NULL);
    return done - now;
}

/* ---- The page cache -------------------------------------------------------------------------- */

#define WINDOW ((int64_t)64 << 20) /* bytes mapped at a time */

struct pages {
    int64_t all, resident;
    unsigned char *map; /* WINDOW / page size */
    int64_t page;
};

/* False: unknown. */
static bool count_pages(int fd, int64_t size, struct pages *p)
{
    for (int64_t at = 0; at < size; at += WINDOW) {
        const int64_t bytes = ew_min_i64(size - at, WINDOW);
        const int64_t n = (bytes + p->page - 1) / p->page;
        void *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, (off_t)at);
        if (map == MAP_FAILED)
            return false;
        const bool told = mincore(map, (size_t)bytes, p->map) == 0;
        munmap(map, (size_t)bytes);
        if (!told)
            return false;
        p->all += n;
        for (int64_t i = 0; i < n; i++)
            p->resident += p->map[i] & 1;
    }
    return true;
}

/* Opens file k of a split; -2: no more files, -1: it cannot be opened. */
static int open_kth(const struct ew_dataset *d, enum ew_split split, int64_t k, int64_t *size)
{
    char path[EW_DATA_PATH];
    struct stat st;
    if (!d->reader->file || !d->reader->file(d, split, k, path))
        return -2;
    int fd;
    if (ew_file_open(path, &fd) == EW_OK && fstat(fd, &st) == 0) {
        *size = st.st_size;
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

ew_err ew_dataset_resident(const struct ew_dataset *d, enum ew_split split, double *share)
{
    struct pages p = {.page = sysconf(_SC_PAGESIZE)};
    *share = -1;
    p.map = malloc((size_t)(WINDOW / p.page));
    EW_CHECK(p.map, EW_ERR_MEMORY, "no memory to look at the page cache");
    bool told = true;
    int64_t size = 0;
    for (int64_t k = 0; told; k++) {
        const int fd = open_kth(d, split, k, &size);
        if (fd == -2)
            break;
        if (fd < 0)
            continue;
        told = count_pages(fd, size, &p);
        close(fd);
    }
    free(p.map);
    if (told && p.all > 0)
        *share = (double)p.resident / (double)p.all;
    return EW_OK;
}

/* Drops the kernel's whole page cache, as root only; loses no data. */
static void drop_all(void)
{
    const int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!write(fd, "1", 1);
    close(fd);
}

ew_err ew_dataset_drop_cache(const struct ew_dataset *d, enum ew_split split)
{
    int64_t size = 0, k = 0;
    for (int fd; (fd = open_kth(d, split, k, &size)) != -2; k++) {
        if (fd < 0)
            continue;
        (void)!fdatasync(fd); /* dirty pages cannot be dropped */
        const int failed = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
        EW_CHECK(!failed, EW_ERR_IO, "the page cache: %s", strerror(failed));
    }
    double left;
    EW_TRY(ew_dataset_resident(d, split, &left));
    if (left > 0 && geteuid() == 0)
        drop_all();
    return EW_OK;
}
