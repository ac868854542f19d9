/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of networks in stores of results. */
#include "advise/store/work_store.h"

#include <math.h>
#include <string.h>

#include "store/store.h"

struct reader {
    struct ew_arena *arena;
    struct ew_rows *rows;
};

static double number(const struct reader *r, const char *column, double otherwise)
{
    const int c = ew_rows_find(r->rows, column);
    const double v = c >= 0 ? ew_rows_num(r->rows, c) : (double)NAN;
    return isfinite(v) ? v : otherwise;
}

/* "" where the store has none; NULL: no memory. */
static const char *text(const struct reader *r, const char *column)
{
    const int c = ew_rows_find(r->rows, column);
    const char *t = c >= 0 ? ew_rows_text(r->rows, c) : NULL;
    return t && *t ? ew_arena_strdup(r->arena, t) : "";
}

/* "b829cbd3 AMD EPYC", "1f30c2aa jetson-nano, cuda:0" */
static const char *machine(const struct reader *r)
{
    const char *profile = text(r, "machine_profile"), *cpu = text(r, "machine_cpu");
    const char *device = text(r, "device");
    if (!profile || !cpu || !device)
        return NULL;
    if (strcmp(device, "cpu") == 0)
        device = "";
    return ew_arena_printf(r->arena, "%s %s%s%s", text(r, "machine_unit"), *profile ? profile : cpu,
                           *device ? ", " : "", device);
}

static const char *precision(const struct reader *r)
{
    const char *p = text(r, "precision");
    return p && (strcmp(p, "default") == 0 || strcmp(p, "fp32") == 0) ? "" : p;
}

/* What the loader did for an image, whoever waited for it. */
static void training_run(const struct reader *r, struct ew_work_row *row)
{
    const double images = number(r, "images", NAN), batches = number(r, "batches", NAN);
    row->train = true;
    row->time = 1e-3 * number(r, "batch_compute_ms", NAN);
    row->dataset = text(r, "dataset");
    row->workers = (int64_t)number(r, "workers", 0);
    row->step_s = number(r, "epoch_s", NAN) / batches;
    row->loader_s =
        (number(r, "decode_s", NAN) + number(r, "augment_s", 0) + number(r, "fetch_s", 0)) / images;
}

static bool read_row(const struct reader *r, struct ew_work_row *row)
{
    const char *command = text(r, "command"), *widths = text(r, "width_list");
    if (!command || !widths)
        return false;
    *row = (struct ew_work_row){.network = text(r, "network"),
                                .input = text(r, "input"),
                                .machine = machine(r),
                                .precision = precision(r),
                                .batch = (int64_t)number(r, "batch", 1),
                                .classes = (int64_t)number(r, "classes", 0),
                                .threads = (int64_t)number(r, "threads", 0),
                                .cores = (int64_t)number(r, "machine_cores_online", 1),
                                .width = number(r, "width", 1),
                                .train = number(r, "train", 0) > 0,
                                .time = 1e-3 * number(r, "median_ms", NAN),
                                .beside_bytes =
                                    number(r, "rss_peak_bytes", number(r, "rss_bytes", NAN)) -
                                    number(r, "planned_bytes", NAN),
                                .dataset = "",
                                .step_s = NAN,
                                .loader_s = NAN};
    if (strcmp(command, "train") == 0)
        training_run(r, row);
    if (row->threads == 0)
        row->threads = row->cores;
    row->slowest = row->time;
    return row->network && *row->network && row->input && row->machine && row->precision &&
           row->dataset && row->time > 0 && isfinite(row->time) && !*widths;
}

static bool same_row(const struct ew_work_row *a, const struct ew_work_row *b)
{
    return strcmp(a->network, b->network) == 0 && strcmp(a->input, b->input) == 0 &&
           strcmp(a->machine, b->machine) == 0 && strcmp(a->precision, b->precision) == 0 &&
           strcmp(a->dataset, b->dataset) == 0 && a->workers == b->workers &&
           a->batch == b->batch && a->classes == b->classes && a->threads == b->threads &&
           a->train == b->train && fabs(a->width - b->width) < 1e-9;
}

static void merge(struct ew_work_rows *all, const struct ew_work_row *row)
{
    for (int i = 0; i < all->n; i++) {
        struct ew_work_row *old = &all->list[i];
        if (!same_row(old, row))
            continue;
        old->slowest = fmax(old->slowest, row->time);
        old->time = fmin(old->time, row->time);
        old->beside_bytes = fmax(old->beside_bytes, row->beside_bytes);
        old->step_s = fmin(old->step_s, row->step_s);
        old->loader_s = fmin(old->loader_s, row->loader_s);
        return;
    }
    if (all->n < EW_WORK_STORE_ROWS)
        all->list[all->n++] = *row;
}

/* Hands every such run of the store to `take`, oldest first. */
static ew_err each_row(struct ew_arena *a, const char *path,
                       void take(void *ctx, const struct ew_work_row *row), void *ctx)
{
    struct ew_store *store;
    struct reader r = {.arena = a};
    EW_TRY(ew_store_open(path, &(struct ew_store_opts){.read_only = true}, &store));
    ew_err e = ew_store_results(store,
                                "status = 'done' AND quality = 'measured' AND "
                                "(command = 'bench' OR command = 'train')",
                                NULL, &r.rows);
    if (e == EW_OK) {
        struct ew_work_row row;
        while (ew_rows_next(r.rows))
            if (read_row(&r, &row))
                take(ctx, &row);
        e = ew_rows_free(r.rows);
    }
    ew_store_close(store);
    return e;
}

static void take_merged(void *ctx, const struct ew_work_row *row)
{
    merge(ctx, row);
}

ew_err ew_work_rows_read(struct ew_arena *a, const char *path, struct ew_work_rows *out)
{
    if (!out->list)
        out->list = ew_arena_array(a, EW_WORK_STORE_ROWS, sizeof(*out->list));
    EW_CHECK(out->list, EW_ERR_MEMORY, "no memory for the store's runs");
    return each_row(a, path, take_merged, out);
}

static void take_last(void *ctx, const struct ew_work_row *row)
{
    *(struct ew_work_row *)ctx = *row;
}

ew_err ew_work_rows_last(struct ew_arena *a, const char *path, struct ew_work_row *out)
{
    *out = (struct ew_work_row){.network = NULL};
    EW_TRY(each_row(a, path, take_last, out));
    EW_CHECK(out->network, EW_ERR_NOT_FOUND, "%s: has no measured run", path);
    return EW_OK;
}

static bool is_first(const struct ew_work_rows *rows, int i)
{
    for (int k = 0; k < i; k++)
        if (strcmp(rows->list[k].machine, rows->list[i].machine) == 0)
            return false;
    return true;
}

ew_err ew_work_rows_machine(struct ew_arena *a, const struct ew_work_rows *rows, const char *part,
                            const char **out)
{
    const char *names = "";
    *out = NULL;
    for (int i = 0; i < rows->n; i++) {
        const char *name = rows->list[i].machine;
        if (!is_first(rows, i))
            continue;
        names =
            ew_arena_printf(a, "%s%s'%s'", names ? names : "", names && *names ? ", " : "", name);
        if (!*out && (!part || strstr(name, part)))
            *out = name;
    }
    EW_CHECK(*out, EW_ERR_NOT_FOUND, "no machine called '%s' was measured, only %s",
             part ? part : "", names && *names ? names : "none");
    return EW_OK;
}
