/* SPDX-License-Identifier: Apache-2.0 */
/* Changes cores, clocks and power caps, and restores them.
 *
 * A journal with the old values (run/edgewise/power.journal under the root: on a tmpfs, which a
 * reboot clears together with the settings) is written before the first change and extended before
 * later ones.  ew_power_restore restores the values in it; ew_power_recover does so only if the
 * process that made the changes ended without restoring them.
 *
 * Order of writes: cores on, maxima up, minima, maxima down, the rest (between switches to and from
 * manual control), cores off.  So no frequency range is empty at any time. */
#ifndef EW_DEVICE_POWER_H
#define EW_DEVICE_POWER_H

#include "base/mem.h"
#include "base/rootfs.h"

#define EW_POWER_TEXT    64
#define EW_POWER_PATH    192
#define EW_POWER_JOURNAL "run/edgewise/power.journal"

struct ew_power_change {
    char path[EW_POWER_PATH]; /* relative to the root, without leading '/' */
    char value[EW_POWER_TEXT];
};

struct ew_power_list {
    struct ew_power_change *items;
    int n, cap;
};

void ew_power_list_free(struct ew_power_list *l);

/* Adds a change; it replaces an earlier one of the same path. */
ew_err ew_power_list_set(struct ew_power_list *l, const char *path, const char *value);
ew_err ew_power_list_set_int(struct ew_power_list *l, const char *path, int64_t value);

struct ew_power_opts {
    bool keep; /* the settings stay after this process, until ew_power_restore */
    /* For tests: called before each write to the board and to the journal, with its number. */
    void (*before_write)(void *ctx, int n);
    void *ctx;
};

/* Makes the changes and verifies each by reading it back.  On failure everything is restored, and
 * the message names the file, the requested and the actual value.  Files of offline cores are
 * skipped; *skipped counts them. */
ew_err ew_power_apply(const struct ew_root *root, const struct ew_power_list *changes,
                      const struct ew_power_opts *opts, int *skipped);

/* Restores the values of the journal and removes it; *n is the number of files, 0: no journal. */
ew_err ew_power_restore(const struct ew_root *root, const struct ew_power_opts *opts, int *n);

/* Like restore, but only if the owner has ended and did not ask to keep the settings. */
ew_err ew_power_recover(const struct ew_root *root, int *n);

/* State of the journal: whether it exists, its owner, and its number of files. */
struct ew_power_state {
    bool active, keep, owner_alive;
    int owner, files;
};
ew_err ew_power_state(const struct ew_root *root, struct ew_power_state *out);

#endif
