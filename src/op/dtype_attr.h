/* SPDX-License-Identifier: Apache-2.0 */
/* Element types as attributes: names on our side, TensorProto.DataType numbers in ONNX. */
#ifndef EW_OP_DTYPE_ATTR_H
#define EW_OP_DTYPE_ATTR_H

#include "graph/onnx.h"

/* Choices of an EW_FIELD_ENUM field that holds an enum ew_dtype. */
static const char *const ew_dtype_choices[] = {
#define EW_DTYPE_NAME(id, name, bytes, onnx) name,
    EW_DTYPE_MAP(EW_DTYPE_NAME)
#undef EW_DTYPE_NAME
        NULL};

/* The type in the ONNX attribute `name`, or `def` if absent. */
static inline ew_err ew_dtype_attr(const struct ew_onnx_node *n, const char *name,
                                   enum ew_dtype def, enum ew_dtype *out)
{
    const int64_t number = ew_onnx_int(n, name, ew_dtype_onnx(def));
    EW_CHECK(number > 0 && number < 1000 && ew_dtype_from_onnx((int)number, out),
             EW_ERR_UNSUPPORTED, "%s is element type %lld, which is not supported", name,
             (long long)number);
    return EW_OK;
}

#endif
