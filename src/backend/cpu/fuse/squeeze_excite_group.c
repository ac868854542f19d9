/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern: squeeze-and-excite after a batch norm, backward.  The norm's output is averaged over
 * each image, and multiplied by one factor for each channel, computed from the averages.
 *
 * If the layer before the norm computes the norm's gradient (output_norm_group.c), the gradient of
 * the norm's output needs no memory either: it is dy factor + the average's gradient / pixels,
 * computed as it is read.  The product's backward computes all sums in one pass from the norm's
 * input, so the norm's output is not kept; the average's backward is no work. */
#include "backend/cpu/fuse/fuse.h"

#define CHAIN 8 /* most nodes between average and factor */

struct excite {
    int norm, product, average;
    int full; /* input of the product that is the norm's output */
};

static bool is(const struct ew_fuse_search *f, int node, enum ew_op_flag flag)
{
    return f->query->g->nodes[node].op->flags & flag;
}

/* Finds the two readers of the norm's output; false: it has others. */
static bool find_readers(const struct ew_fuse_search *f, struct excite *e)
{
    const struct ew_graph *g = f->query->g;
    const int value = g->nodes[e->norm].out[0];
    const struct ew_value_uses *r = &f->query->uses[value];
    e->product = e->average = -1;
    if (r->count != 2 || r->first < 0)
        return false;
    for (int k = r->first, found = 0; k < g->n_nodes && found < 2; k++)
        for (int i = 0; f->query->needed[k] && i < g->nodes[k].n_in; i++) {
            if (g->nodes[k].in[i] != value)
                continue;
            found++;
            if (is(f, k, EW_OP_PRODUCT) && e->product < 0) {
                e->product = k;
                e->full = i;
            } else if (is(f, k, EW_OP_MEAN) && e->average < 0) {
                e->average = k;
            } else {
                return false;
            }
        }
    return e->product >= 0 && e->average >= 0;
}

static int factor_of(const struct ew_fuse_search *f, const struct excite *e)
{
    return f->query->g->nodes[e->product].in[1 - e->full];
}

/* True if the factor has one value for each channel of an image, and derives from the averages. */
static bool follows(const struct ew_fuse_search *f, const struct excite *e)
{
    const struct ew_graph *g = f->query->g;
    const struct ew_shape *full = &g->values[g->nodes[e->norm].out[0]].t.shape;
    int v = factor_of(f, e);
    const struct ew_shape *small = &g->values[v].t.shape;
    const int averages = g->nodes[e->average].out[0];
    if (!f->query->needs_grad[v] || full->rank < 3 || small->rank != full->rank ||
        small->dim[0] != full->dim[0] || small->dim[full->rank - 1] != full->dim[full->rank - 1] ||
        ew_shape_count(small) != full->dim[0] * full->dim[full->rank - 1] ||
        ew_tensor_count(&g->values[averages].t) != ew_shape_count(small))
        return false;
    for (int i = 0; i < CHAIN && v >= 0 && v != averages; i++) {
        const int from = g->values[v].producer;
        v = from >= 0 && g->nodes[from].n_in > 0 ? g->nodes[from].in[0] : -1;
    }
    return v == averages;
}

/* True if all kernels support their roles. */
static ew_err fits(struct ew_fuse_search *f, const struct excite *e, bool *out)
{
    struct ew_kernel layer, norm, product;
    const int value = f->query->g->nodes[e->norm].in[0];
    EW_TRY(ew_fuse_output_norm_kernel(f, value, e->norm, &layer));
    EW_TRY(ew_fuse_kernel(f, e->norm, EW_PHASE_FORWARD, &norm));
    EW_TRY(ew_fuse_kernel(f, e->product, EW_PHASE_BACKWARD, &product));
    *out = (layer.roles & EW_ROLE_EXCITE_LAYER) && (norm.roles & EW_ROLE_EXCITE_NORM) &&
           (product.roles & EW_ROLE_EXCITE_PRODUCT);
    return EW_OK;
}

static ew_err add_group(struct ew_fuse_search *f, const struct excite *e)
{
    const struct ew_graph *g = f->query->g;
    const int layer = g->values[g->nodes[e->norm].in[0]].producer;
    struct ew_group_step *s;
    EW_TRY(ew_group_add(f->list, "squeeze-and-excite", 4, &s));
    s[0] = (struct ew_group_step){.node = e->product,
                                  .phase = EW_PHASE_BACKWARD,
                                  .role = EW_ROLE_EXCITE_PRODUCT,
                                  .unread = (unsigned)EW_SAVE_IN0 << e->full,
                                  .calls = {{EW_ROLE_EXCITE_PRODUCT, e->norm, EW_PHASE_FORWARD}},
                                  .n_calls = 1};
    s[1] = (struct ew_group_step){.node = e->average, .phase = EW_PHASE_BACKWARD, .skipped = true};
    s[2] =
        (struct ew_group_step){.node = e->norm,
                               .phase = EW_PHASE_BACKWARD,
                               .role = EW_ROLE_EXCITE_NORM,
                               .calls = {{EW_ROLE_EXCITE_PRODUCT, e->product, EW_PHASE_BACKWARD},
                                         {EW_ROLE_EXCITE_AVERAGE, e->average, EW_PHASE_BACKWARD}},
                               .n_calls = 2};
    s[3] = (struct ew_group_step){
        .node = layer, .phase = EW_PHASE_BACKWARD, .role = EW_ROLE_EXCITE_LAYER};
    struct ew_fused_group *group = &f->list->groups[f->list->n - 1];
    group->decided = true;
    group->gradient = g->nodes[e->norm].out[0];
    group->shared = 4 * ew_tensor_bytes(&g->values[factor_of(f, e)].t);
    return EW_OK;
}

ew_err ew_fuse_squeeze_excites(struct ew_fuse_search *f)
{
    const struct ew_graph *g = f->query->g;
    for (int k = 0; k < g->n_nodes; k++) {
        struct excite e = {.norm = k};
        bool all = false;
        if (!f->query->needed[k] || !is(f, k, EW_OP_BATCH_NORM) ||
            f->output_norm[g->nodes[k].in[0]] != k || !find_readers(f, &e) || !follows(f, &e))
            continue;
        EW_TRY(fits(f, &e, &all));
        if (all)
            EW_TRY(add_group(f, &e));
    }
    return EW_OK;
}
