/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run:
 *
 *   options.ini     every option as it was resolved
 *   machine.json    where it ran
 *   epochs.csv, epochs.jsonl     a row per epoch
 *   batches.csv, batches.jsonl   a row per batch
 *   last.ckpt       to go on from; best.ckpt: the best epoch by validation F1
 *   result.json     once it is over
 *
 * What cannot be written before training fails; after that a full disk is said once and survived:
 * rows and checkpoints are tried again, and the last good checkpoint stays. */
#ifndef EW_TRAIN_RUNDIR_H
#define EW_TRAIN_RUNDIR_H

#include <stdio.h>

#include "format/checkpoint.h"
#include "record/record.h"

#define EW_RUNDIR_PATH 4096

/* A file of rows; what is beyond `good` may be half a row. */
struct ew_rowfile {
    FILE *f;      /* NULL: none */
    FILE *rows;   /* in memory, on their way to f */
    char *text;   /* of `rows` */
    size_t bytes; /* of it */
    char path[EW_RUNDIR_PATH];
    int64_t good; /* bytes that are whole rows on disk */
    int64_t lost; /* rows that were not written */
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

/* Makes the folder where it is not there and opens its files, cut to the sizes given (0: new).
 * Fails where it cannot be written to or has less than `need` bytes left.  `path` NULL: no folder,
 * and everything below does nothing. */
ew_err ew_rundir_open(const char *path, int64_t need, const int64_t bytes[EW_ROWS_COUNT],
                      struct ew_rundir *out);
void ew_rundir_close(struct ew_rundir *r);

/* A whole file of the folder. */
ew_err ew_rundir_text(const struct ew_rundir *r, const char *name, const char *text);
/* "FOLDER/name" in buf. */
const char *ew_rundir_file(const struct ew_rundir *r, const char *name, char buf[EW_RUNDIR_PATH]);

/* Adds a row.  Never fails: what is lost is counted and said once. */
void ew_rundir_epoch(struct ew_rundir *r, const struct ew_epoch_row *row);
void ew_rundir_batch(struct ew_rundir *r, const struct ew_batch_row *row);
/* Brings rows to disk, so that `good` counts them. */
void ew_rundir_flush(struct ew_rundir *r);

/* Makes `name` another name of the checkpoint `of`; false: it is not. */
bool ew_rundir_same(const struct ew_rundir *r, const char *of, const char *name);
/* Writes a checkpoint; a failure is said and noted, and the file of before stays. */
void ew_rundir_checkpoint(struct ew_rundir *r, const char *name, const struct ew_checkpoint *c);

#endif
