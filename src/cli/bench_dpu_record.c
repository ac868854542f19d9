/* SPDX-License-Identifier: Apache-2.0 */
/* Records a network's modelled DPU times; each is marked as modelled. */
#include "cli/bench_dpu.h"
#include "graph/facts.h"

static ew_err put(struct ew_recording *rec, const char *name, double value, const char *unit,
                  enum ew_better better)
{
    static const struct ew_recording_model dpu = {"DPU model", EW_QUALITY_MODELLED};
    return ew_recording_modelled(rec, &dpu, name, value, unit, better);
}

static ew_err put_power(struct ew_recording *rec, const struct ew_dpu_config *c,
                        const struct ew_dpu_times *t)
{
    if (!(t->watts_one > 0))
        return EW_OK;
    EW_TRY(put(rec, "power_w", t->watts_one, "W", EW_BETTER_LOWER));
    EW_TRY(put(rec, "dynamic_w", t->watts_one - c->board->idle_w, "W", EW_BETTER_LOWER));
    EW_TRY(put(rec, "energy_j", t->watts_one * t->latency_s, "J", EW_BETTER_LOWER));
    return put(rec, "images_per_s_per_w", 1 / t->latency_s / t->watts_one, "1/s/W",
               EW_BETTER_HIGHER);
}

ew_err ew_dpu_record(struct ew_recording *rec, const struct ew_facts *f,
                     const struct ew_dpu_config *c, const struct ew_dpu_times *t)
{
    struct ew_run_row row;
    if (!rec->store)
        return EW_OK;
    ew_record_clear(EW_RECORD_RUN, &row);
    row.quality = EW_QUALITY_MODELLED;
    EW_TRY(ew_store_run_update(rec->store, rec->run, &row));
    EW_TRY(put(rec, "median_ms", 1e3 * t->latency_s, "ms", EW_BETTER_LOWER));
    EW_TRY(put(rec, "core_ms", 1e3 * t->core_s, "ms", EW_BETTER_LOWER));
    EW_TRY(put(rec, "images_per_s", t->images_s, "1/s", EW_BETTER_HIGHER));
    EW_TRY(put(rec, "efficiency", t->efficiency, NULL, EW_BETTER_HIGHER));
    EW_TRY(put_power(rec, c, t));
    EW_TRY(ew_recording_derived(rec, "parameters", (double)f->params, NULL, EW_BETTER_LOWER));
    return ew_recording_derived(rec, "macs", (double)f->macs, NULL, EW_BETTER_LOWER);
}
