/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning and widths for programs (edgewise_shrink.h), over prune/ and scale/. */
#include <string.h>

#include "base/num.h"
#include "base/sized.h"
#include "edgewise_shrink.h"
#include "measure/classifier.h"
#include "prune/prune_run.h"
#include "scale/power_law.h"

/* ---- Pruning ---- */

static ew_err which(const char *what, const char *given, const char *const *names, int *out)
{
    for (*out = 0; names[*out]; ++*out)
        if (strcmp(given, names[*out]) == 0)
            return EW_OK;
    return ew_fail(EW_ERR_ARG, "'%s' is not %s: %s, %s, %s, ...", given, what, names[0], names[1],
                   names[2]);
}

static ew_err take_opts(const struct ew_pruning_opts *o, struct ew_prune_run_opts *out)
{
    static const char *const of[] = {
        [EW_PRUNE_KEEP] = "channels", [EW_PRUNE_MACS] = "macs",       [EW_PRUNE_PARAMS] = "params",
        [EW_PRUNE_BYTES] = "bytes",   [EW_PRUNE_LATENCY] = "latency", NULL};
    int by, importance;
    EW_CHECK(o->keep > 0 && o->keep < 1, EW_ERR_ARG, "keep is %g: a share over 0 and below 1",
             o->keep);
    EW_CHECK(o->align >= 0 && o->align <= 1024 && o->threads >= 0, EW_ERR_ARG,
             "align is 0 to 1024, threads are not negative");
    EW_TRY(which("a size to prune by", o->of ? o->of : of[0], of, &by));
    EW_TRY(which("an importance", o->importance ? o->importance : ew_importance_names[0],
                 ew_importance_names, &importance));
    *out = (struct ew_prune_run_opts){.by = (enum ew_prune_by)by,
                                      .target = o->keep,
                                      .share = true,
                                      .importance = (enum ew_importance)importance,
                                      .global = o->global != 0,
                                      .align = o->align,
                                      .threads = o->threads,
                                      .seed = o->seed};
    return EW_OK;
}

static void fill_report(const struct ew_pruned *p, struct ew_pruning *out)
{
    struct ew_pruning r = {.params_before = p->cost_before.params,
                           .params = p->cost_after.params,
                           .macs_before = p->cost_before.macs,
                           .macs = p->cost_after.macs};
    for (int i = 0; i < p->n_layers; i++)
        r.layers += p->layers[i].after < p->layers[i].before;
    ew_sized_export(&r, sizeof(r), out);
}

/* Labelled images as the network expects them. */
static ew_err open_images(struct ew_graph *net, const struct ew_dataset *data,
                          struct ew_image_set *out)
{
    struct ew_classifier k = {.net = net};
    struct ew_image_card card;
    struct ew_arena a;
    ew_arena_init(&a);
    ew_err e = ew_image_card_get(net, &a, &card);
    ew_arena_fini(&a);
    k.prep = card.prep;
    if (e == EW_OK)
        e = ew_image_set_of(data, &k, EW_FOR_TRAINING, 0, out);
    return e;
}

EW_API ew_err ew_prune_graph(struct ew_graph *net, const struct ew_dataset *data,
                             const struct ew_pruning_opts *opts, struct ew_pruning *report)
{
    EW_C_LOCALE;
    EW_NEED(net);
    EW_NEED(opts);
    struct ew_prune_run_job job = {.net = net};
    struct ew_image_set images = {0};
    struct ew_pruned p = {0};
    struct ew_pruning_opts o;
    EW_TRY(ew_sized_import(opts, &o, sizeof(o)));
    if (report)
        EW_TRY(ew_sized_check(report));
    EW_TRY(take_opts(&o, &job.opts));
    ew_err e = EW_OK;
    if (data && (e = open_images(net, data, &images)) == EW_OK)
        job.train = &images.loader;
    if (e == EW_OK)
        e = ew_prune_run(&job, &p);
    if (e == EW_OK && report)
        fill_report(&p, report);
    ew_pruned_fini(&p);
    ew_image_set_close(&images);
    return e;
}

/* ---- Widths ---- */

EW_API ew_err ew_scale_filters(const char *network, const struct ew_model_opts *base,
                               const struct ew_width_opts *opts, int32_t *filters, int max, int *n)
{
    EW_C_LOCALE;
    EW_NEED(network);
    EW_NEED(opts);
    EW_NEED(n);
    EW_CHECK(filters || max <= 0, EW_ERR_ARG, "%s: filters is NULL", __func__);
    struct ew_model_opts whole;
    struct ew_widths_wanted w;
    struct ew_widths_found found;
    struct ew_scaling s;
    struct ew_width_opts o;
    EW_TRY(ew_sized_import(opts, &o, sizeof(o)));
    EW_TRY(ew_sized_import(base, &whole, sizeof(whole)));
    EW_CHECK((o.ratio > 0) + (o.params > 0) + (o.macs > 0) == 1, EW_ERR_ARG,
             "exactly one of ratio, params and macs is needed");
    w = (struct ew_widths_wanted){.ratio = o.ratio, .params = o.params, .macs = o.macs};
    EW_TRY(ew_scaling_open(network, &whole, &s));
    EW_CHECK(s.n <= max, EW_ERR_LIMIT, "%s has %d widths, there is room for %d", network, s.n, max);
    struct ew_power_law law;
    if (o.records)
        EW_TRY(ew_power_law_read(&s, o.records, &law));
    EW_TRY(ew_widths_find(&s, o.records ? &law : NULL, &w, &found));
    memcpy(filters, found.widths, (size_t)s.n * sizeof(*filters));
    *n = s.n;
    return EW_OK;
}
