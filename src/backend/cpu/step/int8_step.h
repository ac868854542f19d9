/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of 8-bit convolutions and dense layers: from an operator's inputs to the kernels. */
#ifndef EW_BACKEND_CPU_STEP_INT8_STEP_H
#define EW_BACKEND_CPU_STEP_INT8_STEP_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "op/qlinear.h"

/* One layer.  Its inputs are numbered as in enum ew_qconv_in but for these three, which
 * qlinear_gemm has in another order; inputs beyond the call's are absent. */
struct ew_qlayer {
    int y_scale, y_zero, bias;
    struct ew_conv_shape shape;
    struct ew_quant_clamp clamp;
    bool by_row; /* weights are [I, O] */
};

/* The type of in[like] with zero point in[zero], which may be absent. */
struct ew_qbyte ew_qbyte_of(const struct ew_call *c, int like, int zero);
/* The clamp in the kernels' uint8 domain, for outputs of type y. */
void ew_qclamp_of(const struct ew_quant_clamp *clamp, const struct ew_qbyte *y, int32_t *lo,
                  int32_t *hi);
/* True if in[slot] is constant or absent. */
bool ew_qknown(const struct ew_call *c, int slot);

enum ew_qlayer_method {
    EW_QLAYER_GEMM,             /* any shape */
    EW_QLAYER_DEPTHWISE,        /* depthwise */
    EW_QLAYER_DEPTHWISE_COLUMN, /* the common depthwise cases, by columns of the window */
    EW_QLAYER_GROUPED,          /* groups of few channels */
    EW_QLAYER_WINOGRAD,         /* 3x3 with stride 1 */
    EW_QLAYER_METHODS
};

/* True if supported: weights and parameters are constant, filters symmetric. */
bool ew_qlayer_fits(const struct ew_call *c, const struct ew_qlayer *l);
/* True if the output is 8-bit, without residual, and all ratios are below 1. */
bool ew_qlayer_end_is_plain(const struct ew_call *c, const struct ew_qlayer *l);
/* A kernel without prepare and pack, which the caller sets to functions that call the next two. */
struct ew_kernel ew_qlayer_kernel(const struct ew_call *c, const struct ew_qlayer *l,
                                  enum ew_qlayer_method m);
ew_err ew_qlayer_prepare(const struct ew_call *c, const struct ew_qlayer *l,
                         enum ew_qlayer_method m);
ew_err ew_qlayer_pack(const struct ew_call *c, const struct ew_qlayer *l);

#endif
