/* SPDX-License-Identifier: Apache-2.0 */
/* Fused groups: nodes of a plan that a device computes together, so that a value or a
 * gradient between them needs no memory, or one pass over a tensor is saved.
 *
 * The device finds the groups in the graph (ew_backend_fuse), for only it knows what its kernels
 * can fuse.  The plan knows a group by its effect on memory, lifetimes and order:
 *
 *   - steps with roles: bits that the plan passes on and that only the device interprets;
 *   - calls of other nodes, or of the optimiser, that such a step computes as well: the plan
 *     makes them, and keeps alive what they read until then;
 *   - values and gradients that get no memory, and saved values that need not be kept.
 *
 * Kernels see it in their call: ew_call.roles, fused and shared (graph/op.h). */
#ifndef EW_BACKEND_GROUP_H
#define EW_BACKEND_GROUP_H

#include "backend/backend.h"
#include "graph/graph.h"

#define EW_GROUP_CALLS 2 /* most calls of other nodes in one step */

/* Another node's forward or backward, or with EW_PHASE_UPDATE the optimiser's update of a
 * parameter, that a step computes as well. */
struct ew_group_call {
    unsigned role; /* the role of the step that needs it */
    int of;        /* the node, or with EW_PHASE_UPDATE the parameter */
    enum ew_phase phase;
};

struct ew_group_step {
    int node;
    enum ew_phase phase;
    unsigned role;   /* which the step's kernel must support */
    unsigned unread; /* saved values (enum ew_op_saves) that the step does not read in this role */
    struct ew_group_call calls[EW_GROUP_CALLS];
    int n_calls;
    bool skipped; /* removed: the other steps compute all of it */
};

struct ew_fused_group {
    const char *pattern;
    /* The first to run comes first.  Unless `decided`, the group takes effect if the kernel chosen
     * for that step supports its role; the others' kernels are then chosen to support theirs. */
    const struct ew_group_step *steps;
    int n_steps;
    bool decided;  /* takes effect in any case: the device has checked its kernels */
    int value;     /* value without memory: its readers have its producer's call; -1: none */
    int gradient;  /* value whose gradient gets no memory; -1: none */
    size_t shared; /* bytes of ew_call.shared, which lives from the first step to the last */
    int concat; /* concatenation whose inputs are written directly into its output, with row stride
                 * ew_call.out_step, so that it is no work; -1: none */
};

/* The uses of a value by needed nodes and as an output of the graph. */
struct ew_value_uses {
    int count;
    int known; /* of these, uses that need its data before the run (ew_op.known_in) */
    int first; /* first node that reads it; -1: none */
};

/* A plan under construction, as patterns see it. */
struct ew_fuse_query {
    const struct ew_backend *be;
    struct ew_graph *g;               /* calls point to its tensors */
    bool train, update;               /* with gradients, and with optimiser updates after them */
    int micro_batches;                /* of a step (gradient accumulation) */
    const bool *needed;               /* by node: the plan runs it */
    const bool *on_host;              /* by node: it runs on the CPU, not on this device */
    const struct ew_value_uses *uses; /* by value */
    const bool *needs_grad;           /* by value */
    const bool *keep;                 /* by value: it is not recomputed in the backward pass */
};

/* The groups found so far; steps are in the arena. */
struct ew_group_list {
    struct ew_arena *arena;
    struct ew_fused_group *groups; /* heap */
    int n, cap;
};

/* Appends the groups that the device can fuse. */
ew_err ew_backend_fuse(const struct ew_fuse_query *query, struct ew_group_list *out);

/* Adds a group with room for n steps, for the caller to fill through *steps. */
ew_err ew_group_add(struct ew_group_list *list, const char *pattern, int n,
                    struct ew_group_step **steps);

/* A call for kernel queries: it has the shapes of the node's values, and data for constants only.
 * The caller sets `be` and `train`. */
ew_err ew_group_ask(struct ew_graph *g, int node, struct ew_arena *arena, struct ew_call *out);

#endif
