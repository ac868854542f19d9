/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates: times from earlier runs of the same job, else from the network's arithmetic; memory
 * from a plan that is made and not run. */
#include "study/estimate.h"

#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "data/data.h"
#include "graph/facts.h"
#include "model/model.h"
#include "model/objective.h"
#include "plan/plan.h"

#define TRUSTED_SHARE   0.25 /* share of the peak that whole networks reach, loading included */
#define START_S         0.15 /* of a process, its data set and its records */
#define BACKWARD_FACTOR 3.0  /* arithmetic of a training step over that of inference */
#define EPOCH_BYTES     4096 /* of rows in the store */

ew_err ew_estimate_rate(double *flops_per_s)
{
    struct ew_backend *be;
    EW_TRY(ew_backend_open(&(struct ew_backend_opts){.threads = 0}, &be));
    struct ew_peaks peaks;
    const ew_err e = ew_backend_peaks(be, &peaks);
    *flops_per_s = TRUSTED_SHARE * peaks.flops;
    ew_backend_close(be);
    return e;
}

/* The work of a job. */
struct work {
    struct ew_model_opts model;
    double images; /* that pass forward, and those that pass backward as well */
    double trained;
    bool train;
};

static ew_err read_dataset(const struct ew_study_job *j, struct work *w)
{
    char name[EW_STUDY_VALUE] = "";
    struct ew_dataset *d;
    if (!ew_study_value(j, "data", name) || !*name)
        return EW_OK;
    EW_TRY(ew_dataset_open(name, &d));
    const struct ew_dataset_info *i = ew_dataset_info(d);
    const double samples = ew_study_number(j, "samples", 0);
    const double epochs = ew_study_number(j, "epochs", 1);
    w->model.height = i->h;
    w->model.width = i->w;
    w->model.channels = i->c;
    w->model.classes = i->classes;
    w->trained = epochs * (samples > 0 ? samples : (double)i->count[EW_SPLIT_TRAIN]);
    w->images = epochs * (double)i->count[EW_SPLIT_TEST];
    ew_dataset_close(d);
    return EW_OK;
}

static void read_input(const struct ew_study_job *j, struct ew_model_opts *m)
{
    const struct ew_field *f = ew_field_find(j->fields, "input");
    if (!f || f->type != EW_FIELD_INTS)
        return;
    const void *at = (const char *)j->opts + f->offset;
    const struct ew_ints *hwc = at;
    if (hwc->n == 3) {
        m->height = hwc->v[0];
        m->width = hwc->v[1];
        m->channels = hwc->v[2];
    }
}

static ew_err read_work(const struct ew_study_job *j, struct work *w)
{
    char train[EW_STUDY_VALUE] = "";
    *w = (struct work){.model = {.size = sizeof(w->model)}};
    w->model.scale = ew_study_number(j, "width", 1);
    w->train = strcmp(j->command, "train") == 0;
    const double batch = ew_study_number(j, "batch", 1);
    if (w->train) {
        EW_TRY(read_dataset(j, w));
    } else {
        const double runs = ew_study_number(j, "warmup", 0) + ew_study_number(j, "iters", 1);
        w->images = batch * runs * ew_study_number(j, "trials", 1);
        ew_study_value(j, "train", train);
        w->train = strcmp(train, "true") == 0;
        if (w->train)
            w->trained = w->images;
    }
    read_input(j, &w->model);
    if (ew_study_number(j, "classes", 0) > 0)
        w->model.classes = (int64_t)ew_study_number(j, "classes", 0);
    w->model.batch = 1;
    return EW_OK;
}

static ew_err plan_bytes(struct ew_graph *g, int64_t batch, bool train, int64_t *out)
{
    struct ew_plan *p;
    struct ew_plan_stats s;
    const struct ew_plan_opts o = {
        .mode = train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
        .dry = true,
        .update = train,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 0.01, .momentum = 0.9}};
    EW_TRY(ew_graph_set_batch(g, batch));
    if (train)
        EW_TRY(ew_objective_add(g));
    EW_TRY(ew_graph_infer(g));
    EW_TRY(ew_plan_compile(g, &o, &p));
    ew_plan_stats(p, &s);
    ew_plan_free(p);
    *out = (int64_t)(s.arena_bytes + s.weight_bytes);
    return EW_OK;
}

ew_err ew_estimate_training(const char *network, int64_t side, int64_t classes, int64_t batch,
                            int64_t *bytes)
{
    const struct ew_model_opts o = {.size = sizeof(o),
                                    .height = side,
                                    .width = side,
                                    .classes = classes,
                                    .batch = 1,
                                    .scale = 1};
    struct ew_graph *g = NULL;
    EW_TRY(ew_model_build(network, &o, &g));
    const ew_err err = plan_bytes(g, batch, true, bytes);
    ew_graph_free(g);
    return err;
}

static ew_err by_arithmetic(const struct ew_study_job *j, double rate, struct ew_estimate *out)
{
    struct work w;
    struct ew_graph *g = NULL;
    struct ew_facts facts;
    EW_TRY(read_work(j, &w));
    if (ew_model_build(j->network, &w.model, &g) != EW_OK) {
        w.model.height = w.model.width =
            0; /* not possible at the images' size: use the network's own */
        EW_TRY(ew_model_build(j->network, &w.model, &g));
    }
    ew_err err = ew_graph_facts(g, &facts);
    if (err == EW_OK) {
        const double flops = (double)facts.flops;
        out->seconds = START_S + (w.images + BACKWARD_FACTOR * w.trained) * flops / fmax(rate, 1);
        out->disk_bytes =
            strcmp(j->command, "train") == 0
                ? 6 * facts.weight_bytes + (int64_t)ew_study_number(j, "epochs", 1) * EPOCH_BYTES
                : EPOCH_BYTES;
        err = plan_bytes(g, (int64_t)ew_study_number(j, "batch", 1), w.train, &out->memory_bytes);
    }
    ew_graph_free(g);
    return err;
}

static ew_err by_history(const struct ew_study_job *j, struct ew_store *s, struct ew_estimate *out)
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(s, &rows,
                          "SELECT avg(wall_s) FROM run WHERE job = ?1 AND status = 'done'", "s",
                          j->row.id));
    if (ew_rows_next(rows) && ew_rows_cell(rows, 0) != EW_CELL_ABSENT) {
        out->seconds = ew_rows_num(rows, 0);
        out->measured = true;
    }
    return ew_rows_free(rows);
}

ew_err ew_estimate_job(const struct ew_study_job *j, struct ew_store *s, double flops_per_s,
                       struct ew_estimate *out)
{
    *out = (struct ew_estimate){
        .seconds = NAN, .memory_bytes = EW_INT_ABSENT, .disk_bytes = EPOCH_BYTES};
    char board[EW_STUDY_VALUE] = "";
    if (ew_study_value(j, "simulate", board) && *board) { /* a plan is made, nothing runs */
        out->seconds = START_S;
        return s ? by_history(j, s, out) : EW_OK;
    }
    const bool zoo = j->network && !strchr(j->network, '.') && !strchr(j->network, '/');
    if (zoo && by_arithmetic(j, flops_per_s, out) == EW_ERR_MEMORY)
        return EW_ERR_MEMORY;
    if (!j->network)
        out->seconds = START_S + ew_study_number(j, "seconds", 0);
    return s ? by_history(j, s, out) : EW_OK;
}
