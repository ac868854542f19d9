/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated boards: epochs of training in time and power, from a model whose constants stand in the
 * boards' profiles.  Nothing that comes out of it is a measurement, and whoever shows it says so.
 */
#ifndef EW_ADVISE_SIMULATE_H
#define EW_ADVISE_SIMULATE_H

#include "advise/law.h"
#include "advise/sim_load.h"
#include "device/profile.h"

/* Work of an epoch of a network, in units of an AGX Xavier at 1 GHz. */
struct ew_sim_work {
    const char *network, *data;
    double gpu_s, mem_s; /* arithmetic and memory traffic of the accelerator */
    double host_s;       /* launches and the framework's own work */
    double stall_s;      /* copying a batch to the accelerator, which nothing overlaps */
    double overhead;     /* what comes with a stall, over it */
    double gpu_j, cpu_j; /* dynamic energy, at the highest clocks */
    double fetch_s;      /* reading and decoding by one worker, from the page cache */
    int64_t files;       /* that an epoch opens; 0: one large file */
    int64_t samples, batch;
};

/* The software that runs the plan, which decides the share of a board's peaks that is reached
 * and the cost of a launch. */
/* clang-format off */
#define EW_SIM_SOFTWARE_MAP(X)                                                                     \
    X(NATIVE, "native", "kernels launched back to back, as bench does")                            \
    X(TRAIN,  "train",  "a framework that trains operator by operator (TRAIN)")                   \
    X(ENGINE, "engine", "a compiled engine (ENGINE, after)")                                       \
    X(EAGER,  "eager",  "a framework that infers operator by operator (ENGINE, before)")
/* clang-format on */

enum ew_sim_software {
#define EW_SIM_SOFTWARE_ENUM(id, name, about) EW_SIM_##id,
    EW_SIM_SOFTWARE_MAP(EW_SIM_SOFTWARE_ENUM)
#undef EW_SIM_SOFTWARE_ENUM
        EW_SIM_SOFTWARES
};

/* What one run of a plan asks, from its arithmetic, bytes and kernels.  A training step counts as
 * an epoch of one batch: ew_sim_work_times makes more of them. */
void ew_sim_work_of(const struct ew_sim_load *l, enum ew_sim_software software,
                    struct ew_sim_work *out);
void ew_sim_work_times(struct ew_sim_work *w, double n);

/* Standard deviation of ln of what ew_sim_work_of's time and power may be off by: an assumption.
 * The published values that made no constant (tests/advise/test_simulate.c) are off by a tenth at
 * the median and by up to a third; they are of a few networks on five boards, which says little
 * about other networks and nothing about boards that nobody published. */
#define EW_SIM_TIME_SD  0.25
#define EW_SIM_POWER_SD 0.2

/* The highest setting of a board; of one without accelerator its clock is that of the cores. */
struct ew_mode ew_sim_top(const struct ew_profile *board);

/* The workloads that constants are known of; NULL beyond the last. */
const struct ew_sim_work *ew_sim_work_at(int i);
const struct ew_sim_work *ew_sim_work_find(const char *network); /* NULL: none */

enum ew_sim_medium { EW_SIM_CACHED, EW_SIM_SSD, EW_SIM_SD, EW_SIM_HDD };

struct ew_sim_setting {
    struct ew_mode mode;
    int workers;
    enum ew_sim_medium medium; /* where an epoch reads from; cached: epochs after the first */
    uint64_t seed;             /* of the board's noise; 0: none */
};

/* One epoch. */
struct ew_sim_epoch {
    double compute_s, stall_s, epoch_s;
    double base_w, power_w; /* idle at these clocks; while training */
    double energy_j;
    bool throttled; /* slowed to the board's power budget */
    double temp_c;  /* at its end; nan: the board's model has no heat */
    bool hot;       /* slowed by its heat */
};

/* EW_ERR_UNSUPPORTED where the profile has no [model]. */
ew_err ew_simulate(const struct ew_profile *board, const struct ew_sim_work *w,
                   const struct ew_sim_setting *s, struct ew_sim_epoch *out);

/* One thermal mass over one resistance to a room of 25 C.  Begins at rest. */
struct ew_sim_heat {
    double temp_c; /* nan: the board's model has none */
};

void ew_sim_heat_begin(const struct ew_profile *board, struct ew_sim_heat *h);

/* Heats the board through an epoch.  Once it reaches its throttling temperature, the rest of the
 * epoch runs at the power that keeps this temperature, and takes longer. */
void ew_sim_heat_epoch(const struct ew_profile *board, struct ew_sim_heat *h,
                       struct ew_sim_epoch *e);

#endif
