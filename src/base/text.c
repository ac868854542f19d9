/* SPDX-License-Identifier: Apache-2.0 */
/* String helpers. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

bool ew_has_extension(const char *name, const char *const *extensions)
{
    const char *dot = strrchr(name, '.');
    for (; dot && *extensions; extensions++)
        if (strcasecmp(dot, *extensions) == 0)
            return true;
    return false;
}

void ew_text_add(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}
