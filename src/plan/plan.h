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

/* What was decided before, by an engine: every part is optional. */
struct ew_plan_given {
    const char *const
        *kernels; /* by node: the kernel to take where it is offered; NULL: by rules */
    const struct ew_plan_packed {
        int node;
        const char *kernel;
        size_t bytes;
        const void *data; /* what this kernel of this node packs: it is used, not made again */
        int next;         /* another entry of the node, or -1 */
    } * packed;
    const int *packed_of; /* by node: an entry of `packed`, or -1; NULL: there are none */
    /* By value: the data is no more than a place holder.  Compiling fails where a kernel would read
     * it. */
    const bool *absent;
    struct ew_backend *backend; /* threads that several plans take turns with; it outlives them */
    struct ew_memory *block; /* of that backend, for the steps; used where it is large enough, and
                              * outlives the plan */
    bool block_alone; /* nobody else uses the block as long as the plan lives: packed weights go
                       * there too where there is room */
};

struct ew_plan_opts {
    enum ew_plan_mode mode;
    bool dry;      /* plan only: sizes are known, no memory is taken, the plan cannot run */
    uint64_t seed; /* of stochastic operators */
    bool optimize; /* inference: passes over a copy first, with the weights as they are now */
    bool consume;  /* with optimize: release the graph's weights that the plan has copies of; the
                    * graph is of no use for another plan then */
    bool update;   /* training: end with the optimiser's step */
    size_t bucket_bytes; /* with update: gradients are handed out in buckets of about so many bytes
                          * before any parameter is updated (ew_plan_run_to_stop); 0: each
                          * parameter is updated as soon as its gradient is complete */
    bool stop_at_norms;  /* with bucket_bytes: runs stop too where a batch norm has taken its
                          * statistics, and its backward their sums (EW_STOP_STATISTICS) */
    struct ew_optimizer optimizer;
    /* Training: weights and biases that steps see rounded to integers; what a step changes them by
     * goes to the float32 ones, which are there between runs.  Borrowed during compile. */
    const struct ew_rounded_value *rounded;
    int n_rounded;
    struct ew_backend_opts backend;
    struct ew_tuner *tuner;            /* kernels by measurement (backend/tune.h); NULL: by rules */
    const struct ew_plan_given *given; /* borrowed during compile */
    size_t memory_limit; /* bytes for weights and all that is planned; 0: none.  Not with a tuner in
                          * inference, nor where kernels are given */
    int parts;         /* training, with a limit: run the batch in just so many, which decides what
                        * batch norms see and the order of sums; 0: in as few as fit */
    size_t lend_bytes; /* the block has so many at least, for a plan that it is lent to */
};

struct ew_plan_stats {
    int steps;
    size_t arena_bytes;    /* inputs, activations, gradients, scratch, optimiser, kernels' own */
    size_t unshared_bytes; /* the same buffers side by side, for comparison */
    size_t packed_bytes;   /* kernels' own copies of weights, part of arena_bytes unless given */
    size_t block_bytes;    /* what lives by steps, part of arena_bytes: see ew_plan_given.block */
    size_t weight_bytes;   /* parameters, state and constants of the graph, and folded copies */
    size_t grad_bytes;     /* parameter gradients, part of arena_bytes; of those that are used up
                            * one by one, the largest */
    size_t state_bytes;    /* optimiser's, part of arena_bytes */
    size_t resident_bytes; /* weights' copies on the device, part of arena_bytes */
    int host_steps;        /* that the device has no kernel for */
    size_t copied_bytes;   /* to and from the host for those, each run */
    /* What was done to meet the limit, mildest first. */
    bool recompute_cheap;
    int segments;                  /* 1: none */
    int parts;                     /* of the batch; 1: whole */
    bool split_changes_statistics; /* parts > 1 and the graph has batch norm */
    double recompute_share;        /* arithmetic of forward that is done twice, 0 to 1 */
    int swapped;                   /* layers whose kernel was chosen for what it packs */
    double slower; /* what that costs, as a share of the estimated cycles of layers with packed
                    * weights */
};

struct ew_plan;

/* With a memory limit the mildest way that fits is taken: as it is; in training cheap operators
 * computed again, segments computed again, the batch in parts; in inference kernels that pack
 * fewer bytes, those first that cost least.  Fails with EW_ERR_LIMIT, and says by how much,
 * where none fits. */
ew_err ew_plan_compile(struct ew_graph *g, const struct ew_plan_opts *o, struct ew_plan **out);
void ew_plan_free(struct ew_plan *p); /* NULL is fine */

/* What a plan may be given that lives only between two runs of this one: its device, and the block
 * of its steps, which has nothing in it then but the last run's outputs. */
struct ew_plan_given ew_plan_lend(const struct ew_plan *p);

/* Hands the inputs to the device, runs all steps, and waits for the outputs.  Inputs keep their
 * contents.  Where the batch is split, the loss is the mean over its parts, and other outputs hold
 * the last part. */
ew_err ew_plan_run(struct ew_plan *p);
/* The same without waiting, where the device can: start hands over the inputs and returns, and they
 * must stay as they are until the run's wait.  Up to ew_plan_depth runs may be under way; each wait
 * is for the oldest of them, whose outputs then show until the next run or wait.  *device_ns, if
 * not NULL, gets the device's time for it, without copies of inputs that were made ahead.
 * Where the depth is 1, a device may do all of it within start. */
int ew_plan_depth(const struct ew_plan *p);
ew_err ew_plan_start(struct ew_plan *p);
ew_err ew_plan_wait(struct ew_plan *p, int64_t *device_ns);
/* Plans with buckets (bucket_bytes) run in pieces, so that what others have a part in can be
 * changed before it is used. */
enum ew_stop_kind {
    EW_STOP_END,        /* all gradients are complete, and ew_plan_run_updates ends the run */
    EW_STOP_BUCKET,     /* the next bucket's are */
    EW_STOP_PAUSE,      /* a step of backward is done since: time to look after what is under way */
    EW_STOP_STATISTICS, /* a batch norm has mean and 1 / std of its channels: norm->aux, [2][C] */
    EW_STOP_SUMS        /* its backward has the sums that din[0] takes, as means over the rows of
                         * norm->in[0]: norm->aux + [2][C], [2][C] */
};
struct ew_stop {
    enum ew_stop_kind kind;
    int bucket;                 /* from 0 on, in order */
    const struct ew_call *norm; /* of a batch norm, float32 in the host's memory */
};
/* Runs until the next of them. */
ew_err ew_plan_run_to_stop(struct ew_plan *p, struct ew_stop *out);
ew_err ew_plan_run_updates(struct ew_plan *p);
/* How many there are, and the parameters of one. */
int ew_plan_buckets(const struct ew_plan *p);
const int *ew_plan_bucket(const struct ew_plan *p, int bucket, int *n);

/* The steps alone, on the inputs that the device has from the last run; outputs stay there.  For
 * times without copies; the batch must not be split. */
ew_err ew_plan_run_steps(struct ew_plan *p);

/* Takes over what the host has changed outside of runs: the graph's weights, which are packed anew,
 * and the optimiser's tensors.  What passes have folded stays as it is. */
ew_err ew_plan_refresh(struct ew_plan *p);
/* The opposite: what runs have changed (parameters, running statistics, the optimiser's tensors)
 * comes back into the graph and the tensors of ew_plan_state.  Before anybody but the plan reads
 * them; nothing has to be done on devices that share the host's memory. */
ew_err ew_plan_pull(struct ew_plan *p);

/* The tensors of the graph's inputs (write before a run) and outputs (read after it), with data of
 * the host. */
struct ew_tensor *ew_plan_input(struct ew_plan *p, int i);
const struct ew_tensor *ew_plan_output(const struct ew_plan *p, int i);
/* Uses the caller's memory for an input from now on; it must be as large as the input. */
void ew_plan_bind_input(struct ew_plan *p, int i, void *data);
/* The gradient of a parameter after a training run, or when its bucket is complete; NULL where
 * there is none, and in other plans that update: there each gradient goes into its parameter as
 * soon as it is complete, and its memory is used again. */
const struct ew_tensor *ew_plan_grad(struct ew_plan *p, int value);
/* The optimiser's settings, to be changed between runs (learning rate schedules). */
struct ew_optimizer *ew_plan_optimizer(struct ew_plan *p);
/* The optimiser's tensors of a parameter (checkpoints): i from 0, NULL where there is none.  They
 * are as of the last ew_plan_pull, and what is written to them counts from ew_plan_refresh on.  Who
 * writes to them after a run has to ask for them again first. */
struct ew_tensor *ew_plan_state(struct ew_plan *p, int value, int i);
/* Fixes what stochastic operators draw in the next run. */
void ew_plan_set_step(struct ew_plan *p, uint64_t step);

/* ---- Steps, for profiles ---- */

struct ew_step_info {
    const char *name; /* of the node, or of the value that is cleared or updated */
    const char *op;   /* NULL: a step of the plan's own */
    const char *act;  /* the activation that is done in the same step; NULL: none */
    const char *kernel;
    enum ew_phase phase;
    int node; /* of the graph that runs, or -1 */
    bool recompute;
    bool on_host;        /* the device has no kernel for it */
    size_t copied_bytes; /* between host and device for that */
    int64_t copy_ns;     /* of the last run that was timed, part of the step's time */
    struct ew_shape out; /* forward: of the first output */
    double flops;        /* arithmetic; backward counts twice its forward */
};

int ew_plan_step_count(const struct ew_plan *p);
/* The kernel that a node's forward step has, and what it has packed (NULL, 0: nothing); NULL where
 * the node has no step. */
const char *ew_plan_node_kernel(struct ew_plan *p, int node, const void **packed, size_t *bytes);
/* True where the node's step knows its input i only by what is packed of it. */
bool ew_plan_node_packs(const struct ew_plan *p, int node, int i);
void ew_plan_step_info(const struct ew_plan *p, int step, struct ew_step_info *out);
/* What a step's kernel was asked for; false for steps of the plan's own and updates. */
bool ew_plan_step_query(const struct ew_plan *p, int step, struct ew_kernel_query *out);
/* One run with the duration of every step in nanoseconds; the batch must not be split. */
ew_err ew_plan_run_timed(struct ew_plan *p, int64_t *ns);
/* The device that it runs on. */
struct ew_backend *ew_plan_backend(const struct ew_plan *p);

void ew_plan_stats(const struct ew_plan *p, struct ew_plan_stats *out);

#endif
