/* SPDX-License-Identifier: Apache-2.0 */
/* A line with the current activity of a command. */
#include "cli/status_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/progress.h"

void ew_status_line(const char *format, ...)
{
    char text[256];
    va_list args;
    if (!isatty(STDERR_FILENO))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    ew_term_rewrite(stderr, text);
}

void ew_status_clear(void)
{
    if (isatty(STDERR_FILENO))
        ew_term_clear_line(stderr);
}
