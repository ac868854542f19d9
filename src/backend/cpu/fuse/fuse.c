/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns in turn, and their common functions. */
#include "backend/cpu/fuse/fuse.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/cpu_offer.h"

ew_err ew_fuse_call(struct ew_fuse_search *f, int node, struct ew_call *out)
{
    EW_TRY(ew_group_ask(f->query->g, node, f->list->arena, out));
    out->be = f->query->on_host[node] ? NULL : f->query->be;
    out->train = f->query->train;
    return EW_OK;
}

struct ew_kernel ew_fuse_preferred(const struct ew_fuse_search *f, const struct ew_call *c,
                                   enum ew_phase phase)
{
    struct ew_kernel offers[EW_OFFERS];
    const struct ew_kernel_query query = {f->query->be, c->op, phase, c};
    if (!c->be || ew_cpu_offer(&query, offers) == 0)
        return (struct ew_kernel){0};
    return offers[0];
}

ew_err ew_fuse_kernel(struct ew_fuse_search *f, int node, enum ew_phase phase,
                      struct ew_kernel *out)
{
    struct ew_call c;
    EW_TRY(ew_fuse_call(f, node, &c));
    *out = ew_fuse_preferred(f, &c, phase);
    return EW_OK;
}

bool ew_fuse_is_known(const struct ew_fuse_search *f, int value)
{
    return ew_value_is_known(&f->query->g->values[value]);
}

bool ew_fuse_trains_norm(const struct ew_fuse_search *f, const struct ew_node *n)
{
    for (int i = 0; i < 3; i++)
        if (n->n_in <= i || n->in[i] < 0 || !f->query->needs_grad[n->in[i]])
            return false;
    return true;
}

int ew_fuse_only_reader(const struct ew_fuse_search *f, int value)
{
    const struct ew_value_uses *r = &f->query->uses[value];
    return r->count == 1 ? r->first : -1;
}

ew_err ew_fuse_add(struct ew_fuse_search *f, struct ew_call *layer, enum ew_role role, int node)
{
    struct ew_fused_call *all =
        ew_arena_array(f->list->arena, (size_t)layer->n_fused + 1, sizeof(*all));
    struct ew_call *call = ew_arena_array(f->list->arena, 1, sizeof(*call));
    EW_CHECK(all && call, EW_ERR_MEMORY, "node %s: no memory for its group", layer->name);
    EW_TRY(ew_fuse_call(f, node, call));
    for (int i = 0; i < layer->n_fused; i++)
        all[i] = layer->fused[i];
    all[layer->n_fused++] = (struct ew_fused_call){role, call};
    layer->fused = all;
    layer->roles |= role;
    return EW_OK;
}

static ew_err init(struct ew_fuse_search *f)
{
    const struct ew_graph *g = f->query->g;
    const size_t values = (size_t)g->n_values + 1, nodes = (size_t)g->n_nodes + 1;
    f->input_norm = ew_arena_array(f->list->arena, values, sizeof(*f->input_norm));
    f->output_norm = ew_arena_array(f->list->arena, values, sizeof(*f->output_norm));
    f->relu = ew_arena_array(f->list->arena, values, sizeof(*f->relu));
    f->nodes = ew_arena_array(f->list->arena, nodes, sizeof(*f->nodes));
    EW_CHECK(f->input_norm && f->output_norm && f->relu && f->nodes, EW_ERR_MEMORY,
             "no memory to fuse nodes of graph %s", g->name);
    for (int i = 0; i < g->n_values; i++)
        f->input_norm[i] = f->output_norm[i] = -1;
    return EW_OK;
}

ew_err ew_cpu_fuse(const struct ew_fuse_query *query, struct ew_group_list *out)
{
    struct ew_fuse_search f = {.query = query, .list = out};
    if (!ew_cpu(query->be)->isa)
        return EW_OK; /* references fuse nothing */
    EW_TRY(init(&f));
    if (!query->train)
        return ew_fuse_concats(&f);
    EW_TRY(ew_fuse_input_norms(&f));
    EW_TRY(ew_fuse_relu_grads(&f));
    EW_TRY(ew_fuse_concats(&f));
    EW_TRY(ew_fuse_output_norms(&f));
    EW_TRY(ew_fuse_squeeze_excites(&f));
    EW_TRY(ew_fuse_norm_stats(&f));
    return query->update ? ew_fuse_updates(&f) : EW_OK;
}
