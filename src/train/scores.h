/* SPDX-License-Identifier: Apache-2.0 */
/* Classification scores: the confusion matrix and metrics derived from it. */
#ifndef EW_TRAIN_SCORES_H
#define EW_TRAIN_SCORES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/loss_table.h"

struct ew_confusion {
    int64_t classes;
    int64_t *count;      /* [truth, prediction] */
    int64_t *unanswered; /* [truth]: samples with a NaN among their scores; allocated behind
                          * count */
    int64_t total, correct;
    const struct ew_loss *loss; /* between scores and the one-hot label; NULL: cross-entropy */
    double loss_sum;            /* over samples */
};

ew_err ew_confusion_init(struct ew_confusion *c, int64_t classes);
void ew_confusion_fini(struct ew_confusion *c);
void ew_confusion_clear(struct ew_confusion *c);

/* Adds `n` samples: scores [n, classes] and labels.  Sums their loss.  A sample without an answer
 * counts as wrong. */
void ew_confusion_add(struct ew_confusion *c, const float *scores, const int64_t *labels,
                      int64_t n);

/* Number of int64 counts in a confusion matrix, for reductions: count and unanswered. */
int64_t ew_confusion_size(const struct ew_confusion *c);
int64_t ew_confusion_unanswered(const struct ew_confusion *c);

/* The class with the highest score, the first of equals; -1 (no answer) if a score is NaN, since a
 * softmax would make all of them NaN. */
int64_t ew_best_class(const float *scores, int64_t classes);

/* Scores of one class, or averages over all; 0 to 1; 0 / 0 is 0. */
struct ew_scores {
    double accuracy, precision, recall, f1;
    double loss;     /* averages only: by ew_confusion.loss, or reconstruction loss */
    int64_t samples; /* of the class, or in all */
};

/* Macro averages over all classes that occur as truth or prediction. */
struct ew_scores ew_confusion_scores(const struct ew_confusion *c);
struct ew_scores ew_confusion_class(const struct ew_confusion *c, int64_t k);

/* Bounds of the accuracy on all such data, with 95 % confidence, if c's samples are a random sample
 * of them: Wilson's score interval, which also holds for few samples and for 0 or 100 %. */
void ew_confusion_interval(const struct ew_confusion *c, double *low, double *high);

/* Scores without classes: the loss alone, the rest is NAN. */
struct ew_scores ew_scores_of_loss(double loss, int64_t samples);

#endif
