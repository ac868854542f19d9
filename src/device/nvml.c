/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of NVIDIA's management library.  The functions used are declared here, from the
 * documented interface, so that no header of it is needed to build. */
#include "device/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ini.h"
#include "base/library.h"
#include "base/num.h"

#define NAME_CHARS     96
#define CAPTURED_BYTES 16384

typedef void *nvml_device;

struct nvml_utilization {
    unsigned gpu, memory;
};
struct nvml_memory {
    unsigned long long total, free, used;
};

struct ew_nvml {
    void *library; /* NULL: captured */
    int n;
    nvml_device device[EW_NVML_GPUS];
    char name[EW_NVML_GPUS][NAME_CHARS];
    struct ew_sample_value captured[EW_NVML_GPUS][EW_NVML_N];
    int (*shutdown)(void);
    int (*power)(nvml_device, unsigned *);
    int (*energy)(nvml_device, unsigned long long *);
    int (*utilization)(nvml_device, struct nvml_utilization *);
    int (*memory)(nvml_device, struct nvml_memory *);
    int (*temperature)(nvml_device, int, unsigned *);
    int (*clock)(nvml_device, int, unsigned *);
    int (*clock_max)(nvml_device, int, unsigned *);
    int (*clock_app)(nvml_device, int, unsigned *);
    int (*throttle)(nvml_device, unsigned long long *);
    int (*limit)(nvml_device, unsigned *);
    int (*limits)(nvml_device, unsigned *, unsigned *);
    int (*set_limit)(nvml_device, unsigned);
};

const char *ew_nvml_key(enum ew_nvml_what what)
{
    static const char *const keys[] = {
#define EW_NVML_KEY(id, key) key,
        EW_NVML_MAP(EW_NVML_KEY)
#undef EW_NVML_KEY
    };
    return keys[what];
}

/* ---- Captured answers ------------------------------------------------------------------------ */

static ew_err read_captured(struct ew_nvml *n, char *text)
{
    struct ew_ini ini;
    ew_ini_init(&ini, text, "captured/nvml");
    while (ew_ini_next(&ini) && n->n <= EW_NVML_GPUS) {
        if (!ini.key) {
            EW_CHECK(n->n < EW_NVML_GPUS, EW_ERR_LIMIT, "captured/nvml: more than %d cards",
                     EW_NVML_GPUS);
            for (int i = 0; i < EW_NVML_N; i++)
                n->captured[n->n][i] = ew_sample_value_absent(EW_ABSENT_UNSUPPORTED);
            n->n++;
            continue;
        }
        EW_CHECK(n->n > 0, EW_ERR_FORMAT, "captured/nvml:%d: before the first card", ini.line);
        if (strcmp(ini.key, "name") == 0)
            snprintf(n->name[n->n - 1], NAME_CHARS, "%s", ini.value);
        double v;
        for (int i = 0; i < EW_NVML_N; i++)
            if (strcmp(ini.key, ew_nvml_key((enum ew_nvml_what)i)) == 0 &&
                ew_num_float(ini.value, &v))
                n->captured[n->n - 1][i] = ew_sample_value_of(v);
    }
    return ini.err;
}

/* ---- The library ----------------------------------------------------------------------------- */

static void find_questions(struct ew_nvml *n)
{
    ew_library_find(n->library, "nvmlShutdown", &n->shutdown);
    ew_library_find(n->library, "nvmlDeviceGetPowerUsage", &n->power);
    ew_library_find(n->library, "nvmlDeviceGetTotalEnergyConsumption", &n->energy);
    ew_library_find(n->library, "nvmlDeviceGetUtilizationRates", &n->utilization);
    ew_library_find(n->library, "nvmlDeviceGetMemoryInfo", &n->memory);
    ew_library_find(n->library, "nvmlDeviceGetTemperature", &n->temperature);
    ew_library_find(n->library, "nvmlDeviceGetClockInfo", &n->clock);
    ew_library_find(n->library, "nvmlDeviceGetMaxClockInfo", &n->clock_max);
    ew_library_find(n->library, "nvmlDeviceGetApplicationsClock", &n->clock_app);
    ew_library_find(n->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &n->throttle);
    ew_library_find(n->library, "nvmlDeviceGetPowerManagementLimit", &n->limit);
    ew_library_find(n->library, "nvmlDeviceGetPowerManagementLimitConstraints", &n->limits);
    ew_library_find(n->library, "nvmlDeviceSetPowerManagementLimit", &n->set_limit);
}

/* NULL, or why NVML is not available. */
static const char *start(struct ew_nvml *n)
{
    int (*init)(void) = NULL;
    int (*count)(unsigned *) = NULL;
    int (*handle)(unsigned, nvml_device *) = NULL;
    int (*name)(nvml_device, char *, unsigned) = NULL;
    ew_library_find(n->library, "nvmlInit_v2", &init);
    ew_library_find(n->library, "nvmlDeviceGetCount_v2", &count);
    ew_library_find(n->library, "nvmlDeviceGetHandleByIndex_v2", &handle);
    ew_library_find(n->library, "nvmlDeviceGetName", &name);
    find_questions(n);
    if (!init || !count || !handle || !name || !n->shutdown)
        return "libnvidia-ml.so.1 lacks a function of NVML";
    if (init() != 0)
        return "libnvidia-ml.so.1 finds no NVIDIA driver";
    unsigned cards = 0;
    if (count(&cards) != 0 || cards == 0) {
        n->shutdown();
        return "the driver reports no card";
    }
    for (unsigned i = 0; i < cards && n->n < EW_NVML_GPUS; i++)
        if (handle(i, &n->device[n->n]) == 0) {
            if (name(n->device[n->n], n->name[n->n], NAME_CHARS) != 0)
                snprintf(n->name[n->n], NAME_CHARS, "unknown");
            n->n++;
        }
    return NULL;
}

ew_err ew_nvml_open(const struct ew_root *root, bool captured, struct ew_nvml **out,
                    const char **why)
{
    *out = NULL;
    struct ew_nvml *n = calloc(1, sizeof(*n));
    EW_CHECK(n, EW_ERR_MEMORY, "no memory");
    ew_err err = EW_OK;
    *why = NULL;
    if (captured) {
        char *text = calloc(1, CAPTURED_BYTES);
        if (!text || ew_root_read(root, "captured/nvml", text, CAPTURED_BYTES) != EW_OK)
            *why = "no NVIDIA driver on the captured board";
        else
            err = read_captured(n, text);
        free(text);
    } else {
        const char *failed;
        n->library = ew_library_load("libnvidia-ml.so.1", &failed);
        *why = n->library ? start(n) : "no libnvidia-ml.so.1";
    }
    if (*why || err != EW_OK) {
        if (n->library)
            dlclose(n->library);
        free(n);
        return err;
    }
    *out = n;
    return EW_OK;
}

void ew_nvml_close(struct ew_nvml *n)
{
    if (!n)
        return;
    if (n->library) {
        n->shutdown();
        dlclose(n->library);
    }
    free(n);
}

int ew_nvml_count(const struct ew_nvml *n)
{
    return n->n;
}

const char *ew_nvml_name(const struct ew_nvml *n, int gpu)
{
    return n->name[gpu];
}

/* nvmlReturn_t */
static enum ew_absent absent_of(int code)
{
    switch (code) {
    case 0:
        return EW_ABSENT_NOT;
    case 4:
        return EW_ABSENT_NO_PERMISSION;
    case 15:
        return EW_ABSENT_LOST;
    default:
        return EW_ABSENT_UNSUPPORTED;
    }
}

static struct ew_sample_value answer(int code, double v)
{
    return code == 0 ? ew_sample_value_of(v) : ew_sample_value_absent(absent_of(code));
}

#define NOT_SUPPORTED 3 /* also what a missing function counts as */

static struct ew_sample_value ask_small(const struct ew_nvml *n, nvml_device d,
                                        enum ew_nvml_what what)
{
    unsigned v = 0, high = 0;
    int code = NOT_SUPPORTED;
    if (what == EW_NVML_POWER && n->power)
        code = n->power(d, &v);
    else if (what == EW_NVML_TEMP && n->temperature)
        code = n->temperature(d, 0, &v); /* 0: the GPU itself */
    else if (what == EW_NVML_SM_MHZ && n->clock)
        code = n->clock(d, 1, &v);
    else if (what == EW_NVML_MEM_MHZ && n->clock)
        code = n->clock(d, 2, &v);
    else if (what == EW_NVML_SM_MAX && n->clock_max)
        code = n->clock_max(d, 1, &v);
    else if (what == EW_NVML_SM_APP && n->clock_app)
        code = n->clock_app(d, 0, &v); /* 0: graphics, the only name it knows for them */
    else if (what == EW_NVML_LIMIT && n->limit)
        code = n->limit(d, &v);
    else if ((what == EW_NVML_LIMIT_MIN || what == EW_NVML_LIMIT_MAX) && n->limits)
        code = n->limits(d, &v, &high);
    return answer(code, what == EW_NVML_LIMIT_MAX ? high : v);
}

struct ew_sample_value ew_nvml_ask(const struct ew_nvml *n, int gpu, enum ew_nvml_what what)
{
    if (!n->library)
        return n->captured[gpu][what];
    const nvml_device d = n->device[gpu];
    struct nvml_utilization use = {0, 0};
    struct nvml_memory memory = {0, 0, 0};
    unsigned long long wide = 0;
    int code = NOT_SUPPORTED;
    switch (what) {
    case EW_NVML_ENERGY:
    case EW_NVML_THROTTLE:
        if (what == EW_NVML_ENERGY && n->energy)
            code = n->energy(d, &wide);
        else if (what == EW_NVML_THROTTLE && n->throttle)
            code = n->throttle(d, &wide);
        return answer(code, (double)wide);
    case EW_NVML_LOAD:
    case EW_NVML_MEM_LOAD:
        if (n->utilization)
            code = n->utilization(d, &use);
        return answer(code, what == EW_NVML_LOAD ? use.gpu : use.memory);
    case EW_NVML_MEM_USED:
    case EW_NVML_MEM_TOTAL:
        if (n->memory)
            code = n->memory(d, &memory);
        return answer(code, (double)(what == EW_NVML_MEM_USED ? memory.used : memory.total));
    default:
        return ask_small(n, d, what);
    }
}

ew_err ew_nvml_set_limit(const struct ew_nvml *n, int gpu, double watts)
{
    EW_CHECK(n->library && n->set_limit, EW_ERR_UNSUPPORTED,
             "gpu%d: the power limit cannot be set here", gpu);
    const int code = n->set_limit(n->device[gpu], (unsigned)(watts * 1000));
    EW_CHECK(code == 0, EW_ERR_IO, "gpu%d: the driver did not take a power limit of %g W (%s)", gpu,
             watts, ew_absent_text(absent_of(code)));
    return EW_OK;
}
