/* SPDX-License-Identifier: Apache-2.0 */
/* Geometry of sliding windows: padding, output sizes, and which elements lie inside. */
#include "op/window.h"

#define DIMS EW_WINDOW_DIMS

const char *const ew_auto_pad_names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL};

ew_err ew_spatial_check(const struct ew_tensor *x)
{
    const int rank = x->shape.rank;
    char text[EW_SHAPE_TEXT];
    EW_CHECK(rank >= 3 && rank <= DIMS + 2, EW_ERR_SHAPE,
             "the input is %s: it needs a batch, 1 to %d spatial dimensions and channels",
             ew_shape_text(&x->shape, text), DIMS);
    for (int i = 1; i < rank - 1; i++)
        EW_CHECK(x->shape.dim[i] > 0, EW_ERR_SHAPE, "the input is %s: a spatial dimension is empty",
                 ew_shape_text(&x->shape, text));
    return EW_OK;
}

ew_err ew_float_check(const struct ew_tensor *t, const char *what)
{
    EW_CHECK(t->dtype == EW_F32 || t->dtype == EW_F64, EW_ERR_TYPE,
             "%s is %s: only float32 and float64 are supported", what, ew_dtype_name(t->dtype));
    return EW_OK;
}

ew_err ew_window_list(const struct ew_ints *list, int n, int64_t least, const char *what)
{
    EW_CHECK(list->n == 0 || list->n == n, EW_ERR_SHAPE, "%s has %d entries, %d are needed", what,
             (int)list->n, n);
    for (int i = 0; i < list->n; i++)
        EW_CHECK(list->v[i] >= least && list->v[i] <= INT32_MAX, EW_ERR_SHAPE,
                 "%s has an entry of %lld", what, (long long)list->v[i]);
    return EW_OK;
}

/* Sizes of x and the defaults of everything else. */
static void begin(const struct ew_shape *x, struct ew_window *w)
{
    *w = (struct ew_window){.batch = x->dim[0], .channels = x->dim[x->rank - 1]};
    for (int d = 0; d < DIMS; d++) {
        const int i = d - (DIMS - (x->rank - 2)); /* spatial dimension of x, or below 0 */
        w->in[d] = i < 0 ? 1 : x->dim[1 + i];
        w->out[d] = w->kernel[d] = w->stride[d] = w->dilation[d] = 1;
    }
}

/* Padding and output size of dimension d, whose kernel, stride and dilation are set. */
static ew_err resolve_dim(enum ew_auto_pad auto_pad, bool ceil_mode, int d, struct ew_window *w)
{
    const int64_t in = w->in[d], stride = w->stride[d];
    const int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
    if (auto_pad == EW_AUTO_PAD_VALID)
        w->pad[d] = w->pad_end[d] = 0;
    if (auto_pad == EW_AUTO_PAD_SAME_UPPER || auto_pad == EW_AUTO_PAD_SAME_LOWER) {
        w->out[d] = (in + stride - 1) / stride;
        const int64_t total = ew_max_i64((w->out[d] - 1) * stride + reach - in, 0);
        w->pad[d] = (total + (auto_pad == EW_AUTO_PAD_SAME_LOWER)) / 2;
        w->pad_end[d] = total - w->pad[d];
        return EW_OK;
    }
    const int64_t room = in + w->pad[d] + w->pad_end[d] - reach;
    EW_CHECK(room >= 0, EW_ERR_SHAPE,
             "a window that reaches over %lld does not fit an input of %lld with padding %lld and "
             "%lld",
             (long long)reach, (long long)in, (long long)w->pad[d], (long long)w->pad_end[d]);
    w->out[d] = room / stride + 1;
    /* Rounded up, unless the last window would start beyond the input and its first padding. */
    if (ceil_mode && room % stride != 0 && w->out[d] * stride < in + w->pad[d])
        w->out[d]++;
    return EW_OK;
}

ew_err ew_window_fill(const struct ew_window_attr *a, const struct ew_shape *x,
                      const int64_t *kernel, struct ew_window *out)
{
    const int n = x->rank - 2;
    EW_TRY(ew_window_list(&a->kernel, n, 1, "kernel"));
    EW_TRY(ew_window_list(&a->stride, n, 1, "stride"));
    EW_TRY(ew_window_list(&a->dilation, n, 1, "dilation"));
    EW_TRY(ew_window_list(&a->pad, 2 * n, 0, "pad"));
    EW_CHECK(a->auto_pad >= EW_AUTO_PAD_NOTSET && a->auto_pad <= EW_AUTO_PAD_VALID, EW_ERR_ARG,
             "auto_pad is %d", a->auto_pad);
    begin(x, out);
    for (int i = 0; i < n; i++) {
        const int d = DIMS - n + i;
        EW_CHECK(kernel[i] >= 1 && kernel[i] <= INT32_MAX, EW_ERR_SHAPE,
                 "the window has a size of %lld", (long long)kernel[i]);
        EW_CHECK(a->kernel.n == 0 || a->kernel.v[i] == kernel[i], EW_ERR_SHAPE,
                 "kernel is %lld, the filters have %lld", (long long)a->kernel.v[i],
                 (long long)kernel[i]);
        out->kernel[d] = kernel[i];
        out->stride[d] = a->stride.n ? a->stride.v[i] : 1;
        out->dilation[d] = a->dilation.n ? a->dilation.v[i] : 1;
        out->pad[d] = a->pad.n ? a->pad.v[i] : 0;
        out->pad_end[d] = a->pad.n ? a->pad.v[n + i] : 0;
    }
    return EW_OK;
}

ew_err ew_window_resolve(const struct ew_window_attr *a, const struct ew_shape *x,
                         const int64_t *kernel, bool ceil_mode, struct ew_window *out)
{
    EW_TRY(ew_window_fill(a, x, kernel, out));
    for (int d = DIMS - (x->rank - 2); d < DIMS; d++)
        EW_TRY(resolve_dim((enum ew_auto_pad)a->auto_pad, ceil_mode, d, out));
    return EW_OK;
}

void ew_window_global(const struct ew_shape *x, struct ew_window *out)
{
    begin(x, out);
    for (int d = 0; d < DIMS; d++)
        out->kernel[d] = out->in[d];
}

ew_err ew_window_adaptive(const struct ew_shape *x, const struct ew_ints *size,
                          struct ew_window *out)
{
    const int n = x->rank - 2;
    EW_CHECK(size->n == n, EW_ERR_SHAPE, "size has %d entries, %d are needed", (int)size->n, n);
    EW_TRY(ew_window_list(size, n, 1, "size"));
    begin(x, out);
    out->adaptive = true;
    for (int i = 0; i < n; i++) {
        const int d = DIMS - n + i;
        int64_t product;
        EW_CHECK(!__builtin_mul_overflow(out->in[d], size->v[i] + 1, &product), EW_ERR_LIMIT,
                 "size %lld is too large for an input of %lld", (long long)size->v[i],
                 (long long)out->in[d]);
        out->out[d] = size->v[i];
        /* The longest window: an uneven share may begin and end within one element more. */
        out->kernel[d] = out->in[d] / size->v[i] + (out->in[d] % size->v[i] ? 2 : 0);
    }
    return EW_OK;
}

void ew_window_shape(const struct ew_window *w, int rank, int64_t channels, struct ew_shape *out)
{
    out->rank = rank;
    out->dim[0] = w->batch;
    for (int i = 0; i < rank - 2; i++)
        out->dim[1 + i] = w->out[DIMS - (rank - 2) + i];
    out->dim[rank - 1] = channels;
}

int64_t ew_window_outs(const struct ew_window *w)
{
    return ew_cost_mul(ew_cost_mul(w->out[0], w->out[1]), w->out[2]);
}

int64_t ew_window_taps(const struct ew_window *w)
{
    return ew_cost_mul(ew_cost_mul(w->kernel[0], w->kernel[1]), w->kernel[2]);
}

int64_t ew_cost_mul(int64_t a, int64_t b)
{
    const int64_t most = (int64_t)1 << 56;
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) || r > most ? most : r;
}

/* ---- Walking ---- */

/* Where window o begins in dimension d (before 0 in the padding), and its elements [first, end)
 * that lie inside the input. */
static int64_t span(const struct ew_window *w, int d, int64_t o, int64_t *first, int64_t *end)
{
    *first = 0;
    if (w->adaptive) {
        const int64_t start = o * w->in[d] / w->out[d];
        *end = ((o + 1) * w->in[d] + w->out[d] - 1) / w->out[d] - start;
        return start;
    }
    const int64_t start = o * w->stride[d] - w->pad[d], step = w->dilation[d];
    if (start < 0)
        *first = (-start + step - 1) / step;
    *end = w->in[d] <= start ? 0 : (w->in[d] - start + step - 1) / step;
    *end = ew_min_i64(*end, w->kernel[d]);
    return start;
}

static void set_row(const struct ew_window *w, struct ew_tap *t)
{
    t->row = t->image;
    t->index = 0;
    for (int d = 0; d < DIMS; d++) {
        t->row = t->row * w->in[d] + t->start[d] + t->k[d] * w->dilation[d];
        t->index = t->index * w->kernel[d] + t->k[d];
    }
}

bool ew_tap_first(const struct ew_window *w, int64_t image, const int64_t *o, struct ew_tap *t)
{
    bool some = true;
    t->image = image;
    for (int d = 0; d < DIMS; d++) {
        t->start[d] = span(w, d, o[d], &t->first[d], &t->end[d]);
        t->k[d] = t->first[d];
        some = some && t->first[d] < t->end[d];
    }
    set_row(w, t);
    return some;
}

bool ew_tap_next(const struct ew_window *w, struct ew_tap *t)
{
    for (int d = DIMS - 1; d >= 0; d--) {
        if (++t->k[d] < t->end[d]) {
            set_row(w, t);
            return true;
        }
        t->k[d] = t->first[d];
    }
    return false;
}

int64_t ew_tap_count(const struct ew_window *w, const int64_t *o, bool padded)
{
    int64_t count = 1;
    for (int d = 0; d < DIMS; d++) {
        int64_t first, end;
        const int64_t start = span(w, d, o[d], &first, &end);
        if (padded && !w->adaptive) {
            /* With ceil_mode the last window may reach beyond the padding, which does not count. */
            const int64_t room = w->in[d] + w->pad_end[d] - start, step = w->dilation[d];
            first = 0;
            end = ew_min_i64((room + step - 1) / step, w->kernel[d]);
        }
        count *= ew_max_i64(end - first, 0);
    }
    return count;
}

bool ew_window_next(const struct ew_window *w, int64_t *o)
{
    for (int d = DIMS - 1; d >= 0; d--) {
        if (++o[d] < w->out[d])
            return true;
        o[d] = 0;
    }
    return false;
}
