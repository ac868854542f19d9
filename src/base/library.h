/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries opened on demand: a command that does not use one neither waits for it nor fails
 * if it is missing. */
#ifndef EW_BASE_LIBRARY_H
#define EW_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* dlopen; fails in statically linked programs, since the machine's libraries would bring a second C
 * library.  NULL on failure, with a reason. */
void *ew_library_load(const char *file, const char **why);

/* Stores the address of a function in the function pointer at `function`; NULL and false if there
 * is none. */
bool ew_library_find(void *library, const char *name, void *function);

struct ew_symbol {
    const char *name;
    void *function; /* as above */
};

/* Opens `file` ("libcurl.so.4") and resolves all symbols of a list terminated by a nameless one.
 * EW_ERR_UNSUPPORTED, naming what is missing.  Close with dlclose. */
ew_err ew_library_open(const char *file, const struct ew_symbol *symbols, void **out);

/* The folder of the program or shared library that contains this code; "": unknown. */
void ew_library_own_folder(char *out, size_t size);

/* Opens a module of Edgewise: the file named by the environment variable, else `file` beside the
 * program or library, in the lib folders beside that, or on the system's search path. */
ew_err ew_module_open(const char *file, const char *variable, void **out);

#endif
