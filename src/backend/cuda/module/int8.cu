/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit convolutions and dense layers: implicit GEMM with integer tensor cores (mma m16n8k32, from
 * compute capability 8.0 on) or dp4a, and the requantisation epilogue of op/quant.h; depthwise
 * convolutions have a kernel of their own. */
#include "backend/cuda/module/device_int8.cuh"

#define TILE    64 /* pixels, and filters, per block */
#define STEP    EW_CUDA_QDEPTH
#define STRIDE  (STEP + 16) /* bytes of a row in shared memory; padding avoids bank conflicts */
#define THREADS 128
#define ROWS    (THREADS / 4) /* rows loaded at once, 16 bytes per thread */

/* ---- Packing ---- */

struct qhead {
    int x_zero, y_zero, add_zero, sum_zero;
    float a_ratio, b_ratio; /* requantisation ratios of the convolution and of `add` */
};

/* One block per filter. */
__global__ void __launch_bounds__(THREADS) pack_kernel(const ew_cuda_qpack p, int depth, int padded)
{
    __shared__ int sums[THREADS];
    const int f = blockIdx.x, taps = p.g.kh * p.g.kw;
    const bool depthwise = p.g.groups == p.g.c && p.g.k == p.g.c && p.g.c > 1;
    char *base = static_cast<char *>(p.packed);
    int8_t *to = reinterpret_cast<int8_t *>(base + ew_cuda_qfilters_on(p.g));
    int sum = 0;
    for (int i = threadIdx.x; i < padded; i += THREADS) {
        const int8_t v =
            i >= depth ? 0 : p.w[p.transposed ? (int64_t)i * p.g.k + f : (int64_t)f * depth + i];
        sum += v;
        to[depthwise ? (int64_t)(i % taps) * p.g.c + f : (int64_t)f * padded + i] = v;
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int i = 1; i < THREADS; i++)
        sum += sums[i];
    const int zero = zero_of(p.x);
    const float y = p.y.scale ? *p.y.scale : 1;
    float *ratio = reinterpret_cast<float *>(base + 256);
    int *bias = reinterpret_cast<int *>(ratio + p.g.k);
    ratio[f] = ratio_of(*p.x.scale, p.w_scale[p.n_scales == 1 ? 0 : f], y);
    bias[f] = (int)((unsigned)(p.bias ? p.bias[f] : 0) - (unsigned)zero * (unsigned)sum);
    if (f)
        return;
    qhead *h = reinterpret_cast<qhead *>(base);
    h->x_zero = zero;
    h->y_zero = zero_of(p.y);
    h->add_zero = zero_of(p.add);
    h->sum_zero = zero_of(p.sum);
    h->a_ratio = p.add.scale ? ratio_of(y, 1, *p.sum.scale) : 0;
    h->b_ratio = p.add.scale ? ratio_of(*p.add.scale, 1, *p.sum.scale) : 0;
}

extern "C" int ew_cu_qpack(ew_cuda_queue *q, const ew_cuda_qpack *p)
{
    const int depth = p->g.kh * p->g.kw * (p->g.c / p->g.groups);
    pack_kernel<<<p->g.k, THREADS, 0, stream_of(q)>>>(*p, depth, ew_cuda_qdepth(&p->g));
    return cudaGetLastError();
}

/* ---- Epilogue ---- */

struct qends {
    const qhead *head;
    const float *ratio;
    const int *bias;
};

__device__ static qends ends_of(const ew_cuda_qconv &p)
{
    const char *base = static_cast<const char *>(p.packed);
    const float *ratio = reinterpret_cast<const float *>(base + 256);
    return {reinterpret_cast<const qhead *>(base), ratio,
            reinterpret_cast<const int *>(ratio + p.g.k)};
}

/* Stores output element `at` of filter f.  sum: dot product with the bytes of x as they are; the
 * packed bias corrects it for the zero point. */
__device__ static void finish(const ew_cuda_qconv &p, const qends &e, int64_t at, int f, int sum)
{
    sum = (int)((unsigned)sum + (unsigned)e.bias[f]);
    const float scaled = __fmul_rn(__int2float_rn(sum), e.ratio[f]);
    if (p.to_float) {
        static_cast<float *>(p.y)[at] = scaled;
        return;
    }
    int q = saturate(scaled, e.head->y_zero, p.y_signed);
    if (p.add) {
        const int other = byte_at(p.add, at, p.add_signed) - e.head->add_zero;
        const float a = __fmul_rn(__int2float_rn(q - e.head->y_zero), e.head->a_ratio);
        const float b = __fmul_rn(__int2float_rn(other), e.head->b_ratio);
        q = saturate(__fadd_rn(a, b), e.head->sum_zero, p.sum_signed);
    }
    q = q < p.lo ? p.lo : q > p.hi ? p.hi : q;
    static_cast<uint8_t *>(p.y)[at] = p.table ? p.table[q & 255] : (uint8_t)q;
}

/* ---- Implicit GEMM ---- */

/* First input position of an output pixel's window; n -1: no such pixel. */
struct corner {
    int n, y, x;
};

__device__ static corner corner_of(const ew_cuda_window &g, int64_t pixel, int64_t pixels)
{
    if (pixel >= pixels)
        return {-1, 0, 0};
    const int64_t line = pixel / g.ow;
    return {(int)(line / g.oh), (int)(line % g.oh) * g.sh - g.ph,
            (int)(pixel % g.ow) * g.sw - g.pw};
}

/* Loads bytes of x at depth k of the window; in the padding the zero point. */
template <typename W>
__device__ static W load_x(const ew_cuda_qconv &p, const corner &o, int group, int k, int depth,
                           W padding)
{
    const ew_cuda_window &g = p.g;
    const int cg = g.c / g.groups, tap = k / cg, r = tap / g.kw;
    const int iy = o.y + r * g.dh, ix = o.x + (tap - r * g.kw) * g.dw;
    if (o.n < 0 || k >= depth || iy < 0 || iy >= g.h || ix < 0 || ix >= g.w)
        return padding;
    const int64_t at = (((int64_t)o.n * g.h + iy) * g.w + ix) * g.c + group * cg + k - tap * cg;
    return *reinterpret_cast<const W *>(static_cast<const char *>(p.x) + at);
}

/* 16 bytes of the window from depth k on, VEC at a time: VEC consecutive bytes lie in one pixel. */
template <int VEC>
__device__ static uint4 load_row(const ew_cuda_qconv &p, const corner &o, int group, int k,
                                 int depth, unsigned zeros)
{
    union {
        uint4 all;
        unsigned word[4];
        uint8_t byte[16];
    } v;
    if (VEC == 16) {
        v.all = load_x(p, o, group, k, depth, make_uint4(zeros, zeros, zeros, zeros));
    } else if (VEC == 4) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            v.word[i] = load_x(p, o, group, k + 4 * i, depth, zeros);
    } else {
#pragma unroll
        for (int i = 0; i < 16; i++)
            v.byte[i] = load_x(p, o, group, k + i, depth, (uint8_t)zeros);
    }
    return v.all;
}

/* acc += A [16, 32] B [8, 32]', from shared memory.  Layout of acc as in mma: rows lane / 4 and
 * lane / 4 + 8, columns 2 * (lane % 4) and the next. */
template <bool SIGNED>
__device__ static void multiply(const uint8_t *a, const uint8_t *b, int lane, int acc[4])
{
#if __CUDA_ARCH__ >= 800
    const uint8_t *pa = a + lane / 4 * STRIDE + lane % 4 * 4,
                  *pb = b + lane / 4 * STRIDE + lane % 4 * 4;
    const unsigned at_a[] = {*reinterpret_cast<const unsigned *>(pa),
                             *reinterpret_cast<const unsigned *>(pa + 8 * STRIDE),
                             *reinterpret_cast<const unsigned *>(pa + 16),
                             *reinterpret_cast<const unsigned *>(pa + 8 * STRIDE + 16)};
    const unsigned at_b[] = {*reinterpret_cast<const unsigned *>(pb),
                             *reinterpret_cast<const unsigned *>(pb + 16)};
    ptx_mma_int8<SIGNED>(acc, at_a, at_b);
#else
    for (int i = 0; i < 4; i++) {
        const uint8_t *pa = a + (lane / 4 + i / 2 * 8) * STRIDE;
        const uint8_t *pb = b + (lane % 4 * 2 + i % 2) * STRIDE;
        for (int k = 0; k < 32; k += 4)
            acc[i] = ptx_dp4a<SIGNED>(*reinterpret_cast<const unsigned *>(pa + k),
                                      *reinterpret_cast<const unsigned *>(pb + k), acc[i]);
    }
#endif
}

/* Four warps, each with a quarter of the tile. */
template <bool SIGNED, int VEC>
__global__ void __launch_bounds__(THREADS)
    gemm_kernel(const ew_cuda_qconv p, int64_t pixels, int depth, int padded)
{
    __shared__ __align__(16) uint8_t a[2][TILE][STRIDE], b[2][TILE][STRIDE];
    const ew_cuda_window &g = p.g;
    const qends e = ends_of(p);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = blockIdx.z;
    const int kg = g.k / g.groups, row = threadIdx.x / 4, chunk = threadIdx.x % 4 * 16;
    const int m0 = warp % 2 * 32, n0 = warp / 2 * 32;
    const int64_t first = (int64_t)blockIdx.x * TILE;
    const int filter = blockIdx.y * TILE;
    const unsigned zeros = (unsigned)(e.head->x_zero & 255) * 0x01010101u;
    const int8_t *w = reinterpret_cast<const int8_t *>(static_cast<const char *>(p.packed) +
                                                       ew_cuda_qfilters_on(g)) +
                      (int64_t)(group * kg + filter) * padded;
    const corner at[2] = {corner_of(g, first + row, pixels),
                          corner_of(g, first + row + ROWS, pixels)};
    int acc[2][4][4] = {};
    uint4 next_a[2], next_b[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int f = row + i * ROWS;
        next_a[i] = load_row<VEC>(p, at[i], group, chunk, depth, zeros);
        next_b[i] = filter + f < kg
                        ? *reinterpret_cast<const uint4 *>(w + (int64_t)f * padded + chunk)
                        : make_uint4(0, 0, 0, 0);
    }
    for (int k = 0, turn = 0; k < padded; k += STEP, turn ^= 1) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            *reinterpret_cast<uint4 *>(&a[turn][row + i * ROWS][chunk]) = next_a[i];
            *reinterpret_cast<uint4 *>(&b[turn][row + i * ROWS][chunk]) = next_b[i];
        }
        __syncthreads();
        if (k + STEP < padded)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int f = row + i * ROWS;
                next_a[i] = load_row<VEC>(p, at[i], group, k + STEP + chunk, depth, zeros);
                if (filter + f < kg)
                    next_b[i] = *reinterpret_cast<const uint4 *>(w + (int64_t)f * padded + k +
                                                                 STEP + chunk);
            }
#pragma unroll
        for (int part = 0; part < STEP; part += 32)
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int n = 0; n < 4; n++)
                    multiply<SIGNED>(&a[turn][m0 + m * 16][part], &b[turn][n0 + n * 8][part], lane,
                                     acc[m][n]);
    }
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int64_t pixel = first + m0 + m * 16 + lane / 4 + i / 2 * 8;
                const int f = filter + n0 + n * 8 + lane % 4 * 2 + i % 2;
                if (pixel < pixels && f < kg)
                    finish(p, e, pixel * g.k + group * kg + f, group * kg + f, acc[m][n][i]);
            }
}

template <bool SIGNED> static void gemm_launch(ew_cuda_queue *q, const ew_cuda_qconv *p)
{
    const ew_cuda_window &g = p->g;
    const int64_t pixels = (int64_t)g.n * g.oh * g.ow;
    const int cg = g.c / g.groups, depth = g.kh * g.kw * cg, padded = ew_cuda_qdepth(&g);
    const dim3 grid((unsigned)((pixels + TILE - 1) / TILE), (g.k / g.groups + TILE - 1) / TILE,
                    g.groups);
    if (cg % 16 == 0 && g.c % 16 == 0 && aligned(p->x, 16))
        gemm_kernel<SIGNED, 16><<<grid, THREADS, 0, stream_of(q)>>>(*p, pixels, depth, padded);
    else if (cg % 4 == 0 && g.c % 4 == 0 && aligned(p->x, 4))
        gemm_kernel<SIGNED, 4><<<grid, THREADS, 0, stream_of(q)>>>(*p, pixels, depth, padded);
    else
        gemm_kernel<SIGNED, 1><<<grid, THREADS, 0, stream_of(q)>>>(*p, pixels, depth, padded);
}

/* ---- Depthwise ---- */

#define POINT_THREADS 256

__global__ void __launch_bounds__(POINT_THREADS) depthwise_kernel(const ew_cuda_qconv p)
{
    const ew_cuda_window &g = p.g;
    const qends e = ends_of(p);
    const int8_t *w = reinterpret_cast<const int8_t *>(static_cast<const char *>(p.packed) +
                                                       ew_cuda_qfilters_on(g));
    const int64_t count = (int64_t)g.n * g.oh * g.ow * g.c;
    for (int64_t k = (int64_t)blockIdx.x * POINT_THREADS + threadIdx.x; k < count;
         k += (int64_t)gridDim.x * POINT_THREADS) {
        const int64_t pixel = k / g.c;
        const int c = (int)(k - pixel * g.c);
        const corner o = corner_of(g, pixel, count);
        int sum = 0;
        for (int r = 0; r < g.kh; r++)
            for (int t = 0; t < g.kw; t++) {
                const int iy = o.y + r * g.dh, ix = o.x + t * g.dw;
                const bool inside = iy >= 0 && iy < g.h && ix >= 0 && ix < g.w;
                const int64_t from = (((int64_t)o.n * g.h + iy) * g.w + ix) * g.c + c;
                const int x = inside ? byte_at(p.x, from, p.x_signed) : e.head->x_zero;
                sum += x * w[(r * g.kw + t) * g.c + c];
            }
        finish(p, e, k, c, sum);
    }
}

extern "C" int ew_cu_qconv(ew_cuda_queue *q, const ew_cuda_qconv *p)
{
    if (ew_cuda_is_depthwise(&p->g)) {
        const int64_t n = (int64_t)p->g.n * p->g.oh * p->g.ow * p->g.c;
        depthwise_kernel<<<blocks_for(q, n, POINT_THREADS), POINT_THREADS, 0, stream_of(q)>>>(*p);
    } else if (p->x_signed) {
        gemm_launch<true>(q, p);
    } else {
        gemm_launch<false>(q, p);
    }
    return cudaGetLastError();
}
