/* SPDX-License-Identifier: Apache-2.0 */
/* The loader under stress: bad samples, memory, slow media, the page cache. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "data/load_args.h"
#include "data/packed.h"
#include "data_files.h"
#include "ew_test.h"

/* ---- Counting allocations -------------------------------------------------------------------- */

/* glibc's functions under their internal names; sanitizers replace the allocator. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS 1
static atomic_llong allocations;
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t a, size_t n);

void *malloc(size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t a, size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(a, n);
}
#else
#define COUNTS 0
#endif

/* ---- Helpers --------------------------------------------------------------------------------- */

struct sum {
    int64_t batches, samples, bad;
    ew_err err;
};

static struct sum read_epoch(struct ew_loader *l, int64_t epoch)
{
    struct sum s = {0};
    const struct ew_batch *b = NULL;
    s.err = ew_loader_start(l, epoch, 0);
    while (s.err == EW_OK && (s.err = ew_loader_next(l, &b)) == EW_OK && b) {
        s.batches++;
        s.samples += b->n;
        s.bad += b->bad;
        ew_loader_release(l, b);
    }
    return s;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* After the first epochs no thread allocates; plain formats only, since libpng and libjpeg
 * allocate. */
static void allocates_once(void)
{
#if COUNTS
    const char *sets[] = {ew_data_files_idx("ai", 60, 3), ew_data_files_cifar("ac", 30, 2, false),
                          ew_data_files_stl10("as", 9), "synthetic:train=40,kind=shapes,size=24"};
    for (size_t i = 0; i < EW_COUNT(sets); i++)
        for (int64_t workers = 0; workers <= 2; workers++) {
            struct ew_dataset *d = NULL;
            struct ew_loader *l = NULL;
            if (!EW_EXPECT_OK(ew_dataset_open(sets[i], &d)))
                return;
            struct ew_loader_opts o = {.data = d, .batch = 7, .workers = workers, .shuffle = true};
            o.h = o.w = 20;
            o.augment = (struct ew_augment){.crop = 2, .flip = true, .rotate = 9, .erase = 0.3};
            if (EW_EXPECT_OK(ew_loader_open(&o, &l))) {
                /* A worker may have produced no batch in one epoch, so two epochs go first. */
                read_epoch(l, 0);
                read_epoch(l, 1);
                const long long before = atomic_load(&allocations);
                EW_EXPECT(read_epoch(l, 2).samples > 0);
                EW_EXPECT(read_epoch(l, 3).samples > 0);
                EW_EXPECT(atomic_load(&allocations) - before <= (workers ? 16 : 0));
                if (workers == 0)
                    EW_EXPECT_INT(atomic_load(&allocations) - before, 0);
                ew_loader_close(l);
            }
            ew_dataset_close(d);
        }
#else
    EW_SKIP("a build whose allocator cannot be watched");
#endif
}

/* ---- Bad samples ----------------------------------------------------------------------------- */

static void bad_samples(void)
{
    const char *dir = ew_data_files_cifar("bad", 20, 2, false);
    ew_data_files_poke(dir, "data_batch_1.bin", 3 * 3073, 99);
    ew_data_files_poke(dir, "data_batch_2.bin", 7 * 3073, 10);
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    struct ew_pool *pool = NULL;
    EW_EXPECT_OK(ew_pool_new(2, &pool));
    for (int64_t workers = 0; workers <= 4; workers++) {
        struct ew_loader_opts o = {.data = d,
                                   .batch = 8,
                                   .workers = workers % 4,
                                   .pool = workers == 4 ? pool : NULL, /* inline, by the pool's
                                                                        * threads */
                                   .shuffle = true};
        struct ew_loader *l = NULL;
        if (!EW_EXPECT_OK(ew_loader_open(&o, &l)))
            break;
        const struct sum stop = read_epoch(l, 0);
        EW_EXPECT_INT(stop.err, EW_ERR_FORMAT);
        EW_EXPECT_HAS(ew_error_message(), "is not one of 10 classes");
        EW_EXPECT_HAS(ew_error_message(), "bad: train sample ");
        EW_EXPECT_INT(read_epoch(l, 1).err, EW_ERR_FORMAT); /* the next epoch can be tried */
        ew_loader_close(l);

        o.on_bad = EW_ON_BAD_SKIP;
        ew_test_listen();
        EW_EXPECT_OK(ew_loader_open(&o, &l));
        struct sum s = read_epoch(l, 0);
        EW_EXPECT_INT(s.err, EW_OK);
        EW_EXPECT_INT(s.samples, 38);
        EW_EXPECT_INT(s.bad, 2);
        read_epoch(l, 1);
        EW_EXPECT_INT(ew_test_heard("skipped: bad: train sample "), 2); /* each is named once */
        EW_EXPECT_INT(ew_loader_counts(l).bad, 4);
        ew_loader_close(l);

        o.refill = true;
        EW_EXPECT_OK(ew_loader_open(&o, &l));
        s = read_epoch(l, 0);
        EW_EXPECT_INT(s.samples, 40);
        EW_EXPECT(s.bad >= 2);
        ew_loader_close(l);
    }
    ew_pool_free(pool);
    ew_dataset_close(d);
}

/* A file truncated while it is read, and a set without good samples. */
static void cut_under_way(void)
{
    const char *dir = ew_data_files_cifar("cut", 20, 2, false);
    struct ew_dataset *d = NULL;
    struct ew_loader *l = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    struct ew_loader_opts o = {
        .data = d, .batch = 8, .workers = 2, .on_bad = EW_ON_BAD_SKIP, .shuffle = true};
    EW_EXPECT_OK(ew_loader_open(&o, &l));
    EW_EXPECT_INT(read_epoch(l, 0).samples, 40);
    char path[512];
    snprintf(path, sizeof(path), "%s/data_batch_2.bin", dir);
    EW_EXPECT_INT(truncate(path, 3073), 0);
    struct sum s = read_epoch(l, 1);
    EW_EXPECT_INT(s.samples, 21);
    EW_EXPECT_INT(s.bad, 19);
    EW_EXPECT_INT(truncate(path, 0), 0);
    snprintf(path, sizeof(path), "%s/data_batch_1.bin", dir);
    EW_EXPECT_INT(truncate(path, 0), 0);
    s = read_epoch(l, 2);
    EW_EXPECT_INT(s.err, EW_OK);
    EW_EXPECT_INT(s.samples, 0);
    ew_loader_close(l);
    o.refill = true;
    EW_EXPECT_OK(ew_loader_open(&o, &l));
    EW_EXPECT_INT(read_epoch(l, 0).err, EW_ERR_FORMAT);
    EW_EXPECT_HAS(ew_error_message(), "in a row could not be read, the last: cut");
    ew_loader_close(l);
    ew_dataset_close(d);
}

/* Closing in the middle of an epoch, starting another one, leaving batches unread. */
static void stops_anywhere(void)
{
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open("synthetic:train=100,size=16", &d)))
        return;
    for (int64_t workers = 0; workers <= 4; workers++)
        for (int64_t read = 0; read < 6; read++) {
            struct ew_loader_opts o = {.data = d, .batch = 4, .workers = workers};
            struct ew_loader *l = NULL;
            if (!EW_EXPECT_OK(ew_loader_open(&o, &l)))
                break;
            for (int64_t again = 0; again < 3; again++) {
                const struct ew_batch *b = NULL;
                EW_EXPECT_OK(ew_loader_start(l, again, again));
                for (int64_t i = 0; i < read; i++) {
                    EW_EXPECT_OK(ew_loader_next(l, &b));
                    EW_EXPECT_INT(b->number, again + i);
                    if (i + 1 < read)
                        ew_loader_release(l, b);
                }
            }
            ew_loader_close(l);
        }
    ew_dataset_close(d);
}

/* ---- Media ----------------------------------------------------------------------------------- */

static void emulates_a_medium(void)
{
    struct ew_storage s;
    EW_EXPECT_OK(ew_storage_parse("none", &s));
    EW_EXPECT(s.mb_per_s <= 0);
    EW_EXPECT_OK(ew_storage_parse("12.5,2", &s));
    EW_EXPECT_NEAR(s.mb_per_s, 12.5, 1e-9);
    EW_EXPECT_NEAR(s.latency_us, 2000, 1e-9);
    EW_EXPECT_ERR(ew_storage_parse("fast", &s), EW_ERR_USAGE, "'fast' is not none, ssd");
    /* TRAIN 5.2.1: extra time per image of GLD-23k relative to the SSD. */
    struct ew_storage ssd, hdd, card;
    EW_EXPECT_OK(ew_storage_parse("ssd", &ssd));
    EW_EXPECT_OK(ew_storage_parse("hdd", &hdd));
    EW_EXPECT_OK(ew_storage_parse("sdcard", &card));
    const double mb = 2827.0 / 23080, base = mb / ssd.mb_per_s * 1e3 + ssd.latency_us / 1e3;
    EW_EXPECT_NEAR(mb / hdd.mb_per_s * 1e3 + hdd.latency_us / 1e3 - base, 18.85, 0.01);
    EW_EXPECT_NEAR(mb / card.mb_per_s * 1e3 + card.latency_us / 1e3 - base, 7.76, 0.01);
    EW_EXPECT_ERR(ew_storage_parse("-1", &s), EW_ERR_USAGE, "MB/s");
    const char *dir = ew_data_files_cifar("slow", 20, 2, false);
    struct ew_dataset *d = NULL;
    struct ew_loader *l = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    /* 40 samples of 3,073 bytes are in 31 pages: 127 KB at 10 MB/s take 12.7 ms, and each of at
     * least 31 requests costs 1 ms; nothing is read twice. */
    struct ew_loader_opts o = {.data = d, .batch = 8, .storage = {10, 1000}};
    EW_EXPECT_OK(ew_loader_open(&o, &l));
    const int64_t start = ew_clock_ns();
    EW_EXPECT_INT(read_epoch(l, 0).samples, 40);
    const int64_t first = ew_loader_counts(l).emulated_ns;
    EW_EXPECT(ew_clock_ns() - start >= 43000000);
    EW_EXPECT(first >= 43000000 && first < 60000000);
    read_epoch(l, 1);
    EW_EXPECT_INT(ew_loader_counts(l).emulated_ns, first);
    EW_EXPECT_INT(ew_loader_counts(l).bytes_read, 2 * 40 * 3073);
    EW_EXPECT_INT(ew_loader_counts(l).ops_read, 80);
    ew_loader_drop_cache(l);
    read_epoch(l, 2);
    EW_EXPECT(ew_loader_counts(l).emulated_ns >= first + 43000000);
    ew_loader_close(l);
    ew_dataset_close(d);
}

static void page_cache(void)
{
    struct ew_dataset *d = NULL;
    double share = 0;
    EW_EXPECT_OK(ew_dataset_open("synthetic", &d));
    EW_EXPECT_OK(ew_dataset_resident(d, EW_SPLIT_TRAIN, &share));
    EW_EXPECT(share < 0); /* nothing on disk */
    EW_EXPECT_OK(ew_dataset_drop_cache(d, EW_SPLIT_TRAIN));
    ew_dataset_close(d);
    const char *dir = ew_data_files_cifar("cache", 60, 2, false);
    EW_EXPECT_OK(ew_dataset_open(dir, &d));
    struct ew_loader_opts o = {.data = d, .batch = 8};
    struct ew_loader *l = NULL;
    EW_EXPECT_OK(ew_loader_open(&o, &l));
    EW_EXPECT_INT(read_epoch(l, 0).samples, 120);
    ew_loader_close(l);
    EW_EXPECT_OK(ew_dataset_resident(d, EW_SPLIT_TRAIN, &share));
    EW_EXPECT_NEAR(share, 1, 1e-9);
    EW_EXPECT_OK(ew_dataset_drop_cache(d, EW_SPLIT_TRAIN));
    EW_EXPECT_OK(ew_dataset_resident(d, EW_SPLIT_TRAIN, &share));
    ew_dataset_close(d);
    if (share > 0.5)
        EW_SKIP("a file system that keeps its pages (%.0f %% resident)", 100 * share);
    EW_EXPECT_NEAR(share, 0, 1e-9);
}

EW_TEST_MAIN(EW_TEST(allocates_once), EW_TEST(bad_samples), EW_TEST(cut_under_way),
             EW_TEST(stops_anywhere), EW_TEST(emulates_a_medium), EW_TEST(page_cache))
