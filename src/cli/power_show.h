/* SPDX-License-Identifier: Apache-2.0 */
/* What `edgewise power list` and `show` print.  Changing it is left to cmd_power.c. */
#ifndef EW_CLI_POWER_SHOW_H
#define EW_CLI_POWER_SHOW_H

#include "device/powermode.h"

/* A board with its clocks and modes. */
struct ew_power_view {
    struct ew_board *board;
    bool captured;          /* not this machine */
    struct ew_nvpmodel nvp; /* n_modes 0: none */
    struct ew_clock_info clocks[EW_MAX_CLOCKS];
    int n_clocks;
    int64_t active; /* nvpmodel's mode, -1: not known */
};

/* Fills in the rest for `board`. */
ew_err ew_power_view_read(struct ew_power_view *x);

/* To standard output: modes, allowed clocks and cards; what is set now; both as JSON. */
ew_err ew_power_print_list(const struct ew_power_view *x);
ew_err ew_power_print_state(const struct ew_power_view *x);
ew_err ew_power_print_json(const struct ew_power_view *x);

#endif
