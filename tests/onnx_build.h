/* SPDX-License-Identifier: Apache-2.0 */
/* Builds ONNX models field by field, valid and invalid, for tests of the importer. */
#ifndef EW_ONNX_BUILD_H
#define EW_ONNX_BUILD_H

#include "base/mem.h"
#include "onnx.pb-c.h"

/* A model under construction; all memory is in the arena.  Out of memory ends the program. */
struct ew_build {
    struct ew_arena arena;
    Ew__OnnxModel model;
    Ew__OnnxGraph graph;
};

/* IR version 8, opset 13, an empty graph named "g". */
void ew_build_init(struct ew_build *b);
void ew_build_fini(struct ew_build *b);
/* Adds the opset of another domain. */
void ew_build_opset(struct ew_build *b, const char *domain, int64_t version);

/* Dimensions: -1 is symbolic, named "N" at position 0 and "D" elsewhere. */
Ew__OnnxValue *ew_build_input(struct ew_build *b, const char *name, int type, const char *dims);
Ew__OnnxValue *ew_build_output(struct ew_build *b, const char *name);
/* in, out: names separated by commas, e.g. "a,b"; an empty name is an absent one. */
Ew__OnnxNode *ew_build_node(struct ew_build *b, const char *type, const char *in, const char *out);
Ew__OnnxAttr *ew_build_attr(struct ew_build *b, Ew__OnnxNode *n, const char *name, int type);
void ew_build_ints(struct ew_build *b, Ew__OnnxNode *n, const char *name, const char *values);
/* A tensor of this type and shape; its raw bytes are 0, 1, 2, ... as elements of the type. */
Ew__OnnxTensor *ew_build_init_tensor(struct ew_build *b, const char *name, int type,
                                     const char *dims);
void ew_build_external(struct ew_build *b, Ew__OnnxTensor *t, const char *location,
                       const char *offset, const char *length);
/* Adds a length-delimited field with a tag that is not in the schema. */
void ew_build_unknown(struct ew_build *b, ProtobufCMessage *m, uint32_t tag, const char *bytes);

char *ew_build_text(struct ew_build *b, const char *s);

/* The serialised model, in the arena. */
const uint8_t *ew_build_pack(struct ew_build *b, size_t *size);
/* The serialised model as a file in the test's folder. */
const char *ew_build_file(struct ew_build *b, const char *name);

/* TensorProto.DataType and AttributeProto.AttributeType */
enum { EW_PB_FLOAT = 1, EW_PB_INT8 = 3, EW_PB_INT32 = 6, EW_PB_INT64 = 7, EW_PB_STRING = 8 };
enum {
    EW_PB_ATTR_FLOAT = 1,
    EW_PB_ATTR_INT,
    EW_PB_ATTR_STRING,
    EW_PB_ATTR_TENSOR,
    EW_PB_ATTR_GRAPH,
    EW_PB_ATTR_FLOATS,
    EW_PB_ATTR_INTS
};

/* y = relu(conv(x, w) + b), x 1x2x5x5, w 3x2x3x3. */
void ew_build_small(struct ew_build *b);

#endif
