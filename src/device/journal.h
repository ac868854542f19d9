/* SPDX-License-Identifier: Apache-2.0 */
/* The file with the board's previous settings; used by power.c alone. */
#ifndef EW_DEVICE_JOURNAL_H
#define EW_DEVICE_JOURNAL_H

#include "device/power.h"

struct ew_journal {
    struct ew_power_list old; /* values before the first change */
    int owner;
    long long owner_start; /* kernel's start time of the owner, so that a reused number shows */
    bool keep, there;
};

/* *there is false where there is no journal, or one from before the last boot. */
ew_err ew_journal_read(const struct ew_root *root, struct ew_journal *j);

/* Replaces the file as a whole and syncs it. */
ew_err ew_journal_write(const struct ew_root *root, const struct ew_journal *j);

ew_err ew_journal_remove(const struct ew_root *root);

/* Marks this process as the owner. */
void ew_journal_own(struct ew_journal *j);

bool ew_journal_owner_alive(const struct ew_journal *j);

/* Waits until no other process changes settings or puts them back; the caller closes what it
 * returns.  -1: nothing can be locked here, nor written. */
int ew_journal_lock(const struct ew_root *root);

#endif
