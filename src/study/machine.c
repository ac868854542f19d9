/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as a record. */
#include "study/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "device/nvpmodel.h"
#include "device/powermode.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* An identity for one of several equal devices, without personal data. */
static const char *read_unit(const struct ew_board *b, struct ew_arena *a)
{
    const char *given = getenv("EW_UNIT");
    if (given && *given)
        return ew_arena_strdup(a, given);
    char id[128] = "", hash[EW_RECORD_ID_CHARS];
    if (ew_root_read(&b->root, "etc/machine-id", id, sizeof(id)) != EW_OK)
        snprintf(id, sizeof(id), "%s", b->id.model ? b->id.model : "");
    char salted[160]; /* machine-id(5): the id itself must not be exposed */
    snprintf(salted, sizeof(salted), "edgewise %s", id);
    ew_record_id(salted, hash);
    return ew_arena_printf(a, "%.8s", hash);
}

static double mhz(int64_t hz)
{
    return hz > 0 ? (double)hz * 1e-6 : (double)NAN;
}

static ew_err read_clocks(struct ew_board *b, struct ew_arena *a, struct ew_machine_row *m)
{
    struct ew_clock_info *clocks = calloc(EW_MAX_CLOCKS, sizeof(*clocks));
    EW_CHECK(clocks, EW_ERR_MEMORY, "no memory for clocks");
    int n = 0;
    const ew_err err = ew_clocks_read(b, clocks, &n);
    for (int i = 0; err == EW_OK && i < n; i++) {
        const struct ew_clock_info *c = &clocks[i];
        if (c->core >= 0) {
            m->cpu_mhz_min = fmin(m->cpu_mhz_min, mhz(c->min));
            m->cpu_mhz_max = fmax(m->cpu_mhz_max, mhz(c->max));
            if (!m->governor && c->governor[0])
                m->governor = ew_arena_strdup(a, c->governor);
        } else if (strcmp(c->name, "gpu") == 0) {
            m->gpu_mhz_max = mhz(c->max);
        } else {
            m->mem_mhz_max = mhz(c->max > 0 ? c->max : c->highest);
        }
    }
    free(clocks);
    return err;
}

static const char *read_mode(const struct ew_board *b, struct ew_arena *a)
{
    struct ew_nvpmodel nvp;
    const int64_t active = ew_nvpmodel_active(&b->root);
    if (active < 0 || ew_nvpmodel_read(&b->root, a, &nvp) != EW_OK)
        return NULL;
    for (int i = 0; i < nvp.n_modes; i++)
        if (nvp.modes[i].id == active)
            return nvp.modes[i].name;
    return NULL;
}

/* MemTotal of /proc/meminfo in bytes. */
static int64_t total_memory(const struct ew_board *b)
{
    char text[4096];
    long long kb;
    if (ew_root_read(&b->root, "proc/meminfo", text, sizeof(text)) != EW_OK ||
        sscanf(text, "MemTotal: %lld", &kb) != 1)
        return EW_INT_ABSENT;
    return kb * 1024;
}

static const char *channel_names(const struct ew_board *b, struct ew_arena *a)
{
    const char *text = "";
    for (int i = 0; i < b->n_channels && text; i++)
        text = ew_arena_printf(a, "%s%s%s", text, *text ? " " : "", b->channels[i].name);
    return text;
}

ew_err ew_machine_read(struct ew_board *b, struct ew_arena *a, struct ew_machine_row *out)
{
    struct ew_machine_row *m = out;
    struct ew_device_found device;
    char id[EW_RECORD_ID_CHARS];
    ew_record_clear(EW_RECORD_MACHINE, m);
    m->unit = read_unit(b, a);
    m->board = b->profile ? b->profile->title : b->id.model;
    m->profile = b->profile ? b->profile->name : NULL;
    m->cpu = b->id.cpu;
    m->kernel = b->id.kernel;
    m->system = b->id.release;
    m->cores = b->id.cores > 0 ? b->id.cores : EW_INT_ABSENT;
    m->cores_online = b->id.online > 0 ? b->id.online : EW_INT_ABSENT;
    m->memory_bytes = total_memory(b);
    m->virtual_machine = b->id.virtual_machine;
    EW_TRY(read_clocks(b, a, m));
    m->power_mode = read_mode(b, a);
    m->sensors = channel_names(b, a);
    m->power_covers = b->total.power >= 0 ? b->total.covers : NULL;
    EW_TRY(ew_backend_probe(NULL, &device));
    m->isa = ew_arena_strdup(a, device.label);
    m->version = EW_VERSION;
    m->compiler = COMPILER;
    EW_TRY(ew_machine_row_id(m, id));
    m->id = ew_arena_strdup(a, id);
    EW_CHECK(!a->failed && m->sensors, EW_ERR_MEMORY, "no memory for the machine");
    return EW_OK;
}
