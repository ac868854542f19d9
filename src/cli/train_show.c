/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise train`: progress and results. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/progress.h"
#include "cli/train_run.h"
#include "report/carbon.h"
#include "report/text_table.h"

#define SHOW_NS 100000000

/* "1:02:03", "2:03". */
static const char *duration(double s, char buf[EW_TEXT_CHARS])
{
    const long long t = (long long)(s + 0.5);
    if (t >= 3600)
        snprintf(buf, EW_TEXT_CHARS, "%lld:%02lld:%02lld", t / 3600, t / 60 % 60, t % 60);
    else
        snprintf(buf, EW_TEXT_CHARS, "%lld:%02lld", t / 60, t % 60);
    return buf;
}

/* Seconds with three significant digits: "0.082", "1.24", "12.3", "451". */
static const char *seconds(double s, char buf[EW_TEXT_CHARS])
{
    snprintf(buf, EW_TEXT_CHARS, "%.*f", s < 1 ? 3 : s < 10 ? 2 : s < 100 ? 1 : 0, s);
    return buf;
}

static const char *kind_of(const struct ew_train_run *r)
{
    return ew_text_samples(ew_dataset_info(r->data)->frames > 0);
}

/* ---- While it runs ---- */

void ew_train_show_begin(struct ew_train_view *v, const struct ew_train_run *r,
                         const struct ew_trainer *t)
{
    const struct ew_dataset_info *d = ew_dataset_info(r->data);
    const struct ew_train_opts *o = &r->o.train;
    const struct ew_graph *g = r->net;
    const struct ew_shape *in = &g->values[g->inputs[0]].t.shape;
    struct ew_plan_stats s;
    struct ew_cost cost;
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS];
    int64_t training, validation;
    ew_train_divide(d, o, &training, &validation);
    *v = (struct ew_train_view){
        .terminal = isatty(STDERR_FILENO) != 0, .kind = kind_of(r), .loss_every = r->o.loss_every};
    ew_trainer_plan_stats(t, &s);
    if (ew_graph_cost(g, &cost, NULL) != EW_OK)
        cost.params = 0; /* not worth failing for */
    fprintf(stderr, "%s, ", g->name);
    for (int i = 1; i < in->rank; i++)
        fprintf(stderr, "%s%lld", i > 1 ? "x" : "", (long long)in->dim[i]);
    fprintf(stderr, ", %s parameters; %s: %s %s", ew_text_count(cost.params, a), d->name,
            ew_text_count(training, b), v->kind);
    if (training + validation < d->count[EW_SPLIT_TRAIN])
        fprintf(stderr, " of %s", ew_text_count(d->count[EW_SPLIT_TRAIN], a));
    if (validation)
        fprintf(stderr, ", %s for validation", ew_text_count(validation, a));
    fputc('\n', stderr);
    fprintf(stderr, "%s %g, batch %lld, memory planned %s; %s\n", ew_optimizer_names[o->optimizer],
            o->lr, (long long)o->batch, ew_text_bytes(ew_trainer_result(t).planned_bytes, a),
            r->o.output);
    if (s.recompute_cheap || s.segments > 1 || s.micro_batches > 1)
        fprintf(stderr, "to fit the limit: %d segments, %d parts, %.0f%% of forward recomputed%s\n",
                s.segments, s.micro_batches, 100 * s.recompute_share,
                s.split_changes_statistics ? "; batch norm sees one part at a time" : "");
}

void ew_train_show_wipe(const struct ew_train_view *v)
{
    if (v->terminal)
        ew_term_clear_line(stderr);
}

/* "  accuracy 91.20%"; "" without classes. */
static const char *accuracy_of(double share, const char *before, char buf[EW_TEXT_CHARS])
{
    *buf = 0;
    if (!isnan(share))
        snprintf(buf, EW_TEXT_CHARS, "%saccuracy %.2f%%", before, 100 * share);
    return buf;
}

static void line_of(const struct ew_train_view *v, const struct ew_train_status *s, char *buf,
                    size_t size)
{
    char left[EW_TEXT_CHARS] = "?", rate[EW_TEXT_CHARS], accuracy[EW_TEXT_CHARS];
    if (s->left_s >= 0)
        duration(s->left_s, left);
    if (s->evaluating)
        snprintf(buf, size, "epoch %lld/%lld  validating %lld/%lld  %s left", (long long)s->epoch,
                 (long long)s->epochs, (long long)s->batch, (long long)s->batches, left);
    else
        snprintf(buf, size,
                 "epoch %lld/%lld  batch %lld/%lld  %s left  loss %.4f%s  %s %s/s  "
                 "stall %.1f%%",
                 (long long)s->epoch, (long long)s->epochs, (long long)s->batch,
                 (long long)s->batches, left, s->loss, accuracy_of(s->accuracy, "  ", accuracy),
                 ew_text_count((int64_t)s->images_per_s, rate), v->kind, 100 * s->stall_share);
}

void ew_train_show_step(struct ew_train_view *v, const struct ew_train_status *s)
{
    char line[256];
    if (v->loss_every > 0 && !s->evaluating && s->batch > 0 && s->batch % v->loss_every == 0) {
        ew_train_show_wipe(v);
        line_of(v, s, line, sizeof(line));
        fprintf(stderr, "%s\n", line);
    }
    const int64_t now = ew_clock_ns();
    if (!v->terminal || now - v->shown_ns < SHOW_NS)
        return;
    v->shown_ns = now;
    line_of(v, s, line, sizeof(line));
    ew_term_rewrite(stderr, line);
}

void ew_train_show_epoch(struct ew_train_view *v, const struct ew_trainer *t)
{
    const struct ew_epoch_row *e = ew_trainer_epoch(t);
    const struct ew_train_result x = ew_trainer_result(t);
    char wall[EW_TEXT_CHARS], rate[EW_TEXT_CHARS], accuracy[EW_TEXT_CHARS], scores[64];
    ew_train_show_wipe(v);
    if (isnan(e->loss))
        scores[0] = 0; /* --eval-every */
    else if (isnan(e->f1))
        snprintf(scores, sizeof(scores), "; validation loss %.4f", e->loss);
    else
        snprintf(scores, sizeof(scores), "; validation %.2f%%, F1 %.4f", 100 * e->accuracy, e->f1);
    fprintf(stderr, "epoch %3lld: loss %.4f%s%s%s; %s s, %s %s/s, stall %.1f%%\n",
            (long long)e->epoch, e->train_loss, accuracy_of(e->train_accuracy, ", ", accuracy),
            scores, x.best_epoch == e->epoch ? " (best)" : "", seconds(e->wall_s, wall),
            ew_text_count((int64_t)e->images_per_s, rate), v->kind,
            e->wall_s > 0 ? 100 * e->stall_s / e->wall_s : 0);
}

/* ---- The result ---- */

/* Lists the files of the folder, some of which are missing on a full disk. */
static void print_written(const char *folder)
{
    static const char *const names[] = {"best.ckpt", "last.ckpt", "epochs.csv", "batches.csv"};
    const char *before = "/";
    char path[4096];
    printf("written:   %s", folder);
    for (size_t i = 0; i < EW_COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        if (access(path, F_OK) != 0)
            continue;
        printf("%s%s", before, names[i]);
        before = ", ";
    }
    printf("\n");
}

/* Prints the scores on the test data, and what the epoch was selected by. */
static void print_scores(const struct ew_train_result *x, const char *kind)
{
    char a[EW_TEXT_CHARS];
    if (x->test.samples == 0)
        printf("test:      not measured: no test sample could be read\n");
    else if (isnan(x->test.f1))
        printf("loss:      %.6f of %s test samples, epoch %lld\n", x->test.loss,
               ew_text_count(x->test.samples, a), (long long)x->best_epoch);
    else
        printf("accuracy:  %.2f%% of %s test %s, macro F1 %.4f (precision %.4f, recall %.4f), "
               "epoch %lld\n",
               100 * x->test.accuracy, ew_text_count(x->test.samples, a), kind, x->test.f1,
               x->test.precision, x->test.recall, (long long)x->best_epoch);
    if (x->validations <= 1)
        return;
    printf("chosen:    the best of %lld epochs by ", (long long)x->validations);
    if (x->validated_on_test)
        printf("accuracy on these same test %s; without --val-split 0 held-out training %s decide, "
               "and the test set is used once\n",
               kind, kind);
    else
        printf("training %s held out for validation; tested once\n", kind);
}

ew_err ew_train_print(const struct ew_train_run *r, const struct ew_train_result *x)
{
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS], c[EW_TEXT_CHARS], d[EW_TEXT_CHARS];
    const char *kind = kind_of(r);
    print_scores(x, kind);
    printf("time:      %s s an epoch; in %lld epoch%s compute %s s, stall %s s, overhead %s s",
           seconds(x->epoch_s, a), (long long)x->epochs, x->epochs == 1 ? "" : "s",
           seconds(x->times.compute_s, b), seconds(x->times.stall_s, c),
           seconds(x->times.overhead_s, d));
    if (r->job.ranks)
        printf(", %d ranks %s s", ew_ranks_size(r->job.ranks), seconds(x->times.comm_s, a));
    printf("\n");
    printf("speed:     %s %s/s; validation %s s, checkpoints %s s in all\n",
           ew_text_count((int64_t)x->images_per_s, a), kind, seconds(x->eval_s, b),
           seconds(x->checkpoint_s, c));
    printf("memory:    planned %s, peak resident %s\n", ew_text_bytes(x->planned_bytes, a),
           ew_text_bytes(x->peak_rss_bytes, b));
    if (x->cache_features_s > 0)
        printf("features:  of the frozen part, computed once in %s s\n",
               seconds(x->cache_features_s, a));
    if (x->energy_j >= 0)
        printf("energy:    %.1f J\n", x->energy_j);
    if (x->energy_j >= 0 && r->o.carbon > 0)
        printf("carbon:    %.3g g of CO2e at %g g a kWh\n", ew_carbon_g(x->energy_j, r->o.carbon),
               r->o.carbon);
    if (x->bad)
        printf("samples:   %lld could not be read\n", (long long)x->bad);
    print_written(r->o.output);
    return EW_OK;
}

static void json_scores(struct ew_json *j, const char *key, const struct ew_scores *s)
{
    ew_json_object(j, key);
    ew_json_num(j, "accuracy", s->accuracy);
    ew_json_num(j, "precision", s->precision);
    ew_json_num(j, "recall", s->recall);
    ew_json_num(j, "f1", s->f1);
    ew_json_num(j, "loss", s->loss);
    ew_json_end(j);
}

ew_err ew_train_print_json(FILE *out, const struct ew_train_run *r, const struct ew_train_result *x)
{
    struct ew_json j;
    ew_json_init(&j, out);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "network", r->net->name);
    ew_json_str(&j, "data", ew_dataset_info(r->data)->name);
    ew_json_str(&j, "folder", r->o.output);
    ew_json_num(&j, "test_accuracy", x->test.accuracy);
    ew_json_num(&j, "test_f1", x->test.f1);
    ew_json_num(&j, "test_precision", x->test.precision);
    ew_json_num(&j, "test_recall", x->test.recall);
    ew_json_int(&j, "test_images", x->test.samples);
    ew_json_int(&j, "best_epoch", x->best_epoch);
    ew_json_str(&j, "best_chosen_on", x->validated_on_test ? "test" : "validation");
    json_scores(&j, "last", &x->last);
    ew_json_int(&j, "epochs", x->epochs);
    ew_json_num(&j, "epoch_s", x->epoch_s);
    ew_json_num(&j, "wall_s", x->times.wall_s);
    ew_json_num(&j, "compute_s", x->times.compute_s);
    ew_json_num(&j, "stall_s", x->times.stall_s);
    ew_json_num(&j, "overhead_s", x->times.overhead_s);
    if (r->job.ranks) {
        ew_json_num(&j, "comm_s", x->times.comm_s);
        ew_json_int(&j, "ranks", ew_ranks_size(r->job.ranks));
    }
    ew_json_num(&j, "eval_s", x->eval_s);
    ew_json_num(&j, "checkpoint_s", x->checkpoint_s);
    ew_json_num(&j, "cache_features_s", x->cache_features_s);
    ew_json_num(&j, "images_per_s", x->images_per_s);
    ew_json_int(&j, "images", x->images);
    ew_json_int(&j, "bad_samples", x->bad);
    ew_json_int(&j, "planned_bytes", x->planned_bytes);
    ew_json_int(&j, "peak_rss_bytes", x->peak_rss_bytes);
    if (x->energy_j >= 0)
        ew_json_num(&j, "energy_j", x->energy_j);
    else
        ew_json_null(&j, "energy_j");
    if (x->energy_j >= 0 && r->o.carbon > 0)
        ew_json_num(&j, "carbon_g", ew_carbon_g(x->energy_j, r->o.carbon));
    ew_json_end(&j);
    return ew_json_finish(&j);
}
