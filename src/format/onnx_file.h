/* SPDX-License-Identifier: Apache-2.0 */
/* An unpacked ONNX file: messages and tensors.  Only format/onnx_*.c and tensor_file.c see these
 * types. */
#ifndef EW_FORMAT_ONNX_FILE_H
#define EW_FORMAT_ONNX_FILE_H

#include "format/names.h"
#include "graph/graph.h"
#include "onnx.pb-c.h"

/* A file being read.  Its arena owns messages and large tensors until the graph is built. */
struct ew_onnx_file {
    const char *path; /* for messages, and the folder of external data; borrowed */
    bool in_memory;   /* `path` is only a name, so there is no external data */
    struct ew_arena arena;
    size_t spent, limit;        /* memory used by unpacking, and its limit */
    void *mapped;               /* the mapped file; NULL: not mapped */
    size_t mapped_size, copied; /* bytes copied since pages were last released */
    struct ew_onnx_span *spans; /* large tensor data in the arena */
    int n_spans, cap_spans;
    /* external data: "@location", "=device:inode", "offset length file" */
    struct ew_names externs;
    struct ew_onnx_extern {
        void *data;   /* of a range that was read */
        int64_t left; /* bytes of a file that no range has read */
        int file;     /* file of a location */
    } * extern_list;
    int n_externs, cap_externs;
    size_t external_bytes; /* read in total */
};

struct ew_onnx_span {
    char *start;
    size_t bytes;
    char *copy; /* in the graph, once needed there */
};

void ew_onnx_file_init(struct ew_onnx_file *f, const char *path, bool in_memory);
void ew_onnx_file_fini(struct ew_onnx_file *f);

/* Unpacks `size` bytes as the message `type`, in memory proportional to `size`. */
ew_err ew_onnx_unpack(struct ew_onnx_file *f, const void *bytes, size_t size,
                      const ProtobufCMessageDescriptor *type, ProtobufCMessage **out);

/* Converts a TensorProto.  Small data is copied to `keep`; large data stays in the file's arena and
 * is recorded in its spans.  `what` names the tensor. */
ew_err ew_onnx_tensor(struct ew_onnx_file *f, const Ew__OnnxTensor *t, const char *what,
                      struct ew_arena *keep, struct ew_tensor *out);

/* Moves data of the graph's constants that is still in the file's arena to the graph; weights whose
 * layout was converted have left it already, so that one copy of each remains. */
ew_err ew_onnx_file_keep(struct ew_onnx_file *f, struct ew_graph *g);
/* The same, earlier, for data in arena blocks of its own, so that the layout conversion can free
 * it. */
void ew_onnx_file_hand_over(struct ew_onnx_file *f, struct ew_graph *g);

/* Makes a TensorProto whose raw_data borrows the tensor's elements; the rest is in `a`. */
ew_err ew_onnx_put_tensor(struct ew_arena *a, const struct ew_tensor *t, const char *name,
                          Ew__OnnxTensor *out);

/* True if the message has an unknown field with this tag. */
bool ew_onnx_has_unknown(const ProtobufCMessage *m, uint32_t tag);

/* "" for NULL. */
static inline const char *ew_onnx_text(const char *s)
{
    return s ? s : "";
}

/* Names of all ONNX element types, supported or not: "string", "complex64", ... */
const char *ew_onnx_dtype_text(int onnx);

#endif
