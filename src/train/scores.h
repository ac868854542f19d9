/* SPDX-License-Identifier: Apache-2.0 */
/* How well a classifier does: the confusion matrix, and what follows from it. */
#ifndef EW_TRAIN_SCORES_H
#define EW_TRAIN_SCORES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/loss_table.h"

struct ew_confusion {
    int64_t classes;
    int64_t *count;      /* [truth, prediction] */
    int64_t *unanswered; /* [truth]: samples whose scores hold a NaN; behind count */
    int64_t total, correct;
    const struct ew_loss
        *loss;       /* of scores and the label's row of 0 and a 1; NULL: cross-entropy */
    double loss_sum; /* over samples */
};

ew_err ew_confusion_init(struct ew_confusion *c, int64_t classes);
void ew_confusion_fini(struct ew_confusion *c);
void ew_confusion_clear(struct ew_confusion *c);

/* Adds `n` samples: scores [n, classes] and their labels; their loss is summed too.  A sample
 * without an answer counts as wrong. */
void ew_confusion_add(struct ew_confusion *c, const float *scores, const int64_t *labels,
                      int64_t n);

/* Counts of a confusion matrix, for whoever adds them up: count and unanswered. */
int64_t ew_confusion_size(const struct ew_confusion *c);
int64_t ew_confusion_unanswered(const struct ew_confusion *c);

/* The class with the highest score, the first of equal ones; -1, no answer, where one of the scores
 * is NaN: their softmax is NaN throughout, and a network that ends in one must count the same. */
int64_t ew_best_class(const float *scores, int64_t classes);

/* One class, or the averages over all; shares, 0 to 1.  A share of nothing is 0. */
struct ew_scores {
    double accuracy, precision, recall, f1;
    double loss;     /* averages only: by ew_confusion.loss, or of reconstruction */
    int64_t samples; /* of the class, or in all */
};

/* Averages over classes are macro: every class that occurs, as truth or as prediction, counts the
 * same. */
struct ew_scores ew_confusion_scores(const struct ew_confusion *c);
struct ew_scores ew_confusion_class(const struct ew_confusion *c, int64_t k);

/* Of a network that tells no classes apart: the loss, and the rest is absent (NAN). */
struct ew_scores ew_scores_of_loss(double loss, int64_t samples);

#endif
