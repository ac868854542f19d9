/* SPDX-License-Identifier: Apache-2.0 */
/* Wgrad by Winograd: conditions, cost, phases, tiles and memory. */
#include "backend/cpu/kernel/winograd/winograd_wgrad.h"

double EW_K(winograd_wgrad_cycles)(const struct ew_conv_shape *s)
{
    return form_cost(s, form_of(s)) / A_CYCLE;
}

bool EW_K(winograd_wgrad_fits)(const struct ew_conv_shape *s)
{
    if (!EW_K(winograd_fits)(s) || 4 * frame_channels(s) < 3 * LANES || s->cout < MR ||
        bias_tap(s) < 0)
        return false;
    const double taps = (double)time_taps(s) * s->axis[1].taps * s->axis[2].taps;
    const double rows = (double)images_of(s) * s->axis[1].out * s->axis[2].out;
    return form_cost(s, form_of(s)) < 0.9 * rows * taps * s->cin * s->cout;
}

/* Floats of V and Y, and of U unless threads have their own. */
static int64_t shared_size(const struct wgrad_plan *p)
{
    return p->products * (p->step + (p->whole ? 0 : p->u_step));
}

size_t EW_K(winograd_wgrad_shared)(const struct ew_conv_shape *s)
{
    int64_t most = 0;
    for (int tap = 0; tap < time_taps(s); tap++) {
        struct wgrad_plan p;
        wgrad_plan_init(&p, s, tap);
        most = max_i64(most, shared_size(&p));
    }
    return (size_t)(bias_size(s) + most);
}

/* Scratch: zeros or one output's filter (zeros_size), then cells of one image tile or of that
 * filter, or U. */
size_t EW_K(winograd_wgrad_scratch)(const struct ew_conv_shape *s)
{
    int64_t most = 0;
    for (int tap = 0; tap < time_taps(s); tap++) {
        struct wgrad_plan p;
        wgrad_plan_init(&p, s, tap);
        const int64_t cells = has_cells(s) ? p.products * p.cin : 0;
        const int64_t u = p.whole ? p.products * p.u_step : 0;
        most = max_i64(most, zeros_size(&p, s) + cells + u);
    }
    return (size_t)most * sizeof(float);
}

int64_t EW_K(winograd_wgrad_phases)(const struct ew_conv_shape *s)
{
    int64_t phases = 0;
    for (int tap = 0; tap < time_taps(s); tap++) {
        struct wgrad_plan p;
        wgrad_plan_init(&p, s, tap);
        phases += wgrad_phases(&p);
    }
    return phases;
}

int64_t EW_K(winograd_wgrad_tiles)(const struct ew_conv_shape *s, int64_t phase)
{
    struct wgrad_plan p;
    phase = wgrad_phase_init(&p, s, phase);
    if (phase == 2 * p.blocks)
        return s->cout;
    if (phase % 2)
        return p.whole ? p.o_blocks : p.products * p.o_splits;
    return div_up(min_i64(p.block, p.grid.tiles - phase / 2 * p.block), GROUP);
}
