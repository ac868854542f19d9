/* SPDX-License-Identifier: Apache-2.0 */
/* Large weights are cut out of an ONNX file before it is unpacked.
 *
 * Unpacking copies each weight from the mapping, which is in memory too: for a network whose
 * weights are mostly one layer (VGG) that is twice the file.  So a copy of the file without these
 * bytes is unpacked, and the weights are copied a few MiB at a time, releasing the pages behind. */
#ifndef EW_FORMAT_ONNX_LARGE_WEIGHTS_H
#define EW_FORMAT_ONNX_LARGE_WEIGHTS_H

#include "format/onnx_file.h"

/* The raw_data of one initializer. */
struct ew_onnx_large_weight {
    size_t initializer;  /* index in the file */
    const uint8_t *data; /* in the mapping */
    size_t bytes;
    const uint8_t *field; /* the initializer's field in the graph, with its tag, up to field_end */
    const uint8_t *body, *field_end;
    const uint8_t *raw, *raw_end; /* the raw_data field in the initializer, with its tag */
};

struct ew_onnx_large_weights {
    struct ew_onnx_large_weight *list;
    int n, cap;
    uint8_t *rest; /* the file without the weights; NULL: nothing was cut */
    size_t rest_bytes;
};

/* Fills `l`; cuts nothing if there are no large weights or the file is malformed, which unpacking
 * then reports.  Free with ew_onnx_large_weights_fini. */
ew_err ew_onnx_large_weights_find(struct ew_onnx_large_weights *l, const void *file, size_t bytes);
void ew_onnx_large_weights_fini(struct ew_onnx_large_weights *l);

/* Copies the data into the unpacked model, in the file's arena. */
ew_err ew_onnx_large_weights_copy(const struct ew_onnx_large_weights *l, struct ew_onnx_file *f,
                                  Ew__OnnxModel *model);

#endif
