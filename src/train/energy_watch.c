/* SPDX-License-Identifier: Apache-2.0 */
/* Power while a network trains. */
#include "train/energy_watch.h"

#include <stdlib.h>

#include "device/board.h"
#include "device/energy.h"
#include "device/sampler.h"

#define INTERVAL_NS 200000000 /* five times a second: an epoch of seconds has enough of them */
#define FRAMES      4096      /* a quarter of an hour without a drain */

struct ew_energy_watch {
    struct ew_board *board;
    struct ew_sampler *sampler;
    struct ew_sample_value *values;
    struct ew_energy_sum sum;
    int64_t last_ns; /* of the last frame; 0: none yet */
    struct ew_sample_value last_power, last_counter;
};

ew_err ew_energy_watch_new(struct ew_board *board, struct ew_energy_watch **out)
{
    *out = NULL;
    if (!board || (board->total.power < 0 && board->total.energy < 0))
        return EW_OK;
    struct ew_energy_watch *w = calloc(1, sizeof(*w));
    EW_CHECK(w, EW_ERR_MEMORY, "no memory for the sampler");
    w->board = board;
    w->values = calloc((size_t)board->n_channels + 1, sizeof(*w->values));
    const ew_err e = w->values ? ew_sampler_start(board, INTERVAL_NS, FRAMES, &w->sampler)
                               : ew_fail(EW_ERR_MEMORY, "no memory for the sampler");
    if (e == EW_OK)
        *out = w;
    else
        ew_energy_watch_free(w);
    return e;
}

void ew_energy_watch_free(struct ew_energy_watch *w)
{
    if (!w)
        return;
    ew_sampler_free(w->sampler);
    free(w->values);
    free(w);
}

static struct ew_sample_value channel(const struct ew_energy_watch *w, int i)
{
    return i >= 0 ? w->values[i] : ew_sample_value_absent(EW_ABSENT_NO_SENSOR);
}

void ew_energy_watch_drain(struct ew_energy_watch *w)
{
    int64_t t;
    while (w && ew_sampler_next(w->sampler, &t, w->values)) {
        w->last_ns = t;
        w->last_power = channel(w, w->board->total.power);
        w->last_counter = channel(w, w->board->total.energy);
        ew_energy_add(&w->sum, t, w->last_power, w->last_counter);
    }
}

void ew_energy_watch_begin(struct ew_energy_watch *w, int64_t now_ns)
{
    if (!w)
        return;
    ew_energy_watch_drain(w);
    const int power = w->board->total.power;
    ew_energy_begin(&w->sum, now_ns, INTERVAL_NS,
                    power >= 0 ? w->board->channels[power].resolution : 0);
    if (w->last_ns) /* the beginning is interpolated from the frame before */
        ew_energy_add(&w->sum, w->last_ns, w->last_power, w->last_counter);
}

struct ew_energy_used ew_energy_watch_end(struct ew_energy_watch *w, int64_t now_ns)
{
    if (!w)
        return (struct ew_energy_used){.known = false};
    ew_energy_watch_drain(w);
    ew_energy_stop(&w->sum, now_ns);
    const struct ew_energy e = ew_energy_result(&w->sum);
    return (struct ew_energy_used){.known = e.absent == EW_ABSENT_NOT,
                                   .joules = e.joules,
                                   .error_j = e.error_j,
                                   .mean_w = e.mean_w};
}
