/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise eval`.  The picture is in eval_picture.c. */
#include "cli/eval_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "record/record.h"
#include "report/text_table.h"

#define MATRIX_CLASSES 25 /* larger ones do not fit a terminal */

const char *ew_eval_class(const struct ew_eval_report *r, int64_t k)
{
    return k >= 0 && k < r->n_classes ? r->classes[k] : "-";
}

double ew_eval_top(const struct ew_eval_report *r)
{
    const int64_t n = r->run->confusion.total;
    return n > 0 ? (double)r->run->in_top / (double)n : 0;
}

/* ---- Text ---- */

/* Classes with samples, lowest F1 first. */
struct ranked {
    int64_t k;
    struct ew_scores s;
};

static int worse_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->s.f1 < y->s.f1 || x->s.f1 > y->s.f1)
        return x->s.f1 < y->s.f1 ? -1 : 1;
    return x->k < y->k ? -1 : 1;
}

static ew_err rank_classes(const struct ew_eval_report *r, struct ranked **out, int64_t *n)
{
    const int64_t classes = r->run->confusion.classes;
    struct ranked *list = calloc((size_t)classes, sizeof(*list));
    EW_CHECK(list, EW_ERR_MEMORY, "no memory for %lld classes", (long long)classes);
    *n = 0;
    for (int64_t k = 0; k < classes; k++) {
        const struct ew_scores s = ew_confusion_class(&r->run->confusion, k);
        if (s.samples > 0 || s.precision > 0)
            list[(*n)++] = (struct ranked){k, s};
    }
    if (r->top_classes > 0 && *n > r->top_classes) {
        qsort(list, (size_t)*n, sizeof(*list), worse_first);
        *n = r->top_classes;
    }
    *out = list;
    return EW_OK;
}

static ew_err print_classes(const struct ew_eval_report *r)
{
    struct ranked *list = NULL;
    int64_t n = 0;
    struct ew_table t;
    EW_TRY(rank_classes(r, &list, &n));
    ew_table_init(&t, "rlrrrr");
    static const char *const head[] = {"class", "name", "samples", "precision", "recall", "F1"};
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int64_t i = 0; i < n; i++) {
        ew_table_cell(&t, "%lld", (long long)list[i].k);
        ew_table_cell(&t, "%s", ew_eval_class(r, list[i].k));
        ew_table_cell(&t, "%lld", (long long)list[i].s.samples);
        ew_table_cell(&t, "%.4f", list[i].s.precision);
        ew_table_cell(&t, "%.4f", list[i].s.recall);
        ew_table_cell(&t, "%.4f", list[i].s.f1);
    }
    free(list);
    return ew_table_print(&t, stdout);
}

static ew_err print_matrix(const struct ew_eval_report *r)
{
    const struct ew_confusion *c = &r->run->confusion;
    char align[MATRIX_CLASSES + 2];
    if (c->classes > MATRIX_CLASSES) {
        printf("%lld classes: too many for a table; --csv and --png write it\n",
               (long long)c->classes);
        return EW_OK;
    }
    memset(align, 'r', sizeof(align));
    align[0] = 'l';
    align[c->classes + 1] = '\0';
    struct ew_table t;
    ew_table_init(&t, align);
    ew_table_cell(&t, "truth \\ predicted");
    for (int64_t k = 0; k < c->classes; k++)
        ew_table_cell(&t, "%lld", (long long)k);
    for (int64_t i = 0; i < c->classes; i++) {
        ew_table_cell(&t, "%lld %s", (long long)i, ew_eval_class(r, i));
        for (int64_t k = 0; k < c->classes; k++) {
            const int64_t n = c->count[i * c->classes + k];
            ew_table_cell(&t, n ? "%lld" : ".", (long long)n);
        }
    }
    return ew_table_print(&t, stdout);
}

ew_err ew_eval_print(const struct ew_eval_report *r)
{
    const struct ew_scores s = ew_confusion_scores(&r->run->confusion);
    EW_TRY(print_classes(r));
    putchar('\n');
    EW_TRY(print_matrix(r));
    char count[EW_TEXT_CHARS], all[EW_TEXT_CHARS];
    const struct ew_dataset_info *d = ew_dataset_info(r->data);
    const char *kind = ew_text_samples(d->frames > 0);
    printf("\n%s on %s (%s), %s %s\n", r->network, d->name, ew_split_name(r->split),
           ew_text_count(s.samples, count), kind);
    double low, high;
    ew_confusion_interval(&r->run->confusion, &low, &high);
    printf("accuracy:  %.2f%% (95%% interval %.1f to %.1f), %s %.4f\n", 100 * s.accuracy, 100 * low,
           100 * high, r->run->loss->name, s.loss);
    const int64_t unanswered = ew_confusion_unanswered(&r->run->confusion);
    if (unanswered)
        printf("no answer: %s of %s %s, whose scores are NaN; they count as wrong\n",
               ew_text_count(unanswered, count), ew_text_count(s.samples, all), kind);
    if (r->run->confusion.classes > EW_EVAL_TOP)
        printf("top 5:     %.2f%%\n", 100 * ew_eval_top(r));
    printf("macro:     precision %.4f, recall %.4f, F1 %.4f\n", s.precision, s.recall, s.f1);
    const double rate = r->seconds > 0 ? (double)s.samples / r->seconds : 0;
    printf("speed:     %s %s/s, loading included\n", ew_text_count((int64_t)rate, count), kind);
    if (r->run->bad)
        printf("samples:   %lld could not be read\n", (long long)r->run->bad);
    return EW_OK;
}

/* ---- JSON and CSV ---- */

ew_err ew_eval_print_json(const struct ew_eval_report *r)
{
    const struct ew_confusion *c = &r->run->confusion;
    const struct ew_scores s = ew_confusion_scores(c);
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "network", r->network);
    ew_json_str(&j, "data", ew_dataset_info(r->data)->name);
    ew_json_str(&j, "split", ew_split_name(r->split));
    ew_json_int(&j, "images", s.samples);
    ew_json_int(&j, "bad_samples", r->run->bad);
    ew_json_int(&j, "unanswered", ew_confusion_unanswered(c));
    ew_json_num(&j, "accuracy", s.accuracy);
    double low, high;
    ew_confusion_interval(c, &low, &high);
    ew_json_num(&j, "accuracy_low", low);
    ew_json_num(&j, "accuracy_high", high);
    ew_json_num(&j, "top5_accuracy", ew_eval_top(r));
    ew_json_num(&j, "precision", s.precision);
    ew_json_num(&j, "recall", s.recall);
    ew_json_num(&j, "f1", s.f1);
    ew_json_str(&j, "loss_name", r->run->loss->name);
    ew_json_num(&j, "loss", s.loss);
    ew_json_num(&j, "images_per_s", r->seconds > 0 ? (double)s.samples / r->seconds : 0);
    ew_json_array(&j, "classes");
    for (int64_t k = 0; k < c->classes; k++) {
        const struct ew_scores one = ew_confusion_class(c, k);
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", ew_eval_class(r, k));
        ew_json_int(&j, "images", one.samples);
        ew_json_num(&j, "precision", one.precision);
        ew_json_num(&j, "recall", one.recall);
        ew_json_num(&j, "f1", one.f1);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_array(&j, "confusion");
    for (int64_t i = 0; i < c->classes; i++) {
        ew_json_array(&j, NULL);
        for (int64_t k = 0; k < c->classes; k++)
            ew_json_int(&j, NULL, c->count[i * c->classes + k]);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_eval_write_csv(const struct ew_eval_report *r, const char *path)
{
    const struct ew_confusion *c = &r->run->confusion;
    struct ew_file_out out;
    EW_TRY(ew_file_out_open(path, &out));
    fputs("truth", out.f);
    for (int64_t k = 0; k < c->classes; k++) {
        putc(',', out.f);
        ew_csv_cell(out.f, ew_eval_class(r, k));
    }
    putc('\n', out.f);
    for (int64_t i = 0; i < c->classes; i++) {
        ew_csv_cell(out.f, ew_eval_class(r, i));
        for (int64_t k = 0; k < c->classes; k++)
            fprintf(out.f, ",%lld", (long long)c->count[i * c->classes + k]);
        putc('\n', out.f);
    }
    return ew_file_out_commit(&out);
}
