/* SPDX-License-Identifier: Apache-2.0 */
/* Fused groups: nodes of a plan that a device does together, so that a value or a gradient between
 * them needs no memory, or a pass over one is saved.
 *
 * The device finds them in the graph (ew_backend_fuse), for only it knows what its kernels can do.
 * The plan knows a group by what it means for memory, lifetimes and order:
 *
 *   - steps that play a role, a bit that the plan hands on and that only the device understands;
 *   - calls of other nodes, or of the optimiser, that such a step does as well: the plan makes
 * them, and keeps what they read until then;
 *   - values and gradients that get no memory, and saved values that need not be kept.
 *
 * Kernels find it in their call: ew_call.roles, fused and shared (graph/op.h). */
#ifndef EW_BACKEND_GROUP_H
#define EW_BACKEND_GROUP_H

#include "backend/backend.h"
#include "graph/graph.h"

#define EW_GROUP_CALLS 2 /* of other nodes, that one step does as well */

/* Another node's forward or backward, or with EW_PHASE_UPDATE the optimiser's step of a parameter.
 */
struct ew_group_call {
    unsigned role; /* what it is to the step: one of its roles */
    int of;        /* node; with EW_PHASE_UPDATE the parameter */
    enum ew_phase phase;
};

struct ew_group_step {
    int node;
    enum ew_phase phase;
    unsigned role;   /* its kernel can play it */
    unsigned unread; /* what the operator saves (enum ew_op_saves) and this step does not read */
    struct ew_group_call calls[EW_GROUP_CALLS];
    int n_calls;
    bool skipped; /* the others do all of it: it is no step */
};

struct ew_fused_group {
    const char *pattern;
    /* Unless `decided`, the first decides: the group is taken where the kernel that its step gets
     * can play the role, and then all others play theirs.  So it is the first of them to run. */
    const struct ew_group_step *steps;
    int n_steps;
    bool decided;  /* taken in any case: the device knows that its kernels can */
    int value;     /* gets no memory: its readers have the call of its maker; -1: none */
    int gradient;  /* the value whose gradient gets no memory; -1: none */
    size_t shared; /* bytes of memory for its steps, from the first to the last */
    int join; /* the concatenation whose inputs lie in its output from the beginning, so that it
               * has nothing to do: ew_call.out_step says where rows of theirs begin; -1: none */
};

/* Who reads a value: needed nodes, and the graph's outputs. */
struct ew_reading {
    int count;
    int known; /* of them, those that must know it before a run (ew_op.known_in) */
    int first; /* node, or -1: none, or an output alone */
};

/* A plan in the making. */
struct ew_fuse_query {
    const struct ew_backend *be;
    struct ew_graph *g;               /* as it is; calls point to its tensors */
    bool train, update;               /* gradients, and the optimiser's step after them */
    int parts;                        /* of the batch, whose parameter gradients are summed */
    const bool *needed;               /* by node: it runs */
    const bool *on_host;              /* by node: not on this device */
    const struct ew_reading *reading; /* by value */
    const bool *needs_grad;           /* by value */
    const bool *keep;                 /* by value: it is not computed again */
};

/* Groups as they are found; steps are in the arena. */
struct ew_group_list {
    struct ew_arena *arena;
    struct ew_fused_group *groups; /* heap */
    int n, cap;
};

/* Appends the groups that the device will take. */
ew_err ew_backend_fuse(const struct ew_fuse_query *query, struct ew_group_list *out);

/* Adds a group with room for n steps, for the caller to fill through *steps. */
ew_err ew_group_add(struct ew_group_list *list, const char *pattern, int n,
                    struct ew_group_step **steps);

/* A call with the shapes of the node's values and no memory but that of constants, to ask about
 * kernels; `be` and `train` are the caller's to set. */
ew_err ew_group_ask(struct ew_graph *g, int node, struct ew_arena *arena, struct ew_call *out);

#endif
