/* SPDX-License-Identifier: Apache-2.0 */
/* Instantiates EW_REF_FILE for float and for double: T is the element type, ACC the accumulator
 * type, and R(name) expands to name_f32 or name_f64.  EW_REF_CALL(name, dtype, args) calls the
 * matching one.  Only for reference kernels whose inner loops are too hot for element access by
 * function. */
#define EW_REF_JOIN_(a, b) a##b
#define EW_REF_JOIN(a, b)  EW_REF_JOIN_(a, b)

#define T    float
#define ACC  float
#define R(x) EW_REF_JOIN(x, _f32)
#include EW_REF_FILE
#undef T
#undef ACC
#undef R

#define T    double
#define ACC  double
#define R(x) EW_REF_JOIN(x, _f64)
#include EW_REF_FILE
#undef T
#undef ACC
#undef R

#define EW_REF_CALL(name, dtype, ...)                                                              \
    ((dtype) == EW_F64 ? EW_REF_JOIN(name, _f64)(__VA_ARGS__)                                      \
                       : EW_REF_JOIN(name, _f32)(__VA_ARGS__))
