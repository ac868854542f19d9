/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend hands to the plan: for a node and a phase, the functions that can run it. */
#ifndef EW_BACKEND_BACKEND_H
#define EW_BACKEND_BACKEND_H

#include "base/pool.h"
#include "graph/op.h"

enum ew_phase { EW_PHASE_FORWARD, EW_PHASE_BACKWARD, EW_PHASE_UPDATE };

struct ew_kernel {
    const char *name; /* shown in profiles: "reference", "conv gemm" */
    ew_err (*run)(const struct ew_call *c);
    size_t scratch; /* bytes, contents undefined at each run */
    size_t state;   /* bytes in c->state, kept with the step */
    size_t stats;  /* bytes of scratch more with which it heeds c->behind forward; 0: it does not */
    size_t packed; /* bytes in c->packed: its own copy of weights, see `pack` */
    unsigned packs; /* bit i: `run` knows in[i] only by what is packed of it */
    bool fresh;     /* backward: it heeds c->fresh, so gradients need not be cleared before it */
    bool in_place;  /* backward: din[0] may be dout[0] where it is fresh */
    bool updates;   /* backward: it heeds c->update */
    bool steps;     /* it heeds c->out_step */
    bool masks;     /* backward: it heeds c->mask */
    bool masked;    /* backward: it heeds c->masked */
    bool norms;     /* it heeds c->norm; a batch norm: it stores nothing where out[0] has no data */
    bool lates; /* backward: it heeds c->behind; a batch norm: and stores nothing where din[0] has
                 * no data */
    bool gates; /* backward: it heeds c->gated, or c->behind's */
    bool sums;  /* backward: it leaves the sums of c->norm's backward in that one's aux; a batch
                 * norm, both ways: it heeds c->summed */
    /* Fills c->state; called once, when weights and memory are there.  NULL: nothing to prepare. */
    ew_err (*prepare)(const struct ew_call *c);
    /* Fills all of c->packed, after prepare, and again when weights have changed outside of
     * training.  Runs only read it: plans share it, and engine files hold it.  So it has no
     * pointers, and it follows from weights, attributes and instruction set; at another batch the
     * kernel of this name and size packs the same bytes. */
    ew_err (*pack)(const struct ew_call *c);
};

struct ew_kernels;

struct ew_backend {
    struct ew_pool *pool;         /* NULL: the caller alone */
    const struct ew_kernels *isa; /* NULL: references only */
};

struct ew_backend_opts {
    int threads;    /* 0: as many as there are CPUs */
    bool reference; /* references only: slow, obvious */
};

ew_err ew_backend_open(const struct ew_backend_opts *o, struct ew_backend **out);
void ew_backend_close(struct ew_backend *be); /* NULL is fine */

#define EW_OFFERS 6

/* What a kernel is wanted for. */
struct ew_kernel_query {
    const struct ew_backend *be;
    const struct ew_op *op;
    enum ew_phase phase;
    const struct ew_call *c; /* activations have shapes but no memory yet */
};

/* The kernels that can do it, the one that rules prefer first; the operator's reference is the
 * last. Fails with EW_ERR_UNSUPPORTED where there is none (backward of an operator that has none).
 */
ew_err ew_backend_offer(const struct ew_kernel_query *query, struct ew_kernel out[EW_OFFERS],
                        int *n);

/* The kernel of a parameter's update (op/optimizer.h says what its call is). */
struct ew_optimizer;
struct ew_kernel ew_backend_update(const struct ew_backend *be, const struct ew_optimizer *o);

/* A row: fast kernels for a few operators.  `offer` writes up to EW_OFFERS - 1 kernels, best first,
 * and returns how many; 0 where none fits. */
struct ew_kernel_family {
    const char *const *ops; /* NULL-terminated */
    int (*offer)(const struct ew_kernel_query *query, struct ew_kernel *out);
};

#define EW_FAMILY_OPS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
