/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs write, and where it stays.
 *
 * A job writes into a folder of its own (base/owned.h): in the scratch folder, or beside its
 * `keep`. What is kept gets its name once the run is in the store as done, and only where nothing
 * has that name; a study that is killed in between does so at its next start. */
#ifndef EW_STUDY_OUTPUTS_H
#define EW_STUDY_OUTPUTS_H

#include "study/study.h"

#define EW_OUTPUT_CHARS 512

/* Where a job's output is made, and its name there; both "" where it writes none. */
struct ew_output {
    char folder[EW_OUTPUT_CHARS], path[EW_OUTPUT_CHARS];
    const char *keep; /* NULL: it is removed after the job */
};

/* Refuses a study two of whose jobs would keep under one name or inside each other, and, unless
 * `outside` is allowed, names of `keep` and `setup` that leave the present folder. */
ew_err ew_output_check(const struct ew_study *s, bool outside);

/* Where the job writes; makes nothing. */
ew_err ew_output_find(const struct ew_study *s, const struct ew_study_job *j, const char *scratch,
                      struct ew_output *out);

/* Makes the folder, empty.  Refuses where the name that is to be kept is taken. */
ew_err ew_output_begin(const struct ew_output *o);
ew_err ew_output_check_free(const struct ew_study *s, const struct ew_study_job *j);

/* The job is done: gives what it made its name, where it is kept, and removes the folder. */
ew_err ew_output_keep(const struct ew_output *o);
void ew_output_drop(const struct ew_output *o);

#endif
