/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of jobs.
 *
 * A job writes into a folder of its own (base/owned.h): in the scratch folder, or beside its
 * `keep`. A kept output gets its name once the run is recorded as done, and only if that name is
 * free; a study killed in between does it at its next start. */
#ifndef EW_STUDY_OUTPUTS_H
#define EW_STUDY_OUTPUTS_H

#include "study/study.h"

#define EW_OUTPUT_CHARS 512

/* Folder in which a job's output is made, and its name there; both "" if it writes none. */
struct ew_output {
    char folder[EW_OUTPUT_CHARS], path[EW_OUTPUT_CHARS];
    const char *keep; /* NULL: it is removed after the job */
};

/* Refuses a study in which two jobs keep the same name or one inside the other, and, unless
 * `outside` is allowed, names of `keep` and `setup` outside of the current folder. */
ew_err ew_output_check(const struct ew_study *s, bool outside);

/* Finds where the job writes, without creating anything. */
ew_err ew_output_find(const struct ew_study *s, const struct ew_study_job *j, const char *scratch,
                      struct ew_output *out);

/* Creates the empty folder.  Fails if the name to keep exists already. */
ew_err ew_output_begin(const struct ew_output *o);
ew_err ew_output_check_free(const struct ew_study *s, const struct ew_study_job *j);

/* After the job: renames its output to the kept name, if any, and removes the folder. */
ew_err ew_output_keep(const struct ew_output *o);
void ew_output_drop(const struct ew_output *o);

#endif
