/* SPDX-License-Identifier: Apache-2.0 */
/* An emulated DPU: bit-identical to the hardware, computed on the CPU. */
#ifndef EW_BACKEND_DPU_BACKEND_H
#define EW_BACKEND_DPU_BACKEND_H

#include "backend/cpu/cpu_backend.h"
#include "backend/dpu/dpu_arch.h"

/* Begins with the CPU backend's struct, so CPU kernels run on it: they do what the DPU cannot, like
 * the host of a real one. */
struct ew_dpu {
    struct ew_cpu cpu;
    struct ew_backend *host; /* owner of the threads and memory */
    struct ew_dpu_config config;
    char name[96], device[96], target[64];
};

extern const struct ew_backend_type ew_dpu_type;

/* Kernels of single operators; return their number (0 or 1). */
int ew_dpu_offer_conv(const struct ew_kernel_query *query, struct ew_kernel *out);
int ew_dpu_offer_eltwise(const struct ew_kernel_query *query, struct ew_kernel *out);
int ew_dpu_offer_pool(const struct ew_kernel_query *query, struct ew_kernel *out);
int ew_dpu_offer_input(const struct ew_kernel_query *query, struct ew_kernel *out);

#endif
