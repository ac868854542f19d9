/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that run networks, and the board's sensors: readings, and the energy of an interval. */
#ifndef EDGEWISE_DEVICE_H
#define EDGEWISE_DEVICE_H

#include "edgewise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Devices --------------------------------------------------------------------------------- */

/* A device that could be opened, or a kind of which there is none here. */
struct ew_device {
    size_t size;          /* sizeof(struct ew_device), set before the call */
    char id[64];          /* what ew_device_use takes: "cpu", "cuda:0"; "": there is none */
    char backend[32];     /* "cpu", "cuda", "dpu" */
    char name[128];       /* "NVIDIA Orin" */
    char target[64];      /* instruction set or compute capability */
    char why[256];        /* why there is none */
    int64_t memory_bytes; /* 0: not known */
    int emulated;         /* 1: it runs here as an emulation, whose times mean nothing */
};

/* Device i of all that this build and this machine have, in a fixed order, the CPU first.
 * EW_ERR_NOT_FOUND beyond the last.  Any thread. */
EW_API ew_err ew_device_at(int i, struct ew_device *out);

/* Selects the device of this process and of its children by setting EW_DEVICE in the environment.
 * Fails if the device cannot be opened.  Call it before any other thread is started. */
EW_API ew_err ew_device_use(const char *id);

/* ---- Sensors --------------------------------------------------------------------------------- */

/* The board's sensors, read ten times a second by a thread of the meter's own.  One thread
 * calls. */
struct ew_meter;

/* Zero it, set `size` and whatever is wanted. */
struct ew_meter_opts {
    size_t size;            /* sizeof(struct ew_meter_opts) */
    const char *power_from; /* an external meter: a command, pipe or growing file that gives lines
                             * of watts; NULL: what the board has */
    const char *root;       /* where /sys and /proc are, for recorded boards; NULL: "/" */
};

/* Opens the board's sensors and begins to read them; `opts` may be NULL.  A board without power
 * sensors opens too.  The caller frees *out with ew_meter_close. */
EW_API ew_err ew_meter_open(const struct ew_meter_opts *opts, struct ew_meter **out);
EW_API void ew_meter_close(struct ew_meter *m); /* NULL is fine */

/* One thing that is measured; texts live as long as the meter. */
struct ew_meter_channel {
    const char *name;   /* "cpu.load", "power.VDD_IN" */
    const char *unit;   /* "W", "%", "C", "MHz", ... */
    const char *source; /* file or interface */
    const char *absent; /* why there is no value now; NULL: `value` holds */
    double value;       /* the last one that was read */
};

/* The number of channels, and one of them with its last value.  EW_ERR_ARG where there is none i.
 */
EW_API int ew_meter_channels(const struct ew_meter *m);
EW_API ew_err ew_meter_read(struct ew_meter *m, int i, struct ew_meter_channel *out);

/* ---- Energy ---------------------------------------------------------------------------------- */

struct ew_meter_energy {
    size_t size;        /* sizeof(struct ew_meter_energy), set before the call */
    const char *absent; /* why the energy is not known, as on a board without power sensors; NULL:
                         * what follows holds */
    const char *rails;  /* what it is the energy of: "VDD_IN", "GPU + CPU + SOC" */
    double seconds;
    double joules, error_j;       /* error_j: a bound, docs/measurement.md says of what */
    double mean_w, min_w, peak_w; /* min and peak: of readings */
    int64_t readings;
};

/* 1: the board, or the external meter, tells its power; 0: energy will be absent. */
EW_API int ew_meter_has_power(const struct ew_meter *m);

/* Processes the readings since the last call; call it at least once a minute during an interval. */
EW_API void ew_meter_poll(struct ew_meter *m);

/* Starts an interval; a second call starts a new one. */
EW_API void ew_meter_begin(struct ew_meter *m);
/* Ends it and gives its energy; waits for the reading after it, a tenth of a second.  EW_ERR_ARG
 * without a beginning. */
EW_API ew_err ew_meter_end(struct ew_meter *m, struct ew_meter_energy *out);

#ifdef __cplusplus
}
#endif

#endif
