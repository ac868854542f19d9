/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of a batch norm before squeeze-and-excite: the factor's gradient and the norm's two sums
 * in one pass, against plain C in double.  tests/plan/test_defer.c tests whole networks. */
#include "kernel_test.h"
#include "ref_conv.h"

static const struct {
    const char *name;
    enum ew_act act;
    int images, rows, channels;
} cases[] = {{"hard swish", EW_ACT_HARD_SWISH, 3, 49, 40},
             {"relu", EW_ACT_RELU, 2, 50, 17},
             {"clip", EW_ACT_CLIP, 1, 9, 300},
             {"silu", EW_ACT_SILU, 2, 33, 64},
             {"linear", EW_ACT_NONE, 4, 1, 5}};

enum { MEAN, RSTD, SCALE, BIAS, PER };

struct data {
    int64_t images, rows, channels, n, small;
    float *per[PER], *x, *dm, *factor, *average_grad, *dfactor, *sums, *total;
    struct ew_batch_norm b;
};

static void data_init(struct data *d)
{
    d->n = d->images * d->rows * d->channels;
    d->small = d->images * d->channels;
    for (uint64_t i = 0; i < PER; i++)
        d->per[i] = test_array(d->channels, 31 + i);
    d->x = test_array(d->n, 1);
    d->dm = test_array(d->n, 3);
    d->factor = test_array(d->small, 5);
    d->average_grad = test_array(d->small, 7);
    d->dfactor = test_array(d->small, 9);
    d->sums = test_array(4 * d->small, 11);
    d->total = test_array(2 * d->channels, 13);
    d->b.rows = d->images * d->rows;
    d->b.channels = d->channels;
    d->b.image = d->rows;
    d->b.x = d->x;
    d->b.dy = d->dm;
    d->b.mean = d->per[MEAN];
    d->b.rstd = d->per[RSTD];
    d->b.scale = d->per[SCALE];
    d->b.bias = d->per[BIAS];
    d->b.hi = 0.5f;
}

static void data_fini(struct data *d)
{
    float *const all[] = {d->x, d->dm, d->factor, d->average_grad, d->dfactor, d->sums, d->total};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        ew_guard_free(all[i]);
    for (int i = 0; i < PER; i++)
        ew_guard_free(d->per[i]);
}

static double z_of(const struct data *d, int64_t i)
{
    const int64_t c = i % d->channels;
    return ((double)d->x[i] - (double)d->per[MEAN][c]) * (double)d->per[RSTD][c] *
               (double)d->per[SCALE][c] +
           (double)d->per[BIAS][c];
}

static double slope(const struct ew_batch_norm *b, double z)
{
    if (b->act == EW_ACT_RELU)
        return z > 0;
    if (b->act == EW_ACT_CLIP)
        return z > 0 && z < 0.5;
    return (ref_act(b->act, z + 1e-6, 0, 0) - ref_act(b->act, z - 1e-6, 0, 0)) / 2e-6;
}

/* Near a kink both derivatives are right, so x is moved away from kinks. */
static void keep_off_kinks(struct data *d)
{
    const double kinks[] = {0, 0.5, -3, 3};
    for (int64_t i = 0; i < d->n; i++)
        for (int k = 0; k < 4; k++)
            if (fabs(z_of(d, i) - kinks[k]) < 1e-4)
                d->x[i] += 0.1f;
}

static void gated(const struct ew_kernels *k, struct data *d)
{
    double *dfactor = test_zeros(d->small), *total = test_zeros(2 * d->channels);
    const double by = 1 / (double)d->rows;
    struct ew_squeeze_excite_norm g = {
        .norm = &d->b, .dfactor = d->dfactor, .add = true, .sums = d->sums};
    keep_off_kinks(d);
    for (int64_t i = 0; i < d->small; i++)
        dfactor[i] = (double)d->dfactor[i];
    for (int64_t i = 0; i < d->n; i++) {
        const int64_t c = i % d->channels, at = i / d->channels / d->rows * d->channels + c;
        const double z = z_of(d, i), dm = (double)d->dm[i];
        dfactor[at] += dm * ref_act(d->b.act, z, 0, 0.5);
        const double dz =
            (dm * (double)d->factor[at] + (double)d->average_grad[at] * by) * slope(&d->b, z);
        total[c] += dz;
        total[d->channels + c] += dz * ((double)d->x[i] - (double)d->per[MEAN][c]);
    }
    for (int64_t t = k->squeeze_excite_tiles(&g) - 1; t >= 0; t--)
        k->squeeze_excite_run(&g, t, t + 1);
    d->b.factor = d->factor;
    d->b.average_grad = d->average_grad;
    d->b.average_scale = (float)by;
    k->squeeze_excite_total(&g, d->total);
    test_close(d->dfactor, dfactor, d->small, 1e-5 * (1 + test_scale(dfactor, d->small)), "factor");
    test_close(d->total, total, 2 * d->channels, 1e-5 * (1 + test_scale(total, 2 * d->channels)),
               "sums");
    free(dfactor);
    free(total);
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_isa_at(i); i++)
        for (size_t t = 0; t < sizeof(cases) / sizeof(cases[0]); t++) {
            ew_test_begin("%s: %s", ew_isa_at(i)->isa, cases[t].name);
            struct data d = {.images = cases[t].images,
                             .rows = cases[t].rows,
                             .channels = cases[t].channels,
                             .b = {.act = cases[t].act}};
            data_init(&d);
            gated(ew_isa_at(i), &d);
            data_fini(&d);
            ew_test_end();
        }
    return ew_test_status();
}
