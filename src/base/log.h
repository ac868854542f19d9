/* SPDX-License-Identifier: Apache-2.0 */
/* Logging.  The library prints nothing: messages go to the program's sink, if set. */
#ifndef EW_BASE_LOG_H
#define EW_BASE_LOG_H

enum ew_log_level { EW_LOG_WARN, EW_LOG_INFO, EW_LOG_DEBUG };

struct ew_log_sink {
    /* Gets one line without its newline; may be called by several threads at once. */
    void (*write)(void *ctx, enum ew_log_level level, const char *text);
    void *ctx;
    enum ew_log_level level; /* most verbose level wanted */
};

/* Sets the process's sink, which is borrowed; NULL: none. */
void ew_log_set(const struct ew_log_sink *sink);

/* Logs one line.  Cheap without a sink; truncated at 1 KiB.  Any thread. */
void ew_log(enum ew_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define EW_WARN(...)  ew_log(EW_LOG_WARN, __VA_ARGS__)
#define EW_INFO(...)  ew_log(EW_LOG_INFO, __VA_ARGS__)
#define EW_DEBUG(...) ew_log(EW_LOG_DEBUG, __VA_ARGS__)

#endif
