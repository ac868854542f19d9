/* SPDX-License-Identifier: Apache-2.0 */
/* Records of measurements: plain structs and their field tables.
 *
 * The table is the single description: the store derives its columns from it, CSV and JSON their
 * names, reports their axes.  A new member is a new line in record.c and nothing else.  Begin every
 * row with ew_record_clear, which makes all members absent: what was not measured is empty in CSV,
 * null in JSON and NULL in SQL, never 0.  Text is borrowed.
 *
 *   struct ew_epoch_row row;
 *   ew_record_clear(EW_RECORD_EPOCH, &row);
 *   row.epoch = 3;
 *   row.wall_s = 12.5;
 *   ew_record_csv_row(stdout, EW_RECORD_EPOCH, &row);
 *
 * Seconds and joules are of the interval of the row; wall = compute + stall + overhead, + comm with
 * several ranks. */
#ifndef EW_RECORD_RECORD_H
#define EW_RECORD_RECORD_H

#include <stdint.h>
#include <stdio.h>

#include "base/field.h"
#include "base/json.h"
#include "record/quality.h"

/* The state of a machine that results depend on; its id is the hash of all other members. */
struct ew_machine_row {
    const char *id;
    const char *unit;    /* this device: its given name, or an anonymous hash */
    const char *board;   /* "Jetson AGX Xavier", or the system's own name */
    const char *profile; /* matching board profile */
    const char *cpu, *kernel, *system;
    int64_t cores, cores_online, memory_bytes;
    bool virtual_machine;
    const char *governor;
    double cpu_mhz_min, cpu_mhz_max, gpu_mhz_max, mem_mhz_max;
    const char *power_mode;
    const char *sensors;      /* channels, space-separated */
    const char *power_covers; /* what the board's power total covers */
    const char *isa, *version, *compiler;
};

/* A requested measurement: all options with their values, and their hash. */
struct ew_job_row {
    const char *id;      /* 16 hexadecimal digits */
    const char *command; /* "train", "bench" */
    const char *network, *dataset;
    const char *options; /* JSON object of all options, sorted by name; the id is its hash */
};

/* clang-format off */
#define EW_RUN_STATUS_MAP(X)                                                                       \
    X(RUNNING,     "running")                                                                      \
    X(DONE,        "done")                                                                         \
    X(FAILED,      "failed")      /* `reason` says why */                                          \
    X(SKIPPED,     "skipped")     /* cannot be done on this machine */                             \
    X(INTERRUPTED, "interrupted") /* its process has ended */                                        \
    X(NOISY,       "noisy")       /* done, but repeated because the machine was busy */
/* clang-format on */

enum ew_run_status {
#define EW_RUN_STATUS_ENUM(id, name) EW_RUN_##id,
    EW_RUN_STATUS_MAP(EW_RUN_STATUS_ENUM)
#undef EW_RUN_STATUS_ENUM
        EW_RUN_STATUS_N
};

/* One execution of a job on one machine, with the state of the machine before it. */
struct ew_run_row {
    const char *uid; /* unique; kept when the run is copied to another file */
    const char *job, *machine;
    const char *study, *label; /* label: section of the study's file; NULL: not from a study */
    int64_t repeat;            /* index of the repetition */
    int status;                /* enum ew_run_status */
    const char *reason;
    const char *started; /* "2026-11-15T07:30:00Z" */
    double wall_s;
    int64_t pid;
    const char *stamp;            /* boot id and start time of the process, see base/process.h */
    int quality;                  /* enum ew_quality: of the run as a whole */
    const char *noise;            /* why it is unreliable: "load 1.9"; NULL: quiet */
    double load, temp_c, cpu_mhz; /* load: share of the CPU that others used, 0 to 1 */
    int64_t free_memory_bytes, free_disk_bytes;
};

struct ew_epoch_row {
    int64_t epoch;
    double start_s; /* since the start of the run; set when recorded */
    double wall_s, compute_s, stall_s, overhead_s;
    double comm_s;                       /* waiting for other ranks; absent with one rank */
    double fetch_s, decode_s, augment_s; /* the loader's work, summed over its threads */
    double eval_s;                       /* validation after the epoch; not in wall_s */
    int64_t images, batches;
    double images_per_s;
    double learning_rate;
    double train_loss, train_accuracy;            /* accuracies and F1 are from 0 to 1 */
    double loss, accuracy, precision, recall, f1; /* of validation; macro averages */
    int64_t read_bytes, read_ops;                 /* from storage */
    double cache_before, cache_after; /* share of the data set in the page cache, 0 to 1 */
    double energy_j, energy_error_j, power_w, base_power_w;
    double cpu_load, gpu_load, temp_c; /* means; loads in % of all cores */
    int64_t rss_bytes, rss_peak_bytes;
    int quality; /* enum ew_quality, of the times */
};

struct ew_batch_row {
    int64_t epoch, batch, images;
    double wall_s, compute_s, stall_s, overhead_s;
    double comm_s;
    double fetch_s, decode_s, augment_s;
    double loss, accuracy;
    int64_t read_bytes;
};

struct ew_sample_row {
    double t_s; /* since the start of the run */
    const char *channel;
    double value; /* in the channel's unit */
    const char *unit;
    int quality;
};

struct ew_metric_row {
    const char *name;
    double value;
    const char *unit, *source; /* "monotonic clock", "VDD_IN by INA3221" */
    int quality;
    int64_t n;              /* number of measurements */
    double spread;          /* their sample standard deviation */
    double lowest, highest; /* their range */
    int better;             /* enum ew_better */
};

/* A study as a whole, for progress. */
struct ew_study_row {
    const char *name, *title, *about;
    const char *differs; /* differences from the publication, one per line */
    bool quick;
    int64_t jobs, done, failed, skipped; /* runs asked for, and how far it is */
    double left_s;                       /* guess */
    const char *now;                     /* label of the job that runs; NULL: none */
    const char *started, *updated;
    int64_t pid;
    const char *stamp; /* as in a run */
};

/* A figure that somebody published, to stand beside ours. */
struct ew_published_row {
    const char *study, *metric;
    double value;
    const char *unit;
    const char *settings; /* "network=lenet5 workers=0": which jobs it is held against */
    const char *board, *cite;
    const char *place; /* table, figure or section */
    const char *kind;  /* "stated", "approx", "upper bound" ... */
    const char *note;
    const char *wrong; /* why it cannot be as it is printed; NULL: nothing is known against it */
};

/* clang-format off */
#define EW_RECORD_MAP(X)                                                                           \
    X(MACHINE, machine)                                                                            \
    X(JOB,     job)                                                                                \
    X(RUN,     run)                                                                                \
    X(EPOCH,   epoch)                                                                              \
    X(BATCH,   batch)                                                                              \
    X(SAMPLE,  sample)                                                                             \
    X(METRIC,  metric)                                                                             \
    X(STUDY,   study)                                                                              \
    X(PUBLISHED, published)
/* clang-format on */

enum ew_record {
#define EW_RECORD_ENUM(id, name) EW_RECORD_##id,
    EW_RECORD_MAP(EW_RECORD_ENUM)
#undef EW_RECORD_ENUM
        EW_RECORD_N
};

/* A kind of row: `name` is its table in the store and `record` in JSON lines. */
struct ew_record_kind {
    const char *name;
    const struct ew_field *fields;
    size_t size;
};

const struct ew_record_kind *ew_record_kind(enum ew_record r);

/* All absent. */
void ew_record_clear(enum ew_record r, void *row);

/* One line each; text is quoted where it must be (RFC 4180).  Write errors stay with the stream. */
void ew_record_csv_head(FILE *out, enum ew_record r);
void ew_record_csv_row(FILE *out, enum ew_record r, const void *row);

/* The members of an open object. */
void ew_record_json(struct ew_json *j, enum ew_record r, const void *row);

/* A whole line: {"record":"epoch",...}. */
ew_err ew_record_json_line(FILE *out, enum ew_record r, const void *row);

/* One cell of CSV, quoted where it must be.  Text that a spreadsheet would run as a formula (it
 * begins with = + - @ and is no number) gets a ' before it. */
void ew_csv_cell(FILE *out, const char *text);

/* A new run's uid and the time now as `started` has it. */
#define EW_RUN_UID_CHARS  33
#define EW_RUN_TIME_CHARS 24
ew_err ew_run_new_uid(char out[EW_RUN_UID_CHARS]);
void ew_run_time_text(char out[EW_RUN_TIME_CHARS]);

/* 16 hexadecimal digits of the text's hash (64-bit FNV-1a): the id of jobs and machines. */
#define EW_RECORD_ID_CHARS 17
void ew_record_id(const char *text, char out[EW_RECORD_ID_CHARS]);

/* The id that belongs to a machine's other fields. */
ew_err ew_machine_row_id(const struct ew_machine_row *m, char out[EW_RECORD_ID_CHARS]);

#endif
