/* SPDX-License-Identifier: Apache-2.0 */
/* A list of channels that are each one number in one file: most of sysfs. */
#ifndef EW_DEVICE_GAUGE_H
#define EW_DEVICE_GAUGE_H

#include "device/sensor.h"

struct ew_gauge {
    struct ew_source file;
    double scale;           /* file's number times this is the value */
    double lowest, highest; /* plausible range; no check if both are equal */
    int channel;
};

struct ew_gauges {
    struct ew_gauge *list;
    int n, cap;
};

/* Adds a gauge for the file; `c->source` is filled in.  Where the file is not there nothing is
 * added and *added is false. */
ew_err ew_gauges_add(struct ew_probe *p, struct ew_gauges *g, const struct ew_gauge *form,
                     struct ew_channel *c, const char *path, bool *added);

/* For sensors whose whole state is a list of gauges: `read` and `close` of the descriptor. */
void ew_gauges_sensor_read(void *state, int64_t now_ns, struct ew_sample_value *values);
void ew_gauges_sensor_close(void *state);

#endif
