/* SPDX-License-Identifier: Apache-2.0 */
/* The readers on generated files: round trips, and errors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
#include "data/get.h"
#include "data/image_file.h"
#include "data/packed.h"
#include "data/reader.h"
#include "data_files.h"
#include "ew_test.h"

static uint8_t value(const struct ew_sample *s, int64_t y, int64_t x, int64_t c)
{
    return s->pixels[y * s->sy + x * s->sx + c * s->sc];
}

static void idx(void)
{
    const char *dir = ew_data_files_idx("mnist", 6, 3);
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    const struct ew_dataset_info *i = ew_dataset_info(d);
    EW_EXPECT_STR(i->name, "mnist");
    EW_EXPECT_STR(i->format, "idx");
    EW_EXPECT_INT(i->count[EW_SPLIT_TRAIN], 6);
    EW_EXPECT_INT(i->count[EW_SPLIT_TEST], 3);
    EW_EXPECT_INT(i->classes, 3);
    EW_EXPECT_INT(i->h, 5);
    EW_EXPECT_INT(i->w, 4);
    EW_EXPECT_INT(i->c, 1);
    EW_EXPECT_STR(ew_dataset_class(d, 2), "2");
    struct ew_sample s = {0};
    if (EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TEST, 1, &s))) {
        EW_EXPECT_INT(s.label, 1);
        EW_EXPECT_INT(value(&s, 2, 3, 0), ew_data_files_pixel(1, 2 * 4 + 3));
        EW_EXPECT_INT(s.bytes_read, 20);
        EW_EXPECT_INT(s.position, 16 + 20);
    }
    EW_EXPECT_ERR(ew_dataset_read(d, EW_SPLIT_TEST, 3, &s), EW_ERR_ARG, "no sample 3");
    EW_EXPECT_ERR(ew_dataset_read(d, EW_SPLIT_UNLABELLED, 0, &s), EW_ERR_ARG, "no sample");
    ew_sample_fini(&s);
    ew_dataset_close(d);
}

/* The same file compressed by gzip gives the same samples. */
static void idx_gzip(void)
{
    const char *dir = ew_data_files_idx("zipped", 6, 3);
    char command[512];
    snprintf(command, sizeof(command), "gzip -q %s/train-images-idx3-ubyte", dir);
    if (system(command) != 0)
        EW_SKIP("there is no gzip program");
    struct ew_dataset *d = NULL;
    const ew_err err = ew_dataset_open(dir, &d);
    if (err == EW_ERR_UNSUPPORTED)
        EW_SKIP("a build without zlib");
    if (!EW_EXPECT_OK(err))
        return;
    struct ew_sample s = {0};
    if (EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 4, &s))) {
        EW_EXPECT_INT(value(&s, 4, 0, 0), ew_data_files_pixel(4, 16));
        EW_EXPECT_INT(s.bytes_read, 0);
    }
    ew_sample_fini(&s);
    ew_dataset_close(d);
    char path[512];
    snprintf(path, sizeof(path), "%s/train-images-idx3-ubyte.gz", dir);
    EW_EXPECT_INT(truncate(path, 60), 0);
    EW_EXPECT_ERR(ew_dataset_open(dir, &d), EW_ERR_FORMAT, "gzip data ends early");
}

static void idx_refused(void)
{
    struct ew_dataset *d = NULL;
    char path[512];
    const char *dir = ew_data_files_idx("cut", 6, 3);
    snprintf(path, sizeof(path), "%s/train-images-idx3-ubyte", dir);
    EW_EXPECT_INT(truncate(path, 100), 0);
    EW_EXPECT_ERR(ew_dataset_open(dir, &d), EW_ERR_FORMAT, "tells of 120 bytes, but 84 follow");
    snprintf(path, sizeof(path), "%s/train-images-idx3-ubyte", dir);
    EW_EXPECT_OK(ew_file_write(path, "\x89PNG\r\n\x1a\n.......", 15));
    EW_EXPECT_ERR(ew_dataset_open(dir, &d), EW_ERR_FORMAT, "begins with 89504e47");
    dir = ew_data_files_idx("no-labels", 6, 3);
    snprintf(path, sizeof(path), "%s/t10k-labels-idx1-ubyte", dir);
    EW_EXPECT_INT(unlink(path), 0);
    EW_EXPECT_ERR(ew_dataset_open(dir, &d), EW_ERR_NOT_FOUND, "t10k-labels");
    EW_EXPECT_ERR(ew_dataset_open("/nowhere/at-all", &d), EW_ERR_NOT_FOUND, "/nowhere/at-all");
    EW_EXPECT_ERR(ew_dataset_open("no-such-set", &d), EW_ERR_NOT_FOUND, "no such data set here or");
}

static void cifar(void)
{
    for (int hundred = 0; hundred < 2; hundred++) {
        const char *dir = ew_data_files_cifar(hundred ? "c100" : "c10", 5, 2, hundred);
        struct ew_dataset *d = NULL;
        if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
            return;
        const struct ew_dataset_info *i = ew_dataset_info(d);
        EW_EXPECT_INT(i->classes, hundred ? 100 : 10);
        EW_EXPECT_INT(i->count[EW_SPLIT_TRAIN], hundred ? 5 : 10); /* two files of 5 */
        EW_EXPECT_INT(i->count[EW_SPLIT_TEST], 2);
        if (!hundred)
            EW_EXPECT_STR(ew_dataset_class(d, 6), "frog");
        struct ew_sample s = {0};
        if (EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, hundred ? 3 : 8, &s))) {
            EW_EXPECT_INT(s.label, 3);
            EW_EXPECT_INT(value(&s, 7, 9, 2), ew_data_files_pixel(3, 2 * 1024 + 7 * 32 + 9));
        }
        ew_sample_fini(&s);
        ew_dataset_close(d);
    }
    char path[512];
    const char *dir = ew_data_files_cifar("c-cut", 5, 2, false);
    struct ew_dataset *d = NULL;
    snprintf(path, sizeof(path), "%s/data_batch_2.bin", dir);
    EW_EXPECT_INT(truncate(path, 5000), 0);
    EW_EXPECT_ERR(ew_dataset_open(dir, &d), EW_ERR_FORMAT, "5000 bytes are not whole samples");
}

static void cifar_bad_label(void)
{
    const char *dir = ew_data_files_cifar("c-label", 5, 2, false);
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    ew_data_files_poke(dir, "data_batch_1.bin", 2 * 3073, 77);
    struct ew_sample s = {0};
    EW_EXPECT_ERR(ew_dataset_read(d, EW_SPLIT_TRAIN, 2, &s), EW_ERR_FORMAT,
                  "c-label: train sample 2: label 77 is not one of 10 classes");
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 3, &s));
    char path[512];
    snprintf(path, sizeof(path), "%s/data_batch_1.bin", dir);
    EW_EXPECT_INT(truncate(path, 10000), 0);
    EW_EXPECT_ERR(ew_dataset_read(d, EW_SPLIT_TRAIN, 4, &s), EW_ERR_IO, "ends at byte 12292");
    ew_sample_fini(&s);
    ew_dataset_close(d);
}

static void stl10(void)
{
    const char *dir = ew_data_files_stl10("stl", 2);
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    EW_EXPECT_INT(ew_dataset_info(d)->count[EW_SPLIT_UNLABELLED], 2);
    struct ew_sample s = {0};
    if (EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TEST, 1, &s))) {
        EW_EXPECT_INT(s.label, 1); /* 2 in the file */
        EW_EXPECT_INT(value(&s, 5, 60, 1), ew_data_files_pixel(1, 9216 + 60 * 96 + 5));
    }
    if (EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_UNLABELLED, 0, &s)))
        EW_EXPECT_INT(s.label, -1);
    ew_sample_fini(&s);
    ew_dataset_close(d);
}

/* ---- Folders --------------------------------------------------------------------------------- */

/* A folder with nothing but a test split was one of training images, all of a class "val". */
static void folder_to_test(void)
{
    struct ew_dataset *d;
    const char *dir = ew_data_files_folder("held", "val/cat/a.png val/dog/b.png val/dog/c.png");
    if (!dir)
        EW_SKIP("a build without PNG");
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    const struct ew_dataset_info *i = ew_dataset_info(d);
    EW_EXPECT_INT(i->count[EW_SPLIT_TRAIN], 0);
    EW_EXPECT_INT(i->count[EW_SPLIT_TEST], 3);
    EW_EXPECT_INT(i->classes, 2);
    EW_EXPECT_STR(ew_dataset_class(d, 1), "dog");
    ew_dataset_close(d);
    dir = ew_data_files_folder("both", "val/a.png other/b.png"); /* classes with odd names */
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    EW_EXPECT_INT(ew_dataset_info(d)->count[EW_SPLIT_TRAIN], 2);
    ew_dataset_close(d);
}

static void folder(void)
{
    const char *dir =
        ew_data_files_folder("pets", "train/cat/a.png train/cat/b.PNG train/dog/c.png "
                                     "test/dog/d.png train/dog/notes.txt");
    if (!dir)
        EW_SKIP("a build without PNG");
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    const struct ew_dataset_info *i = ew_dataset_info(d);
    EW_EXPECT_STR(i->format, "folder");
    EW_EXPECT_INT(i->count[EW_SPLIT_TRAIN], 3);
    EW_EXPECT_INT(i->count[EW_SPLIT_TEST], 1);
    EW_EXPECT_INT(i->classes, 2);
    EW_EXPECT_STR(ew_dataset_class(d, 1), "dog");
    EW_EXPECT_INT(i->h, 6);
    EW_EXPECT_INT(i->w, 8);
    EW_EXPECT_INT(i->c, 3);
    struct ew_sample s = {0};
    if (EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TEST, 0, &s))) {
        EW_EXPECT_INT(s.label, 1);
        EW_EXPECT_INT(s.h, 6);
        EW_EXPECT_INT(value(&s, 1, 2, 0), ew_data_files_pixel(3, (8 + 2) * 3));
    }
    char path[512];
    snprintf(path, sizeof(path), "%s/train/cat/b.PNG", dir);
    EW_EXPECT_INT(unlink(path), 0);
    EW_EXPECT_ERR(ew_dataset_read(d, EW_SPLIT_TRAIN, 1, &s), EW_ERR_NOT_FOUND, "train/cat/b.PNG");
    EW_EXPECT_OK(ew_file_write(path, "GIF89a", 6));
    EW_EXPECT_ERR(ew_dataset_read(d, EW_SPLIT_TRAIN, 1, &s), EW_ERR_FORMAT, "neither PNG nor JPEG");
    EW_EXPECT_OK(ew_file_write(path, "\x89PNG\r\n\x1a\n....", 12));
    EW_EXPECT(ew_dataset_read(d, EW_SPLIT_TRAIN, 1, &s) != EW_OK);
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 2, &s));
    ew_sample_fini(&s);
    ew_dataset_close(d);
    EW_EXPECT_ERR(ew_dataset_open(ew_data_files_dir("empty"), &d), EW_ERR_FORMAT, "not a data set");
}

static void tiny_imagenet(void)
{
    const char *dir = ew_data_files_folder(
        "tiny", "train/n02/images/n02_0.png train/n01/images/n01_0.png train/n01/images/n01_1.png "
                "val/images/val_0.png val/images/val_1.png");
    if (!dir)
        EW_SKIP("a build without PNG");
    ew_data_files_text(dir, "wnids.txt", "n02\nn01\n");
    ew_data_files_text(dir, "val/val_annotations.txt",
                       "val_0.png\tn01\t0\t0\t8\t6\nval_1.png\tn02\t0\t0\t8\t6\n");
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    EW_EXPECT_INT(ew_dataset_info(d)->count[EW_SPLIT_TRAIN], 3);
    EW_EXPECT_STR(ew_dataset_class(d, 0), "n02");
    struct ew_sample s = {0};
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TEST, 0, &s));
    EW_EXPECT_INT(s.label, 1);
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 0, &s));
    EW_EXPECT_INT(s.label, 0);
    ew_sample_fini(&s);
    ew_dataset_close(d);
    ew_data_files_text(dir, "val/val_annotations.txt", "val_0.png\tn09\t0\n");
    EW_EXPECT_ERR(ew_dataset_open(dir, &d), EW_ERR_FORMAT, "val_annotations.txt:1: 'n09' is none");
}

static void classes_twice(void)
{
    const char *dir = ew_data_files_folder("twice", "train/a/x.png train/b/y.png");
    if (!dir)
        EW_SKIP("a build without PNG");
    struct ew_dataset *d = NULL;
    ew_data_files_text(dir, "classes.txt", "b\na\nb\n");
    EW_EXPECT_ERR(ew_dataset_open(dir, &d), EW_ERR_FORMAT, "has 'b' twice");
}

static void labels_file(void)
{
    const char *dir = ew_data_files_folder("list", "x.png y.png");
    if (!dir)
        EW_SKIP("a build without PNG");
    ew_data_files_text(dir, "labels.txt", "# what\ny.png 4\nx.png 0\n");
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    EW_EXPECT_INT(ew_dataset_info(d)->classes, 5);
    struct ew_sample s = {0};
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 0, &s));
    EW_EXPECT_INT(s.label, 4);
    ew_sample_fini(&s);
    ew_dataset_close(d);
    ew_data_files_text(dir, "labels.txt", "x.png 0\ny.png -3\n");
    EW_EXPECT_ERR(ew_dataset_open(dir, &d), EW_ERR_FORMAT,
                  "labels.txt:2: '-3' is not a class number");
    ew_data_files_text(dir, "labels.txt", "../x.png 0\n");
    EW_EXPECT_ERR(ew_dataset_open(dir, &d), EW_ERR_FORMAT, "not below this folder");
}

/* Names with spaces, commas and dots, as spreadsheets write lists: a mark, CRLF, blank lines. */
static void labels_with_spaces(void)
{
    static const char *const names[] = {"x.png", "a b.png", "c,d.png", "e..png"};
    const char *dir = ew_data_files_folder("spaced", "x.png");
    char path[EW_DATA_PATH], *bytes;
    size_t size;
    if (!dir)
        EW_SKIP("a build without PNG");
    if (!EW_EXPECT(ew_data_join(path, dir, names[0])) ||
        !EW_EXPECT_OK(ew_file_read(path, 1 << 20, &bytes, &size)))
        return;
    for (int i = 1; i < 4; i++)
        if (EW_EXPECT(ew_data_join(path, dir, names[i])))
            EW_EXPECT_OK(ew_file_write(path, bytes, size));
    free(bytes);
    ew_data_files_text(dir, "labels.txt",
                       "\xef\xbb\xbfx.png,0\r\n\r\na b.png 2\r\nc,d.png, 1\t\n  e..png   3");
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    static const int64_t labels[] = {0, 2, 1, 3};
    EW_EXPECT_INT(ew_dataset_info(d)->count[EW_SPLIT_TRAIN], 4);
    for (int i = 0; i < 4; i++) {
        struct ew_sample s = {0};
        if (EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, i, &s)))
            EW_EXPECT_INT(s.label, labels[i]);
        ew_sample_fini(&s);
    }
    ew_dataset_close(d);
    ew_data_files_text(dir, "labels.txt", "a/../../x.png 0\n");
    EW_EXPECT_ERR(ew_dataset_open(dir, &d), EW_ERR_FORMAT, "not below this folder");
    ew_data_files_text(dir, "labels.txt", "x.png\n");
    EW_EXPECT_ERR(ew_dataset_open(dir, &d), EW_ERR_FORMAT, "a file without a class");
}

/* ---- Packed ---------------------------------------------------------------------------------- */

/* All samples of both are equal. */
static void same_samples(const struct ew_dataset *a, const struct ew_dataset *b)
{
    struct ew_sample s = {0}, t = {0};
    for (int split = 0; split < EW_SPLIT_COUNT; split++) {
        const int64_t n = ew_dataset_info(a)->count[split];
        EW_EXPECT_INT(ew_dataset_info(b)->count[split], n);
        for (int64_t i = 0; i < n; i++) {
            if (!EW_EXPECT_OK(ew_dataset_read(a, (enum ew_split)split, i, &s)) ||
                !EW_EXPECT_OK(ew_dataset_read(b, (enum ew_split)split, i, &t)))
                break;
            EW_EXPECT_INT(s.label, t.label);
            bool same = s.h == t.h && s.w == t.w && s.c == t.c;
            for (int64_t k = 0; same && k < s.h * s.w * s.c; k++)
                same = value(&s, k / s.c / s.w, k / s.c % s.w, k % s.c) ==
                       value(&t, k / s.c / s.w, k / s.c % s.w, k % s.c);
            EW_EXPECT(same);
        }
    }
    ew_sample_fini(&s);
    ew_sample_fini(&t);
}

static void pack_and_read(const char *what)
{
    struct ew_dataset *d = NULL, *p = NULL;
    struct ew_pack_result r;
    const char *path = ew_test_path("p.ewpack");
    if (!EW_EXPECT_OK(ew_dataset_open(what, &d)))
        return;
    if (EW_EXPECT_OK(ew_dataset_pack(d, path, &(struct ew_pack_opts){0}, &r)) &&
        EW_EXPECT_OK(ew_dataset_open(path, &p))) {
        EW_EXPECT_STR(ew_dataset_info(p)->format, "packed");
        EW_EXPECT_STR(ew_dataset_info(p)->name, ew_dataset_info(d)->name);
        EW_EXPECT_STR(ew_dataset_class(p, 1), ew_dataset_class(d, 1));
        same_samples(d, p);
        ew_dataset_close(p);
    }
    ew_dataset_close(d);
}

static void packed(void)
{
    pack_and_read(ew_data_files_idx("pi", 6, 3));
    pack_and_read(ew_data_files_cifar("pc", 5, 2, false));
    pack_and_read(ew_data_files_stl10("ps", 2));
    pack_and_read("synthetic:train=7,test=3,kind=shapes");
    const char *dir = ew_data_files_folder("pf", "train/a/1.png train/b/2.png");
    if (dir)
        pack_and_read(dir);
}

static void packed_damage(void)
{
    struct ew_dataset *d = NULL;
    struct ew_pack_result r;
    const char *path = ew_test_path("damage.ewpack");
    EW_EXPECT_OK(ew_dataset_open("synthetic:train=7,test=3", &d));
    EW_EXPECT_OK(ew_dataset_pack(d, path, &(struct ew_pack_opts){0}, &r));
    ew_dataset_close(d);
    char *bytes = NULL;
    size_t size = 0;
    if (!EW_EXPECT_OK(ew_file_read(path, 1 << 20, &bytes, &size)))
        return;
    EW_EXPECT_INT(size, r.bytes);
    struct ew_sample s = {0};
    bytes[128 + 784 * 2 + 5] ^= 1; /* in the third sample */
    EW_EXPECT_OK(ew_file_write(path, bytes, size));
    EW_EXPECT_OK(ew_dataset_open(path, &d));
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 1, &s));
    EW_EXPECT_ERR(ew_dataset_read(d, EW_SPLIT_TRAIN, 2, &s), EW_ERR_FORMAT,
                  "train sample 2: is damaged");
    ew_dataset_close(d);
    for (size_t at = 0; at < size; at += at < 128 || at > 128 + 7840 ? 1 : 500) {
        bytes[at] ^= 0x40; /* header, index and names: opening fails */
        EW_EXPECT_OK(ew_file_write(path, bytes, size));
        if (at >= 96 && at < 120) { /* unused, but covered by the checksum */
            EW_EXPECT(ew_dataset_open(path, &d) != EW_OK);
        } else if (at < 128 || at > 128 + 7840) {
            EW_EXPECT(ew_dataset_open(path, &d) != EW_OK);
        }
        bytes[at] ^= 0x40;
    }
    EW_EXPECT_OK(ew_file_write(path, bytes, size - 1));
    EW_EXPECT_ERR(ew_dataset_open(path, &d), EW_ERR_FORMAT, "it should be");
    bytes[8] = 9;
    EW_EXPECT_OK(ew_file_write(path, bytes, size));
    EW_EXPECT_ERR(ew_dataset_open(path, &d), EW_ERR_UNSUPPORTED, "version 9");
    ew_sample_fini(&s);
    free(bytes);
}

/* Resizing while packing; bad samples skipped or fatal. */
static void pack_options(void)
{
    const char *dir = ew_data_files_folder("po", "train/a/1.png train/b/2.png train/b/3.png");
    if (!dir)
        EW_SKIP("a build without PNG");
    char path[512];
    snprintf(path, sizeof(path), "%s/train/b/2.png", dir);
    EW_EXPECT_OK(ew_file_write(path, "no image", 8));
    struct ew_dataset *d = NULL, *p = NULL;
    struct ew_pack_result r;
    const char *to = ew_test_path("po.ewpack");
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    struct ew_pack_opts o = {.h = 4, .w = 3};
    EW_EXPECT_ERR(ew_dataset_pack(d, to, &o, &r), EW_ERR_FORMAT, "train/b/2.png");
    EW_EXPECT(access(to, F_OK) != 0);
    o.skip_bad = true;
    if (EW_EXPECT_OK(ew_dataset_pack(d, to, &o, &r)) && EW_EXPECT_OK(ew_dataset_open(to, &p))) {
        EW_EXPECT_INT(r.bad, 1);
        EW_EXPECT_INT(ew_dataset_info(p)->count[EW_SPLIT_TRAIN], 2);
        struct ew_sample s = {0};
        EW_EXPECT_OK(ew_dataset_read(p, EW_SPLIT_TRAIN, 1, &s));
        EW_EXPECT_INT(s.h, 4);
        EW_EXPECT_INT(s.w, 3);
        EW_EXPECT_INT(s.label, 1);
        ew_sample_fini(&s);
        ew_dataset_close(p);
    }
    ew_dataset_close(d);
}

/* ---- Synthetic data and facts ---- */

static void synthetic(void)
{
    struct ew_dataset *d = NULL;
    EW_EXPECT_ERR(ew_dataset_open("synthetic:size=9999", &d), EW_ERR_USAGE, "size");
    EW_EXPECT_ERR(ew_dataset_open("synthetic:colour=red", &d), EW_ERR_ARG, "colour");
    EW_EXPECT_ERR(ew_dataset_open("synthetic:classes=11", &d), EW_ERR_USAGE, "10 digits");
    EW_EXPECT_ERR(ew_dataset_open("synthetic:kind=motion,classes=9", &d), EW_ERR_USAGE,
                  "8 motions");
    if (EW_EXPECT_OK(ew_dataset_open("synthetic:kind=motion,frames=4,size=20", &d))) {
        struct ew_sample s = {0};
        EW_EXPECT_INT(ew_dataset_info(d)->frames, 4);
        EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 1, &s));
        EW_EXPECT(s.h == 80 && s.w == 20 && s.c == 3);
        EW_EXPECT_STR(ew_dataset_class(d, s.label), "left");
        EW_EXPECT(memcmp(s.pixels, s.pixels + 3 * 20 * 20 * 3, 20 * 20 * 3) != 0);
        ew_sample_fini(&s);
        ew_dataset_close(d);
    }
    if (!EW_EXPECT_OK(ew_dataset_open("synthetic:kind=shapes,classes=20,size=24", &d)))
        return;
    EW_EXPECT_INT(ew_dataset_info(d)->classes, 20);
    EW_EXPECT_STR(ew_dataset_class(d, 12), "square-1");
    struct ew_sample s = {0}, t = {0};
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 12, &s));
    EW_EXPECT_INT(s.label, 12);
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TRAIN, 12, &t));
    EW_EXPECT(memcmp(s.pixels, t.pixels, 24 * 24 * 3) == 0);
    EW_EXPECT_OK(ew_dataset_read(d, EW_SPLIT_TEST, 12, &t));
    EW_EXPECT(memcmp(s.pixels, t.pixels, 24 * 24 * 3) != 0);
    ew_sample_fini(&s);
    ew_sample_fini(&t);
    ew_dataset_close(d);
}

static void mean_and_deviation(void)
{
    const char *dir = ew_data_files_idx("stats", 6, 3);
    struct ew_dataset *d = NULL;
    if (!EW_EXPECT_OK(ew_dataset_open(dir, &d)))
        return;
    double sum = 0, square = 0;
    for (int i = 0; i < 120; i++) {
        const double v = ew_data_files_pixel(i / 20, i % 20) / 255.0;
        sum += v;
        square += v * v;
    }
    struct ew_dataset_stats s;
    EW_EXPECT_OK(ew_dataset_measure(d, EW_SPLIT_TRAIN, 0, &s));
    EW_EXPECT_INT(s.samples, 6);
    EW_EXPECT_NEAR(s.mean[0], sum / 120, 1e-12);
    EW_EXPECT_NEAR(s.std[0], sqrt(square / 120 - sum * sum / 120 / 120), 1e-9);
    EW_EXPECT_OK(ew_dataset_measure(d, EW_SPLIT_TRAIN, 2, &s));
    EW_EXPECT_INT(s.samples, 2);
    ew_dataset_close(d);
}

/* The facts of a set that is not installed are those that `data get` would give. */
static void outlines(void)
{
    for (int i = 0; i < ew_known_count(); i++) {
        const struct ew_known_set *k = ew_known_at(i);
        struct ew_dataset *d = NULL;
        struct ew_sample s = {0};
        if (!EW_EXPECT_OK(ew_dataset_outline(k->name, &d)))
            continue;
        EW_EXPECT_STR(ew_dataset_info(d)->name, k->name);
        EW_EXPECT_INT(ew_dataset_info(d)->classes, k->classes);
        EW_EXPECT_INT(ew_dataset_info(d)->count[EW_SPLIT_TRAIN], k->train);
        EW_EXPECT_INT(ew_dataset_info(d)->count[EW_SPLIT_TEST], k->test);
        EW_EXPECT_STR(ew_dataset_class(d, k->classes - 1), k->classes == 100 ? "99" : "9");
        EW_EXPECT_ERR(ew_dataset_read(d, EW_SPLIT_TRAIN, 0, &s), EW_ERR_NOT_FOUND, "not here");
        ew_sample_fini(&s);
        ew_dataset_close(d);
    }
    struct ew_dataset *d = NULL;
    EW_EXPECT_ERR(ew_dataset_outline("photos", &d), EW_ERR_NOT_FOUND, "photos");
}

EW_TEST_MAIN(EW_TEST(outlines), EW_TEST(idx), EW_TEST(idx_gzip), EW_TEST(idx_refused),
             EW_TEST(cifar), EW_TEST(cifar_bad_label), EW_TEST(stl10), EW_TEST(folder),
             EW_TEST(folder_to_test), EW_TEST(tiny_imagenet), EW_TEST(classes_twice),
             EW_TEST(labels_file), EW_TEST(labels_with_spaces), EW_TEST(packed),
             EW_TEST(packed_damage), EW_TEST(pack_options), EW_TEST(synthetic),
             EW_TEST(mean_and_deviation))
