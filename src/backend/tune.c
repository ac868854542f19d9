/* SPDX-License-Identifier: Apache-2.0 */
/* Autotuning and its cache. */
#include "backend/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/owned.h"

#define HEADER      "edgewise-tune 2\n"
#define CACHE_LIMIT ((size_t)16 << 20)
#define ROUNDS      5
#define NAME_CHARS  32

struct entry {
    uint64_t key;
    char kernel[NAME_CHARS];
};

struct ew_tuner {
    char *path;
    struct entry *entries;
    int n, cap, measured;
};

/* ---- Keys ---- */

/* FNV-1a, with a separator at the end, so that "ab", "c" and "a", "bc" differ. */
static uint64_t hash_text(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return (h ^ 0x1f) * 1099511628211u;
}

static uint64_t key_of(const struct ew_kernel_query *query)
{
    char text[256];
    const struct ew_device_info *device = ew_backend_info(query->be);
    uint64_t h = hash_text(1469598103934665603u, device->identity);
    snprintf(text, sizeof(text), "%d %d", device->threads, query->phase);
    h = hash_text(hash_text(h, text), query->op->name);
    for (const struct ew_field *f = query->op->attrs; f && f->name; f++) {
        ew_field_print(f, query->c->attr, text, sizeof(text));
        h = hash_text(h, text);
    }
    for (int i = 0; i < query->c->n_in; i++)
        h = hash_text(h, query->c->in[i] ? ew_shape_text(&query->c->in[i]->shape, text) : "-");
    return h;
}

static struct entry *find(struct ew_tuner *t, uint64_t key)
{
    for (int i = 0; i < t->n; i++)
        if (t->entries[i].key == key)
            return &t->entries[i];
    return NULL;
}

static ew_err add_entry(struct ew_tuner *t, uint64_t key, const char *kernel)
{
    EW_TRY(ew_grow((void **)&t->entries, &t->cap, t->n + 1, sizeof(*t->entries)));
    struct entry e = {.key = key};
    snprintf(e.kernel, sizeof(e.kernel), "%s", kernel);
    t->entries[t->n++] = e;
    return EW_OK;
}

/* ---- The file ---- */

/* Malformed lines are skipped: the file only saves time. */
static ew_err parse(struct ew_tuner *t, char *text)
{
    if (strncmp(text, HEADER, strlen(HEADER)) != 0)
        return EW_OK;
    char *save = NULL;
    for (char *line = strtok_r(text + strlen(HEADER), "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *end;
        const uint64_t key = strtoull(line, &end, 16);
        if (end == line + 16 && *end == ' ' && strlen(end + 1) < NAME_CHARS)
            EW_TRY(add_entry(t, key, end + 1));
    }
    return EW_OK;
}

ew_err ew_tuner_open(const char *path, struct ew_tuner **out)
{
    struct ew_tuner *t = calloc(1, sizeof(*t));
    EW_CHECK(t, EW_ERR_MEMORY, "no memory to tune");
    t->path = path ? strdup(path) : NULL;
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size = 0;
    ew_err e = EW_OK;
    if (path && ew_file_read(path, CACHE_LIMIT, &text, &size) == EW_OK)
        e = parse(t, text);
    if (e != EW_OK) {
        ew_tuner_close(t);
        return e;
    }
    *out = t;
    return EW_OK;
}

static ew_err save(const struct ew_tuner *t)
{
    const size_t line = 16 + 1 + NAME_CHARS + 1;
    EW_CLEANUP(ew_free_ptr) char *text = malloc(strlen(HEADER) + line * (size_t)t->n + 1);
    EW_CHECK(text, EW_ERR_MEMORY, "%s: no memory to write it", t->path);
    size_t used = (size_t)sprintf(text, "%s", HEADER);
    for (int i = 0; i < t->n; i++)
        used += (size_t)sprintf(text + used, "%016llx %s\n", (unsigned long long)t->entries[i].key,
                                t->entries[i].kernel);
    EW_TRY(ew_folder_make_parents(t->path));
    return ew_file_write(t->path, text, used);
}

void ew_tuner_close(struct ew_tuner *t)
{
    if (!t)
        return;
    /* a pending error of the caller stays */
    EW_CLEANUP(ew_free_ptr) char *message = strdup(ew_error_message());
    if (t->path && t->measured && save(t) != EW_OK) {
        EW_WARN("%s; what was measured is used, but not remembered", ew_error_message());
        ew_fail(EW_ERR_IO, "%s", message ? message : "");
    }
    free(t->path);
    free(t->entries);
    free(t);
}

int ew_tuner_measured(const struct ew_tuner *t)
{
    return t->measured;
}

const char *ew_tuner_default_path(char buf[EW_TUNE_PATH])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = EW_TUNE_PATH;
    if (cache && *cache)
        n = snprintf(buf, EW_TUNE_PATH, "%s/edgewise/tune", cache);
    else if (home && *home)
        n = snprintf(buf, EW_TUNE_PATH, "%s/.cache/edgewise/tune", home);
    return n < EW_TUNE_PATH ? buf : NULL;
}

/* ---- Measuring ---- */

/* A copy of the call with its own memory. */
struct trial {
    struct ew_backend *be;
    struct ew_arena arena;
    struct ew_call c;
    struct ew_memory *blocks[2 * EW_CASE_INS + 4]; /* all blocks allocated */
    int n_blocks;
};

static void *alloc_block(struct trial *t, size_t bytes, struct ew_memory **out)
{
    struct ew_memory *m;
    if (t->n_blocks == (int)EW_COUNT(t->blocks) || ew_backend_alloc(t->be, bytes, &m) != EW_OK)
        return NULL;
    t->blocks[t->n_blocks++] = *out = m;
    return ew_backend_address(m, 0);
}

/* Weights are copied; activations get small synthetic values. */
static bool fill_tensor(struct trial *t, struct ew_tensor *to, const struct ew_tensor *from)
{
    struct ew_memory *m = NULL;
    const size_t bytes = ew_tensor_bytes(from);
    *to = *from;
    if (from->data && ew_backend_info(t->be)->shares_host)
        return true;
    to->data = alloc_block(t, bytes, &m);
    if (to->data && from->data)
        return ew_backend_write(m, 0, from->data, bytes) == EW_OK;
    EW_CLEANUP(ew_free_ptr) char *host = calloc(1, bytes + 1);
    for (int64_t k = 0; host && k < ew_tensor_count(from) && from->dtype == EW_F32; k++)
        ((float *)(void *)host)[k] = (float)((k * 2654435761u % 1024) - 512) * 0.002f;
    return to->data && host && ew_backend_write(m, 0, host, bytes) == EW_OK;
}

static struct ew_tensor **copy_tensors(struct trial *t, struct ew_tensor *const *from, int n)
{
    struct ew_tensor **list = ew_arena_array(&t->arena, (size_t)n + 1, sizeof(*list));
    for (int i = 0; list && i < n; i++) {
        if (!from[i])
            continue;
        list[i] = ew_arena_alloc(&t->arena, sizeof(**list));
        if (!list[i] || !fill_tensor(t, list[i], from[i]))
            return NULL;
    }
    return list;
}

static void free_blocks(struct trial *t, int n_blocks)
{
    while (t->n_blocks > n_blocks)
        ew_backend_free(t->blocks[--t->n_blocks]);
}

/* Best time of ROUNDS runs in nanoseconds; INT64_MAX: it cannot run. */
static int64_t run_rounds(struct trial *t, const struct ew_kernel *k)
{
    const struct ew_command command = {k, &t->c, -1};
    const struct ew_run_params params = {0};
    struct ew_program *program = NULL;
    int64_t best = INT64_MAX, ns = 0;
    bool ok = (!k->prepare || k->prepare(&t->c) == EW_OK) && (!k->pack || k->pack(&t->c) == EW_OK);
    ok = ok && ew_backend_load(t->be, &command, 1, &program) == EW_OK;
    for (int round = 0; ok && round < ROUNDS; round++) {
        ok = ew_backend_run_timed(program, &params, &ns) == EW_OK;
        best = ok && ns < best ? ns : best;
    }
    ew_backend_unload(program);
    return best;
}

static int64_t measure(struct trial *t, const struct ew_kernel *k)
{
    const int before = t->n_blocks;
    struct ew_memory *m;
    void *state = NULL;
    int64_t best = INT64_MAX;
    t->c.scratch = alloc_block(t, k->scratch, &m);
    t->c.packed = alloc_block(t, k->packed, &m);
    if (t->c.scratch && t->c.packed && ew_aligned_new(k->state, &state) == EW_OK) {
        t->c.state = state;
        best = run_rounds(t, k);
    }
    free(state);
    free_blocks(t, before);
    return best;
}

void ew_tuner_times(struct ew_backend *be, const struct ew_kernel_query *query,
                    const struct ew_kernel *offers, int n, int64_t *ns)
{
    struct trial t = {.be = be, .c = *query->c};
    t.c.out_step = 0; /* the copy of the output is contiguous */
    ew_arena_init(&t.arena);
    struct ew_tensor **in = copy_tensors(&t, query->c->in, query->c->n_in);
    struct ew_tensor **out = copy_tensors(&t, query->c->out, query->c->n_out);
    t.c.in = in;
    t.c.out = out;
    for (int i = 0; i < n; i++)
        ns[i] = in && out ? measure(&t, &offers[i]) : INT64_MAX;
    free_blocks(&t, 0);
    ew_arena_fini(&t.arena);
}

static int fastest(struct ew_backend *be, const struct ew_kernel_query *query,
                   const struct ew_kernel *offers, int n)
{
    int64_t ns[EW_OFFERS];
    int best = 0;
    ew_tuner_times(be, query, offers, n, ns);
    for (int i = 1; i < n; i++)
        best = ns[i] < ns[best] ? i : best;
    return best;
}

ew_err ew_tuner_pick(struct ew_tuner *t, struct ew_backend *be, const struct ew_kernel_query *query,
                     const struct ew_kernel *offers, int n, int *best)
{
    *best = 0;
    if (n > 1 && strcmp(offers[n - 1].name, "reference") == 0)
        n--; /* never the fastest; not worth timing */
    if (n < 2 || query->phase != EW_PHASE_FORWARD)
        return EW_OK;
    const uint64_t key = key_of(query);
    const struct entry *e = find(t, key);
    for (int i = 0; e && i < n; i++) {
        if (strcmp(offers[i].name, e->kernel) == 0) {
            *best = i;
            return EW_OK;
        }
    }
    *best = fastest(be, query, offers, n);
    t->measured++;
    return e ? EW_OK : add_entry(t, key, offers[*best].name);
}
