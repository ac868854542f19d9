/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs of a job on another machine, sent one by one as they end from the database there into the
 * running job's row here, so that the live page shows them.  The job's own rows replace them when
 * it is done. */
#ifndef EW_STUDY_EPOCH_FEED_H
#define EW_STUDY_EPOCH_FEED_H

#include "store/store.h"
#include "study/frames.h"

#define EW_FEED_DB 256

/* State of the sender: what was sent last. */
struct ew_epoch_feed {
    char db[EW_FEED_DB]; /* the store that the job writes to; "": none is known */
    int64_t run, epoch;
};

/* A command begins, with these words ("word\0word\0"). */
void ew_epoch_feed_begin(struct ew_epoch_feed *f, const char *words, size_t size);
/* Sends what has ended since; a store that cannot be read now is read the next time. */
ew_err ew_epoch_feed_send(struct ew_epoch_feed *f, struct ew_frames *io);

/* The receiver: puts the message's epoch into the run; refuses malformed messages. */
ew_err ew_epoch_feed_take(struct ew_store *s, int64_t run, const struct ew_frame *message);

#endif
