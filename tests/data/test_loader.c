/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: the same batches for any number of workers, resuming, subsets, shapes. */
#include "data/loader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "ew_test.h"

#define SPEC "synthetic:kind=shapes,size=20,train=70,test=30,seed=5"

/* An FNV-1a checksum over all bits, in order. */
static uint64_t hash(uint64_t h, const void *data, size_t size)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

struct run {
    uint64_t hash;
    int64_t batches, samples;
};

static struct run read_epoch(struct ew_loader *l, int64_t epoch, int64_t first, int64_t pixels)
{
    struct run r = {.hash = 0xcbf29ce484222325u};
    const struct ew_batch *b = NULL;
    EW_EXPECT_OK(ew_loader_start(l, epoch, first));
    while (EW_EXPECT_OK(ew_loader_next(l, &b)) && b) {
        EW_EXPECT_INT(b->number, first + r.batches);
        EW_EXPECT_INT(b->epoch, epoch);
        EW_EXPECT(b->stall_ns > 0);
        r.hash = hash(r.hash, b->images, (size_t)(b->n * pixels) * sizeof(float));
        r.hash = hash(r.hash, b->labels, (size_t)b->n * sizeof(int64_t));
        r.hash = hash(r.hash, b->index, (size_t)b->n * sizeof(int64_t));
        r.batches++;
        r.samples += b->n;
        ew_loader_release(l, b);
    }
    return r;
}

static struct ew_loader_opts all_options(const struct ew_dataset *d)
{
    return (struct ew_loader_opts){
        .data = d,
        .split = EW_SPLIT_TRAIN,
        .batch = 8,
        .seed = 3,
        .shuffle = true,
        .prep = {.mean = {0.5, 0.4, 0.3}, .std = {0.2, 0.25, 0.3}},
        .augment = {.crop = 2, .flip = true, .rotate = 10, .erase = 0.5},
    };
}

static void same_for_any_workers(void)
{
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(SPEC, &d)))
        return;
    uint64_t want[3] = {0};
    struct ew_pool *pool = NULL;
    EW_EXPECT_OK(ew_pool_new(3, &pool));
    for (int64_t workers = 0; workers < 7; workers++) {
        struct ew_loader_opts o = all_options(d);
        o.workers = workers % 6;
        o.pool = workers == 6 ? pool : NULL; /* inline, by the pool's threads */
        o.prefetch = 1 + workers % 3;
        struct ew_loader *l = NULL;
        if (!EW_EXPECT_OK(ew_loader_open(&o, &l)))
            break;
        EW_EXPECT_INT(ew_loader_batches(l), 9);
        EW_EXPECT_INT(ew_loader_samples(l), 70);
        for (int64_t e = 0; e < 3; e++) {
            const struct run r = read_epoch(l, e, 0, 20 * 20 * 3);
            EW_EXPECT_INT(r.batches, 9);
            EW_EXPECT_INT(r.samples, 70);
            if (workers == 0)
                want[e] = r.hash;
            EW_EXPECT(r.hash == want[e]);
        }
        ew_loader_close(l);
    }
    EW_EXPECT(want[0] != want[1] && want[1] != want[2]);
    ew_pool_free(pool);
    ew_dataset_close(d);
}

static void resumes_inside_an_epoch(void)
{
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(SPEC, &d)))
        return;
    for (int64_t workers = 0; workers < 3; workers++) {
        struct ew_loader_opts o = all_options(d);
        o.workers = workers;
        struct ew_loader *l = NULL;
        if (!EW_EXPECT_OK(ew_loader_open(&o, &l)))
            break;
        EW_EXPECT_OK(ew_loader_start(l, 4, 0));
        const struct ew_batch *b = NULL;
        for (int i = 0; i < 5; i++) {
            EW_EXPECT_OK(ew_loader_next(l, &b));
            ew_loader_release(l, b);
        }
        uint64_t rest = 0xcbf29ce484222325u;
        while (EW_EXPECT_OK(ew_loader_next(l, &b)) && b) {
            rest = hash(rest, b->images, (size_t)b->n * 1200 * sizeof(float));
            rest = hash(rest, b->labels, (size_t)b->n * sizeof(int64_t));
            rest = hash(rest, b->index, (size_t)b->n * sizeof(int64_t));
            ew_loader_release(l, b);
        }
        EW_EXPECT(read_epoch(l, 4, 5, 1200).hash == rest);
        EW_EXPECT_INT(read_epoch(l, 4, 9, 1200).batches, 0);
        ew_loader_close(l);
    }
    ew_dataset_close(d);
}

static void takes_a_subset(void)
{
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(SPEC, &d)))
        return;
    const int64_t subset[] = {3, 9, 27, 69};
    struct ew_loader_opts o = {.data = d, .subset = subset, .n_subset = 4, .batch = 3};
    struct ew_loader *l = NULL;
    const struct ew_batch *b = NULL;
    if (EW_EXPECT_OK(ew_loader_open(&o, &l))) {
        EW_EXPECT_OK(ew_loader_start(l, 0, 0));
        EW_EXPECT_OK(ew_loader_next(l, &b));
        EW_EXPECT_INT(b->n, 3);
        EW_EXPECT_INT(b->index[2], 27);
        EW_EXPECT_INT(b->labels[2], 7);
        EW_EXPECT_ERR(ew_loader_next(l, &b), EW_ERR_ARG, "not released");
        EW_EXPECT_OK(ew_loader_start(l, 0, 0));
        ew_loader_close(l);
    }
    o.drop_last = true;
    if (EW_EXPECT_OK(ew_loader_open(&o, &l))) {
        EW_EXPECT_INT(ew_loader_batches(l), 1);
        EW_EXPECT_INT(ew_loader_samples(l), 3);
        ew_loader_close(l);
    }
    const int64_t wrong[] = {70};
    o.subset = wrong;
    o.n_subset = 1;
    EW_EXPECT_ERR(ew_loader_open(&o, &l), EW_ERR_ARG, "sample 70");
    ew_dataset_close(d);
}

/* Regression: with classes in turn, as in synthetic data, a tenth of the samples was of one
 * class. */
static void spread_over_all_classes(void)
{
    int64_t classes[10] = {0}, last = -1;
    for (int64_t i = 0; i < 200; i++) {
        const int64_t k = ew_subsample_index(i, 200, 2000);
        EW_EXPECT(k > last && k >= 10 * i && k < 10 * (i + 1));
        classes[k % 10]++;
        last = k;
    }
    for (int k = 0; k < 10; k++)
        EW_EXPECT(classes[k] >= 8 && classes[k] <= 36); /* 20 expected per class */
    for (int64_t i = 0; i < 7; i++)
        EW_EXPECT_INT(ew_subsample_index(i, 7, 7), i);
}

/* In a forked process the workers do not exist: an error says so, and closing does not wait for
 * them. */
static void after_fork(void)
{
    struct ew_dataset *d = NULL;
    struct ew_loader *l = NULL;
    const struct ew_batch *b = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(SPEC, &d)))
        return;
    struct ew_loader_opts o = all_options(d);
    o.workers = 2;
    if (EW_EXPECT_OK(ew_loader_open(&o, &l)) && EW_EXPECT_OK(ew_loader_start(l, 0, 0)) &&
        EW_EXPECT_OK(ew_loader_next(l, &b))) {
        int status = 0;
        const pid_t pid = fork();
        if (pid == 0) {
            alarm(30);
            ew_loader_release(l, b);
            const bool said = ew_loader_next(l, &b) == EW_ERR_ARG &&
                              strstr(ew_error_message(), "before a fork") != NULL &&
                              ew_loader_start(l, 1, 0) == EW_ERR_ARG;
            ew_loader_close(l);
            _exit(said ? 0 : 1);
        }
        EW_EXPECT(waitpid(pid, &status, 0) == pid);
        EW_EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ew_loader_close(l);
    ew_dataset_close(d);
}

EW_TEST_MAIN(EW_TEST(after_fork), EW_TEST(spread_over_all_classes), EW_TEST(same_for_any_workers),
             EW_TEST(resumes_inside_an_epoch), EW_TEST(takes_a_subset))
