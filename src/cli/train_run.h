/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `edgewise train`: making the job ready (train_setup.c), showing it (train_show.c).
 */
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
    int precision;     /* of ew_precision_names */
    bool fast;         /* of a GPU: sums without a fixed order */
    const char *model; /* not an option: the argument, kept with them */
    bool find_batch;
    int64_t loss_every, calib;
    double idle;   /* seconds at rest before the run */
    double carbon; /* of a kWh, grams; 0: not asked for */
    int qat;       /* enum ew_train_qat */
    const char *teach;
    double teach_share, temperature;
    int compress; /* enum ew_exchange_form */
    double compress_share;
    int64_t bucket;
    bool sync_bn;
    bool elastic; /* what is always so: a lost rank ends the job, any number goes on */
    bool dry;     /* nothing is trained: with `simulate` */
};

enum ew_train_qat { EW_TRAIN_QAT_OFF, EW_TRAIN_QAT_INT8, EW_TRAIN_QAT_POW2 };

extern const struct ew_field ew_train_cmd_fields[];

/* One run of the command. */
struct ew_train_run {
    struct ew_train_cmd o; /* resolved */
    struct ew_arena arena;
    struct ew_graph *net;
    struct ew_graph *teacher; /* NULL: none */
    struct ew_dataset *data;
    struct ew_checkpoint from;         /* resumed; else empty */
    struct ew_preprocess weights_prep; /* what the first weights expect of images */
    struct ew_train_job job;
    struct ew_recording *rec;
    struct ew_run_watch watch;
    struct ew_board *board; /* NULL: none could be opened */
    bool json;
    struct ew_tensorboard curves; /* closed where none are asked for */
};

/* Fills the job from the command line: network, data, weights, normalisation, folder; its ranks are
 * there already.  Release with fini, also on failure. */
ew_err ew_train_setup(struct ew_cmd_call *c, struct ew_train_run *r);
void ew_train_fini(struct ew_train_run *r);

/* ---- Showing it ---- */

struct ew_train_view {
    bool terminal;    /* a line of progress can be drawn */
    const char *kind; /* of samples: "images" */
    int64_t shown_ns, loss_every;
};

void ew_train_show_begin(struct ew_train_view *v, const struct ew_train_run *r,
                         const struct ew_trainer *t);
/* The line of progress, ten times a second at most; and a line that stays every `loss_every`
 * batches. */
void ew_train_show_step(struct ew_train_view *v, const struct ew_train_status *s);
void ew_train_show_epoch(struct ew_train_view *v, const struct ew_trainer *t);
void ew_train_show_wipe(const struct ew_train_view *v);

ew_err ew_train_print(const struct ew_train_run *r, const struct ew_train_result *x);
/* The result as JSON to `out`. */
ew_err ew_train_print_json(FILE *out, const struct ew_train_run *r,
                           const struct ew_train_result *x);

#endif
