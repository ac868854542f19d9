/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that reads a board on time: absolute deadlines on the monotonic clock, frames handed
 * over through a ring without locks.  It allocates nothing while it runs, and measures itself. */
#ifndef EW_DEVICE_SAMPLER_H
#define EW_DEVICE_SAMPLER_H

#include "device/board.h"

struct ew_sampler;

struct ew_sampler_stats {
    int64_t frames;       /* read */
    int64_t missed;       /* deadlines that passed while the frame before was still being read */
    int64_t dropped;      /* frames that found the ring full */
    double cpu_s, wall_s; /* of the thread */
    double read_mean_s, read_max_s;
};

/* The ring is emptied at least so often; its capacity then is ten times what comes in between,
 * within reason. */
#define EW_SAMPLER_DRAIN_NS 100000000L
static inline int ew_sampler_frames(int64_t interval_ns)
{
    const int64_t frames = 10 * EW_SAMPLER_DRAIN_NS / (interval_ns > 0 ? interval_ns : 1);
    return (int)(frames < 64 ? 64 : frames > 8192 ? 8192 : frames);
}

/* Starts reading `board`, which belongs to the sampler until it is stopped, every interval_ns.
 * `frames` is the ring's capacity (0: 64).  The first frame is read at once. */
ew_err ew_sampler_start(struct ew_board *board, int64_t interval_ns, int frames,
                        struct ew_sampler **out);

/* Takes the oldest frame: its time (the middle of the reading) and the board's n_channels values.
 * False: none is there.  One consumer thread. */
bool ew_sampler_next(struct ew_sampler *s, int64_t *t_ns, struct ew_sample_value *values);

/* Reads one last frame and ends the thread; frames can still be taken.  Fine to call twice. */
void ew_sampler_stop(struct ew_sampler *s);

/* Figures up to now; whole after stop. */
struct ew_sampler_stats ew_sampler_stats(const struct ew_sampler *s);

void ew_sampler_free(struct ew_sampler *s); /* stops it first; NULL is fine */

#endif
