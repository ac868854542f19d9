/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX file unpacked: its messages, its tensors.  Only format/onnx_*.c and tensor_file.c see
 * these types. */
#ifndef EW_FORMAT_ONNX_FILE_H
#define EW_FORMAT_ONNX_FILE_H

#include "format/names.h"
#include "graph/graph.h"
#include "onnx.pb-c.h"

/* A file being read.  Messages and large tensors lie in its arena until the graph stands. */
struct ew_onnx_file {
    const char *path; /* for messages, and the folder of external data; borrowed */
    bool in_memory;   /* `path` is only a name: there is no folder beside it */
    struct ew_arena arena;
    size_t spent, limit;        /* bytes that unpacking took and may take */
    void *mapped;               /* what is unpacked is a mapping of the file; NULL: it is not */
    size_t mapped_size, copied; /* bytes taken since its pages were given back */
    struct ew_onnx_span *spans; /* large tensor data that lies in the arena */
    int n_spans, cap_spans;
    /* Of external data: "@location", "=device:inode", "offset length file", each with its index. */
    struct ew_names externs;
    struct ew_onnx_extern {
        void *data;   /* of a range that has been read */
        int64_t left; /* bytes of a file that no range has taken */
        int file;     /* index of a location's file */
    } * extern_list;
    int n_externs, cap_externs;
    size_t external_bytes; /* that were read */
};

struct ew_onnx_span {
    char *start;
    size_t bytes;
    char *copy; /* in the graph, once it has been needed there */
};

void ew_onnx_file_init(struct ew_onnx_file *f, const char *path, bool in_memory);
void ew_onnx_file_fini(struct ew_onnx_file *f);

/* Unpacks `size` bytes as the message `type`.  Takes memory in proportion to `size` only. */
ew_err ew_onnx_unpack(struct ew_onnx_file *f, const void *bytes, size_t size,
                      const ProtobufCMessageDescriptor *type, ProtobufCMessage **out);

/* The tensor's type, shape and data.  Small data is copied to `keep`; large data stays in the
 * file's arena and is noted in its spans.  `what` names the tensor. */
ew_err ew_onnx_tensor(struct ew_onnx_file *f, const Ew__OnnxTensor *t, const char *what,
                      struct ew_arena *keep, struct ew_tensor *out);

/* Hands over to the graph what its constants still have in the file's arena: weights that were laid
 * out anew have left it already, so that in the end there is one copy of each. */
ew_err ew_onnx_file_keep(struct ew_onnx_file *f, struct ew_graph *g);
/* The same, before that, of data that lies by itself: what lays weights out anew may release it. */
void ew_onnx_file_hand_over(struct ew_onnx_file *f, struct ew_graph *g);

/* The message of a tensor, its elements as raw bytes, which are borrowed; the rest is in `a`. */
ew_err ew_onnx_put_tensor(struct ew_arena *a, const struct ew_tensor *t, const char *name,
                          Ew__OnnxTensor *out);

/* The message has a field that our schema lacks. */
bool ew_onnx_has_unknown(const ProtobufCMessage *m, uint32_t tag);

/* "" for NULL. */
static inline const char *ew_onnx_text(const char *s)
{
    return s ? s : "";
}

/* "string", "complex64", ...: the element types of ONNX, known to us or not. */
const char *ew_onnx_dtype_text(int onnx);

#endif
