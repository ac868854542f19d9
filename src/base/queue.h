/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded first-in, first-out queue of pointers between threads.  It blocks, allocates nothing
 * after init and owns nothing of what passes through. */
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

/* Waits while the queue is full.  False: it has been closed and `item` was not taken. */
bool ew_queue_push(struct ew_queue *q, void *item);

/* Waits while the queue is empty.  False: it has been closed and all is drained. */
bool ew_queue_pop(struct ew_queue *q, void **item);

/* As pop, but false at once where nothing is there. */
bool ew_queue_try_pop(struct ew_queue *q, void **item);

/* No more pushes; wakes everyone.  What is inside can still be popped. */
void ew_queue_close(struct ew_queue *q);

#endif
