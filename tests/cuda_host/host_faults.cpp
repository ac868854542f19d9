/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: calls that fail, a card that is lost, one that is absent, one with little memory. */
#include <stdio.h>
#include <stdlib.h>

#include "host_faults.h"

namespace
{

/* EW_CUDA_HOST_FAIL=N: the Nth call fails; N+: those after it too, as when a card is lost. */
struct plan {
    long first = 0, calls = 0;
    bool lost = false;

    plan()
    {
        const char *text = getenv("EW_CUDA_HOST_FAIL");
        char *end = NULL;
        first = text ? strtol(text, &end, 10) : 0;
        lost = end && *end == '+';
    }

    ~plan()
    {
        if (first > calls)
            fprintf(stderr, "cuda_host: %ld calls\n", calls);
    }
};

} // namespace

cudaError_t ew_host::fault(const char *call, cudaError_t error)
{
    static plan p;
    if (!p.first)
        return cudaSuccess;
    const long n = __atomic_add_fetch(&p.calls, 1, __ATOMIC_RELAXED);
    if (n == p.first)
        fprintf(stderr, "cuda_host: call %ld fails: %s\n", n, call);
    return n == p.first || (n > p.first && p.lost) ? error : cudaSuccess;
}

size_t ew_host::memory(void)
{
    const char *text = getenv("EW_CUDA_HOST_MEMORY");
    const long mb = text ? atol(text) : 0;
    return mb > 0 ? (size_t)mb << 20 : (size_t)4 << 30;
}

cudaError_t ew_host::card(void)
{
    const char *text = getenv("EW_CUDA_HOST_DRIVER"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (text && atoi(text) < EW_HOST_CUDA)
        return cudaErrorInsufficientDriver;
    return visible && *visible != '0' ? cudaErrorNoDevice : cudaSuccess;
}
