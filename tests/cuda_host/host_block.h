/* SPDX-License-Identifier: Apache-2.0 */
/* Execution of a launch, shared by host_block.cpp and host_runtime.cpp. */
#ifndef EW_CUDA_HOST_BLOCK_H
#define EW_CUDA_HOST_BLOCK_H

#include <functional>
#include <stdint.h>

#include <cuda_runtime.h>

namespace ew_host
{

/* Random numbers that decide every order: threads, blocks, streams.  The seed is
 * EW_CUDA_HOST_SEED. */
unsigned any_below(unsigned n);

/* 0, or the error that a card would report for the launch. */
cudaError_t check_launch(const launch &l);

/* Runs all blocks, one after another. */
void run(const launch &l, const std::function<void()> &thread);

} // namespace ew_host

#endif
