/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA device as a backend: what its kernels' files share. */
#ifndef EW_BACKEND_CUDA_CUDA_BACKEND_H
#define EW_BACKEND_CUDA_CUDA_BACKEND_H

#include "backend/backend_type.h"
#include "backend/cuda/cuda_module.h"
#include "op/epilogue.h"
#include "op/types.h"

/* Parameters that kernels have copies of in the device's storage type. */
struct ew_cuda_copied {
    const void *parameter;
    void *copy;
};

struct ew_cuda_copies {
    struct ew_cuda_copied *at;
    int n, cap;
};

/* A second queue, for what runs beside the first within a command. */
struct ew_cuda_beside {
    struct ew_cuda_queue *q; /* NULL: nothing has asked for it */
    void *forked, *joined;   /* events between the two */
    int deterministic;
    size_t room, planned; /* bytes of queues' workspace, and of convolutions' */
};

struct ew_cuda {
    struct ew_backend base;
    const struct ew_cuda_api *cu;
    struct ew_cuda_queue *q;
    struct ew_cuda_beside *beside;
    int arch;                    /* that kernels were compiled for: 90 */
    int math;                    /* enum ew_cuda_math */
    int type;                    /* enum ew_cuda_type: of activations */
    int node;                    /* of the command that is being started, for seeds */
    struct ew_cuda_rates *rates; /* on the device: what a run is given */
    struct ew_cuda_rates last_rates;
    bool has_rates;              /* last_rates are there */
    struct ew_cuda_scale *scale; /* on the device; NULL: losses are not scaled */
    struct ew_cuda_copies *copies;
    const struct ew_cuda_update *update; /* of all parameters, that is being started; NULL: by
                                          * another command */
};

static inline const struct ew_cuda *ew_cuda(const struct ew_backend *be)
{
    return (const struct ew_cuda *)be;
}

/* Starts a launcher of the module for a call. */
#define EW_CUDA_LAUNCH(c, name, args)                                                              \
    EW_TRY(ew_cuda_check(ew_cuda((c)->be)->cu,                                                     \
                         ew_cuda((c)->be)->cu->name(ew_cuda((c)->be)->q, args), #name))

/* Families of kernels: up to EW_OFFERS, best first; they return how many. */
typedef int ew_cuda_offer(const struct ew_kernel_query *query, struct ew_kernel *out);
ew_cuda_offer ew_cuda_offer_conv, ew_cuda_offer_dense, ew_cuda_offer_norm, ew_cuda_offer_set_norm,
    ew_cuda_offer_pool, ew_cuda_offer_act, ew_cuda_offer_pair, ew_cuda_offer_move,
    ew_cuda_offer_view, ew_cuda_offer_loss, ew_cuda_offer_softmax, ew_cuda_offer_dropout,
    ew_cuda_offer_slice, ew_cuda_offer_pad, ew_cuda_offer_expand, ew_cuda_offer_resize,
    ew_cuda_offer_reduce, ew_cuda_offer_qconv, ew_cuda_offer_qgemm, ew_cuda_offer_qbinary,
    ew_cuda_offer_qpool, ew_cuda_offer_quantize, ew_cuda_offer_fake_quant, ew_cuda_offer_lookup;

/* All kernels for a query, and for what plans need beside operators. */
int ew_cuda_offer_all(const struct ew_kernel_query *query, struct ew_kernel *out);
bool ew_cuda_task(const struct ew_backend *be, enum ew_task task, const struct ew_optimizer *o,
                  struct ew_kernel *out);

/* Measures a large product and a large copy. */
ew_err ew_cuda_peaks(struct ew_backend *be, struct ew_peaks *out);

/* ---- For kernels' files ---- */

/* The type that activations of the call have; -1 where they differ, or it is neither float32 nor
 * the device's.  Inputs of `weights` must be float32, those of `others` may be anything. */
int ew_cuda_query_type(const struct ew_kernel_query *query, unsigned weights, unsigned others);

static inline int ew_cuda_storage(const struct ew_tensor *t)
{
    return t->dtype == EW_F16 ? EW_CUDA_F16 : t->dtype == EW_BF16 ? EW_CUDA_BF16 : EW_CUDA_F32;
}

/* cuda_weights.c.  An input of a call that holds weights, in the type of in[0]; NULL: there is
 * none. */
const void *ew_cuda_weight(const struct ew_call *c, int i);
/* Has a forward kernel keep such a copy of its in[1] and in[2], where they are of another type. */
void ew_cuda_pack_weights(const struct ew_call *c, struct ew_kernel *k);
/* The copy of a parameter; NULL: there is none. */
void *ew_cuda_copy_of(const struct ew_cuda *be, const void *parameter);
/* Before a block of memory is given back. */
void ew_cuda_forget_copies(struct ew_cuda_copies *l, const char *data, size_t bytes);

/* Work beside the queue within one command: fork, start some on the side queue and some on the
 * other, join.  The side queue is opened before any run, by kernels' `prepare`. */
ew_err ew_cuda_open_side(const struct ew_call *c);
/* The side queue where the call has both gradients to compute, else the queue itself: then fork and
 * join do nothing. */
struct ew_cuda_queue *ew_cuda_side(const struct ew_call *c);
ew_err ew_cuda_fork(const struct ew_cuda *be, struct ew_cuda_queue *side);
ew_err ew_cuda_join(const struct ew_cuda *be, struct ew_cuda_queue *side);

/* cuda_update.c: updates of parameters that stand behind one another become one launch. */
struct ew_cuda_updates;
ew_err ew_cuda_updates_new(struct ew_cuda *be, const struct ew_command *commands, int n,
                           struct ew_cuda_updates **out);
void ew_cuda_updates_free(struct ew_cuda *be, struct ew_cuda_updates *u); /* NULL is fine */
/* The launch that command k begins; NULL: none. */
const struct ew_cuda_update *ew_cuda_update_at(const struct ew_cuda_updates *u, int k);
ew_err ew_cuda_run_update(const struct ew_call *c);

/* cuda_rounding.c: weights that are trained rounded (EW_TASK_ROUND, EW_TASK_RESTORE). */
ew_err ew_cuda_run_round(const struct ew_call *c);
ew_err ew_cuda_run_restore(const struct ew_call *c);

/* cuda_net.c: a program that is a chain of small layers, up to its updates, is two launches. */
struct ew_cuda_whole;
ew_err ew_cuda_whole_new(struct ew_cuda *be, const struct ew_command *commands, int n,
                         struct ew_cuda_whole **out);                 /* *out NULL: it is none */
void ew_cuda_whole_free(struct ew_cuda *be, struct ew_cuda_whole *w); /* NULL is fine */
ew_err ew_cuda_whole_start(const struct ew_cuda *be, const struct ew_cuda_whole *w);
/* The first command that it does not do; NULL: the first of all. */
int ew_cuda_whole_end(const struct ew_cuda_whole *w);

/* What calls say, as launchers take it. */
struct ew_window;
/* False: larger than their numbers. */
bool ew_cuda_conv_window(const struct ew_call *c, struct ew_cuda_window *g);
ew_err ew_cuda_pool_window(const struct ew_call *c, struct ew_window *w);
struct ew_cuda_loss ew_cuda_loss_of(const struct ew_call *c);
/* Of gemm and matmul: row-major [m, k] x [k, n], either stored transposed. */
struct ew_cuda_dense {
    int64_t m, n, k;
    int trans_a, trans_b;
    float alpha, beta;
};
bool ew_cuda_dense_of(const struct ew_call *c, struct ew_cuda_dense *d);
/* A bias that is a row of the output, taken as it is. */
bool ew_cuda_bias_fits(const struct ew_call *c, const struct ew_cuda_dense *d);
/* The kernel of EW_TASK_SEED. */
ew_err ew_cuda_run_seed(const struct ew_call *c);

/* True where din[i] is to be added to. */
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

/* The dimensions of a result with those joined that both operands walk in one; false: too many. */
struct ew_cuda_pair {
    int64_t dim[EW_CUDA_DIMS], stride[2][EW_CUDA_DIMS];
};
bool ew_cuda_pair_of(const struct ew_shape *a, const struct ew_shape *b, const struct ew_shape *s,
                     struct ew_cuda_pair *out);

/* Makes two spatial dimensions of three where windows do not reach over the first: its positions
 * are images of a batch; or over it alone: the other two are one row.  False where they do both. */
bool ew_cuda_flatten(struct ew_window *w);

/* One offer. */
static inline int ew_cuda_one(struct ew_kernel *out, const char *name,
                              ew_err (*run)(const struct ew_call *c), size_t scratch)
{
    *out = (struct ew_kernel){.name = name, .run = run, .scratch = scratch, .fresh = true};
    return 1;
}

/* to (+)= the sum of from [rows, cols] over its rows, times `scale`. */
ew_err ew_cuda_sum_rows(const struct ew_call *c, const struct ew_cuda_reduce *r);

extern const struct ew_backend_type ew_cuda_type;

#endif
