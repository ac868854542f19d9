/* SPDX-License-Identifier: Apache-2.0 */
/* A trained classifier, and data sets preprocessed for it. */
#include "measure/classifier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "train/adapt.h"

#define EVAL_BATCH 32 /* batch: large enough for speed, small enough for a board */

void ew_classifier_fini(struct ew_classifier *k)
{
    ew_network_close(&k->network);
    *k = (struct ew_classifier){0};
}

/* Images as inputs; all outputs. */
static ew_err load(const char *what, const struct ew_image_opts *o,
                   const struct ew_network_open_opts *how, struct ew_classifier *out)
{
    struct ew_network *n = &out->network;
    *out = (struct ew_classifier){0};
    EW_TRY(ew_network_open(what, how, n));
    out->net = n->graph;
    if (n->random)
        EW_WARN("%s has random weights: its scores mean nothing", what);
    EW_TRY(ew_image_opts_apply(o, n->graph, &n->arena, &n->card));
    out->prep = n->card.prep;
    if (n->engine)
        return EW_OK;
    EW_TRY(ew_adapt_images(out->net));
    return ew_image_card_put(out->net, &n->card);
}

ew_err ew_classifier_load_whole(const char *what, const struct ew_image_opts *o,
                                struct ew_classifier *out)
{
    return load(what, o, &(struct ew_network_open_opts){.seed = 1}, out);
}

ew_err ew_classifier_load(const char *what, const struct ew_image_opts *o,
                          struct ew_classifier *out)
{
    EW_TRY(ew_classifier_load_whole(what, o, out));
    return ew_adapt_scores(out->net);
}

ew_err ew_classifier_open(const char *what, const struct ew_image_opts *o, int threads,
                          struct ew_classifier *out)
{
    const struct ew_network_open_opts how = {.seed = 1, .engines = true, .threads = threads};
    EW_TRY(load(what, o, &how, out));
    return out->network.engine ? EW_OK : ew_adapt_scores(out->net);
}

/* ---- Images ---- */

/* Splits "DATA:N"; the name may contain colons ("synthetic:count=10") and may be a path. */
static ew_err split_count(const char *what, char **name, int64_t *count)
{
    struct stat st;
    const char *colon = strrchr(what, ':');
    char *end = NULL;
    const long long n = colon ? strtoll(colon + 1, &end, 10) : 0;
    const bool counted = colon && end != colon + 1 && *end == '\0' && n > 0 && stat(what, &st) != 0;
    *name = counted ? strndup(what, (size_t)(colon - what)) : strdup(what);
    *count = counted ? (int64_t)n : 0;
    EW_CHECK(*name, EW_ERR_MEMORY, "no memory");
    return EW_OK;
}

static ew_err choose_split(const struct ew_dataset_info *d, enum ew_images_for use,
                           enum ew_split *out)
{
    const bool train_first = use == EW_FOR_TRAINING || use == EW_FOR_CALIBRATION;
    const bool any = use == EW_FOR_CALIBRATION || use == EW_FOR_COMPARISON;
    const enum ew_split order[] = {train_first ? EW_SPLIT_TRAIN : EW_SPLIT_TEST,
                                   train_first ? EW_SPLIT_TEST : EW_SPLIT_TRAIN,
                                   EW_SPLIT_UNLABELLED};
    for (size_t i = 0; i < EW_COUNT(order); i++) {
        *out = order[i];
        if (d->count[*out] && (any || *out != EW_SPLIT_UNLABELLED))
            return EW_OK;
    }
    EW_CHECK(!d->count[EW_SPLIT_UNLABELLED], EW_ERR_ARG,
             "%s: its images have no classes, which accuracy needs: a folder per class or "
             "labels.txt",
             d->name);
    return ew_fail(EW_ERR_ARG, "%s: has no images", d->name);
}

/* Warns if a class has another index in the network than in the data set: labels are indices. */
static void compare_names(const struct ew_dataset *data, const struct ew_classifier *k)
{
    const struct ew_image_card *card = &k->network.card;
    const int64_t n = ew_dataset_info(data)->classes;
    for (int i = 0; i < card->n_classes; i++)
        for (int64_t j = 0; j < n; j++)
            if (j != i && strcmp(card->classes[i], ew_dataset_class(data, j)) == 0) {
                EW_WARN(
                    "'%s' is class %d of %s, but class %lld of %s: classes are compared by index",
                    card->classes[i], i, k->net->name, (long long)j, ew_dataset_info(data)->name);
                return;
            }
}

ew_err ew_image_set_of(const struct ew_dataset *data, const struct ew_classifier *k,
                       enum ew_images_for use, int64_t count, struct ew_image_set *out)
{
    enum ew_split split;
    *out = (struct ew_image_set){.data = data};
    EW_TRY(choose_split(ew_dataset_info(data), use, &split));
    if (use == EW_FOR_EVALUATION)
        compare_names(data, k);
    out->loader = (struct ew_loader_opts){
        .data = data, .split = split, .batch = EVAL_BATCH, .workers = 1, .prep = k->prep};
    EW_TRY(ew_preprocess_check(&k->prep, k->net->name));
    return ew_loader_subsample(&out->loader, count, &out->subset);
}

ew_err ew_image_set_open(const char *what, const struct ew_classifier *k, enum ew_images_for use,
                         struct ew_image_set *out)
{
    EW_CLEANUP(ew_free_ptr) char *name = NULL;
    struct ew_dataset *data;
    int64_t count;
    *out = (struct ew_image_set){0};
    EW_TRY(split_count(what, &name, &count));
    EW_TRY(ew_dataset_open(name, &data));
    const ew_err e = ew_image_set_of(data, k, use, count, out);
    out->own = data;
    out->asked = count;
    return e;
}

#define CALIBRATION_IMAGES 1000

ew_err ew_image_set_open_calib(const char *what, const struct ew_classifier *k,
                               struct ew_image_set *out)
{
    char text[4096];
    const char *colon = strrchr(what, ':');
    const bool has = colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1);
    snprintf(text, sizeof(text), "%s:%d", what, CALIBRATION_IMAGES);
    return ew_image_set_open(has ? what : text, k, EW_FOR_CALIBRATION, out);
}

void ew_image_set_close(struct ew_image_set *s)
{
    ew_dataset_close(s->own);
    free(s->subset);
    *s = (struct ew_image_set){0};
}
