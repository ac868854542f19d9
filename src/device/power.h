/* SPDX-License-Identifier: Apache-2.0 */
/* Changing cores, clocks and caps, and putting everything back.
 *
 * A journal with the old values (run/edgewise/power.journal under the root, so on a tmpfs that a
 * reboot clears as it clears the settings) is written before the first change and extended before
 * later ones.  ew_power_restore puts back what it holds; ew_power_recover does so where the process
 * that made the changes is gone without having done it.
 *
 * Order of writes: cores on, maxima up, minima, maxima down, the rest (between switches to and from
 * manual control), cores off.  No frequency range is ever empty on the way. */
#ifndef EW_DEVICE_POWER_H
#define EW_DEVICE_POWER_H

#include "base/mem.h"
#include "base/rootfs.h"

#define EW_POWER_TEXT    64
#define EW_POWER_PATH    192
#define EW_POWER_JOURNAL "run/edgewise/power.journal"

struct ew_power_change {
    char path[EW_POWER_PATH]; /* from the root, without a leading '/' */
    char value[EW_POWER_TEXT];
};

struct ew_power_list {
    struct ew_power_change *items;
    int n, cap;
};

void ew_power_list_free(struct ew_power_list *l);

/* Adds a change; a later one of the same path replaces the earlier. */
ew_err ew_power_list_set(struct ew_power_list *l, const char *path, const char *value);
ew_err ew_power_list_set_int(struct ew_power_list *l, const char *path, int64_t value);

struct ew_power_opts {
    bool keep; /* the settings outlive this process; only ew_power_restore ends them */
    /* For tests: called before each write to the board and to the journal, with a running number.
     */
    void (*before_write)(void *ctx, int n);
    void *ctx;
};

/* Makes the changes, each read back.  On failure everything is put back and the message names the
 * file, what was asked and what is there.  Files of cores that are off are passed over; *skipped
 * counts them. */
ew_err ew_power_apply(const struct ew_root *root, const struct ew_power_list *changes,
                      const struct ew_power_opts *opts, int *skipped);

/* Puts back what the journal holds and removes it; *n is the number of files, 0: no journal. */
ew_err ew_power_restore(const struct ew_root *root, const struct ew_power_opts *opts, int *n);

/* As restore, but only where the owner is gone and did not ask to keep the settings. */
ew_err ew_power_recover(const struct ew_root *root, int *n);

/* What the journal says: whether there is one, whose, and of how many files. */
struct ew_power_state {
    bool active, keep, owner_alive;
    int owner, files;
};
ew_err ew_power_state(const struct ew_root *root, struct ew_power_state *out);

#endif
