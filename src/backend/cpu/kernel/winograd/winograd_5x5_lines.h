/* SPDX-License-Identifier: Apache-2.0 */
/* One-dimensional transforms of winograd_5x5.h for vectors of type LINE_VEC; LINE(name) names them.
 * No include guard: included once for each type of vector.
 *
 * The points are 0, +-A, +-B, +-C, D and infinity, in this order.  The matrices are built from the
 * coefficients of (x^2 - a^2)(x^2 - b^2) = x^4 - s x^2 + t for two of the pairs, and of x^6 - S x^4
 * + Q x^2 - P for all three.  The points of a pair share the sums of even and of odd powers. */

/* B' d: row i is the polynomial whose roots are all other points.  The factor x - D is applied
 * first, as differences; the rest involves only the symmetric points. */
INLINE void LINE(input)(const LINE_VEC d[9], LINE_VEC out[9])
{
    LINE_VEC e[8];
    UNROLL
    for (int i = 0; i < 8; i++)
        e[i] = d[i + 1] - F5X5_D * d[i];
    out[0] = e[6] - F5X5_S * e[4] + F5X5_Q * e[2] - F5X5_P * e[0];
    UNROLL
    for (int i = 0; i < 3; i++) {
        const float s = f5x5_s(i), t = f5x5_t(i);
        const LINE_VEC even = e[6] - s * e[4] + t * e[2], odd = e[5] - s * e[3] + t * e[1];
        out[1 + 2 * i] = even + f5x5_at(i) * odd;
        out[2 + 2 * i] = even - f5x5_at(i) * odd;
    }
    out[7] = d[7] - F5X5_S * d[5] + F5X5_Q * d[3] - F5X5_P * d[1];
    out[8] = e[7] - F5X5_S * e[5] + F5X5_Q * e[3] - F5X5_P * e[1];
}

/* B v: the transpose. */
INLINE void LINE(input_back)(const LINE_VEC v[9], LINE_VEC d[9])
{
    LINE_VEC e[8];
    e[7] = v[8];
    e[6] = v[0];
    e[5] = -F5X5_S * v[8];
    e[4] = -F5X5_S * v[0];
    e[3] = F5X5_Q * v[8];
    e[2] = F5X5_Q * v[0];
    e[1] = -F5X5_P * v[8];
    e[0] = -F5X5_P * v[0];
    UNROLL
    for (int i = 0; i < 3; i++) {
        const float a = f5x5_at(i), s = f5x5_s(i), t = f5x5_t(i);
        const LINE_VEC even = v[1 + 2 * i] + v[2 + 2 * i], odd = v[1 + 2 * i] - v[2 + 2 * i];
        e[6] += even;
        e[5] += a * odd;
        e[4] -= s * even;
        e[3] -= (a * s) * odd;
        e[2] += t * even;
        e[1] += (a * t) * odd;
    }
    d[0] = -F5X5_D * e[0];
    UNROLL
    for (int i = 1; i < 8; i++)
        d[i] = e[i - 1] - F5X5_D * e[i];
    d[8] = e[7];
    d[7] += v[7];
    d[5] -= F5X5_S * v[7];
    d[3] += F5X5_Q * v[7];
    d[1] -= F5X5_P * v[7];
}

/* A' m: powers of the points. */
INLINE void LINE(output)(const LINE_VEC m[9], LINE_VEC out[5])
{
    const float d = F5X5_D;
    out[0] = m[0] + m[7];
    out[1] = d * m[7];
    out[2] = (d * d) * m[7];
    out[3] = (d * d * d) * m[7];
    out[4] = m[8] + (d * d * d * d) * m[7];
    UNROLL
    for (int i = 0; i < 3; i++) {
        const float a = f5x5_at(i);
        const LINE_VEC even = m[1 + 2 * i] + m[2 + 2 * i], odd = m[1 + 2 * i] - m[2 + 2 * i];
        out[0] += even;
        out[1] += a * odd;
        out[2] += (a * a) * even;
        out[3] += (a * a * a) * odd;
        out[4] += (a * a * a * a) * even;
    }
}

/* A y: evaluates the polynomial with five coefficients y at the points. */
INLINE void LINE(output_back)(const LINE_VEC y[5], LINE_VEC out[9])
{
    const float d = F5X5_D;
    out[0] = y[0];
    UNROLL
    for (int i = 0; i < 3; i++) {
        const float a = f5x5_at(i);
        const LINE_VEC even = y[0] + (a * a) * y[2] + (a * a * a * a) * y[4];
        const LINE_VEC odd = y[1] + (a * a) * y[3];
        out[1 + 2 * i] = even + a * odd;
        out[2 + 2 * i] = even - a * odd;
    }
    out[7] = y[0] + d * y[1] + (d * d) * y[2] + (d * d * d) * y[3] + (d * d * d * d) * y[4];
    out[8] = y[4];
}

/* G g and G' u: the same with each point scaled by f5x5_scale (Lagrange's denominators). */
INLINE void LINE(filter)(const LINE_VEC g[5], LINE_VEC out[9])
{
    LINE(output_back)(g, out);
    UNROLL
    for (int i = 0; i < 8; i++)
        out[i] *= f5x5_scale(i);
}

INLINE void LINE(taps)(const LINE_VEC u[9], LINE_VEC out[5])
{
    LINE_VEC m[9];
    UNROLL
    for (int i = 0; i < 8; i++)
        m[i] = u[i] * f5x5_scale(i);
    m[8] = u[8];
    LINE(output)(m, out);
}
