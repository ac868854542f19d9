/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of model families, generated from the list of model_*.c, and building a network from
 * name and options. */
#include "model/model.h"

#include <string.h>

#include "base/num.h"
#include "base/sized.h"

#define EW_MODEL(name) extern const struct ew_family ew_family_##name;
#include "model_list.h"
#undef EW_MODEL

static const struct ew_family *const table[] = {
#define EW_MODEL(name) &ew_family_##name,
#include "model_list.h"
#undef EW_MODEL
    NULL, /* not empty even without families */
};

int ew_family_count(void)
{
    return (int)EW_COUNT(table) - 1;
}

const struct ew_family *ew_family_at(int i)
{
    return table[i];
}

/* Variant i of all families in order; NULL after the last. */
static const struct ew_variant *variant_at(int i, const struct ew_family **family)
{
    for (int f = 0; f < ew_family_count(); f++) {
        if (i < table[f]->n_variants) {
            *family = table[f];
            return &table[f]->variants[i];
        }
        i -= table[f]->n_variants;
    }
    return NULL;
}

static const char *nearest(const char *name)
{
    const char *best = NULL;
    int least = (int)strlen(name) / 2 + 1;
    const struct ew_family *f;
    const struct ew_variant *v;
    for (int i = 0; (v = variant_at(i, &f)); i++) {
        const int d = ew_edit_distance(name, v->name);
        if (d < least) {
            least = d;
            best = v->name;
        }
    }
    return best;
}

ew_err ew_variant_find(const char *name, const struct ew_family **family,
                       const struct ew_variant **out)
{
    for (int i = 0; (*out = variant_at(i, family)); i++)
        if (strcmp((*out)->name, name) == 0)
            return EW_OK;
    const char *near = nearest(name);
    return near ? ew_fail(EW_ERR_NOT_FOUND, "no network is called %.80s; did you mean %s?", name,
                          near)
                : ew_fail(EW_ERR_NOT_FOUND, "no network is called %.80s", name);
}

EW_API int ew_model_count(void)
{
    int n = 0;
    for (int f = 0; f < ew_family_count(); f++)
        n += table[f]->n_variants;
    return n;
}

EW_API const char *ew_model_name(int i)
{
    const struct ew_family *family;
    const struct ew_variant *v = i >= 0 ? variant_at(i, &family) : NULL;
    return v ? v->name : NULL;
}

/* ---- Building ---- */

static ew_err in_range(const char *what, int64_t value, int64_t most)
{
    EW_CHECK(value >= 1 && value <= most, EW_ERR_ARG, "%s is %lld, must be 1 to %lld", what,
             (long long)value, (long long)most);
    return EW_OK;
}

/* Replaces options that are 0 by the network's defaults. */
static ew_err resolve(const struct ew_variant *v, const struct ew_model_opts *given,
                      struct ew_model_opts *o)
{
    EW_TRY(ew_sized_import(given, o, sizeof(*o)));
    o->height = o->height ? o->height : v->height;
    o->width = o->width ? o->width : v->width;
    o->channels = o->channels ? o->channels : v->channels;
    o->classes = o->classes ? o->classes : v->classes;
    o->batch = o->batch ? o->batch : 1;
    EW_TRY(in_range("the input's height", o->height, 1 << 16));
    EW_TRY(in_range("the input's width", o->width, 1 << 16));
    EW_TRY(in_range("the input's number of channels", o->channels, 1 << 16));
    EW_TRY(in_range("the number of classes", o->classes, 1 << 20));
    EW_TRY(in_range("the batch", o->batch, 1 << 20));
    EW_CHECK(o->scale >= 0 && o->scale <= 1000, EW_ERR_ARG, "width is %g, must be 0 to 1000",
             o->scale);
    EW_CHECK(!(o->scale > 0) || !o->filters, EW_ERR_ARG,
             "both a width and filter counts are given");
    if (!(o->scale > 0))
        o->scale = 1;
    return EW_OK;
}

/* Adds input, the family's layers and output. */
static ew_err fill(struct ew_builder *b, const struct ew_family *f, const struct ew_variant *v,
                   const struct ew_model_opts *o)
{
    const struct ew_shape image = {4, {o->batch, o->height, o->width, o->channels}};
    const struct ew_shape clip = {5, {o->batch, v->frames, o->height, o->width, o->channels}};
    int x = -1;
    EW_TRY(ew_graph_input(b->g, "input", EW_F32, v->frames ? &clip : &image, &x));
    b->g->values[x].channels_last = true;
    const int y = f->build(b, v, x);
    EW_TRY(b->err);
    EW_CHECK(!b->given || b->n_gates == b->n_given, EW_ERR_ARG, "%d widths are given, it has %d",
             b->n_given, b->n_gates);
    EW_CHECK(!b->g->arena.failed, EW_ERR_MEMORY, "no memory for the graph");
    EW_TRY(ew_graph_rename(b->g, y, "output"));
    EW_TRY(ew_graph_output(b->g, y));
    return ew_graph_infer(b->g);
}

/* Builds into b->g; errors name the network and its input size. */
static ew_err build(const char *name, const struct ew_model_opts *given, struct ew_builder *b)
{
    const struct ew_family *family;
    const struct ew_variant *v;
    struct ew_model_opts o;
    EW_TRY(ew_variant_find(name, &family, &v));
    ew_err e = resolve(v, given, &o);
    if (e != EW_OK)
        return ew_fail_in(e, "%s", v->name);
    *b = (struct ew_builder){.classes = o.classes,
                             .bn_eps = 1e-5,
                             .bn_keep = 0.9,
                             .scale = o.scale,
                             .given = o.filters,
                             .n_given = o.n_filters};
    EW_TRY(ew_graph_new(v->name, &b->g));
    e = fill(b, family, v, &o);
    if (e == EW_OK)
        return EW_OK;
    ew_graph_free(b->g);
    return ew_fail_in(e, "%s at %lldx%lldx%lld", v->name, (long long)o.height, (long long)o.width,
                      (long long)o.channels);
}

EW_API ew_err ew_model_build(const char *name, const struct ew_model_opts *opts,
                             struct ew_graph **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(name);
    struct ew_builder b;
    EW_TRY(build(name, opts, &b));
    *out = b.g;
    return EW_OK;
}

EW_API ew_err ew_model_filters(const char *name, const struct ew_model_opts *opts, int32_t *filters,
                               int max, int *n)
{
    EW_C_LOCALE;
    EW_NEED(name);
    EW_NEED(n);
    EW_CHECK(filters || max <= 0, EW_ERR_ARG, "%s: filters is NULL", __func__);
    struct ew_builder b;
    EW_TRY(build(name, opts, &b));
    ew_graph_free(b.g);
    EW_CHECK(b.n_gates <= max, EW_ERR_LIMIT, "%s: has %d filter counts, there is room for %d", name,
             b.n_gates, max);
    memcpy(filters, b.gates, (size_t)b.n_gates * sizeof(*filters));
    *n = b.n_gates;
    return EW_OK;
}

EW_API ew_err ew_model_init(const char *name, uint64_t seed, struct ew_graph *g)
{
    EW_C_LOCALE;
    EW_NEED(name);
    EW_NEED(g);
    const struct ew_family *family;
    const struct ew_variant *v;
    EW_TRY(ew_variant_find(name, &family, &v));
    return ew_init_weights(g, &family->init, seed);
}
