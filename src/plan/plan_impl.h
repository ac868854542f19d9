/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of a plan and the interface between the files of this folder (README.md). */
#ifndef EW_PLAN_IMPL_H
#define EW_PLAN_IMPL_H

#include "backend/group.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/strategy.h"

/* Kinds of micro-batches, which differ in the steps that run: gradients are cleared in
 * the first, parameters updated in the last. */
enum ew_micro_batch {
    EW_MICRO_BATCH_FIRST,
    EW_MICRO_BATCH_MIDDLE,
    EW_MICRO_BATCH_LAST,
    EW_MICRO_BATCH_KINDS
};
#define EW_EVERY_MICRO_BATCH ((1u << EW_MICRO_BATCH_KINDS) - 1)

/* The blocks of a plan's memory, on the device or on the host. */
enum ew_region {
    EW_REGION_STEPS,     /* the arena: buffers, which have lifetimes */
    EW_REGION_PACKED,    /* repacked weights */
    EW_REGION_OPTIMIZER, /* optimiser state, persistent */
    EW_REGION_WEIGHTS,   /* copies of the graph's weights, if the device cannot read host memory */
    EW_REGION_STATES,    /* kernels' states, persistent; this and what follows is host memory */
    EW_REGION_STAGING,   /* copies for host steps, which share it */
    EW_REGION_HOST_PACKED, /* repacked weights of host steps */
    EW_REGIONS
};

struct ew_block {
    size_t bytes; /* grows during compilation */
    struct ew_memory *memory;
    bool given; /* owned by the caller */
};

/* A transfer of a host step between the device and the staging block. */
struct ew_copy {
    const struct ew_slot *slot;
    void **data;    /* the pointer in the host's call */
    size_t host_at; /* in EW_REGION_STAGING */
    bool in, out;   /* copied to the host before the step, and back after it */
};

/* A step that the device has no kernel for: it runs on the host, on copies (host_step.c). */
struct ew_host_step {
    struct ew_call call; /* the step's call, on host memory */
    struct ew_copy *copies;
    int n_copies;
    size_t scratch_at, bytes; /* in EW_REGION_STAGING */
    int64_t copy_ns;          /* of the last timed run */
};

struct ew_step {
    struct ew_kernel kernel; /* run NULL: no-op (a view, a concatenation in place) */
    struct ew_call call;
    bool weights_released; /* the weights that it packed were freed: it cannot pack again */
    int node;              /* of the graph, or -1 */
    enum ew_phase phase;
    unsigned micro_batches;     /* bit i: runs in micro-batches of kind i (enum ew_micro_batch) */
    int scratch;                /* buffer, or -1 */
    size_t state_at, packed_at; /* offsets of the kernel's memory in STATES and PACKED */
    int shared;                 /* buffer of the fused group, or -1 */
    struct ew_host_step *host;  /* NULL: runs on the device */
    const void *given;          /* packed weights from the caller; NULL: the plan packs */
    enum ew_stop_kind stop; /* where a run in pieces stops after this step; EW_STOP_END: nowhere */
    int buckets; /* number of gradient buckets complete after it, if it completes one; else 0 */
};

/* A tensor of the plan with its lifetime. */
struct ew_slot {
    struct ew_tensor t; /* data: host memory if known at compile time; after binding, the device's
                         * address */
    int first, last;    /* lifetime, in steps; first -1: unused */
    bool no_storage;    /* never materialised: a fused step that reads it computes it */
    enum ew_region region;
    int buffer; /* in EW_REGION_STEPS; -1: the slot has its own data or is unused */
    size_t at;  /* offset in the buffer (an input of a concatenation), or in the region's block */
};

/* Consecutive device steps, loaded as one program, or one host step. */
struct ew_segment {
    struct ew_program *program;
    struct ew_host_step *host;
    int first, n; /* of ew_run_list.steps */
};

/* The segments of a run, and its steps. */
struct ew_run_list {
    struct ew_segment *segments;
    int n, cap;
    int *steps;
    int n_steps;
};

/* Parameters whose gradients are delivered together. */
struct ew_bucket {
    const int *values;
    int n;
    int step; /* its gradients are complete before this step */
};

/* Asynchronous runs. */
struct ew_in_flight {
    int n;      /* in flight */
    int next;   /* output set of the next run */
    int shown;  /* output set that ew_plan_output returns */
    int64_t ns; /* duration of a run done within its start */
};

/* State of a run that stops for other ranks (data_parallel/). */
struct ew_stop_state {
    int *complete; /* by value: number of steps after which its gradient is complete */
    struct ew_bucket *buckets;
    int n;
    bool begun;
    int segment, handed; /* next segment; buckets delivered */
    double loss;         /* sum over the micro-batches before the last */
};

/* What the applied groups mean for a node's backward. */
struct ew_fused_backward {
    unsigned unread; /* saved values that its step does not read (enum ew_op_saves) */
    bool skipped;    /* fused into other steps entirely: it has no step */
    bool elsewhere;  /* also fused into another node's backward */
};

/* A node's step in a fused group; entries of a node are linked. */
struct ew_member {
    int group, step;
    int next; /* of the same node, or -1 */
};

/* A node's call, and the slots that it reads.  ew_fused_call.call of calls that are fused into a
 * step points to the first member. */
struct ew_node_call {
    struct ew_call call;
    int node; /* -1: an update */
    struct ew_slot **slots;
    int n_slots;
};

struct ew_plan {
    struct ew_graph *source; /* the caller's */
    struct ew_graph *g; /* the graph that runs, at the batch of one micro-batch: the caller's, or a
                         * copy */
    struct ew_plan_opts opts;
    struct ew_backend *be;
    struct ew_backend *host; /* the CPU, for host steps; `be` itself if that shares the host's
                              * memory */
    bool *on_host;           /* by node */
    struct ew_cost *costs;   /* by node, before ew_plan_narrow, since cost hooks expect the graph's
                              * types */
    struct ew_strategy strategy;
    struct ew_arena arena; /* of all lists */
    struct ew_slot *slots; /* all slots, n_values of each kind: */
    struct ew_slot *values, *grads;
    struct ew_slot *recompute;               /* values recomputed in backward */
    struct ew_slot *state[EW_UPDATE_STATES]; /* optimiser state, by parameter */
    struct ew_slot *kept, *rounded; /* float32 copy, and rounded copy, of weights that steps read
                                     * rounded */
    struct ew_slot *aux;            /* by node: ew_call.aux */
    int n_slots;
    struct ew_tensor *batch_inputs; /* the caller's inputs: whole batches */
    struct ew_step *steps;
    int n_steps, cap_steps;
    struct ew_buffer *buffers;
    int n_buffers, cap_buffers;
    int *node_step;              /* by node: its (first) forward step, or -1 */
    struct ew_value_uses *uses;  /* by value: its uses by needed nodes and graph outputs */
    bool *keep;                  /* by value: kept from forward to backward, not recomputed */
    bool *needs_grad;            /* by value */
    bool *needed;                /* by node: graph outputs depend on it, and it is not known */
    struct ew_group_list groups; /* found by the device */
    bool *applied;               /* by group */
    int *shared;                 /* by group: buffer shared by its steps, or -1 */
    struct ew_member *members;   /* all steps of all groups */
    int *member_of;              /* by node: its first member, or -1 */
    struct ew_fused_backward *backward; /* by node */
    int *concat_of; /* by value: node of the concatenation in whose output it is allocated, or -1 */
    size_t released; /* bytes of the caller's weights that were freed */
    struct ew_plan_moved {
        const void *data;
        size_t bytes;
    } * moved; /* weights moved from the caller's graph into the copy */
    int n_moved;
    bool backend_given;
    struct ew_block blocks[EW_REGIONS];
    void *host_io;             /* ew_backend_host_alloc: staging for inputs and outputs */
    struct ew_tensor *outputs; /* host copies; NULL: the device's outputs are in host memory */
    int output_sets;           /* double buffering: as many runs may be in flight */
    struct ew_in_flight in_flight;
    struct ew_tensor *host_tensors;                 /* host copies by slot, made on demand */
    struct ew_run_list lists[EW_MICRO_BATCH_KINDS]; /* without micro-batches only the last */
    struct ew_stop_state stops;
    struct ew_run_params params;
    uint64_t step_key; /* params.key of the first micro-batch */
};

/* Bit i of a mask of inputs (known_in, kernel.packs, ...). */
static inline bool ew_plan_bit(unsigned bits, int i)
{
    return i < 32 && (bits >> i & 1);
}

/* True if the device does not share the host's memory. */
static inline bool ew_plan_is_remote(const struct ew_plan *p)
{
    return p->host != p->be;
}

/* The call that is executed: the host's for a host step. */
static inline struct ew_call *ew_step_call(struct ew_step *s)
{
    return s->host ? &s->host->call : &s->call;
}

/* True if the step reads the caller's packed weights in place. */
static inline bool ew_plan_uses_given(const struct ew_plan *p, const struct ew_step *s)
{
    return s->given && s->call.be == p->host;
}

/* True if the slot has memory on the device. */
static inline bool ew_slot_has_place(const struct ew_slot *s)
{
    return s->region != EW_REGION_STEPS || s->buffer >= 0;
}

/* Reserves bytes at the end of a block; returns their offset. */
static inline size_t ew_plan_reserve(struct ew_plan *p, enum ew_region region, size_t bytes)
{
    const size_t at = p->blocks[region].bytes;
    p->blocks[region].bytes += ew_align_up(bytes);
    return at;
}

/* Reserves persistent memory of a slot. */
static inline void ew_plan_reserve_slot(struct ew_plan *p, enum ew_region region, struct ew_slot *s)
{
    s->region = region;
    s->at = ew_plan_reserve(p, region, ew_tensor_bytes(&s->t));
}

/* Offset of a slot in its region's block, once buffers are placed. */
static inline size_t ew_plan_offset(const struct ew_plan *p, const struct ew_slot *s)
{
    return s->at + (s->buffer >= 0 ? p->buffers[s->buffer].offset : 0);
}

/* Addresses, once memory is allocated. */
static inline void *ew_plan_address(const struct ew_plan *p, enum ew_region region, size_t at)
{
    return ew_backend_address(p->blocks[region].memory, at);
}

static inline void *ew_plan_buffer_address(const struct ew_plan *p, int buffer)
{
    return ew_plan_address(p, EW_REGION_STEPS, p->buffers[buffer].offset);
}

/* Adds an empty step. */
ew_err ew_plan_step_new(struct ew_plan *p, struct ew_step **out);
/* plan_kernel.c: chooses the kernel of a node's call, by measurement or by rules, and gives the
 * call its roles in fused groups. */
ew_err ew_plan_choose_kernel(struct ew_plan *p, enum ew_phase phase, struct ew_node_call *c,
                             struct ew_kernel *out);
/* Adds a step with this call and kernel, and reserves the kernel's scratch, state and packed
 * weights. */
ew_err ew_plan_add_call(struct ew_plan *p, enum ew_phase phase, const struct ew_node_call *c,
                        const struct ew_kernel *k);
/* Extends the lifetimes of all slots that the call, and the calls fused into it, read to `step`. */
void ew_plan_touch_call(const struct ew_node_call *c, int step);
/* Adds a buffer with the lifetime [first, last]. */
ew_err ew_plan_buffer_new(struct ew_plan *p, size_t size, int first, int last, int *out);
/* plan_buffers.c: extends the slot's lifetime to `step`. */
void ew_plan_touch(struct ew_slot *s, int step);
static inline bool ew_plan_has_data(const struct ew_plan *p, int value)
{
    return ew_value_is_known(&p->g->values[value]);
}

/* Gives a slot a buffer of its own, unless it has memory or needs none. */
ew_err ew_plan_own_buffer(struct ew_plan *p, struct ew_slot *s);
/* Assigns buffers to all values and gradients, sharing them in place where possible; called when
 * all steps exist.  Steps that become views are turned into no-ops. */
ew_err ew_plan_make_buffers(struct ew_plan *p);
/* plan_bind.c: allocates the blocks and turns offsets into addresses. */
ew_err ew_plan_bind_memory(struct ew_plan *p);

/* The slot of a value at this point of the step list: the recomputed one, if any. */
static inline struct ew_slot *ew_plan_latest(const struct ew_plan *p, int value)
{
    return p->recompute[value].first >= 0 ? &p->recompute[value] : &p->values[value];
}

/* The call of a node's forward.  In EW_PHASE_BACKWARD its inputs are those that backward can read,
 * which may add recompute steps.  Outputs go to `outs`: p->values or p->recompute. */
ew_err ew_plan_forward_call(struct ew_plan *p, int node, enum ew_phase phase, struct ew_slot *outs,
                            struct ew_node_call *out);
/* Adds the forward step of a node; with `recompute` its outputs are p->recompute. */
ew_err ew_plan_add_forward(struct ew_plan *p, int node, bool recompute);
/* Fills p->needs_grad. */
void ew_plan_mark_gradients(struct ew_plan *p);
/* Adds the backward pass after the forward steps. */
ew_err ew_plan_add_backward(struct ew_plan *p);
/* The call of a node's backward; values that it does not read have no data.  May add recompute
 * steps. */
ew_err ew_plan_backward_call(struct ew_plan *p, int node, struct ew_node_call *out);

/* plan_task.c: adds a step that clears a gradient to zero, or seeds the loss's. */
ew_err ew_plan_write_gradient(struct ew_plan *p, enum ew_task task, int value);
/* Adds the optimiser step of a parameter whose gradient is complete. */
ew_err ew_plan_add_update(struct ew_plan *p, int value);
/* The same as a call, to be fused into a wgrad kernel: the gradient is not materialised. */
ew_err ew_plan_update_call(struct ew_plan *p, int value, struct ew_call *out);
/* Adds steps that round weights before all others (EW_TASK_ROUND), or restore them with the update
 * applied after all others (EW_TASK_RESTORE). */
ew_err ew_plan_add_rounding(struct ew_plan *p, enum ew_task task);
/* Buffers of p->kept and p->rounded, which live for the whole run. */
ew_err ew_plan_keep_rounded(struct ew_plan *p);

/* host_step.c: fills p->on_host; p->needed must be set. */
ew_err ew_plan_find_host_nodes(struct ew_plan *p);
/* True if the step runs on the host. */
bool ew_plan_step_on_host(const struct ew_plan *p, const struct ew_step *s);
/* Makes the calls and transfers of host steps; buffers must be assigned. */
ew_err ew_plan_make_host_steps(struct ew_plan *p);
/* Binds the pointers of a host step to the staging block. */
void ew_plan_bind_host_step(struct ew_plan *p, struct ew_step *s);

/* narrow.c: true if the device stores activations in another type (float16). */
bool ew_plan_is_narrow(const struct ew_plan *p);
/* On such devices, changes the types of activations in the plan's copy of the graph. */
ew_err ew_plan_narrow(struct ew_plan *p);
/* The type of a slot's contents on the host. */
enum ew_dtype ew_plan_host_type(const struct ew_plan *p, const struct ew_slot *s);
/* A tensor with the type that the host sees; tensors with data are unchanged. */
struct ew_tensor ew_plan_host_view(const struct ew_plan *p, const struct ew_tensor *t);
/* A copy of a call on such tensors, without data, to query the host for kernels and sizes. */
ew_err ew_plan_host_call(struct ew_plan *p, const struct ew_call *c, const struct ew_call **out);
/* Gives `to`, a copy of the call `c`, such tensors of its own. */
ew_err ew_plan_host_lists(struct ew_plan *p, const struct ew_call *c, struct ew_call *to);

/* True if runs change this weight of the graph. */
static inline bool ew_plan_changes_weight(const struct ew_plan *p, int value)
{
    const struct ew_value *v = &p->g->values[value];
    return p->opts.mode == EW_PLAN_TRAIN &&
           ((v->kind == EW_VALUE_PARAM && !v->frozen) || v->kind == EW_VALUE_STATE);
}

/* residency.c: reserves device memory for the weights that the device needs copies of. */
void ew_plan_place_weights(struct ew_plan *p);
/* Copies a slot from and to the device, converting types; and its size on the host. */
ew_err ew_plan_read_slot(const struct ew_plan *p, const struct ew_slot *s, void *to);
ew_err ew_plan_write_slot(const struct ew_plan *p, const struct ew_slot *s, const void *from);
size_t ew_plan_host_bytes(const struct ew_plan *p, const struct ew_slot *s);
/* Size of the steps' block: for this plan and those that borrow it. */
static inline size_t ew_plan_whole_block(const struct ew_plan *p)
{
    const size_t own = p->blocks[EW_REGION_STEPS].bytes;
    return own > p->opts.lend_bytes ? own : p->opts.lend_bytes;
}

/* Host tensors of inputs and outputs. */
ew_err ew_plan_make_views(struct ew_plan *p, const struct ew_graph *g);
/* Enqueue the copies of one micro-batch's inputs to the device, and of its outputs into an output
 * set. */
ew_err ew_plan_write_inputs(struct ew_plan *p, int micro_batch);
ew_err ew_plan_fetch_outputs(struct ew_plan *p, int set);

/* data_parallel/: assigns gradients to buckets, when all steps but updates exist. */
ew_err ew_plan_make_buckets(struct ew_plan *p);
/* Sets ew_step.stop and ew_step.buckets. */
void ew_plan_mark_stops(struct ew_plan *p);
/* True if the node takes two steps with a stop in between (synchronised batch norm). */
bool ew_plan_splits(const struct ew_plan *p, int node);
/* Splits the last step into these two. */
ew_err ew_plan_split(struct ew_plan *p, struct ew_step **second);

/* execute.c: loads the steps as programs of the device. */
ew_err ew_plan_load(struct ew_plan *p);
void ew_plan_unload(struct ew_plan *p);
/* True if the step runs in the last micro-batch, or in the only one. */
bool ew_plan_runs_last(const struct ew_plan *p, const struct ew_step *s);
/* The pieces of a run: all micro-batches but the last, and the inputs of the last; one segment of
 * the last, with the durations of its steps if `ns` is not NULL; and the outputs, with the mean
 * loss. */
ew_err ew_plan_run_first_micro_batches(struct ew_plan *p, double *loss);
ew_err ew_plan_run_segment(struct ew_plan *p, const struct ew_segment *s, int64_t *ns);
ew_err ew_plan_end_run(struct ew_plan *p, double loss);
/* plan_info.c: sets the random numbers of a micro-batch of the step. */
void ew_plan_set_micro_batch(struct ew_plan *p, int micro_batch);

/* pack_weights.c: moves large weights of a `consume`d graph into the plan's copy, so that passes
 * may change them in place. */
ew_err ew_plan_take_weights(struct ew_plan *p);
/* Frees weights of a `consume`d graph that passes have replaced. */
ew_err ew_plan_release_replaced(struct ew_plan *p);
/* Packs the weights of all steps, and frees those that nothing else reads. */
ew_err ew_plan_pack(struct ew_plan *p);

/* plan_group.c: asks the device for fused groups; p->needed must be set. */
ew_err ew_plan_find_groups(struct ew_plan *p);
/* Gives a call its roles in the applied groups. */
ew_err ew_plan_add_roles(struct ew_plan *p, int node, enum ew_phase phase, struct ew_call *c);
/* Applies the groups that start at this node and whose roles its kernel supports. */
ew_err ew_plan_apply_groups(struct ew_plan *p, int node, enum ew_phase phase, unsigned roles,
                            struct ew_call *c);
/* Assigns the last step the memory that it shares with others of its group. */
ew_err ew_plan_share_buffer(struct ew_plan *p);
/* The i-th call of another node that is fused into this one. */
static inline struct ew_node_call *ew_plan_fused_call(const struct ew_call *c, int i)
{
    return (struct ew_node_call *)(void *)c->fused[i].call; /* its first member */
}

/* Binds the memory of fused calls. */
void ew_plan_bind_groups(struct ew_plan *p, struct ew_step *s);
/* The value to materialise for a reader of `value`: itself, or the producer's input if `value` is
 * recomputed by its reader (no_storage). */
int ew_plan_source(const struct ew_plan *p, int value);
/* Length of the last axis. */
static inline int64_t ew_plan_channels(const struct ew_plan *p, int value)
{
    const struct ew_shape *s = &p->g->values[value].t.shape;
    return s->dim[s->rank - 1];
}

/* ew_call.out_step of the producer of `value`. */
int64_t ew_plan_out_step(const struct ew_plan *p, int value);

/* True if a backward that reads `saved` (enum ew_op_saves) reads in[i]. */
bool ew_plan_reads_input(unsigned saved, int i);

/* strategy.c: fills p->keep by p->strategy. */
ew_err ew_plan_choose_kept(struct ew_plan *p);
/* The slot from which backward reads `value`; adds the steps that recompute it if it was not kept.
 */
ew_err ew_plan_saved_slot(struct ew_plan *p, int value, struct ew_slot **out);

#endif
