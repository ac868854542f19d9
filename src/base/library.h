/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that are opened when they are first needed: a command that does without one
 * neither waits for it nor fails where it is missing. */
#ifndef EW_BASE_LIBRARY_H
#define EW_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* dlopen, which a program that is linked statically does not have: libraries of the machine bring a
 * second C library.  NULL where it fails, with a text that says why. */
void *ew_library_load(const char *file, const char **why);

/* Writes the address of a function into the function pointer at `function`; NULL and false where
 * the library has none of the name. */
bool ew_library_find(void *library, const char *name, void *function);

struct ew_symbol {
    const char *name;
    void *function; /* as above */
};

/* Opens `file` ("libcurl.so.4") and finds all symbols of a list that a nameless one ends.  Fails
 * with EW_ERR_UNSUPPORTED, saying what is missing.  Close with dlclose. */
ew_err ew_library_open(const char *file, const struct ew_symbol *symbols, void **out);

/* The folder of the program or shared library that this code is in; "" where unknown. */
void ew_library_own_folder(char *out, size_t size);

/* Opens a module of Edgewise's own: the file that the environment variable names, else `file`
 * beside the program or the library, in the lib folders beside that, or where the system looks.
 * The message says what was wrong with it. */
ew_err ew_module_open(const char *file, const char *variable, void **out);

#endif
