/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of runs from their epochs, next to published ones; machines as records; power
 * settings. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "ew_test.h"
#include "store/store_kit.h"
#include "study/machine.h"
#include "study/run_watch.h"
#include "study/runner.h"
#include "study/summary.h"
#include "study_kit.h"

static double metric(struct ew_store *s, int64_t run, const char *name)
{
    struct ew_rows *rows;
    double v = NAN;
    EW_EXPECT_OK(ew_store_query(s, &rows, "SELECT value FROM metric WHERE run = ?1 AND name = ?2",
                                "is", run, name));
    if (ew_rows_next(rows))
        v = ew_rows_num(rows, 0);
    EW_EXPECT_OK(ew_rows_free(rows));
    return v;
}

static ew_err put_epoch(struct ew_store *s, int64_t run, int64_t epoch, double stall_s, double f1)
{
    struct ew_epoch_row e;
    ew_record_clear(EW_RECORD_EPOCH, &e);
    e.epoch = epoch;
    e.wall_s = 10 + stall_s;
    e.stall_s = stall_s;
    e.f1 = f1;
    e.quality = EW_QUALITY_EMULATED;
    return ew_store_put(s, EW_RECORD_EPOCH, run, &e);
}

/* The first epoch fills the caches and is reported separately; of scores the last counts. */
static void epochs_are_summed_up(void)
{
    struct ew_store *s = NULL;
    if (!EW_EXPECT_OK(ew_store_open(ew_test_path("sum.db"), NULL, &s)))
        return;
    const int64_t run = kit_begin(s, 2);
    EW_EXPECT_OK(put_epoch(s, run, 1, 7, 0.5));
    EW_EXPECT_OK(put_epoch(s, run, 2, 2, 0.7));
    EW_EXPECT_OK(put_epoch(s, run, 3, 4, 0.6));
    EW_EXPECT_OK(kit_metric(s, run, "stall_s_first", 99)); /* existing metrics are not
                                                            * overwritten */
    EW_EXPECT_OK(ew_summary_add(s, run));
    EW_EXPECT_NEAR(metric(s, run, "stall_s"), 3, 1e-12);
    EW_EXPECT_NEAR(metric(s, run, "stall_s_first"), 99, 0);
    EW_EXPECT_NEAR(metric(s, run, "epoch_s"), 13, 1e-12);
    EW_EXPECT_NEAR(metric(s, run, "epoch_s_first"), 17, 1e-12);
    EW_EXPECT_NEAR(metric(s, run, "f1"), 0.6, 1e-12);
    EW_EXPECT_NEAR(metric(s, run, "best_f1"), 0.7, 1e-12);
    EW_EXPECT_NEAR(metric(s, run, "best_f1_epochs"), 2, 0);
    EW_EXPECT_NEAR(metric(s, run, "best_f1_s"), 17 + 12, 1e-12);
    EW_EXPECT(isnan(metric(s, run, "energy_j"))); /* not measured */
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM metric WHERE name = 'stall_s' AND n = 2 AND "
                             "unit = 's' AND better = 'lower' AND quality = 'emulated' AND "
                             "abs(spread - 1.41421356) < 1e-6 AND lowest = 2 AND highest = 4"),
                  1);
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM run WHERE quality = 'emulated'"), 1);

    const int64_t alone = kit_begin(s, 3);
    EW_EXPECT_OK(put_epoch(s, alone, 1, 7, 0.5));
    EW_EXPECT_OK(ew_summary_add(s, alone));
    EW_EXPECT_NEAR(metric(s, alone, "stall_s"), 7, 1e-12);
    ew_store_close(s);
}

/* Only runs of this study on this device are compared with the published figure. */
static void published_stands_beside_ours(void)
{
    struct ew_store *s = NULL;
    struct ew_arena a;
    struct ew_study study;
    struct ew_published_comparison *c;
    ew_arena_init(&a);
    EW_EXPECT_OK(ew_store_open(ew_test_path("beside.db"), NULL, &s));
    EW_EXPECT_OK(
        kit_parse(&a,
                  "[defaults]\ncommand = work\nnetwork = lenet5\n[a]\nworkers = 1 2\n"
                  "[published]\nboard = Nano\nfigure = epoch_s 5 s | workers=2.0 batch=16\n"
                  "figure = epoch_s 6 s | workers=9\n"
                  "figure = epoch_s:workers=2/workers=1 3 | network=lenet5\n",
                  false, NULL, &study));
    for (int i = 0; i < 3; i++) { /* kit_begin's machine is "here"; the job is the study's */
        const int64_t run = kit_begin(s, 2);
        struct ew_run_row r;
        ew_record_clear(EW_RECORD_RUN, &r);
        r.job = study.jobs[strcmp(ew_study_given(&study.jobs[0], "workers"), "2") != 0].row.id;
        EW_EXPECT_OK(ew_store_run_update(s, run, &r));
        EW_EXPECT_OK(kit_metric(s, run, "epoch_s", 10 + i));
        EW_EXPECT_OK(ew_store_run_end(s, run, i < 2 ? EW_RUN_DONE : EW_RUN_FAILED, NULL, 1));
    }
    EW_EXPECT_OK(ew_published_compare(s, &study, "here", &a, &c));
    EW_EXPECT_INT(c[0].runs, 2);
    EW_EXPECT_NEAR(c[0].value, 10.5, 1e-12);
    EW_EXPECT_NEAR(c[0].spread, sqrt(0.5), 1e-9);
    EW_EXPECT_STR(c[0].quality, "measured");
    EW_EXPECT_INT(c[1].runs, 0);
    EW_EXPECT(isnan(c[1].value));
    EW_EXPECT_INT(c[2].jobs, 1);
    EW_EXPECT_INT(c[2].runs, 0); /* no divisor yet */
    const int64_t one = kit_begin(s, 1);
    struct ew_run_row r;
    ew_record_clear(EW_RECORD_RUN, &r);
    r.job = study.jobs[strcmp(ew_study_given(&study.jobs[0], "workers"), "1") != 0].row.id;
    EW_EXPECT_OK(ew_store_run_update(s, one, &r));
    EW_EXPECT_OK(kit_metric(s, one, "epoch_s", 5));
    EW_EXPECT_OK(ew_store_run_end(s, one, EW_RUN_DONE, NULL, 1));
    EW_EXPECT_OK(ew_published_compare(s, &study, "here", &a, &c));
    EW_EXPECT_NEAR(c[2].value, 2.1, 1e-12);
    EW_EXPECT_STR(c[2].quality, "derived");
    EW_EXPECT_OK(ew_published_compare(s, &study, "elsewhere", &a, &c));
    EW_EXPECT_INT(c[0].runs, 0);
    ew_store_close(s);
    ew_arena_fini(&a);
}

/* ---- Boards ---------------------------------------------------------------------------------- */

static struct ew_board *open_board(const char *name)
{
    static char path[256];
    struct ew_board *b = NULL;
    snprintf(path, sizeof(path), "tests/fixtures/boards/%s", name);
    EW_EXPECT_OK(ew_board_open(&(struct ew_board_opts){.root = path}, &b));
    return b;
}

static void machines_are_described(void)
{
    struct ew_arena a;
    struct ew_machine_row nx, again, bare;
    ew_arena_init(&a);
    struct ew_board *b = open_board("xavier-nx-jp5"), *v = open_board("vm-bare");
    if (b && v) {
        EW_EXPECT_OK(ew_machine_read(b, &a, &nx));
        EW_EXPECT_OK(ew_machine_read(b, &a, &again));
        EW_EXPECT_OK(ew_machine_read(v, &a, &bare));
        EW_EXPECT_HAS(nx.board, "Xavier NX");
        EW_EXPECT(nx.power_mode != NULL);
        EW_EXPECT(nx.cpu_mhz_max > 100);
        EW_EXPECT_STR(nx.id, again.id);
        EW_EXPECT(strcmp(nx.id, bare.id) != 0);
        EW_EXPECT(isnan(bare.gpu_mhz_max)); /* absent is not zero */
        EW_EXPECT(bare.power_mode == NULL);
    }
    ew_board_close(b);
    ew_board_close(v);
    ew_arena_fini(&a);
}

static void power_settings_are_checked(void)
{
    const char *words[16];
    int n = -1;
    struct ew_board *b = open_board("vm-bare");
    if (!b)
        return;
    EW_EXPECT_OK(ew_runner_power(b, &(struct ew_study_power){.mode = NULL}, words, 16, &n));
    EW_EXPECT_INT(n, 0);
    EW_EXPECT_ERR(ew_runner_power(b, &(struct ew_study_power){.mode = "MAXN"}, words, 16, &n),
                  EW_ERR_NOT_FOUND, "no mode 'MAXN'");
    EW_EXPECT_ERR(ew_runner_power(b, &(struct ew_study_power){.dvfs = "off"}, words, 16, &n),
                  EW_ERR_UNSUPPORTED, "no clock");
    ew_board_close(b);
}

/* Idle energy is separate from training, and how long clocks were held is derived. */
static void energy_and_clocks_are_derived(void)
{
    static const double mhz[] = {2265, 2263, 1100, 2100};
    struct ew_store *s = NULL;
    if (!EW_EXPECT_OK(ew_store_open(ew_test_path("clocks.db"), NULL, &s)))
        return;
    const int64_t run = kit_begin(s, 3);
    for (int i = 1; i <= 3; i++) {
        struct ew_epoch_row e;
        ew_record_clear(EW_RECORD_EPOCH, &e);
        e.epoch = i;
        e.wall_s = 10;
        e.energy_j = i == 1 ? 500 : 300;
        e.base_power_w = 6;
        EW_EXPECT_OK(ew_store_put(s, EW_RECORD_EPOCH, run, &e));
    }
    for (size_t i = 0; i < EW_COUNT(mhz); i++) {
        struct ew_sample_row r;
        ew_record_clear(EW_RECORD_SAMPLE, &r);
        r.t_s = (double)i;
        r.channel = "cpu0.freq";
        r.value = mhz[i];
        r.unit = "MHz";
        EW_EXPECT_OK(ew_store_put(s, EW_RECORD_SAMPLE, run, &r));
    }
    EW_EXPECT_OK(ew_summary_add(s, run));
    EW_EXPECT_NEAR(metric(s, run, "base_energy_j"), 60, 1e-9);
    EW_EXPECT_NEAR(metric(s, run, "training_energy_j"), 240, 1e-9);
    EW_EXPECT_NEAR(metric(s, run, "base_share"), 20, 1e-9);
    EW_EXPECT_NEAR(metric(s, run, "cpu_below_peak"), 50, 1e-9); /* 2100 is below 95 % of 2265 */
    EW_EXPECT_NEAR(metric(s, run, "cpu_below_90"), 25, 1e-9);
    EW_EXPECT(isnan(metric(s, run, "gpu_mhz")));
    ew_store_close(s);
}

/* Sensor readings are stored once, with times relative to the start of the run. */
static void readings_are_kept(void)
{
    struct ew_store *s = NULL;
    struct ew_board *b = open_board("agx-xavier-jp5");
    EW_EXPECT_OK(ew_store_open(ew_test_path("watch.db"), NULL, &s));
    if (!b || !s || !EW_EXPECT(b->total.power >= 0))
        return;
    struct ew_sample_value *values = calloc((size_t)b->n_channels, sizeof(*values));
    ew_board_read(b, values);
    const double power_w = values[b->total.power].v;
    struct ew_run_watch w = {.store = s, .run = kit_begin(s, 1), .start_ns = ew_clock_ns()};
    EW_EXPECT_OK(ew_watch_start(b, &w.watch));
    usleep(300000);
    EW_EXPECT_OK(ew_run_watch_put(&w));
    usleep(300000);
    EW_EXPECT_OK(ew_run_watch_end(&w));
    EW_EXPECT(metric(s, w.run, "run_energy_j") > 0.5 * power_w);
    EW_EXPECT_NEAR(metric(s, w.run, "run_power_w"), power_w, 1e-6 * power_w);
    const int64_t n = kit_int(s, "SELECT count(*) FROM sample WHERE channel = 'temp.hottest'");
    /* Four per second, the first and the last, however long the sleep really took. */
    EW_EXPECT(n >= 2 && (double)n <= 3 + 4e-9 * (double)(ew_clock_ns() - w.start_ns));
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM sample WHERE channel = 'mem.used'"), n);
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM sample WHERE channel = 'gpu.freq'"), n);
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM sample WHERE channel = 'emc.freq'"), n);
    EW_EXPECT_INT(kit_int(s, "SELECT count(DISTINCT channel) FROM sample WHERE channel LIKE "
                             "'cpu%.freq'"),
                  1);
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM sample WHERE t_s > 30"), 0);
    ew_watch_free(w.watch);
    free(values);
    ew_board_close(b);
    ew_store_close(s);
}

/* A board in order, a hot one, and a busy one. */
static void noise_has_reasons(void)
{
    const struct ew_noise_limits l = {.busy = 0.1, .temp_c = 80};
    struct ew_machine_state g = {.busy = 0.05, .temp_c = 45};
    char text[EW_NOISE_CHARS];
    EW_EXPECT(!ew_machine_state_noise(&g, &l, text));
    g.busy = g.temp_c = NAN; /* unknown values do not count as a problem */
    EW_EXPECT(!ew_machine_state_noise(&g, &l, text));
    g = (struct ew_machine_state){.busy = 0.4, .temp_c = 91};
    EW_EXPECT(ew_machine_state_noise(&g, &l, text));
    EW_EXPECT_STR(text, "other programs used 40 % of the CPU; 91 C");
}

/* Ratios are formed pairwise: the mean of two ratios, not the ratio of two means. */
static void ratios_are_of_pairs(void)
{
    static const double seconds[2][2] = {{1, 2}, {10, 40}}; /* by network, by workers */
    struct ew_store *s = NULL;
    struct ew_arena a;
    struct ew_study study;
    struct ew_published_comparison *c;
    ew_arena_init(&a);
    EW_EXPECT_OK(ew_store_open(ew_test_path("pairs.db"), NULL, &s));
    EW_EXPECT_OK(kit_parse(&a,
                           "[a]\ncommand = work\nvar.net = x y\nnetwork = {net}\nworkers = 1 2\n"
                           "[published]\nfigure = epoch_s:workers=2/workers=1 3 | label=a\n",
                           false, NULL, &study));
    for (int i = 0; i < study.n_jobs; i++) {
        const struct ew_study_job *j = &study.jobs[i];
        const int64_t run = kit_begin(s, 2);
        struct ew_run_row r;
        ew_record_clear(EW_RECORD_RUN, &r);
        r.job = j->row.id;
        EW_EXPECT_OK(ew_store_run_update(s, run, &r));
        EW_EXPECT_OK(kit_metric(s, run, "epoch_s",
                                seconds[strcmp(ew_study_given(j, "net"), "y") == 0]
                                       [strcmp(ew_study_given(j, "workers"), "2") == 0]));
        EW_EXPECT_OK(ew_store_run_end(s, run, EW_RUN_DONE, NULL, 1));
    }
    EW_EXPECT_OK(ew_published_compare(s, &study, "here", &a, &c));
    EW_EXPECT_INT(c[0].runs, 2);
    EW_EXPECT_NEAR(c[0].value, 3, 1e-12);
    ew_store_close(s);
    ew_arena_fini(&a);
}

EW_TEST_MAIN(EW_TEST(ratios_are_of_pairs), EW_TEST(epochs_are_summed_up),
             EW_TEST(published_stands_beside_ours), EW_TEST(machines_are_described),
             EW_TEST(power_settings_are_checked), EW_TEST(energy_and_clocks_are_derived),
             EW_TEST(readings_are_kept), EW_TEST(noise_has_reasons))
