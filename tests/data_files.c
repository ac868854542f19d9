/* SPDX-License-Identifier: Apache-2.0 */
/* Small data sets for tests. */
#include "data_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/image_file.h"
#include "ew_test.h"

static struct ew_arena names; /* holds the paths until the program ends */

static char *join(const char *dir, const char *name)
{
    char *path = ew_arena_printf(&names, "%s/%s", dir, name);
    if (!path)
        abort();
    return path;
}

uint8_t ew_data_files_pixel(int64_t i, int64_t k)
{
    return (uint8_t)(i * 37 + k * 11 + k / 50);
}

const char *ew_data_files_dir(const char *name)
{
    char *dir = join(ew_test_dir(), name);
    mkdir(dir, 0777);
    return dir;
}

static void write_bytes(const char *dir, const char *name, const void *bytes, size_t size)
{
    EW_EXPECT_OK(ew_file_write(join(dir, name), bytes, size));
}

static void write_idx(const char *dir, const char *prefix, int n)
{
    uint8_t images[16 + 64 * 20] = {0, 0, 8, 3, 0, 0, 0, (uint8_t)n, 0, 0, 0, 5, 0, 0, 0, 4};
    uint8_t labels[8 + 64] = {0, 0, 8, 1, 0, 0, 0, (uint8_t)n};
    for (int i = 0; i < n; i++) {
        labels[8 + i] = (uint8_t)(i % 3);
        for (int k = 0; k < 20; k++)
            images[16 + i * 20 + k] = ew_data_files_pixel(i, k);
    }
    char name[64];
    snprintf(name, sizeof(name), "%s-images-idx3-ubyte", prefix);
    write_bytes(dir, name, images, 16 + (size_t)n * 20);
    snprintf(name, sizeof(name), "%s-labels-idx1-ubyte", prefix);
    write_bytes(dir, name, labels, 8 + (size_t)n);
}

const char *ew_data_files_idx(const char *name, int train, int test)
{
    const char *dir = ew_data_files_dir(name);
    write_idx(dir, "train", train);
    write_idx(dir, "t10k", test);
    return dir;
}

static void write_cifar(const char *dir, const char *name, int n, bool hundred)
{
    static uint8_t bytes[64 * 3074];
    uint8_t *to = bytes;
    for (int i = 0; i < n; i++) {
        if (hundred)
            *to++ = 200; /* the coarse label, which is ignored */
        *to++ = (uint8_t)(i % 10);
        for (int k = 0; k < 3072; k++)
            *to++ = ew_data_files_pixel(i, k);
    }
    write_bytes(dir, name, bytes, (size_t)(to - bytes));
}

const char *ew_data_files_cifar(const char *name, int train, int test, bool hundred)
{
    const char *dir = ew_data_files_dir(name);
    write_cifar(dir, hundred ? "train.bin" : "data_batch_1.bin", train, hundred);
    if (!hundred)
        write_cifar(dir, "data_batch_2.bin", train, false);
    write_cifar(dir, hundred ? "test.bin" : "test_batch.bin", test, hundred);
    return dir;
}

const char *ew_data_files_stl10(const char *name, int n)
{
    static const char *const images[] = {"train_X.bin", "test_X.bin", "unlabeled_X.bin"};
    static const char *const labels[] = {"train_y.bin", "test_y.bin"};
    const char *dir = ew_data_files_dir(name);
    const size_t size = 3 * 96 * 96;
    uint8_t *bytes = malloc((size_t)n * size), y[64];
    for (int i = 0; i < n; i++) {
        y[i] = (uint8_t)(1 + i % 10);
        for (size_t k = 0; k < size; k++)
            bytes[(size_t)i * size + k] = ew_data_files_pixel(i, (int64_t)k);
    }
    for (int f = 0; f < 3; f++)
        write_bytes(dir, images[f], bytes, (size_t)n * size);
    for (int f = 0; f < 2; f++)
        write_bytes(dir, labels[f], y, (size_t)n);
    free(bytes);
    return dir;
}

/* Creates all parent folders of the path. */
static void make_dirs(char *path)
{
    for (char *p = path + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0777);
        *p = '/';
    }
}

const char *ew_data_files_folder(const char *name, const char *paths)
{
    const char *dir = ew_data_files_dir(name);
    char *copy = ew_arena_strdup(&names, paths), *save = NULL;
    int64_t i = 0;
    for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save), i++) {
        char *path = join(dir, p);
        make_dirs(path);
        uint8_t pixels[6 * 8 * 3];
        for (int64_t k = 0; k < (int64_t)sizeof(pixels); k++)
            pixels[k] = ew_data_files_pixel(i, k);
        if (!strstr(p, ".png") && !strstr(p, ".PNG"))
            EW_EXPECT_OK(ew_file_write(path, p, strlen(p)));
        else if (ew_image_write_png(path, pixels, (const int64_t[3]){6, 8, 3}) != EW_OK)
            return NULL;
    }
    return dir;
}

void ew_data_files_text(const char *dir, const char *name, const char *text)
{
    write_bytes(dir, name, text, strlen(text));
}

void ew_data_files_poke(const char *dir, const char *name, int64_t at, uint8_t value)
{
    const int fd = open(join(dir, name), O_WRONLY);
    EW_EXPECT(fd >= 0 && pwrite(fd, &value, 1, (off_t)at) == 1);
    close(fd);
}
