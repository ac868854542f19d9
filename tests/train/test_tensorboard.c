/* SPDX-License-Identifier: Apache-2.0 */
/* Event files: standard checksums, and records that can be read back. */
#include "train/tensorboard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ew_test.h"

/* RFC 3720, appendix B.4: 32 bytes of zeros, of ones, and ascending. */
static void checksums(void)
{
    unsigned char b[32];
    memset(b, 0, sizeof(b));
    EW_EXPECT(ew_crc32c(b, sizeof(b)) == 0x8a9136aaU);
    memset(b, 0xff, sizeof(b));
    EW_EXPECT(ew_crc32c(b, sizeof(b)) == 0x62a8ab43U);
    for (int i = 0; i < 32; i++)
        b[i] = (unsigned char)i;
    EW_EXPECT(ew_crc32c(b, sizeof(b)) == 0x46dd794eU);
}

static uint32_t read32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t unmasked(uint32_t m)
{
    const uint32_t r = m - 0xa282ead8U;
    return r >> 17 | r << 15;
}

/* Counts the records of a file, checking each; `last` gets the last one's bytes. */
static int count_records(const unsigned char *p, size_t n, const unsigned char **last,
                         size_t *bytes)
{
    int records = 0;
    for (size_t at = 0; at + 16 <= n;) {
        const size_t size = read32(p + at);
        EW_EXPECT(unmasked(read32(p + at + 8)) == ew_crc32c(p + at, 8));
        EW_EXPECT(at + 16 + size <= n);
        EW_EXPECT(unmasked(read32(p + at + 12 + size)) == ew_crc32c(p + at + 12, size));
        *last = p + at + 12;
        *bytes = size;
        at += 16 + size;
        records++;
    }
    return records;
}

static void records_read_back(void)
{
    struct ew_tensorboard t;
    char *data = NULL;
    size_t size = 0, bytes = 0;
    const unsigned char *last = NULL;
    char *folder = strdup(ew_test_path("board"));
    if (!EW_EXPECT_OK(ew_tensorboard_open(folder, &t)))
        return;
    EW_EXPECT_OK(ew_tensorboard_scalar(&t, "loss/train", 1, 0.5));
    EW_EXPECT_OK(ew_tensorboard_scalar(&t, "not a number", 1, NAN));
    EW_EXPECT_OK(ew_tensorboard_scalar(&t, "accuracy", 300, 0.75));
    char *path = strdup(t.path);
    EW_EXPECT_OK(ew_tensorboard_close(&t));
    if (EW_EXPECT_OK(ew_file_read(path, 1 << 20, &data, &size))) {
        EW_EXPECT_INT(count_records((const unsigned char *)data, size, &last, &bytes), 3);
        /* wall_time, step 300 as a varint, summary { value { "accuracy", 0.75f } } */
        static const unsigned char want[] = {0x10, 0xac, 0x02, 0x2a, 0x11, 0x0a, 0x0f, 0x0a,
                                             0x08, 'a',  'c',  'c',  'u',  'r',  'a',  'c',
                                             'y',  0x15, 0,    0,    0x40, 0x3f};
        EW_EXPECT_INT((int64_t)bytes, (int64_t)(9 + sizeof(want)));
        EW_EXPECT(last && last[0] == 0x09 && memcmp(last + 9, want, sizeof(want)) == 0);
    }
    free(data);
    /* A second writer in the same second gets another file name. */
    EW_EXPECT_OK(ew_tensorboard_open(folder, &t));
    EW_EXPECT(strcmp(t.path, path) != 0);
    EW_EXPECT_OK(ew_tensorboard_close(&t));
    EW_EXPECT_OK(ew_tensorboard_close(&t));
    EW_EXPECT_ERR(ew_tensorboard_open("/nowhere/x", &t), EW_ERR_IO, "/nowhere/x");
    free(path);
    free(folder);
}

EW_TEST_MAIN(EW_TEST(checksums), EW_TEST(records_read_back))
