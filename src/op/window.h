/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that slide over 1 to 3 spatial dimensions: the attributes that convolutions and pools
 * share, and the geometry that follows from them and the input's shape. */
#ifndef EW_OP_WINDOW_H
#define EW_OP_WINDOW_H

#include "graph/op.h"

#define EW_WINDOW_DIMS 3

enum ew_auto_pad {
    EW_AUTO_PAD_NOTSET,     /* `pad` counts */
    EW_AUTO_PAD_SAME_UPPER, /* out = ceil(in / stride), an odd cell of padding at the end */
    EW_AUTO_PAD_SAME_LOWER, /* ... at the beginning */
    EW_AUTO_PAD_VALID       /* none */
};

/* One entry per spatial dimension; an empty list stands for its default. */
struct ew_window_attr {
    struct ew_ints kernel;   /* convolutions: may be empty, the filters tell it */
    struct ew_ints stride;   /* default 1 */
    struct ew_ints pad;      /* all beginnings, then all ends; default 0 */
    struct ew_ints dilation; /* default 1 */
    int auto_pad;            /* enum ew_auto_pad */
};

extern const char *const ew_auto_pad_names[];

/* clang-format off */
/* The rows of a field table for `part`, a struct ew_window_attr in struct `owner`. */
#define EW_WINDOW_FIELDS(owner, part)                                                              \
    EW_WINDOW_INTS(owner, part, kernel, 1, "size of the window"),                                  \
    EW_WINDOW_INTS(owner, part, stride, 1, "step of the window; empty: 1"),                        \
    EW_WINDOW_INTS(owner, part, pad, 0, "padding: all beginnings, then all ends; empty: none"),    \
    EW_WINDOW_INTS(owner, part, dilation, 1, "distance of the window's elements; empty: 1"),       \
    {.name = "auto_pad", .type = EW_FIELD_ENUM, .offset = offsetof(owner, part.auto_pad),          \
     .choices = ew_auto_pad_names, .help = "padding by rule instead of by `pad`"}
#define EW_WINDOW_INTS(owner, part, field, least, text)                                            \
    {.name = #field, .type = EW_FIELD_INTS, .offset = offsetof(owner, part.field), .min = least,   \
     .max = INT32_MAX, .help = text}
/* clang-format on */

/* (our name, ONNX's name) pairs of those rows. */
#define EW_WINDOW_RENAMES                                                                          \
    "kernel", "kernel_shape", "stride", "strides", "pad", "pads", "dilation", "dilations"

/* Everything resolved, as three dimensions: those that are missing lead and have size 1, so that
 * one loop nest serves 1-D to 3-D.  x is [batch, in..., channels]. */
struct ew_window {
    int64_t batch, channels;
    int64_t in[EW_WINDOW_DIMS], out[EW_WINDOW_DIMS];
    int64_t kernel[EW_WINDOW_DIMS], stride[EW_WINDOW_DIMS], dilation[EW_WINDOW_DIMS];
    int64_t pad[EW_WINDOW_DIMS], pad_end[EW_WINDOW_DIMS];
    bool adaptive; /* window o of n is [floor(o * in / n), ceil((o + 1) * in / n)) */
};

/* Fails unless x is [N, d..., C] with 1 to 3 spatial dimensions that are not empty. */
ew_err ew_spatial_check(const struct ew_tensor *x);
/* Fails unless the type is float32 or float64: what the reference kernels compute in. */
ew_err ew_float_check(const struct ew_tensor *t, const char *what);

/* Fails unless the list is empty or has n entries in [least, INT32_MAX]. */
ew_err ew_window_list(const struct ew_ints *list, int n, int64_t least, const char *what);
/* Checks the attributes for x and takes them over as they are: no auto_pad, no output size yet. */
ew_err ew_window_fill(const struct ew_window_attr *a, const struct ew_shape *x,
                      const int64_t *kernel, struct ew_window *out);
/* The geometry over x of a window of `kernel` (one entry per spatial dimension of x).  Fails where
 * an attribute has the wrong length or range, or the window does not fit. */
ew_err ew_window_resolve(const struct ew_window_attr *a, const struct ew_shape *x,
                         const int64_t *kernel, bool ceil_mode, struct ew_window *out);
/* One window that covers all of x. */
void ew_window_global(const struct ew_shape *x, struct ew_window *out);
/* torch's adaptive windows: `size` has one entry per spatial dimension of x. */
ew_err ew_window_adaptive(const struct ew_shape *x, const struct ew_ints *size,
                          struct ew_window *out);
/* [batch, out..., channels] in the rank of x. */
void ew_window_shape(const struct ew_window *w, int rank, int64_t channels, struct ew_shape *out);

/* Number of output positions in one image, and of elements in a window. */
int64_t ew_window_outs(const struct ew_window *w);
int64_t ew_window_taps(const struct ew_window *w);

/* a * b for costs: stops at 2^56, so that absurd shapes do not overflow. */
int64_t ew_cost_mul(int64_t a, int64_t b);

/* ---- Walking the elements of one window ----
 *
 *   struct ew_tap t;
 *   for (bool more = ew_tap_first(w, n, o, &t); more; more = ew_tap_next(w, &t))
 *       ... t.row is the pixel of x, t.index the element of the window ...
 *
 * Elements that lie in the padding are left out. */
struct ew_tap {
    int64_t row;   /* pixel of x over the whole batch: x starts at row * channels */
    int64_t index; /* row-major position in the window */
    int64_t image; /* the rest is the walk's own */
    int64_t start[EW_WINDOW_DIMS], first[EW_WINDOW_DIMS], end[EW_WINDOW_DIMS], k[EW_WINDOW_DIMS];
};
bool ew_tap_first(const struct ew_window *w, int64_t image, const int64_t *o, struct ew_tap *t);
bool ew_tap_next(const struct ew_window *w, struct ew_tap *t);
/* Elements of window `o` inside the input, or inside the padded input. */
int64_t ew_tap_count(const struct ew_window *w, const int64_t *o, bool padded);

/* Steps `o` to the next output position in row-major order; false after the last, with o at 0. */
bool ew_window_next(const struct ew_window *w, int64_t *o);

#endif
