/* SPDX-License-Identifier: Apache-2.0 */
/* Logging to the sink that the program has set. */
#ifndef EW_BASE_LOG_H
#define EW_BASE_LOG_H

#include "edgewise.h" /* ew_log_set */

/* Logs one line.  Cheap without a sink; truncated at 1 KiB.  Any thread. */
void ew_log(enum ew_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define EW_WARN(...)  ew_log(EW_LOG_WARN, __VA_ARGS__)
#define EW_INFO(...)  ew_log(EW_LOG_INFO, __VA_ARGS__)
#define EW_DEBUG(...) ew_log(EW_LOG_DEBUG, __VA_ARGS__)

#endif
