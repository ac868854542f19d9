/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from names to numbers: open addressing, load factor at most 1/2. */
#include "format/names.h"

#include <stdlib.h>
#include <string.h>

void ew_names_fini(struct ew_names *t)
{
    free(t->slot);
    *t = (struct ew_names){0};
}

static struct ew_name_slot *find_slot(struct ew_name_slot *slot, int size, const char *name)
{
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    for (const char *p = name; *p; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    h ^= h >> 32; /* the low bits of FNV alone are weak */
    while (slot[h & (uint64_t)(size - 1)].name &&
           strcmp(slot[h & (uint64_t)(size - 1)].name, name) != 0)
        h++;
    return &slot[h & (uint64_t)(size - 1)];
}

int ew_names_find(const struct ew_names *t, const char *name)
{
    if (!t->size)
        return -1;
    const struct ew_name_slot *s = find_slot(t->slot, t->size, name);
    return s->name ? s->id : -1;
}

static ew_err widen(struct ew_names *t)
{
    const int size = t->size ? 2 * t->size : 64;
    EW_CHECK(size <= 1 << 27, EW_ERR_LIMIT, "more than %d names", t->used);
    struct ew_name_slot *slot = calloc((size_t)size, sizeof(*slot));
    EW_CHECK(slot, EW_ERR_MEMORY, "no memory for %d names", size);
    for (int i = 0; i < t->size; i++)
        if (t->slot[i].name)
            *find_slot(slot, size, t->slot[i].name) = t->slot[i];
    free(t->slot);
    t->slot = slot;
    t->size = size;
    return EW_OK;
}

ew_err ew_names_add(struct ew_names *t, const char *name, int id)
{
    if (2 * (t->used + 1) > t->size)
        EW_TRY(widen(t));
    *find_slot(t->slot, t->size, name) = (struct ew_name_slot){name, id};
    t->used++;
    return EW_OK;
}
