/* SPDX-License-Identifier: Apache-2.0 */
/* What a column of a file of measurements holds, by the words of its title. */
#ifndef EW_ADVISE_MEASURED_TITLE_H
#define EW_ADVISE_MEASURED_TITLE_H

#include <stdbool.h>

enum ew_measured_quantity {
    EW_MEASURED_CORES,
    EW_MEASURED_CPU, /* clocks in MHz */
    EW_MEASURED_GPU,
    EW_MEASURED_MEM,
    EW_MEASURED_TIME,  /* s */
    EW_MEASURED_POWER, /* W */
    EW_MEASURED_QUANTITIES
};

struct ew_measured_title {
    enum ew_measured_quantity is;
    double by; /* of a number there: the same in the unit above; 0: the title has no unit */
};

/* Reads "time_ms", "GPU freq (MHz)", "epoch time [min]".  False where a word of it is not known
 * ("gpu_temp"), or where it is about two things at once ("cpu_power_mw"). */
bool ew_measured_title(const char *title, struct ew_measured_title *out);

/* What numbers up to `most` of a column without a unit are multiplied by: the clocks of boards
 * (50 MHz to 10 GHz) and their power (below 500 W) tell their units apart.  Times are taken as
 * seconds. */
double ew_measured_unit(enum ew_measured_quantity q, double most);

#endif
