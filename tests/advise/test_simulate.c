/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated boards against published measurements: values, changes between settings, and the best
 * modes.  Prints published and simulated values with the error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise/simulate.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/num.h"
#include "base/order_stats.h"
#include "ew_test.h"
#include "model/model.h"
#include "model/objective.h"

static struct ew_arena arena;
static const struct ew_profile *boards;
static int n_boards;

static struct ew_sim_epoch epoch(const char *board, const char *network, struct ew_mode mode,
                                 int workers, enum ew_sim_medium medium)
{
    const struct ew_sim_setting s = {.mode = mode, .workers = workers, .medium = medium};
    struct ew_sim_epoch out = {0};
    EW_EXPECT_OK(
        ew_simulate(ew_profile_find(boards, n_boards, board), ew_sim_work_find(network), &s, &out));
    return out;
}

static void load(void)
{
    ew_arena_init(&arena);
    EW_EXPECT_OK(ew_profiles_load(&arena, &boards, &n_boards));
}

/* ---- Figure 9: 34 points; the constants were fitted to modes a, c, e, g, i, k, m ------------- */

struct row {
    char network[32], mode;
    struct ew_mode at;
    double stall, compute, seconds, watts, base;
    struct ew_sim_epoch sim;
};

static int rows_of_fig9(struct row *rows)
{
    char *text = NULL;
    size_t size;
    int n = 0;
    struct ew_csv c;
    if (!EW_EXPECT_OK(ew_file_read("tests/fixtures/train-fig9.csv", 1 << 20, &text, &size)))
        return 0;
    ew_csv_init(&c, text, "train-fig9.csv");
    ew_csv_next(&c);
    while (ew_csv_next(&c)) {
        struct row *r = &rows[n++];
        double v[9];
        for (int i = 0; i < 9; i++)
            EW_EXPECT(ew_num_float(c.cells[2 + i], &v[i]));
        snprintf(r->network, sizeof(r->network), "%s", c.cells[0]);
        r->mode = c.cells[1][0];
        r->at = (struct ew_mode){v[0], v[1] / 1000, v[2] / 1000, v[3] / 1000};
        r->stall = v[4];
        r->compute = v[5];
        r->seconds = v[6];
        r->watts = v[7];
        r->base = v[8];
        r->sim = epoch("agx-xavier", r->network, r->at, 4, EW_SIM_CACHED);
    }
    free(text);
    return n;
}

static bool was_fitted(const struct row *r)
{
    return strchr("acegikm", r->mode) != NULL;
}

static void modes_of_an_agx_xavier(void)
{
    static struct row rows[64];
    double errors[3][64];
    int held = 0;
    load();
    const int n = rows_of_fig9(rows);
    EW_EXPECT_INT(n, 34);
    for (int i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        const double e[] = {r->sim.epoch_s / r->seconds - 1, r->sim.power_w / r->watts - 1,
                            r->sim.compute_s / r->compute - 1};
        printf("%-18s %c %s epoch %6.1f %6.1f %+5.1f %%  power %5.2f %5.2f %+5.1f %%\n", r->network,
               r->mode, was_fitted(r) ? "fitted" : "held  ", r->seconds, r->sim.epoch_s, 100 * e[0],
               r->watts, r->sim.power_w, 100 * e[1]);
        if (was_fitted(r))
            continue;
        for (int k = 0; k < 3; k++)
            errors[k][held] = fabs(e[k]);
        held++;
    }
    for (int k = 0; k < 3; k++)
        EW_EXPECT(ew_median(errors[k], held) < 0.05);
    EW_EXPECT(errors[0][held - 1] < 0.2 && errors[1][held - 1] < 0.2);
    ew_arena_fini(&arena);
}

/* For any two modes: which one is faster, needs less power, needs less energy; as published, if the
 * two differ by more than the reading error of the figure (2 %). */
static void order_of_modes(void)
{
    static struct row rows[64];
    int right = 0, all = 0;
    load();
    const int n = rows_of_fig9(rows);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            const struct row *a = &rows[i], *b = &rows[j];
            if (strcmp(a->network, b->network) != 0)
                continue;
            const double published[] = {a->seconds / b->seconds, a->watts / b->watts,
                                        a->seconds * a->watts / (b->seconds * b->watts)};
            const double simulated[] = {a->sim.epoch_s / b->sim.epoch_s,
                                        a->sim.power_w / b->sim.power_w,
                                        a->sim.energy_j / b->sim.energy_j};
            for (int k = 0; k < 3; k++)
                if (fabs(log(published[k])) > 0.02) {
                    all++;
                    right += (published[k] > 1) == (simulated[k] > 1);
                }
        }
    printf("%d of %d comparisons of modes are as published\n", right, all);
    EW_EXPECT(right >= 0.9 * all);
    ew_arena_fini(&arena);
}

/* ---- Other boards, workers, media ------------------------------------------------------------ */

static const struct ew_mode agx = {8, 2.265, 1.377, 2.133}, nx = {6, 1.4, 1.1, 1.6},
                            nano = {4, 1.479, 0.921, 1.6}, gpu114 = {8, 2.265, 0.11475, 2.133},
                            orin = {12, 2.2, 1.3, 3.2};

enum what { STALL, EPOCH, POWER };

static void published_values(void)
{
    static const struct {
        const char *board, *network;
        const struct ew_mode *mode;
        int workers;
        enum ew_sim_medium medium;
        enum what what;
        double value;
        bool fitted; /* used in the fit */
    } all[] = {
        {"agx-xavier", "lenet5", &agx, 0, EW_SIM_CACHED, STALL, 22, true},
        {"agx-xavier", "lenet5", &agx, 1, EW_SIM_CACHED, STALL, 12.1, false},
        {"xavier-nx", "lenet5", &nx, 0, EW_SIM_CACHED, STALL, 33.8, true},
        {"xavier-nx", "lenet5", &nx, 1, EW_SIM_CACHED, STALL, 18.7, false},
        {"jetson-nano", "lenet5", &nano, 0, EW_SIM_CACHED, STALL, 42.6, true},
        {"jetson-nano", "lenet5", &nano, 1, EW_SIM_CACHED, STALL, 17.2, true},
        {"jetson-nano", "lenet5", &nano, 4, EW_SIM_CACHED, EPOCH, 80.6, false},
        {"jetson-nano", "lenet5", &nano, 4, EW_SIM_CACHED, POWER, 5, true},
        {"agx-xavier", "mobilenet_v3_large", &agx, 0, EW_SIM_SSD, STALL, 306, true},
        {"agx-xavier", "mobilenet_v3_large", &agx, 0, EW_SIM_SD, STALL, 485, true},
        {"agx-xavier", "mobilenet_v3_large", &agx, 0, EW_SIM_HDD, STALL, 741, true},
        {"agx-xavier", "mobilenet_v3_large", &agx, 4, EW_SIM_CACHED, STALL, 12.9, false},
        {"agx-xavier", "mobilenet_v3_large", &agx, 4, EW_SIM_CACHED, EPOCH, 298, false},
        {"xavier-nx", "mobilenet_v3_large", &nx, 0, EW_SIM_HDD, EPOCH, 1649, false},
        {"xavier-nx", "mobilenet_v3_large", &nx, 1, EW_SIM_HDD, EPOCH, 1011, true},
        {"xavier-nx", "mobilenet_v3_large", &nx, 2, EW_SIM_HDD, EPOCH, 704, true},
        {"xavier-nx", "mobilenet_v3_large", &nx, 4, EW_SIM_HDD, EPOCH, 576, false},
        {"xavier-nx", "mobilenet_v3_large", &nx, 8, EW_SIM_HDD, EPOCH, 576, false},
        {"xavier-nx", "mobilenet_v3_large", &nx, 4, EW_SIM_SSD, EPOCH, 568.4, false},
        {"agx-xavier", "resnet18", &agx, 4, EW_SIM_CACHED, EPOCH, 349, false},
        {"agx-xavier", "resnet18", &agx, 4, EW_SIM_CACHED, POWER, 31.3, false},
        {"agx-xavier", "resnet18", &gpu114, 4, EW_SIM_CACHED, EPOCH, 3595, false},
        {"agx-xavier", "resnet18", &gpu114, 4, EW_SIM_CACHED, POWER, 8.7, false},
    };
    static const char *const names[] = {"stall s", "epoch s", "power W"};
    double errors[EW_COUNT(all)];
    int held = 0;
    load();
    for (size_t i = 0; i < EW_COUNT(all); i++) {
        const struct ew_sim_epoch e =
            epoch(all[i].board, all[i].network, *all[i].mode, all[i].workers, all[i].medium);
        const double v = all[i].what == STALL   ? e.stall_s
                         : all[i].what == EPOCH ? e.epoch_s
                                                : e.power_w;
        const double error = v / all[i].value - 1;
        printf("%-11s %-18s w%d %s published %7.1f simulated %7.1f %+5.1f %% %s\n", all[i].board,
               all[i].network, all[i].workers, names[all[i].what], all[i].value, v, 100 * error,
               all[i].fitted ? "fitted" : "held");
        if (!all[i].fitted)
            errors[held++] = fabs(error);
    }
    const double median = ew_median(errors, held);
    printf("median of %d that made no constant: %.1f %%\n", held, 100 * median);
    EW_EXPECT(median < 0.2);
    ew_arena_fini(&arena);
}

/* TRAIN: an AGX Orin is 1.8 to 3.9 times as fast as an AGX Xavier. */
static void orin_is_as_much_faster(void)
{
    load();
    for (int i = 0; ew_sim_work_at(i); i++) {
        const char *network = ew_sim_work_at(i)->network;
        const double ratio = epoch("agx-xavier", network, agx, 4, EW_SIM_CACHED).epoch_s /
                             epoch("agx-orin", network, orin, 4, EW_SIM_CACHED).epoch_s;
        printf("%s: %.2f times\n", network, ratio);
        EW_EXPECT(ratio > 1.6 && ratio < 4.2);
    }
    ew_arena_fini(&arena);
}

/* ---- From plans: arithmetic, bytes and kernels of networks that are not in the fit ----------- */

static bool load_of(const char *network, int64_t batch, bool train, struct ew_sim_load *out)
{
    struct ew_graph *g = NULL;
    bool ok = EW_EXPECT_OK(
        ew_model_build(network, &(struct ew_model_opts){.size = sizeof(struct ew_model_opts)}, &g));
    ok = ok && EW_EXPECT_OK(ew_graph_set_batch(g, batch));
    ok = ok && (!train || EW_EXPECT_OK(ew_objective_add(g)));
    ok = ok && EW_EXPECT_OK(ew_sim_load_of(&arena, g, train, out));
    ew_graph_free(g);
    return ok;
}

/* The compute times of TRAIN's figure 9 again, from five constants instead of fifteen. */
static void plans_train_as_published(void)
{
    static const struct {
        const char *published, *network;
        double batches;
    } networks[] = {{"lenet5", "lenet5", 60000 / 16.0},
                    {"resnet18", "resnet18_cifar_gn", 50000 / 16.0},
                    {"mobilenet_v3_large", "mobilenet_v3_large", 23080 / 16.0}};
    static struct row rows[64];
    double errors[64], watts[64];
    int held = 0;
    load();
    const int n = rows_of_fig9(rows);
    for (size_t k = 0; k < EW_COUNT(networks); k++) {
        struct ew_sim_load l;
        struct ew_sim_work w;
        if (!load_of(networks[k].network, 16, true, &l))
            break;
        ew_sim_work_of(&l, EW_SIM_TRAIN, &w);
        ew_sim_work_times(&w, networks[k].batches);
        for (int i = 0; i < n; i++) {
            const struct row *r = &rows[i];
            struct ew_sim_epoch e;
            const struct ew_sim_setting s = {.mode = r->at, .workers = 4};
            if (strcmp(r->network, networks[k].published) != 0)
                continue;
            EW_EXPECT_OK(ew_simulate(ew_profile_find(boards, n_boards, "agx-xavier"), &w, &s, &e));
            printf("%-18s %c %s compute %6.1f %6.1f %+5.1f %%  epoch %6.1f %6.1f %+5.1f %%  power "
                   "%5.2f %5.2f %+5.1f %%\n",
                   r->network, r->mode, was_fitted(r) ? "fitted" : "held  ", r->compute,
                   e.compute_s, 100 * (e.compute_s / r->compute - 1), r->seconds, e.epoch_s,
                   100 * (e.epoch_s / r->seconds - 1), r->watts, e.power_w,
                   100 * (e.power_w / r->watts - 1));
            if (was_fitted(r))
                continue;
            watts[held] = fabs(e.power_w / r->watts - 1);
            errors[held++] = fabs(e.epoch_s / r->seconds - 1);
        }
    }
    EW_EXPECT_INT(held, 17);
    const double time = ew_median(errors, held), power = ew_median(watts, held);
    printf("held: epoch %.1f %%, power %.1f %% at the median\n", 100 * time, 100 * power);
    EW_EXPECT(time < 0.1);
    EW_EXPECT(power < 0.1);
    ew_arena_fini(&arena);
}

/* ENGINE's Table 1 on a Nano: the constants were fitted to every second row. */
struct engine_row {
    const char *network;
    double before, after;
    bool fitted;
};

static const struct engine_row engine_rows[] = {
    {"alexnet", 0.6638, 0.1184, true},      {"vgg19", 2.5904, 0.4285, false},
    {"resnet50", 1.0911, 0.2233, true},     {"squeezenet1_1", 0.7966, 0.1663, false},
    {"densenet121", 1.0132, 0.3682, true},  {"shufflenet_v2_x1_0", 4.7121, 0.3463, false},
    {"mobilenet_v2", 5.0379, 0.3003, true}, {"resnext50_32x4d", 2.0964, 0.26, false},
};

static void engines_as_published(void)
{
    enum { N = EW_COUNT(engine_rows) };
    double sim[2][N], errors[2 * N];
    int held = 0, right = 0, all = 0;
    load();
    for (int i = 0; i < N; i++) {
        const struct engine_row *r = &engine_rows[i];
        struct ew_sim_load l;
        if (!load_of(r->network, 1, false, &l))
            return;
        for (int k = 0; k < 2; k++) {
            struct ew_sim_work w;
            struct ew_sim_epoch e;
            const struct ew_sim_setting s = {.mode = nano, .workers = 1};
            const double published = k ? r->after : r->before;
            ew_sim_work_of(&l, k ? EW_SIM_ENGINE : EW_SIM_EAGER, &w);
            EW_EXPECT_OK(ew_simulate(ew_profile_find(boards, n_boards, "jetson-nano"), &w, &s, &e));
            sim[k][i] = e.epoch_s;
            printf("%-18s %s published %.4f simulated %.4f s %+5.1f %% %s\n", r->network,
                   k ? "after " : "before", published, e.epoch_s, 100 * (e.epoch_s / published - 1),
                   r->fitted ? "fitted" : "held");
            if (!r->fitted)
                errors[held++] = fabs(e.epoch_s / published - 1);
        }
    }
    for (int i = 0; i < N; i++) {
        const struct engine_row *a = &engine_rows[i];
        right += sim[1][i] < sim[0][i];
        all++;
        for (int j = 0; j < i; j++, all += 2) {
            right += (a->before > engine_rows[j].before) == (sim[0][i] > sim[0][j]);
            right += (a->after > engine_rows[j].after) == (sim[1][i] > sim[1][j]);
        }
    }
    const double median = ew_median(errors, held);
    printf("held: %.1f %% at the median; %d of %d comparisons as published\n", 100 * median, right,
           all);
    EW_EXPECT(median < 0.2);
    EW_EXPECT(right >= 0.9 * all);
    ew_arena_fini(&arena);
}

/* A board's power budget holds, and more resources of every kind are never slower. */
static void boards_stay_within_their_power(void)
{
    struct ew_sim_load l;
    struct ew_sim_work w;
    int simulated = 0;
    load();
    if (load_of("resnet50", 8, false, &l))
        for (int i = 0; i < n_boards; i++) {
            const struct ew_profile *b = &boards[i];
            struct ew_sim_epoch e;
            if (!(b->model.gpu > 0))
                continue;
            const struct ew_sim_setting s = {.mode = ew_sim_top(b), .workers = 1};
            ew_sim_work_of(&l, EW_SIM_NATIVE, &w);
            EW_EXPECT_OK(ew_simulate(b, &w, &s, &e));
            printf("%-12s %8.1f ms %6.1f W%s\n", b->name, 1e3 * e.epoch_s, e.power_w,
                   e.throttled ? " throttled" : "");
            EW_EXPECT(e.power_w > e.base_w && e.epoch_s > 0);
            EW_EXPECT(!(b->power_w > 0) || e.power_w <= b->power_w + 1e-9);
            EW_EXPECT(b->model.source != NULL);
            simulated++;
        }
    EW_EXPECT_INT(simulated, 10);
    ew_arena_fini(&arena);
}

static void noise_depends_on_the_seed_alone(void)
{
    load();
    struct ew_sim_epoch a, b, c;
    struct ew_sim_setting s = {.mode = agx, .workers = 4, .seed = 5};
    const struct ew_profile *p = ew_profile_find(boards, n_boards, "agx-xavier");
    const struct ew_sim_work *w = ew_sim_work_find("resnet18");
    EW_EXPECT_OK(ew_simulate(p, w, &s, &a));
    EW_EXPECT_OK(ew_simulate(p, w, &s, &b));
    s.seed = 6;
    EW_EXPECT_OK(ew_simulate(p, w, &s, &c));
    EW_EXPECT_NEAR(a.epoch_s, b.epoch_s, 1e-12);
    EW_EXPECT(fabs(a.epoch_s - c.epoch_s) > 1e-6);
    EW_EXPECT_NEAR(c.epoch_s / a.epoch_s, 1, 0.06);
    EW_EXPECT_ERR(ew_simulate(ew_profile_find(boards, n_boards, "zcu104"), w, &s, &a),
                  EW_ERR_UNSUPPORTED, "no [model]");
    ew_arena_fini(&arena);
}

/* Epochs of a Pi without a heat sink: each is warmer than the one before and not faster; at the
 * limit they slow down and need less power.  A board without thermal constants does not heat up. */
static void heat_slows_a_board(void)
{
    load();
    const struct ew_profile *p = ew_profile_find(boards, n_boards, "rpi4");
    const struct ew_sim_setting s = {.mode = ew_sim_top(p), .workers = 1};
    struct ew_sim_heat h;
    struct ew_sim_epoch e, cold;
    double before_c = 0, before_s = 0;
    EW_EXPECT_OK(ew_simulate(p, ew_sim_work_find("lenet5"), &s, &cold));
    cold.power_w = 10; /* as after a network with a higher load */
    ew_sim_heat_begin(p, &h);
    EW_EXPECT(h.temp_c > 25 && h.temp_c < 60);
    for (int i = 0; i < 40; i++) {
        e = cold;
        ew_sim_heat_epoch(p, &h, &e);
        EW_EXPECT(e.temp_c >= before_c && e.epoch_s >= before_s);
        EW_EXPECT(e.temp_c <= p->model.throttle_c + 1e-9);
        before_c = e.temp_c;
        before_s = e.epoch_s;
    }
    EW_EXPECT(e.hot && e.epoch_s > 1.2 * cold.epoch_s && e.power_w < cold.power_w);
    EW_EXPECT_NEAR(e.power_w, (80 - 25) / 9.0, 1e-9); /* the power that keeps 80 C */
    p = ew_profile_find(boards, n_boards, "agx-xavier");
    e = cold;
    ew_sim_heat_begin(p, &h);
    ew_sim_heat_epoch(p, &h, &e);
    EW_EXPECT(isnan(e.temp_c) && !e.hot);
    EW_EXPECT_NEAR(e.epoch_s, cold.epoch_s, 1e-12);
    ew_arena_fini(&arena);
}

EW_TEST_MAIN(EW_TEST(heat_slows_a_board), EW_TEST(modes_of_an_agx_xavier), EW_TEST(order_of_modes),
             EW_TEST(published_values), EW_TEST(orin_is_as_much_faster),
             EW_TEST(plans_train_as_published), EW_TEST(engines_as_published),
             EW_TEST(boards_stay_within_their_power), EW_TEST(noise_depends_on_the_seed_alone))
