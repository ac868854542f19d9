/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime as a peer in benchmarks, if its library is installed. */
#ifndef EW_BENCH_ONNXRUNTIME_H
#define EW_BENCH_ONNXRUNTIME_H

#include "graph/tensor.h"

struct ew_ort;

/* Opens libonnxruntime.so (or $EW_ONNXRUNTIME) and loads the network at `path`, with the settings
 * that its documentation advises for latency: all graph optimisations, sequential execution,
 * `threads` intra-op threads.  EW_ERR_UNSUPPORTED without the library; its own message if it
 * rejects the file. */
ew_err ew_ort_open(const char *path, int threads, struct ew_ort **out);
/* The library stays loaded until the process ends. */
void ew_ort_close(struct ew_ort *o); /* NULL is fine */

const char *ew_ort_version(const struct ew_ort *o); /* "1.30.0" */

/* Binds the first input to this tensor's float32 data, which is borrowed. */
ew_err ew_ort_bind(struct ew_ort *o, const struct ew_tensor *input);
ew_err ew_ort_run(struct ew_ort *o);
/* The first output of the last run: n float32 values, owned by the library. */
ew_err ew_ort_output(struct ew_ort *o, const float **data, size_t *n);

#endif
