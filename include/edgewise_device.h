/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that run networks, and the board's sensors: readings, and the energy of an interval. */
#ifndef EDGEWISE_DEVICE_H
#define EDGEWISE_DEVICE_H

#include "edgewise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Devices --------------------------------------------------------------------------------- */

/* A device that can be opened, or a backend that has none on this machine. */
struct ew_device {
    size_t size;          /* sizeof(struct ew_device), set before the call */
    char id[64];          /* argument of ew_device_use: "cpu", "cuda:0"; "": no such device here */
    char backend[32];     /* "cpu", "cuda", "dpu" */
    char name[128];       /* "NVIDIA Orin" */
    char target[64];      /* instruction set or compute capability */
    char why[256];        /* if id is "": the reason */
    int64_t memory_bytes; /* 0: not known */
    int emulated;         /* 1: emulated on the CPU; its times mean nothing */
};

/* Device i of those that this build and this machine have, in a fixed order, the CPU first.
 * EW_ERR_NOT_FOUND beyond the last.  Any thread. */
EW_API ew_err ew_device_at(int i, struct ew_device *out);

/* Selects the device of this process and of its children by setting EW_DEVICE in the environment.
 * Fails if the device cannot be opened.  Call it before any other thread is started. */
EW_API ew_err ew_device_use(const char *id);

/* ---- Sensors --------------------------------------------------------------------------------- */

/* The board's sensors, sampled ten times a second by a background thread.  One thread calls. */
struct ew_meter;

/* Zero the struct, set `size` and the fields that you need. */
struct ew_meter_opts {
    size_t size;            /* sizeof(struct ew_meter_opts) */
    const char *power_from; /* an external power meter: a command, pipe or growing file that gives
                             * lines of watts; NULL: the board's own sensors */
    const char *root; /* directory that holds /sys and /proc, for recorded boards; NULL: "/" */
};

/* Opens the board's sensors and starts sampling; `opts` may be NULL.  Succeeds on a board without
 * power sensors.  The caller frees *out with ew_meter_close. */
EW_API ew_err ew_meter_open(const struct ew_meter_opts *opts, struct ew_meter **out);
EW_API void ew_meter_close(struct ew_meter *m); /* NULL is fine */

/* A measured quantity; strings live as long as the meter. */
struct ew_meter_channel {
    const char *name;   /* "cpu.load", "power.VDD_IN" */
    const char *unit;   /* "W", "%", "C", "MHz", ... */
    const char *source; /* file or interface */
    const char *absent; /* why there is no value now; NULL: `value` is valid */
    double value;       /* the latest sample */
};

/* The number of channels, and channel i with its latest value.  EW_ERR_ARG if i is out of range. */
EW_API int ew_meter_channels(const struct ew_meter *m);
EW_API ew_err ew_meter_read(struct ew_meter *m, int i, struct ew_meter_channel *out);

/* ---- Energy ---------------------------------------------------------------------------------- */

struct ew_meter_energy {
    size_t size;        /* sizeof(struct ew_meter_energy), set before the call */
    const char *absent; /* why the energy is not known, as on a board without power sensors; NULL:
                         * the fields below are valid */
    const char *rails;  /* power rails that are summed: "VDD_IN", "GPU + CPU + SOC" */
    double seconds;
    double joules, error_j;       /* error_j: error bound (docs/measurement.md) */
    double mean_w, min_w, peak_w; /* min and peak: of single readings */
    int64_t readings;
};

/* 1: the board or the external meter measures power; 0: energy will be absent. */
EW_API int ew_meter_has_power(const struct ew_meter *m);

/* Processes the samples since the last call; call it at least once a minute during an interval, or
 * old samples are lost. */
EW_API void ew_meter_poll(struct ew_meter *m);

/* Starts an interval, discarding one that was not ended. */
EW_API void ew_meter_begin(struct ew_meter *m);
/* Ends the interval and gives its energy.  Waits for the next reading, at most a tenth of a second.
 * EW_ERR_ARG if no interval was started. */
EW_API ew_err ew_meter_end(struct ew_meter *m, struct ew_meter_energy *out);

#ifdef __cplusplus
}
#endif

#endif
