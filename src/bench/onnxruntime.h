/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime beside us, where its library is installed: one network, opened and run. */
#ifndef EW_BENCH_ONNXRUNTIME_H
#define EW_BENCH_ONNXRUNTIME_H

#include "graph/tensor.h"

struct ew_ort;

/* Opens libonnxruntime.so ($EW_ONNXRUNTIME names another file) and with it the network at `path`,
 * as its documentation advises for latency: every rewriting of the graph, one operator at a time,
 * so many threads inside it.  EW_ERR_UNSUPPORTED where there is no library; its own message where
 * it refuses the file. */
ew_err ew_ort_open(const char *path, int threads, struct ew_ort **out);
/* What the library itself holds stays until the process ends. */
void ew_ort_close(struct ew_ort *o); /* NULL is fine */

const char *ew_ort_version(const struct ew_ort *o); /* "1.30.0" */

/* The first input reads this tensor's float32 data from now on; it stays the caller's. */
ew_err ew_ort_bind(struct ew_ort *o, const struct ew_tensor *input);
ew_err ew_ort_run(struct ew_ort *o);
/* The first output of the last run: n float32 values that the library holds. */
ew_err ew_ort_output(struct ew_ort *o, const float **data, size_t *n);

#endif
