/* SPDX-License-Identifier: Apache-2.0 */
/* Opening libedgewise-cuda.so, which holds all code that needs CUDA. */
#ifndef EW_BACKEND_CUDA_CUDA_MODULE_H
#define EW_BACKEND_CUDA_CUDA_MODULE_H

#include "backend/cuda/kernels.h"
#include "base/err.h"

/* Returns the module's functions.  The module is opened once and stays open.  It is searched for
 * beside the program or library, in the directory of the installation, and in the system's library
 * path; the environment variable EDGEWISE_CUDA_MODULE names another file.  Fails with
 * EW_ERR_UNSUPPORTED and a message that says what is missing: the module, a library that it needs,
 * a driver, a card. */
ew_err ew_cuda_open(const struct ew_cuda_api **out);

/* Converts a status code of the module to an error; `what` names the launch. */
ew_err ew_cuda_check(const struct ew_cuda_api *cu, int status, const char *what);

#define EW_CUDA_TRY(cu, call)                                                                      \
    do {                                                                                           \
        const int ew_cuda_status_ = (cu)->call;                                                    \
        if (ew_cuda_status_)                                                                       \
            return ew_cuda_check((cu), ew_cuda_status_, #call);                                    \
    } while (0)

#endif
