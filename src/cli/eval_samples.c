/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise eval` for samples: predictions as CSV, the worst mistakes as a table. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "cli/eval_show.h"
#include "record/record.h"
#include "report/text_table.h"

#define LISTED 10 /* mistakes listed in the table */

/* The sample's file, relative to the data set's folder; NULL: none.  `s` owns it. */
static const char *file_of(const struct ew_eval_report *r, int64_t index, struct ew_sample *s)
{
    return ew_dataset_fetch(r->data, r->split, index, s) == EW_OK ? s->file : NULL;
}

static void put_prediction(FILE *f, const struct ew_eval_report *r, const struct ew_eval_sample *p,
                           struct ew_sample *s)
{
    const char *file = file_of(r, p->index, s);
    fprintf(f, "%lld,", (long long)p->index);
    ew_csv_cell(f, file ? file : "");
    putc(',', f);
    ew_csv_cell(f, p->label >= 0 ? ew_eval_class(r, p->label) : "");
    fprintf(f, ",%d,%.6g", p->top[0] == p->label, (double)p->truth_share);
    for (int i = 0; i < EW_EVAL_TOP; i++) {
        putc(',', f);
        if (p->top[i] >= 0)
            ew_csv_cell(f, ew_eval_class(r, p->top[i]));
        fprintf(f, p->top[i] >= 0 ? ",%.6g" : ",", (double)p->share[i]);
    }
    putc('\n', f);
}

ew_err ew_eval_write_predictions(const struct ew_eval_report *r, const char *path)
{
    struct ew_file_out out;
    struct ew_sample s = {0};
    EW_TRY(ew_file_out_open(path, &out));
    fputs("sample,file,truth,correct,truth_probability", out.f);
    for (int i = 1; i <= EW_EVAL_TOP; i++)
        fprintf(out.f, ",class_%d,probability_%d", i, i);
    putc('\n', out.f);
    for (int64_t i = 0; i < r->run->n; i++)
        put_prediction(out.f, r, &r->run->samples[i], &s);
    ew_sample_fini(&s);
    return ew_file_out_commit(&out);
}

/* ---- Mistakes ---- */

static int surest_first(const void *a, const void *b)
{
    const struct ew_eval_sample *x = *(const struct ew_eval_sample *const *)a;
    const struct ew_eval_sample *y = *(const struct ew_eval_sample *const *)b;
    const float p = x->share[0] - x->truth_share, q = y->share[0] - y->truth_share;
    return p > q ? -1 : p < q ? 1 : x->index < y->index ? -1 : 1;
}

ew_err ew_eval_mistakes(const struct ew_eval_report *r, const struct ew_eval_sample ***out,
                        int64_t *n)
{
    const struct ew_eval_sample **list = calloc((size_t)r->run->n + 1, sizeof(*list));
    EW_CHECK(list, EW_ERR_MEMORY, "no memory for %lld mistakes", (long long)r->run->n);
    *n = 0;
    for (int64_t i = 0; i < r->run->n; i++)
        if (r->run->samples[i].label >= 0 && r->run->samples[i].label != r->run->samples[i].top[0])
            list[(*n)++] = &r->run->samples[i];
    qsort(list, (size_t)*n, sizeof(const struct ew_eval_sample *), surest_first);
    *out = list;
    return EW_OK;
}

static void mistake_row(struct ew_table *t, const struct ew_eval_report *r,
                        const struct ew_eval_sample *p, struct ew_sample *s)
{
    const char *file = file_of(r, p->index, s);
    ew_table_cell(t, "%lld", (long long)p->index);
    ew_table_cell(t, "%s", ew_eval_class(r, p->label));
    ew_table_cell(t, "%.1f", 100 * (double)p->truth_share);
    ew_table_cell(t, "%s", ew_eval_class(r, p->top[0]));
    ew_table_cell(t, "%.1f", 100 * (double)p->share[0]);
    ew_table_cell(t, "%s", file ? file : "");
}

ew_err ew_eval_print_mistakes(const struct ew_eval_report *r)
{
    const struct ew_eval_sample **list;
    int64_t n;
    struct ew_sample s = {0};
    struct ew_table t;
    EW_TRY(ew_eval_mistakes(r, &list, &n));
    printf("\nmistakes:  %lld of %lld images%s\n", (long long)n, (long long)r->run->n,
           n ? "; those that the network was most certain of:" : "");
    ew_table_init(&t, "rrlrlrl");
    static const char *const head[] = {"nr", "sample", "truth", "%", "predicted", "%", "file"};
    for (size_t i = 0; n > 0 && i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int64_t i = 0; i < n && i < LISTED; i++) {
        ew_table_cell(&t, "%lld", (long long)i + 1);
        mistake_row(&t, r, list[i], &s);
    }
    free(list);
    ew_sample_fini(&s);
    return ew_table_print(&t, stdout);
}
