/* SPDX-License-Identifier: Apache-2.0 */
/* Optimiser updates: consecutive updates of a program are merged into one launch over a table of
 * parameters in device memory (multi-tensor apply). */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_backend.h"
#include "base/mem.h"
#include "op/optimizer.h"

_Static_assert((int)EW_CUDA_ADAMW == (int)EW_OPTIMIZER_ADAMW && EW_OPTIMIZER_COUNT == 4,
               "one numbering of optimisers");

/* One launch, and the commands that it replaces. */
struct group {
    int first, n;
    struct ew_cuda_update update;
    void *table; /* in device memory: parameters, then chunks */
};

struct ew_cuda_updates {
    int n;
    struct group groups[];
};

static bool is_update(const struct ew_command *c)
{
    return c->kernel->run == ew_cuda_run_update;
}

static int chunks_of(int64_t n)
{
    return (int)((n + EW_CUDA_UPDATE_CHUNK - 1) / EW_CUDA_UPDATE_CHUNK);
}

static struct ew_cuda_param param_of(const struct ew_cuda *be, const struct ew_call *c)
{
    return (struct ew_cuda_param){
        .w = c->in[0]->data,
        .g = c->in[1]->data,
        .state = {c->n_in > 2 ? c->in[2]->data : NULL, c->n_in > 3 ? c->in[3]->data : NULL},
        .copy = ew_cuda_cast_of(be, c->in[0]->data),
        .copy_type = be->type,
        .n = ew_tensor_count(c->in[0])};
}

/* Fills the host copy of the table: parameters, the parameter of each chunk, its index within
 * that. */
static void fill_table(const struct ew_cuda *be, const struct ew_command *commands, int n,
                       int chunks, char *to)
{
    struct ew_cuda_param *params = (void *)to;
    int *param = (void *)(to + (size_t)n * sizeof(*params)), *index = param + chunks, at = 0;
    for (int i = 0; i < n; i++) {
        params[i] = param_of(be, commands[i].call);
        for (int k = 0; k < chunks_of(params[i].n); k++, at++) {
            param[at] = i;
            index[at] = k;
        }
    }
}

static ew_err make_group(struct ew_cuda *be, const struct ew_command *commands, struct group *g)
{
    const struct ew_cuda_api *cu = be->cu;
    const struct ew_optimizer *o = commands[0].call->attr;
    int chunks = 0;
    for (int i = 0; i < g->n; i++)
        chunks += chunks_of(ew_tensor_count(commands[i].call->in[0]));
    const size_t params = (size_t)g->n * sizeof(struct ew_cuda_param);
    const size_t bytes = params + 2 * (size_t)chunks * sizeof(int);
    EW_CLEANUP(ew_free_ptr) char *host = calloc(1, bytes + 1);
    EW_CHECK(host, EW_ERR_MEMORY, "no memory for a table of %d parameters", g->n);
    fill_table(be, commands, g->n, chunks, host);
    EW_CUDA_TRY(cu, alloc(bytes, &g->table));
    EW_CUDA_TRY(cu, copy(be->q, g->table, host, bytes, EW_CUDA_TO_DEVICE));
    EW_CUDA_TRY(cu, queue_wait(be->q));
    const int *lists = (const void *)((const char *)g->table + params);
    g->update = (struct ew_cuda_update){.kind = (int)o->kind,
                                        .n_chunks = chunks,
                                        .params = g->table,
                                        .chunk_param = lists,
                                        .chunk_index = lists + chunks,
                                        .rates = be->rates,
                                        .scale = be->scale};
    return EW_OK;
}

ew_err ew_cuda_updates_new(struct ew_cuda *be, const struct ew_command *commands, int n,
                           struct ew_cuda_updates **out)
{
    int groups = 0;
    for (int k = 0; k < n; k++)
        groups += is_update(&commands[k]) && (k == 0 || !is_update(&commands[k - 1]));
    *out = NULL;
    if (groups == 0)
        return EW_OK;
    struct ew_cuda_updates *u = calloc(1, sizeof(*u) + (size_t)groups * sizeof(u->groups[0]));
    EW_CHECK(u, EW_ERR_MEMORY, "no memory for updates");
    *out = u;
    for (int k = 0; k < n; k++) {
        if (!is_update(&commands[k]))
            continue;
        struct group *g = &u->groups[u->n++];
        g->first = k;
        while (k < n && is_update(&commands[k]))
            k++;
        g->n = k - g->first;
        EW_TRY(make_group(be, &commands[g->first], g));
    }
    return EW_OK;
}

void ew_cuda_updates_free(struct ew_cuda *be, struct ew_cuda_updates *u)
{
    for (int i = 0; u && i < u->n; i++)
        be->cu->release(u->groups[i].table);
    free(u);
}

const struct ew_cuda_update *ew_cuda_update_at(const struct ew_cuda_updates *u, int k)
{
    for (int i = 0; u && i < u->n; i++)
        if (u->groups[i].first == k)
            return &u->groups[i].update;
    return NULL;
}

ew_err ew_cuda_run_update(const struct ew_call *c)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    return be->update ? ew_cuda_check(be->cu, be->cu->update(be->q, be->update), "update") : EW_OK;
}
