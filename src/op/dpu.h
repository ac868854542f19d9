/* SPDX-License-Identifier: Apache-2.0 */
/* The integer arithmetic of AMD's DPU, bit-exact, and the operators built on it.  int8 q stands for
 * q * 2^-position (compress/pow2.h).  The rules are those of AMD's public simulators; docs/fpga.md
 * lists them. */
#ifndef EW_OP_DPU_H
#define EW_OP_DPU_H

#include "op/int_conv.h"
#include "op/pooling.h"

/* v / 2^shift, rounded half up; a negative shift multiplies. */
int64_t ew_dpu_shift(int64_t v, int shift);
/* The same, clamped to [lo, hi] and saturated to int8. */
int8_t ew_dpu_store(int64_t v, int shift, const struct ew_quant_clamp *clamp);

/* The mean of n elements is sum * factor / 2^shift.  Some sizes are hard-wired; others use the
 * closest factor with a shift under ceil(log2(128 n)). */
struct ew_dpu_mean {
    int factor, shift;
};
struct ew_dpu_mean ew_dpu_mean(int64_t height, int64_t width);

/* a at position `from` as an operand of the adder: at the coarser position `least` with two guard
 * bits, truncated. */
#define EW_DPU_GUARD 2
int64_t ew_dpu_align(int64_t a, int from, int least);

/* Hard sigmoid, from position `from` to position `to`. */
int8_t ew_dpu_hard_sigmoid(int x, int from, int to);
/* x * hard_sigmoid(x), with the sigmoid rounded to position 7. */
#define EW_DPU_GATE_POSITION 7
int8_t ew_dpu_hard_swish(int x, int from, int to);
/* Leaky relu: negative numbers times 26 / 256, as a multiplication by 26 and 8 more positions. */
#define EW_DPU_LEAKY       26
#define EW_DPU_LEAKY_SHIFT 8

/* Why the DPU does not support a layer, as text to follow its name; NULL: supported. */
const char *ew_dpu_refuses_conv(const struct ew_conv_sizes *s);
const char *ew_dpu_refuses_dense(int64_t depth, int64_t filters);

/* dpu_conv: y = store((sum + bias * 2^bias_shift) / 2^shift), with the activation before rounding.
 * Rounding preserves integers, so clamping to the integer bounds of relu and relu6 may follow it.
 */
enum ew_dpu_conv_in { EW_DPU_CONV_X, EW_DPU_CONV_W, EW_DPU_CONV_BIAS, EW_DPU_CONV_INPUTS };

struct ew_dpu_conv_attr {
    struct ew_int_conv_attr conv; /* first: what int_conv.c reads */
    struct ew_quant_clamp clamp;
    int64_t shift, bias_shift;
    bool leaky; /* negative sums times 26 / 256 */
};

/* dpu_add and dpu_mul, of tensors of equal shape, or with one value per channel in the second. */
struct ew_dpu_eltwise_attr {
    struct ew_quant_clamp clamp;
    int64_t a, b, y; /* positions */
};

/* The element of in[1] that broadcasts to element i of the output. */
int64_t ew_dpu_second(const struct ew_call *c, int64_t i);
/* Infer hook, attributes and cases of both. */
ew_err ew_dpu_eltwise_infer(const struct ew_call *c);
#define EW_DPU_ELTWISE_CASES 5
extern const struct ew_field ew_dpu_eltwise_attrs[];
extern const struct ew_op_case ew_dpu_eltwise_cases[EW_DPU_ELTWISE_CASES];

/* Common fields of their descriptors. */
#define EW_DPU_ELTWISE_OP                                                                          \
    .min_in = 2, .max_in = 2, .attr_size = sizeof(struct ew_dpu_eltwise_attr),                     \
    .attrs = ew_dpu_eltwise_attrs, .infer = ew_dpu_eltwise_infer,                                  \
    EW_OP_CASES(ew_dpu_eltwise_cases)

/* dpu_average_pool: y = store(sum * factor / 2^(mean.shift + shift)); padding counts. */
struct ew_dpu_pool_attr {
    struct ew_pool_attr pool; /* first: what pooling.c reads */
    int64_t shift;            /* position of x - position of y */
};

/* dpu_input: float32 to int8, rounded half away from zero. */
struct ew_dpu_input_attr {
    int64_t position;
};

/* clang-format off */
#define EW_DPU_POSITION_FIELD(owner, member, text)                                                 \
    {.name = #member, .type = EW_FIELD_INT, .offset = offsetof(owner, member), .min = -64,         \
     .max = 64, .help = text}
/* clang-format on */

#endif
