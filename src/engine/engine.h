/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of engines: compiling a network into a file (engine_build.c), loading it
 * (engine_load.c), and the streams that run it (context.c).  What others see is in edgewise.h. */
#ifndef EW_ENGINE_ENGINE_H
#define EW_ENGINE_ENGINE_H

#include "format/engine_file.h"
#include "plan/plan.h"

struct ew_engine {
    struct ew_engine_file file;
    struct ew_plan_packed *packed; /* weights in the form that this machine's kernels want */
    int *packed_of;                /* by node: see ew_plan_given */
    int n_packed;
    struct ew_plan *packer; /* where the file's are for another machine: it owns them; else NULL */
    size_t block_bytes;     /* activations and scratch at batch_max, here */
};

/* An engine of a file that was read, which it takes over, also on failure; `what` is for messages.
 */
ew_err ew_engine_take(struct ew_engine_file *file, const char *what, struct ew_engine **out);

/* The plan's options for a batch of the engine; `given` is filled in and borrowed by them. */
void ew_engine_plan_opts(const struct ew_engine *e, int64_t batch, struct ew_plan_given *given,
                         struct ew_plan_opts *out);
/* A copy of the engine's graph at this batch; release with ew_graph_free. */
ew_err ew_engine_graph_at(const struct ew_engine *e, int64_t batch, struct ew_graph **out);

/* Bytes of activations and scratch at the largest batch, by a plan that takes no memory; `be` NULL:
 * with the engine's own number of threads. */
ew_err ew_engine_block(const struct ew_engine *e, struct ew_backend *be, size_t *bytes);

/* The plan of the context's present batch, for benchmarks; it stays the context's. */
struct ew_plan *ew_context_plan(struct ew_context *c);
/* The graph that it runs. */
struct ew_graph *ew_context_graph(struct ew_context *c);
/* What the file says of the network. */
const struct ew_engine_card *ew_context_card(const struct ew_context *c);

/* "x86_64", "aarch64": what packed weights and numbers are for. */
const char *ew_engine_arch(void);

#endif
