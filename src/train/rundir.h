/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run:
 *
 *   options.ini     every option, resolved
 *   machine.json    where it ran
 *   epochs.csv, epochs.jsonl     a row per epoch
 *   batches.csv, batches.jsonl   a row per batch
 *   last.ckpt       to resume from; best.ckpt: the best epoch by validation F1
 *   result.json     when it has ended
 *
 * Before training, a file that cannot be written is an error; after that a full disk is reported
 * once and survived: rows and checkpoints are retried, and the last good checkpoint stays. */
#ifndef EW_TRAIN_RUNDIR_H
#define EW_TRAIN_RUNDIR_H

#include <stdio.h>

#include "format/checkpoint.h"
#include "record/record.h"

#define EW_RUNDIR_PATH 4096

/* A file of rows; beyond `good` bytes there may be half a row. */
struct ew_rowfile {
    FILE *f;      /* NULL: none */
    FILE *rows;   /* memory stream, to be written to f */
    char *text;   /* buffer of `rows` */
    size_t bytes; /* size of `text` */
    char path[EW_RUNDIR_PATH];
    int64_t good; /* bytes of complete rows on disk */
    int64_t lost; /* rows that could not be written */
};

enum ew_row_file {
    EW_ROWS_EPOCHS_CSV,
    EW_ROWS_EPOCHS_JSON,
    EW_ROWS_BATCHES_CSV,
    EW_ROWS_BATCHES_JSON,
    EW_ROWS_COUNT
};

struct ew_rundir {
    char path[EW_RUNDIR_PATH]; /* "": nothing is written */
    struct ew_rowfile rows[EW_ROWS_COUNT];
    bool warned;
    bool checkpoint_failed; /* the last checkpoint could not be written */
};

/* Creates the folder if needed and opens its files, truncated to the given sizes (0: new).  Fails
 * if it is not writable or has less than `need` bytes free.  `path` NULL: no folder, and all calls
 * below do nothing. */
ew_err ew_rundir_open(const char *path, int64_t need, const int64_t bytes[EW_ROWS_COUNT],
                      struct ew_rundir *out);
void ew_rundir_close(struct ew_rundir *r);

/* Writes a text file of the folder. */
ew_err ew_rundir_text(const struct ew_rundir *r, const char *name, const char *text);
/* "FOLDER/name" in buf. */
const char *ew_rundir_file(const struct ew_rundir *r, const char *name, char buf[EW_RUNDIR_PATH]);

/* Adds a row.  Never fails: lost rows are counted, and reported once. */
void ew_rundir_epoch(struct ew_rundir *r, const struct ew_epoch_row *row);
void ew_rundir_batch(struct ew_rundir *r, const struct ew_batch_row *row);
/* Writes buffered rows to disk, updating `good`. */
void ew_rundir_flush(struct ew_rundir *r);

/* Makes `name` a hard link to the checkpoint `of`; false: not possible. */
bool ew_rundir_same(const struct ew_rundir *r, const char *of, const char *name);
/* Writes a checkpoint; a failure is reported and recorded, and the previous file stays. */
void ew_rundir_checkpoint(struct ew_rundir *r, const char *name, const struct ew_checkpoint *c);

#endif
