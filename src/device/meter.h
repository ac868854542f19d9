/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of an external power meter; the sensor itself is sensor_meter.c. */
#ifndef EW_DEVICE_METER_H
#define EW_DEVICE_METER_H

#include <stdbool.h>

/* The watts of "[timestamp] watts": the last word, with or without W.  False: no such line. */
bool ew_meter_parse(const char *line, double *watts);

#endif
