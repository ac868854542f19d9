/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of `edgewise train`: setup (train_setup.c) and output (train_show.c). */
#ifndef EW_CLI_TRAIN_RUN_H
#define EW_CLI_TRAIN_RUN_H

#include "cli/cmd.h"
#include "cli/recorded.h"
#include "network/network.h"
#include "study/run_watch.h"
#include "train/tensorboard.h"
#include "train/trainer.h"

struct ew_train_cmd {
    struct ew_network_opts net;
    struct ew_train_opts train;
    const char *init, *output, *resume, *db, *device, *simulate, *tensorboard, *power_from;
    int precision;     /* index into ew_precision_names */
    bool fast;         /* GPU: nondeterministic summation order allowed */
    const char *model; /* the argument; stored with the options */
    bool find_batch;
    int64_t loss_every, calib;
    double idle;   /* seconds at rest before the run */
    double carbon; /* g CO2e per kWh; 0: not reported */
    int qat;       /* enum ew_train_qat */
    const char *teach;
    double teach_share, temperature;
    int compress; /* enum ew_exchange_form */
    double compress_share;
    int64_t bucket;
    bool sync_bn;
    bool elastic; /* accepted, no effect: a lost rank always ends the job, and any number of ranks
                     resumes */
    bool dry;     /* with `simulate`: nothing is trained */
};

enum ew_train_qat { EW_TRAIN_QAT_OFF, EW_TRAIN_QAT_INT8, EW_TRAIN_QAT_POW2 };

extern const struct ew_field ew_train_cmd_fields[];

/* State of one call. */
struct ew_train_run {
    struct ew_train_cmd o; /* after defaults and resume are applied */
    struct ew_arena arena;
    struct ew_graph *net;
    struct ew_graph *teacher; /* NULL: none */
    struct ew_dataset *data;
    struct ew_checkpoint from;         /* of a resumed run; else empty */
    struct ew_preprocess weights_prep; /* preprocessing of the initial weights */
    struct ew_train_job job;
    struct ew_recording *rec;
    struct ew_run_watch watch;
    struct ew_board *board; /* NULL: none could be opened */
    bool json;
    struct ew_tensorboard curves; /* closed if not requested */
};

/* Sets up the job from the command line: network, data, weights, normalisation, folder.  The ranks
 * have been joined.  Release with fini, also on failure. */
ew_err ew_train_setup(struct ew_cmd_call *c, struct ew_train_run *r);
void ew_train_fini(struct ew_train_run *r);

/* ---- Showing it ---- */

struct ew_train_view {
    bool terminal;    /* progress is shown */
    const char *kind; /* name of samples: "images" */
    int64_t shown_ns, loss_every;
};

void ew_train_show_begin(struct ew_train_view *v, const struct ew_train_run *r,
                         const struct ew_trainer *t);
/* Updates the progress line, at most ten times a second, and prints a permanent line every
 * `loss_every` batches. */
void ew_train_show_step(struct ew_train_view *v, const struct ew_train_status *s);
void ew_train_show_epoch(struct ew_train_view *v, const struct ew_trainer *t);
void ew_train_show_wipe(const struct ew_train_view *v);

ew_err ew_train_print(const struct ew_train_run *r, const struct ew_train_result *x);
/* Writes the result as JSON. */
ew_err ew_train_print_json(FILE *out, const struct ew_train_run *r,
                           const struct ew_train_result *x);

#endif
