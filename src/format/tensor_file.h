/* SPDX-License-Identifier: Apache-2.0 */
/* One tensor in a file: NumPy's .npy (versions 1 to 3) or an ONNX TensorProto (.pb). */
#ifndef EW_FORMAT_TENSOR_FILE_H
#define EW_FORMAT_TENSOR_FILE_H

#include "graph/tensor.h"

/* Reads a file of either kind, told apart by its first bytes; the data is in the arena. *name (if
 * not NULL) gets the name in a .pb file, or "". */
ew_err ew_tensor_file_read(const char *path, struct ew_arena *a, struct ew_tensor *out,
                           const char **name);

/* Fails for a path that write would refuse, to be called before the work. */
ew_err ew_tensor_file_check(const char *path);
/* Writes .npy or .pb, by the path's extension. */
ew_err ew_tensor_file_write(const char *path, const struct ew_tensor *t, const char *name);

/* The same from and to bytes; `what` is for messages. */
ew_err ew_npy_read(const void *bytes, size_t size, const char *what, struct ew_arena *a,
                   struct ew_tensor *out);
/* Makes the header that precedes the tensor's data: *size of the EW_NPY_HEADER bytes in buf. */
#define EW_NPY_HEADER 384
ew_err ew_npy_header(const struct ew_tensor *t, const char *what, char *buf, size_t *size);

#endif
