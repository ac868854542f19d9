/* SPDX-License-Identifier: Apache-2.0 */
/* CIFAR-10 from image sheets: PNG files with one image per row, and labels as lists of numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/image_file.h"
#include "data/reader.h"
#include "data/unpack.h"

#define SHEETS  6
#define IMAGES  10000
#define PIXELS  1024
#define CLASSES 10

/* "[6,9,9,...]": `n` numbers below CLASSES. */
static ew_err read_labels(const char *path, uint8_t *labels, int n)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size;
    EW_TRY(ew_file_read(path, (size_t)4 << 20, &text, &size));
    const char *p = text;
    for (int i = 0; i < n; i++) {
        p += strspn(p, "[, \n\r\t");
        EW_CHECK(*p >= '0' && *p < '0' + CLASSES && !(p[1] >= '0' && p[1] <= '9'), EW_ERR_FORMAT,
                 "%s: entry %d is not a class number", path, i);
        labels[i] = (uint8_t)(*p++ - '0');
    }
    p += strspn(p, " \n\r\t]");
    EW_CHECK(!*p, EW_ERR_FORMAT, "%s: has more than %d labels", path, n);
    return EW_OK;
}

/* Converts interleaved pixels to planes. */
static ew_err write_batch(const char *path, const uint8_t *rgb, const uint8_t *labels)
{
    struct ew_file_out o;
    EW_TRY(ew_file_out_open(path, &o));
    uint8_t record[1 + 3 * PIXELS];
    for (int i = 0; i < IMAGES; i++, rgb += (ptrdiff_t)3 * PIXELS) {
        record[0] = labels[i];
        for (int k = 0; k < PIXELS; k++)
            for (int c = 0; c < 3; c++)
                record[1 + c * PIXELS + k] = rgb[3 * k + c];
        if (fwrite(record, sizeof(record), 1, o.f) != 1)
            break; /* reported by commit */
    }
    return ew_file_out_commit(&o);
}

static ew_err convert(const char *from, const char *to, const char *name, const uint8_t *labels)
{
    char png[EW_DATA_PATH], bin[EW_DATA_PATH], file[64];
    snprintf(file, sizeof(file), "%s.png", name);
    bool fits = ew_data_join(png, from, file);
    snprintf(file, sizeof(file), "%s.bin", name);
    fits = fits && ew_data_join(bin, to, file);
    EW_CHECK(fits, EW_ERR_LIMIT, "%s: too long a path", from);
    struct ew_arena a;
    ew_arena_init(&a);
    struct ew_tensor t = {0};
    ew_err err = ew_image_read(png, 3, &a, &t);
    if (err == EW_OK && (t.shape.dim[0] != IMAGES || t.shape.dim[1] != PIXELS))
        err = ew_fail(EW_ERR_FORMAT, "%s: %lldx%lld pixels, a sheet has %dx%d", png,
                      (long long)t.shape.dim[0], (long long)t.shape.dim[1], IMAGES, PIXELS);
    if (err == EW_OK)
        err = write_batch(bin, t.data, labels);
    ew_arena_fini(&a);
    return err;
}

ew_err ew_unpack_sheets(const char *from, const char *to)
{
    static const char *const names[SHEETS] = {"data_batch_1", "data_batch_2", "data_batch_3",
                                              "data_batch_4", "data_batch_5", "test_batch"};
    char path[EW_DATA_PATH];
    EW_CLEANUP(ew_free_ptr) uint8_t *labels = malloc((size_t)SHEETS * IMAGES);
    EW_CHECK(labels, EW_ERR_MEMORY, "no memory for labels");
    EW_CHECK(ew_data_join(path, from, "train_lables.json"), EW_ERR_LIMIT, "%s: too long a path",
             from);
    EW_TRY(read_labels(path, labels, (SHEETS - 1) * IMAGES));
    EW_CHECK(ew_data_join(path, from, "test_lables.json"), EW_ERR_LIMIT, "%s: too long a path",
             from);
    EW_TRY(read_labels(path, labels + (SHEETS - 1) * IMAGES, IMAGES));
    for (int i = 0; i < SHEETS; i++)
        EW_TRY(convert(from, to, names[i], labels + i * IMAGES));
    return EW_OK;
}
