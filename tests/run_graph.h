/* SPDX-License-Identifier: Apache-2.0 */
/* Running a graph once in a test, and comparing tensors. */
#ifndef EW_RUN_GRAPH_H
#define EW_RUN_GRAPH_H

#include "graph/graph.h"
#include "plan/plan.h"

/* Compiles the graph for inference, copies in[i] to its i-th input and runs it.  The outputs are
 * then ew_plan_output(*out, i); release with ew_plan_free. */
ew_err ew_run_graph(struct ew_graph *g, const struct ew_tensor *const *in, struct ew_plan **out);

/* Compiles the graph for inference on one thread (by the plain references where `reference`), fills
 * its first input with a sine and runs it; NULL, said, where that failed.  Release with
 * ew_plan_free. */
struct ew_plan *ew_run_sine(struct ew_graph *g, bool reference);

/* A network of the zoo for 7 classes and batch 2, as narrow and with as small an input as it takes,
 * with first weights: the references stay quick.  NULL, said, where that failed. */
struct ew_graph *ew_small_network(const char *name);

/* A network of the zoo with first weights and its objective, for images of `side` or, at 0, its
 * own; NULL, said, where that failed. */
struct ew_graph *ew_training_network(const char *name, int64_t batch, int64_t side);

/* Samples [first, first + n) of one endless batch of ten classes, as the inputs of a training plan
 * of n.  They differ: alike ones leave batch norms little variance to divide by. */
void ew_fill_samples(struct ew_plan *p, int64_t first, int64_t n);

/* Their largest difference, as a share of a's largest value. */
double ew_tensor_distance(const struct ew_tensor *a, const struct ew_tensor *b);

/* Makes every float32 value of the graph, weights included, double precision. */
ew_err ew_graph_widen(struct ew_graph *g);

/* Fails, saying where and by how much, unless type, shape and elements agree:
 * |a - b| <= atol + rtol * |b| for floating types, equal for the others. */
ew_err ew_tensors_agree(const struct ew_tensor *a, const struct ew_tensor *b, double rtol,
                        double atol);

#endif
