/* SPDX-License-Identifier: Apache-2.0 */
/* The confusion matrix and the scores that follow from it. */
#include "train/scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CLASSES 20000 /* a matrix of 3.2 GB */

ew_err ew_confusion_init(struct ew_confusion *c, int64_t classes)
{
    EW_CHECK(classes >= 1 && classes <= MAX_CLASSES, EW_ERR_LIMIT,
             "%lld classes: a confusion matrix has 1 to %d", (long long)classes, MAX_CLASSES);
    *c = (struct ew_confusion){.classes = classes};
    c->count = calloc((size_t)ew_confusion_size(c), sizeof(*c->count));
    EW_CHECK(c->count, EW_ERR_MEMORY, "no memory for a confusion matrix of %lld classes",
             (long long)classes);
    c->unanswered = c->count + classes * classes;
    return EW_OK;
}

int64_t ew_confusion_size(const struct ew_confusion *c)
{
    return c->classes * (c->classes + 1);
}

int64_t ew_confusion_unanswered(const struct ew_confusion *c)
{
    int64_t n = 0;
    for (int64_t k = 0; k < c->classes; k++)
        n += c->unanswered[k];
    return n;
}

void ew_confusion_fini(struct ew_confusion *c)
{
    free(c->count);
    *c = (struct ew_confusion){0};
}

void ew_confusion_clear(struct ew_confusion *c)
{
    memset(c->count, 0, (size_t)ew_confusion_size(c) * sizeof(*c->count));
    c->total = c->correct = 0;
    c->loss_sum = 0;
}

int64_t ew_best_class(const float *scores, int64_t classes)
{
    int64_t best = 0;
    for (int64_t k = 0; k < classes; k++) {
        if (isnan(scores[k]))
            return -1;
        best = scores[k] > scores[best] ? k : best;
    }
    return best;
}

static double cross_entropy(const float *scores, int64_t classes, int64_t label)
{
    double most = (double)scores[0], sum = 0;
    for (int64_t k = 1; k < classes; k++)
        most = fmax(most, (double)scores[k]);
    for (int64_t k = 0; k < classes; k++)
        sum += exp((double)scores[k] - most);
    return most + log(sum) - (double)scores[label];
}

void ew_confusion_add(struct ew_confusion *c, const float *scores, const int64_t *labels, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float *row = scores + i * c->classes;
        const int64_t label = labels[i];
        if (label < 0 || label >= c->classes)
            continue; /* unlabelled */
        const int64_t best = ew_best_class(row, c->classes);
        if (best < 0)
            c->unanswered[label]++;
        else
            c->count[label * c->classes + best]++;
        c->total++;
        c->correct += best == label;
        c->loss_sum += c->loss ? ew_loss_of_label(c->loss, row, c->classes, label)
                               : cross_entropy(row, c->classes, label);
    }
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

struct ew_scores ew_confusion_class(const struct ew_confusion *c, int64_t k)
{
    double truth = (double)c->unanswered[k], predicted = 0;
    for (int64_t i = 0; i < c->classes; i++) {
        truth += (double)c->count[k * c->classes + i];
        predicted += (double)c->count[i * c->classes + k];
    }
    const double hit = (double)c->count[k * c->classes + k];
    struct ew_scores s = {.precision = share(hit, predicted),
                          .recall = share(hit, truth),
                          .accuracy = share(hit, truth),
                          .samples = (int64_t)truth};
    s.f1 = share(2 * hit, truth + predicted);
    return s;
}

struct ew_scores ew_confusion_scores(const struct ew_confusion *c)
{
    struct ew_scores sum = {0};
    double present = 0;
    for (int64_t k = 0; k < c->classes; k++) {
        const struct ew_scores s = ew_confusion_class(c, k);
        bool occurs = s.samples > 0;
        for (int64_t i = 0; i < c->classes && !occurs; i++)
            occurs = c->count[i * c->classes + k] > 0;
        if (!occurs)
            continue;
        present++;
        sum.precision += s.precision;
        sum.recall += s.recall;
        sum.f1 += s.f1;
    }
    return (struct ew_scores){.accuracy = share((double)c->correct, (double)c->total),
                              .precision = share(sum.precision, present),
                              .recall = share(sum.recall, present),
                              .f1 = share(sum.f1, present),
                              .loss = share(c->loss_sum, (double)c->total),
                              .samples = c->total};
}

void ew_confusion_interval(const struct ew_confusion *c, double *low, double *high)
{
    const double z = 1.959964, n = (double)c->total, p = share((double)c->correct, n);
    if (c->total == 0) {
        *low = 0;
        *high = 1;
        return;
    }
    const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
    const double half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    *low = c->correct > 0 ? middle - half : 0;
    *high = c->correct < c->total ? middle + half : 1;
}

struct ew_scores ew_scores_of_loss(double loss, int64_t samples)
{
    const double absent = (double)NAN;
    return (struct ew_scores){.accuracy = absent,
                              .precision = absent,
                              .recall = absent,
                              .f1 = absent,
                              .loss = loss,
                              .samples = samples};
}
