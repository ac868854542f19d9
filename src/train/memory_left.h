/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process may still take. */
#ifndef EW_TRAIN_MEMORY_LEFT_H
#define EW_TRAIN_MEMORY_LEFT_H

#include <stddef.h>

/* Bytes that the system says are available, or that the process's control group leaves, whichever
 * is less; SIZE_MAX where neither tells. */
size_t ew_memory_left(void);

#endif
