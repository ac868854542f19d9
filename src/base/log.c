/* SPDX-License-Identifier: Apache-2.0 */
/* The log sink, a global. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic(const struct ew_log_sink *) current;

EW_API void ew_log_set(const struct ew_log_sink *sink)
{
    atomic_store_explicit(&current, sink, memory_order_release);
}

void ew_log(enum ew_log_level level, const char *fmt, ...)
{
    const struct ew_log_sink *sink = atomic_load_explicit(&current, memory_order_acquire);
    if (!sink || level > sink->level)
        return;
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    sink->write(sink->ctx, level, text);
}
