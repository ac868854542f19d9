/* SPDX-License-Identifier: Apache-2.0 */
/* Every sensor on every captured board: values, reasons for what is absent, the rule of the total.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "device/board.h"
#include "device/cpulist.h"
#include "device/line_reader.h"
#include "device/meter.h"
#include "device/sensor.h"
#include "device/wrap.h"
#include "ew_test.h"

#define BOARDS "tests/fixtures/boards/"

struct opened {
    struct ew_board *board;
    struct ew_sample_value *values;
};

static bool open_board(const struct ew_board_opts *opts, struct opened *out)
{
    out->board = NULL;
    if (!EW_EXPECT_OK(ew_board_open(opts, &out->board)))
        return false;
    out->values = calloc((size_t)out->board->n_channels + 1, sizeof(*out->values));
    ew_board_read(out->board, out->values);
    return true;
}

static void close_board(struct opened *o)
{
    ew_board_close(o->board);
    free(o->values);
}

static struct ew_sample_value value_of(const struct opened *o, const char *channel)
{
    const int i = ew_board_channel(o->board, channel);
    if (i < 0)
        EW_FAIL("no channel %s", channel);
    return i < 0 ? ew_sample_value_absent(EW_ABSENT_N) : o->values[i];
}

/* Values that follow from the files of each board, computed by hand. */
static const struct {
    const char *board, *channel;
    enum ew_absent absent;
    double value;
} expected[] = {
    {"jetson-nano-jp4", "power.total", EW_ABSENT_NOT, 2.745},
    {"jetson-nano-jp4", "power.POM_5V_GPU", EW_ABSENT_NOT, 0.160},
    {"jetson-nano-jp4", "gpu.load", EW_ABSENT_NOT, 7.0},
    {"jetson-nano-jp4", "gpu.freq", EW_ABSENT_NOT, 768},
    {"jetson-nano-jp4", "emc.freq", EW_ABSENT_NOT, 1600},
    {"jetson-nano-jp4", "cpu3.freq", EW_ABSENT_NOT, 1479},
    {"jetson-nano-jp4", "mem.nvmap", EW_ABSENT_NOT, 213000 * 1024.0},
    {"jetson-nano-jp4", "cpu0.load", EW_ABSENT_FIRST, 0},
    {"jetson-tx2-jp4", "power.total", EW_ABSENT_NOT, 1.840},
    {"jetson-tx2-jp4", "temp.GPU", EW_ABSENT_NOT_READY, 0},
    {"xavier-nx-jp4", "power.total", EW_ABSENT_NOT, 4.063},
    {"xavier-nx-jp5", "power.total", EW_ABSENT_NOT, 5.048 * 0.751},
    {"xavier-nx-jp5", "voltage.VDD_IN", EW_ABSENT_NOT, 5.048},
    {"xavier-nx-jp5", "cpu.online", EW_ABSENT_NOT, 2},
    {"xavier-nx-jp5", "cpu2.load", EW_ABSENT_OFF, 0},
    {"xavier-nx-jp5", "emc.freq", EW_ABSENT_NO_PERMISSION, 0},
    {"agx-xavier-jp5", "power.total", EW_ABSENT_NOT,
     19.448 * (0.016 + 0.120 + 0.120 + 0 + 0.016) + 5.048 * 0.5},
    {"agx-orin-jp5", "power.total", EW_ABSENT_NOT, 19.504 * 0.140 + 5.032 * 0.8 + 5.016 * 0.06},
    {"agx-orin-jp5", "temp.GPU", EW_ABSENT_NOT_READY, 0},
    {"agx-orin-jp5", "temp.CV2", EW_ABSENT_BAD, 0},
    {"agx-orin-jp6", "power.total", EW_ABSENT_NOT, 20.008 * 0.2 + 5.04 * 0.94 + 5.04 * 0.14},
    {"agx-orin-jp6", "gpu.load", EW_ABSENT_NOT, 54},
    {"agx-orin-jp6", "fan.rpm", EW_ABSENT_NOT, 1890},
    {"orin-nx-jp6", "power.total", EW_ABSENT_NOT, 4.944 * 3.63},
    {"orin-nx-jp6", "throttle.cpufreq-cpu0", EW_ABSENT_NOT, 2},
    {"orin-nano-jp6", "power.total", EW_ABSENT_NOT, 4.936 * 0.92},
    {"rpi4", "temp.cpu", EW_ABSENT_NOT, 48.212},
    {"rpi4", "throttle.under_voltage", EW_ABSENT_NOT, 0},
    {"rpi5", "power.VDD_CORE", EW_ABSENT_NOT, 0.8642 * 0.7216},
    {"rpi5", "voltage.EXT5V", EW_ABSENT_NOT, 5.11234},
    {"x86-rapl", "energy.package-0", EW_ABSENT_NOT, 262143.0},
    {"x86-rapl", "energy.total", EW_ABSENT_NOT, 262143.0 + 45678.901234},
    {"x86-rapl", "power.total", EW_ABSENT_FIRST, 0},
    {"x86-laptop", "power.total", EW_ABSENT_NOT, 6.482},
    {"x86-nvidia", "power.gpu0", EW_ABSENT_NOT, 55.12},
    {"x86-nvidia", "throttle.gpu0", EW_ABSENT_NOT, 1},
    {"x86-h200", "energy.total", EW_ABSENT_NOT, 8482.772},
    {"x86-h200", "power.total", EW_ABSENT_NOT, 80.565},
    {"x86-h200", "throttle.gpu0", EW_ABSENT_NOT, 0},
};

static void boards_read_as_written(void)
{
    for (size_t i = 0; i < EW_COUNT(expected); i++) {
        char root[128];
        struct opened o;
        snprintf(root, sizeof(root), BOARDS "%s", expected[i].board);
        if (!open_board(&(struct ew_board_opts){.root = root}, &o))
            continue;
        const struct ew_sample_value v = value_of(&o, expected[i].channel);
        if (v.absent != expected[i].absent || fabs(v.v - expected[i].value) > 1e-6)
            EW_FAIL("%s %s: %g (%s), expected %g (%s)", expected[i].board, expected[i].channel, v.v,
                    v.absent < EW_ABSENT_N ? ew_absent_text(v.absent) : "?", expected[i].value,
                    ew_absent_text(expected[i].absent));
        close_board(&o);
    }
}

static void total_is_the_right_rails(void)
{
    static const struct {
        const char *board, *profile, *rails;
    } want[] = {
        {"jetson-nano-jp4", "jetson-nano", "POM_5V_IN"},
        {"jetson-tx2-jp4", "jetson-tx2", "VDD_IN"},
        {"xavier-nx-jp4", "xavier-nx", "VDD_IN"},
        {"xavier-nx-jp5", "xavier-nx", "VDD_IN"},
        {"agx-xavier-jp5", "agx-xavier", "GPU + CPU + SOC + CV + VDDRQ + SYS5V"},
        {"agx-orin-jp5", "agx-orin", "VDD_GPU_SOC + VDD_CPU_CV + VIN_SYS_5V0 + VDDQ_VDD2_1V8AO"},
        {"agx-orin-jp6", "agx-orin", "VDD_GPU_SOC + VDD_CPU_CV + VIN_SYS_5V0 + VDDQ_VDD2_1V8AO"},
        {"orin-nx-jp6", "orin-nx", "VDD_IN"},
        {"orin-nano-jp6", "orin-nano", "VDD_IN"},
        {"rpi4", "rpi4", NULL},
        {"x86-rapl", NULL, "package-0 + dram-0"},
        {"x86-laptop", NULL, "battery"},
        {"x86-nvidia", NULL, "gpu0 + package-0"},
        {"x86-h200", NULL, "gpu0"},
        {"vm-bare", NULL, NULL},
    };
    for (size_t i = 0; i < EW_COUNT(want); i++) {
        char root[128];
        struct opened o;
        snprintf(root, sizeof(root), BOARDS "%s", want[i].board);
        if (!open_board(&(struct ew_board_opts){.root = root}, &o))
            continue;
        EW_EXPECT_STR(o.board->profile ? o.board->profile->name : "none",
                      want[i].profile ? want[i].profile : "none");
        if (want[i].rails)
            EW_EXPECT_STR(o.board->total.rails, want[i].rails);
        else
            EW_EXPECT_INT(o.board->total.power, -1);
        close_board(&o);
    }
}

/* Everything missing is reported, and every reason has a text. */
static void missing_has_reasons(void)
{
    struct opened o;
    if (!open_board(&(struct ew_board_opts){.root = BOARDS "vm-bare"}, &o))
        return;
    EW_EXPECT(o.board->n_missing >= 6);
    for (int i = 0; i < o.board->n_missing; i++) {
        EW_EXPECT(o.board->missing[i].reason[0] != '\0');
        EW_EXPECT(o.board->missing[i].absent != EW_ABSENT_NOT);
    }
    close_board(&o);
}

/* ---- A board whose files change -------------------------------------------------------------- */

static void put(const char *path, const char *text)
{
    char dir[256];
    snprintf(dir, sizeof(dir), "%s", ew_test_path(path));
    for (char *p = dir + strlen(ew_test_dir()) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(dir, 0777);
        *p = '/';
    }
    FILE *f = fopen(dir, "r+"); /* in place, since sources keep files open */
    if (!f)
        f = fopen(dir, "w");
    if (!f || ftruncate(fileno(f), 0) != 0)
        EW_FAIL("cannot write %s", dir);
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

static void rates_and_wraps(void)
{
    put("b/proc/stat", "cpu  100 0 0 900 0 0 0 0\ncpu0 100 0 0 900 0 0 0 0\n");
    put("b/sys/devices/system/cpu/present", "0-1\n");
    put("b/sys/class/powercap/intel-rapl:0/name", "package-0\n");
    put("b/sys/class/powercap/intel-rapl:0/energy_uj", "999000000\n");
    put("b/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000000\n");
    put("b/sys/block/sda/stat", "10 0 100 0 5 0 50 0 0 0 0\n");
    struct opened o;
    if (!open_board(&(struct ew_board_opts){.root = ew_test_path("b")}, &o))
        return;
    EW_EXPECT_INT(value_of(&o, "cpu.load").absent, EW_ABSENT_FIRST);
    const int64_t before = ew_clock_ns();
    put("b/proc/stat",
        "cpu  130 0 0 970 0 0 0 0\ncpu0 130 0 0 970 0 0 0 0\ncpu1 9 0 0 9 0 0 0 0\n");
    put("b/sys/class/powercap/intel-rapl:0/energy_uj", "2000000\n"); /* 3 J later: it wrapped */
    put("b/sys/block/sda/stat", "20 0 300 0 5 0 50 0 2 0 0\n");
    ew_board_read(o.board, o.values);
    const double seconds = (double)(ew_clock_ns() - before) / 1e9;
    EW_EXPECT_NEAR(value_of(&o, "cpu.load").v, 30, 1e-9);
    EW_EXPECT_INT(value_of(&o, "cpu1.load").absent, EW_ABSENT_FIRST); /* switched on */
    EW_EXPECT_NEAR(value_of(&o, "energy.package-0").v, 1002, 1e-6);
    EW_EXPECT(value_of(&o, "power.package-0").v >= 3.0 / (seconds + 1));
    EW_EXPECT(value_of(&o, "disk.sda.read").v > 0);
    EW_EXPECT_NEAR(value_of(&o, "disk.sda.write").v, 0, 0);
    EW_EXPECT_NEAR(value_of(&o, "disk.sda.queue").v, 2, 0);
    ew_board_read(o.board, o.values);
    EW_EXPECT_INT(value_of(&o, "cpu.load").absent, EW_ABSENT_STILL);
    put("b/proc/stat", "cpu  130 0 0 980 0 0 0 0\ncpu0 130 0 0 980 0 0 0 0\n");
    ew_board_read(o.board, o.values);
    EW_EXPECT_INT(value_of(&o, "cpu1.load").absent, EW_ABSENT_OFF);
    close_board(&o);
}

static void meter_gives_each_line_once(void)
{
    mkdir(ew_test_path("empty"), 0777);
    const char *log = ew_test_file("meter.log", "1.0 99\n", 7); /* from before the start: not
                                                                 * ours */
    char path[256];
    snprintf(path, sizeof(path), "%s", log);
    struct opened o;
    if (!open_board(&(struct ew_board_opts){.root = ew_test_path("empty"), .power_from = path}, &o))
        return;
    EW_EXPECT_INT(value_of(&o, "power.meter").absent, EW_ABSENT_STALE);
    FILE *f = fopen(path, "a");
    fputs("2.0 5.25\n3.0 6.5 W\n", f);
    fflush(f);
    ew_board_read(o.board, o.values);
    EW_EXPECT_NEAR(value_of(&o, "power.meter").v, 6.5, 0);
    EW_EXPECT_NEAR(value_of(&o, "power.total").v, 6.5, 0);
    ew_board_read(o.board, o.values);
    EW_EXPECT_INT(value_of(&o, "power.total").absent, EW_ABSENT_STALE);
    fputs("rubbish\n", f);
    fclose(f);
    ew_board_read(o.board, o.values);
    EW_EXPECT_INT(value_of(&o, "power.total").absent, EW_ABSENT_BAD);
    EW_EXPECT_STR(o.board->total.rails, "meter");
    close_board(&o);
}

/* A meter that sends without pause, with complete lines or without, cannot block a reading or a
 * probe. */
static void meters_without_pause(void)
{
    struct opened o;
    mkdir(ew_test_path("empty"), 0777);
    if (open_board(&(struct ew_board_opts){.root = ew_test_path("empty"),
                                           .power_from = "/dev/zero",
                                           .tegrastats = "/dev/zero"},
                   &o)) {
        EW_EXPECT_INT(value_of(&o, "power.meter").absent, EW_ABSENT_STALE);
        close_board(&o);
    }
    struct ew_line_reader f;
    char line[16];
    size_t lines = 0;
    if (!EW_EXPECT_OK(ew_line_reader_open("yes 5", false, &f)))
        return;
    while (!ew_line_reader_next(&f, line, sizeof(line)))
        ew_line_reader_wait(&f, -1);
    while (lines < EW_LINE_READER_MOST) {
        ew_line_reader_wait(&f, -1);
        if (!ew_line_reader_next(&f, line, sizeof(line)))
            break;
        lines++;
    }
    EW_EXPECT(lines < EW_LINE_READER_MOST);
    ew_line_reader_close(&f);
}

static void meter_lines(void)
{
    static const struct {
        const char *line;
        double watts; /* < 0: refused */
    } lines[] = {{"12.5", 12.5},
                 {"1700000000.25 3.75", 3.75},
                 {"2024-05-01 12:00:00 7W", 7},
                 {"1,2.5", 2.5},
                 {"", -1},
                 {"watts", -1},
                 {"1 2 3 4", -1},
                 {"-3", -1},
                 {"nan", -1}};
    for (size_t i = 0; i < EW_COUNT(lines); i++) {
        double w = -1;
        const bool ok = ew_meter_parse(lines[i].line, &w);
        EW_EXPECT_INT(ok, lines[i].watts >= 0);
        if (ok)
            EW_EXPECT_NEAR(w, lines[i].watts, 0);
    }
}

static void wraps_without_range(void)
{
    struct ew_wrap w = {.range = 0};
    EW_EXPECT_NEAR(ew_wrap_add(&w, ew_sample_value_of(5)).v, 5, 0);
    EW_EXPECT_INT(ew_wrap_add(&w, ew_sample_value_of(4)).absent, EW_ABSENT_BAD);
    EW_EXPECT_NEAR(ew_wrap_add(&w, ew_sample_value_of(6)).v, 7, 0);
    EW_EXPECT_INT(ew_wrap_add(&w, ew_sample_value_absent(EW_ABSENT_LOST)).absent, EW_ABSENT_LOST);
}

static void cpu_lists(void)
{
    struct ew_cpulist l;
    EW_EXPECT(ew_cpulist_parse("0-3,6", &l) && l.n == 5 && l.cpu[4] == 6);
    EW_EXPECT(ew_cpulist_parse("", &l) && l.n == 0);
    EW_EXPECT(!ew_cpulist_parse("0-", &l));
    EW_EXPECT(!ew_cpulist_parse("a", &l));
    EW_EXPECT(!ew_cpulist_parse("99999999999999999999", &l));
    EW_EXPECT(ew_cpulist_parse("0-65535", &l) && l.n == EW_MAX_CPUS);
    EW_EXPECT(ew_cpulist_parse("3,5", &l) && l.n == 2 && l.cpu[0] == 3 && l.cpu[1] == 5);
}

/* The machine that runs the test. */
static void lives_here(void)
{
    struct opened o;
    if (!open_board(&(struct ew_board_opts){.pid = 1, .watch = "tests/device"}, &o))
        return;
    EW_EXPECT(value_of(&o, "mem.total").v > 0);
    EW_EXPECT(ew_sample_value_is(value_of(&o, "cache.share")));
    for (int i = 0; i < o.board->n_channels; i++)
        if (ew_sample_value_is(o.values[i]))
            EW_EXPECT(isfinite(o.values[i].v));
    close_board(&o);
}

EW_TEST_MAIN(EW_TEST(boards_read_as_written), EW_TEST(total_is_the_right_rails),
             EW_TEST(missing_has_reasons), EW_TEST(rates_and_wraps),
             EW_TEST(meter_gives_each_line_once), EW_TEST(meters_without_pause),
             EW_TEST(meter_lines), EW_TEST(wraps_without_range), EW_TEST(cpu_lists),
             EW_TEST(lives_here))
