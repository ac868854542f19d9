/* SPDX-License-Identifier: Apache-2.0 */
/* Notes: key-value annotations of a network, which files keep. */
#include <string.h>

#include "graph/graph.h"

static struct ew_note *find(const struct ew_graph *g, const char *key)
{
    for (struct ew_note *n = g->notes; n; n = n->next)
        if (strcmp(n->key, key) == 0)
            return n;
    return NULL;
}

const char *ew_graph_note(const struct ew_graph *g, const char *key)
{
    const struct ew_note *n = find(g, key);
    return n ? n->value : NULL;
}

ew_err ew_graph_note_set(struct ew_graph *g, const char *key, const char *value)
{
    struct ew_note *n = find(g, key);
    if (!n) {
        struct ew_note **end = &g->notes;
        while (*end)
            end = &(*end)->next;
        n = ew_arena_alloc(&g->arena, sizeof(*n));
        EW_CHECK(n, EW_ERR_MEMORY, "no memory for a note");
        *n = (struct ew_note){.key = ew_arena_strdup(&g->arena, key)};
        *end = n;
    }
    n->value = ew_arena_strdup(&g->arena, value);
    EW_CHECK(n->key && n->value, EW_ERR_MEMORY, "no memory for a note");
    return EW_OK;
}

ew_err ew_graph_notes_copy(const struct ew_graph *from, struct ew_graph *to)
{
    for (const struct ew_note *n = from->notes; n; n = n->next)
        EW_TRY(ew_graph_note_set(to, n->key, n->value));
    return EW_OK;
}
