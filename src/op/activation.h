/* SPDX-License-Identifier: Apache-2.0 */
/* The activations of epilogues.  Kernels include this and no other header of operators, so that
 * changes to those do not recompile all kernels. */
#ifndef EW_OP_ACTIVATION_H
#define EW_OP_ACTIVATION_H

/* clang-format off */
/* id, name, meaning of lo and hi */
#define EW_ACT_MAP(X)                                                                              \
    X(NONE,         "none")                                                                        \
    X(RELU,         "relu")                                                                        \
    X(CLIP,         "clip")         /* to [lo, hi] */                                              \
    X(LEAKY,        "leaky_relu")   /* slope lo below 0 */                                         \
    X(HARD_SWISH,   "hard_swish")                                                                  \
    X(HARD_SIGMOID, "hard_sigmoid") /* clip(x * lo + hi, 0, 1) */                                  \
    X(SILU,         "silu")                                                                        \
    X(SIGMOID,      "sigmoid")                                                                     \
    X(TANH,         "tanh")                                                                        \
    X(GELU,         "gelu")         /* exact, with erf */
/* clang-format on */

enum ew_act {
#define EW_ACT_ENUM(id, name) EW_ACT_##id,
    EW_ACT_MAP(EW_ACT_ENUM)
#undef EW_ACT_ENUM
        EW_ACT_COUNT
};

#endif
