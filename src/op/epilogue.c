/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of fused activations and additions. */
#include "op/epilogue.h"

#include <math.h>

#define CHUNK 256

const char *const ew_act_names[] = {
#define EW_ACT_NAME(id, name) name,
    EW_ACT_MAP(EW_ACT_NAME)
#undef EW_ACT_NAME
        NULL};

double ew_act_apply(const struct ew_epilogue_attr *e, double x)
{
    switch ((enum ew_act)e->act) {
    case EW_ACT_RELU:
        return fmax(x, 0);
    case EW_ACT_CLIP:
        return fmin(fmax(x, e->lo), e->hi);
    case EW_ACT_LEAKY:
        return x < 0 ? x * e->lo : x;
    case EW_ACT_HARD_SWISH:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case EW_ACT_HARD_SIGMOID:
        return fmin(fmax(x * e->lo + e->hi, 0), 1);
    case EW_ACT_SILU:
        return x / (1 + exp(-x));
    case EW_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case EW_ACT_TANH:
        return tanh(x);
    case EW_ACT_NONE:
    case EW_ACT_COUNT:
        break;
    }
    return x;
}

void ew_epilogue_run(const struct ew_epilogue_attr *e, const struct ew_tensor *add,
                     struct ew_tensor *y)
{
    double v[CHUNK], a[CHUNK] = {0};
    if (e->act == EW_ACT_NONE && !add)
        return;
    const int64_t count = ew_tensor_count(y);
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, count - at);
        ew_tensor_load(y, at, n, v);
        if (add)
            ew_tensor_load(add, at, n, a);
        for (int64_t i = 0; i < n; i++)
            v[i] = e->add_after ? ew_act_apply(e, v[i]) + a[i] : ew_act_apply(e, v[i] + a[i]);
        ew_tensor_store(y, at, n, v);
    }
}

ew_err ew_epilogue_check_none(const struct ew_epilogue_attr *e, const struct ew_tensor *add)
{
    EW_CHECK(e->act == EW_ACT_NONE && !add, EW_ERR_UNSUPPORTED,
             "a fused activation or addition cannot be trained through");
    return EW_OK;
}
