/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of fused groups. */
#include "backend/group.h"

#include "backend/backend_type.h"

ew_err ew_backend_fuse(const struct ew_fuse_query *query, struct ew_group_list *out)
{
    const struct ew_backend_type *type = query->be->type;
    return type->fuse ? type->fuse(query, out) : EW_OK;
}

ew_err ew_group_add(struct ew_group_list *list, const char *pattern, int n,
                    struct ew_group_step **steps)
{
    EW_TRY(ew_grow((void **)&list->groups, &list->cap, list->n + 1, sizeof(*list->groups)));
    *steps = ew_arena_array(list->arena, (size_t)n, sizeof(**steps));
    EW_CHECK(*steps, EW_ERR_MEMORY, "no memory for a group of %d steps", n);
    list->groups[list->n++] = (struct ew_fused_group){.pattern = pattern,
                                                      .steps = *steps,
                                                      .n_steps = n,
                                                      .value = -1,
                                                      .gradient = -1,
                                                      .concat = -1};
    return EW_OK;
}

ew_err ew_group_ask(struct ew_graph *g, int node, struct ew_arena *arena, struct ew_call *out)
{
    const struct ew_node *n = &g->nodes[node];
    struct ew_tensor **t = ew_arena_array(arena, (size_t)(n->n_in + n->n_out), sizeof(*t));
    EW_CHECK(t, EW_ERR_MEMORY, "node %s: no memory for its call", n->name);
    ew_graph_call(g, n, t, out);
    return EW_OK;
}
