/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of this board with their limits and tables, and the changes that a power mode needs.
 * device/power.h makes the changes. */
#ifndef EW_DEVICE_POWERMODE_H
#define EW_DEVICE_POWERMODE_H

#include "device/board.h"
#include "device/nvpmodel.h"
#include "device/power.h"

#define EW_MAX_CLOCKS 40

/* A clock with adjustable limits.  Frequencies are in Hz whatever the unit of the file. */
struct ew_clock_info {
    const char *name;                           /* "cpu0", "gpu", "memory" */
    const char *min_path, *max_path, *cur_path; /* NULL: no such file */
    int64_t unit;                               /* Hz per unit of the files */
    int64_t min, max, cur;                      /* -1: cannot be read */
    const int64_t *table;                       /* allowed frequencies, ascending */
    int n_table;                                /* 0: any between the initial limits */
    int64_t lowest, highest;
    char governor[32]; /* "": none */
    int core;          /* of a CPU policy, else -1 */
    bool cap;          /* max_path is a cap; 0: not capped */
};

/* The clocks of CPU policies, GPU and memory; lists live in the board's arena. */
ew_err ew_clocks_read(struct ew_board *b, struct ew_clock_info *out, int *n);

/* A custom mode; 0: unchanged. */
struct ew_power_want {
    int64_t cores, cpu_mhz, gpu_mhz, mem_mhz;
    int dvfs; /* 1: clocks scale, 0: fixed at their maximum, -1: unchanged */
    bool fan; /* at full speed */
};

/* Values within 5 % of a table entry are rounded to it (studies write 1200 for 1190.4 MHz); others
 * are an error that lists the table.  Clocks are fixed at the maxima already in `out`, also the
 * memory's if the kernel can lock it. */
ew_err ew_powermode_custom(struct ew_board *b, const struct ew_power_want *want,
                           struct ew_power_list *out);

/* The changes for a mode of nvpmodel.conf.  Changed gating of GPU units needs a reboot and is an
 * error. */
ew_err ew_powermode_nvp(struct ew_board *b, const struct ew_nvpmodel *m,
                        const struct ew_nvpm_mode *mode, struct ew_power_list *out);

/* A mode by name, of nvpmodel.conf or the board's profile, combined with `want`: fixed clocks, the
 * fan at full speed, values that replace the mode's. */
ew_err ew_powermode_named(struct ew_board *b, const struct ew_nvpmodel *m, const char *name,
                          const struct ew_power_want *want, struct ew_power_list *out);

/* All controllable fans at full speed, with temperature control off. */
ew_err ew_powermode_fan(struct ew_board *b, struct ew_power_list *out);

#endif
