/* SPDX-License-Identifier: Apache-2.0 */
/* A job: a command with every option resolved, as text and as the record whose hash is its key. */
#ifndef EW_STUDY_JOB_H
#define EW_STUDY_JOB_H

#include "base/mem.h"
#include "record/record.h"

/* A name and its value as text. */
struct ew_setting {
    const char *name, *value;
};

/* A command with its options, and settings beside those. */
struct ew_job_command {
    const char *name;
    const struct ew_field *fields; /* of opts */
    const void *opts;
    const struct ew_setting *more;
    int n_more;
};

/* Writes every option (but those that do not change what is measured, such as the store itself) and
 * the other settings as one JSON object, sorted by name, and hashes it.  Text goes to the arena. */
ew_err ew_job_describe(struct ew_arena *a, const struct ew_job_command *c, struct ew_job_row *out);

/* The value of a setting of this name, or NULL. */
const char *ew_setting_find(const struct ew_setting *list, int n, const char *name);

/* An option that says where results go, not what is measured. */
bool ew_job_ignores_option(const char *option);

#endif
