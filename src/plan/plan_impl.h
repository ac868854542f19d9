/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a plan, shared by the files of this folder. */
#ifndef EW_PLAN_IMPL_H
#define EW_PLAN_IMPL_H

#include "backend/group.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/strategy.h"

/* Parts of a batch that is run in several: they differ in the steps that are left out. */
enum ew_part { EW_PART_FIRST, EW_PART_MIDDLE, EW_PART_LAST, EW_PART_KINDS };
#define EW_EVERY_PART ((1u << EW_PART_KINDS) - 1)

/* The blocks of a plan's memory, each of the device or of the host. */
enum ew_region {
    EW_REGION_STEPS,       /* what lives by steps: buffers */
    EW_REGION_PACKED,      /* kernels' copies of weights */
    EW_REGION_OPTIMIZER,   /* the optimiser's tensors, kept from run to run */
    EW_REGION_WEIGHTS,     /* the graph's, where the device cannot read those */
    EW_REGION_STATES,      /* kernels' states, kept from run to run; this and what follows: host */
    EW_REGION_STAGING,     /* of host steps, which take turns */
    EW_REGION_HOST_PACKED, /* as PACKED, of host steps */
    EW_REGIONS
};

struct ew_block {
    size_t bytes; /* grow while the plan is compiled */
    struct ew_memory *memory;
    bool given; /* it is not the plan's */
};

/* What a host step copies between the device and its own memory. */
struct ew_copy {
    const struct ew_slot *slot;
    void **data;    /* what of the host's call points to it */
    size_t host_at; /* in EW_REGION_STAGING */
    bool in, out;   /* before the step to the host, after it back */
};

/* A step that the device has no kernel for: it runs on the host, on copies (host_step.c). */
struct ew_host_step {
    struct ew_call call; /* the step's, on the host's memory */
    struct ew_copy *copies;
    int n_copies;
    size_t scratch_at, bytes; /* in EW_REGION_STAGING */
    int64_t copy_ns;          /* of the last run that was timed */
};

struct ew_step {
    struct ew_kernel kernel; /* run NULL: there is nothing left to do */
    struct ew_call call;
    bool weights_released; /* what it has packed is released: it cannot pack again */
    int node;              /* of the graph, or -1 */
    enum ew_phase phase;
    unsigned parts;             /* bit i: it runs in those of kind i (enum ew_part) */
    int scratch;                /* buffer, or -1 */
    size_t state_at, packed_at; /* where the kernel's own memory begins in its blocks */
    int shared;                 /* buffer of its fused group, or -1 */
    struct ew_host_step *host;  /* NULL: it runs on the device */
    const void *given;          /* packed weights that are not the plan's; NULL: they are */
    enum ew_stop_kind stop;     /* of a run in pieces, after it; EW_STOP_END: none */
    int buckets; /* of gradients that are complete after it, where that is one more; else 0 */
};

/* A tensor that steps point to, and the steps that need it. */
struct ew_slot {
    struct ew_tensor t; /* data: the host's where it is known when planning; an address of the
                         * device when memory is bound */
    int first, last;    /* steps that touch it; first -1: none */
    bool no_storage;    /* it gets no memory: whoever reads it makes it */
    enum ew_region region;
    int buffer; /* in EW_REGION_STEPS; -1: the value holds its own data, or is not used */
    size_t at;  /* bytes from the buffer's beginning (see ew_plan_place_part), else the block's */
};

/* Steps that run as one program, or one step on the host. */
struct ew_segment {
    struct ew_program *program;
    struct ew_host_step *host;
    int first, n; /* of ew_run_list.steps */
};

/* All segments of a run, and the steps whose commands they are. */
struct ew_run_list {
    struct ew_segment *segments;
    int n, cap;
    int *steps;
    int n_steps;
};

/* Parameters whose gradients are handed out together. */
struct ew_bucket {
    const int *values;
    int n;
    int step; /* the first that they do not wait for */
};

/* Runs that were started and not waited for. */
struct ew_ahead {
    int n;      /* of them */
    int next;   /* set of outputs of the next */
    int shown;  /* set that ew_plan_output tells */
    int64_t ns; /* of one that was done within its start */
};

/* Of a plan that runs in pieces: its buckets, and where a run is. */
struct ew_pieces {
    int *complete; /* by value: steps after which its gradient is */
    struct ew_bucket *buckets;
    int n;
    bool begun;
    int segment, handed; /* the next segment; buckets handed out */
    double loss;         /* summed over the parts before the last */
};

/* A node's backward in the fused groups that are taken. */
struct ew_fused_backward {
    unsigned unread; /* what its operator saves and its step does not read (enum ew_op_saves) */
    bool skipped;    /* others do all of it: it is no step */
    bool elsewhere;  /* another node's backward does it as well */
};

/* A node's step in a fused group. */
struct ew_member {
    int group, step;
    int next; /* of the same node, or -1 */
};

/* A node's call, and the memory that it reads.  Of calls of other nodes that a step does as well,
 * ew_fused_call.call points to it. */
struct ew_node_call {
    struct ew_call call;
    int node; /* -1: the optimiser's */
    struct ew_slot **slots;
    int n_slots;
};

struct ew_plan {
    struct ew_graph *source; /* the caller's */
    struct ew_graph *g;      /* that runs, at the batch of one part: the caller's, or a copy */
    struct ew_plan_opts opts;
    struct ew_backend *be;
    struct ew_backend *host; /* where nodes run that `be` has no kernel for; `be` itself, where that
                              * shares the host's memory */
    bool *on_host;           /* by node */
    struct ew_cost *costs;   /* by node, before types are narrowed: operators know it of one type */
    struct ew_strategy strategy;
    struct ew_arena arena; /* steps' pointer lists */
    struct ew_slot *slots; /* all of them, n_values of each kind: */
    struct ew_slot *values, *grads;
    struct ew_slot *recompute;               /* values computed a second time in backward */
    struct ew_slot *state[EW_UPDATE_STATES]; /* optimiser's, by parameter */
    struct ew_slot *kept, *rounded;          /* of weights that steps see rounded */
    struct ew_slot *aux;                     /* by node: what its forward leaves for its backward */
    int n_slots;
    struct ew_tensor *batch_inputs; /* the caller's view of the inputs: whole batches */
    struct ew_step *steps;
    int n_steps, cap_steps;
    struct ew_buffer *buffers;
    int n_buffers, cap_buffers;
    int *node_step;              /* by node: its (first) forward step, or -1 */
    struct ew_value_uses *uses;  /* by value: who of the needed nodes reads it */
    bool *keep;                  /* by value: backward may read it where forward left it */
    bool *needs_grad;            /* by value */
    bool *needed;                /* by node: outputs depend on it, and it is not computed yet */
    struct ew_group_list groups; /* that the device has found */
    bool *taken;                 /* by group */
    int *shared;                 /* by group: buffer that its steps share, or -1 */
    struct ew_member *members;   /* all steps of groups */
    int *member_of;              /* by node: its first of them, or -1 */
    struct ew_fused_backward *backward; /* by node: what taken groups mean for it */
    int *joined;     /* by value: the concatenation that it lies in from the beginning, or -1 */
    size_t released; /* bytes of the caller's weights */
    struct ew_plan_moved {
        const void *data;
        size_t bytes;
    } * moved; /* weights that have moved from the source into the copy */
    int n_moved;
    bool backend_given;
    struct ew_block blocks[EW_REGIONS];
    void *host_io; /* of ew_backend_host_alloc: inputs and outputs that are not the steps' own */
    struct ew_tensor *outputs; /* on the host, where the device's are not; else NULL */
    int output_sets;           /* of them after one another: as many runs may be under way */
    struct ew_ahead ahead;
    struct ew_tensor *host_tensors;          /* likewise, by slot, made when asked for */
    struct ew_run_list lists[EW_PART_KINDS]; /* a batch that is run whole has the last alone */
    struct ew_pieces pieces;
    struct ew_run_params params;
};

/* Bit i of what is declared of a node's inputs. */
static inline bool ew_plan_bit(unsigned bits, int i)
{
    return i < 32 && (bits >> i & 1);
}

/* True where steps work on memory that the host has no part in. */
static inline bool ew_plan_is_remote(const struct ew_plan *p)
{
    return p->host != p->be;
}

/* The call that runs: on the host, where the device has no kernel for it. */
static inline struct ew_call *ew_step_call(struct ew_step *s)
{
    return s->host ? &s->host->call : &s->call;
}

/* True where the step reads what was packed before where that lies. */
static inline bool ew_plan_uses_given(const struct ew_plan *p, const struct ew_step *s)
{
    return s->given && s->call.be == p->host;
}

/* True where steps may read the slot on the device. */
static inline bool ew_slot_has_place(const struct ew_slot *s)
{
    return s->region != EW_REGION_STEPS || s->buffer >= 0;
}

/* Takes bytes at the end of a block; returns where they begin. */
static inline size_t ew_plan_reserve(struct ew_plan *p, enum ew_region region, size_t bytes)
{
    const size_t at = p->blocks[region].bytes;
    p->blocks[region].bytes += ew_align_up(bytes);
    return at;
}

/* The same for a slot that lives there, rather than by steps. */
static inline void ew_plan_reserve_slot(struct ew_plan *p, enum ew_region region, struct ew_slot *s)
{
    s->region = region;
    s->at = ew_plan_reserve(p, region, ew_tensor_bytes(&s->t));
}

/* Where a slot that has a place begins in the block of its region, when buffers have offsets. */
static inline size_t ew_plan_offset(const struct ew_plan *p, const struct ew_slot *s)
{
    return s->at + (s->buffer >= 0 ? p->buffers[s->buffer].offset : 0);
}

/* Addresses, when memory is there. */
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
/* plan_kernel.c: gives a node's call its roles in fused groups and its kernel: by measurement where
 * there is a choice, else by rules. */
ew_err ew_plan_choose_kernel(struct ew_plan *p, enum ew_phase phase, struct ew_node_call *c,
                             struct ew_kernel *out);
/* Adds the step of such a call, with the memory that its kernel needs. */
ew_err ew_plan_add_call(struct ew_plan *p, enum ew_phase phase, const struct ew_node_call *c,
                        const struct ew_kernel *k);
/* Notes that a step does the call, and with it those of other nodes. */
void ew_plan_touch_call(const struct ew_node_call *c, int step);
/* Adds a buffer that is needed from step `first` to step `last`. */
ew_err ew_plan_buffer_new(struct ew_plan *p, size_t size, int first, int last, int *out);
/* plan_buffers.c: notes that step `step` touches the slot. */
void ew_plan_touch(struct ew_slot *s, int step);
static inline bool ew_plan_has_data(const struct ew_plan *p, int value)
{
    return ew_value_is_known(&p->g->values[value]);
}

/* Memory of a slot's own, where it has none. */
ew_err ew_plan_own_buffer(struct ew_plan *p, struct ew_slot *s);
/* Buffers of all values and gradients, when all steps are there; views then have nothing to do. */
ew_err ew_plan_make_buffers(struct ew_plan *p);
/* plan_bind.c: takes the memory, and has the device turn places into addresses. */
ew_err ew_plan_bind_memory(struct ew_plan *p);

/* Where a value lies after the steps that are there so far. */
static inline struct ew_slot *ew_plan_latest(const struct ew_plan *p, int value)
{
    return p->recompute[value].first >= 0 ? &p->recompute[value] : &p->values[value];
}

/* The call of the node's forward, as a step of the phase does it: backward adds the steps that
 * compute values again.  Outputs go to `outs`, values or recompute. */
ew_err ew_plan_forward_call(struct ew_plan *p, int node, enum ew_phase phase, struct ew_slot *outs,
                            struct ew_node_call *out);
/* Adds the forward step of a node; with `recompute` into the second set of slots. */
ew_err ew_plan_add_forward(struct ew_plan *p, int node, bool recompute);
/* Fills p->needs_grad. */
void ew_plan_mark_gradients(struct ew_plan *p);
/* Steps of the backward pass; forward steps are there already. */
ew_err ew_plan_add_backward(struct ew_plan *p);
/* The call of the node's backward, with data where it reads it; adds the steps that compute values
 * again. */
ew_err ew_plan_backward_call(struct ew_plan *p, int node, struct ew_node_call *out);

/* plan_task.c: a step that clears a gradient, or seeds it. */
ew_err ew_plan_write_gradient(struct ew_plan *p, enum ew_task task, int value);
/* A step that updates a parameter whose gradient is complete. */
ew_err ew_plan_add_update(struct ew_plan *p, int value);
/* The same as a call, for kernels that update as they go: the gradient has no memory. */
ew_err ew_plan_update_call(struct ew_plan *p, int value, struct ew_call *out);
/* Steps before all others that round weights, and behind them, that take back all of it but what
 * they were changed by. */
ew_err ew_plan_add_rounding(struct ew_plan *p, enum ew_task task);
/* Their memory, when all steps are there. */
ew_err ew_plan_keep_rounded(struct ew_plan *p);

/* host_step.c: finds the nodes that have to run on the host, when it is known what is needed. */
ew_err ew_plan_find_host_nodes(struct ew_plan *p);
/* True where the step runs there. */
bool ew_plan_step_on_host(const struct ew_plan *p, const struct ew_step *s);
/* Gives such steps calls on copies, when buffers are known. */
ew_err ew_plan_make_host_steps(struct ew_plan *p);
/* Turns its places into pointers, when memory is there. */
void ew_plan_bind_host_step(struct ew_plan *p, struct ew_step *s);

/* narrow.c: true where the device stores activations in another type than the graph has. */
bool ew_plan_is_narrow(const struct ew_plan *p);
/* There, gives the values of the copy the types that the device stores them in. */
ew_err ew_plan_narrow(struct ew_plan *p);
/* The type that the host has the slot's contents in. */
enum ew_dtype ew_plan_host_type(const struct ew_plan *p, const struct ew_slot *s);
/* A tensor as the host sees it; of those with data, as they are. */
struct ew_tensor ew_plan_host_view(const struct ew_plan *p, const struct ew_tensor *t);
/* A call on such tensors, before memory is there: to ask the host for kernels and sizes. */
ew_err ew_plan_host_call(struct ew_plan *p, const struct ew_call *c, const struct ew_call **out);
/* Gives `to`, a copy of the call, tensors of its own. */
ew_err ew_plan_host_lists(struct ew_plan *p, const struct ew_call *c, struct ew_call *to);

/* True where runs change the graph's weight. */
static inline bool ew_plan_changes_weight(const struct ew_plan *p, int value)
{
    const struct ew_value *v = &p->g->values[value];
    return p->opts.mode == EW_PLAN_TRAIN &&
           ((v->kind == EW_VALUE_PARAM && !v->frozen) || v->kind == EW_VALUE_STATE);
}

/* residency.c: which weights the device needs a copy of, and where. */
void ew_plan_place_weights(struct ew_plan *p);
/* Between a slot on the device and the host, and the bytes that the host has of it. */
ew_err ew_plan_read_slot(const struct ew_plan *p, const struct ew_slot *s, void *to);
ew_err ew_plan_write_slot(const struct ew_plan *p, const struct ew_slot *s, const void *from);
size_t ew_plan_host_bytes(const struct ew_plan *p, const struct ew_slot *s);
/* Bytes of the steps' block: of this plan's, and of those that it is lent to. */
static inline size_t ew_plan_whole_block(const struct ew_plan *p)
{
    const size_t own = p->blocks[EW_REGION_STEPS].bytes;
    return own > p->opts.lend_bytes ? own : p->opts.lend_bytes;
}

/* The host's view of inputs and outputs. */
ew_err ew_plan_make_views(struct ew_plan *p, const struct ew_graph *g);
/* Before and after the steps of a part, without waiting: inputs to the device, outputs from it into
 * this set. */
ew_err ew_plan_write_inputs(struct ew_plan *p, int part);
ew_err ew_plan_fetch_outputs(struct ew_plan *p, int set);

/* pieces/: which gradients are handed out together, when all steps but updates are there. */
ew_err ew_plan_make_buckets(struct ew_plan *p);
/* Where runs stop, when it is known which steps run. */
void ew_plan_mark_stops(struct ew_plan *p);
/* True where the node is done in two steps, between which a run stops. */
bool ew_plan_splits(const struct ew_plan *p, int node);
/* Makes them of the last step, which has its kernel and aux. */
ew_err ew_plan_split(struct ew_plan *p, struct ew_step **second);

/* execute.c: makes programs of the steps. */
ew_err ew_plan_load(struct ew_plan *p);
void ew_plan_unload(struct ew_plan *p);
/* True where the step runs in the last part of a batch, or in its only one. */
bool ew_plan_runs_last(const struct ew_plan *p, const struct ew_step *s);
/* What ends every run: the parts before the last, and the last one's inputs; a segment of the last
 * one's list, with its steps' durations where `ns` is; and after that the outputs, with the mean of
 * all parts' losses. */
ew_err ew_plan_run_first_parts(struct ew_plan *p, double *loss);
ew_err ew_plan_run_segment(struct ew_plan *p, const struct ew_segment *s, int64_t *ns);
ew_err ew_plan_end_run(struct ew_plan *p, double loss);

/* pack_weights.c: large weights that the caller gives up become the plan's own, so that passes may
 * change them where they lie. */
ew_err ew_plan_take_weights(struct ew_plan *p);
/* Gives back weights of the caller's that passes have replaced, where it may. */
ew_err ew_plan_release_replaced(struct ew_plan *p);
/* Has all steps pack their weights, and gives back those that only they read. */
ew_err ew_plan_pack(struct ew_plan *p);

/* plan_group.c: asks the device for fused groups, when it is known what is needed. */
ew_err ew_plan_find_groups(struct ew_plan *p);
/* Gives the call its roles in the groups that are taken. */
ew_err ew_plan_play_roles(struct ew_plan *p, int node, enum ew_phase phase, struct ew_call *c);
/* And takes the groups that are up to the node's kernel, where that can play these roles. */
ew_err ew_plan_take_groups(struct ew_plan *p, int node, enum ew_phase phase, unsigned roles,
                           struct ew_call *c);
/* The buffer that the last step shares with others of its group. */
ew_err ew_plan_share_buffer(struct ew_plan *p);
/* The i-th call of another node that the step of this call does as well. */
static inline struct ew_node_call *ew_plan_fused_call(const struct ew_call *c, int i)
{
    return (struct ew_node_call *)(void *)c->fused[i].call; /* its first member */
}

/* When memory is there: these calls get theirs. */
void ew_plan_bind_groups(struct ew_plan *p, struct ew_step *s);
/* The value that must be there for `value` to be read: itself, or what its reader makes it from. */
int ew_plan_source(const struct ew_plan *p, int value);
/* Length of the last axis. */
static inline int64_t ew_plan_channels(const struct ew_plan *p, int value)
{
    const struct ew_shape *s = &p->g->values[value].t.shape;
    return s->dim[s->rank - 1];
}

/* What a step that makes `value` gets as out_step. */
int64_t ew_plan_out_step(const struct ew_plan *p, int value);

/* Whether an operator's backward, which saves these (enum ew_op_saves), reads in[i]. */
bool ew_plan_reads_input(unsigned saved, int i);

/* strategy.c: fills p->keep by p->strategy. */
ew_err ew_plan_choose_kept(struct ew_plan *p);
/* The slot from which backward can read `value`: adds the steps that compute it again where it was
 * not kept. */
ew_err ew_plan_saved_slot(struct ew_plan *p, int value, struct ew_slot **out);

#endif
