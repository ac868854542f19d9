/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: the flat list of steps that runs a graph once, over one planned block of memory.
 *
 *   compile:  graph -> steps (forward, then backward when training)
 *                   -> buffers with a first and a last step -> offsets in one arena -> pointers
 *   run:      the steps in order; nothing is allocated, locked or looked up
 *
 * A plan borrows its graph, which must stay unchanged and outlive it.  One thread at a time. */
#ifndef EW_PLAN_PLAN_H
#define EW_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "backend/tune.h"
#include "graph/graph.h"
#include "op/optimizer.h"
#include "op/quant_weights.h"

enum ew_plan_mode {
    EW_PLAN_INFER,
    EW_PLAN_TRAIN /* forward, backward from the loss (the graph's first output), update */
};

/* What the caller supplies instead of the plan: kernel choices and packed weights of an engine
 * file, a backend, memory.  Every field is optional. */
struct ew_plan_given {
    const char *const *kernels; /* by node: the kernel to use if it is offered; NULL: by rules */
    const struct ew_plan_packed {
        int node;
        const char *kernel;
        size_t bytes;
        const void *data; /* the weights as this kernel of this node packs them */
        int next;         /* next entry of the node, or -1 */
    } * packed;
    const int *packed_of; /* by node: first entry of `packed`, or -1; NULL: no packed weights */
    /* By value: the data is only a placeholder (a compact engine), and compiling fails if a kernel
     * would read it. */
    const bool *absent;
    struct ew_backend *backend; /* a backend that several plans use in turn; it outlives them */
    struct ew_memory *block;    /* memory of that backend for the arena of the steps; used if large
                                 * enough; outlives the plan */
    bool block_alone; /* no other plan uses the block while this one lives: packed weights are put
                       * there too if they fit */
};

struct ew_plan_opts {
    enum ew_plan_mode mode;
    bool dry; /* plan only: sizes and kernels are known, no memory is allocated, the plan cannot
               * run */
    uint64_t seed; /* of stochastic operators */
    bool optimize; /* inference, not dry: run the passes of compress/ over a copy of the graph, with
                    * its present weights */
    bool consume;  /* with optimize: free weights of the caller's graph that the plan has folded or
                    * packed; the graph cannot be used for another plan then */
    bool update;   /* training: update the parameters at the end */
    size_t bucket_bytes; /* with update: gradients are delivered in buckets of about this many bytes
                          * before parameters are updated (ew_plan_run_to_stop), for data-parallel
                          * training; 0: each parameter is updated as soon as its gradient is
                          * complete */
    bool stop_at_norms;  /* with bucket_bytes: also stop where a batch norm has its statistics, and
                          * its backward its sums (EW_STOP_STATISTICS, EW_STOP_SUMS), for
                          * synchronised batch norm */
    struct ew_optimizer optimizer;
    /* Training: weights and biases that steps read rounded to integers (straight-through
     * estimator): updates go to the float32 values, which are in place between runs.  Borrowed
     * during compile. */
    const struct ew_fake_quant_weight *rounded;
    int n_rounded;
    struct ew_backend_opts backend;
    struct ew_tuner *tuner; /* chooses kernels by measurement (backend/tune.h); NULL: by rules */
    const struct ew_plan_given *given; /* borrowed during compile */
    size_t memory_limit; /* bytes of weights and planned memory; 0: no limit.  Not with a tuner in
                          * inference, nor with given kernels */
    int micro_batches; /* training, with a limit: number of micro-batches, which affects batch norm
                        * and the order of summation; 0: as few as fit */
    size_t lend_bytes; /* minimum size of the block, for a plan that it is lent to */
};

struct ew_plan_stats {
    int steps;
    size_t arena_bytes;    /* inputs, activations, gradients, scratch, optimiser state, packed
                            * weights */
    size_t unshared_bytes; /* the same without buffer sharing, for comparison */
    size_t packed_bytes;   /* repacked weights, part of arena_bytes unless given */
    size_t block_bytes;  /* buffers with lifetimes, part of arena_bytes: see ew_plan_given.block */
    size_t weight_bytes; /* parameters, state and constants of the graph, and what passes have
                          * folded */
    size_t grad_bytes;   /* parameter gradients, part of arena_bytes; the largest one if each is
                          * consumed by its update */
    size_t state_bytes;  /* optimiser state, part of arena_bytes */
    size_t resident_bytes; /* copies of weights on the device, part of arena_bytes */
    int host_steps;        /* steps that run on the host, since the device has no kernel */
    size_t copied_bytes;   /* transfers for host steps, per run */
    /* How the memory limit was met, cheapest measure first. */
    bool recompute_cheap;
    int segments;                  /* checkpointing segments; 1: no checkpointing */
    int micro_batches;             /* micro-batches */
    bool split_changes_statistics; /* micro_batches > 1 and the graph has batch norm */
    double recompute_share;        /* share of the forward FLOPs that is recomputed, 0 to 1 */
    int swapped;                   /* layers whose kernel was chosen for smaller packed weights */
    double slower; /* their estimated extra cycles, as a share of those of all layers with packed
                    * weights */
};

struct ew_plan;

/* Compiles a plan.  With a memory limit the cheapest of these that fits is used.  Training: no
 * change; recomputing cheap operators; checkpointing with recomputed segments; micro-batches.
 * Inference: kernels that pack fewer bytes, in order of cost per byte saved.  EW_ERR_LIMIT, with
 * the missing bytes in the message, if none fits. */
ew_err ew_plan_compile(struct ew_graph *g, const struct ew_plan_opts *o, struct ew_plan **out);
void ew_plan_free(struct ew_plan *p); /* NULL is fine */

/* The passes of inference plans and engines for a device, over a copy of the caller's graph. */
ew_err ew_plan_passes(const struct ew_device_passes *device, struct ew_graph *g);

/* What this plan can lend to another that runs between two of its runs: its device and the block of
 * its steps, which then holds only the outputs of the last run. */
struct ew_plan_given ew_plan_lend(const struct ew_plan *p);

/* Copies the inputs to the device, runs all steps, and waits for the outputs.  Inputs keep their
 * contents.  With micro-batches the loss is the mean over them, and other outputs are those of the
 * last. */
ew_err ew_plan_run(struct ew_plan *p);
/* The same asynchronously, if the device can.  Start enqueues the run and returns; the inputs must
 * not change until the run's wait.  At most ew_plan_depth runs may be in flight; each wait is for
 * the oldest, whose outputs are visible until the next run or wait.  *device_ns, if not NULL, gets
 * the device's time for it, without copies of inputs that overlapped.  With depth 1, start may do
 * the whole run. */
int ew_plan_depth(const struct ew_plan *p);
ew_err ew_plan_start(struct ew_plan *p);
ew_err ew_plan_wait(struct ew_plan *p, int64_t *device_ns);
/* Plans with buckets (bucket_bytes) run in pieces, between which ranks exchange gradients and
 * statistics. */
enum ew_stop_kind {
    EW_STOP_END,        /* all buckets were delivered; ew_plan_run_updates ends the run */
    EW_STOP_BUCKET,     /* the gradients of the next bucket are complete */
    EW_STOP_PAUSE,      /* another backward step is done: a chance to progress communication */
    EW_STOP_STATISTICS, /* batch norm, forward: norm->aux is mean and 1 / std, [2][C] */
    EW_STOP_SUMS /* batch norm, backward: norm->aux + [2][C] holds the two sums that din[0] needs,
                  * as means over the rows of norm->in[0], [2][C] */
};
struct ew_stop {
    enum ew_stop_kind kind;
    int bucket;                 /* from 0, in order */
    const struct ew_call *norm; /* STATISTICS, SUMS: the batch norm; float32 in host memory */
};
/* Runs to the next stop. */
ew_err ew_plan_run_to_stop(struct ew_plan *p, struct ew_stop *out);
ew_err ew_plan_run_updates(struct ew_plan *p);
/* Number of buckets, and the parameters of one. */
int ew_plan_buckets(const struct ew_plan *p);
const int *ew_plan_bucket(const struct ew_plan *p, int bucket, int *n);

/* Runs the steps alone, on the inputs of the last run, leaving the outputs on the device: for times
 * without transfers.  Not with micro-batches. */
ew_err ew_plan_run_steps(struct ew_plan *p);

/* Uploads what the host has changed between runs: weights of the graph, which are packed anew, and
 * optimiser state.  Weights that passes have folded stay as they are. */
ew_err ew_plan_refresh(struct ew_plan *p);
/* The opposite: downloads what runs have changed (parameters, running statistics, optimiser state)
 * into the graph and the tensors of ew_plan_state; to be called before others read them.  Does
 * nothing on devices that share the host's memory. */
ew_err ew_plan_pull(struct ew_plan *p);

/* Inputs (write before a run) and outputs (read after it) of the graph, in host memory. */
struct ew_tensor *ew_plan_input(struct ew_plan *p, int i);
const struct ew_tensor *ew_plan_output(const struct ew_plan *p, int i);
/* Makes an input use the caller's memory, which must be as large as the input. */
void ew_plan_bind_input(struct ew_plan *p, int i, void *data);
/* The gradient of a parameter after a training run, or when its bucket is complete.  NULL if there
 * is none, and in plans that update without buckets: there a gradient is consumed by its update and
 * its memory reused. */
const struct ew_tensor *ew_plan_grad(struct ew_plan *p, int value);
/* The optimiser's settings, which may change between runs (learning rate schedules). */
struct ew_optimizer *ew_plan_optimizer(struct ew_plan *p);
/* Optimiser state i of a parameter, from 0; NULL if there is none (for checkpoints).  Valid as of
 * the last ew_plan_pull; changes count from ew_plan_refresh on.  To change it after a run, ask for
 * it again first. */
struct ew_tensor *ew_plan_state(struct ew_plan *p, int value, int i);
/* Sets the step that the random numbers of stochastic operators depend on, for the next run. */
void ew_plan_set_step(struct ew_plan *p, uint64_t step);

/* ---- Steps, for profiles ---- */

struct ew_step_info {
    const char *name; /* of the node, or of the value that is cleared, seeded or updated */
    const char *op;   /* NULL: no operator (clear, seed, update, round) */
    const char *act;  /* activation in the epilogue; NULL: none */
    const char *kernel;
    enum ew_phase phase;
    int node; /* of the graph that runs, or -1 */
    bool recompute;
    bool on_host;        /* host step */
    size_t copied_bytes; /* transfers of a host step */
    int64_t copy_ns; /* time of those transfers in the last timed run, part of the step's time */
    struct ew_shape out; /* forward: shape of the first output */
    double flops;        /* FLOPs; backward counts as twice the forward */
};

int ew_plan_step_count(const struct ew_plan *p);
/* The kernel of a node's forward step, and its packed weights (NULL, 0: none); NULL if the node has
 * no step. */
const char *ew_plan_node_kernel(struct ew_plan *p, int node, const void **packed, size_t *bytes);
/* True if the node's kernel reads input i only in packed form. */
bool ew_plan_node_packs(const struct ew_plan *p, int node, int i);
void ew_plan_step_info(const struct ew_plan *p, int step, struct ew_step_info *out);
/* The query by which a step's kernel was chosen; false for steps that no operator does. */
bool ew_plan_step_query(const struct ew_plan *p, int step, struct ew_kernel_query *out);
/* One run that measures every step, in nanoseconds.  Not with micro-batches. */
ew_err ew_plan_run_timed(struct ew_plan *p, int64_t *ns);
/* The device that the plan runs on. */
struct ew_backend *ew_plan_backend(const struct ew_plan *p);

void ew_plan_stats(const struct ew_plan *p, struct ew_plan_stats *out);

#endif
