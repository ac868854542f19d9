/* SPDX-License-Identifier: Apache-2.0 */
/* A command with a few options and studies of it, for tests. */
#ifndef EW_TESTS_STUDY_KIT_H
#define EW_TESTS_STUDY_KIT_H

#include <stdlib.h>
#include <string.h>

#include "study/study.h"

struct kit_opts {
    int64_t workers, batch;
    double lr;
    bool cold;
    const char *data, *db;
};

static const struct ew_field kit_fields[] = {
    {.name = "workers",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct kit_opts, workers),
     .def = "1",
     .min = 0,
     .max = 64},
    {.name = "batch",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct kit_opts, batch),
     .def = "16",
     .min = 1,
     .max = 1024},
    {.name = "lr", .type = EW_FIELD_FLOAT, .offset = offsetof(struct kit_opts, lr), .def = "0.01"},
    {.name = "cold", .type = EW_FIELD_BOOL, .offset = offsetof(struct kit_opts, cold)},
    {.name = "data", .type = EW_FIELD_STR, .offset = offsetof(struct kit_opts, data)},
    {.name = "db", .type = EW_FIELD_STR, .offset = offsetof(struct kit_opts, db)},
    EW_FIELD_END,
};

struct kit_nap {
    int64_t minutes;
};

static const struct ew_field kit_nap_fields[] = {
    {.name = "minutes",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct kit_nap, minutes),
     .def = "1",
     .max = 60},
    EW_FIELD_END,
};

static const struct ew_study_command kit_commands[] = {
    {"work", kit_fields, sizeof(struct kit_opts), false},
    {"nap", kit_nap_fields, sizeof(struct kit_nap), false},
};

/* Parses a copy of `text`, kept in the arena. */
static inline ew_err kit_parse(struct ew_arena *a, const char *text, bool quick, const char *only,
                               struct ew_study *out)
{
    const struct ew_study_opts o = {
        .commands = kit_commands, .n_commands = 2, .quick = quick, .only = only};
    return ew_study_parse(a, "kit", ew_arena_strdup(a, text), &o, out);
}

#endif
