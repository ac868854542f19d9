/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms of Winograd's convolutions F(m, r), m outputs of a filter of r taps (Lavin and
 * Gray, "Fast algorithms for convolutional neural networks", 2015), along one line.  Two dimensions
 * are lines of lines.
 *
 * They interpolate polynomials at m + r - 1 points: 0, 1, -1 and infinity for F(2, 3); 2 and -2 too
 * for F(4, 3) and F(2, 5), which therefore share the input's transform.  The factors of 5 and 8 in
 * those cost some digits: tests/backend/test_kernel_conv.c states and checks the bound. */
#ifndef EW_BACKEND_CPU_KERNEL_WINOGRAD_H
#define EW_BACKEND_CPU_KERNEL_WINOGRAD_H

#include "backend/cpu/kernel/vec.h"

#define WINO_POINTS 6 /* of a line, at most */
#define WINO_TAPS   5
#define WINO_OUT    4

struct wino_form {
    int out, taps; /* of a line */
};

INLINE int points_of(const struct wino_form f)
{
    return f.out + f.taps - 1;
}

/* ---- Filters: G g ---- */

/* g at 0, 1, -1 and infinity. */
INLINE void filter_4(const vec g[3], vec out[4])
{
    const vec even = (g[0] + g[2]) * 0.5f, odd = g[1] * 0.5f;
    out[0] = g[0];
    out[1] = even + odd;
    out[2] = even - odd;
    out[3] = g[2];
}

/* And at 2 and -2: even and odd powers apart. */
INLINE void filter_6(const vec *g, vec out[6], const int taps)
{
    vec even = g[0] + g[2], far = g[0] * (1.0f / 24.0f) + g[2] * (1.0f / 6.0f);
    vec odd = g[1], far_odd = g[1] * (1.0f / 12.0f);
    if (taps == 5) {
        even += g[4];
        far += g[4] * (2.0f / 3.0f);
        odd += g[3];
        far_odd += g[3] * (1.0f / 3.0f);
    }
    out[0] = g[0] * 0.25f;
    out[1] = (even + odd) * (-1.0f / 6.0f);
    out[2] = (even - odd) * (-1.0f / 6.0f);
    out[3] = far + far_odd;
    out[4] = far - far_odd;
    out[5] = g[taps - 1];
}

INLINE void filter_line(const vec *g, vec *out, const struct wino_form f)
{
    if (points_of(f) == 4)
        filter_4(g, out);
    else
        filter_6(g, out, f.taps);
}

/* ---- Inputs: B' d ---- */

INLINE void input_4(const vec d[4], vec out[4])
{
    out[0] = d[0] - d[2];
    out[1] = d[1] + d[2];
    out[2] = d[2] - d[1];
    out[3] = d[1] - d[3];
}

INLINE void input_6(const vec d[6], vec out[6])
{
    const vec a = d[4] - 4.0f * d[2], b = d[3] - 4.0f * d[1];
    const vec e = d[4] - d[2], f = 2.0f * (d[3] - d[1]);
    out[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
    out[1] = a + b;
    out[2] = a - b;
    out[3] = e + f;
    out[4] = e - f;
    out[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

INLINE void input_line(const vec *d, vec *out, const struct wino_form f)
{
    if (points_of(f) == 4)
        input_4(d, out);
    else
        input_6(d, out);
}

/* ---- Outputs: A' m ---- */

INLINE void output_line(const vec *m, vec *out, const struct wino_form f)
{
    const vec s = m[1] + m[2], d = m[1] - m[2];
    if (points_of(f) == 4) {
        out[0] = m[0] + s;
        out[1] = d - m[3];
        return;
    }
    const vec t = m[3] + m[4], e = m[3] - m[4];
    out[0] = m[0] + s + t;
    if (f.out == 2) {
        out[1] = d + 2.0f * e + m[5];
        return;
    }
    out[1] = d + 2.0f * e;
    out[2] = s + 4.0f * t;
    out[3] = d + 8.0f * e + m[5];
}

#endif
