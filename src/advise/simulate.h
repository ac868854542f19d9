/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated boards: epochs of training in time and power, from a model whose constants stand in the
 * boards' profiles.  Nothing that comes out of it is a measurement, and whoever shows it says so.
 */
#ifndef EW_ADVISE_SIMULATE_H
#define EW_ADVISE_SIMULATE_H

#include "advise/law.h"
#include "device/profile.h"

/* What an epoch of a network asks of an AGX Xavier at 1 GHz. */
struct ew_sim_work {
    const char *network, *data;
    double gpu_s, mem_s; /* arithmetic and memory traffic of the accelerator */
    double host_s;       /* launches and the framework's own work */
    double stall_s;      /* copying a batch over, which nothing hides */
    double overhead;     /* what comes with a stall, over it */
    double gpu_j, cpu_j; /* dynamic energy, at the highest clocks */
    double fetch_s;      /* reading and decoding by one worker, from the page cache */
    int64_t files;       /* that an epoch opens; 0: one large file */
    int64_t samples, batch;
};

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
};

/* EW_ERR_UNSUPPORTED where the profile has no [model]. */
ew_err ew_simulate(const struct ew_profile *board, const struct ew_sim_work *w,
                   const struct ew_sim_setting *s, struct ew_sim_epoch *out);

#endif
