/* SPDX-License-Identifier: Apache-2.0 */
/* The energy of training's intervals, on a captured board whose power stands still. */
#include <unistd.h>

#include "base/clock.h"
#include "device/board.h"
#include "ew_test.h"
#include "train/energy_watch.h"

static void multiplies_power_and_time(void)
{
    struct ew_board *b;
    struct ew_energy_watch *w;
    const struct ew_board_opts o = {.root = "tests/fixtures/boards/agx-xavier-jp5"};
    if (!EW_EXPECT_OK(ew_board_open(&o, &b)))
        return;
    EW_EXPECT_OK(ew_energy_watch_new(b, &w));
    if (EW_EXPECT(w != NULL)) {
        for (int round = 0; round < 2; round++) {
            const int64_t start = ew_clock_ns();
            ew_energy_watch_begin(w, start);
            usleep(300000);
            const int64_t end = ew_clock_ns();
            const struct ew_energy_used e = ew_energy_watch_end(w, end);
            EW_EXPECT(e.known && e.mean_w > 0.1);
            EW_EXPECT_NEAR(e.joules, e.mean_w * (double)(end - start) * 1e-9, 0.01 * e.joules);
        }
    }
    ew_energy_watch_free(w);
    ew_board_close(b);
}

static void says_nothing_without_a_sensor(void)
{
    struct ew_energy_watch *w;
    EW_EXPECT_OK(ew_energy_watch_new(NULL, &w));
    EW_EXPECT(w == NULL);
    ew_energy_watch_begin(w, 0);
    ew_energy_watch_drain(w);
    EW_EXPECT(!ew_energy_watch_end(w, 1).known);
    ew_energy_watch_free(w);
}

EW_TEST_MAIN(EW_TEST(multiplies_power_and_time), EW_TEST(says_nothing_without_a_sensor))
