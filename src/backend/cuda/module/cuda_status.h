/* SPDX-License-Identifier: Apache-2.0 */
/* One status code for the errors of CUDA, cuDNN and cuBLASLt: CUDA's unchanged, the others' with an
 * offset. */
#ifndef EW_BACKEND_CUDA_MODULE_CUDA_STATUS_H
#define EW_BACKEND_CUDA_MODULE_CUDA_STATUS_H

#include "backend/cuda/kernels.h"

enum { EW_CU_CUDNN = 100000, EW_CU_BLAS = 200000 };

#define EW_CU_STEP(call, base)                                                                     \
    do {                                                                                           \
        const int ew_status = (int)(call);                                                         \
        if (ew_status)                                                                             \
            return (base) + ew_status;                                                             \
    } while (0)

#define EW_CU_TRY(call)       EW_CU_STEP(call, 0)
#define EW_CU_CUDNN_TRY(call) EW_CU_STEP(call, EW_CU_CUDNN)
#define EW_CU_BLAS_TRY(call)  EW_CU_STEP(call, EW_CU_BLAS)

/* Makes the queue's workspace at least this large; the limit is the caller's to keep. */
int ew_cu_workspace(struct ew_cuda_queue *q, size_t bytes);

#endif
