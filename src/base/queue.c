/* SPDX-License-Identifier: Apache-2.0 */
/* The bounded queue. */
#include "base/queue.h"

#include <stdlib.h>

ew_err ew_queue_init(struct ew_queue *q, int capacity)
{
    EW_CHECK(capacity > 0, EW_ERR_ARG, "a queue of %d slots", capacity);
    *q = (struct ew_queue){.capacity = capacity};
    q->slots = calloc((size_t)capacity, sizeof(*q->slots));
    EW_CHECK(q->slots, EW_ERR_MEMORY, "no memory for a queue of %d slots", capacity);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->not_full, NULL);
    pthread_cond_init(&q->not_empty, NULL);
    return EW_OK;
}

void ew_queue_fini(struct ew_queue *q)
{
    pthread_cond_destroy(&q->not_empty);
    pthread_cond_destroy(&q->not_full);
    pthread_mutex_destroy(&q->lock);
    free(q->slots);
    q->slots = NULL;
}

bool ew_queue_push(struct ew_queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    while (q->count == q->capacity && !q->closed)
        pthread_cond_wait(&q->not_full, &q->lock);
    const bool taken = !q->closed;
    if (taken) {
        q->slots[(q->head + q->count) % q->capacity] = item;
        q->count++;
        pthread_cond_signal(&q->not_empty);
    }
    pthread_mutex_unlock(&q->lock);
    return taken;
}

/* With the lock held. */
static bool take(struct ew_queue *q, void **item)
{
    if (q->count == 0)
        return false;
    *item = q->slots[q->head];
    q->head = (q->head + 1) % q->capacity;
    q->count--;
    pthread_cond_signal(&q->not_full);
    return true;
}

bool ew_queue_pop(struct ew_queue *q, void **item)
{
    pthread_mutex_lock(&q->lock);
    while (q->count == 0 && !q->closed)
        pthread_cond_wait(&q->not_empty, &q->lock);
    const bool got = take(q, item);
    pthread_mutex_unlock(&q->lock);
    return got;
}

bool ew_queue_try_pop(struct ew_queue *q, void **item)
{
    pthread_mutex_lock(&q->lock);
    const bool got = take(q, item);
    pthread_mutex_unlock(&q->lock);
    return got;
}

void ew_queue_close(struct ew_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->not_full);
    pthread_cond_broadcast(&q->not_empty);
    pthread_mutex_unlock(&q->lock);
}
