/* SPDX-License-Identifier: Apache-2.0 */
/* Networks, batches and threads that were never run, from a third of a sweep: plans of the zoo on a
 * made-up CPU that prices each step by itself, as the predictor does not. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "advise/sim_load.h"
#include "advise/work_fit.h"
#include "base/order_stats.h"
#include "base/rng.h"
#include "ew_test.h"
#include "model/model.h"

/* A step: vector units that like wide convolutions, a cache that small tensors stay in, a start. */
static double step_s(const struct ew_sim_step *s, double threads)
{
    const double rate = (s->groups > 1 ? 8e9 : s->flops > 1e7 ? 45e9 : 25e9) * pow(threads, 0.9);
    const double memory = s->bytes < 1e6 ? 60e9 * threads : 9e9 * pow(threads, 0.4);
    return fmax(s->flops / rate, s->bytes / memory) + 2e-6;
}

struct sample {
    struct ew_mode point;
    double time;
};

static int sweep(struct ew_arena *a, struct sample *out)
{
    static const char *const networks[] = {"lenet5",   "mobilenet_v2_cifar", "squeezenet1_1",
                                           "resnet18", "vgg11_cifar",        "mobilenet_v3_small"};
    int n = 0;
    for (size_t k = 0; k < EW_COUNT(networks); k++)
        for (int64_t batch = 1; batch <= 16; batch *= 2) {
            const struct ew_model_opts o = {.size = sizeof(o)};
            struct ew_graph *g = NULL;
            struct ew_sim_load l;
            const bool ok = EW_EXPECT_OK(ew_model_build(networks[k], &o, &g)) &&
                            EW_EXPECT_OK(ew_graph_set_batch(g, batch)) &&
                            EW_EXPECT_OK(ew_sim_load_of(a, g, false, &l));
            ew_graph_free(g);
            if (!ok)
                return 0;
            for (int threads = 1; threads <= 4; threads *= 2, n++) {
                double time = 1e-5;
                for (int i = 0; i < l.n; i++)
                    time += step_s(&l.steps[i], threads);
                time *= exp(0.02 * ew_rng_normal(8, 1, (uint64_t)n));
                out[n] = (struct sample){ew_work_point_of(&l, threads), time};
            }
        }
    return n;
}

static void a_third_predicts_the_rest(void)
{
    enum { MOST = 128 };
    struct ew_arena a;
    ew_arena_init(&a);
    struct sample all[MOST];
    double errors[3 * MOST], sum = 0;
    int tested = 0, in90 = 0;
    const int n = sweep(&a, all);
    EW_EXPECT_INT(n, 90);
    for (int part = 0; part < 3; part++) {
        struct ew_mode points[MOST];
        double time[MOST];
        struct ew_work_predictor *p;
        int fitted = 0;
        for (int i = 0; i < n; i++)
            if (i * 37 % n % 3 == part) {
                points[fitted] = all[i].point;
                time[fitted++] = all[i].time;
            }
        if (!EW_EXPECT_OK(ew_work_fit(&a, points, time, fitted, &p)))
            break;
        for (int i = 0; i < n; i++) {
            struct ew_guess g;
            if (i * 37 % n % 3 == part)
                continue;
            ew_work_predict(p, &all[i].point, 1, &g);
            errors[tested] = fabs(g.mid / all[i].time - 1);
            sum += errors[tested++];
            in90 += all[i].time >= g.low90 && all[i].time <= g.high90;
        }
    }
    printf("%d predictions: %.1f %% off, median %.1f, %.0f %% in the 90 %% interval\n", tested,
           100 * sum / tested, 100 * ew_median(errors, tested), 100.0 * in90 / tested);
    EW_EXPECT(sum / tested < 0.08);
    EW_EXPECT(in90 > 0.8 * tested);
    ew_arena_fini(&a);
}

static void too_few_are_refused(void)
{
    struct ew_arena a;
    ew_arena_init(&a);
    const struct ew_mode points[2] = {ew_work_point(1, 1e9, 1e8, 10),
                                      ew_work_point(2, 1e9, 1e8, 10)};
    const double time[3] = {1, 0.5, -1};
    struct ew_work_predictor *p;
    EW_EXPECT_ERR(ew_work_fit(&a, points, time, 2, &p), EW_ERR_ARG, "needs at least 3");
    ew_arena_fini(&a);
}

EW_TEST_MAIN(EW_TEST(a_third_predicts_the_rest), EW_TEST(too_few_are_refused))
