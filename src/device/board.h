/* SPDX-License-Identifier: Apache-2.0 */
/* A board: its identity, its channels, and one reading of all of them.  Periodic reading is in
 * device/sampler.h, energy in device/energy.h. */
#ifndef EW_DEVICE_BOARD_H
#define EW_DEVICE_BOARD_H

#include "base/mem.h"
#include "base/rootfs.h"
#include "device/profile.h"
#include "device/sample.h"

struct ew_sensor;

struct ew_board_opts {
    const char *root;       /* NULL: "/" */
    const char *power_from; /* external meter: command, pipe, growing file or "-"; NULL: none */
    const char *tegrastats; /* "live", or a recorded log; NULL: not used */
    const char *watch;      /* file or folder whose share in the page cache is read; NULL: none */
    int pid;                /* process to be read as well; 0: none */
};

/* The board's identity.  NULL: not reported. */
struct ew_board_id {
    const char *model;      /* device tree or DMI */
    const char *compatible; /* device tree, space-separated */
    const char *release;    /* Jetson: "R35.4.1" */
    int jetpack;            /* Jetson: 4, 5, 6, 7; 0: not known */
    const char *cpu, *kernel;
    bool virtual_machine;
    int cores, online; /* cores present, cores on; 0: not known */
};

/* A sensor or feature that was looked for and is missing. */
struct ew_missing {
    const char *sensor, *what, *reason;
    enum ew_absent absent;
};

/* The channels that make up the board's power, decided when it is opened. */
struct ew_power_total {
    int power, energy;  /* channels power.total and energy.total; -1: none */
    const char *rails;  /* "VDD_IN", "GPU + CPU + SOC"; stored with each number */
    const char *covers; /* in words */
};

struct ew_board {
    struct ew_root root;
    struct ew_arena arena; /* holds all below */
    struct ew_board_id id;
    const struct ew_profile *profile;  /* NULL: none fits */
    const struct ew_profile *profiles; /* all that there are */
    int n_profiles;
    const struct ew_channel *channels;
    int n_channels;
    const struct ew_missing *missing;
    int n_missing;
    struct ew_power_total total;
    struct ew_board_impl *impl;
};

/* Opens a board and looks for everything it has.  Release with ew_board_close. */
ew_err ew_board_open(const struct ew_board_opts *opts, struct ew_board **out);
void ew_board_close(struct ew_board *b); /* NULL is fine */

/* Reads all channels: n_channels values.  Allocates nothing; one thread at a time. */
void ew_board_read(struct ew_board *b, struct ew_sample_value *values);

/* The channel's index, or -1. */
int ew_board_channel(const struct ew_board *b, const char *name);

/* Fills b->id; in identity.c. */
ew_err ew_board_identify(struct ew_board *b);

/* The channels that make up the total; in total.c. */
struct ew_total_rule {
    int rails[32], n;
    const char *text, *covers;
};
ew_err ew_total_decide(const struct ew_board *b, struct ew_arena *a, struct ew_total_rule *out);

#endif
