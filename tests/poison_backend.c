/* SPDX-License-Identifier: Apache-2.0 */
/* A backend whose memory the host must not touch. */
#include "poison_backend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/backend_type.h"
#include "base/clock.h"
#include "base/mem.h"
#include "op/optimizer.h"
#include "op/quant_weights.h"

#define POISON 0xcb

enum { NO_KERNELS, SOME_KERNELS, ALL_KERNELS, HALF, FUSED, LATE, KINDS };

struct block {
    struct ew_memory base;
    struct block *next, **link;
    char *data;
    size_t mapped;
};

/* A deferred command: a copy or a run. */
struct started {
    struct block *block;
    size_t offset, bytes;
    const void *from; /* not NULL: copy to the device */
    void *to;         /* not NULL: copy to the host */
    struct program *program;
    struct ew_optimizer optimizer, *where; /* copy at the time of the start, and its address in
                                            * calls */
};

#define MOST_STARTED 64
#define MOST_OF_HOST 64

struct poison {
    struct ew_backend base;
    int kernels;
    bool late;
    struct block *blocks;
    struct ew_poison_counts counts;
    struct started started[MOST_STARTED];
    int n_started;
    int64_t done; /* number of deferred commands executed so far */
    int64_t events[EW_EVENTS];
    struct {
        char *data;
        size_t bytes;
    } of_host[MOST_OF_HOST];
};

struct program {
    struct ew_program base;
    bool recorded;
    int n;
    struct ew_command commands[];
};

static const struct ew_backend_type poison_type, late_type;

static struct poison *poison(const struct ew_backend *be)
{
    struct poison *p;
    memcpy(&p, &be, sizeof(p));
    return p;
}

static bool find(int i, struct ew_device_found *out)
{
    strcpy(out->device, "poison");
    strcpy(out->name, "memory without access");
    strcpy(out->target, "poison");
    strcpy(out->kernels, "references");
    return i == 0;
}

static ew_err open_poison(const char *arguments, const struct ew_backend_opts *o,
                          struct ew_backend **out)
{
    static const char *const words[KINDS] = {"", "some", "all", "half", "fused", "late"};
    struct poison *p = calloc(1, sizeof(*p));
    EW_CHECK(p, EW_ERR_MEMORY, "no memory for a backend");
    while (p->kernels < KINDS && strcmp(words[p->kernels], arguments) != 0)
        p->kernels++;
    if (p->kernels == KINDS) {
        free(p);
        return ew_fail(EW_ERR_USAGE, "%s is none of some, all, half, fused, late", arguments);
    }
    p->base.type = &poison_type;
    p->base.info = (struct ew_device_info){.backend = "poison",
                                           .device = "poison",
                                           .name = "memory without access",
                                           .target = "poison",
                                           .kernels = "references",
                                           .threads = 1};
    if (p->kernels == HALF) {
        p->kernels = NO_KERNELS;
        p->base.info.storage = EW_F16;
        p->base.info.updates_last = true;
    }
    if (p->kernels == FUSED) {
        p->kernels = ALL_KERNELS;
        p->base.info.fused = EW_FUSED_NORM_ADD | EW_FUSED_NORM_ACT;
    }
    if (p->kernels == LATE) {
        p->kernels = ALL_KERNELS;
        p->late = true;
        p->base.type = &late_type;
    }
    ew_backend_identify(&p->base);
    *out = &p->base;
    return EW_OK;
}

static void close_poison(struct ew_backend *be)
{
    struct poison *p = poison(be);
    EW_ASSERT(!p->blocks); /* a leak */
    free(p);
}

/* ---- Memory ---- */

static void allow(struct block *b, bool access)
{
    if (mprotect(b->data, b->mapped, access ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        abort();
}

static ew_err alloc(struct ew_backend *be, size_t bytes, struct ew_memory **out)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct block *b = calloc(1, sizeof(*b));
    EW_CHECK(b, EW_ERR_MEMORY, "no memory for a block");
    b->mapped = (bytes + page) / page * page;
    b->data = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->data == MAP_FAILED) {
        free(b);
        return ew_fail(EW_ERR_MEMORY, "no memory for %zu bytes", bytes);
    }
    memset(b->data, POISON, bytes);
    allow(b, false);
    b->base = (struct ew_memory){be, bytes};
    b->link = &poison(be)->blocks;
    b->next = *b->link;
    if (b->next)
        b->next->link = &b->next;
    *b->link = b;
    *out = &b->base;
    return EW_OK;
}

static void release(struct ew_memory *m)
{
    struct block *b = (struct block *)m;
    *b->link = b->next;
    if (b->next)
        b->next->link = b->link;
    munmap(b->data, b->mapped);
    free(b);
}

static ew_err put(struct ew_memory *m, size_t offset, const void *from, size_t bytes)
{
    struct block *b = (struct block *)m;
    struct ew_poison_counts *c = &poison(m->be)->counts;
    allow(b, true);
    memcpy(b->data + offset, from, bytes);
    allow(b, false);
    c->writes++;
    c->written_bytes += (int64_t)bytes;
    return EW_OK;
}

static ew_err get(struct ew_memory *m, size_t offset, void *to, size_t bytes)
{
    struct block *b = (struct block *)m;
    struct ew_poison_counts *c = &poison(m->be)->counts;
    allow(b, true);
    memcpy(to, b->data + offset, bytes);
    allow(b, false);
    c->reads++;
    c->read_bytes += (int64_t)bytes;
    return EW_OK;
}

static ew_err fill(struct ew_memory *m, size_t offset, int byte, size_t bytes)
{
    struct block *b = (struct block *)m;
    allow(b, true);
    memset(b->data + offset, byte, bytes);
    allow(b, false);
    poison(m->be)->counts.fills++;
    return EW_OK;
}

static ew_err put_floats(struct ew_memory *m, size_t offset, const float *from, size_t n)
{
    EW_CLEANUP(ew_free_ptr) uint16_t *half = calloc(n, sizeof(*half));
    EW_CHECK(half, EW_ERR_MEMORY, "no memory for %zu numbers", n);
    for (size_t i = 0; i < n; i++)
        half[i] = ew_f32_to_f16(from[i]);
    return put(m, offset, half, n * sizeof(*half));
}

static ew_err get_floats(struct ew_memory *m, size_t offset, float *to, size_t n)
{
    EW_CLEANUP(ew_free_ptr) uint16_t *half = calloc(n, sizeof(*half));
    EW_CHECK(half, EW_ERR_MEMORY, "no memory for %zu numbers", n);
    EW_TRY(get(m, offset, half, n * sizeof(*half)));
    for (size_t i = 0; i < n; i++)
        to[i] = ew_f16_to_f32(half[i]);
    return EW_OK;
}

static void *address(struct ew_memory *m, size_t offset)
{
    return ((struct block *)m)->data + offset;
}

/* ---- Kernels ---- */

static int index_of(const struct ew_op *op)
{
    for (int i = 0; i < ew_op_count(); i++)
        if (ew_op_at(i) == op)
            return i;
    return -1;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_op *op = query->op;
    const int kernels = poison(query->be)->kernels;
    const bool has = kernels == ALL_KERNELS || (kernels == SOME_KERNELS && index_of(op) % 2 == 0);
    *out = (struct ew_kernel){.name = "poison",
                              .run = query->phase == EW_PHASE_FORWARD ? op->forward : op->backward,
                              .scratch = op->scratch ? op->scratch(query->c) : 0};
    return has && out->run;
}

static ew_err clear(const struct ew_call *c)
{
    memset(c->out[0]->data, 0, ew_tensor_bytes(c->out[0]));
    return EW_OK;
}

static ew_err seed(const struct ew_call *c)
{
    const double share = 1.0 / *(const int *)c->attr;
    ew_tensor_store(c->out[0], 0, 1, &share);
    return EW_OK;
}

/* The loss gradient (EW_TASK_SEED) is left to the host, except in poison:late. */
static bool task(const struct ew_backend *be, enum ew_task what, const struct ew_optimizer *o,
                 struct ew_kernel *out)
{
    static const struct ew_kernel tasks[] = {
        [EW_TASK_CLEAR] = {.name = "poison clear", .run = clear},
        [EW_TASK_SEED] = {.name = "poison seed", .run = seed},
        [EW_TASK_UPDATE] = {.name = "poison update", .run = ew_update_run},
        [EW_TASK_ROUND] = {.name = "poison round", .run = ew_weight_round_run},
        [EW_TASK_RESTORE] = {.name = "poison restore", .run = ew_weight_restore_run}};
    *out = tasks[what];
    return (what != EW_TASK_SEED || poison(be)->late) && poison(be)->kernels != NO_KERNELS;
}

/* ---- Programs ---- */

static ew_err load(struct ew_backend *be, const struct ew_command *commands, int n,
                   struct ew_program **out)
{
    struct program *p = calloc(1, sizeof(*p) + (size_t)n * sizeof(*commands));
    EW_CHECK(p, EW_ERR_MEMORY, "no memory for %d steps", n);
    p->base.be = be;
    p->n = n;
    memcpy(p->commands, commands, (size_t)n * sizeof(*commands));
    *out = &p->base;
    return EW_OK;
}

static void unload(struct ew_program *p)
{
    free(p);
}

static void allow_all(struct poison *p, bool access)
{
    for (struct block *b = p->blocks; b; b = b->next)
        allow(b, access);
}

static ew_err run(struct ew_program *base, const struct ew_run_params *params, int64_t *ns)
{
    struct program *p = (struct program *)base;
    struct poison *be = poison(base->be);
    ew_err e = EW_OK;
    allow_all(be, true);
    for (int k = 0; k < p->n && e == EW_OK; k++) {
        const int64_t start = ew_clock_ns();
        e = p->commands[k].kernel->run(p->commands[k].call);
        if (ns)
            ns[k] = ew_clock_ns() - start;
    }
    allow_all(be, false);
    be->counts.runs++;
    be->counts.recordings += !p->recorded;
    p->recorded = true;
    return e;
}

/* ---- Deferred execution ---- */

static bool is_of_host(const struct poison *p, const void *at)
{
    for (int i = 0; i < MOST_OF_HOST; i++)
        if ((uintptr_t)at - (uintptr_t)p->of_host[i].data < p->of_host[i].bytes)
            return true;
    return false;
}

static ew_err alloc_host(struct ew_backend *be, size_t bytes, void **out)
{
    struct poison *p = poison(be);
    int i = 0;
    while (i < MOST_OF_HOST && p->of_host[i].data)
        i++;
    EW_ASSERT(i < MOST_OF_HOST);
    EW_TRY(ew_aligned_new(bytes, out));
    p->of_host[i].data = *out;
    p->of_host[i].bytes = bytes;
    return EW_OK;
}

static void free_host(struct ew_backend *be, void *at)
{
    struct poison *p = poison(be);
    for (int i = 0; i < MOST_OF_HOST; i++)
        if (p->of_host[i].data == at)
            p->of_host[i].data = NULL, p->of_host[i].bytes = 0;
    free(at);
}

static ew_err do_one(const struct started *s)
{
    if (s->from)
        return put(&s->block->base, s->offset, s->from, s->bytes);
    if (s->to)
        return get(&s->block->base, s->offset, s->to, s->bytes);
    const struct ew_optimizer now = s->where ? *s->where : (struct ew_optimizer){0};
    if (s->where)
        *s->where = s->optimizer;
    const ew_err e = run(&s->program->base, NULL, NULL);
    if (s->where)
        *s->where = now;
    return e;
}

/* Executes the deferred commands with numbers below `until`. */
static ew_err catch_up(struct poison *p, int64_t until)
{
    int n = 0;
    ew_err e = EW_OK;
    for (; n < p->n_started && p->done < until; n++, p->done++)
        e = e == EW_OK ? do_one(&p->started[n]) : e;
    p->n_started -= n;
    memmove(p->started, p->started + n, (size_t)p->n_started * sizeof(p->started[0]));
    return e;
}

static ew_err sync_late(struct ew_backend *be)
{
    return catch_up(poison(be), INT64_MAX);
}

static void start_later(struct poison *p, const struct started *s)
{
    EW_ASSERT(p->n_started < MOST_STARTED);
    p->started[p->n_started++] = *s;
}

static ew_err put_late(struct ew_memory *m, size_t offset, const void *from, size_t bytes)
{
    struct poison *p = poison(m->be);
    if (!is_of_host(p, from)) {
        EW_TRY(sync_late(m->be));
        return put(m, offset, from, bytes);
    }
    const struct started s = {(struct block *)m, offset, bytes, .from = from};
    start_later(p, &s);
    return EW_OK;
}

static ew_err get_late(struct ew_memory *m, size_t offset, void *to, size_t bytes)
{
    struct poison *p = poison(m->be);
    if (!is_of_host(p, to)) {
        EW_TRY(sync_late(m->be));
        return get(m, offset, to, bytes);
    }
    memset(to, POISON, bytes); /* so that premature reads are noticed */
    const struct started s = {(struct block *)m, offset, bytes, .to = to};
    start_later(p, &s);
    return EW_OK;
}

static ew_err fill_late(struct ew_memory *m, size_t offset, int byte, size_t bytes)
{
    EW_TRY(sync_late(m->be));
    return fill(m, offset, byte, bytes);
}

static ew_err run_late(struct ew_program *base, const struct ew_run_params *params, int64_t *ns)
{
    struct started s = {.program = (struct program *)base};
    if (ns) {
        EW_TRY(sync_late(base->be));
        return run(base, params, ns);
    }
    if (params->optimizer) {
        s.optimizer = *params->optimizer;
        memcpy(&s.where, &params->optimizer, sizeof(s.where));
    }
    start_later(poison(base->be), &s);
    return EW_OK;
}

static ew_err event_record(struct ew_backend *be, int event)
{
    poison(be)->events[event] = poison(be)->done + poison(be)->n_started;
    return EW_OK;
}

static ew_err event_wait(struct ew_backend *be, int event)
{
    return catch_up(poison(be), poison(be)->events[event]);
}

static ew_err event_elapsed(struct ew_backend *be, int from, int to, int64_t *ns)
{
    *ns = 1000 * (poison(be)->events[to] - poison(be)->events[from]);
    return EW_OK;
}

/* ---- Backend types ---- */

static const struct ew_backend_type late_type = {.name = "poison",
                                                 .help = "it does what it is told when asked again",
                                                 .find = find,
                                                 .open = open_poison,
                                                 .close = close_poison,
                                                 .alloc = alloc,
                                                 .free = release,
                                                 .write = put_late,
                                                 .read = get_late,
                                                 .fill = fill_late,
                                                 .host_alloc = alloc_host,
                                                 .host_free = free_host,
                                                 .address = address,
                                                 .offer = offer,
                                                 .task = task,
                                                 .load = load,
                                                 .unload = unload,
                                                 .run = run_late,
                                                 .sync = sync_late,
                                                 .event_record = event_record,
                                                 .event_wait = event_wait,
                                                 .event_elapsed = event_elapsed};

static const struct ew_backend_type poison_type = {.name = "poison",
                                                   .help = "memory without access, for tests",
                                                   .find = find,
                                                   .open = open_poison,
                                                   .close = close_poison,
                                                   .alloc = alloc,
                                                   .free = release,
                                                   .write = put,
                                                   .read = get,
                                                   .fill = fill,
                                                   .write_floats = put_floats,
                                                   .read_floats = get_floats,
                                                   .address = address,
                                                   .offer = offer,
                                                   .task = task,
                                                   .load = load,
                                                   .unload = unload,
                                                   .run = run};

ew_err ew_poison_register(void)
{
    struct ew_device_found found;
    for (int i = 0; ew_backend_find(i, &found); i++)
        if (strcmp(found.backend, "poison") == 0)
            return EW_OK;
    return ew_backend_register(&poison_type);
}

struct ew_poison_counts ew_poison_counts(const struct ew_backend *be)
{
    return poison(be)->counts;
}
