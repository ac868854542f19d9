/* SPDX-License-Identifier: Apache-2.0 */
/* Writing engine files.  Reading is in engine_read.c. */
#include "format/engine_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "format/engine_layout.h"
#include "format/graph_file.h"

/* A tensor of the WEIGHTS section. */
struct large {
    int value; /* of the graph */
    int64_t offset;
};

struct writer {
    const struct ew_engine_file *e;
    struct ew_graph *bare; /* the graph without large weights */
    struct large *large;
    int n_large;
    struct ew_engine_section section[EW_ENGINE_SECTIONS];
    char *plan; /* the PLAN section */
    size_t plan_bytes;
};

static void put_double(struct ew_byte_writer *p, double v)
{
    int64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    ew_write_int(p, bits);
}

static void pad_to(struct ew_byte_writer *p, int64_t at)
{
    static const char zeros[EW_ENGINE_PAGE];
    while ((int64_t)p->hash.total < at)
        ew_write_bytes(p, zeros, (size_t)ew_min_i64(at - (int64_t)p->hash.total, EW_ENGINE_PAGE));
}

/* ---- The PLAN section ---- */

static void put_card(struct ew_byte_writer *p, const struct ew_engine_card *c)
{
    const char *const texts[] = {c->name, c->program, c->arch, c->isa, c->kernels, c->precision};
    for (size_t i = 0; i < EW_COUNT(texts); i++)
        ew_write_text(p, texts[i]);
    const struct ew_facts *f = &c->facts;
    const int64_t resize = c->prep.resize == EW_RESIZE_COVER ? EW_ENGINE_COVER : c->prep.resize;
    const int64_t numbers[] = {c->batch_min,    c->batch_max, c->threads, c->block_bytes, f->params,
                               f->weight_bytes, f->macs,      f->flops,   f->flops_thop,  f->nodes,
                               f->cdl,          f->cdl_nodes, resize};
    for (size_t i = 0; i < EW_COUNT(numbers); i++)
        ew_write_int(p, numbers[i]);
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++) {
        put_double(p, c->prep.normalised ? c->prep.mean[i] : 0);
        put_double(p, c->prep.normalised ? c->prep.std[i] : 0);
    }
    ew_write_int(p, c->n_classes);
    for (int i = 0; i < c->n_classes; i++)
        ew_write_text(p, c->classes[i]);
}

/* String table of kernel names, then one index (or -1) per batch and node. */
static ew_err put_choices(struct ew_byte_writer *p, const struct ew_engine_file *e)
{
    const int64_t n = (e->card.batch_max - e->card.batch_min + 1) * e->graph->n_nodes;
    EW_CLEANUP(ew_free_ptr) const char **names = calloc((size_t)n + 1, sizeof(*names));
    EW_CLEANUP(ew_free_ptr) int *number = calloc((size_t)n + 1, sizeof(*number));
    EW_CHECK(names && number, EW_ERR_MEMORY, "no memory to write engine %s", e->card.name);
    int n_names = 0;
    for (int64_t i = 0; i < n; i++) {
        number[i] = e->choices[i] ? 0 : -1;
        while (e->choices[i] && number[i] < n_names && strcmp(names[number[i]], e->choices[i]) != 0)
            number[i]++;
        if (number[i] == n_names)
            names[n_names++] = e->choices[i];
    }
    ew_write_int(p, n_names);
    for (int i = 0; i < n_names; i++)
        ew_write_text(p, names[i]);
    for (int64_t i = 0; i < n; i++)
        ew_write_int(p, number[i]);
    return EW_OK;
}

static void put_tables(struct ew_byte_writer *p, const struct writer *w)
{
    int64_t at = 0;
    ew_write_int(p, w->e->n_packed);
    for (int i = 0; i < w->e->n_packed; i++) {
        const struct ew_engine_packed *k = &w->e->packed[i];
        ew_write_int(p, k->node);
        ew_write_text(p, k->kernel);
        ew_write_int(p, at);
        ew_write_int(p, (int64_t)k->bytes);
        at += (int64_t)ew_align_up(k->bytes);
    }
    ew_write_int(p, w->n_large);
    for (int i = 0; i < w->n_large; i++) {
        const struct ew_value *v = &w->e->graph->values[w->large[i].value];
        ew_write_text(p, v->name);
        ew_write_int(p, v->kind);
        ew_write_int(p, w->large[i].offset);
        ew_write_int(p, (int64_t)ew_tensor_bytes(&v->t));
    }
}

static ew_err put_plan(struct writer *w)
{
    struct ew_byte_writer p = {.f = open_memstream(&w->plan, &w->plan_bytes)};
    EW_CHECK(p.f, EW_ERR_MEMORY, "no memory to write engine %s", w->e->card.name);
    put_card(&p, &w->e->card);
    ew_err e = ew_graph_write(&p, w->bare);
    if (e == EW_OK)
        e = put_choices(&p, w->e);
    put_tables(&p, w);
    EW_CHECK(ew_memstream_close(p.f, &w->plan), EW_ERR_MEMORY, "no memory to write engine %s",
             w->e->card.name);
    w->section[EW_ENGINE_PLAN].bytes = (int64_t)w->plan_bytes;
    w->section[EW_ENGINE_PLAN].sum = ew_hash_sum(&p.hash);
    return e;
}

/* ---- The PACKED and WEIGHTS sections ---- */

static void put_packed(struct ew_byte_writer *p, const struct writer *w)
{
    const int64_t start = (int64_t)p->hash.total;
    int64_t at = 0;
    for (int i = 0; i < w->e->n_packed; i++) {
        pad_to(p, start + at);
        ew_write_bytes(p, w->e->packed[i].data, w->e->packed[i].bytes);
        at += (int64_t)ew_align_up(w->e->packed[i].bytes);
    }
    pad_to(p, start + at);
}

static void put_weights(struct ew_byte_writer *p, const struct writer *w)
{
    const int64_t start = (int64_t)p->hash.total;
    for (int i = 0; i < w->n_large; i++) {
        const struct ew_tensor *t = &w->e->graph->values[w->large[i].value].t;
        if (w->large[i].offset < 0)
            continue;
        pad_to(p, start + w->large[i].offset);
        ew_write_bytes(p, t->data, ew_tensor_bytes(t));
    }
    pad_to(p, start + w->section[EW_ENGINE_WEIGHTS].bytes);
}

static void sum_up(void (*put)(struct ew_byte_writer *, const struct writer *),
                   const struct writer *w, struct ew_engine_section *s)
{
    struct ew_hash_wide wide = {.total = 0};
    struct ew_byte_writer p = {.wide = &wide};
    put(&p, w);
    s->bytes = (int64_t)wide.total;
    s->sum = ew_hash_wide_sum(&wide);
}

/* Removes the large weights from a copy of the graph, and assigns their offsets. */
static ew_err take_large(struct writer *w)
{
    const struct ew_graph *g = w->e->graph;
    EW_TRY(ew_graph_clone(g, &w->bare));
    w->large = calloc((size_t)g->n_values + 1, sizeof(*w->large));
    EW_CHECK(w->large, EW_ERR_MEMORY, "no memory to write engine %s", w->e->card.name);
    int64_t at = 0;
    for (int v = 0; v < g->n_values; v++) {
        const struct ew_value *from = &g->values[v];
        const bool absent = w->e->absent && w->e->absent[v];
        if (!ew_value_is_weight(from) || !from->t.data ||
            (ew_tensor_bytes(&from->t) < EW_ENGINE_LARGE && !absent))
            continue;
        w->large[w->n_large++] = (struct large){.value = v, .offset = absent ? -1 : at};
        w->bare->values[v].t.data = NULL;
        w->bare->values[v].kind = EW_VALUE_PARAM; /* parameters may have no data */
        if (!absent)
            at += (int64_t)ew_align_up(ew_tensor_bytes(&from->t));
    }
    w->section[EW_ENGINE_WEIGHTS].bytes = at;
    return EW_OK;
}

static ew_err lay_out(struct writer *w)
{
    EW_TRY(take_large(w));
    EW_TRY(put_plan(w));
    sum_up(put_packed, w, &w->section[EW_ENGINE_PACKED]);
    sum_up(put_weights, w, &w->section[EW_ENGINE_WEIGHTS]);
    int64_t at = EW_ENGINE_PAGE;
    for (int i = 0; i < EW_ENGINE_SECTIONS; i++) {
        w->section[i].offset = at;
        at = ew_engine_page_up(at + w->section[i].bytes);
    }
    return EW_OK;
}

static int64_t file_size(const struct writer *w)
{
    const struct ew_engine_section *last = &w->section[EW_ENGINE_SECTIONS - 1];
    return last->offset + last->bytes;
}

static void put_all(struct ew_byte_writer *p, const struct writer *w)
{
    ew_write_bytes(p, EW_ENGINE_MAGIC, 8);
    ew_write_int(p, EW_ENGINE_VERSION);
    ew_write_int(p, file_size(w));
    ew_write_int(p, EW_ENGINE_SECTIONS);
    for (int i = 0; i < EW_ENGINE_SECTIONS; i++) {
        ew_write_int(p, w->section[i].offset);
        ew_write_int(p, w->section[i].bytes);
        ew_write_int(p, (int64_t)w->section[i].sum);
    }
    ew_write_int(p, (int64_t)ew_hash_sum(&p->hash));
    pad_to(p, w->section[EW_ENGINE_PLAN].offset);
    ew_write_bytes(p, w->plan, w->plan_bytes);
    pad_to(p, w->section[EW_ENGINE_PACKED].offset);
    put_packed(p, w);
    pad_to(p, w->section[EW_ENGINE_WEIGHTS].offset);
    put_weights(p, w);
}

static ew_err write_file(const char *path, const struct writer *w)
{
    struct ew_file_out out;
    EW_TRY(ew_file_out_open(path, &out));
    struct ew_byte_writer p = {.f = out.f};
    put_all(&p, w);
    return ew_file_out_commit(&out);
}

ew_err ew_engine_file_write(const char *path, const struct ew_engine_file *e, int64_t *size)
{
    struct writer w = {.e = e};
    ew_err err = lay_out(&w);
    if (err == EW_OK)
        err = write_file(path, &w);
    *size = file_size(&w);
    ew_graph_free(w.bare);
    free(w.large);
    free(w.plan);
    return err;
}
