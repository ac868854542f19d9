/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from names to numbers. */
#ifndef EW_FORMAT_NAMES_H
#define EW_FORMAT_NAMES_H

#include "base/mem.h"

struct ew_names {
    struct ew_name_slot {
        const char *name; /* borrowed; NULL: free */
        int id;
    } * slot;
    int size; /* power of two */
    int used;
};

void ew_names_fini(struct ew_names *t); /* a zeroed table is a valid empty one */
/* The number of `name`, or -1. */
int ew_names_find(const struct ew_names *t, const char *name);
/* Inserts `name`, which must be new. */
ew_err ew_names_add(struct ew_names *t, const char *name, int id);

#endif
