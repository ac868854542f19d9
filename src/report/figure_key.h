/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of runs as keys: sorted lines "\nname=value\n...\n". */
#ifndef EW_REPORT_FIGURE_KEY_H
#define EW_REPORT_FIGURE_KEY_H

#include "report/run_data.h"

/* The settings of a run: its options, command, network and data set; without those in `used`
 * (space-separated, NULL: none) and without incidental ones.  NULL: out of memory. */
const char *ew_key_options(const struct ew_run_data *d, const char *used, struct ew_arena *a);

/* The same for the properties of its machine. */
const char *ew_key_machine(const struct ew_run_data *d, const char *used, struct ew_arena *a);

/* The lines that two keys do not share are named in the set `names` ("\nname\n..."), which grows:
 * returns the new one. */
const char *ew_key_differ(const char *a_key, const char *b_key, const char *names,
                          struct ew_arena *a);

/* Only the lines whose name is in `names`. */
const char *ew_key_only(const char *key, const char *names, struct ew_arena *a);

/* The lines whose names differ somewhere, for people: "batch 16, width 0.5". `bare` leaves out the
 * names, for values of machines. */
const char *ew_key_label(const char *key, const char *names, bool bare, struct ew_arena *a);

/* A set of keys, and the smallest set of names that distinguishes them. {.names = "\n"} starts
 * it. */
#define EW_KEY_SET_MOST 64
struct ew_key_set {
    const char *keys[EW_KEY_SET_MOST]; /* different ones */
    int n;
    const char *names;
};
ew_err ew_key_set_add(struct ew_key_set *s, const char *key, struct ew_arena *a);
/* Drops names that are not needed to distinguish the keys; the board's name is dropped last. */
ew_err ew_key_set_trim(struct ew_key_set *s, struct ew_arena *a);

/* The names of a set that are not in the other, separated by commas. */
const char *ew_names_without(const char *names, const char *other, struct ew_arena *a);

/* Whether `name` is one of the words. */
bool ew_words_have(const char *words, const char *name);

#endif
