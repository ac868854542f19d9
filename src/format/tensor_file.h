/* SPDX-License-Identifier: Apache-2.0 */
/* One tensor in a file: NumPy's .npy (versions 1 to 3) or an ONNX TensorProto (.pb). */
#ifndef EW_FORMAT_TENSOR_FILE_H
#define EW_FORMAT_TENSOR_FILE_H

#include "graph/tensor.h"

/* Reads the file, whose first bytes say which kind it is; the data lies in the arena.  `name`
 * (NULL: not wanted) gets the name that a .pb file has, or "". */
ew_err ew_tensor_file_read(const char *path, struct ew_arena *a, struct ew_tensor *out,
                           const char **name);

/* Fails for a path that write would refuse, before the work that leads to it. */
ew_err ew_tensor_file_check(const char *path);
/* Writes .npy or .pb, as the path ends. */
ew_err ew_tensor_file_write(const char *path, const struct ew_tensor *t, const char *name);

/* The same from and to bytes; `what` is for messages. */
ew_err ew_npy_read(const void *bytes, size_t size, const char *what, struct ew_arena *a,
                   struct ew_tensor *out);
/* The header that goes before the tensor's data; buf needs EW_NPY_HEADER bytes, and *size of them
 * are written. */
#define EW_NPY_HEADER 384
ew_err ew_npy_header(const struct ew_tensor *t, const char *what, char *buf, size_t *size);

#endif
