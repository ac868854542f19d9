/* SPDX-License-Identifier: Apache-2.0 */
/* String helpers. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void ew_text_add(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}
