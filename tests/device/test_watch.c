/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of intervals by their absolute times, on a copy of a captured board with power values that
 * the test sets. */
#include "device/watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ew_test.h"

static char root[256];

static void draw(int milliwatts)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/sys/bus/i2c/devices/6-0040/iio:device0/in_power0_input", root);
    FILE *f = fopen(path, "w");
    if (EW_EXPECT(f)) {
        fprintf(f, "%d\n", milliwatts);
        fclose(f);
    }
}

static struct ew_board *open_copy(void)
{
    char command[640];
    struct ew_board *b = NULL;
    snprintf(root, sizeof(root), "%s", ew_test_path("nano"));
    snprintf(command, sizeof(command),
             "rm -rf '%s' && cp -a tests/fixtures/boards/jetson-nano-jp4 '%s'", root, root);
    EW_EXPECT_INT(system(command), 0);
    EW_EXPECT_OK(ew_board_open(&(struct ew_board_opts){.root = root}, &b));
    return b;
}

/* Sleeps, then waits for two more readings, which are late on a busy machine. */
static void pass(struct ew_watch *w, useconds_t us)
{
    usleep(us);
    for (int more = 0; more < 2; more++)
        for (const double before = ew_watch_total(w).joules; ew_watch_total(w).joules <= before;)
            usleep(5000);
}

/* A job begins with a power mode switch that takes a second at 2 W, and its epoch then draws 8 W.
 * Regression: with times relative to a start one second too early, the epoch had 2 W. */
static void switch_in_front(void)
{
    struct ew_watch *w;
    struct ew_board *b = open_copy();
    if (!b)
        return;
    draw(2000);
    EW_EXPECT_OK(ew_watch_start(b, &w));
    const int64_t start = ew_clock_ns();
    pass(w, 1000000);
    draw(8000);
    pass(w, 300000); /* one reading in between, since power is interpolated between readings */
    const int64_t from = ew_clock_ns();
    pass(w, 600000);
    const int64_t to = ew_clock_ns();
    pass(w, 300000);
    struct ew_energy e = ew_watch_energy(w, from, to);
    EW_EXPECT(e.absent == EW_ABSENT_NOT);
    EW_EXPECT_NEAR(e.mean_w, 8, 1e-9);
    EW_EXPECT_NEAR(e.joules, 8 * (double)(to - from) * 1e-9, 1e-6);
    e = ew_watch_energy(w, start, start + 700000000);
    EW_EXPECT_NEAR(e.mean_w, 2, 1e-9);
    const struct ew_watch_means m = ew_watch_means(w, from, to);
    EW_EXPECT(m.temp_c > 0 && m.temp_c < 120);
    /* Forgotten readings remain in the total. */
    const double all = ew_watch_total(w).joules;
    ew_watch_forget(w, from);
    EW_EXPECT_NEAR(ew_watch_energy(w, from, to).mean_w, 8, 1e-9);
    EW_EXPECT(ew_watch_total(w).joules >= all && all > 2 * 1.0 + 8 * 0.9);
    ew_watch_stop(w);
    ew_watch_free(w);
    ew_board_close(b);
}

static void samples_are_taken_once(void)
{
    struct ew_watch *w;
    struct ew_watch_sample s;
    struct ew_board *b = open_copy();
    if (!b)
        return;
    const int64_t start = ew_clock_ns();
    EW_EXPECT_OK(ew_watch_start(b, &w));
    usleep(300000);
    ew_watch_stop(w);
    int power = 0, clocks = 0, cores = 0;
    while (ew_watch_next(w, &s)) {
        EW_EXPECT(s.t_ns >= start && s.t_ns <= ew_clock_ns());
        power += strcmp(s.unit, "W") == 0;
        clocks += strcmp(s.unit, "MHz") == 0;
        cores += strncmp(s.channel, "cpu", 3) == 0 && strcmp(s.unit, "%") == 0;
    }
    EW_EXPECT(power > 3 && clocks > 3);
    EW_EXPECT(cores <= 4); /* the total, not per core */
    EW_EXPECT(!ew_watch_next(w, &s));
    ew_watch_free(w);
    ew_board_close(b);
}

static void nothing_is_nothing(void)
{
    ew_watch_drain(NULL);
    ew_watch_forget(NULL, 0);
    ew_watch_stop(NULL);
    ew_watch_free(NULL);
    EW_EXPECT(ew_watch_energy(NULL, 0, 1).absent != EW_ABSENT_NOT);
    EW_EXPECT(isnan(ew_watch_means(NULL, 0, 1).temp_c));
}

EW_TEST_MAIN(EW_TEST(switch_in_front), EW_TEST(samples_are_taken_once), EW_TEST(nothing_is_nothing))
