/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded blocking FIFO queue of pointers between threads.  Allocates nothing after init; does
 * not own its items. */
#ifndef EW_BASE_QUEUE_H
#define EW_BASE_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

struct ew_queue {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t not_full, not_empty;
    void **slots;
    int capacity, head, count;
    bool closed;
};

ew_err ew_queue_init(struct ew_queue *q, int capacity);
void ew_queue_fini(struct ew_queue *q); /* nobody may be waiting */

/* Blocks while the queue is full.  False: closed, and `item` was not queued. */
bool ew_queue_push(struct ew_queue *q, void *item);

/* Blocks while the queue is empty.  False: closed and drained. */
bool ew_queue_pop(struct ew_queue *q, void **item);

/* Like pop, but false at once if empty. */
bool ew_queue_try_pop(struct ew_queue *q, void **item);

/* Ends pushes and wakes all waiters.  Queued items can still be popped. */
void ew_queue_close(struct ew_queue *q);

#endif
