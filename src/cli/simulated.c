/* SPDX-License-Identifier: Apache-2.0 */
/* Prints predictions for another board. */
#include "cli/simulated.h"

#include <math.h>
#include <stdio.h>

#include "advise/mode_grid.h"
#include "base/json.h"
#include "cli/predict_show.h"
#include "report/text_table.h"

/* The ends of the 90 % interval of a log-normal prediction. */
static double low90(double v, double sd)
{
    return v * exp(-1.645 * sd);
}

static double high90(double v, double sd)
{
    return v * exp(1.645 * sd);
}

static void show_text(const struct ew_simulated *s, const struct ew_simulated_run *r,
                      const char *name)
{
    const struct ew_sim_epoch *e = &r->run;
    const double ms = 1e3 * e->epoch_s;
    char mode[EW_MODE_CHARS];
    printf("%s, %s, batch %lld, SIMULATED on %s: %s\n", name,
           r->load.train ? "training step" : "inference", (long long)r->load.batch, s->board->title,
           ew_mode_text(&s->mode, ew_profile_lacks(s->board), mode));
    printf("time:      %.3f ms, 90 %% interval %.3f to %.3f\n", ms, low90(ms, EW_SIM_TIME_SD),
           high90(ms, EW_SIM_TIME_SD));
    printf("speed:     %.1f images/s\n", (double)r->load.batch / e->epoch_s);
    printf("power:     %.2f W (idle %.2f), 90 %% interval %.2f to %.2f; %.4g J per run\n",
           e->power_w, e->base_w, low90(e->power_w, EW_SIM_POWER_SD),
           high90(e->power_w, EW_SIM_POWER_SD), e->energy_j);
    if (e->throttled)
        printf("throttled: slowed to the board's budget of %.0f W\n", s->board->power_w);
    printf("work:      %.4g GFLOP, %.4g MB moved, %d kernels, %.1f MiB of memory\n",
           r->load.flops * 1e-9, r->load.bytes * 1e-6, r->load.n,
           (double)r->load.memory_bytes / (1 << 20));
    printf("model:     %s\n", s->board->model.source ? s->board->model.source : "");
}

static ew_err show_json(const struct ew_simulated *s, const struct ew_simulated_run *r,
                        const char *name)
{
    const struct ew_sim_epoch *e = &r->run;
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", name);
    ew_json_str(&j, "quality", "simulated");
    ew_json_str(&j, "board", s->board->name);
    ew_json_str(&j, "mode", r->load.train ? "train" : "infer");
    ew_json_mode(&j, &s->mode, ew_profile_lacks(s->board));
    ew_json_int(&j, "batch", r->load.batch);
    ew_json_num(&j, "median_ms", 1e3 * e->epoch_s);
    ew_json_num(&j, "low90_ms", low90(1e3 * e->epoch_s, EW_SIM_TIME_SD));
    ew_json_num(&j, "high90_ms", high90(1e3 * e->epoch_s, EW_SIM_TIME_SD));
    ew_json_num(&j, "images_per_s", (double)r->load.batch / e->epoch_s);
    ew_json_num(&j, "power_w", e->power_w);
    ew_json_bool(&j, "throttled", e->throttled);
    ew_json_num(&j, "idle_w", e->base_w);
    ew_json_num(&j, "energy_j", e->energy_j);
    ew_json_num(&j, "flops", r->load.flops);
    ew_json_num(&j, "bytes", r->load.bytes);
    ew_json_int(&j, "kernels", r->load.n);
    ew_json_int(&j, "planned_bytes", r->load.memory_bytes);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_simulated_show(const struct ew_simulated *s, const struct ew_simulated_run *r,
                         const char *name, bool json)
{
    if (json)
        return show_json(s, r, name);
    show_text(s, r, name);
    return EW_OK;
}
