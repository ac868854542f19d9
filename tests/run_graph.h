/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a graph once in a test, and compares tensors. */
#ifndef EW_RUN_GRAPH_H
#define EW_RUN_GRAPH_H

#include "graph/graph.h"
#include "plan/plan.h"

/* Compiles the graph for inference, copies in[i] to its i-th input and runs it.  The outputs are
 * ew_plan_output(*out, i); release with ew_plan_free. */
ew_err ew_run_graph(struct ew_graph *g, const struct ew_tensor *const *in, struct ew_plan **out);

/* Compiles the graph for inference on one thread (with reference kernels if `reference`), fills its
 * first input with a sine and runs it.  NULL, after a message, on failure.  Release with
 * ew_plan_free. */
struct ew_plan *ew_run_sine(struct ew_graph *g, bool reference);

/* A network of the zoo for 7 classes and batch 2, with the smallest width and input that it allows,
 * so that the references stay fast, and initial weights.  NULL, after a message, on failure. */
struct ew_graph *ew_small_network(const char *name);

/* A network of the zoo with initial weights and its loss, for images of `side` pixels (0: its
 * default). NULL, after a message, on failure. */
struct ew_graph *ew_training_network(const char *name, int64_t batch, int64_t side);

/* Samples [first, first + n) of an endless batch of ten classes, as inputs of a training plan of
 * batch n.  They differ, since batch norm needs variance to divide by. */
void ew_fill_samples(struct ew_plan *p, int64_t first, int64_t n);

/* Largest difference, relative to the largest magnitude of a. */
double ew_tensor_distance(const struct ew_tensor *a, const struct ew_tensor *b);

/* Converts every float32 value of the graph, weights included, to float64. */
ew_err ew_graph_widen(struct ew_graph *g);

/* Fails, with position and difference, unless type, shape and elements agree:
 * |a - b| <= atol + rtol * |b| for floating types, equality for others. */
ew_err ew_tensors_agree(const struct ew_tensor *a, const struct ew_tensor *b, double rtol,
                        double atol);

#endif
