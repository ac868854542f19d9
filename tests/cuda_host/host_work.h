/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the libraries on a stream. */
#ifndef EW_CUDA_HOST_WORK_H
#define EW_CUDA_HOST_WORK_H

#include <functional>
#include <stdint.h>

#include <cuda_runtime.h>

namespace ew_host
{

cudaError_t enqueue_work(cudaStream_t s, const std::function<void()> &work);

/* Storage types of the libraries. */
enum storage { STORES_F32, STORES_F16, STORES_BF16 };

static inline size_t bytes_of(storage s)
{
    return s == STORES_F32 ? 4 : 2;
}

static inline float get(const void *p, int64_t i, storage s)
{
    return s == STORES_F32   ? static_cast<const float *>(p)[i]
           : s == STORES_F16 ? from_f16(static_cast<const uint16_t *>(p)[i])
                             : from_bf16(static_cast<const uint16_t *>(p)[i]);
}

static inline void put(void *p, int64_t i, storage s, float v)
{
    if (s == STORES_F32)
        static_cast<float *>(p)[i] = v;
    else
        static_cast<uint16_t *>(p)[i] = s == STORES_F16 ? to_f16(v) : to_bf16(v);
}

/* y [m, n] += a [m, k] b [k, n], all contiguous. */
void multiply(const float *a, const float *b, float *y, int64_t m, int64_t n, int64_t k);

} // namespace ew_host

#endif
