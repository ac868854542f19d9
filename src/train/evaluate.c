/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation of a network on a split of a data set. */
#include "train/evaluate.h"

#include <string.h>

#include "base/mem.h"

static ew_err open_loader(const struct ew_loader_opts *loader, const struct ew_graph *net,
                          struct ew_evaluator *out)
{
    struct ew_loader_opts o = *loader;
    o.shuffle = o.drop_last = o.refill = false;
    o.augment = (struct ew_augment){0};
    ew_loader_fit(&o, &net->values[net->inputs[0]].t.shape);
    const ew_err e = ew_loader_open(&o, &out->loader);
    if (e != EW_OK)
        ew_evaluator_close(out);
    else
        out->samples = ew_loader_samples(out->loader);
    return e;
}

ew_err ew_evaluator_open(const struct ew_loader_opts *loader, const struct ew_graph *net,
                         int threads, struct ew_evaluator *out)
{
    const struct ew_shape *scores = &net->values[net->outputs[0]].t.shape;
    char text[EW_SHAPE_TEXT];
    EW_CHECK(scores->rank == 2, EW_ERR_SHAPE,
             "%s: its output is %s, a classifier's is [N, classes]", net->name,
             ew_shape_text(scores, text));
    const struct ew_dataset_info *info = ew_dataset_info(loader->data);
    EW_CHECK(scores->dim[1] >= info->classes, EW_ERR_ARG,
             "%s has %lld classes, data set %s has %lld", net->name, (long long)scores->dim[1],
             info->name, (long long)info->classes);
    *out = (struct ew_evaluator){.batch = loader->batch, .threads = threads};
    EW_TRY(ew_confusion_init(&out->confusion, scores->dim[1]));
    return open_loader(loader, net, out);
}

ew_err ew_evaluator_open_loss(const struct ew_loader_opts *loader, const struct ew_graph *net,
                              int threads, const struct ew_loss *loss, struct ew_evaluator *out)
{
    *out = (struct ew_evaluator){.batch = loader->batch, .threads = threads, .loss = loss};
    return open_loader(loader, net, out);
}

void ew_evaluator_close(struct ew_evaluator *e)
{
    ew_plan_free(e->plan);
    ew_loader_close(e->loader);
    ew_confusion_fini(&e->confusion);
    *e = (struct ew_evaluator){0};
}

void ew_evaluator_use(struct ew_evaluator *e, struct ew_features *features, struct ew_graph *head)
{
    e->features = features;
    e->head = head;
    e->batch = features->batch_size;
    e->samples = features->count;
}

ew_err ew_evaluator_begin(struct ew_evaluator *e, struct ew_graph *net)
{
    const struct ew_plan_given lent =
        e->lender ? ew_plan_lend(e->lender) : (struct ew_plan_given){0};
    const struct ew_plan_opts o = {.mode = EW_PLAN_INFER,
                                   .optimize = true,
                                   .given = &lent,
                                   .backend = {.threads = e->threads}};
    ew_plan_free(e->plan);
    e->plan = NULL;
    e->done = 0;
    e->compared = 0;
    e->loss_sum = 0;
    if (!e->loss)
        ew_confusion_clear(&e->confusion);
    if (e->idle)
        return EW_OK;
    struct ew_graph *g = e->head ? e->head : net;
    EW_TRY(ew_graph_need_batch(g, e->batch));
    EW_TRY(ew_plan_compile(g, &o, &e->plan));
    return e->features ? EW_OK : ew_loader_start(e->loader, 0, 0);
}

static ew_err step_features(struct ew_evaluator *e, bool *more)
{
    struct ew_features *f = e->features;
    int64_t n;
    ew_features_gather(f, (e->done + f->batch_size - 1) / f->batch_size, &n);
    *more = n > 0;
    if (n == 0) {
        ew_plan_free(e->plan);
        e->plan = NULL;
        return EW_OK;
    }
    for (int i = 0; i < f->n; i++)
        memcpy(ew_plan_input(e->plan, i)->data, f->batch[i],
               ew_tensor_bytes(ew_plan_input(e->plan, i)));
    EW_TRY(ew_plan_run(e->plan));
    ew_confusion_add(&e->confusion, ew_plan_output(e->plan, 0)->data, f->batch_labels, n);
    e->done += n;
    return EW_OK;
}

/* Counts a batch: scores against labels, or output against input. */
static void count(struct ew_evaluator *e, const struct ew_batch *b)
{
    const struct ew_tensor *y = ew_plan_output(e->plan, 0);
    if (!e->loss) {
        ew_confusion_add(&e->confusion, y->data, b->labels, b->n);
        return;
    }
    const int64_t size = ew_tensor_count(y) / e->batch;
    for (int64_t i = 0; i < b->n; i++)
        e->loss_sum +=
            ew_loss_of(e->loss, (const float *)y->data + i * size, b->images + i * size, size);
    e->compared += b->n;
}

struct ew_scores ew_evaluator_scores(const struct ew_evaluator *e)
{
    if (!e->loss)
        return ew_confusion_scores(&e->confusion);
    return ew_scores_of_loss(e->compared ? e->loss_sum / (double)e->compared : 0, e->compared);
}

ew_err ew_evaluator_step(struct ew_evaluator *e, bool *more)
{
    *more = false;
    if (e->idle)
        return EW_OK;
    if (e->features)
        return step_features(e, more);
    const struct ew_batch *b;
    EW_TRY(ew_loader_next(e->loader, &b));
    *more = b != NULL;
    if (!b) {
        ew_plan_free(e->plan);
        e->plan = NULL;
        return EW_OK;
    }
    /* copied, since the last batch may be short */
    struct ew_tensor *in = ew_plan_input(e->plan, 0);
    const size_t bytes = ew_tensor_bytes(in), have = bytes / (size_t)e->batch * (size_t)b->n;
    memcpy(in->data, b->images, have);
    memset((char *)in->data + have, 0, bytes - have);
    const ew_err err = ew_plan_run(e->plan);
    if (err == EW_OK)
        count(e, b);
    e->done += b->n;
    ew_loader_release(e->loader, b);
    return err;
}

ew_err ew_evaluator_run(struct ew_evaluator *e, struct ew_graph *net, struct ew_scores *out)
{
    bool more = true;
    EW_TRY(ew_evaluator_begin(e, net));
    while (more)
        EW_TRY(ew_evaluator_step(e, &more));
    *out = ew_evaluator_scores(e);
    return EW_OK;
}
