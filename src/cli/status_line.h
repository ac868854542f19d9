/* SPDX-License-Identifier: Apache-2.0 */
/* One line that shows what a command is doing before it can show progress.  On a terminal only;
 * progress (base/progress.h) and what is printed take its place. */
#ifndef EW_CLI_STATUS_LINE_H
#define EW_CLI_STATUS_LINE_H

/* "compiling resnet50 ..." */
__attribute__((format(printf, 1, 2))) void ew_status_line(const char *format, ...);

/* Wipes it. */
void ew_status_clear(void);

#endif
