/* SPDX-License-Identifier: Apache-2.0 */
/* Records simulated metrics. */
#include "measure/simulated_record.h"

ew_err ew_simulated_metric(struct ew_recording *rec, const char *name, double value,
                           const char *unit, enum ew_better better)
{
    static const struct ew_recording_model board = {"board model", EW_QUALITY_SIMULATED};
    return ew_recording_modelled(rec, &board, name, value, unit, better);
}

ew_err ew_simulated_mark(struct ew_recording *rec)
{
    struct ew_run_row row;
    if (!rec->store)
        return EW_OK;
    ew_record_clear(EW_RECORD_RUN, &row);
    row.quality = EW_QUALITY_SIMULATED;
    return ew_store_run_update(rec->store, rec->run, &row);
}

ew_err ew_simulated_record(struct ew_recording *rec, const struct ew_simulated_run *r)
{
    const double ms = 1e3 * r->run.epoch_s;
    EW_TRY(ew_simulated_mark(rec));
    EW_TRY(ew_simulated_metric(rec, "median_ms", ms, "ms", EW_BETTER_LOWER));
    EW_TRY(ew_simulated_metric(rec, "images_per_s", 1e3 * (double)r->load.batch / ms, "1/s",
                               EW_BETTER_HIGHER));
    EW_TRY(ew_simulated_metric(rec, "power_w", r->run.power_w, "W", EW_BETTER_LOWER));
    EW_TRY(ew_simulated_metric(rec, "images_per_s_per_w",
                               1e3 * (double)r->load.batch / ms / r->run.power_w, "1/s/W",
                               EW_BETTER_HIGHER));
    EW_TRY(ew_simulated_metric(rec, "energy_j", r->run.energy_j, "J", EW_BETTER_LOWER));
    return ew_simulated_metric(rec, "planned_bytes", (double)r->load.memory_bytes, "B",
                               EW_BETTER_LOWER);
}
