/* SPDX-License-Identifier: Apache-2.0 */
/* A line with the current activity before progress can be shown.  Only on a terminal; progress
 * (base/progress.h) and output overwrite it. */
#ifndef EW_CLI_STATUS_LINE_H
#define EW_CLI_STATUS_LINE_H

/* Shows the line, as "compiling resnet50 ...". */
__attribute__((format(printf, 1, 2))) void ew_status_line(const char *format, ...);

/* Erases it. */
void ew_status_clear(void);

#endif
