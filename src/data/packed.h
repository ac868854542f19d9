/* SPDX-License-Identifier: Apache-2.0 */
/* The packed file: all samples of a data set one after the other, then their index.  Little-endian.
 *
 *   header, 128 bytes
 *     0  magic "EWPACK\r\n"    8  version, 1; 2 of clips     12  classes     16  channels   20
 * height   24  width   28  frames of clips, which lie one below the other; 0: images   32 count[3]:
 * train, test, unlabelled 56  offset of the index  64 offset of the names            72  bytes of
 * the names 80  bytes of the file    88  sum of index and names         96  0 ...     120  sum of
 * bytes 0 to 119 samples: raw pixels [h, w, c], or a PNG or JPEG file as it was index, 32 bytes per
 * sample, train first 0  offset   8  bytes   12 label (-1: none)   16  height   18  width   20
 * channels   21  kind 22  0       24  sum of the sample's bytes names: the data set's, then the
 * classes', each ended by a 0
 *
 * Sums are those of base/hash.h.  Height and width are 0 where they differ, in an encoded sample
 * too. */
#ifndef EW_DATA_PACKED_H
#define EW_DATA_PACKED_H

#include "data/data.h"

#define EW_PACK_MAGIC   "EWPACK\r\n"
#define EW_PACK_VERSION 1
#define EW_PACK_CLIPS   2 /* version of files with clips, which older programs refuse */
#define EW_PACK_HEADER  128
#define EW_PACK_ENTRY   32

enum ew_pack_kind { EW_PACK_RAW, EW_PACK_ENCODED };

/* Numbers in files. */
static inline void ew_put_le(uint8_t *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(v >> (8 * i));
}

static inline uint64_t ew_get_le(const uint8_t *from, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)from[i] << (8 * i);
    return v;
}

struct ew_pack_opts {
    bool raw;                     /* store decoded pixels instead of the original files */
    int64_t h, w;                 /* resize (implies raw); 0: original size */
    bool skip_bad;                /* skip bad samples instead of failing */
    struct ew_progress *progress; /* NULL: none */
};

struct ew_pack_result {
    int64_t samples, bad, bytes;
};

/* Writes the data set as a packed file, atomically. */
ew_err ew_dataset_pack(const struct ew_dataset *d, const char *path, const struct ew_pack_opts *o,
                       struct ew_pack_result *out);

#endif
