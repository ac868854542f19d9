/* SPDX-License-Identifier: Apache-2.0 */
/* What the library has to say.  It prints nothing itself: a program sets a sink, or there is
 * silence. */
#ifndef EW_BASE_LOG_H
#define EW_BASE_LOG_H

enum ew_log_level { EW_LOG_WARN, EW_LOG_INFO, EW_LOG_DEBUG };

struct ew_log_sink {
    /* Gets one line without its newline; may be called by several threads at once. */
    void (*write)(void *ctx, enum ew_log_level level, const char *text);
    void *ctx;
    enum ew_log_level level; /* the most talkative one wanted */
};

/* Sets the sink for the process; `sink` is borrowed until another is set.  NULL: silence. */
void ew_log_set(const struct ew_log_sink *sink);

/* Says one line.  Cheap where nobody listens; longer than 1 KiB is cut.  Any thread. */
void ew_log(enum ew_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define EW_WARN(...)  ew_log(EW_LOG_WARN, __VA_ARGS__)
#define EW_INFO(...)  ew_log(EW_LOG_INFO, __VA_ARGS__)
#define EW_DEBUG(...) ew_log(EW_LOG_DEBUG, __VA_ARGS__)

#endif
