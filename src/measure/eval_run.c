/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates a plan on a split of a data set. */
#include "measure/eval_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/progress.h"
#include "graph/layout.h"
#include "model/loss_table.h"

/* Layout of the plan's input. */
struct layout {
    struct ew_shape image; /* [1, H, W, C]; clips: [1, T, H, W, C] */
    bool last;             /* channels last, else first */
};

static ew_err image_layout(const struct ew_eval_target *t, struct layout *out)
{
    char text[EW_SHAPE_TEXT];
    EW_CHECK(t->graph->n_inputs > 0, EW_ERR_SHAPE, "%s: has no input", t->name);
    const struct ew_value *v = &t->graph->values[t->graph->inputs[0]];
    const struct ew_shape *in = &v->t.shape;
    EW_CHECK(t->graph->n_inputs == 1 && (in->rank == 4 || in->rank == 5) && v->t.dtype == EW_F32,
             EW_ERR_SHAPE, "%s: its input is %s of %s, which is not a batch of images or clips",
             t->name, ew_shape_text(in, text), ew_dtype_name(v->t.dtype));
    EW_CHECK(in->dim[0] == t->batch, EW_ERR_SHAPE, "%s: its batch is fixed at %lld, not %lld",
             t->name, (long long)in->dim[0], (long long)t->batch);
    const bool last = v->channels_last || (in->dim[1] != 1 && in->dim[1] != 3);
    *out = (struct layout){.last = last, .image = *in};
    out->image.dim[0] = 1;
    for (int i = 1; !last && i < in->rank; i++)
        out->image.dim[i] = in->dim[i + 1 < in->rank ? i + 1 : 1];
    return EW_OK;
}

/* Copies a batch into the plan's input, transposed if it is channels-first; unused images are 0. */
static void fill(const struct ew_batch *b, const struct layout *l, struct ew_tensor *to)
{
    const int to_first[] = {0, l->image.rank - 1, 1, 2, 3};
    struct ew_tensor from = {.dtype = EW_F32, .shape = l->image};
    from.shape.dim[0] = b->n;
    memcpy(&from.data, &b->images, sizeof(from.data)); /* not modified */
    const size_t have = ew_tensor_bytes(&from);
    struct ew_tensor part = *to;
    part.shape.dim[0] = b->n;
    if (l->last)
        memcpy(to->data, b->images, have);
    else
        ew_tensor_permute(&from, to_first, &part);
    memset((char *)to->data + have, 0, ew_tensor_bytes(to) - have);
}

/* ---- Scores ---- */

/* For networks that end in a softmax: log-probabilities are valid scores. */
static void to_scores(float *row, int64_t classes)
{
    double sum = 0;
    for (int64_t k = 0; k < classes; k++) {
        if (!(row[k] >= 0 && row[k] <= 1.0001F))
            return;
        sum += (double)row[k];
    }
    for (int64_t k = 0; k < classes && fabs(sum - 1) < 1e-3; k++)
        row[k] = logf(fmaxf(row[k], 1e-30F));
}

static double softmax_share(const float *row, int64_t classes, int64_t k)
{
    const int64_t best = ew_best_class(row, classes);
    if (best < 0)
        return (double)NAN;
    const double most = (double)row[best];
    double sum = 0;
    for (int64_t i = 0; i < classes; i++)
        sum += exp((double)row[i] - most);
    return exp((double)row[k] - most) / sum;
}

/* The top scores in order, ties by index; none without a valid row. */
static void find_top(const float *row, int64_t classes, struct ew_eval_sample *s)
{
    const bool answered = ew_best_class(row, classes) >= 0;
    for (int i = 0; i < EW_EVAL_TOP; i++) {
        int32_t best = -1;
        for (int64_t k = 0; answered && k < classes; k++) {
            bool taken = false;
            for (int j = 0; j < i; j++)
                taken |= s->top[j] == k;
            if (!taken && (best < 0 || row[k] > row[best]))
                best = (int32_t)k;
        }
        s->top[i] = best;
        s->share[i] = best >= 0 ? (float)softmax_share(row, classes, best) : 0;
    }
}

static void take_sample(struct ew_eval_run *r, const float *row, int64_t label, int64_t index,
                        bool keep)
{
    const int64_t classes = r->confusion.classes;
    struct ew_eval_sample s = {.index = index, .label = label};
    find_top(row, classes, &s);
    for (int i = 0; i < EW_EVAL_TOP; i++)
        r->in_top += s.top[i] >= 0 && s.top[i] == label;
    if (label >= 0 && label < classes)
        s.truth_share = (float)softmax_share(row, classes, label);
    if (keep)
        r->samples[r->n++] = s;
}

/* ---- Running ---- */

/* Input and output have the same layout, so elements correspond. */
static void take_errors(const struct ew_eval_target *t, const struct ew_batch *b,
                        struct ew_eval_run *r)
{
    const float *x = ew_plan_input(t->plan, 0)->data, *y = ew_plan_output(t->plan, 0)->data;
    const int64_t size = ew_tensor_count(ew_plan_input(t->plan, 0)) / t->batch;
    for (int64_t i = 0; i < b->n; i++)
        r->errors[r->n++] =
            (struct ew_eval_error){.index = b->index[i],
                                   .label = b->labels[i],
                                   .error = ew_loss_of(r->loss, y + i * size, x + i * size, size)};
}

static ew_err run_batch(const struct ew_eval_target *t, const struct ew_batch *b,
                        const struct layout *l, bool keep, struct ew_eval_run *r)
{
    fill(b, l, ew_plan_input(t->plan, 0));
    EW_TRY(ew_plan_run(t->plan));
    if (r->errors) {
        take_errors(t, b, r);
        return EW_OK;
    }
    float *scores = ew_plan_output(t->plan, 0)->data;
    if (!r->loss->of_labels) /* elementwise losses need the raw outputs, before to_scores */
        ew_confusion_add(&r->confusion, scores, b->labels, b->n);
    for (int64_t i = 0; i < b->n; i++) {
        float *row = scores + i * r->confusion.classes;
        to_scores(row, r->confusion.classes);
        take_sample(r, row, b->labels[i], b->index[i], keep);
    }
    if (r->loss->of_labels)
        ew_confusion_add(&r->confusion, scores, b->labels, b->n);
    return EW_OK;
}

static ew_err run_all(const struct ew_eval_target *t, struct ew_loader *loader,
                      const struct layout *l, bool keep, struct ew_progress *bar,
                      struct ew_eval_run *r)
{
    int64_t done = 0;
    EW_TRY(ew_loader_start(loader, 0, 0));
    for (;;) {
        const struct ew_batch *b;
        EW_TRY(ew_loader_next(loader, &b));
        if (!b)
            return EW_OK;
        const ew_err e = run_batch(t, b, l, keep, r);
        done += b->n;
        ew_loader_release(loader, b);
        EW_TRY(e);
        ew_progress_update(bar, done);
    }
}

/* The number of scores of each sample, which must do for the classes of the data. */
static ew_err count_classes(const struct ew_eval_target *t, const struct ew_dataset_info *info,
                            int64_t *out)
{
    const struct ew_tensor *scores = ew_plan_output(t->plan, 0);
    const struct ew_shape *s = &scores->shape;
    char text[EW_SHAPE_TEXT];
    const bool alone = s->rank == 1 && t->batch == 1;
    bool rows = alone || (s->rank > 1 && s->dim[0] == t->batch);
    *out = ew_tensor_count(scores) / t->batch;
    for (int i = alone ? 0 : 1; i < s->rank; i++)
        rows = rows && (s->dim[i] == 1 || s->dim[i] == *out);
    EW_CHECK(rows && *out >= 2 && scores->dtype == EW_F32, EW_ERR_SHAPE,
             "%s: its output is %s of %s, not a row of scores for each image", t->name,
             ew_shape_text(s, text), ew_dtype_name(scores->dtype));
    EW_CHECK(*out >= info->classes, EW_ERR_ARG, "%s has %lld classes, data set %s has %lld",
             t->name, (long long)*out, info->name, (long long)info->classes);
    return EW_OK;
}

/* Allocates results for n samples. */
static ew_err make_room(const struct ew_eval_target *t, const struct ew_dataset *data, int64_t n,
                        bool keep, struct ew_eval_run *out)
{
    int64_t classes;
    if (ew_net_reconstructs(t->graph)) {
        out->errors = calloc((size_t)n + 1, sizeof(*out->errors));
        EW_CHECK(out->errors, EW_ERR_MEMORY, "no memory for %lld errors", (long long)n);
        return EW_OK;
    }
    EW_TRY(count_classes(t, ew_dataset_info(data), &classes));
    EW_TRY(ew_confusion_init(&out->confusion, classes));
    out->confusion.loss = out->loss->of_labels ? NULL : out->loss;
    out->samples = keep ? calloc((size_t)n + 1, sizeof(*out->samples)) : NULL;
    EW_CHECK(!keep || out->samples, EW_ERR_MEMORY, "no memory for %lld predictions", (long long)n);
    return EW_OK;
}

ew_err ew_eval_run(const struct ew_eval_target *t, const struct ew_loader_opts *set, bool keep,
                   FILE *talk, struct ew_eval_run *out)
{
    struct layout l = {0};
    struct ew_progress progress = {0};
    struct ew_loader_opts o = *set;
    struct ew_loader *loader = NULL;
    *out = (struct ew_eval_run){.loss = t->loss ? t->loss : ew_loss_chosen(0, t->graph)};
    EW_TRY(image_layout(t, &l));
    o.batch = t->batch;
    o.shuffle = o.drop_last = o.refill = false;
    o.augment = (struct ew_augment){0};
    ew_loader_fit(&o, &l.image);
    EW_TRY(ew_loader_open(&o, &loader));
    const int64_t n = ew_loader_samples(loader);
    ew_err e = make_room(t, o.data, n, keep, out);
    ew_progress_begin(&progress, talk, "eval", n);
    if (e == EW_OK)
        e = run_all(t, loader, &l, keep, &progress, out);
    ew_progress_end(&progress);
    out->bad = ew_loader_counts(loader).bad;
    ew_loader_close(loader);
    if (e == EW_OK && n > 0 && out->bad == n)
        e = ew_fail(EW_ERR_FORMAT, "%s: none of the %lld %s samples could be read",
                    ew_dataset_info(o.data)->name, (long long)n, ew_split_name(o.split));
    return e;
}

void ew_eval_run_fini(struct ew_eval_run *r)
{
    ew_confusion_fini(&r->confusion);
    free(r->samples);
    free(r->errors);
    *r = (struct ew_eval_run){0};
}
