/* SPDX-License-Identifier: Apache-2.0 */
/* Strided copies (slice, concat, transpose, channel shuffle) and resampling by tables. */
#include "backend/cuda/module/device_math.cuh"

#define THREADS 256
#define TILE    32

/* ---- Any strides ---- */

template <typename T> __device__ static void add_one(const void *x, void *y)
{
    const float v = to_float(*static_cast<const T *>(x));
    put<1>(static_cast<T *>(y), &v, 1);
}

template <typename W>
__global__ void __launch_bounds__(THREADS) copy_kernel(const ew_cuda_copy p, int64_t n)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS) {
        unsigned rest = (unsigned)k;
        int64_t from = 0, to = 0;
#pragma unroll
        for (int d = EW_CUDA_COPY_DIMS - 1; d >= 0; d--) {
            if (p.dim[d] == 1)
                continue;
            const unsigned next = rest / (unsigned)p.dim[d];
            const int64_t i = rest - next * (unsigned)p.dim[d];
            from += i * p.x_stride[d];
            to += i * p.y_stride[d];
            rest = next;
        }
        const W *x = static_cast<const W *>(p.x) + from;
        W *y = static_cast<W *>(p.y) + to;
        if (p.add_type < 0)
            *y = *x;
        else if (p.add_type == EW_CUDA_F32)
            add_one<float>(x, y);
        else if (p.add_type == EW_CUDA_F16)
            add_one<__half>(x, y);
        else
            add_one<bf16>(x, y);
    }
}

/* ---- Matrix transposes: y[b][j][i] = x[b][i][j] through shared memory ---- */

template <typename W>
__global__ void transpose_kernel(const W *x, W *y, int rows, int cols, int64_t batch)
{
    __shared__ W tile[TILE][TILE + 1];
    for (int64_t b = blockIdx.z; b < batch; b += gridDim.z) {
        const W *from = x + b * rows * cols;
        W *to = y + b * rows * cols;
        const int i0 = blockIdx.y * TILE, j0 = blockIdx.x * TILE;
        for (int i = threadIdx.y; i < TILE; i += 8)
            if (i0 + i < rows && j0 + (int)threadIdx.x < cols)
                tile[i][threadIdx.x] = from[(int64_t)(i0 + i) * cols + j0 + threadIdx.x];
        __syncthreads();
        for (int j = threadIdx.y; j < TILE; j += 8)
            if (j0 + j < cols && i0 + (int)threadIdx.x < rows)
                to[(int64_t)(j0 + j) * rows + i0 + threadIdx.x] = tile[threadIdx.x][j];
        __syncthreads();
    }
}

/* True if the copy is [batch, rows, cols] -> [batch, cols, rows] in dim[3..5], and large enough for
 * tiles. */
static bool is_transpose(const ew_cuda_copy *p)
{
    const int64_t rows = p->dim[5], cols = p->dim[4];
    return p->add_type < 0 && p->dim[0] == 1 && p->dim[1] == 1 && p->dim[2] == 1 &&
           rows >= TILE / 4 && cols >= TILE / 4 && p->x_stride[4] == 1 && p->x_stride[5] == cols &&
           p->y_stride[5] == 1 && p->y_stride[4] == rows &&
           (p->dim[3] == 1 || (p->x_stride[3] == rows * cols && p->y_stride[3] == rows * cols)) &&
           rows <= 65535 * TILE;
}

/* ---- Channel shuffles: [rows, k, G], where on one side the G elements are adjacent ---- */

template <typename W, int G> struct shuffle_job {
    const W *x;
    W *y;
    int64_t x_row, y_row, apart; /* strides between rows; stride between the G on the other side */
    unsigned k;
};

template <typename W, int G, bool JOIN>
__global__ void __launch_bounds__(THREADS) shuffle_kernel(const shuffle_job<W, G> j, int64_t n)
{
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n;
         at += (int64_t)gridDim.x * THREADS) {
        const unsigned row = (unsigned)at / j.k, i = (unsigned)at - row * j.k;
        const W *x = j.x + row * j.x_row + (int64_t)i * (JOIN ? 1 : G);
        W *y = j.y + row * j.y_row + (int64_t)i * (JOIN ? G : 1);
        pack<W, G> v;
        if (JOIN) {
#pragma unroll
            for (int g = 0; g < G; g++)
                v.v[g] = x[g * j.apart];
            *reinterpret_cast<pack<W, G> *>(y) = v;
        } else {
            v = *reinterpret_cast<const pack<W, G> *>(x);
#pragma unroll
            for (int g = 0; g < G; g++)
                y[g * j.apart] = v.v[g];
        }
    }
}

/* False: not a shuffle of G groups. */
template <typename W, int G> static bool shuffle_launch(ew_cuda_queue *q, const ew_cuda_copy *p)
{
    const int64_t n = p->dim[3] * p->dim[4];
    const bool join = p->y_stride[5] == 1 && p->y_stride[4] == G && p->x_stride[4] == 1;
    const bool part = p->x_stride[5] == 1 && p->x_stride[4] == G && p->y_stride[4] == 1;
    const int64_t side = join ? p->y_stride[3] : p->x_stride[3];
    if (p->add_type >= 0 || p->dim[0] != 1 || p->dim[1] != 1 || p->dim[2] != 1 || p->dim[5] != G ||
        !(join || part) || side % G || n >= INT64_C(1) << 32 ||
        !aligned(join ? p->y : p->x, G * sizeof(W)))
        return false;
    const shuffle_job<W, G> j = {static_cast<const W *>(p->x),
                                 static_cast<W *>(p->y),
                                 p->x_stride[3],
                                 p->y_stride[3],
                                 join ? p->x_stride[5] : p->y_stride[5],
                                 (unsigned)p->dim[4]};
    const unsigned blocks = blocks_for(q, n, THREADS);
    if (join)
        shuffle_kernel<W, G, true><<<blocks, THREADS, 0, stream_of(q)>>>(j, n);
    else
        shuffle_kernel<W, G, false><<<blocks, THREADS, 0, stream_of(q)>>>(j, n);
    return true;
}

template <typename W> static int copy_launch(ew_cuda_queue *q, const ew_cuda_copy *p)
{
    int64_t n = 1;
    for (int d = 0; d < EW_CUDA_COPY_DIMS; d++)
        n *= p->dim[d];
    if (sizeof(W) <= 4 && (shuffle_launch<W, 2>(q, p) || shuffle_launch<W, 4>(q, p)))
        return cudaGetLastError();
    if (is_transpose(p)) {
        const int rows = (int)p->dim[5], cols = (int)p->dim[4];
        const int64_t batch = p->dim[3];
        const dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE,
                        (unsigned)(batch < 65535 ? batch : 65535));
        transpose_kernel<W><<<grid, dim3(TILE, 8), 0, stream_of(q)>>>(
            static_cast<const W *>(p->x), static_cast<W *>(p->y), rows, cols, batch);
    } else if (n >= INT64_C(1) << 32) {
        return cudaErrorNotSupported;
    } else if (n > 0) {
        copy_kernel<W><<<blocks_for(q, n, THREADS), THREADS, 0, stream_of(q)>>>(*p, n);
    }
    return cudaGetLastError();
}

/* Merges adjacent dimensions that are contiguous on both sides; moves the remaining ones to the
 * end. */
static void simplify(ew_cuda_copy *p)
{
    ew_cuda_copy r = *p;
    int n = 0;
    for (int d = 0; d < p->rank; d++) {
        if (p->dim[d] == 1)
            continue;
        if (n > 0 && r.x_stride[n - 1] == p->x_stride[d] * p->dim[d] &&
            r.y_stride[n - 1] == p->y_stride[d] * p->dim[d]) {
            r.dim[n - 1] *= p->dim[d];
        } else {
            r.dim[n++] = p->dim[d];
        }
        r.x_stride[n - 1] = p->x_stride[d];
        r.y_stride[n - 1] = p->y_stride[d];
    }
    const int shift = EW_CUDA_COPY_DIMS - n;
    for (int d = EW_CUDA_COPY_DIMS - 1; d >= 0; d--) {
        p->dim[d] = d < shift ? 1 : r.dim[d - shift];
        p->x_stride[d] = d < shift ? 0 : r.x_stride[d - shift];
        p->y_stride[d] = d < shift ? 0 : r.y_stride[d - shift];
    }
    p->rank = EW_CUDA_COPY_DIMS;
}

/* Makes elements `times` as large, if row lengths, strides and alignment allow. */
static bool widen(ew_cuda_copy *p, int times)
{
    const int last = EW_CUDA_COPY_DIMS - 1;
    if (p->add_type >= 0 || p->bytes * times > 16 || p->x_stride[last] != 1 ||
        p->y_stride[last] != 1 || p->dim[last] % times || !aligned(p->x, p->bytes * times) ||
        !aligned(p->y, p->bytes * times))
        return false;
    for (int d = 0; d < last; d++)
        if (p->dim[d] > 1 && (p->x_stride[d] % times || p->y_stride[d] % times))
            return false;
    for (int d = 0; d < last; d++)
        p->x_stride[d] /= times, p->y_stride[d] /= times;
    p->dim[last] /= times;
    p->bytes *= times;
    return true;
}

extern "C" int ew_cu_strided_copy(ew_cuda_queue *q, const ew_cuda_copy *given)
{
    ew_cuda_copy p = *given;
    simplify(&p);
    while (p.bytes < 16 && widen(&p, 2))
        ;
    switch (p.bytes) {
    case 1:
        return copy_launch<uint8_t>(q, &p);
    case 2:
        return copy_launch<uint16_t>(q, &p);
    case 4:
        return copy_launch<uint32_t>(q, &p);
    case 8:
        return copy_launch<uint2>(q, &p);
    case 16:
        return copy_launch<uint4>(q, &p);
    }
    return cudaErrorNotSupported;
}

/* ---- Resampling ---- */

template <typename T>
__global__ void __launch_bounds__(THREADS) resize_kernel(const ew_cuda_resize p)
{
    const T *x = static_cast<const T *>(p.x);
    const int64_t count = (int64_t)p.n * p.oh * p.ow * p.c;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < count;
         k += (int64_t)gridDim.x * THREADS) {
        const int c = (int)(k % p.c), ox = (int)(k / p.c % p.ow);
        const int oy = (int)(k / p.c / p.ow % p.oh);
        const int64_t n = k / p.c / p.ow / p.oh;
        float sum = 0;
        for (int i = 0; i < p.taps_h; i++) {
            const float wy = p.weight_h[oy * p.taps_h + i];
            const T *row = x + (n * p.h + p.at_h[oy * p.taps_h + i]) * p.w * p.c + c;
            float part = 0;
            for (int j = 0; j < p.taps_w; j++)
                part += p.weight_w[ox * p.taps_w + j] *
                        to_float(row[(int64_t)p.at_w[ox * p.taps_w + j] * p.c]);
            sum += wy * part;
        }
        static_cast<T *>(p.y)[k] = from_float<T>(sum);
    }
}

extern "C" int ew_cu_resize(ew_cuda_queue *q, const ew_cuda_resize *p)
{
    const int64_t n = (int64_t)p->n * p->oh * p->ow * p->c;
    const unsigned blocks = blocks_for(q, n, THREADS);
    FOR_TYPE(p->type, (resize_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)));
    return cudaGetLastError();
}

/* ---- Few channels ---- */

__global__ void __launch_bounds__(THREADS)
    widen_kernel(const uint16_t *x, int c, pack<uint16_t, EW_CUDA_WIDE> *y, int64_t rows)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < rows;
         i += (int64_t)gridDim.x * THREADS) {
        pack<uint16_t, EW_CUDA_WIDE> v;
#pragma unroll
        for (int k = 0; k < EW_CUDA_WIDE; k++)
            v.v[k] = k < c ? x[i * c + k] : 0;
        y[i] = v;
    }
}

extern "C" int ew_cu_widen(ew_cuda_queue *q, const void *x, int c, void *y, int64_t rows)
{
    widen_kernel<<<blocks_for(q, rows, THREADS), THREADS, 0, stream_of(q)>>>(
        static_cast<const uint16_t *>(x), c, static_cast<pack<uint16_t, EW_CUDA_WIDE> *>(y), rows);
    return cudaGetLastError();
}
