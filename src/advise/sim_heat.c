/* SPDX-License-Identifier: Apache-2.0 */
/* Heat of simulated boards: C dT/dt = P - (T - room) / R. */
#include <math.h>

#include "advise/simulate.h"

#define ROOM_C 25.0

/* The least power while throttled, over that at rest: clocks do not fall to nothing. */
#define LEAST_SHARE 0.15

void ew_sim_heat_begin(const struct ew_profile *board, struct ew_sim_heat *h)
{
    const struct ew_profile_model *k = &board->model;
    h->temp_c = k->heat_c_per_w > 0 ? ROOM_C + k->heat_c_per_w * k->base_w : (double)NAN;
}

/* Seconds until a board that tends to `settled` has gone from `from` to `to`; inf: never. */
static double time_to(double from, double to, double settled, double tau)
{
    if (from >= to)
        return 0;
    return settled > to ? tau * log((settled - from) / (settled - to)) : HUGE_VAL;
}

void ew_sim_heat_epoch(const struct ew_profile *board, struct ew_sim_heat *h,
                       struct ew_sim_epoch *e)
{
    const struct ew_profile_model *k = &board->model;
    e->temp_c = h->temp_c;
    e->hot = false;
    if (!isfinite(h->temp_c))
        return;
    const double tau = k->heat_c_per_w * k->heat_j_per_c;
    const double settled = ROOM_C + k->heat_c_per_w * e->power_w;
    const double free_s = time_to(h->temp_c, k->throttle_c, settled, tau);
    if (free_s >= e->epoch_s || settled <= k->throttle_c) {
        h->temp_c = settled + (h->temp_c - settled) * exp(-e->epoch_s / tau);
        e->temp_c = h->temp_c;
        return;
    }
    const double hold_w = (k->throttle_c - ROOM_C) / k->heat_c_per_w;
    const double busy_w = e->power_w - e->base_w;
    const double left_w = fmax(hold_w - e->base_w, LEAST_SHARE * busy_w);
    const double late_s = (e->epoch_s - free_s) * busy_w / left_w;
    e->compute_s += free_s + late_s - e->epoch_s;
    e->epoch_s = free_s + late_s;
    e->energy_j = e->power_w * free_s + (e->base_w + left_w) * late_s;
    e->power_w = e->energy_j / e->epoch_s;
    e->hot = true;
    e->temp_c = h->temp_c = k->throttle_c;
}
