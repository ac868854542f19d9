/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the CUDA module. */
#include "backend/cuda/cuda_module.h"

#include <pthread.h>
#include <string.h>

#include "base/library.h"

#define FILE_NAME "libedgewise-cuda.so"

/* Opened once per process, under `lock`. */
static struct {
    pthread_mutex_t lock;
    const struct ew_cuda_api *api;
} module = {PTHREAD_MUTEX_INITIALIZER, NULL};

ew_err ew_cuda_check(const struct ew_cuda_api *cu, int status, const char *what)
{
    if (status == 0)
        return EW_OK;
    const char *text = cu->error_text(status);
    const int length = (int)strcspn(what, "(");
    return ew_fail(strstr(text, "out of memory") ? EW_ERR_MEMORY : EW_ERR_UNSUPPORTED,
                   "CUDA: %.*s: %s", length, what, text);
}

static ew_err load(const struct ew_cuda_api **out)
{
    void *library;
    EW_TRY(
        ew_fail_in(ew_module_open(FILE_NAME, "EDGEWISE_CUDA_MODULE", &library), "no CUDA device"));
    const struct ew_cuda_api *(*find)(void);
    EW_CHECK(ew_library_find(library, "ew_cuda_module", &find), EW_ERR_UNSUPPORTED,
             "no CUDA device: " FILE_NAME " is not Edgewise's");
    const struct ew_cuda_api *api = find();
    EW_CHECK(api->version == EW_CUDA_MODULE_VERSION, EW_ERR_UNSUPPORTED,
             "no CUDA device: " FILE_NAME " is of another version of Edgewise (%d, not %d)",
             api->version, EW_CUDA_MODULE_VERSION);
    *out = api;
    return EW_OK;
}

ew_err ew_cuda_open(const struct ew_cuda_api **out)
{
    pthread_mutex_lock(&module.lock);
    const ew_err e = module.api ? EW_OK : load(&module.api);
    *out = module.api;
    pthread_mutex_unlock(&module.lock);
    if (e != EW_OK)
        return e;
    int n = 0;
    const int status = (*out)->device_count(&n);
    EW_CHECK(status == 0 && n > 0, EW_ERR_UNSUPPORTED, "no CUDA device: %s",
             status ? (*out)->error_text(status) : "the driver lists none");
    return EW_OK;
}
