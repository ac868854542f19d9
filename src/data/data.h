/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets of labelled images, independent of their layout on disk.  Batches are made by
 * data/loader.h; layouts are read by readers (data/reader.h). */
#ifndef EW_DATA_DATA_H
#define EW_DATA_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum ew_split { EW_SPLIT_TRAIN, EW_SPLIT_TEST, EW_SPLIT_UNLABELLED, EW_SPLIT_COUNT };

const char *ew_split_name(enum ew_split s); /* "train", "test", "unlabelled" */

#define EW_SAMPLE_CHANNELS 4 /* at most */

struct ew_dataset;

struct ew_dataset_info {
    const char *name;   /* "mnist", or the last part of the path */
    const char *path;   /* the folder or file; "": nothing on disk */
    const char *format; /* name of the reader: "idx", "cifar", "folder", "packed", "synthetic" */
    int64_t classes;
    int64_t h, w, c; /* of every sample; h and w are 0 if they differ, c is 1 or 3 */
    int64_t frames;  /* of clips, stacked along h; 0: images */
    int64_t count[EW_SPLIT_COUNT];
};

/* Opens a data set: a folder or file in a known layout, a name under which `data get` stored one,
 * or "synthetic[:key=value,...]".  EW_ERR_NOT_FOUND lists where it was looked for.  Several threads
 * may read it at once. */
ew_err ew_dataset_open(const char *what, struct ew_dataset **out);
void ew_dataset_close(struct ew_dataset *d); /* NULL is fine */

const struct ew_dataset_info *ew_dataset_info(const struct ew_dataset *d);
const char *ew_dataset_class(const struct ew_dataset *d, int64_t k); /* its name, or "7" */

/* A known data set's facts without its samples, for plans and board models where it is not
 * installed.  EW_ERR_NOT_FOUND: unknown name. */
ew_err ew_dataset_outline(const char *name, struct ew_dataset **out);

/* Where `data get` stores: $XDG_CACHE_HOME/edgewise/data or ~/.cache/edgewise/data.  Free with
 * free(). */
ew_err ew_dataset_home(char **out);

/* ---- One sample ------------------------------------------------------------------------------ */

/* A growing, reusable buffer. */
struct ew_bytes {
    uint8_t *at;
    size_t size, room;
    bool borrowed; /* not owned: cannot grow */
};

ew_err ew_bytes_need(struct ew_bytes *b, size_t size); /* sets size; discards contents */

/* A sample with its reusable buffers; initialised as {0}. */
struct ew_sample {
    int64_t label; /* [0, classes); -1 in an unlabelled split */
    /* After decode: pixel (y, x) of channel c is pixels[y * sy + x * sx + c * sc]. */
    int64_t h, w, c, sy, sx, sc;
    const uint8_t *pixels;
    int64_t bytes_read, ops_read; /* I/O of fetch */
    int64_t position; /* offset in the split's file; -1: the sample has a file of its own */
    struct ew_bytes raw, image; /* as stored; decoded */
    bool encoded;               /* raw is a PNG or JPEG file */
    double place; /* position of a clip in its video, for decode: -0.5 the beginning, 0.5 the end */
    const char *file; /* its own file, relative to the data set's folder; NULL: none */
    struct ew_image_decoder *decoder; /* kept between samples */
};

void ew_sample_fini(struct ew_sample *s);

/* Reads the bytes of sample i.  Errors (EW_ERR_IO, EW_ERR_FORMAT, EW_ERR_NOT_FOUND) name the file
 * and the sample, and do not affect other samples. */
ew_err ew_dataset_fetch(const struct ew_dataset *d, enum ew_split split, int64_t i,
                        struct ew_sample *s);

/* Decodes to pixels, which are valid until the sample's next decoding. */
ew_err ew_dataset_decode(const struct ew_dataset *d, struct ew_sample *s);

/* The same for n samples at once, which is faster for small ones; pixels are valid until the next
 * decoding of the first.  Fails if any does: decode them one by one to find out which. */
ew_err ew_dataset_decode_all(const struct ew_dataset *d, struct ew_sample *s, int n);

/* Fetches and decodes. */
ew_err ew_dataset_read(const struct ew_dataset *d, enum ew_split split, int64_t i,
                       struct ew_sample *s);

/* True if a failure to read a sample is its own fault; false for EW_OK and if the machine lacks
 * memory, descriptors or processes, which ends the work whatever is to be done with bad samples. */
bool ew_sample_is_bad(ew_err err);

/* ---- Facts ----------------------------------------------------------------------------------- */

struct ew_dataset_stats {
    double mean[EW_SAMPLE_CHANNELS], std[EW_SAMPLE_CHANNELS]; /* of pixels scaled to [0, 1] */
    int64_t samples;                                          /* samples measured */
    int64_t bad;                                              /* unreadable samples */
};

/* Mean and standard deviation of each channel over at most `limit` evenly spaced samples (0: all).
 * Warns of the first that cannot be read. */
ew_err ew_dataset_measure(const struct ew_dataset *d, enum ew_split split, int64_t limit,
                          struct ew_dataset_stats *out);

#endif
