/* SPDX-License-Identifier: Apache-2.0 */
/* Available memory. */
#ifndef EW_TRAIN_MEMORY_LEFT_H
#define EW_TRAIN_MEMORY_LEFT_H

#include <stddef.h>

/* Bytes available in the system or left in the process's control group, whichever is less; SIZE_MAX
 * if unknown. */
size_t ew_memory_left(void);

#endif
