/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, shapes and tensors.  A tensor does not own its data. */
#ifndef EW_GRAPH_TENSOR_H
#define EW_GRAPH_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "base/mem.h"

/* clang-format off */
/* name on disk, C type, bytes, ONNX TensorProto.DataType */
#define EW_DTYPE_MAP(X)                                                                            \
    X(F32,  "float32",  4,  1)                                                                     \
    X(F64,  "float64",  8, 11)                                                                     \
    X(F16,  "float16",  2, 10)                                                                     \
    X(BF16, "bfloat16", 2, 16)                                                                     \
    X(S8,   "int8",     1,  3)                                                                     \
    X(U8,   "uint8",    1,  2)                                                                     \
    X(S16,  "int16",    2,  5)                                                                     \
    X(U16,  "uint16",   2,  4)                                                                     \
    X(S32,  "int32",    4,  6)                                                                     \
    X(U32,  "uint32",   4, 12)                                                                     \
    X(S64,  "int64",    8,  7)                                                                     \
    X(U64,  "uint64",   8, 13)                                                                     \
    X(BOOL, "bool",     1,  9)
/* clang-format on */

enum ew_dtype {
#define EW_DTYPE_ENUM(id, name, bytes, onnx) EW_##id,
    EW_DTYPE_MAP(EW_DTYPE_ENUM)
#undef EW_DTYPE_ENUM
        EW_DTYPE_COUNT
};

const char *ew_dtype_name(enum ew_dtype t);
size_t ew_dtype_size(enum ew_dtype t);
int ew_dtype_onnx(enum ew_dtype t);                    /* TensorProto.DataType */
bool ew_dtype_from_onnx(int onnx, enum ew_dtype *out); /* false: not supported */
bool ew_dtype_is_float(enum ew_dtype t);

#define EW_MAX_RANK 8

struct ew_shape {
    int32_t rank;             /* 0: a scalar */
    int64_t dim[EW_MAX_RANK]; /* outermost first */
};

/* Number of elements; 1 for a scalar.  The shape must have passed ew_shape_check. */
int64_t ew_shape_count(const struct ew_shape *s);
/* Product of dim[from] .. dim[to - 1]. */
int64_t ew_shape_span(const struct ew_shape *s, int from, int to);
bool ew_shape_equal(const struct ew_shape *a, const struct ew_shape *b);
/* Fails on a negative dimension or more than 2^40 elements: `what` names the tensor. */
ew_err ew_shape_check(const struct ew_shape *s, const char *what);
/* "2x3x224x224", "scalar"; buf needs EW_SHAPE_TEXT bytes; returns buf. */
#define EW_SHAPE_TEXT 176
const char *ew_shape_text(const struct ew_shape *s, char *buf);
/* Resolves a negative axis; fails outside [-rank, rank). */
ew_err ew_shape_axis(int64_t axis, int rank, int *out);
/* NumPy broadcasting of two shapes. */
ew_err ew_shape_broadcast(const struct ew_shape *a, const struct ew_shape *b, struct ew_shape *out);
/* Row-major strides of s in elements for iterating over `out`: a dimension of 1 that broadcasts,
 * and a missing leading dimension, has stride 0.  `stride` has out->rank entries. */
void ew_shape_strides(const struct ew_shape *s, const struct ew_shape *out, int64_t *stride);

struct ew_tensor {
    enum ew_dtype dtype;
    struct ew_shape shape;
    void *data; /* row-major; NULL where only type and shape are known */
};

static inline int64_t ew_tensor_count(const struct ew_tensor *t)
{
    return ew_shape_count(&t->shape);
}

/* Bytes of the tensor's elements. */
size_t ew_tensor_bytes(const struct ew_tensor *t);

/* Elements [start, start + n) converted to or from double.  float16 and bfloat16 round to nearest
 * even; integers truncate towards zero and saturate. */
void ew_tensor_load(const struct ew_tensor *t, int64_t start, int64_t n, double *out);
void ew_tensor_store(struct ew_tensor *t, int64_t start, int64_t n, const double *in);
/* t[start + i] += in[i]; float32 and float64 only. */
void ew_tensor_accumulate(struct ew_tensor *t, int64_t start, int64_t n, const double *in);
/* The same through int64_t, exact for integers; stores wrap like C casts; bool becomes 0 or 1. */
void ew_tensor_load_int(const struct ew_tensor *t, int64_t start, int64_t n, int64_t *out);
void ew_tensor_store_int(struct ew_tensor *t, int64_t start, int64_t n, const int64_t *in);

/* One element. */
double ew_tensor_get(const struct ew_tensor *t, int64_t i);
int64_t ew_tensor_get_int(const struct ew_tensor *t, int64_t i);

/* A 1-D (or scalar) integer tensor as a list; fails over EW_MAX_INTS entries: `what` names it. */
ew_err ew_tensor_ints(const struct ew_tensor *t, const char *what, struct ew_ints *out);

/* IEEE half and bfloat16 conversions, round to nearest even. */
float ew_f16_to_f32(uint16_t h);
uint16_t ew_f32_to_f16(float f);
float ew_bf16_to_f32(uint16_t h);
uint16_t ew_f32_to_bf16(float f);

#endif
