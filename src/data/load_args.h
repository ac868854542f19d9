/* SPDX-License-Identifier: Apache-2.0 */
/* The options of whatever reads a data set through the loader, as rows for a command's table:
 *
 *   struct opts { struct ew_load_args load; ... };
 *   static const struct ew_field fields[] = {EW_LOAD_FIELDS(struct opts, load), ...};
 */
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
     .help = "threads that load and augment; 0: inline"},                                          \
    {.name = "prefetch", .type = EW_FIELD_INT, .offset = offsetof(owner, member.prefetch),          \
     .def = "2", .min = 1, .max = 4096, .metavar = "N",                                            \
     .help = "batches that each worker keeps ready"},                                              \
    {.name = "augment", .type = EW_FIELD_STR, .offset = offsetof(owner, member.augment),            \
     .def = "none", .metavar = "LIST",                                                             \
     .help = "none, standard (crop=4,flip), or of crop=N, flip, rotate=DEGREES, erase=P, "         \
     "zoom=SHARE; of clips also time"},                                                            \
    {.name = "resize", .type = EW_FIELD_INT, .offset = offsetof(owner, member.resize),             \
     .def = "0", .min = 0, .max = 16384, .metavar = "N",                                           \
     .help = "shorter side before the input's size is cut out; 0: what just covers it"},           \
    {.name = "storage", .type = EW_FIELD_STR, .offset = offsetof(owner, member.storage),            \
     .def = "none", .metavar = "MEDIUM",                                                           \
     .help = "emulate a medium: ssd, hdd, sdcard (TRAIN's), sata-ssd, hdd-7200, sdcard-a1 or "          \
     "MB/s[,ms]; marks the run as emulated"},                                                      \
    {.name = "cold", .type = EW_FIELD_ENUM, .offset = offsetof(owner, member.cold), .def = "no",     \
     .choices = ew_cold_words, .metavar = "[WHEN]",                                                \
     .help = "drop the data set from the page cache first; every-epoch: before each epoch"},       \
    {.name = "on-bad-sample", .type = EW_FIELD_ENUM,                                               \
     .offset = offsetof(owner, member.on_bad_sample), .def = "stop", .choices = ew_on_bad_words,    \
     .help = "what to do about a sample that cannot be read"}
/* clang-format on */

/* Puts them into the loader's options. */
ew_err ew_load_args_apply(const struct ew_load_args *a, struct ew_loader_opts *o);

#endif
