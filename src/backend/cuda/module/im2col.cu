/* SPDX-License-Identifier: Apache-2.0 */
/* im2col + GEMM, for a few images at a time: for small feature maps and strided convolutions
 * cuDNN's float32 kernels leave the device idle.
 *
 *   columns [rows, pitch]: row (n, oy, ox) is the window of x, taps outermost as in the filters
 *   y = columns w'     dw = dy' columns     dx = col2im(dy w) */
#include "backend/cuda/module/cuda_status.h"
#include "backend/cuda/module/device_math.cuh"

#define THREADS 256

/* ---- im2col ---- */

/* V: float or a vector of floats, the unit of c and pitch.  Zero in the padding and behind the last
 * tap. */
template <typename V>
__global__ void __launch_bounds__(THREADS)
    im2col_kernel(const ew_cuda_window g, const V *x, V *col, unsigned c, unsigned pitch, int64_t n)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS) {
        const unsigned row = (unsigned)k / pitch, j = (unsigned)k - row * pitch;
        const unsigned tap = j / c, line = row / (unsigned)g.ow, image = line / (unsigned)g.oh;
        const int ox = (int)(row - line * (unsigned)g.ow);
        const int oy = (int)(line - image * (unsigned)g.oh);
        const int r = (int)tap / g.kw, t = (int)tap - r * g.kw;
        const int iy = oy * g.sh - g.ph + r * g.dh, ix = ox * g.sw - g.pw + t * g.dw;
        V v = {};
        if (r < g.kh && iy >= 0 && iy < g.h && ix >= 0 && ix < g.w)
            v = x[(((int64_t)image * g.h + iy) * g.w + ix) * c + (j - tap * c)];
        col[k] = v;
    }
}

template <typename V>
static int im2col_as(ew_cuda_queue *q, const ew_cuda_window *g, const void *x, void *col)
{
    const unsigned per = sizeof(V) / sizeof(float);
    const unsigned pitch = (unsigned)ew_cuda_im2col_pitch(g) / per;
    const int64_t n = ew_cuda_out_pixels(g) * pitch;
    im2col_kernel<V><<<blocks_for(q, n, THREADS), THREADS, 0, stream_of(q)>>>(
        *g, static_cast<const V *>(x), static_cast<V *>(col), (unsigned)g->c / per, pitch, n);
    return cudaGetLastError();
}

static int im2col(ew_cuda_queue *q, const ew_cuda_window *g, const float *x, float *col)
{
    return g->c % 4 == 0 && aligned(x, 16) ? im2col_as<float4>(q, g, x, col)
                                           : im2col_as<float>(q, g, x, col);
}

/* ---- col2im: each element sums its windows, in a fixed order ---- */

template <int V>
__global__ void __launch_bounds__(THREADS)
    col2im_kernel(const ew_cuda_window g, const float *col, float *dx, int add, int64_t n)
{
    const int across = g.c / V, taps = g.kh * g.kw;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS) {
        const unsigned pixel = (unsigned)k / (unsigned)across, line = pixel / (unsigned)g.w;
        const int c = (int)((unsigned)k - pixel * (unsigned)across) * V;
        const unsigned image = line / (unsigned)g.h;
        const int iy = (int)(line - image * (unsigned)g.h),
                  ix = (int)(pixel - line * (unsigned)g.w);
        float sum[V] = {}, v[V];
        for (int r = 0; r < g.kh; r++) {
            const int y = iy + g.ph - r * g.dh, oy = y / g.sh;
            if (y < 0 || y % g.sh || oy >= g.oh)
                continue;
            for (int t = 0; t < g.kw; t++) {
                const int x = ix + g.pw - t * g.dw, ox = x / g.sw;
                if (x < 0 || x % g.sw || ox >= g.ow)
                    continue;
                const int64_t row = ((int64_t)image * g.oh + oy) * g.ow + ox;
                load<V>(col + (row * taps + r * g.kw + t) * g.c + c, v);
#pragma unroll
                for (int i = 0; i < V; i++)
                    sum[i] += v[i];
            }
        }
        put<V>(dx + k * V, sum, add);
    }
}

static int col2im(ew_cuda_queue *q, const ew_cuda_window *g, const float *col, float *dx, int add)
{
    const int64_t n = ew_cuda_in_pixels(g) * g->c;
    if (g->c % 4 == 0 && aligned(dx, 16))
        col2im_kernel<4>
            <<<blocks_for(q, n / 4, THREADS), THREADS, 0, stream_of(q)>>>(*g, col, dx, add, n / 4);
    else
        col2im_kernel<1>
            <<<blocks_for(q, n, THREADS), THREADS, 0, stream_of(q)>>>(*g, col, dx, add, n);
    return cudaGetLastError();
}

/* ---- Convolutions ---- */

static int depth_of(const ew_cuda_window *g)
{
    return g->kh * g->kw * g->c;
}

/* Copies rows of `depth` elements between row pitches `from` and `to`. */
static int copy_rows(ew_cuda_queue *q, const ew_cuda_window *g, const float *x, int from, float *y,
                     int to, int add)
{
    ew_cuda_copy c = {};
    c.bytes = sizeof(float);
    c.rank = 2;
    c.add_type = add ? EW_CUDA_F32 : -1;
    c.dim[0] = g->k, c.dim[1] = depth_of(g);
    c.x_stride[0] = from, c.x_stride[1] = 1;
    c.y_stride[0] = to, c.y_stride[1] = 1;
    c.x = x;
    c.y = y;
    return ew_cu_strided_copy(q, &c);
}

/* The window of the images from `first` on that go into one launch. */
static ew_cuda_window part_of(const ew_cuda_window &g, int first)
{
    ew_cuda_window part = g;
    const int most = ew_cuda_im2col_images(&g);
    part.n = g.n - first < most ? g.n - first : most;
    return part;
}

/* Elements per image of x. */
static int64_t x_step(const ew_cuda_window &g)
{
    return (int64_t)g.h * g.w * g.c;
}

static int64_t y_step(const ew_cuda_window &g)
{
    return (int64_t)g.oh * g.ow * g.k;
}

static const float *floats(const void *p, int64_t at)
{
    return p ? static_cast<const float *>(p) + at : NULL;
}

extern "C" int ew_cu_im2col_conv(ew_cuda_queue *q, const ew_cuda_conv *p)
{
    const int depth = depth_of(&p->g), pitch = ew_cuda_im2col_pitch(&p->g);
    float *col = static_cast<float *>(p->scratch);
    float *padded = col + ew_cuda_im2col_bytes(&p->g) / sizeof(float);
    if (pitch != depth) {
        EW_CU_TRY(ew_cu_fill(q, padded, 0, (size_t)p->g.k * pitch * sizeof(float)));
        EW_CU_TRY(copy_rows(q, &p->g, floats(p->w, 0), depth, padded, pitch, 0));
    }
    ew_cuda_gemm m = {};
    m.math = p->math;
    m.trans_b = 1;
    m.n = p->g.k;
    m.k = pitch;
    m.alpha = 1;
    m.act = p->act;
    m.a = col;
    m.b = pitch == depth ? p->w : padded;
    m.bias = p->bias;
    ew_cuda_window part;
    for (int first = 0; first < p->g.n; first += part.n) {
        part = part_of(p->g, first);
        EW_CU_TRY(im2col(q, &part, floats(p->x, first * x_step(p->g)), col));
        m.m = ew_cuda_out_pixels(&part);
        m.residual = p->add_after ? NULL : floats(p->residual, first * y_step(p->g));
        m.y = static_cast<float *>(p->y) + first * y_step(p->g);
        EW_CU_TRY(ew_cu_gemm(q, &m));
    }
    if (!p->residual || !p->add_after)
        return 0;
    ew_cuda_epilogue e = {};
    e.rows = ew_cuda_out_pixels(&p->g);
    e.cols = p->g.k;
    e.residual = p->residual;
    e.y = p->y;
    return ew_cu_epilogue(q, &e);
}

extern "C" int ew_cu_im2col_dw(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    const int depth = depth_of(&p->g), pitch = ew_cuda_im2col_pitch(&p->g);
    float *padded = p->scratch + ew_cuda_im2col_bytes(&p->g) / sizeof(float);
    ew_cuda_gemm m = {};
    m.math = p->math;
    m.trans_a = 1;
    m.m = p->g.k;
    m.n = pitch;
    m.alpha = 1;
    m.b = p->scratch;
    m.y = pitch == depth ? p->dw : padded;
    ew_cuda_window part;
    for (int first = 0; first < p->g.n; first += part.n) {
        part = part_of(p->g, first);
        EW_CU_TRY(im2col(q, &part, floats(p->x, first * x_step(p->g)), p->scratch));
        m.k = ew_cuda_out_pixels(&part);
        m.beta = first || (p->add && pitch == depth) ? 1 : 0;
        m.a = floats(p->dy, first * y_step(p->g));
        EW_CU_TRY(ew_cu_gemm(q, &m));
    }
    return pitch == depth ? 0 : copy_rows(q, &p->g, padded, pitch, p->dw, depth, p->add);
}

/* Requires rows without padding (pitch == kh * kw * c). */
extern "C" int ew_cu_im2col_dx(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    ew_cuda_gemm m = {};
    m.math = p->math;
    m.n = depth_of(&p->g);
    m.k = p->g.k;
    m.alpha = 1;
    m.b = p->w;
    m.y = p->scratch;
    ew_cuda_window part;
    for (int first = 0; first < p->g.n; first += part.n) {
        part = part_of(p->g, first);
        m.m = ew_cuda_out_pixels(&part);
        m.a = floats(p->dy, first * y_step(p->g));
        EW_CU_TRY(ew_cu_gemm(q, &m));
        float *dx = static_cast<float *>(p->dx) + first * x_step(p->g);
        EW_CU_TRY(col2im(q, &part, p->scratch, dx, p->add));
    }
    return 0;
}
