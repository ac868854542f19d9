/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of a sensor: one file sensor_<name>.c, whose descriptor `const struct ew_sensor
 * ew_sensor_<name>` is the last thing in it.  The build collects them; docs/adding-a-sensor.md says
 * how to write one.
 *
 * All files are read through the board's root.  A captured file (root other than "/") may hold
 * "!EAGAIN" or the like: reading it then fails as it did on the board. */
#ifndef EW_DEVICE_SENSOR_H
#define EW_DEVICE_SENSOR_H

#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rootfs.h"
#include "device/sample.h"

struct ew_board;
struct ew_board_opts;

/* What a sensor sees while it looks for its channels. */
struct ew_probe {
    struct ew_board *board;
    const struct ew_root *root;
    struct ew_arena *arena; /* lives as long as the board: put state and names here */
    const struct ew_board_opts *opts;
    bool captured; /* the root is a captured board, not this machine */
};

struct ew_sensor {
    const char *name; /* never changes */
    const char *what; /* what is missing where it finds nothing: "power by INA3221" */

    /* Adds the channels that this board has and leaves the sensor's state in *state.  Nothing found
     * is no failure: it says why by ew_probe_missing.  Failures are bugs and lack of memory. */
    ew_err (*probe)(struct ew_probe *p, void **state);

    /* Writes values[i] for each of its channels.  Allocates nothing.  `values` starts out absent.
     */
    void (*read)(void *state, int64_t now_ns, struct ew_sample_value *values);

    void (*close)(void *state); /* files and libraries; NULL: nothing to close */
};

/* ---- For probes ------------------------------------------------------------------------------ */

/* Adds a channel (copied; its name and source must live in the arena) and gives its index. */
ew_err ew_probe_add(struct ew_probe *p, const struct ew_channel *c, int *index);

/* Says that this sensor has nothing, or not all, and why. */
ew_err ew_probe_missing(struct ew_probe *p, enum ew_absent why, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Text formatted into the arena. */
ew_err ew_probe_text(struct ew_probe *p, const char **out, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The names in a folder; none where there is no such folder. */
ew_err ew_probe_list(struct ew_probe *p, const char *path, const char *const **names, int *n);

/* The numbers k, rising, for which `dir` has a file called before + k + after ("temp", "_input").
 */
struct ew_numbers {
    int n, k[32];
};
ew_err ew_probe_numbers(struct ew_probe *p, const char *dir, const char *before, const char *after,
                        struct ew_numbers *out);

/* A small text file; false where it cannot be read. */
bool ew_probe_read(struct ew_probe *p, char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- Files that are read again and again ----------------------------------------------------- */

/* An open file: reading it costs one pread. */
struct ew_source {
    int fd;        /* -1: see `absent` */
    bool captured; /* "!EAGAIN" stands for the error */
    enum ew_absent absent;
    const char *path; /* in the arena */
};

/* Opens a file of the board; where that fails the source stays absent with the reason.  False: the
 * file is not there at all. */
bool ew_source_open(struct ew_probe *p, struct ew_source *s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void ew_source_close(struct ew_source *s);

/* The text from its beginning, NUL-terminated, white space at the end cut; what does not fit in
 * `size` is cut as well. */
enum ew_absent ew_source_read(const struct ew_source *s, char *buf, size_t size);

/* The file's first number times `scale`. */
struct ew_sample_value ew_source_value(const struct ew_source *s, double scale);

/* The reason that an errno stands for. */
enum ew_absent ew_absent_of(int error);

#endif
