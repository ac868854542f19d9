/* SPDX-License-Identifier: Apache-2.0 */
/* Options of commands that use the loader, as rows of an option table:
 *
 *   struct opts { struct ew_load_args load; ... };
 *   static const struct ew_field fields[] = {EW_LOAD_FIELDS(struct opts, load), ...}; */
#ifndef EW_DATA_LOAD_ARGS_H
#define EW_DATA_LOAD_ARGS_H

#include "base/field.h"
#include "data/loader.h"

struct ew_load_args {
    int64_t workers, prefetch, resize;
    const char *augment, *storage;
    int cold;          /* enum ew_cold */
    int on_bad_sample; /* enum ew_on_bad */
};

/* When the data set is dropped from the page cache. */
enum ew_cold { EW_COLD_NO, EW_COLD_START, EW_COLD_EVERY_EPOCH };
extern const char *const ew_cold_words[]; /* "no", "yes", "every-epoch" */

extern const char *const ew_on_bad_words[]; /* "stop", "skip" */

/* clang-format off */
#define EW_LOAD_FIELDS(owner, member)                                                              \
    {.name = "workers", .type = EW_FIELD_INT, .offset = offsetof(owner, member.workers),            \
     .def = "1", .min = 0, .max = 256, .metavar = "N",                                             \
     .help = "loader threads (decode and augment); 0: load in the training thread"},               \
    {.name = "prefetch", .type = EW_FIELD_INT, .offset = offsetof(owner, member.prefetch),          \
     .def = "2", .min = 1, .max = 4096, .metavar = "N",                                            \
     .help = "batches that each loader thread prepares ahead"},                                    \
    {.name = "augment", .type = EW_FIELD_STR, .offset = offsetof(owner, member.augment),            \
     .def = "none", .metavar = "LIST",                                                             \
     .help = "none, standard (crop=4,flip), or a list of crop=N, flip, rotate=DEGREES, erase=P, "  \
     "zoom=FRACTION; for clips also time"},                                                        \
    {.name = "resize", .type = EW_FIELD_INT, .offset = offsetof(owner, member.resize),             \
     .def = "0", .min = 0, .max = 16384, .metavar = "N",                                           \
     .help = "resize the shorter side to this before the crop to the input's size; 0: the "        \
     "smallest that covers it"},                                                                   \
    {.name = "storage", .type = EW_FIELD_STR, .offset = offsetof(owner, member.storage),            \
     .def = "none", .metavar = "MEDIUM",                                                           \
     .help = "emulate a storage medium: ssd, hdd, sdcard (as in the TRAIN study), sata-ssd, "      \
     "hdd-7200, sdcard-a1 or MB/s[,ms]; the run is marked as emulated"},                           \
    {.name = "cold", .type = EW_FIELD_ENUM, .offset = offsetof(owner, member.cold), .def = "no",     \
     .choices = ew_cold_words, .metavar = "[WHEN]",                                                \
     .help = "drop the data set from the page cache before the run; every-epoch: before each "     \
     "epoch"},                                                                                     \
    {.name = "on-bad-sample", .type = EW_FIELD_ENUM,                                               \
     .offset = offsetof(owner, member.on_bad_sample), .def = "stop", .choices = ew_on_bad_words,    \
     .help = "what to do with a sample that cannot be decoded"}
/* clang-format on */

/* Sets the loader's options. */
ew_err ew_load_args_apply(const struct ew_load_args *a, struct ew_loader_opts *o);

#endif
