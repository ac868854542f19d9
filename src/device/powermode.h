/* SPDX-License-Identifier: Apache-2.0 */
/* What a power mode means on this board: clocks with their limits and tables, and the changes that
 * a mode asks for.  Making the changes is left to device/power.h. */
#ifndef EW_DEVICE_POWERMODE_H
#define EW_DEVICE_POWERMODE_H

#include "device/board.h"
#include "device/nvpmodel.h"
#include "device/power.h"

#define EW_MAX_CLOCKS 40

/* A clock that can be limited.  Frequencies are in Hz whatever the file's unit. */
struct ew_clock_info {
    const char *name;                           /* "cpu0", "gpu", "memory" */
    const char *min_path, *max_path, *cur_path; /* NULL: not there */
    int64_t unit;                               /* Hz per unit of the files */
    int64_t min, max, cur;                      /* -1: cannot be read */
    const int64_t *table;                       /* allowed, rising */
    int n_table;                                /* 0: anything between the first limits */
    int64_t lowest, highest;
    char governor[32]; /* "": none */
    int core;          /* of a CPU policy, else -1 */
    bool cap;          /* max_path is a cap, 0: none */
};

/* The clocks of CPU policies, GPU and memory; lists live in the board's arena. */
ew_err ew_clocks_read(struct ew_board *b, struct ew_clock_info *out, int *n);

/* A mode in plain figures; 0: leave as it is. */
struct ew_power_want {
    int64_t cores, cpu_mhz, gpu_mhz, mem_mhz;
    int dvfs; /* 1: clocks free to move, 0: held at their maximum, -1: leave */
    bool fan; /* at full speed */
};

/* Figures within 5 % of a table entry stand for it (studies write 1200 for 1190.4 MHz); others are
 * an error that lists the table.  Maxima that `out` has already are those at which clocks are held;
 * the memory's is held too where the kernel can lock it. */
ew_err ew_powermode_custom(struct ew_board *b, const struct ew_power_want *want,
                           struct ew_power_list *out);

/* The settings of a mode of nvpmodel.conf.  Gating of GPU parts needs a reboot: an error where the
 * mode wants it other than it is. */
ew_err ew_powermode_nvp(struct ew_board *b, const struct ew_nvpmodel *m,
                        const struct ew_nvpm_mode *mode, struct ew_power_list *out);

/* A mode by its name, of nvpmodel.conf or of the board's profile, with what `want` has besides:
 * clocks held at the mode's maxima, the fan at full speed, other figures instead of the mode's. */
ew_err ew_powermode_named(struct ew_board *b, const struct ew_nvpmodel *m, const char *name,
                          const struct ew_power_want *want, struct ew_power_list *out);

/* All fans that have a drive at full speed, out of the control by temperature. */
ew_err ew_powermode_fan(struct ew_board *b, struct ew_power_list *out);

#endif
