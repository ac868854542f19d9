/* SPDX-License-Identifier: Apache-2.0 */
/* Resize: attributes, and where each output position reads along one axis. */
#ifndef EW_OP_RESIZE_H
#define EW_OP_RESIZE_H

#include "graph/op.h"

enum ew_resize_mode { EW_RESIZE_NEAREST, EW_RESIZE_LINEAR, EW_RESIZE_CUBIC };

enum ew_resize_coordinate {
    EW_RESIZE_HALF_PIXEL,
    EW_RESIZE_HALF_PIXEL_SYMMETRIC,
    EW_RESIZE_PYTORCH_HALF_PIXEL,
    EW_RESIZE_ALIGN_CORNERS,
    EW_RESIZE_ASYMMETRIC,
    EW_RESIZE_TF_CROP_AND_RESIZE,
    EW_RESIZE_TF_HALF_PIXEL_FOR_NN /* opset 11 only */
};

enum ew_resize_round {
    EW_RESIZE_ROUND_PREFER_FLOOR,
    EW_RESIZE_ROUND_PREFER_CEIL,
    EW_RESIZE_FLOOR,
    EW_RESIZE_CEIL
};

enum ew_resize_aspect { EW_RESIZE_STRETCH, EW_RESIZE_NOT_LARGER, EW_RESIZE_NOT_SMALLER };

/* in: x, then roi, scales, sizes, of which roi is read for tf_crop_and_resize only, and exactly one
 * of scales and sizes is there.  Each has an entry (roi: starts, then ends) per axis of `axes`. */
struct ew_resize_attr {
    int mode;       /* enum ew_resize_mode */
    int coordinate; /* enum ew_resize_coordinate */
    int round;      /* enum ew_resize_round, for nearest */
    int aspect;     /* enum ew_resize_aspect, with sizes */
    double cubic_a;
    double extrapolation; /* tf_crop_and_resize: outside the input */
    bool exclude_outside; /* elements outside have no weight; else the edge repeats */
    bool antialias;       /* the kernel widens where the output is smaller */
    struct ew_ints axes;  /* empty: all */
};

enum { EW_RESIZE_X, EW_RESIZE_ROI, EW_RESIZE_SCALES, EW_RESIZE_SIZES, EW_RESIZE_INPUTS };

/* One axis of x. */
struct ew_resize_axis {
    int64_t in, out;
    double scale;      /* out / in, or as it was given */
    bool by_size;      /* scale is out / in */
    double start, end; /* roi, as shares of the axis */
    bool same;         /* out is in, element by element */
    int64_t taps;      /* elements of x that an output reads at most */
};

/* All axes of x; fails where inputs or attributes do not fit. */
ew_err ew_resize_resolve(const struct ew_call *c, struct ew_resize_axis *axes);

struct ew_resize_tap {
    int64_t at;    /* index in x; -1 in the first tap: outside, the output is `extrapolation` */
    double weight; /* 0 in those that are not used */
};

/* The axis' taps of output o, `axis->taps` of them. */
void ew_resize_taps(const struct ew_resize_attr *a, const struct ew_resize_axis *axis, int64_t o,
                    struct ew_resize_tap *out);

#endif
