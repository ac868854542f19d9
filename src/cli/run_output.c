/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of `edgewise run`: top classes for a row of scores, else statistics. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/run_io.h"
#include "measure/top_classes.h"
#include "record/record.h"

#define MAX_TOP 100

struct stats {
    double min, max, mean, deviation;
    int64_t not_finite;
};

static struct stats measure(const struct ew_tensor *t)
{
    struct stats s = {.min = (double)INFINITY, .max = -(double)INFINITY};
    const int64_t n = ew_tensor_count(t);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = ew_tensor_get(t, i);
        if (!isfinite(v)) {
            s.not_finite++;
            continue;
        }
        s.min = fmin(s.min, v);
        s.max = fmax(s.max, v);
        sum += v;
    }
    const double finite = (double)(n - s.not_finite);
    s.mean = finite > 0 ? sum / finite : 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = ew_tensor_get(t, i) - s.mean;
        squares += isfinite(d) ? d * d : 0;
    }
    s.deviation = finite > 0 ? sqrt(squares / finite) : 0;
    return s;
}

static int wanted(const struct ew_run_show *how)
{
    return how->top < MAX_TOP ? how->top : MAX_TOP;
}

static const char *label(const struct ew_run_show *how, int64_t i)
{
    return i < how->n_labels ? how->labels[i] : "";
}

void ew_run_print(const char *name, const struct ew_tensor *t, const struct ew_run_show *how)
{
    char shape[EW_SHAPE_TEXT];
    printf("%s: %s of %s\n", name, ew_shape_text(&t->shape, shape), ew_dtype_name(t->dtype));
    if (ew_tensor_count(t) == 0)
        return;
    struct ew_top_class top[MAX_TOP];
    const int n = ew_top_classes(t, wanted(how), top);
    if (n == 0) {
        const struct stats s = measure(t);
        printf("  min %.6g, mean %.6g, max %.6g, deviation %.6g", s.min, s.mean, s.max,
               s.deviation);
        printf(s.not_finite ? ", %lld not finite\n" : "\n", (long long)s.not_finite);
        return;
    }
    for (int i = 0; i < n; i++)
        printf("  class %5lld  %6.2f %%  %12.6g  %s\n", (long long)top[i].index, 100 * top[i].share,
               top[i].value, label(how, top[i].index));
}

void ew_run_top_json(struct ew_json *j, const struct ew_tensor *t, const struct ew_run_show *how)
{
    struct ew_top_class top[MAX_TOP];
    const int want = wanted(how), n = ew_top_classes(t, want > 0 ? want : 1, top);
    if (n == 0)
        return;
    ew_json_array(j, "top");
    for (int i = 0; i < n && i < want; i++) {
        ew_json_object(j, NULL);
        ew_json_int(j, "class", top[i].index);
        ew_json_num(j, "value", top[i].value);
        ew_json_num(j, "probability", top[i].share);
        if (*label(how, top[i].index))
            ew_json_str(j, "label", label(how, top[i].index));
        ew_json_end(j);
    }
    ew_json_end(j);
}

void ew_run_csv_head(FILE *f, const struct ew_run_show *how)
{
    fputs("file", f);
    for (int i = 1; i <= wanted(how); i++)
        fprintf(f, ",class_%d,label_%d,probability_%d", i, i, i);
    fputs(",read_ms,run_ms\n", f);
}

ew_err ew_run_csv_top(FILE *f, const struct ew_tensor *t, const struct ew_run_show *how)
{
    struct ew_top_class top[MAX_TOP];
    const int want = wanted(how), n = ew_top_classes(t, want, top);
    EW_CHECK(
        n > 0 || want == 0, EW_ERR_UNSUPPORTED,
        "the output is not one row of scores: CSV lists classes; -o FILE.npy writes the output "
        "of one image");
    for (int i = 0; i < want; i++) {
        if (i >= n) {
            fputs(",,,", f);
            continue;
        }
        fprintf(f, ",%lld,", (long long)top[i].index);
        ew_csv_cell(f, label(how, top[i].index));
        fprintf(f, ",%.6g", top[i].share);
    }
    return EW_OK;
}

void ew_run_print_json(struct ew_json *j, const char *name, const struct ew_tensor *t,
                       const struct ew_run_show *how)
{
    const struct stats s = measure(t);
    ew_json_object(j, NULL);
    ew_json_str(j, "name", name);
    ew_json_str(j, "dtype", ew_dtype_name(t->dtype));
    ew_json_array(j, "shape");
    for (int i = 0; i < t->shape.rank; i++)
        ew_json_int(j, NULL, t->shape.dim[i]);
    ew_json_end(j);
    ew_json_num(j, "min", s.min);
    ew_json_num(j, "mean", s.mean);
    ew_json_num(j, "max", s.max);
    ew_json_num(j, "deviation", s.deviation);
    ew_json_int(j, "not_finite", s.not_finite);
    ew_run_top_json(j, t, how);
    ew_json_end(j);
}

const char *ew_run_output_path(struct ew_arena *a, const char *path, int index)
{
    const char *dot = strrchr(path, '.');
    if (index == 0 || !dot)
        return path;
    return ew_arena_printf(a, "%.*s_%d%s", (int)(dot - path), path, index, dot);
}
