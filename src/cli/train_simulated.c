/* SPDX-License-Identifier: Apache-2.0 */
/* Output and metrics of `edgewise train --simulate`. */
#include "cli/train_simulated.h"

#include <math.h>
#include <stdio.h>

#include "cli/simulated.h"
#include "measure/simulated_training.h"

static void print_epoch(int64_t number, const struct ew_sim_epoch *e)
{
    printf("epoch %lld: %.2f s (compute %.2f, stall %.2f), %.2f W, %.1f J", (long long)number,
           e->epoch_s, e->compute_s, e->stall_s, e->power_w, e->energy_j);
    if (isfinite(e->temp_c))
        printf(", %.0f C%s", e->temp_c, e->hot ? " (throttled)" : "");
    printf("; simulated\n");
}

static ew_err epochs(const struct ew_train_run *r, struct ew_simulated *s)
{
    struct ew_simulated_training t;
    struct ew_sim_epoch e;
    struct ew_epoch_row row;
    EW_TRY(ew_simulated_training_begin(s, r->net, r->data, &r->o.train, &t));
    EW_TRY(ew_simulated_mark(r->rec));
    while (t.epochs < r->o.train.epochs) {
        EW_TRY(ew_simulated_training_epoch(&t, &e, &row));
        EW_TRY(ew_recording_put(r->rec, EW_RECORD_EPOCH, &row));
        if (!r->json)
            print_epoch(row.epoch, &e);
    }
    EW_TRY(ew_simulated_metric(r->rec, "train_s", t.seconds, "s", EW_BETTER_LOWER));
    EW_TRY(ew_simulated_metric(r->rec, "planned_bytes", (double)t.step.load.memory_bytes, "B",
                               EW_BETTER_LOWER));
    return ew_simulated_show(s, &t.step, r->net->name, r->json);
}

ew_err ew_train_simulated(const struct ew_train_run *r)
{
    struct ew_simulated s;
    ew_err e = ew_fail_in(ew_simulated_init(&s, r->o.simulate), "--simulate");
    if (e == EW_OK)
        e = epochs(r, &s);
    ew_simulated_fini(&s);
    return e;
}
