/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise power list` and `show`.  Changing settings is in cmd_power.c. */
#ifndef EW_CLI_POWER_SHOW_H
#define EW_CLI_POWER_SHOW_H

#include "device/powermode.h"

/* A board with its clocks and power modes. */
struct ew_power_view {
    struct ew_board *board;
    bool captured;          /* a captured board */
    struct ew_nvpmodel nvp; /* n_modes 0: no nvpmodel */
    struct ew_clock_info clocks[EW_MAX_CLOCKS];
    int n_clocks;
    int64_t active; /* active mode of nvpmodel; -1: not known */
};

/* Fills in all other members for `board`. */
ew_err ew_power_view_read(struct ew_power_view *x);

/* Print to standard output: modes, allowed clocks and cards; the current settings; both as JSON. */
ew_err ew_power_print_list(const struct ew_power_view *x);
ew_err ew_power_print_state(const struct ew_power_view *x);
ew_err ew_power_print_json(const struct ew_power_view *x);

#endif
