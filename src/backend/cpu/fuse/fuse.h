/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU fuses: the roles of its kernels in fused groups (backend/group.h), and the
 * patterns that make the groups, one file each. */
#ifndef EW_BACKEND_CPU_FUSE_FUSE_H
#define EW_BACKEND_CPU_FUSE_FUSE_H

#include "backend/group.h"

enum ew_role {
    /* Rows of out[0] and of its gradient begin ew_call.out_step elements apart. */
    EW_ROLE_STRIDED_OUTPUT = 1 << 0,
    /* Backward: the optimiser's step of in[1], whose call comes with it.  din[1] has no data: the
     * gradient goes into the parameter as it is made, after everything else has read that. */
    EW_ROLE_UPDATE = 1 << 1,
    /* Backward: din[0] becomes 0 where in[0], which a ReLU has made, is not positive. */
    EW_ROLE_RELU_MASK = 1 << 2,
    /* Backward of what ends in a ReLU: dout[0] has come so, and out[0] has no data. */
    EW_ROLE_RELU_MASKED = 1 << 3,

    /* Batch norm, then a layer.  The norm, forward: out[0] has no data, for its reader makes it; it
     * takes the statistics and stops there. */
    EW_ROLE_STATS_ONLY = 1 << 4,
    /* The layer, both ways: in[0] has no data; it is what this forward call would give. */
    EW_ROLE_INPUT_NORM = 1 << 5,
    /* The layer, backward: it leaves the sums of that norm's backward in its aux; */
    EW_ROLE_INPUT_NORM_SUMS = 1 << 6,
    /* and the norm, backward, finds them there. */
    EW_ROLE_SUMS_READY = 1 << 7,

    /* A layer, then a batch norm.  The norm, backward: din[0] has no data, for what is before it
     * makes it; it takes the two sums a channel and stops there. */
    EW_ROLE_SUMS_ONLY = 1 << 8,
    /* The layer, backward: dout[0] has no data; it is what this backward call would give. */
    EW_ROLE_OUTPUT_NORM_GRAD = 1 << 9,
    /* The layer, forward: it takes the statistics for this call, which reads out[0]; */
    EW_ROLE_OUTPUT_NORM_STATS = 1 << 10,
    /* and the norm, forward, finds them in its aux. */
    EW_ROLE_STATS_READY = 1 << 11,

    /* Squeeze-and-excite, backward: a batch norm's output times a factor that is made of its
     * averages.  The product: the factor's gradient alone; its other input is what the norm's
     * forward call would give, and sums for the norm's backward go to ew_call.shared. */
    EW_ROLE_EXCITE_PRODUCT = 1 << 12,
    /* The norm: dout[0] has no data; it is what the calls EXCITE_PRODUCT and EXCITE_AVERAGE would
     * add up to, and ew_call.shared holds its sums. */
    EW_ROLE_EXCITE_NORM = 1 << 13,
    EW_ROLE_EXCITE_AVERAGE = 1 << 14,
    /* The layer before the norm, which has OUTPUT_NORM_GRAD: that call is EXCITE_NORM. */
    EW_ROLE_EXCITE_LAYER = 1 << 15,
};

static inline bool ew_plays(const struct ew_call *c, enum ew_role role)
{
    return c->roles & role;
}

/* What patterns look at, and where they put groups. */
struct ew_fusing {
    const struct ew_fuse_query *query;
    struct ew_group_list *list;
    int *input_norm; /* by value: the batch norm whose output it is, which its reader does; or -1 */
    int *
        output_norm; /* by value: the batch norm that reads it, whose gradient its maker does; or -1
                      */
    bool *relu;      /* by value: its gradient may be cleared where it is not positive */
    int *nodes;      /* room for all */
};

/* conv_pool_rewrite.c: the device's rewrite function, for what no group can say: nodes that become
 * one of another operator. */
ew_err ew_cpu_rewrite(const struct ew_backend *be, struct ew_graph *g);

/* The device's fuse function. */
ew_err ew_cpu_fuse(const struct ew_fuse_query *query, struct ew_group_list *out);

/* A call with the shapes of the node's values and no memory but that of constants. */
ew_err ew_fuse_call(struct ew_fusing *f, int node, struct ew_call *out);
/* The kernel that rules prefer for it; all zero where there is none. */
struct ew_kernel ew_fuse_preferred(const struct ew_fusing *f, const struct ew_call *c,
                                   enum ew_phase phase);
/* The same for the node as it stands alone. */
ew_err ew_fuse_kernel(struct ew_fusing *f, int node, enum ew_phase phase, struct ew_kernel *out);
/* True where the value has its data without any step. */
bool ew_fuse_is_known(const struct ew_fusing *f, int value);
/* True where a batch norm has all of its gradients: of its input, scale and shift.  Its kernel
 * makes no other set, and the reference, which does, plays no roles backward. */
bool ew_fuse_trains_norm(const struct ew_fusing *f, const struct ew_node *n);
/* The only needed node that reads the value, and once; -1: there is none. */
int ew_fuse_only_reader(const struct ew_fusing *f, int value);

/* Lets the call of a layer do another one as well, in this role. */
ew_err ew_fuse_add(struct ew_fusing *f, struct ew_call *layer, enum ew_role role, int node);

/* ---- Patterns ---- */

/* input_norm_group.c: a batch norm that only a layer reads is done by that.  Fills f->input_norm.
 */
ew_err ew_fuse_input_norms(struct ew_fusing *f);

/* output_norm_group.c: the gradient of a batch norm is made by the layer before it.  Fills
 * f->output_norm. */
ew_err ew_fuse_output_norms(struct ew_fusing *f);
/* The kernel of the backward of the layer that makes `value`, with the norms around it. */
ew_err ew_fuse_output_norm_kernel(struct ew_fusing *f, int value, int norm, struct ew_kernel *out);

/* norm_stats_group.c: a layer takes the statistics for the batch norm after it. */
ew_err ew_fuse_norm_stats(struct ew_fusing *f);

/* squeeze_excite_group.c: the gradients of product, average and batch norm; after
 * ew_fuse_output_norms. */
ew_err ew_fuse_squeeze_excites(struct ew_fusing *f);

/* update_group.c: a layer's backward does the optimiser's step of its weights. */
ew_err ew_fuse_updates(struct ew_fusing *f);

/* relu_grad_group.c: whoever completes the gradient of what a ReLU made clears it.  Fills f->relu
 * first. */
ew_err ew_fuse_relu_grads(struct ew_fusing *f);
/* True where somebody will probably do so for this value. */
ew_err ew_fuse_will_mask(struct ew_fusing *f, int value, bool *out);

/* concat_group.c: what a concatenation reads is made where that would copy it to. */
ew_err ew_fuse_concats(struct ew_fusing *f);

#endif
