/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise kernels of every instruction set: accuracy of exp, sigmoid and tanh in ulp, and the
 * others against plain C in double, with ranges cut at odd places. */
#include <float.h>
#include <string.h>

#include "base/rng.h"
#include "kernel_test.h"
#include "ref_conv.h"

#define N 1003

/* |got - want| in ulp of want; for denormals the ulp of the smallest normal number. */
static double ulps(float got, double want)
{
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    if (isinf((float)want) || isinf(got))
        return isinf(got) && isinf((float)want) ? 0 : INFINITY;
    int e;
    (void)frexp(want, &e);
    return fabs((double)got - want) / ldexp(1.0, (e < -125 ? -125 : e) - 24);
}

/* Largest error of a function over a range, with an irregular step. */
static double worst(const struct ew_kernels *k, enum ew_act act, double from, double to)
{
    float x[N], y[N];
    double worst = 0;
    for (int part = 0; part < 100; part++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(from + (to - from) * (part * N + i) / (100.0 * N));
        struct ew_act_map m = {.act = act, .x = x, .y = y};
        if (act == EW_ACT_NONE)
            k->exp_run(x, y, 0, N);
        else
            k->act_run(&m, 0, N);
        for (int i = 0; i < N; i++) {
            const double v = (double)x[i];
            worst = fmax(worst, ulps(y[i], act == EW_ACT_NONE ? exp(v) : ref_act(act, v, 0, 0)));
        }
    }
    return worst;
}

static void accuracy(const struct ew_kernels *k)
{
    EW_EXPECT(worst(k, EW_ACT_NONE, -110, 90) <= 2);
    EW_EXPECT(worst(k, EW_ACT_NONE, -1e-3, 1e-3) <= 2);
    EW_EXPECT(worst(k, EW_ACT_SIGMOID, -85, 40) <= 4);
    EW_EXPECT(worst(k, EW_ACT_TANH, -12, 12) <= 4);
    EW_EXPECT(worst(k, EW_ACT_TANH, -1e-3, 1e-3) <= 4);
    float x[5] = {NAN, INFINITY, -INFINITY, 0, -0.0f}, y[5];
    k->exp_run(x, y, 0, 5);
    EW_EXPECT(isnan(y[0]) && isinf(y[1]) && y[2] <= 0 && y[3] >= 1 && y[3] <= 1);
    k->act_run(&(struct ew_act_map){.act = EW_ACT_TANH, .x = x, .y = y}, 0, 5);
    EW_EXPECT(isnan(y[0]) && y[1] >= 1 && y[2] <= -1 && fabsf(y[4]) <= 0);
}

static void activations(const struct ew_kernels *k)
{
    float *x = test_array(N, 1), *dy = test_array(N, 2), *y = test_array(N, 3);
    for (int i = 0; i < N; i++)
        x[i] *= 5;
    double want[N];
    for (int act = 0; act < EW_ACT_COUNT; act++) {
        const float lo = act == EW_ACT_CLIP ? -1.5f : 0.2f, hi = act == EW_ACT_CLIP ? 2.5f : 0.5f;
        struct ew_act_map m = {
            .act = (enum ew_act)act, .lo = lo, .hi = hi, .x = x, .dy = dy, .y = y, .dx = y};
        for (int i = 0; i < N; i++)
            want[i] = ref_act(m.act, (double)x[i], (double)lo, (double)hi);
        k->act_run(&m, 0, 100);
        k->act_run(&m, 100, 501);
        k->act_run(&m, 501, N);
        test_close(y, want, N, 1e-6, "activation");
        for (int i = 0; i < N; i++) { /* no x is closer to a kink than the step */
            const double h = 1e-5, v = (double)x[i];
            const double up = ref_act(m.act, v + h, (double)lo, (double)hi);
            const double down = ref_act(m.act, v - h, (double)lo, (double)hi);
            want[i] = (double)dy[i] * (up - down) / (2 * h);
        }
        k->act_back(&m, 0, N);
        test_close(y, want, N, 1e-5, "slope");
        m.add = true;
        k->act_back(&m, 0, 77);
        k->act_back(&m, 77, N);
        for (int i = 0; i < N; i++)
            want[i] *= 2;
        test_close(y, want, N, 2e-5, "slope, added");
    }
    ew_guard_free(x);
    ew_guard_free(dy);
    ew_guard_free(y);
}

enum { ROWS = 17, C = 59, ALL = ROWS * C };

/* After a relu with output b: in contiguous rows, and in parts of longer ones. */
static void masked_sums(const struct ew_kernels *k, float *a, const float *b)
{
    double want[ALL], sums[C] = {0};
    float out[C];
    for (int i = 0; i < ALL; i++) {
        want[i] = b[i] > 0 || i % C == C - 1 ? (double)a[i] : 0;
        sums[i % C] += want[i];
    }
    struct ew_column_sums c = {
        .rows = ROWS, .channels = C - 1, .step = C, .x = a, .y = b, .out = out};
    k->column_sums(&c, 0, C - 1);
    test_close(out, sums, C - 1, 1e-5, "masked sums");
    test_close(a, want, ALL, 0, "what is left");
    c = (struct ew_column_sums){.rows = ALL / 3, .channels = 3, .step = 3, .x = a, .y = b};
    c.out = out;
    k->column_sums(&c, 0, 3);
    for (int i = 0; i < ALL / 3 * 3; i++)
        want[i] = b[i] > 0 ? want[i] : 0;
    test_close(a, want, ALL, 0, "what is left of few channels");
}

static void additions(const struct ew_kernels *k)
{
    float *a = test_array(ALL, 1), *b = test_array(ALL, 3), *y = test_array(ALL, 5);
    double want[ALL];
    for (int i = 0; i < ALL; i++)
        want[i] = ref_act(EW_ACT_RELU, (double)a[i] + (double)b[i], 0, 0);
    k->add_run(&(struct ew_add_map){.act = EW_ACT_RELU, .a = a, .b = b, .y = y}, 0, ALL);
    test_close(y, want, ALL, 1e-6, "add and relu");
    float *scale = test_array(C, 7), *shift = test_array(C, 9);
    for (int i = 0; i < ALL; i++)
        want[i] = fmin(
            fmax((double)a[i] * (double)scale[i % C] + (double)shift[i % C] + (double)b[i], 0), 1);
    struct ew_scale_shift s = {.channels = C,
                               .x = a,
                               .scale = scale,
                               .shift = shift,
                               .add = b,
                               .act = EW_ACT_CLIP,
                               .lo = 0,
                               .hi = 1,
                               .y = y};
    k->scale_shift(&s, 0, 5);
    k->scale_shift(&s, 5, ROWS);
    test_close(y, want, ALL, 1e-6, "scale and shift");
    double sums[C] = {0};
    for (int i = 0; i < ALL; i++)
        sums[i % C] += (double)a[i];
    struct ew_column_sums c = {.rows = ROWS, .channels = C, .step = C, .x = a, .out = shift};
    k->column_sums(&c, 0, 20);
    k->column_sums(&c, 20, C);
    test_close(shift, sums, C, 1e-5, "column sums");
    float whole[C];
    c.out = whole;
    k->column_sums(&c, 0, C);
    EW_EXPECT(memcmp(whole, shift, sizeof(whole)) == 0);
    masked_sums(k, a, b);
    ew_guard_free(a);
    ew_guard_free(b);
    ew_guard_free(y);
    ew_guard_free(scale);
    ew_guard_free(shift);
}

static void sgd(const struct ew_kernels *k)
{
    float *w = test_array(N, 1), *g = test_array(N, 3), *m = test_array(N, 5);
    double want[N], moment[N] = {0};
    for (int i = 0; i < N; i++) {
        want[i] = (double)w[i];
        m[i] = 0;
    }
    for (int step = 0; step < 4; step++) {
        const bool nesterov = step > 1;
        const struct ew_sgd s = {.rate = 0.1f,
                                 .momentum = 0.9f,
                                 .dampening = nesterov ? 0 : 0.3f,
                                 .decay = 0.01f,
                                 .nesterov = nesterov,
                                 .w = w,
                                 .m = m,
                                 .g = g,
                                 .first = step == 0};
        k->sgd_run(&s, 0, 333);
        k->sgd_run(&s, 333, N);
        for (int i = 0; i < N; i++) {
            const double d = (double)g[i] + 0.01 * want[i];
            moment[i] = step ? 0.9 * moment[i] + (nesterov ? 1 : 0.7) * d : d;
            want[i] -= 0.1 * (nesterov ? d + 0.9 * moment[i] : moment[i]);
        }
        test_close(w, want, N, 1e-6, "sgd");
    }
    k->sgd_run(&(struct ew_sgd){.rate = 0.5f, .w = w, .g = g}, 0, N);
    for (int i = 0; i < N; i++)
        want[i] -= 0.5 * (double)g[i];
    test_close(w, want, N, 1e-6, "sgd without momentum");
    ew_guard_free(w);
    ew_guard_free(g);
    ew_guard_free(m);
}

static void adam(const struct ew_kernels *k)
{
    float *w = test_array(N, 1), *g = test_array(N, 3), *m = test_array(N, 5),
          *v = test_array(N, 7);
    for (int decoupled = 0; decoupled < 2; decoupled++) {
        double want[N], m1[N] = {0}, m2[N] = {0};
        for (int i = 0; i < N; i++) {
            want[i] = (double)w[i];
            m[i] = v[i] = 0;
        }
        for (int t = 1; t < 4; t++) {
            const struct ew_adam a = {.rate = 0.01f,
                                      .beta1 = 0.9f,
                                      .beta2 = 0.999f,
                                      .eps = 1e-8f,
                                      .decay = 0.05f,
                                      .c1 = (float)(1 - pow(0.9, t)),
                                      .c2 = (float)(1 - pow(0.999, t)),
                                      .decoupled = decoupled,
                                      .w = w,
                                      .m = m,
                                      .v = v,
                                      .g = g};
            k->adam_run(&a, 0, 501);
            k->adam_run(&a, 501, N);
            for (int i = 0; i < N; i++) {
                const double d = (double)g[i] + (decoupled ? 0 : 0.05 * want[i]);
                m1[i] = 0.9 * m1[i] + 0.1 * d;
                m2[i] = 0.999 * m2[i] + 0.001 * d * d;
                if (decoupled)
                    want[i] *= 1 - 0.01 * 0.05;
                want[i] -=
                    0.01 * (m1[i] / (1 - pow(0.9, t))) / (sqrt(m2[i] / (1 - pow(0.999, t))) + 1e-8);
            }
            test_close(w, want, N, 2e-6, "adam");
        }
    }
    ew_guard_free(w);
    ew_guard_free(g);
    ew_guard_free(m);
    ew_guard_free(v);
}

static void softmax_of(const struct ew_kernels *k, int rows, int classes)
{
    const int n = rows * classes;
    float *x = test_array(n, 1), *p = test_array(n, 3), *dx = test_array(n, 4);
    float *loss = test_array(rows, 5);
    int64_t *label = ew_guard_end((size_t)rows * sizeof(*label), sizeof(*label));
    double *want = test_zeros(n), *grad = test_zeros(n), *want_loss = test_zeros(rows);
    for (int r = 0; r < rows; r++) {
        double sum = 0;
        label[r] = (r * 7) % classes;
        for (int i = 0; i < classes; i++) {
            x[r * classes + i] *= 30;
            sum += exp((double)x[r * classes + i]);
        }
        for (int i = 0; i < classes; i++) {
            want[r * classes + i] = exp((double)x[r * classes + i]) / sum;
            grad[r * classes + i] = (want[r * classes + i] - (i == label[r])) * 0.25;
        }
        want_loss[r] = log(sum) - (double)x[r * classes + label[r]];
    }
    struct ew_softmax s = {
        .classes = classes, .x = x, .label = label, .p = p, .loss = loss, .dx = dx, .grad = 0.25f};
    k->softmax_run(&s, 0, rows / 2);
    k->softmax_run(&s, rows / 2, rows);
    test_close(p, want, n, 2e-6, "softmax");
    test_close(dx, grad, n, 2e-6, "softmax gradient");
    test_close(loss, want_loss, rows, 1e-5, "cross-entropy");
    s.dx = x; /* in place */
    s.p = s.loss = NULL;
    k->softmax_run(&s, 0, rows);
    test_close(x, grad, n, 2e-6, "softmax gradient in place");
    ew_guard_free(x);
    ew_guard_free(p);
    ew_guard_free(dx);
    ew_guard_free(loss);
    ew_guard_free(label);
    free(want);
    free(grad);
    free(want_loss);
}

static void softmax(const struct ew_kernels *k)
{
    softmax_of(k, 5, 10);
    softmax_of(k, 3, 1);
    softmax_of(k, 2, 1000);
    softmax_of(k, 4, 33);
}

static void transpose(const struct ew_kernels *k)
{
    static const int sizes[][3] = {{1, 1, 1},   {2, 3, 49}, {1, 64, 50}, {3, 17, 5},
                                   {1, 33, 16}, {3, 2, 23}, {2, 4, 41},  {1, 3, 20}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const int batch = sizes[i][0], rows = sizes[i][1], columns = sizes[i][2];
        const int n = batch * rows * columns;
        float *in = test_array(n, 1), *out = test_array(n, 3);
        const struct ew_transpose t = {
            .batch = batch, .rows = rows, .columns = columns, .in = in, .out = out};
        for (int64_t tile = k->transpose_tiles(&t) - 1; tile >= 0; tile--)
            k->transpose_run(&t, tile, tile + 1);
        bool same = true;
        for (int b = 0; b < batch; b++)
            for (int r = 0; r < rows; r++)
                for (int c = 0; c < columns; c++)
                    same = same && memcmp(&out[(b * columns + c) * rows + r],
                                          &in[(b * rows + r) * columns + c], sizeof(float)) == 0;
        EW_EXPECT(same);
        ew_guard_free(in);
        ew_guard_free(out);
    }
}

/* The same bits as computed with base/rng.h, for any division into ranges, and far into a
 * stream. */
static void dropout(const struct ew_kernels *k)
{
    static const double ratios[] = {0, 0.2, 0.5, 0.999, 1};
    for (size_t r = 0; r < sizeof(ratios) / sizeof(ratios[0]); r++) {
        float *x = test_array(N, 7), *y = test_array(N, 9), *old = test_array(N, 9);
        struct ew_dropout d = {
            .seed = 0xfedcba9876543210u + r, .ratio = ratios[r], .x = x, .y = y, .add = r & 1};
        for (int64_t i = 0, next; i < N; i = next) {
            next = i * 3 + 1 < N ? i * 3 + 1 : N;
            k->dropout_run(&d, i, next);
        }
        for (int64_t i = 0; i < N; i++) {
            const struct ew_rng_block b = ew_rng_block(d.seed, 0, (uint64_t)i / 4);
            const bool drop = b.v[i % 4] * 0x1p-32 < d.ratio;
            const double v = (double)x[i] * (drop ? 0 : d.ratio > 0 ? 1 / (1 - d.ratio) : 1);
            const float want = (float)(d.add ? (double)old[i] + v : v);
            if (d.add) /* the addition may be fused with the product */
                EW_EXPECT(ulps(y[i], (double)want) <= 1);
            else
                EW_EXPECT(memcmp(&y[i], &want, sizeof(want)) == 0);
        }
        ew_guard_free(x);
        ew_guard_free(y);
        ew_guard_free(old);
    }
}

static void forced(void)
{
    const struct ew_kernels *k = NULL;
    EW_EXPECT_ERR(ew_isa_find("mmx", &k), EW_ERR_UNSUPPORTED, "instruction set mmx");
    const char *least = ew_isa_at(0)->isa;
    for (int i = 1; ew_isa_at(i); i++)
        least = ew_isa_at(i)->isa;
    EW_EXPECT_OK(ew_isa_find(least, &k));
    EW_EXPECT_STR(k->isa, least);
    setenv("EW_ISA", least, 1);
    EW_EXPECT_OK(ew_isa_pick(&k));
    EW_EXPECT_STR(k->isa, least);
    setenv("EW_ISA", "vax", 1);
    EW_EXPECT_ERR(ew_isa_pick(&k), EW_ERR_UNSUPPORTED, "EW_ISA: instruction set vax");
    unsetenv("EW_ISA");
    EW_EXPECT_OK(ew_isa_pick(&k));
    EW_EXPECT_SAME(k, ew_isa_at(0));
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    /* clang-format off */
    static const struct {
        const char *name;
        void (*run)(const struct ew_kernels *k);
    } all[] = {{"accuracy", accuracy}, {"activations", activations}, {"additions", additions},
               {"sgd", sgd}, {"adam", adam}, {"softmax", softmax}, {"transpose", transpose},
               {"dropout", dropout}};
    /* clang-format on */
    for (int i = 0; ew_isa_at(i); i++) {
        for (size_t t = 0; t < sizeof(all) / sizeof(all[0]); t++) {
            ew_test_begin("%s: %s", ew_isa_at(i)->isa, all[t].name);
            all[t].run(ew_isa_at(i));
            ew_test_end();
        }
    }
    ew_test_begin("EW_ISA");
    forced();
    ew_test_end();
    return ew_test_status();
}
