/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing kernels by measuring them. */
#include "plan/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/cpu/isa.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"

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
    uint64_t machine;
};

/* ---- Keys ---- */

static uint64_t hash_text(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u; /* FNV-1a */
    return (h ^ 0x1f) * 1099511628211u;               /* the end of the text counts */
}

/* The CPU as /proc/cpuinfo names it: kernels are ranked per model. */
static uint64_t hash_machine(void)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size = 0;
    uint64_t h = 1469598103934665603u;
    if (ew_file_read("/proc/cpuinfo", CACHE_LIMIT, &text, &size) != EW_OK)
        return h;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, "model name", 10) == 0 || strncmp(line, "CPU part", 8) == 0)
            return hash_text(h, line);
    return h;
}

static uint64_t key_of(const struct ew_tuner *t, const struct ew_kernel_query *query)
{
    char text[256];
    uint64_t h = hash_text(t->machine, query->be->isa->isa);
    snprintf(text, sizeof(text), "%d %d", ew_pool_threads(query->be->pool), query->phase);
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

static ew_err remember(struct ew_tuner *t, uint64_t key, const char *kernel)
{
    EW_TRY(ew_grow((void **)&t->entries, &t->cap, t->n + 1, sizeof(*t->entries)));
    struct entry e = {.key = key};
    snprintf(e.kernel, sizeof(e.kernel), "%s", kernel);
    t->entries[t->n++] = e;
    return EW_OK;
}

/* ---- The file ---- */

/* Lines that do not parse are passed over: the file only saves time. */
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
            EW_TRY(remember(t, key, end + 1));
    }
    return EW_OK;
}

ew_err ew_tuner_open(const char *path, struct ew_tuner **out)
{
    struct ew_tuner *t = calloc(1, sizeof(*t));
    EW_CHECK(t, EW_ERR_MEMORY, "no memory to tune");
    t->machine = hash_machine();
    t->path = path ? strdup(path) : NULL;
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size = 0;
    ew_err e = EW_OK;
    if (path && ew_file_read(path, CACHE_LIMIT, &text, &size) == EW_OK)
        e = parse(t, text);
    if (e != EW_OK) {
        t->measured = 0;
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
    return ew_file_write(t->path, text, used);
}

ew_err ew_tuner_close(struct ew_tuner *t)
{
    if (!t)
        return EW_OK;
    const ew_err e = t->path && t->measured ? save(t) : EW_OK;
    free(t->path);
    free(t->entries);
    free(t);
    return e;
}

int ew_tuner_measured(const struct ew_tuner *t)
{
    return t->measured;
}

const char *ew_tuner_default_path(char *buf)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache)
        snprintf(buf, 480, "%s/edgewise", cache);
    else if (home && *home)
        snprintf(buf, 480, "%s/.cache/edgewise", home);
    else
        return NULL;
    char *slash = strrchr(buf, '/');
    *slash = 0;
    mkdir(buf, 0777); /* where these fail, writing the file will say so */
    *slash = '/';
    mkdir(buf, 0777);
    return strcat(buf, "/tune");
}

/* ---- Measuring ---- */

/* A copy of the call whose activations have memory of their own. */
struct trial {
    struct ew_arena arena;
    struct ew_call c;
};

static struct ew_tensor **copy_tensors(struct trial *t, struct ew_tensor *const *from, int n)
{
    struct ew_tensor **list = ew_arena_array(&t->arena, (size_t)n + 1, sizeof(*list));
    for (int i = 0; list && i < n; i++) {
        if (!from[i])
            continue;
        list[i] = ew_arena_alloc(&t->arena, sizeof(**list));
        if (!list[i])
            return NULL;
        *list[i] = *from[i];
        if (list[i]->data)
            continue;
        list[i]->data = ew_arena_alloc(&t->arena, ew_tensor_bytes(list[i]));
        if (!list[i]->data)
            return NULL;
        for (int64_t k = 0; k < ew_tensor_count(list[i]) && list[i]->dtype == EW_F32; k++)
            ((float *)list[i]->data)[k] = (float)((k * 2654435761u % 1024) - 512) * 0.002f;
    }
    return list;
}

/* Nanoseconds of the best of a few runs; INT64_MAX where it cannot run. */
static int64_t measure(struct trial *t, const struct ew_kernel *k)
{
    void *scratch = NULL, *state = NULL, *packed = NULL;
    int64_t best = INT64_MAX;
    if (ew_aligned_new(k->scratch, &scratch) == EW_OK &&
        ew_aligned_new(k->state, &state) == EW_OK && ew_aligned_new(k->packed, &packed) == EW_OK) {
        t->c.scratch = scratch;
        t->c.state = state;
        t->c.packed = packed;
        bool ok = !k->prepare || k->prepare(&t->c) == EW_OK;
        ok = ok && (!k->pack || k->pack(&t->c) == EW_OK);
        for (int round = 0; ok && round < ROUNDS; round++) {
            const int64_t start = ew_clock_ns();
            ok = k->run(&t->c) == EW_OK;
            const int64_t ns = ew_clock_ns() - start;
            best = ok && ns < best ? ns : best;
        }
    }
    free(scratch);
    free(state);
    free(packed);
    return best;
}

static int fastest(const struct ew_kernel_query *query, const struct ew_kernel *offers, int n)
{
    struct trial t = {.c = *query->c};
    t.c.out_step = 0; /* its output has no neighbours here */
    ew_arena_init(&t.arena);
    struct ew_tensor **in = copy_tensors(&t, query->c->in, query->c->n_in);
    struct ew_tensor **out = copy_tensors(&t, query->c->out, query->c->n_out);
    t.c.in = in;
    t.c.out = out;
    int best = 0;
    int64_t best_ns = INT64_MAX;
    for (int i = 0; in && out && i < n; i++) {
        const int64_t ns = measure(&t, &offers[i]);
        best = ns < best_ns ? i : best;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    ew_arena_fini(&t.arena);
    return best;
}

ew_err ew_tuner_pick(struct ew_tuner *t, const struct ew_kernel_query *query,
                     const struct ew_kernel *offers, int n, int *best)
{
    *best = 0;
    if (n > 1 && strcmp(offers[n - 1].name, "reference") == 0)
        n--; /* it is there to be right, not to be timed */
    if (n < 2 || query->phase != EW_PHASE_FORWARD || !query->be->isa)
        return EW_OK;
    const uint64_t key = key_of(t, query);
    const struct entry *e = find(t, key);
    for (int i = 0; e && i < n; i++) {
        if (strcmp(offers[i].name, e->kernel) == 0) {
            *best = i;
            return EW_OK;
        }
    }
    *best = fastest(query, offers, n);
    t->measured++;
    return e ? EW_OK : remember(t, key, offers[*best].name);
}
