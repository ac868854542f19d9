/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries at run time. */
#include "base/library.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define WHY_CHARS 1024

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

/* "libcurl4" of "libcurl.so.4": what Debian calls the package. */
static void package_of(const char *file, char *out, size_t size)
{
    const char *so = strstr(file, ".so.");
    const int n = so ? (int)(so - file) : (int)strlen(file);
    snprintf(out, size, "%.*s%s", n, file, so ? so + 4 : "");
}

ew_err ew_library_open(const char *file, const struct ew_symbol *symbols, void **out)
{
    const char *why;
    void *library = ew_library_load(file, &why);
#ifdef EW_STATIC
    EW_CHECK(library, EW_ERR_UNSUPPORTED, "%s: %s", file, why);
#endif
    char package[64];
    package_of(file, package, sizeof(package));
    EW_CHECK(library, EW_ERR_UNSUPPORTED, "%s is not installed; Debian's package of it is %s", file,
             package);
    for (const struct ew_symbol *s = symbols; s->name; s++) {
        if (!ew_library_find(library, s->name, s->function)) {
            dlclose(library);
            return ew_fail(EW_ERR_UNSUPPORTED, "%s has no %s", file, s->name);
        }
    }
    *out = library;
    return EW_OK;
}

/* ---- Modules of our own ---------------------------------------------------------------------- */

/* The file that contains this code, from the memory map.  dladdr() only knows argv[0], which could
 * name another file in the current folder, and modules beside that would be executed. */
static bool own_file(char *out, size_t size)
{
    ew_err (*self)(const char *, const char *, void **) = ew_module_open;
    uintptr_t address;
    memcpy(&address, &self, sizeof(address));
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4096 + 256];
    bool found = false;
    while (maps && !found && fgets(line, sizeof(line), maps)) {
        char *end;
        const uintmax_t from = strtoumax(line, &end, 16);
        const uintmax_t to = *end == '-' ? strtoumax(end + 1, &end, 16) : 0;
        const char *path = strchr(line, '/');
        line[strcspn(line, "\n")] = 0;
        found =
            from <= address && address < to && path && snprintf(out, size, "%s", path) < (int)size;
    }
    if (maps)
        fclose(maps);
    return found;
}

void ew_library_own_folder(char *out, size_t size)
{
    char file[4096];
    out[0] = 0;
    if (!own_file(file, sizeof(file)))
        return;
    *strrchr(file, '/') = 0;
    if (strlen(file) < size)
        snprintf(out, size, "%s", file);
}

/* True if dlopen's error means that the file does not exist. */
static bool is_absent(const char *said, const char *file)
{
    const char *missing = strstr(said, ": cannot open");
    const size_t n = strlen(file);
    return missing && missing >= said + n && strncmp(missing - n, file, n) == 0;
}

static void *open_below(const char *folder, const char *below, const char *file, char *why)
{
    char path[8192];
    snprintf(path, sizeof(path), "%s%s%s%s", folder, below, *folder ? "/" : "", file);
    const char *said;
    void *library = ew_library_load(path, &said);
    if (library)
        return library;
    /* an unusable file is the more helpful error */
    if (!why[0] || !is_absent(said, file))
        snprintf(why, WHY_CHARS, "%s", said);
    return NULL;
}

ew_err ew_module_open(const char *file, const char *variable, void **out)
{
    static const char *const below[] = {"", "/../lib", "/../lib64",
#ifdef __aarch64__
                                        "/../lib/aarch64-linux-gnu"
#else
                                        "/../lib/x86_64-linux-gnu"
#endif
    };
    const char *given = getenv(variable);
    char folder[4096], why[WHY_CHARS] = "";
    *out = NULL;
    if (given && *given) {
        const char *failed;
        *out = ew_library_load(given, &failed);
        EW_CHECK(*out, EW_ERR_UNSUPPORTED, "%s", failed);
        return EW_OK;
    }
    ew_library_own_folder(folder, sizeof(folder));
    for (size_t i = 0; i < EW_COUNT(below) && !*out && folder[0]; i++)
        *out = open_below(folder, below[i], file, why);
    if (!*out)
        *out = open_below("", "", file, why);
    EW_CHECK(*out || !is_absent(why, file), EW_ERR_UNSUPPORTED, "%s is not installed", file);
    EW_CHECK(*out, EW_ERR_UNSUPPORTED, "%s", why);
    return EW_OK;
}
