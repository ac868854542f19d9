/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend: declarations shared by the files of this folder. */
#ifndef EW_BACKEND_CUDA_CUDA_BACKEND_H
#define EW_BACKEND_CUDA_CUDA_BACKEND_H

#include "backend/backend_type.h"
#include "backend/cuda/cuda_module.h"
#include "op/epilogue.h"
#include "op/types.h"

/* Parameters of which kernels hold copies in the device's storage type. */
struct ew_cuda_cast_weight {
    const void *parameter;
    void *copy;
};

struct ew_cuda_cast_weights {
    struct ew_cuda_cast_weight *at;
    int n, cap;
};

/* A second stream, for kernels that run concurrently within a command. */
struct ew_cuda_side_stream {
    struct ew_cuda_queue *q; /* NULL: not opened */
    void *forked, *joined;   /* events that order the two streams */
    int deterministic;
    size_t room, planned; /* workspace bytes: of the queue, of a planar convolution */
};

struct ew_cuda {
    struct ew_backend base;
    const struct ew_cuda_api *cu;
    struct ew_cuda_queue *q;
    struct ew_cuda_side_stream *side;
    int arch;                    /* architecture of the compiled kernels, e.g. 90 */
    int math;                    /* enum ew_cuda_math */
    int type;                    /* enum ew_cuda_type of activations */
    int node;                    /* node of the command being launched, for seeds */
    struct ew_cuda_rates *rates; /* in device memory: ew_run_params of the run */
    struct ew_cuda_rates last_rates;
    bool has_rates;              /* last_rates is valid */
    struct ew_cuda_scale *scale; /* in device memory; NULL: no loss scaling */
    struct ew_cuda_cast_weights *casts;
    const struct ew_cuda_update *update; /* multi-parameter update being launched; NULL: done by an
                                          * earlier command */
};

static inline const struct ew_cuda *ew_cuda(const struct ew_backend *be)
{
    return (const struct ew_cuda *)be;
}

/* Calls a launcher of the module on the queue of a call's backend. */
#define EW_CUDA_LAUNCH(c, name, args)                                                              \
    EW_TRY(ew_cuda_check(ew_cuda((c)->be)->cu,                                                     \
                         ew_cuda((c)->be)->cu->name(ew_cuda((c)->be)->q, args), #name))

/* Kernel families: each writes up to EW_OFFERS kernels, best first, and returns their number. */
typedef int ew_cuda_offer(const struct ew_kernel_query *query, struct ew_kernel *out);
ew_cuda_offer ew_cuda_offer_conv, ew_cuda_offer_dense, ew_cuda_offer_norm, ew_cuda_offer_group_norm,
    ew_cuda_offer_pool, ew_cuda_offer_act, ew_cuda_offer_pair, ew_cuda_offer_move,
    ew_cuda_offer_view, ew_cuda_offer_loss, ew_cuda_offer_softmax, ew_cuda_offer_dropout,
    ew_cuda_offer_slice, ew_cuda_offer_pad, ew_cuda_offer_expand, ew_cuda_offer_resize,
    ew_cuda_offer_reduce, ew_cuda_offer_qconv, ew_cuda_offer_qgemm, ew_cuda_offer_qbinary,
    ew_cuda_offer_qpool, ew_cuda_offer_quantize, ew_cuda_offer_fake_quant, ew_cuda_offer_lookup;

/* All kernels for a query, and for tasks of plans (enum ew_task). */
int ew_cuda_offer_all(const struct ew_kernel_query *query, struct ew_kernel *out);
bool ew_cuda_task(const struct ew_backend *be, enum ew_task task, const struct ew_optimizer *o,
                  struct ew_kernel *out);

/* Measures a large matrix product and a large copy. */
ew_err ew_cuda_peaks(struct ew_backend *be, struct ew_peaks *out);

/* ---- Helpers for kernel families ---- */

/* The type of the call's activations; -1 if they differ or it is neither float32 nor the device's
 * storage type.  Bit i: input i of `weights` must be float32, input i of `others` may have any
 * type. */
int ew_cuda_query_type(const struct ew_kernel_query *query, unsigned weights, unsigned others);

static inline int ew_cuda_storage(const struct ew_tensor *t)
{
    return t->dtype == EW_F16 ? EW_CUDA_F16 : t->dtype == EW_BF16 ? EW_CUDA_BF16 : EW_CUDA_F32;
}

/* cuda_weights.c.  Weights in[i] in the type of in[0] (the packed copy if they differ); NULL: no
 * such input. */
const void *ew_cuda_weight(const struct ew_call *c, int i);
/* Lets a forward kernel pack copies of in[1] and in[2] if their type differs from in[0]'s. */
void ew_cuda_pack_weights(const struct ew_call *c, struct ew_kernel *k);
/* The packed copy of a parameter; NULL: none. */
void *ew_cuda_cast_of(const struct ew_cuda *be, const void *parameter);
/* Called before a block of memory is freed. */
void ew_cuda_forget_casts(struct ew_cuda_cast_weights *l, const char *data, size_t bytes);

/* Concurrent kernels within one command: fork, launch on the side queue and on the main one, join.
 * The side queue must be open before the run (kernels' `prepare`). */
ew_err ew_cuda_open_side(const struct ew_call *c);
/* The side queue if the call computes dgrad and wgrad; else the main queue, for which fork and join
 * do nothing. */
struct ew_cuda_queue *ew_cuda_side(const struct ew_call *c);
ew_err ew_cuda_fork(const struct ew_cuda *be, struct ew_cuda_queue *side);
ew_err ew_cuda_join(const struct ew_cuda *be, struct ew_cuda_queue *side);

/* cuda_update.c: consecutive updates of parameters are merged into one launch. */
struct ew_cuda_updates;
ew_err ew_cuda_updates_new(struct ew_cuda *be, const struct ew_command *commands, int n,
                           struct ew_cuda_updates **out);
void ew_cuda_updates_free(struct ew_cuda *be, struct ew_cuda_updates *u); /* u may be NULL */
/* The launch that starts at command k; NULL: none. */
const struct ew_cuda_update *ew_cuda_update_at(const struct ew_cuda_updates *u, int k);
ew_err ew_cuda_run_update(const struct ew_call *c);

/* cuda_rounding.c: quantisation-aware training of weights (EW_TASK_ROUND, EW_TASK_RESTORE). */
ew_err ew_cuda_run_round(const struct ew_call *c);
ew_err ew_cuda_run_restore(const struct ew_call *c);

/* cuda_net.c: a program that is a chain of small layers runs, up to its updates, in two launches;
 * *out NULL: it is not such a chain. */
struct ew_cuda_net_program;
ew_err ew_cuda_net_program_new(struct ew_cuda *be, const struct ew_command *commands, int n,
                               struct ew_cuda_net_program **out);
void ew_cuda_net_program_free(struct ew_cuda *be, struct ew_cuda_net_program *p); /* NULL is fine */
ew_err ew_cuda_net_program_start(const struct ew_cuda *be, const struct ew_cuda_net_program *p);
/* Index of the first command that it does not cover; 0 if p is NULL. */
int ew_cuda_net_program_end(const struct ew_cuda_net_program *p);

/* Attributes of calls, in the structs that launchers take. */
struct ew_window;
/* False: invalid sizes, or x is empty or has more than INT32_MAX elements. */
bool ew_cuda_conv_window(const struct ew_call *c, struct ew_cuda_window *g);
ew_err ew_cuda_pool_window(const struct ew_call *c, struct ew_window *w);
struct ew_cuda_loss ew_cuda_loss_of(const struct ew_call *c);
/* A gemm or matmul: row-major [m, k] x [k, n], each possibly stored transposed. */
struct ew_cuda_dense {
    int64_t m, n, k;
    int trans_a, trans_b;
    float alpha, beta;
};
bool ew_cuda_dense_of(const struct ew_call *c, struct ew_cuda_dense *d);
/* True if the bias is one row of n, unscaled, which the epilogue adds. */
bool ew_cuda_bias_fits(const struct ew_call *c, const struct ew_cuda_dense *d);
/* The kernel of EW_TASK_SEED. */
ew_err ew_cuda_run_seed(const struct ew_call *c);

/* True if din[i] is accumulated into. */
static inline int ew_cuda_adds(const struct ew_call *c, int i)
{
    return !(c->fresh >> i & 1);
}

static inline struct ew_cuda_act ew_cuda_act_of(const struct ew_epilogue_attr *e)
{
    return (struct ew_cuda_act){e->act, (float)e->lo, (float)e->hi};
}

static inline void *ew_cuda_data(const struct ew_tensor *t)
{
    return t ? t->data : NULL;
}

/* Dimensions of a broadcast result, adjacent ones merged if both operands allow it; false: more
 * than EW_CUDA_DIMS remain. */
struct ew_cuda_pair {
    int64_t dim[EW_CUDA_DIMS], stride[2][EW_CUDA_DIMS];
};
bool ew_cuda_pair_of(const struct ew_shape *a, const struct ew_shape *b, const struct ew_shape *s,
                     struct ew_cuda_pair *out);

/* Reduces three spatial dimensions to two: if windows do not extend over the first, its positions
 * become images of the batch; if they extend over the first only, the other two become one row.
 * False if they extend over both. */
bool ew_cuda_flatten(struct ew_window *w);

/* Offers a single kernel. */
static inline int ew_cuda_one(struct ew_kernel *out, const char *name,
                              ew_err (*run)(const struct ew_call *c), size_t scratch)
{
    *out = (struct ew_kernel){.name = name, .run = run, .scratch = scratch, .fresh = true};
    return 1;
}

/* Launches a reduction on the queue of the call's backend. */
ew_err ew_cuda_sum_rows(const struct ew_call *c, const struct ew_cuda_reduce *r);

extern const struct ew_backend_type ew_cuda_type;

#endif
