/* SPDX-License-Identifier: Apache-2.0 */
/* Fusions on the CPU, mostly in training: the roles of its kernels in fused groups
 * (backend/group.h), and the patterns that form the groups, one file each. */
#ifndef EW_BACKEND_CPU_FUSE_FUSE_H
#define EW_BACKEND_CPU_FUSE_FUSE_H

#include "backend/group.h"

enum ew_role {
    /* out[0] and its gradient have row stride ew_call.out_step. */
    EW_ROLE_STRIDED_OUTPUT = 1 << 0,
    /* Backward also updates the parameter in[1] by the optimiser, whose call is attached.  din[1]
     * has no data: the gradient is applied directly, after the last other read of the parameter. */
    EW_ROLE_UPDATE = 1 << 1,
    /* Backward: din[0] = 0 where in[0] <= 0; in[0] is the output of a ReLU, whose gradient this
     * is. */
    EW_ROLE_RELU_MASK = 1 << 2,
    /* Backward of a node with ReLU: dout[0] is already masked by RELU_MASK, and out[0] has no
     * data. */
    EW_ROLE_RELU_MASKED = 1 << 3,

    /* Batch norm, then a layer.  The norm, forward: compute the statistics only; out[0] has no
     * data, its reader computes it. */
    EW_ROLE_STATS_ONLY = 1 << 4,
    /* The layer, forward and backward: in[0] has no data; it is the output of the attached forward
     * call. */
    EW_ROLE_INPUT_NORM = 1 << 5,
    /* The layer, backward: write the sums of the norm's backward to the norm's aux; */
    EW_ROLE_INPUT_NORM_SUMS = 1 << 6,
    /* the norm, backward: the sums are in aux. */
    EW_ROLE_SUMS_READY = 1 << 7,

    /* A layer, then a batch norm.  The norm, backward: compute the two sums of each channel only;
     * din[0] has no data, the layer computes it. */
    EW_ROLE_SUMS_ONLY = 1 << 8,
    /* The layer, backward: dout[0] has no data; it is din[0] of the attached backward call. */
    EW_ROLE_OUTPUT_NORM_GRAD = 1 << 9,
    /* The layer, forward: compute statistics of out[0] for the attached call of a batch norm; */
    EW_ROLE_OUTPUT_NORM_STATS = 1 << 10,
    /* the norm, forward: the statistics are in aux. */
    EW_ROLE_STATS_READY = 1 << 11,

    /* Squeeze-and-excite after a batch norm, backward: norm output times factor(averages).  The
     * product: compute the factor's gradient only; its other input is the output of the attached
     * forward call of the norm, and sums for the norm's backward go to ew_call.shared. */
    EW_ROLE_EXCITE_PRODUCT = 1 << 12,
    /* The norm: dout[0] has no data; it is the sum of the gradients from the calls EXCITE_PRODUCT
     * and EXCITE_AVERAGE, and ew_call.shared has its sums. */
    EW_ROLE_EXCITE_NORM = 1 << 13,
    EW_ROLE_EXCITE_AVERAGE = 1 << 14,
    /* The layer before the norm: its OUTPUT_NORM_GRAD call has the role EXCITE_NORM. */
    EW_ROLE_EXCITE_LAYER = 1 << 15,
};

static inline bool ew_has_role(const struct ew_call *c, enum ew_role role)
{
    return c->roles & role;
}

/* State of the search for patterns. */
struct ew_fuse_search {
    const struct ew_fuse_query *query;
    struct ew_group_list *list;
    int *input_norm;  /* by value: the batch norm that produces it and that its reader applies; or
                       * -1 */
    int *output_norm; /* by value: the batch norm that reads it and whose gradient its producer
                       * computes; or -1 */
    bool *relu;       /* by value: its gradient may be masked where the value is <= 0 */
    int *nodes;       /* scratch for all nodes */
};

/* conv_pool_rewrite.c: the device's rewrite function, for fusions into another operator, which no
 * group can express. */
ew_err ew_cpu_rewrite(const struct ew_backend *be, struct ew_graph *g);

/* The device's fuse function. */
ew_err ew_cpu_fuse(const struct ew_fuse_query *query, struct ew_group_list *out);

/* A call for kernel queries, as ew_group_ask. */
ew_err ew_fuse_call(struct ew_fuse_search *f, int node, struct ew_call *out);
/* The preferred kernel for the call; all zero: none. */
struct ew_kernel ew_fuse_preferred(const struct ew_fuse_search *f, const struct ew_call *c,
                                   enum ew_phase phase);
/* The preferred kernel of the node outside of groups. */
ew_err ew_fuse_kernel(struct ew_fuse_search *f, int node, enum ew_phase phase,
                      struct ew_kernel *out);
/* True if the value is known before the run. */
bool ew_fuse_is_known(const struct ew_fuse_search *f, int value);
/* True if all gradients of a batch norm are wanted: input, scale and shift.  Its kernel computes
 * all or none, and the reference has no roles. */
bool ew_fuse_trains_norm(const struct ew_fuse_search *f, const struct ew_node *n);
/* The only needed node that reads the value, and reads it once; -1: none. */
int ew_fuse_only_reader(const struct ew_fuse_search *f, int value);

/* Attaches the node's call to the call of a layer, in this role. */
ew_err ew_fuse_add(struct ew_fuse_search *f, struct ew_call *layer, enum ew_role role, int node);

/* ---- Patterns ---- */

/* input_norm_group.c: a layer applies the batch norm before it.  Fills f->input_norm. */
ew_err ew_fuse_input_norms(struct ew_fuse_search *f);

/* output_norm_group.c: a layer computes the gradient of the batch norm after it.  Fills
 * f->output_norm. */
ew_err ew_fuse_output_norms(struct ew_fuse_search *f);
/* The backward kernel of the layer that produces `value`, fused with the norms around it. */
ew_err ew_fuse_output_norm_kernel(struct ew_fuse_search *f, int value, int norm,
                                  struct ew_kernel *out);

/* norm_stats_group.c: a layer computes the statistics of the batch norm after it. */
ew_err ew_fuse_norm_stats(struct ew_fuse_search *f);

/* squeeze_excite_group.c: gradients of product, average and batch norm; after
 * ew_fuse_output_norms. */
ew_err ew_fuse_squeeze_excites(struct ew_fuse_search *f);

/* update_group.c: a layer's backward updates its weights. */
ew_err ew_fuse_updates(struct ew_fuse_search *f);

/* relu_grad_group.c: the last step that adds to the gradient of a ReLU's output masks it.  Fills
 * f->relu first. */
ew_err ew_fuse_relu_grads(struct ew_fuse_search *f);
/* True if a step is likely to do so for this value. */
ew_err ew_fuse_will_mask(struct ew_fuse_search *f, int value, bool *out);

/* concat_group.c: inputs of a concatenation are written directly into its output. */
ew_err ew_fuse_concats(struct ew_fuse_search *f);

#endif
