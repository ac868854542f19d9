/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the engine: compiling a network into a file (engine_build.c), loading it
 * (engine_load.c), and execution contexts (context.c).  The public interface is edgewise.h. */
#ifndef EW_ENGINE_ENGINE_H
#define EW_ENGINE_ENGINE_H

#include "format/engine_file.h"
#include "plan/plan.h"

struct ew_engine {
    struct ew_engine_file file;
    struct ew_plan_packed *packed; /* packed weights for this machine's kernels */
    int *packed_of;                /* by node: see ew_plan_given */
    int n_packed;
    struct ew_plan *packer; /* plan that owns repacked weights, if the file's are for another
                             * machine; else NULL */
    size_t block_bytes;     /* activations and scratch at batch_max, on this machine */
};

/* Makes an engine from a file that was read, and takes it over, also on failure; `what` is for
 * messages. */
ew_err ew_engine_take(struct ew_engine_file *file, const char *what, struct ew_engine **out);

/* Plan options for a batch of the engine; *out borrows `given`, which is filled in. */
void ew_engine_plan_opts(const struct ew_engine *e, int64_t batch, struct ew_plan_given *given,
                         struct ew_plan_opts *out);
/* A copy of the engine's graph at this batch; free with ew_graph_free. */
ew_err ew_engine_graph_at(const struct ew_engine *e, int64_t batch, struct ew_graph **out);

/* Bytes of activations and scratch at the largest batch, from a dry plan; `be` NULL: with the
 * engine's default threads. */
ew_err ew_engine_block(const struct ew_engine *e, struct ew_backend *be, size_t *bytes);

/* The plan of the context's current batch, for benchmarks; owned by the context. */
struct ew_plan *ew_context_plan(struct ew_context *c);
/* The graph of that plan. */
struct ew_graph *ew_context_graph(struct ew_context *c);
/* The engine file's card. */
const struct ew_engine_card *ew_context_card(const struct ew_context *c);

/* An input or output of the graph, with its shapes. */
ew_err ew_port_of_input(const struct ew_graph *g, int i, struct ew_port *out);
ew_err ew_port_of_output(const struct ew_graph *g, int i, struct ew_port *out);

/* The architecture of this build: "x86_64", "aarch64". */
const char *ew_engine_arch(void);

#endif
