/* SPDX-License-Identifier: Apache-2.0 */
/* The thread's last error message. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Mutable state, but per thread. */
static _Thread_local char last_message[1024];

EW_API const char *ew_error_text(ew_err code)
{
    static const char *const text[] = {
#define EW_ERR_TEXT(name, what) what,
        EW_ERR_MAP(EW_ERR_TEXT)
#undef EW_ERR_TEXT
    };
    return (unsigned)code < EW_ERR_COUNT ? text[code] : "unknown error";
}

EW_API const char *ew_error_message(void)
{
    return last_message;
}

EW_API const char *ew_version(void)
{
    return EW_VERSION;
}

/* Removes control characters, since names in messages may come from untrusted files. */
static void make_plain(void)
{
    for (char *p = last_message; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
}

ew_err(ew_fail)(ew_err code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(last_message, sizeof(last_message), fmt, ap);
    va_end(ap);
    make_plain();
    return code;
}

ew_err ew_fail_in(ew_err code, const char *fmt, ...)
{
    if (code == EW_OK)
        return code;
    char inner[sizeof(last_message)];
    memcpy(inner, last_message, sizeof(inner));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(last_message, sizeof(last_message), fmt, ap);
    va_end(ap);
    if (n < 0)
        n = 0;
    /* truncates */
    if ((size_t)n < sizeof(last_message) &&
        snprintf(last_message + n, sizeof(last_message) - (size_t)n, ": %s", inner) < 0)
        last_message[n] = '\0';
    return code;
}

_Noreturn void ew_assert_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, what);
    abort();
}
