/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, shapes, and element access by value. */
#include "graph/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_ELEMENTS ((int64_t)1 << 40)

static const struct {
    const char *name;
    size_t bytes;
    int onnx;
} dtypes[] = {
#define EW_DTYPE_ROW(id, name, bytes, onnx) {name, bytes, onnx},
    EW_DTYPE_MAP(EW_DTYPE_ROW)
#undef EW_DTYPE_ROW
};

const char *ew_dtype_name(enum ew_dtype t)
{
    return dtypes[t].name;
}

size_t ew_dtype_size(enum ew_dtype t)
{
    return dtypes[t].bytes;
}

int ew_dtype_onnx(enum ew_dtype t)
{
    return dtypes[t].onnx;
}

bool ew_dtype_from_onnx(int onnx, enum ew_dtype *out)
{
    for (int i = 0; i < EW_DTYPE_COUNT; i++) {
        if (dtypes[i].onnx == onnx) {
            *out = (enum ew_dtype)i;
            return true;
        }
    }
    return false;
}

bool ew_dtype_is_float(enum ew_dtype t)
{
    return t == EW_F32 || t == EW_F64 || t == EW_F16 || t == EW_BF16;
}

/* ---- Shapes ---- */

int64_t ew_shape_span(const struct ew_shape *s, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= s->dim[i];
    return n;
}

int64_t ew_shape_count(const struct ew_shape *s)
{
    return ew_shape_span(s, 0, s->rank);
}

bool ew_shape_equal(const struct ew_shape *a, const struct ew_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

ew_err ew_shape_check(const struct ew_shape *s, const char *what)
{
    EW_CHECK(s->rank >= 0 && s->rank <= EW_MAX_RANK, EW_ERR_SHAPE,
             "%s: has %d dimensions, at most %d are supported", what, s->rank, EW_MAX_RANK);
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++) {
        EW_CHECK(s->dim[i] >= 0, EW_ERR_SHAPE, "%s: dimension %d is %lld", what, i,
                 (long long)s->dim[i]);
        /* A dimension of 0 makes the product 0, yet the others must not be absurd either. */
        const int64_t d = ew_max_i64(s->dim[i], 1);
        EW_CHECK(!__builtin_mul_overflow(n, d, &n) && n <= MAX_ELEMENTS, EW_ERR_LIMIT,
                 "%s: has more than 2^40 elements", what);
    }
    return EW_OK;
}

const char *ew_shape_text(const struct ew_shape *s, char *buf)
{
    if (s->rank == 0)
        return strcpy(buf, "scalar");
    size_t used = 0;
    for (int i = 0; i < s->rank; i++)
        used += (size_t)snprintf(buf + used, EW_SHAPE_TEXT - used, "%s%lld", i ? "x" : "",
                                 (long long)s->dim[i]);
    return buf;
}

ew_err ew_shape_axis(int64_t axis, int rank, int *out)
{
    EW_CHECK(axis >= -rank && axis < rank, EW_ERR_SHAPE, "axis %lld is outside a rank of %d",
             (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return EW_OK;
}

ew_err ew_shape_broadcast(const struct ew_shape *a, const struct ew_shape *b, struct ew_shape *out)
{
    const struct ew_shape *big = a->rank >= b->rank ? a : b;
    const struct ew_shape *small = big == a ? b : a;
    const int shift = big->rank - small->rank;
    struct ew_shape r = *big;
    for (int i = 0; i < small->rank; i++) {
        const int64_t x = big->dim[i + shift], y = small->dim[i];
        if (x != y && x != 1 && y != 1) {
            char ta[EW_SHAPE_TEXT], tb[EW_SHAPE_TEXT];
            return ew_fail(EW_ERR_SHAPE, "shapes %s and %s do not broadcast", ew_shape_text(a, ta),
                           ew_shape_text(b, tb));
        }
        r.dim[i + shift] = x == 1 ? y : x;
    }
    *out = r;
    return EW_OK;
}

void ew_shape_strides(const struct ew_shape *s, const struct ew_shape *out, int64_t *stride)
{
    const int shift = out->rank - s->rank;
    int64_t step = 1;
    for (int i = out->rank - 1; i >= 0; i--) {
        const int64_t d = i >= shift ? s->dim[i - shift] : 1;
        stride[i] = d == 1 && out->dim[i] != 1 ? 0 : step;
        if (i < shift)
            stride[i] = 0;
        step *= d;
    }
}

size_t ew_tensor_bytes(const struct ew_tensor *t)
{
    return (size_t)ew_tensor_count(t) * ew_dtype_size(t->dtype);
}

/* ---- 16-bit floats ---- */

float ew_f16_to_f32(uint16_t h)
{
    const int exponent = (h >> 10) & 31;
    const int mantissa = h & 1023;
    float v;
    if (exponent == 0)
        v = ldexpf((float)mantissa, -24);
    else if (exponent == 31)
        v = mantissa ? NAN : INFINITY;
    else
        v = ldexpf((float)(mantissa + 1024), exponent - 25);
    return h & 0x8000 ? -v : v;
}

uint16_t ew_f32_to_f16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    const uint16_t sign = (uint16_t)((u >> 16) & 0x8000);
    u &= 0x7fffffff;
    if (u > 0x7f800000)
        return sign | 0x7e00;
    if (u >= 0x477ff000) /* rounds to 65536 or more */
        return sign | 0x7c00;
    if (u < 0x38800000) { /* below 2^-14: subnormal, in units of 2^-24 */
        float a;
        memcpy(&a, &u, sizeof(a));
        return sign | (uint16_t)lrintf(ldexpf(a, 24));
    }
    u += 0xfff + ((u >> 13) & 1); /* round to nearest even */
    return (uint16_t)(sign | ((u - 0x38000000) >> 13));
}

float ew_bf16_to_f32(uint16_t h)
{
    const uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

uint16_t ew_f32_to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

/* ---- Element access ---- */

/* A double to an integer type: truncated, saturated, NaN to 0. */
static int64_t saturate(double v, double lo, double hi, int64_t lo_int, int64_t hi_int)
{
    if (isnan(v))
        return 0;
    if (v <= lo)
        return lo_int;
    if (v >= hi)
        return hi_int;
    return (int64_t)v;
}

static uint64_t saturate_u64(double v)
{
    if (!(v > 0))
        return 0;
    return v >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)v;
}

#define SATURATE(v, lo, hi) saturate(v, (double)(lo), (double)(hi), (int64_t)(lo), (int64_t)(hi))

/* One loop over `n` elements of C type T at t->data + start; `expr` sees p[i] and i. */
#define EACH(T, expr)                                                                              \
    {                                                                                              \
        T *p = (T *)t->data + start;                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            expr;                                                                                  \
        }                                                                                          \
    }                                                                                              \
    break

void ew_tensor_load(const struct ew_tensor *t, int64_t start, int64_t n, double *out)
{
    /* clang-format off */
    switch (t->dtype) {
    case EW_F32:  EACH(const float, out[i] = (double)p[i]);
    case EW_F64:  EACH(const double, out[i] = p[i]);
    case EW_F16:  EACH(const uint16_t, out[i] = (double)ew_f16_to_f32(p[i]));
    case EW_BF16: EACH(const uint16_t, out[i] = (double)ew_bf16_to_f32(p[i]));
    case EW_S8:   EACH(const int8_t, out[i] = p[i]);
    case EW_U8:   EACH(const uint8_t, out[i] = p[i]);
    case EW_S16:  EACH(const int16_t, out[i] = p[i]);
    case EW_U16:  EACH(const uint16_t, out[i] = p[i]);
    case EW_S32:  EACH(const int32_t, out[i] = p[i]);
    case EW_U32:  EACH(const uint32_t, out[i] = p[i]);
    case EW_S64:  EACH(const int64_t, out[i] = (double)p[i]);
    case EW_U64:  EACH(const uint64_t, out[i] = (double)p[i]);
    case EW_BOOL: EACH(const uint8_t, out[i] = p[i] != 0);
    case EW_DTYPE_COUNT: break;
    }
    /* clang-format on */
}

void ew_tensor_store(struct ew_tensor *t, int64_t start, int64_t n, const double *in)
{
    /* clang-format off */
    switch (t->dtype) {
    case EW_F32:  EACH(float, p[i] = (float)in[i]);
    case EW_F64:  EACH(double, p[i] = in[i]);
    case EW_F16:  EACH(uint16_t, p[i] = ew_f32_to_f16((float)in[i]));
    case EW_BF16: EACH(uint16_t, p[i] = ew_f32_to_bf16((float)in[i]));
    case EW_S8:   EACH(int8_t, p[i] = (int8_t)SATURATE(in[i], INT8_MIN, INT8_MAX));
    case EW_U8:   EACH(uint8_t, p[i] = (uint8_t)SATURATE(in[i], 0, UINT8_MAX));
    case EW_S16:  EACH(int16_t, p[i] = (int16_t)SATURATE(in[i], INT16_MIN, INT16_MAX));
    case EW_U16:  EACH(uint16_t, p[i] = (uint16_t)SATURATE(in[i], 0, UINT16_MAX));
    case EW_S32:  EACH(int32_t, p[i] = (int32_t)SATURATE(in[i], INT32_MIN, INT32_MAX));
    case EW_U32:  EACH(uint32_t, p[i] = (uint32_t)SATURATE(in[i], 0, UINT32_MAX));
    case EW_S64:  EACH(int64_t, p[i] = SATURATE(in[i], INT64_MIN, INT64_MAX));
    case EW_U64:  EACH(uint64_t, p[i] = saturate_u64(in[i]));
    case EW_BOOL: EACH(uint8_t, p[i] = in[i] < 0 || in[i] > 0 || isnan(in[i]));
    case EW_DTYPE_COUNT: break;
    }
    /* clang-format on */
}

void ew_tensor_accumulate(struct ew_tensor *t, int64_t start, int64_t n, const double *in)
{
    EW_ASSERT(t->dtype == EW_F32 || t->dtype == EW_F64);
    /* clang-format off */
    switch (t->dtype) {
    case EW_F32: EACH(float, p[i] = (float)((double)p[i] + in[i]));
    case EW_F64: EACH(double, p[i] += in[i]);
    default: break;
    }
    /* clang-format on */
}

void ew_tensor_load_int(const struct ew_tensor *t, int64_t start, int64_t n, int64_t *out)
{
    /* clang-format off */
    switch (t->dtype) {
    case EW_F32:  EACH(const float, out[i] = SATURATE((double)p[i], INT64_MIN, INT64_MAX));
    case EW_F64:  EACH(const double, out[i] = SATURATE(p[i], INT64_MIN, INT64_MAX));
    case EW_F16:  EACH(const uint16_t, out[i] = SATURATE((double)ew_f16_to_f32(p[i]), INT64_MIN, INT64_MAX));
    case EW_BF16: EACH(const uint16_t, out[i] = SATURATE((double)ew_bf16_to_f32(p[i]), INT64_MIN, INT64_MAX));
    case EW_S8:   EACH(const int8_t, out[i] = p[i]);
    case EW_U8:   EACH(const uint8_t, out[i] = p[i]);
    case EW_S16:  EACH(const int16_t, out[i] = p[i]);
    case EW_U16:  EACH(const uint16_t, out[i] = p[i]);
    case EW_S32:  EACH(const int32_t, out[i] = p[i]);
    case EW_U32:  EACH(const uint32_t, out[i] = p[i]);
    case EW_S64:  EACH(const int64_t, out[i] = p[i]);
    case EW_U64:  EACH(const uint64_t, out[i] = (int64_t)p[i]);
    case EW_BOOL: EACH(const uint8_t, out[i] = p[i] != 0);
    case EW_DTYPE_COUNT: break;
    }
    /* clang-format on */
}

void ew_tensor_store_int(struct ew_tensor *t, int64_t start, int64_t n, const int64_t *in)
{
    /* clang-format off */
    switch (t->dtype) {
    case EW_F32:  EACH(float, p[i] = (float)in[i]);
    case EW_F64:  EACH(double, p[i] = (double)in[i]);
    case EW_F16:  EACH(uint16_t, p[i] = ew_f32_to_f16((float)in[i]));
    case EW_BF16: EACH(uint16_t, p[i] = ew_f32_to_bf16((float)in[i]));
    case EW_S8:   EACH(int8_t, p[i] = (int8_t)in[i]);
    case EW_U8:   EACH(uint8_t, p[i] = (uint8_t)in[i]);
    case EW_S16:  EACH(int16_t, p[i] = (int16_t)in[i]);
    case EW_U16:  EACH(uint16_t, p[i] = (uint16_t)in[i]);
    case EW_S32:  EACH(int32_t, p[i] = (int32_t)in[i]);
    case EW_U32:  EACH(uint32_t, p[i] = (uint32_t)in[i]);
    case EW_S64:  EACH(int64_t, p[i] = in[i]);
    case EW_U64:  EACH(uint64_t, p[i] = (uint64_t)in[i]);
    case EW_BOOL: EACH(uint8_t, p[i] = in[i] != 0);
    case EW_DTYPE_COUNT: break;
    }
    /* clang-format on */
}

double ew_tensor_get(const struct ew_tensor *t, int64_t i)
{
    double v = 0;
    ew_tensor_load(t, i, 1, &v);
    return v;
}

int64_t ew_tensor_get_int(const struct ew_tensor *t, int64_t i)
{
    int64_t v = 0;
    ew_tensor_load_int(t, i, 1, &v);
    return v;
}

ew_err ew_tensor_ints(const struct ew_tensor *t, const char *what, struct ew_ints *out)
{
    EW_CHECK(t->data, EW_ERR_UNSUPPORTED, "%s: its value must be known before the run", what);
    EW_CHECK(t->shape.rank <= 1 && !ew_dtype_is_float(t->dtype), EW_ERR_TYPE,
             "%s: must be a list of whole numbers", what);
    const int64_t n = ew_tensor_count(t);
    EW_CHECK(n <= EW_MAX_INTS, EW_ERR_LIMIT, "%s: has %lld entries, at most %d are supported", what,
             (long long)n, EW_MAX_INTS);
    *out = (struct ew_ints){.n = (int32_t)n};
    ew_tensor_load_int(t, 0, n, out->v);
    return EW_OK;
}
