/* SPDX-License-Identifier: Apache-2.0 */
/* Faults, as variables of the environment ask for them (README.md). */
#ifndef EW_CUDA_HOST_FAULTS_H
#define EW_CUDA_HOST_FAULTS_H

#include <cuda_runtime.h>

#define EW_HOST_CUDA 11040 /* version of the emulated driver and runtime */

namespace ew_host
{

/* Counts a call; `error` if it is one that fails. */
cudaError_t fault(const char *call, cudaError_t error = cudaErrorLaunchFailure);

/* Bytes of the card's memory. */
size_t memory(void);

/* Why there is no card. */
cudaError_t card(void);

} // namespace ew_host

#endif
