/* SPDX-License-Identifier: Apache-2.0 */
/* Readings to the store. */
#include "study/run_watch.h"

#include <math.h>

#include "base/clock.h"

static ew_err put_samples(struct ew_run_watch *r)
{
    struct ew_watch_sample s;
    while (ew_watch_next(r->watch, &s)) {
        struct ew_sample_row row;
        ew_record_clear(EW_RECORD_SAMPLE, &row);
        row.t_s = fmax(0, (double)(s.t_ns - r->start_ns) / (double)EW_NS_PER_S);
        row.channel = s.channel;
        row.value = s.value;
        row.unit = s.unit;
        row.quality = (int)s.quality;
        EW_TRY(ew_store_put(r->store, EW_RECORD_SAMPLE, r->run, &row));
    }
    return EW_OK;
}

static ew_err put_metric(const struct ew_run_watch *r, const struct ew_energy *x,
                         struct ew_metric_row *m)
{
    m->source = ew_watch_board(r->watch)->total.rails;
    m->quality = x->counted ? EW_QUALITY_MEASURED : EW_QUALITY_DERIVED;
    m->n = x->samples;
    m->better = EW_BETTER_LOWER;
    return ew_store_put(r->store, EW_RECORD_METRIC, r->run, m);
}

/* Images per second and watt, if the run has a metric images_per_s. */
static ew_err put_per_watt(const struct ew_run_watch *r, const struct ew_energy *x)
{
    struct ew_metric_row m;
    struct ew_rows *rows;
    ew_record_clear(EW_RECORD_METRIC, &m);
    EW_TRY(ew_store_query(r->store, &rows,
                          "SELECT value FROM metric WHERE run = ?1 AND name = 'images_per_s'", "i",
                          r->run));
    const double images = ew_rows_next(rows) ? ew_rows_num(rows, 0) : (double)NAN;
    EW_TRY(ew_rows_free(rows));
    if (!isfinite(images) || !(x->mean_w > 0))
        return EW_OK;
    m.name = "images_per_s_per_w";
    m.value = images / x->mean_w;
    m.unit = "1/s/W";
    m.quality = EW_QUALITY_DERIVED;
    m.better = EW_BETTER_HIGHER;
    return ew_store_put(r->store, EW_RECORD_METRIC, r->run, &m);
}

static ew_err put_energy(const struct ew_run_watch *r, const struct ew_energy *x)
{
    struct ew_metric_row m;
    if (x->absent != EW_ABSENT_NOT)
        return EW_OK;
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = "run_energy_j";
    m.value = x->joules;
    m.unit = "J";
    m.spread = x->error_j;
    EW_TRY(put_metric(r, x, &m));
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = "run_power_w";
    m.value = x->mean_w;
    m.unit = "W";
    if (x->samples > 0) {
        m.lowest = x->min_w;
        m.highest = x->peak_w;
    }
    EW_TRY(put_metric(r, x, &m));
    return put_per_watt(r, x);
}

static ew_err in_one_go(struct ew_run_watch *r, const struct ew_energy *energy)
{
    EW_TRY(ew_store_begin(r->store));
    ew_err err = put_samples(r);
    if (err == EW_OK && energy)
        err = put_energy(r, energy);
    const ew_err ended = ew_store_end(r->store, err == EW_OK);
    return err == EW_OK ? ended : err;
}

ew_err ew_run_watch_put(struct ew_run_watch *r)
{
    return r->watch && r->store ? in_one_go(r, NULL) : EW_OK;
}

ew_err ew_run_watch_end(struct ew_run_watch *r)
{
    ew_watch_stop(r->watch);
    if (!r->watch || !r->store)
        return EW_OK;
    const struct ew_energy all = ew_watch_total(r->watch);
    return in_one_go(r, &all);
}
