/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the CUDA module. */
#include "backend/cuda/cuda_module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/mem.h"

#define FILE_NAME "libedgewise-cuda.so"

/* Opened once a process, under `lock`. */
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

/* The folder of the program or shared library that this function is in; "" where unknown. */
static void own_folder(char *out, size_t size)
{
    Dl_info info;
    ew_err (*self)(const struct ew_cuda_api **) = ew_cuda_open;
    void *address;
    memcpy(&address, &self, sizeof(address));
    out[0] = 0;
    char real[4096];
    if (!dladdr(address, &info) || !realpath(info.dli_fname, real))
        return;
    char *slash = strrchr(real, '/');
    if (slash)
        *slash = 0;
    snprintf(out, size, "%s", real);
}

static void *open_file(const char *folder, const char *below, char *tried, size_t size)
{
    char path[8192];
    snprintf(path, sizeof(path), "%s%s%s%s", folder, below, *folder ? "/" : "", FILE_NAME);
    const char *why;
    void *library = ew_library_load(path, &why);
    if (library)
        return library;
    /* A file that is there but does not load says more than one that is missing. */
    if (!tried[0] || !strstr(why, FILE_NAME ": cannot open"))
        snprintf(tried, size, "%s", why);
    return NULL;
}

static void *open_library(char *why, size_t size)
{
    static const char *const below[] = {"", "/../lib", "/../lib64",
#ifdef __aarch64__
                                        "/../lib/aarch64-linux-gnu"
#else
                                        "/../lib/x86_64-linux-gnu"
#endif
    };
    const char *given = getenv("EDGEWISE_CUDA_MODULE");
    char folder[4096];
    void *library = NULL;
    if (given && *given) {
        const char *failed;
        library = ew_library_load(given, &failed);
        if (!library)
            snprintf(why, size, "%s", failed);
        return library;
    }
    own_folder(folder, sizeof(folder));
    for (size_t i = 0; i < EW_COUNT(below) && !library && folder[0]; i++)
        library = open_file(folder, below[i], why, size);
    return library ? library : open_file("", "", why, size);
}

static ew_err load(const struct ew_cuda_api **out)
{
    char why[1024] = "";
    void *library = open_library(why, sizeof(why));
    EW_CHECK(library, EW_ERR_UNSUPPORTED, "no CUDA device: %s", why);
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
