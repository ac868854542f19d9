/* SPDX-License-Identifier: Apache-2.0 */
/* Board profiles: what documents say about a board, from the .ini files of share/boards that the
 * build puts into the program.  Nothing here is a measurement. */
#ifndef EW_DEVICE_PROFILE_H
#define EW_DEVICE_PROFILE_H

#include <stdint.h>

#include "base/field.h"
#include "base/mem.h"

/* A setting of cores and clocks that a study or a vendor named.  0: not stated. */
struct ew_profile_mode {
    const char *name;
    int64_t cores, cpu_mhz, gpu_mhz, mem_mhz;
    const char *note;
};

/* Constants of the simulated board (advise/simulate.h); all 0: there is no model of it.  Factors
 * are on an AGX Xavier's at the same clocks. */
struct ew_profile_model {
    double gpu, mem, host, stall, fetch; /* times */
    double gpu_energy, cpu_energy;
    double base_w, base_mem_w, base_gpu_w, base_cpu_w; /* idle; the last three at full clocks */
    double heat_c_per_w; /* above the room, once it has settled; 0: it never grows too hot */
    double heat_j_per_c; /* thermal mass */
    double throttle_c;   /* from here on clocks fall */
    const char *source;
};

struct ew_profile {
    const char *name;  /* file name without .ini */
    const char *title; /* "Jetson AGX Xavier" */
    const char *match; /* pieces of a device tree's compatible, separated by spaces */
    const char *cpu, *gpu, *storage;
    int64_t cores, cpu_mhz, cuda_cores, tensor_cores, gpu_mhz, ram_gb, mem_mhz;
    double power_w, price_usd;             /* 0: not stated */
    const char *cpu_khz, *gpu_hz, *emc_hz; /* frequency tables, space-separated; NULL: not known */
    double step_w;      /* smallest step of a rail's power seen in logs; 0: not known */
    const char *total;  /* the rail that carries everything; NULL: there is none */
    const char *sum;    /* else the rails to add, space-separated */
    const char *covers; /* what that total holds, in words */
    const char *notes;
    const struct ew_profile_mode *modes;
    int n_modes;
    struct ew_profile_model model;
};

/* The rows of a [board] section, for listings. */
extern const struct ew_field ew_profile_fields[];

/* All profiles, sorted by name; everything lives in the arena. */
ew_err ew_profiles_load(struct ew_arena *a, const struct ew_profile **list, int *n);

/* The profile with this name, or the one whose `match` fits `text` best (longest piece); NULL:
 * none. */
const struct ew_profile *ew_profile_find(const struct ew_profile *list, int n, const char *name);
/* The same, or a failure that names the nearest. */
ew_err ew_profile_named(const struct ew_profile *list, int n, const char *name,
                        const struct ew_profile **out);
const struct ew_profile *ew_profile_match(const struct ew_profile *list, int n, const char *text);

#endif
