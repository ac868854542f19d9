/* SPDX-License-Identifier: Apache-2.0 */
/* Recording a command's measurements in a database: begin, put rows and metrics, end with the
 * outcome.  Without a database all calls do nothing.
 *
 * Run by hand, a command makes a run of its own with its machine and its options.  In a study the
 * environment variable EW_RUN holds the uid of the run that the study began and will end. */
#ifndef EW_STUDY_RECORDING_H
#define EW_STUDY_RECORDING_H

#include "base/field.h"
#include "store/store.h"

/* A row of a command's option table, for the member `db` of `owner`. */
#define EW_RECORDING_FIELD(owner)                                                                  \
    {                                                                                              \
        .name = "db", .type = EW_FIELD_STR, .offset = offsetof(owner, db), .metavar = "FILE",      \
        .help = "record the results in this database; see 'edgewise results'"                      \
    }

struct ew_recording {
    struct ew_store *store; /* NULL: nothing is recorded */
    int64_t run;
    bool own; /* this command began the run */
    int64_t start_ns;
};

/* The command whose job it is. */
struct ew_recorded_command {
    const char *name;
    const char *network;           /* "": none */
    const struct ew_field *fields; /* of opts */
    const void *opts;
};

/* db NULL: nothing is recorded. */
ew_err ew_recording_begin(const struct ew_recorded_command *c, const char *db,
                          struct ew_recording *out);

/* An epoch, batch, sample or metric of the run. */
ew_err ew_recording_put(struct ew_recording *r, enum ew_record kind, const void *row);

/* A measured metric and which direction is better; one with a spread is put as a row. */
ew_err ew_recording_metric(struct ew_recording *r, const char *name, double value, const char *unit,
                           enum ew_better better);

/* A derived metric: counted or computed. */
ew_err ew_recording_derived(struct ew_recording *r, const char *name, double value,
                            const char *unit, enum ew_better better);

/* A modelled metric, marked with the model's name and quality. */
struct ew_recording_model {
    const char *source;
    int quality; /* EW_QUALITY_MODELLED or EW_QUALITY_SIMULATED */
};

ew_err ew_recording_modelled(struct ew_recording *r, const struct ew_recording_model *by,
                             const char *name, double value, const char *unit,
                             enum ew_better better);

/* Ends the run as done, or as failed with the message of `err`, and closes the store.  Returns
 * `err`, or the store's own failure. */
ew_err ew_recording_end(struct ew_recording *r, ew_err err);

#endif
