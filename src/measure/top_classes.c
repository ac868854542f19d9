/* SPDX-License-Identifier: Apache-2.0 */
/* The top classes of a row of scores. */
#include "measure/top_classes.h"

#include <math.h>
#include <string.h>

/* Whether the tensor is one row of at least two scores: [K], [1, K], [1, K, 1, 1]. */
static bool is_scores(const struct ew_tensor *t)
{
    const int64_t n = ew_tensor_count(t);
    int wide = 0;
    for (int i = 0; i < t->shape.rank; i++)
        wide += t->shape.dim[i] > 1;
    return n > 1 && wide == 1 && (t->shape.rank == 1 || t->shape.dim[0] == 1) &&
           ew_dtype_is_float(t->dtype);
}

/* Whether the scores are probabilities: they add up to one. */
static bool is_probabilities(const struct ew_tensor *t)
{
    double sum = 0;
    for (int64_t i = 0; i < ew_tensor_count(t); i++) {
        const double v = ew_tensor_get(t, i);
        if (!(v >= 0 && v <= 1.0001))
            return false;
        sum += v;
    }
    return fabs(sum - 1) < 1e-3;
}

static bool has_nan(const struct ew_tensor *t)
{
    for (int64_t i = 0; i < ew_tensor_count(t); i++)
        if (isnan(ew_tensor_get(t, i)))
            return true;
    return false;
}

int ew_top_classes(const struct ew_tensor *t, int want, struct ew_top_class *out)
{
    const int64_t n = is_scores(t) && !has_nan(t) ? ew_tensor_count(t) : 0;
    int found = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = ew_tensor_get(t, i);
        int at = found < want ? found : want;
        while (at > 0 && v > out[at - 1].value)
            at--;
        if (at >= want)
            continue;
        found = found < want ? found + 1 : want;
        memmove(out + at + 1, out + at, (size_t)(found - 1 - at) * sizeof(*out));
        out[at] = (struct ew_top_class){.index = i, .value = v};
    }
    if (found == 0)
        return 0;
    const bool already = is_probabilities(t);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(ew_tensor_get(t, i) - out[0].value);
    for (int i = 0; i < found; i++)
        out[i].share = already ? out[i].value : exp(out[i].value - out[0].value) / sum;
    return found;
}
