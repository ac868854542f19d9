/* SPDX-License-Identifier: Apache-2.0 */
/* The list of backends, and calls through their tables. */
#include "backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/candidates.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/dpu/dpu_backend.h"

/* ---- Which there are ---- */

#define MOST_TYPES 16

/* The built-in backends, and those registered later: the only mutable file-scope variables, because
 * modules and tests add to the list. */
static const struct ew_backend_type *types[MOST_TYPES] = {&ew_cpu_type, &ew_cuda_type,
                                                          &ew_dpu_type};
static int n_types = 3;

static const struct ew_backend_type *find_type(const char *name, size_t chars)
{
    for (int i = 0; i < n_types; i++)
        if (strlen(types[i]->name) == chars && strncmp(types[i]->name, name, chars) == 0)
            return types[i];
    return NULL;
}

ew_err ew_backend_register(const struct ew_backend_type *type)
{
    EW_CHECK(!find_type(type->name, strlen(type->name)), EW_ERR_ARG,
             "there is a backend %s already", type->name);
    EW_CHECK(n_types < MOST_TYPES, EW_ERR_LIMIT, "backend %s: there are %d already", type->name,
             n_types);
    types[n_types++] = type;
    return EW_OK;
}

/* "cpu, cuda" */
static const char *list_types(char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < n_types && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "", types[i]->name);
    return buf;
}

bool ew_backend_find(int i, struct ew_device_found *out)
{
    for (int t = 0; t < n_types; t++)
        for (int k = 0;; k++) {
            *out = (struct ew_device_found){.backend = types[t]->name, .help = types[t]->help};
            if (!types[t]->find(k, out))
                break;
            if (i-- == 0)
                return true;
        }
    return false;
}

/* ---- Devices ---- */

/* A device's name, parsed. */
struct parsed_device {
    const char *device, *arguments;
    const struct ew_backend_type *type;
};

static ew_err resolve(const char *device, struct parsed_device *out)
{
    device = device ? device : getenv("EW_DEVICE");
    device = device && *device ? device : "cpu";
    const size_t chars = strcspn(device, ":,");
    char names[256];
    *out = (struct parsed_device){.device = device,
                                  .arguments = device + chars + (device[chars] != '\0'),
                                  .type = find_type(device, chars)};
    EW_CHECK(out->type, EW_ERR_USAGE, "device %s: there is no backend %.*s; this program has %s",
             device, (int)chars, device, list_types(names, sizeof(names)));
    return EW_OK;
}

ew_err ew_backend_open(const struct ew_backend_opts *o, struct ew_backend **out)
{
    struct parsed_device w;
    EW_TRY(resolve(o->device, &w));
    return ew_fail_in(w.type->open(w.arguments, o, out), "device %s", w.device);
}

/* A device's properties may depend on its arguments, so this opens it. */
ew_err ew_backend_probe(const char *device, struct ew_device_found *out)
{
    struct parsed_device w;
    struct ew_backend *be = NULL;
    EW_TRY(resolve(device, &w));
    EW_TRY(ew_backend_open(&(struct ew_backend_opts){.device = w.device, .threads = 1}, &be));
    const struct ew_device_info *i = &be->info;
    *out = (struct ew_device_found){.backend = w.type->name,
                                    .help = w.type->help,
                                    .memory_bytes = i->memory_bytes,
                                    .passes = i->passes,
                                    .emulated = i->emulated};
    snprintf(out->device, sizeof(out->device), "%s", w.device);
    snprintf(out->name, sizeof(out->name), "%s", i->name);
    snprintf(out->target, sizeof(out->target), "%s", i->target);
    snprintf(out->kernels, sizeof(out->kernels), "%s", i->kernels);
    snprintf(out->label, sizeof(out->label), "%s", i->label);
    ew_backend_close(be);
    return EW_OK;
}

void ew_backend_close(struct ew_backend *be)
{
    if (be)
        be->type->close(be);
}

void ew_backend_identify(struct ew_backend *be)
{
    struct ew_device_info *i = &be->info;
    snprintf(i->identity, sizeof(i->identity), "%s/%s/%s/%s", i->backend, i->name, i->target,
             i->kernels);
    const bool card = !i->shares_host && !i->emulated;
    snprintf(i->label, sizeof(i->label), "%s%s%s", i->target, card ? ", " : "",
             card ? i->name : "");
}

const struct ew_device_info *ew_backend_info(const struct ew_backend *be)
{
    return &be->info;
}

struct ew_pool *ew_backend_pool(const struct ew_backend *be)
{
    return be->type->pool ? be->type->pool(be) : NULL;
}

ew_err ew_backend_peaks(struct ew_backend *be, struct ew_peaks *out)
{
    *out = (struct ew_peaks){0};
    return be->type->peaks ? be->type->peaks(be, out) : EW_OK;
}

/* ---- Memory ---- */

ew_err ew_backend_alloc(struct ew_backend *be, size_t bytes, struct ew_memory **out)
{
    return be->type->alloc(be, bytes, out);
}

void ew_backend_free(struct ew_memory *m)
{
    if (m)
        m->be->type->free(m);
}

size_t ew_backend_bytes(const struct ew_memory *m)
{
    return m->bytes;
}

static void check_range(const struct ew_memory *m, size_t offset, size_t bytes)
{
    EW_ASSERT(offset <= m->bytes && bytes <= m->bytes - offset);
}

ew_err ew_backend_write(struct ew_memory *m, size_t offset, const void *from, size_t bytes)
{
    check_range(m, offset, bytes);
    return bytes ? m->be->type->write(m, offset, from, bytes) : EW_OK;
}

ew_err ew_backend_read(struct ew_memory *m, size_t offset, void *to, size_t bytes)
{
    check_range(m, offset, bytes);
    return bytes ? m->be->type->read(m, offset, to, bytes) : EW_OK;
}

ew_err ew_backend_fill(struct ew_memory *m, size_t offset, int byte, size_t bytes)
{
    check_range(m, offset, bytes);
    return bytes ? m->be->type->fill(m, offset, byte, bytes) : EW_OK;
}

ew_err ew_backend_host_alloc(struct ew_backend *be, size_t bytes, void **out)
{
    return be->type->host_alloc ? be->type->host_alloc(be, bytes, out) : ew_aligned_new(bytes, out);
}

void ew_backend_host_free(struct ew_backend *be, void *p)
{
    if (p && be->type->host_free)
        be->type->host_free(be, p);
    else
        free(p);
}

ew_err ew_backend_write_floats(struct ew_memory *m, size_t offset, const float *from, size_t n)
{
    check_range(m, offset, n * ew_dtype_size(m->be->info.storage));
    return n ? m->be->type->write_floats(m, offset, from, n) : EW_OK;
}

ew_err ew_backend_read_floats(struct ew_memory *m, size_t offset, float *to, size_t n)
{
    check_range(m, offset, n * ew_dtype_size(m->be->info.storage));
    return n ? m->be->type->read_floats(m, offset, to, n) : EW_OK;
}

void *ew_backend_address(struct ew_memory *m, size_t offset)
{
    check_range(m, offset, 0);
    return m->be->type->address(m, offset);
}

/* ---- Kernels ---- */

ew_err ew_backend_offer(const struct ew_kernel_query *query, struct ew_kernel out[EW_OFFERS],
                        int *n)
{
    *n = query->be->type->offer(query, out);
    EW_ASSERT(*n >= 0 && *n <= EW_OFFERS);
    return EW_OK;
}

int ew_backend_candidates(const struct ew_kernel_query *query, struct ew_kernel_candidate *out,
                          int most)
{
    const struct ew_backend_type *type = query->be->type;
    return type->candidates ? type->candidates(query, out, most) : 0;
}

ew_err ew_backend_rewrite(const struct ew_backend *be, struct ew_graph *g)
{
    return be->type->rewrite ? be->type->rewrite(be, g) : EW_OK;
}

bool ew_backend_task(const struct ew_backend *be, enum ew_task task, const struct ew_optimizer *o,
                     struct ew_kernel *out)
{
    return be->type->task && be->type->task(be, task, o, out);
}

/* ---- Running ---- */

ew_err ew_backend_load(struct ew_backend *be, const struct ew_command *commands, int n,
                       struct ew_program **out)
{
    return be->type->load(be, commands, n, out);
}

void ew_backend_unload(struct ew_program *p)
{
    if (p)
        p->be->type->unload(p);
}

ew_err ew_backend_run(struct ew_program *p, const struct ew_run_params *params)
{
    return p->be->type->run(p, params, NULL);
}

ew_err ew_backend_run_timed(struct ew_program *p, const struct ew_run_params *params, int64_t *ns)
{
    return p->be->type->run(p, params, ns);
}

ew_err ew_backend_loss_scale(struct ew_backend *be, struct ew_loss_scale *out)
{
    *out = (struct ew_loss_scale){0};
    return be->type->loss_scale ? be->type->loss_scale(be, out, false) : EW_OK;
}

ew_err ew_backend_set_loss_scale(struct ew_backend *be, const struct ew_loss_scale *v)
{
    struct ew_loss_scale to = *v;
    return be->type->loss_scale ? be->type->loss_scale(be, &to, true) : EW_OK;
}

ew_err ew_backend_sync(struct ew_backend *be)
{
    return be->type->sync ? be->type->sync(be) : EW_OK;
}

bool ew_backend_is_async(const struct ew_backend *be)
{
    return be->type->event_record != NULL;
}

ew_err ew_backend_event_record(struct ew_backend *be, int event)
{
    EW_ASSERT(be->type->event_record && event >= 0 && event < EW_EVENTS);
    return be->type->event_record(be, event);
}

ew_err ew_backend_event_wait(struct ew_backend *be, int event)
{
    EW_ASSERT(be->type->event_wait && event >= 0 && event < EW_EVENTS);
    return be->type->event_wait(be, event);
}

ew_err ew_backend_event_elapsed(struct ew_backend *be, int from, int to, int64_t *ns)
{
    EW_ASSERT(be->type->event_elapsed && from >= 0 && to < EW_EVENTS);
    return be->type->event_elapsed(be, from, to, ns);
}
