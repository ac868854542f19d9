/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries at run time. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

void *ew_library_load(const char *file, const char **why)
{
#ifdef EW_STATIC
    *why = "this program is static and opens no libraries";
    return NULL;
#else
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    *why = library ? "" : dlerror();
    return library;
#endif
}

bool ew_library_find(void *library, const char *name, void *function)
{
    void *p = dlsym(library, name);
    memcpy(function, &p, sizeof(p)); /* C has no cast from data to function */
    return p != NULL;
}

ew_err ew_library_open(const char *file, const struct ew_symbol *symbols, void **out)
{
    const char *why;
    void *library = ew_library_load(file, &why);
#ifdef EW_STATIC
    EW_CHECK(library, EW_ERR_UNSUPPORTED, "%s: %s", file, why);
#endif
    EW_CHECK(library, EW_ERR_UNSUPPORTED, "there is no %s on this machine", file);
    for (const struct ew_symbol *s = symbols; s->name; s++) {
        if (!ew_library_find(library, s->name, s->function)) {
            dlclose(library);
            return ew_fail(EW_ERR_UNSUPPORTED, "%s has no %s", file, s->name);
        }
    }
    *out = library;
    return EW_OK;
}
