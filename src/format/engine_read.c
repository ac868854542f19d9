/* SPDX-License-Identifier: Apache-2.0 */
/* Reading engine files, which are untrusted: everything is validated before use. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "format/engine_file.h"
#include "format/engine_layout.h"
#include "format/graph_file.h"

#define MAX_CLASSES (1 << 20)
#define MAX_NUMBER  ((int64_t)1 << 60)

struct reader {
    struct ew_engine_file *e;
    const unsigned char *bytes;
    size_t size;
    const char *what;
    struct ew_engine_section section[EW_ENGINE_SECTIONS];
    struct ew_byte_reader in; /* the PLAN section */
};

/* ---- The header ---- */

static ew_err read_head(struct reader *r)
{
    struct ew_byte_reader in = {.bytes = r->bytes, .size = r->size, .what = r->what};
    const void *magic = NULL;
    int64_t version, size, count, sum;
    const size_t least = r->size < 8 ? r->size : 8;
    EW_CHECK(r->size > 0 && memcmp(r->bytes, EW_ENGINE_MAGIC, least) == 0, EW_ERR_FORMAT,
             "%s: not an engine file", r->what);
    EW_CHECK(r->size >= EW_ENGINE_PAGE, EW_ERR_FORMAT, "%s: is cut off at %zu bytes", r->what,
             r->size);
    EW_TRY(ew_read_bytes(&in, 8, &magic));
    EW_TRY(ew_read_int(&in, INT64_MIN, INT64_MAX, &version));
    EW_CHECK(version <= EW_ENGINE_VERSION || version > 1 << 16, EW_ERR_UNSUPPORTED,
             "%s: is version %lld of the format, newer than this program's %d", r->what,
             (long long)version, EW_ENGINE_VERSION);
    EW_TRY(ew_read_int(&in, INT64_MIN, INT64_MAX, &size));
    EW_TRY(ew_read_int(&in, INT64_MIN, INT64_MAX, &count));
    for (int i = 0; i < EW_ENGINE_SECTIONS; i++) {
        EW_TRY(ew_read_int(&in, INT64_MIN, INT64_MAX, &r->section[i].offset));
        EW_TRY(ew_read_int(&in, INT64_MIN, INT64_MAX, &r->section[i].bytes));
        EW_TRY(ew_read_int(&in, INT64_MIN, INT64_MAX, &sum));
        r->section[i].sum = (uint64_t)sum;
    }
    EW_TRY(ew_read_int(&in, INT64_MIN, INT64_MAX, &sum));
    EW_CHECK((uint64_t)sum == ew_hash_of(r->bytes, EW_ENGINE_HEAD), EW_ERR_FORMAT,
             "%s: its head is damaged", r->what);
    EW_CHECK(version == EW_ENGINE_VERSION && count == EW_ENGINE_SECTIONS, EW_ERR_FORMAT,
             "%s: its head is wrong", r->what);
    EW_CHECK(size <= (int64_t)r->size, EW_ERR_FORMAT, "%s: is cut off at %zu of %lld bytes",
             r->what, r->size, (long long)size);
    EW_CHECK(size == (int64_t)r->size, EW_ERR_FORMAT, "%s: has %lld bytes too many", r->what,
             (long long)((int64_t)r->size - size));
    return EW_OK;
}

/* Sections must be contiguous, page-aligned, and end with the file. */
static ew_err check_sections(const struct reader *r)
{
    int64_t at = EW_ENGINE_PAGE;
    const int64_t size = (int64_t)r->size;
    for (int i = 0; i < EW_ENGINE_SECTIONS; i++) {
        const struct ew_engine_section *s = &r->section[i];
        EW_CHECK(s->offset == at && at <= size && s->bytes >= 0 && s->bytes <= size - at,
                 EW_ERR_FORMAT, "%s: section %d does not fit in it", r->what, i);
        at = i + 1 < EW_ENGINE_SECTIONS ? ew_engine_page_up(at + s->bytes) : at + s->bytes;
    }
    EW_CHECK(at == size, EW_ERR_FORMAT, "%s: its sections are not all of it", r->what);
    return EW_OK;
}

static ew_err check_gap(const struct reader *r, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        EW_CHECK(r->bytes[i] == 0, EW_ERR_FORMAT, "%s: is damaged at byte %lld", r->what,
                 (long long)i);
    return EW_OK;
}

static ew_err check_sum(const struct reader *r, int i, const char *name)
{
    const struct ew_engine_section *s = &r->section[i];
    const unsigned char *p = r->bytes + s->offset;
    const size_t n = (size_t)s->bytes;
    EW_CHECK((i == EW_ENGINE_PLAN ? ew_hash_of(p, n) : ew_hash_wide_of(p, n)) == s->sum,
             EW_ERR_FORMAT, "%s: its %s are damaged, the checksum differs", r->what, name);
    return EW_OK;
}

static ew_err check_file(struct reader *r)
{
    EW_TRY(read_head(r));
    EW_TRY(check_sections(r));
    EW_TRY(check_gap(r, EW_ENGINE_HEAD + 8, EW_ENGINE_PAGE));
    for (int i = 0; i + 1 < EW_ENGINE_SECTIONS; i++)
        EW_TRY(check_gap(r, r->section[i].offset + r->section[i].bytes, r->section[i + 1].offset));
    EW_TRY(check_sum(r, EW_ENGINE_PLAN, "steps"));
    return check_sum(r, EW_ENGINE_PACKED, "packed weights");
}

/* ---- The PLAN section ---- */

static ew_err get_double(struct reader *r, double *out)
{
    int64_t bits;
    EW_TRY(ew_read_int(&r->in, INT64_MIN, INT64_MAX, &bits));
    memcpy(out, &bits, sizeof(bits));
    EW_CHECK(*out > -1e30 && *out < 1e30, EW_ERR_FORMAT, "%s: a normalisation is out of range",
             r->what);
    return EW_OK;
}

static ew_err get_classes(struct reader *r)
{
    int64_t n;
    EW_TRY(ew_read_int(&r->in, 0, MAX_CLASSES, &n));
    EW_CHECK(n <= (int64_t)(r->in.size - r->in.at) / 8, EW_ERR_FORMAT,
             "%s: has fewer names than its %lld classes", r->what, (long long)n);
    const char **list = ew_arena_array(&r->e->arena, (size_t)n + 1, sizeof(*list));
    EW_CHECK(list, EW_ERR_MEMORY, "%s: no memory", r->what);
    for (int64_t i = 0; i < n; i++)
        EW_TRY(ew_read_text(&r->in, &list[i]));
    r->e->card.classes = list;
    r->e->card.n_classes = (int)n;
    return EW_OK;
}

static ew_err get_card(struct reader *r)
{
    struct ew_engine_card *c = &r->e->card;
    const char **const texts[] = {&c->name, &c->program, &c->arch,
                                  &c->isa,  &c->kernels, &c->precision};
    for (size_t i = 0; i < EW_COUNT(texts); i++)
        EW_TRY(ew_read_text(&r->in, texts[i]));
    struct ew_facts *f = &c->facts;
    int64_t *const numbers[] = {&c->batch_min,  &c->batch_max,    &c->threads, &c->block_bytes,
                                &f->params,     &f->weight_bytes, &f->macs,    &f->flops,
                                &f->flops_thop, &f->nodes,        &f->cdl,     &f->cdl_nodes,
                                &c->prep.resize};
    for (size_t i = 0; i < EW_COUNT(numbers); i++)
        EW_TRY(ew_read_int(&r->in, 0, MAX_NUMBER, numbers[i]));
    EW_CHECK(c->batch_min >= 1 && c->batch_max >= c->batch_min &&
                 c->batch_max - c->batch_min < EW_ENGINE_BATCHES && c->threads <= 1024 &&
                 c->prep.resize <= EW_ENGINE_COVER,
             EW_ERR_FORMAT, "%s: its batches %lld to %lld, threads %lld or resize %lld are wrong",
             r->what, (long long)c->batch_min, (long long)c->batch_max, (long long)c->threads,
             (long long)c->prep.resize);
    if (c->prep.resize == EW_ENGINE_COVER)
        c->prep.resize = EW_RESIZE_COVER;
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++) {
        EW_TRY(get_double(r, &c->prep.mean[i]));
        EW_TRY(get_double(r, &c->prep.std[i]));
        c->prep.normalised |= c->prep.std[i] > 0;
    }
    return get_classes(r);
}

static ew_err get_choices(struct reader *r)
{
    const struct ew_engine_card *c = &r->e->card;
    const int64_t n = (c->batch_max - c->batch_min + 1) * r->e->graph->n_nodes;
    const int64_t room = (int64_t)(r->in.size - r->in.at) / 8;
    int64_t n_names, k;
    EW_TRY(ew_read_int(&r->in, 0, n, &n_names));
    EW_CHECK(n <= room, EW_ERR_FORMAT, "%s: ends before its kernels", r->what);
    const char **names = ew_arena_array(&r->e->arena, (size_t)n_names + 1, sizeof(*names));
    const char **choices = ew_arena_array(&r->e->arena, (size_t)n + 1, sizeof(*choices));
    EW_CHECK(names && choices, EW_ERR_MEMORY, "%s: no memory", r->what);
    for (int64_t i = 0; i < n_names; i++)
        EW_TRY(ew_read_text(&r->in, &names[i]));
    for (int64_t i = 0; i < n; i++) {
        EW_TRY(ew_read_int(&r->in, -1, n_names - 1, &k));
        choices[i] = k < 0 ? NULL : names[k];
    }
    r->e->choices = choices;
    return EW_OK;
}

static ew_err get_packed(struct reader *r)
{
    int64_t n, node, offset, bytes, at = 0;
    const struct ew_engine_section *s = &r->section[EW_ENGINE_PACKED];
    EW_TRY(ew_read_int(&r->in, 0, (int64_t)(r->in.size - r->in.at) / 8, &n));
    struct ew_engine_packed *list = ew_arena_array(&r->e->arena, (size_t)n + 1, sizeof(*list));
    EW_CHECK(list, EW_ERR_MEMORY, "%s: no memory", r->what);
    for (int64_t i = 0; i < n; i++) {
        EW_TRY(ew_read_int(&r->in, 0, (int64_t)r->e->graph->n_nodes - 1, &node));
        EW_TRY(ew_read_text(&r->in, &list[i].kernel));
        EW_TRY(ew_read_int(&r->in, 0, s->bytes, &offset));
        EW_TRY(ew_read_int(&r->in, 1, s->bytes - offset, &bytes));
        EW_CHECK(offset == at, EW_ERR_FORMAT, "%s: packed weights %lld lie in the wrong place",
                 r->what, (long long)i);
        list[i].node = (int)node;
        list[i].bytes = (size_t)bytes;
        list[i].data = r->bytes + s->offset + offset;
        at = offset + (int64_t)ew_align_up((size_t)bytes);
    }
    EW_CHECK(at == s->bytes, EW_ERR_FORMAT, "%s: its packed weights have %lld bytes, not %lld",
             r->what, (long long)s->bytes, (long long)at);
    r->e->packed = list;
    r->e->n_packed = (int)n;
    return EW_OK;
}

/* ---- Large weights ---- */

#define PACKED_SHARE 1024 /* bound of left-out weights: this many times the PACKED section */

struct weight {
    int value;
    int64_t offset, bytes; /* offset -1: left out */
};

static ew_err get_weight(struct reader *r, int64_t at, struct weight *w)
{
    const struct ew_engine_section *s = &r->section[EW_ENGINE_WEIGHTS];
    const char *name;
    int64_t kind;
    EW_TRY(ew_read_text(&r->in, &name));
    EW_TRY(ew_read_int(&r->in, EW_VALUE_CONST, EW_VALUE_STATE, &kind));
    EW_TRY(ew_read_int(&r->in, -1, s->bytes, &w->offset));
    EW_TRY(ew_read_int(&r->in, 0, MAX_NUMBER, &w->bytes));
    w->value = ew_graph_find(r->e->graph, name);
    struct ew_value *v = w->value < 0 ? NULL : &r->e->graph->values[w->value];
    EW_CHECK(v && v->kind == EW_VALUE_PARAM && !v->t.data &&
                 ew_tensor_bytes(&v->t) == (size_t)w->bytes,
             EW_ERR_FORMAT, "%s: weights %s do not belong to it", r->what, name);
    /* kernels may pack fewer taps than there are, but not none */
    const int64_t most =
        w->offset < 0 ? PACKED_SHARE * r->section[EW_ENGINE_PACKED].bytes : s->bytes - w->offset;
    EW_CHECK(w->bytes <= most && (w->offset < 0 || w->offset == at), EW_ERR_FORMAT,
             "%s: weights %s lie in the wrong place", r->what, name);
    v->kind = (enum ew_value_kind)kind;
    return EW_OK;
}

static void *unconst(const void *p)
{
    void *q;
    memcpy(&q, &p, sizeof(q));
    return q;
}

/* Maps zero pages, which take no memory. */
static ew_err map_zeros(struct reader *r, size_t bytes)
{
    if (bytes == 0)
        return EW_OK;
    void *p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EW_CHECK(p != MAP_FAILED, EW_ERR_MEMORY, "%s: no addresses for %zu bytes", r->what, bytes);
    r->e->zeros = p;
    r->e->zeros_bytes = bytes;
    return EW_OK;
}

static ew_err place_weights(struct reader *r, const struct weight *list, int64_t n)
{
    size_t most = 0;
    struct ew_graph *g = r->e->graph;
    bool *absent = ew_arena_array(&r->e->arena, (size_t)g->n_values + 1, sizeof(*absent));
    EW_CHECK(absent, EW_ERR_MEMORY, "%s: no memory", r->what);
    for (int64_t i = 0; i < n; i++)
        if (list[i].offset < 0 && (size_t)list[i].bytes > most)
            most = (size_t)list[i].bytes;
    EW_TRY(map_zeros(r, most));
    const unsigned char *base = r->bytes + r->section[EW_ENGINE_WEIGHTS].offset;
    for (int64_t i = 0; i < n; i++) {
        absent[list[i].value] = list[i].offset < 0;
        g->values[list[i].value].t.data =
            list[i].offset < 0 ? r->e->zeros : unconst(base + list[i].offset);
    }
    if (most)
        r->e->absent = absent;
    return EW_OK;
}

static ew_err get_weights(struct reader *r)
{
    int64_t n, at = 0;
    EW_TRY(ew_read_int(&r->in, 0, r->e->graph->n_values, &n));
    EW_CLEANUP(ew_free_ptr) struct weight *list = calloc((size_t)n + 1, sizeof(*list));
    EW_CLEANUP(ew_free_ptr) bool *seen = calloc((size_t)r->e->graph->n_values + 1, sizeof(*seen));
    EW_CHECK(list && seen, EW_ERR_MEMORY, "%s: no memory", r->what);
    for (int64_t i = 0; i < n; i++) {
        EW_TRY(get_weight(r, at, &list[i]));
        EW_CHECK(!seen[list[i].value], EW_ERR_FORMAT, "%s: has weights twice", r->what);
        seen[list[i].value] = true;
        if (list[i].offset >= 0)
            at += (int64_t)ew_align_up((size_t)list[i].bytes);
    }
    EW_CHECK(at == r->section[EW_ENGINE_WEIGHTS].bytes, EW_ERR_FORMAT,
             "%s: its weights have %lld bytes, not %lld", r->what,
             (long long)r->section[EW_ENGINE_WEIGHTS].bytes, (long long)at);
    EW_TRY(place_weights(r, list, n));
    const struct ew_graph *g = r->e->graph;
    for (int v = 0; v < g->n_values; v++)
        EW_CHECK(g->values[v].t.data || !ew_value_is_weight(&g->values[v]), EW_ERR_FORMAT,
                 "%s: weights %s are missing", r->what, g->values[v].name);
    return EW_OK;
}

static ew_err get_all(struct reader *r)
{
    EW_TRY(check_file(r));
    const struct ew_engine_section *s = &r->section[EW_ENGINE_PLAN];
    r->in = (struct ew_byte_reader){.bytes = r->bytes + s->offset,
                                    .size = (size_t)s->bytes,
                                    .what = r->what,
                                    .arena = &r->e->arena,
                                    .borrow = true};
    EW_TRY(get_card(r));
    EW_TRY(ew_graph_read(&r->in, &r->e->graph));
    EW_TRY(get_choices(r));
    EW_TRY(get_packed(r));
    EW_TRY(get_weights(r));
    EW_CHECK(r->in.at == r->in.size, EW_ERR_FORMAT, "%s: has something after its steps", r->what);
    /* infer again, now that large constants have data */
    const ew_err e = ew_graph_infer(r->e->graph);
    return e == EW_OK ? e : ew_fail_in(EW_ERR_FORMAT, "%s", r->what);
}

ew_err ew_engine_file_parse(const void *bytes, size_t size, const char *what,
                            struct ew_engine_file *out)
{
    *out = (struct ew_engine_file){0};
    ew_arena_init(&out->arena);
    struct reader r = {.e = out, .bytes = bytes, .size = size, .what = what};
    const ew_err e = get_all(&r);
    if (e != EW_OK)
        ew_engine_file_close(out);
    out->bytes = e == EW_OK ? bytes : NULL;
    out->size = e == EW_OK ? size : 0;
    return e;
}

/* ---- Files ---- */

static ew_err map_file(const char *path, void **map, size_t *size)
{
    struct stat st;
    int fd;
    EW_TRY(ew_file_open(path, &fd));
    if (fstat(fd, &st) != 0 || st.st_size == 0) {
        close(fd);
        return ew_fail(EW_ERR_FORMAT, "%s: not an engine file", path);
    }
    *size = (size_t)st.st_size;
    *map = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
    const int e = errno;
    close(fd);
    EW_CHECK(*map != MAP_FAILED, EW_ERR_MEMORY, "%s: cannot be mapped: %s", path, strerror(e));
    return EW_OK;
}

ew_err ew_engine_file_open(const char *path, struct ew_engine_file *out)
{
    void *map = NULL;
    size_t size = 0;
    EW_TRY(map_file(path, &map, &size));
    const ew_err e = ew_engine_file_parse(map, size, path, out);
    if (e != EW_OK)
        munmap(map, size);
    out->mapped = e == EW_OK;
    return e;
}

void ew_engine_file_close(struct ew_engine_file *e)
{
    ew_graph_free(e->graph);
    ew_arena_fini(&e->arena);
    if (e->zeros)
        munmap(e->zeros, e->zeros_bytes);
    if (e->mapped)
        munmap((void *)(uintptr_t)e->bytes, e->size);
    *e = (struct ew_engine_file){0};
}

ew_err ew_engine_file_check_weights(const struct ew_engine_file *e, const char *what)
{
    struct reader r = {.bytes = e->bytes, .size = e->size, .what = what};
    EW_TRY(read_head(&r));
    EW_TRY(check_sections(&r));
    return check_sum(&r, EW_ENGINE_WEIGHTS, "weights");
}

bool ew_engine_file_is(const char *path)
{
    char head[8] = {0};
    return ew_file_head(path, head, 8) == 8 && memcmp(head, EW_ENGINE_MAGIC, 8) == 0;
}
