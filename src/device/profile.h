/* SPDX-License-Identifier: Apache-2.0 */
/* Board profiles: documented properties of boards, from the .ini files of share/boards, which are
 * embedded at build time.  Nothing in them is measured. */
#ifndef EW_DEVICE_PROFILE_H
#define EW_DEVICE_PROFILE_H

#include <stdint.h>

#include "base/field.h"
#include "base/mem.h"

/* A setting of cores and clocks named by a study or vendor.  0: not stated. */
struct ew_profile_mode {
    const char *name;
    int64_t cores, cpu_mhz, gpu_mhz, mem_mhz;
    const char *note;
};

/* Constants of the board's model (advise/simulate.h); all 0: no model.  Factors are relative to an
 * AGX Xavier at the same clocks. */
struct ew_profile_model {
    double gpu, mem, host, stall, fetch; /* time factors */
    double gpu_energy, cpu_energy;
    double base_w, base_mem_w, base_gpu_w,
        base_cpu_w;      /* idle power; the last three at full clocks */
    double heat_c_per_w; /* steady state above ambient; 0: never overheats */
    double heat_j_per_c; /* thermal mass */
    double throttle_c;   /* throttling temperature */
    const char *source;
};

struct ew_profile {
    const char *name;  /* file name without .ini */
    const char *title; /* "Jetson AGX Xavier" */
    const char *match; /* parts of the device tree's `compatible`, space-separated */
    const char *cpu, *gpu, *storage;
    int64_t cores, cpu_mhz, cuda_cores, tensor_cores, gpu_mhz, ram_gb, mem_mhz;
    double power_w, price_usd;             /* 0: not stated */
    const char *cpu_khz, *gpu_hz, *emc_hz; /* frequency tables, space-separated; NULL: not known */
    double step_w;      /* smallest step of a rail's power seen in logs; 0: not known */
    const char *total;  /* the rail of the whole board; NULL: none */
    const char *sum;    /* otherwise the rails to add, space-separated */
    const char *covers; /* description of what the total covers */
    const char *notes;
    const struct ew_profile_mode *modes;
    int n_modes;
    struct ew_profile_model model;
};

/* The fields of a [board] section, for listings. */
extern const struct ew_field ew_profile_fields[];

/* All profiles, sorted by name; allocated in the arena. */
ew_err ew_profiles_load(struct ew_arena *a, const struct ew_profile **list, int *n);

/* The profile with this name, or the one whose `match` has the longest part contained in `text`;
 * NULL: none. */
const struct ew_profile *ew_profile_find(const struct ew_profile *list, int n, const char *name);
/* The same; fails with the nearest name in the message. */
ew_err ew_profile_named(const struct ew_profile *list, int n, const char *name,
                        const struct ew_profile **out);
const struct ew_profile *ew_profile_match(const struct ew_profile *list, int n, const char *text);

#endif
