/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of large weights, taken out of an ONNX file before it is unpacked.
 *
 * Unpacking copies each weight as a whole, out of a mapping that is then in memory too: with one
 * layer of most weights (VGG) that is the file twice.  So a copy of the file without these bytes is
 * unpacked, and they are copied some MiB at a time, each piece of the mapping given back. */
#ifndef EW_FORMAT_ONNX_LIFT_H
#define EW_FORMAT_ONNX_LIFT_H

#include "format/onnx_file.h"

/* The raw_data of one initializer. */
struct ew_onnx_lifted {
    size_t initializer;  /* which, in the file's order */
    const uint8_t *data; /* in the mapping */
    size_t bytes;
    const uint8_t *field; /* the initializer in the graph, with its tag, to field_end */
    const uint8_t *body, *field_end;
    const uint8_t *raw, *raw_end; /* raw_data in the initializer, with its tag */
};

struct ew_onnx_lift {
    struct ew_onnx_lifted *list;
    int n, cap;
    uint8_t *rest; /* the file without them; NULL: nothing is lifted */
    size_t rest_bytes;
};

/* Fills `l`, which lifts nothing where there is nothing large, or where the file is not as
 * expected: unpacking then says what is wrong.  Release with ew_onnx_lift_fini. */
ew_err ew_onnx_lift_init(struct ew_onnx_lift *l, const void *file, size_t bytes);
void ew_onnx_lift_fini(struct ew_onnx_lift *l);

/* Puts the data into the unpacked model, in the file's arena. */
ew_err ew_onnx_lift_restore(const struct ew_onnx_lift *l, struct ew_onnx_file *f,
                            Ew__OnnxModel *model);

#endif
