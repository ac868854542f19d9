/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a sensor: one file sensor_<name>.c that ends with its descriptor `const struct
 * ew_sensor ew_sensor_<name>`.  The build collects them; docs/adding-a-sensor.md explains how to
 * write one.
 *
 * All files are read through the board's root.  A captured file (root other than "/") may contain
 * "!EAGAIN" and the like: reading it then fails as on the board. */
#ifndef EW_DEVICE_SENSOR_H
#define EW_DEVICE_SENSOR_H

#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rootfs.h"
#include "device/sample.h"

struct ew_board;
struct ew_board_opts;

/* The state of a board while sensors add their channels. */
struct ew_probe {
    struct ew_board *board;
    const struct ew_root *root;
    struct ew_arena *arena; /* lifetime of the board: for state and names */
    const struct ew_board_opts *opts;
    bool captured; /* a captured board, not this machine */
};

struct ew_sensor {
    const char *name; /* stable */
    const char *what; /* for the message if it finds nothing: "power by INA3221" */

    /* Adds the channels of this board and stores the sensor's state in *state.  Finding nothing is
     * not a failure: the reason is given by ew_probe_missing.  Fails only for bugs and lack of
     * memory. */
    ew_err (*probe)(struct ew_probe *p, void **state);

    /* Writes values[i] of each of its channels, initially absent.  Must not allocate. */
    void (*read)(void *state, int64_t now_ns, struct ew_sample_value *values);

    void (*close)(void *state); /* closes files and libraries; NULL: nothing to close */
};

/* ---- For probes ------------------------------------------------------------------------------ */

/* Adds a channel (copied; name and source must live in the arena) and returns its index. */
ew_err ew_probe_add(struct ew_probe *p, const struct ew_channel *c, int *index);

/* Reports that this sensor has no channels, or lacks some, and why. */
ew_err ew_probe_missing(struct ew_probe *p, enum ew_absent why, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Formats text in the arena. */
ew_err ew_probe_text(struct ew_probe *p, const char **out, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The names in a folder; none if it does not exist. */
ew_err ew_probe_list(struct ew_probe *p, const char *path, const char *const **names, int *n);

/* The numbers k, ascending, for which `dir` has a file before + k + after ("temp", "_input"). */
struct ew_numbers {
    int n, k[32];
};
ew_err ew_probe_numbers(struct ew_probe *p, const char *dir, const char *before, const char *after,
                        struct ew_numbers *out);

/* Reads a small text file; false: unreadable. */
bool ew_probe_read(struct ew_probe *p, char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- Files that are read again and again ----------------------------------------------------- */

/* An open file, read with one pread. */
struct ew_source {
    int fd;        /* -1: see `absent` */
    bool captured; /* content as "!EAGAIN" is an error code */
    enum ew_absent absent;
    const char *path; /* in the arena */
};

/* Opens a file of the board; on failure the source is absent with the reason.  False: the file does
 * not exist. */
bool ew_source_open(struct ew_probe *p, struct ew_source *s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void ew_source_close(struct ew_source *s);

/* Reads the text, NUL-terminated, without trailing white space, truncated to `size`. */
enum ew_absent ew_source_read(const struct ew_source *s, char *buf, size_t size);

/* The first number in the file times `scale`. */
struct ew_sample_value ew_source_value(const struct ew_source *s, double scale);

/* The reason of absence for an errno. */
enum ew_absent ew_absent_of(int error);

#endif
