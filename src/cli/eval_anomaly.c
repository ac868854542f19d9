/* SPDX-License-Identifier: Apache-2.0 */
/* Reconstruction errors, and the ROC curve of anomaly detection by them. */
#include "cli/eval_anomaly.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/canvas.h"
#include "data/image_file.h"
#include "record/record.h"
#include "report/text_table.h"

/* ---- The curve ---- */

static ew_err mark_class(const struct ew_eval_report *r, const char *name, size_t length,
                         bool *anomaly)
{
    const int64_t classes = ew_dataset_info(r->data)->classes;
    for (int64_t k = 0; k < classes; k++) {
        const char *is = ew_dataset_class(r->data, k);
        if (strlen(is) == length && strncmp(is, name, length) == 0) {
            anomaly[k] = true;
            return EW_OK;
        }
    }
    return ew_fail(EW_ERR_USAGE, "--anomaly: %s has no class %.*s", ew_dataset_info(r->data)->name,
                   (int)length, name);
}

ew_err ew_anomaly_curve(const struct ew_eval_report *r, const struct ew_anomaly_opts *o,
                        struct ew_roc *out)
{
    const struct ew_eval_run *run = r->run;
    const int64_t classes = ew_dataset_info(r->data)->classes;
    *out = (struct ew_roc){0};
    if (!o->classes)
        return EW_OK;
    EW_CLEANUP(ew_free_ptr) bool *anomaly = calloc((size_t)classes + 1, sizeof(*anomaly));
    EW_CLEANUP(ew_free_ptr)
    struct ew_roc_sample *samples = calloc((size_t)run->n + 1, sizeof(*samples));
    EW_CHECK(anomaly && samples, EW_ERR_MEMORY, "no memory for %lld samples", (long long)run->n);
    for (const char *at = o->classes; *at;) {
        const size_t length = strcspn(at, ",");
        EW_TRY(mark_class(r, at, length, anomaly));
        at += length + (at[length] == ',');
    }
    int64_t n = 0;
    for (int64_t i = 0; i < run->n; i++)
        if (run->errors[i].label >= 0 && run->errors[i].label < classes)
            samples[n++] =
                (struct ew_roc_sample){run->errors[i].error, anomaly[run->errors[i].label]};
    return ew_roc_init(samples, n, o->false_alarms, out);
}

/* ---- Text and JSON ---- */

struct class_errors {
    int64_t n;
    double sum, most;
};

static double mean_of(const struct class_errors *c)
{
    return c->n ? c->sum / (double)c->n : 0;
}

/* Sums by class; the last element is for all classes.  Release with free(). */
static ew_err sum_up(const struct ew_eval_report *r, struct class_errors **out)
{
    const int64_t classes = ew_dataset_info(r->data)->classes;
    struct class_errors *list = calloc((size_t)classes + 1, sizeof(*list));
    EW_CHECK(list, EW_ERR_MEMORY, "no memory for %lld classes", (long long)classes);
    for (int64_t i = 0; i < r->run->n; i++) {
        const struct ew_eval_error *e = &r->run->errors[i];
        const int64_t to[] = {e->label >= 0 && e->label < classes ? e->label : classes, classes};
        for (int k = 0; k < (to[0] == classes ? 1 : 2); k++) {
            list[to[k]].n++;
            list[to[k]].sum += e->error;
            list[to[k]].most = fmax(list[to[k]].most, e->error);
        }
    }
    *out = list;
    return EW_OK;
}

static ew_err print_classes(const struct ew_eval_report *r, const struct class_errors *list)
{
    struct ew_table t;
    ew_table_init(&t, "lrrr");
    static const char *const head[] = {"class", "samples", "mean error", "largest"};
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int64_t k = 0; k < ew_dataset_info(r->data)->classes; k++) {
        ew_table_cell(&t, "%s", ew_eval_class(r, k));
        ew_table_cell(&t, "%lld", (long long)list[k].n);
        ew_table_cell(&t, "%.5f", mean_of(&list[k]));
        ew_table_cell(&t, "%.5f", list[k].most);
    }
    return ew_table_print(&t, stdout);
}

static void print_point(const char *name, const struct ew_roc_point *p, const char *why)
{
    if (!isfinite(p->threshold))
        printf("%-10s no threshold finds any anomaly%s\n", name, why);
    else
        printf("%-10s %.6g finds %.2f%% of the anomalies with %.2f%% false alarms%s\n", name,
               p->threshold, 100 * p->found, 100 * p->false_alarms, why);
}

ew_err ew_anomaly_print(const struct ew_eval_report *r, const struct ew_roc *roc)
{
    const int64_t classes = ew_dataset_info(r->data)->classes;
    EW_CLEANUP(ew_free_ptr) struct class_errors *list = NULL;
    char count[EW_TEXT_CHARS];
    EW_TRY(sum_up(r, &list));
    EW_TRY(print_classes(r, list));
    printf("\n%s on %s (%s), %s samples\n", r->network, ew_dataset_info(r->data)->name,
           ew_split_name(r->split), ew_text_count(r->run->n, count));
    printf("error:     %.6f, %s, output against input\n", mean_of(&list[classes]),
           r->run->loss->help);
    if (roc->n) {
        printf("anomalies: %lld of %lld samples\n", (long long)roc->anomalies,
               (long long)(roc->anomalies + roc->normal));
        printf("AUC:       %.4f of the ROC curve, standard error %.4f\n", roc->area,
               roc->area_error);
        print_point("threshold:", &roc->best, " (largest difference)");
        print_point("threshold:", &roc->quiet, " (--false-alarms)");
    }
    const double rate = r->seconds > 0 ? (double)r->run->n / r->seconds : 0;
    printf("speed:     %s samples/s, loading included\n", ew_text_count((int64_t)rate, count));
    if (r->run->bad)
        printf("samples:   %lld could not be read\n", (long long)r->run->bad);
    return EW_OK;
}

static void json_point(struct ew_json *j, const char *key, const struct ew_roc_point *p)
{
    ew_json_object(j, key);
    ew_json_num(j, "threshold", p->threshold);
    ew_json_num(j, "found", p->found);
    ew_json_num(j, "false_alarms", p->false_alarms);
    ew_json_end(j);
}

ew_err ew_anomaly_print_json(const struct ew_eval_report *r, const struct ew_roc *roc)
{
    const int64_t classes = ew_dataset_info(r->data)->classes;
    EW_CLEANUP(ew_free_ptr) struct class_errors *list = NULL;
    struct ew_json j;
    EW_TRY(sum_up(r, &list));
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "network", r->network);
    ew_json_str(&j, "data", ew_dataset_info(r->data)->name);
    ew_json_str(&j, "split", ew_split_name(r->split));
    ew_json_int(&j, "samples", r->run->n);
    ew_json_int(&j, "bad_samples", r->run->bad);
    ew_json_num(&j, "error", mean_of(&list[classes]));
    if (roc->n) {
        ew_json_int(&j, "anomalies", roc->anomalies);
        ew_json_num(&j, "area", roc->area);
        ew_json_num(&j, "area_error", roc->area_error);
        json_point(&j, "best", &roc->best);
        json_point(&j, "quiet", &roc->quiet);
    }
    ew_json_array(&j, "classes");
    for (int64_t k = 0; k < classes; k++) {
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", ew_eval_class(r, k));
        ew_json_int(&j, "samples", list[k].n);
        ew_json_num(&j, "error", mean_of(&list[k]));
        ew_json_num(&j, "largest", list[k].most);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- Files ---- */

static ew_err need_curve(const struct ew_roc *roc)
{
    EW_CHECK(roc->n, EW_ERR_USAGE,
             "--csv and --png write the ROC curve: --anomaly CLASS,CLASS says which classes are "
             "anomalies");
    return EW_OK;
}

ew_err ew_anomaly_write_csv(const struct ew_roc *roc, const char *path)
{
    struct ew_file_out out;
    EW_TRY(need_curve(roc));
    EW_TRY(ew_file_out_open(path, &out));
    fputs("threshold,found,false_alarms\n", out.f);
    for (int64_t i = 0; i < roc->n; i++) {
        const struct ew_roc_point *p = &roc->points[i];
        if (isfinite(p->threshold))
            fprintf(out.f, "%.9g,%.6f,%.6f\n", p->threshold, p->found, p->false_alarms);
        else
            fprintf(out.f, ",%.6f,%.6f\n", p->found, p->false_alarms);
    }
    return ew_file_out_commit(&out);
}

ew_err ew_anomaly_write_errors(const struct ew_eval_report *r, const char *path)
{
    struct ew_file_out out;
    EW_TRY(ew_file_out_open(path, &out));
    fputs("sample,class,error\n", out.f);
    for (int64_t i = 0; i < r->run->n; i++) {
        const struct ew_eval_error *e = &r->run->errors[i];
        fprintf(out.f, "%lld,", (long long)e->index);
        ew_csv_cell(out.f, e->label >= 0 ? ew_eval_class(r, e->label) : "-");
        fprintf(out.f, ",%.9g\n", e->error);
    }
    return ew_file_out_commit(&out);
}

enum { SIDE = 400, MARGIN = 72 };

static double x_of(double false_alarms)
{
    return MARGIN + false_alarms * SIDE;
}

static double y_of(double found)
{
    return MARGIN + (1 - found) * SIDE;
}

static void draw_axes(struct ew_canvas *c)
{
    static const uint8_t light[3] = {215, 215, 215}, ink[3] = {90, 90, 90};
    for (int i = 0; i <= 10; i += 2) {
        char text[8];
        const double u = i / 10.0;
        ew_canvas_line(c, (const double[]){x_of(u), y_of(0), x_of(u), y_of(1)}, 1, light);
        ew_canvas_line(c, (const double[]){x_of(0), y_of(u), x_of(1), y_of(u)}, 1, light);
        snprintf(text, sizeof(text), "%.1f", u);
        const int64_t w = ew_canvas_text_width(text, 2);
        ew_canvas_text(c, (const int64_t[]){(int64_t)x_of(u) - w / 2, MARGIN + SIDE + 8}, 2, text,
                       ink);
        ew_canvas_text(c, (const int64_t[]){MARGIN - 8 - w, (int64_t)y_of(u) - 7}, 2, text, ink);
    }
    ew_canvas_line(c, (const double[]){x_of(0), y_of(0), x_of(1), y_of(1)}, 1, ink);
    static const char across[] = "false positive rate", up[] = "true positive rate";
    ew_canvas_text(c,
                   (const int64_t[]){MARGIN + (SIDE - ew_canvas_text_width(across, 2)) / 2,
                                     MARGIN + SIDE + 30},
                   2, across, ink);
    ew_canvas_text_upwards(
        c, (const int64_t[]){6, MARGIN + (SIDE + ew_canvas_text_width(up, 2)) / 2}, 2, up, ink);
}

ew_err ew_anomaly_write_png(const struct ew_roc *roc, const char *path)
{
    static const uint8_t blue[3] = {8, 81, 156}, red[3] = {170, 20, 20}, ink[3] = {40, 40, 40};
    struct ew_canvas c;
    char title[64];
    EW_TRY(need_curve(roc));
    EW_TRY(ew_canvas_new(SIDE + 2 * MARGIN, SIDE + 2 * MARGIN, 255, &c));
    draw_axes(&c);
    for (int64_t i = 1; i < roc->n; i++) {
        const struct ew_roc_point *a = &roc->points[i - 1], *b = &roc->points[i];
        ew_canvas_line(&c,
                       (const double[]){x_of(a->false_alarms), y_of(a->found),
                                        x_of(b->false_alarms), y_of(b->found)},
                       3, blue);
    }
    const int64_t x = (int64_t)x_of(roc->best.false_alarms), y = (int64_t)y_of(roc->best.found);
    ew_canvas_box(&c, (struct ew_rect){x - 4, y - 4, 9, 9}, red);
    snprintf(title, sizeof(title), "ROC curve, AUC %.4f", roc->area);
    ew_canvas_text(&c, (const int64_t[]){MARGIN, MARGIN - 26}, 2, title, ink);
    const ew_err e = ew_image_write_png(path, c.rgb, (const int64_t[]){c.h, c.w, 3});
    free(c.rgb);
    return e;
}
