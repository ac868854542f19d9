/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise data bench: epochs of the data loader alone, with the time of each stage. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/progress.h"
#include "cli/data_cmd.h"
#include "report/text_table.h"

struct epoch {
    double seconds;
    struct ew_loader_counts c; /* of this epoch */
    double resident[2];        /* share in the page cache before and after; negative: not known */
};

struct result {
    const struct ew_dataset *data;
    struct ew_loader_opts loader;
    struct epoch *epochs;
    int64_t n;
    int64_t bad;
};

/* ---- Measuring ------------------------------------------------------------------------------- */

static struct ew_loader_counts minus(struct ew_loader_counts a, const struct ew_loader_counts *b)
{
    a.batches -= b->batches;
    a.samples -= b->samples;
    a.bad -= b->bad;
    a.fetch_ns -= b->fetch_ns;
    a.decode_ns -= b->decode_ns;
    a.augment_ns -= b->augment_ns;
    a.stall_ns -= b->stall_ns;
    a.bytes_read -= b->bytes_read;
    a.ops_read -= b->ops_read;
    a.emulated_ns -= b->emulated_ns;
    return a;
}

static ew_err read_epoch(struct ew_loader *l, int64_t epoch, struct ew_progress *bar, int64_t *done)
{
    EW_TRY(ew_loader_start(l, epoch, 0));
    for (;;) {
        const struct ew_batch *b = NULL;
        EW_TRY(ew_loader_next(l, &b));
        if (!b)
            return EW_OK;
        *done += b->n;
        ew_loader_release(l, b);
        ew_progress_update(bar, *done);
    }
}

static ew_err measure(struct result *r, struct ew_loader *l, struct ew_progress *bar)
{
    int64_t done = 0;
    for (int64_t e = 0; e < r->n; e++) {
        struct epoch *x = &r->epochs[e];
        const struct ew_loader_counts before = ew_loader_counts(l);
        EW_TRY(ew_dataset_resident(r->data, r->loader.split, &x->resident[0]));
        const int64_t start = ew_clock_ns();
        EW_TRY(read_epoch(l, e, bar, &done));
        x->seconds = (double)(ew_clock_ns() - start) * 1e-9;
        x->c = minus(ew_loader_counts(l), &before);
        EW_TRY(ew_dataset_resident(r->data, r->loader.split, &x->resident[1]));
        r->bad += x->c.bad;
    }
    return EW_OK;
}

/* ---- Printing -------------------------------------------------------------------------------- */

static void share_cell(struct ew_table *t, double share)
{
    if (share < 0)
        ew_table_cell(t, "-");
    else
        ew_table_cell(t, "%.0f %%", 100 * share);
}

static ew_err print_text(const struct result *r)
{
    static const char *const head[] = {"epoch",     "seconds", "samples/s", "fetch s", "decode s",
                                       "augment s", "MB/s",    "reads",     "cached",  "after"};
    struct ew_table t;
    ew_table_init(&t, "rrrrrrrrrr");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int64_t e = 0; e < r->n; e++) {
        const struct epoch *x = &r->epochs[e];
        ew_table_cell(&t, "%lld", (long long)e + 1);
        ew_table_cell(&t, "%.3f", x->seconds);
        ew_table_count(&t, (int64_t)((double)x->c.samples / x->seconds));
        ew_table_cell(&t, "%.3f", (double)x->c.fetch_ns * 1e-9);
        ew_table_cell(&t, "%.3f", (double)x->c.decode_ns * 1e-9);
        ew_table_cell(&t, "%.3f", (double)x->c.augment_ns * 1e-9);
        ew_table_cell(&t, "%.1f", (double)x->c.bytes_read * 1e-6 / x->seconds);
        ew_table_count(&t, x->c.ops_read);
        share_cell(&t, x->resident[0]);
        share_cell(&t, x->resident[1]);
    }
    EW_TRY(ew_table_print(&t, stdout));
    if (r->loader.storage.mb_per_s > 0)
        printf("emulated medium: %g MB/s, %g ms\n", r->loader.storage.mb_per_s,
               r->loader.storage.latency_us / 1000);
    if (r->bad)
        printf("bad samples skipped: %lld\n", (long long)r->bad);
    return EW_OK;
}

static void json_epoch(struct ew_json *j, const struct epoch *x)
{
    ew_json_object(j, NULL);
    ew_json_num(j, "seconds", x->seconds);
    ew_json_int(j, "samples", x->c.samples);
    ew_json_num(j, "samples_per_s", (double)x->c.samples / x->seconds);
    ew_json_num(j, "fetch_s", (double)x->c.fetch_ns * 1e-9);
    ew_json_num(j, "decode_s", (double)x->c.decode_ns * 1e-9);
    ew_json_num(j, "augment_s", (double)x->c.augment_ns * 1e-9);
    ew_json_num(j, "stall_s", (double)x->c.stall_ns * 1e-9);
    ew_json_int(j, "bytes_read", x->c.bytes_read);
    ew_json_int(j, "ops_read", x->c.ops_read);
    ew_json_int(j, "bad_samples", x->c.bad);
    if (x->resident[0] >= 0) {
        ew_json_num(j, "resident_before", x->resident[0]);
        ew_json_num(j, "resident_after", x->resident[1]);
    }
    ew_json_end(j);
}

static ew_err print_json(const struct result *r)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "data", ew_dataset_info(r->data)->name);
    ew_json_int(&j, "batch", r->loader.batch);
    ew_json_int(&j, "workers", r->loader.workers);
    ew_json_int(&j, "prefetch", r->loader.prefetch);
    ew_json_bool(&j, "emulated_storage", r->loader.storage.mb_per_s > 0);
    ew_json_array(&j, "epochs");
    for (int64_t e = 0; e < r->n; e++)
        json_epoch(&j, &r->epochs[e]);
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- The verb -------------------------------------------------------------------------------- */

static ew_err bench(struct ew_cmd_call *c, struct result *r)
{
    const struct ew_data_opts *o = c->opts;
    const struct ew_dataset_info *info = ew_dataset_info(r->data);
    EW_CHECK(o->size.n == 0 || o->size.n == 2, EW_ERR_USAGE, "--size: %d numbers, not HxW",
             o->size.n);
    r->loader = (struct ew_loader_opts){.data = r->data,
                                        .split = ew_data_split(c, r->data),
                                        .batch = o->batch,
                                        .seed = (uint64_t)o->seed,
                                        .shuffle = true,
                                        .h = o->size.v[0],
                                        .w = o->size.v[1]};
    EW_TRY(ew_load_args_apply(&o->load, &r->loader));
    if (info->h == 0 && o->size.n == 0)
        r->loader.h = r->loader.w = 224;
    for (int k = 0; k < EW_SAMPLE_CHANNELS; k++) {
        r->loader.prep.mean[k] = 0.5;
        r->loader.prep.std[k] = 0.25;
    }
    if (o->load.cold)
        EW_TRY(ew_dataset_drop_cache(r->data, r->loader.split));
    struct ew_loader *l = NULL;
    EW_TRY(ew_loader_open(&r->loader, &l));
    struct ew_progress bar;
    ew_progress_begin(&bar, stderr, "loading", r->n * ew_loader_samples(l));
    const ew_err err = measure(r, l, &bar);
    ew_progress_end(&bar);
    ew_loader_close(l);
    EW_TRY(err);
    return c->json ? print_json(r) : print_text(r);
}

ew_err ew_data_bench(struct ew_cmd_call *c, const char *what)
{
    const struct ew_data_opts *o = c->opts;
    struct ew_dataset *d = NULL;
    EW_TRY(ew_data_open(c, what, &d));
    struct result r = {.data = d, .n = o->epochs};
    r.epochs = calloc((size_t)r.n, sizeof(*r.epochs));
    const ew_err err = r.epochs
                           ? bench(c, &r)
                           : ew_fail(EW_ERR_MEMORY, "no memory for %lld epochs", (long long)r.n);
    free(r.epochs);
    ew_dataset_close(d);
    return err;
}
