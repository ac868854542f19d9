/* SPDX-License-Identifier: Apache-2.0 */
/* Share of a file or folder in the page cache, by mincore(2), if the caller names one.  It takes
 * time in proportion to the bytes, so it is read at most once a second; the files are those found
 * when the board was opened. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/board.h"
#include "device/sensor.h"

#define MAX_FILES   65536
#define WINDOW      ((size_t)64 << 20) /* bytes mapped at a time */
#define PAGES       (WINDOW / 4096)
#define INTERVAL_NS EW_NS_PER_S

struct state {
    const char **files;
    int n, cap;
    int channel;
    unsigned char *resident; /* PAGES */
    size_t page;
    int64_t next_ns;
    struct ew_sample_value last;
};

static ew_err add_file(struct ew_probe *p, struct state *s, const char *path)
{
    if (s->n == s->cap) {
        const int cap = s->cap ? 2 * s->cap : 256;
        const char **files = ew_arena_array(p->arena, (size_t)cap, sizeof(*files));
        EW_CHECK(files, EW_ERR_MEMORY, "no memory for %d files", cap);
        if (s->n)
            memcpy(files, s->files, (size_t)s->n * sizeof(*files));
        s->files = files;
        s->cap = cap;
    }
    s->files[s->n] = ew_arena_strdup(p->arena, path);
    EW_CHECK(s->files[s->n], EW_ERR_MEMORY, "no memory");
    s->n++;
    return EW_OK;
}

/* Appends a folder's entries to the list; folders are later replaced by their files. */
static ew_err add_folder(struct ew_probe *p, struct state *s, const char *path)
{
    DIR *dir = opendir(path);
    ew_err err = EW_OK;
    for (const struct dirent *e; dir && err == EW_OK && (e = readdir(dir));) {
        char child[4096];
        if (e->d_name[0] == '.' && (!e->d_name[1] || strcmp(e->d_name, "..") == 0))
            continue;
        const int length = snprintf(child, sizeof(child), "%s/%s", path, e->d_name);
        if (length > 0 && (size_t)length < sizeof(child) && s->n < MAX_FILES)
            err = add_file(p, s, child);
    }
    if (dir)
        closedir(dir);
    return err;
}

static ew_err expand_folders(struct ew_probe *p, struct state *s)
{
    int kept = 0;
    for (int i = 0; i < s->n; i++) {
        struct stat st;
        if (lstat(s->files[i], &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode))
            EW_TRY(add_folder(p, s, s->files[i]));
        else if (S_ISREG(st.st_mode))
            s->files[kept++] = s->files[i];
    }
    s->n = kept;
    return EW_OK;
}

static ew_err probe(struct ew_probe *p, void **state)
{
    if (!p->opts->watch)
        return EW_OK; /* not requested */
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    s->page = (size_t)sysconf(_SC_PAGESIZE);
    s->resident = ew_arena_alloc(p->arena, PAGES);
    EW_CHECK(s->resident, EW_ERR_MEMORY, "no memory");
    struct stat st;
    EW_CHECK(lstat(p->opts->watch, &st) == 0, EW_ERR_IO, "watch: %s: %s", p->opts->watch,
             strerror(errno));
    EW_TRY(add_file(p, s, p->opts->watch));
    EW_TRY(expand_folders(p, s));
    if (s->n == 0)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "no file in %s", p->opts->watch);
    *state = s;
    const struct ew_channel c = {"cache.share", EW_QUANTITY_SHARE, EW_QUALITY_MEASURED,
                                 ew_arena_strdup(p->arena, p->opts->watch), 0};
    EW_CHECK(c.source, EW_ERR_MEMORY, "no memory");
    return ew_probe_add(p, &c, &s->channel);
}

/* Pages of one file, and those resident.  False: not reported by the kernel. */
static bool count_pages(const struct state *s, int fd, size_t size, size_t *all, size_t *resident)
{
    for (size_t at = 0; at < size; at += WINDOW) {
        const size_t bytes = size - at < WINDOW ? size - at : WINDOW;
        const size_t pages = (bytes + s->page - 1) / s->page;
        void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)at);
        if (map == MAP_FAILED)
            return false;
        const bool told = mincore(map, bytes, s->resident) == 0;
        munmap(map, bytes);
        if (!told)
            return false;
        *all += pages;
        for (size_t i = 0; i < pages; i++)
            *resident += s->resident[i] & 1;
    }
    return true;
}

static struct ew_sample_value measure(const struct state *s)
{
    size_t all = 0, resident = 0;
    for (int i = 0; i < s->n; i++) {
        const int fd = open(s->files[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        struct stat st;
        if (fd < 0)
            continue; /* removed since */
        const bool told = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                          count_pages(s, fd, (size_t)st.st_size, &all, &resident);
        close(fd);
        if (!told)
            return ew_sample_value_absent(EW_ABSENT_UNSUPPORTED);
    }
    if (all == 0)
        return ew_sample_value_absent(EW_ABSENT_LOST);
    return ew_sample_value_of(100.0 * (double)resident / (double)all);
}

static void read_share(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    struct state *s = state;
    if (now_ns >= s->next_ns) {
        s->last = measure(s);
        s->next_ns = now_ns + INTERVAL_NS;
    }
    values[s->channel] = s->last;
}

const struct ew_sensor ew_sensor_pagecache = {
    .name = "pagecache",
    .what = "page-cache share",
    .probe = probe,
    .read = read_share,
};
