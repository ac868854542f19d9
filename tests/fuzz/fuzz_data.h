/* SPDX-License-Identifier: Apache-2.0 */
/* For fuzz targets of data sets, which are read from files: uses a folder in memory if there is
 * one. */
#ifndef EW_FUZZ_DATA_H
#define EW_FUZZ_DATA_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"
#include "data/staging.h"

#define EW_FUZZ_SAMPLES 32 /* samples read of each split */

static char ew_fuzz_root[64];

static inline void ew_fuzz_remove(void)
{
    ew_staging_remove(ew_fuzz_root);
}

/* A path in the process's folder, which is removed at exit; the last two results are valid. */
static inline const char *ew_fuzz_path(const char *name)
{
    static char paths[2][256];
    static int turn;
    if (!ew_fuzz_root[0]) {
        snprintf(ew_fuzz_root, sizeof(ew_fuzz_root), "%s/ew-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(ew_fuzz_root))
            abort();
        atexit(ew_fuzz_remove);
    }
    turn = !turn;
    snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", ew_fuzz_root, name);
    return paths[turn];
}

static inline void ew_fuzz_file(const char *name, const void *data, size_t size)
{
    char dir[256];
    const char *path = ew_fuzz_path(name);
    snprintf(dir, sizeof(dir), "%s", path);
    *strrchr(dir, '/') = '\0';
    mkdir(dir, 0777);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
}

/* Opens and reads a data set; errors are fine, crashes are not. */
static inline void ew_fuzz_read(const char *path)
{
    struct ew_dataset *d = NULL;
    if (ew_dataset_open(path, &d) != EW_OK)
        return;
    struct ew_sample s = {0};
    uint64_t sum = 0;
    for (int split = 0; split < EW_SPLIT_COUNT; split++)
        for (int64_t i = 0; i < ew_dataset_info(d)->count[split] && i < EW_FUZZ_SAMPLES; i++) {
            if (ew_dataset_read(d, (enum ew_split)split, i, &s) != EW_OK)
                continue;
            if (s.label >= ew_dataset_info(d)->classes)
                abort();
            for (int64_t k = 0; k < s.h * s.w; k++)
                sum += s.pixels[k / s.w * s.sy + k % s.w * s.sx + (s.c - 1) * s.sc];
        }
    for (int64_t k = 0; k < ew_dataset_info(d)->classes && k < EW_FUZZ_SAMPLES; k++)
        sum += strlen(ew_dataset_class(d, k));
    if (sum == UINT64_MAX)
        abort(); /* not reached; keeps the compiler from removing the reads */
    ew_sample_fini(&s);
    ew_dataset_close(d);
}

#endif
