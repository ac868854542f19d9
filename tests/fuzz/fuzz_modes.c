/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: measurements of power modes as CSV, read and fitted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "advise/measured.h"
#include "advise/predictor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fit(struct ew_arena *a, const struct ew_mode_series *s)
{
    struct ew_predict_data d = {
        .modes = s->modes, .time = s->time, .power = s->power, .n = s->n < 16 ? s->n : 16};
    struct ew_predictor *p;
    struct ew_prediction out;
    if (ew_predictor_fit(a, &d, &p) != EW_OK)
        return;
    if (ew_predict(p, s->modes, 1, &out) != EW_OK || isnan(out.time.mid) ||
        out.time.low90 > out.time.high90)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    struct ew_arena a;
    struct ew_measured m;
    ew_arena_init(&a);
    if (ew_measured_parse(&a, "fuzz", text, &m) == EW_OK) {
        for (int i = 0; i < m.n; i++)
            if (!(m.rows[i].mode.cores > 0) || !(m.rows[i].mode.mem > 0) || m.rows[i].time <= 0)
                abort();
        struct ew_mode_series s;
        for (int w = 0; w < m.n_workloads && w < 2; w++)
            if (ew_measured_of(&a, &m, m.workloads[w], false, &s) == EW_OK && s.n >= EW_PREDICT_MIN)
                fit(&a, &s);
    }
    ew_arena_fini(&a);
    free(text);
    return 0;
}
