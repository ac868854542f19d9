/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a plan, shared by the files of this folder. */
#ifndef EW_PLAN_IMPL_H
#define EW_PLAN_IMPL_H

#include "plan/memory.h"
#include "plan/plan.h"

struct ew_step {
    struct ew_kernel kernel;
    struct ew_call call;
    int node; /* of the graph, or -1 */
    enum ew_phase phase;
    int scratch; /* buffer, or -1 */
    int aux;     /* buffer, or -1 */
};

/* One per value of the graph, and one more for its gradient. */
struct ew_slot {
    struct ew_tensor t; /* what steps point to; data is set when memory is bound */
    int buffer;         /* -1: the value holds its own data, or is not used */
    int first, last;    /* steps that touch it; first -1: none */
};

struct ew_plan {
    struct ew_graph *g;
    struct ew_plan_opts opts;
    struct ew_arena arena; /* steps' pointer lists */
    struct ew_slot *values, *grads;
    struct ew_step *steps;
    int n_steps, cap_steps;
    struct ew_buffer *buffers;
    int n_buffers, cap_buffers;
    int *node_aux; /* buffer of a node's aux, or -1 */
    bool *needs_grad;
    char *block;
    size_t block_bytes;
};

/* Adds an empty step. */
ew_err ew_plan_step_new(struct ew_plan *p, struct ew_step **out);
/* Adds a buffer that is needed from step `first` to step `last`. */
ew_err ew_plan_buffer_new(struct ew_plan *p, size_t size, int first, int last, int *out);
/* Notes that step `step` touches the slot. */
void ew_plan_touch(struct ew_slot *s, int step);
/* Steps of the backward pass; forward steps are there already. */
ew_err ew_plan_add_backward(struct ew_plan *p);

#endif
