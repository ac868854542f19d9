/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of NVIDIA's management library, loaded at run time, or of a captured board's answers
 * (captured/nvml, INI with one section per card). */
#ifndef EW_DEVICE_NVML_H
#define EW_DEVICE_NVML_H

#include "device/sensor.h"

#define EW_NVML_GPUS 8

/* clang-format off */
#define EW_NVML_MAP(X)                                                                             \
    X(POWER,     "power_mw")     /* the whole card */                                              \
    X(ENERGY,    "energy_mj")    /* since the driver was loaded; Volta and later */                \
    X(LOAD,      "load_percent")                                                                   \
    X(MEM_LOAD,  "memory_load_percent")                                                            \
    X(MEM_USED,  "memory_used_b")                                                                  \
    X(MEM_TOTAL, "memory_total_b")                                                                 \
    X(TEMP,      "temperature_c")                                                                  \
    X(SM_MHZ,    "sm_mhz")                                                                         \
    X(MEM_MHZ,   "memory_mhz")                                                                     \
    X(THROTTLE,  "throttle_reasons") /* bits of nvmlClocksThrottleReasons */                       \
    X(LIMIT,     "power_limit_mw")                                                                 \
    X(LIMIT_MIN, "power_limit_min_mw")                                                             \
    X(LIMIT_MAX, "power_limit_max_mw")                                                             \
    X(SM_MAX,    "sm_max_mhz")         /* what the card can do */                                  \
    X(SM_APP,    "sm_application_mhz") /* what applications get unless clocks are locked */
/* clang-format on */

enum ew_nvml_what {
#define EW_NVML_ENUM(id, key) EW_NVML_##id,
    EW_NVML_MAP(EW_NVML_ENUM)
#undef EW_NVML_ENUM
        EW_NVML_N
};

struct ew_nvml;

/* NULL in *out where there is no library, no driver or no card: *why says which (static text). */
ew_err ew_nvml_open(const struct ew_root *root, bool captured, struct ew_nvml **out,
                    const char **why);
void ew_nvml_close(struct ew_nvml *n); /* NULL is fine */

int ew_nvml_count(const struct ew_nvml *n);
const char *ew_nvml_name(const struct ew_nvml *n, int gpu);
const char *ew_nvml_key(enum ew_nvml_what what);
struct ew_sample_value ew_nvml_ask(const struct ew_nvml *n, int gpu, enum ew_nvml_what what);

/* Sets the card's power limit; needs root.  Never called unless the user asks for it. */
ew_err ew_nvml_set_limit(const struct ew_nvml *n, int gpu, double watts);

#endif
