/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that reads a board at absolute deadlines of the monotonic clock and passes frames
 * through a lock-free ring buffer.  It allocates nothing while it runs; it measures its cost. */
#ifndef EW_DEVICE_SAMPLER_H
#define EW_DEVICE_SAMPLER_H

#include "device/board.h"

struct ew_sampler;

struct ew_sampler_stats {
    int64_t frames;       /* frames read */
    int64_t missed;       /* deadlines missed because the previous reading took too long */
    int64_t dropped;      /* frames lost because the ring was full */
    double cpu_s, wall_s; /* of the sampler thread */
    double read_mean_s, read_max_s;
};

/* Longest interval between drains; the ring holds ten times the frames of one, within limits. */
#define EW_SAMPLER_DRAIN_NS 100000000L
static inline int ew_sampler_frames(int64_t interval_ns)
{
    const int64_t frames = 10 * EW_SAMPLER_DRAIN_NS / (interval_ns > 0 ? interval_ns : 1);
    return (int)(frames < 64 ? 64 : frames > 8192 ? 8192 : frames);
}

/* Starts reading `board` every interval_ns; until stop, only the sampler uses the board.  `frames`
 * is the capacity of the ring (0: 64).  The first frame is read at once. */
ew_err ew_sampler_start(struct ew_board *board, int64_t interval_ns, int frames,
                        struct ew_sampler **out);

/* Takes the oldest frame: its time (the middle of the reading) and the board's n_channels values.
 * False: the ring is empty.  Only one thread may consume. */
bool ew_sampler_next(struct ew_sampler *s, int64_t *t_ns, struct ew_sample_value *values);

/* Reads one last frame and ends the thread; frames can still be taken.  May be called twice. */
void ew_sampler_stop(struct ew_sampler *s);

/* Statistics so far; final after stop. */
struct ew_sampler_stats ew_sampler_stats(const struct ew_sampler *s);

void ew_sampler_free(struct ew_sampler *s); /* stops it first; NULL: no effect */

#endif
