/* SPDX-License-Identifier: Apache-2.0 */
/* Power modes on writable copies of captured boards: parsing, order of writes, restoring after a
 * kill at every write.  The machine's own settings are not touched. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "device/nvpmodel.h"
#include "device/powermode.h"
#include "ew_test.h"

/* ---- Copies of boards ------------------------------------------------------------------------ */

struct copy {
    char path[256];
    struct ew_board *board;
};

static bool copy_board(const char *name, struct copy *c)
{
    char command[640];
    snprintf(c->path, sizeof(c->path), "%s", ew_test_path(name));
    snprintf(command, sizeof(command), "rm -rf '%s' && cp -a 'tests/fixtures/boards/%s' '%s'",
             c->path, name, c->path);
    if (!EW_EXPECT_INT(system(command), 0))
        return false;
    return EW_EXPECT_OK(ew_board_open(&(struct ew_board_opts){.root = c->path}, &c->board));
}

/* A digest of all files' contents, without the journal's folder. */
static uint64_t digest;
static size_t digest_skip;

static void mix(const char *data, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)data[i]) * 1099511628211u;
    digest += h * (h | 1); /* independent of the order of files */
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *f)
{
    char *data = NULL;
    size_t size;
    if (type != FTW_F || !S_ISREG(st->st_mode) || strncmp(path + digest_skip, "/run/", 5) == 0)
        return 0;
    if (ew_file_read(path, 1 << 20, &data, &size) == EW_OK) {
        while (size > 0 && (data[size - 1] == '\n' || data[size - 1] == ' '))
            size--; /* a restored value has no newline */
        char *both = NULL;
        const int n = asprintf(&both, "%s=%.*s", path + digest_skip, (int)size, data);
        if (n > 0)
            mix(both, (size_t)n);
        free(both);
    }
    free(data);
    return 0;
}

static uint64_t tree(const struct copy *c)
{
    digest = 0;
    digest_skip = strlen(c->path);
    nftw(c->path, visit, 16, FTW_PHYS);
    return digest;
}

static int64_t number(const struct copy *c, const char *path)
{
    int64_t v = -1;
    EW_EXPECT_OK(ew_root_read_int(&c->board->root, path, &v));
    return v;
}

static bool changes_of(struct copy *c, const char *mode, struct ew_power_list *out)
{
    struct ew_nvpmodel m;
    *out = (struct ew_power_list){0};
    if (!EW_EXPECT_OK(ew_nvpmodel_read(&c->board->root, &c->board->arena, &m)))
        return false;
    const struct ew_nvpm_mode *found = ew_nvpmodel_find(&m, mode);
    return EW_EXPECT(found) && EW_EXPECT_OK(ew_powermode_nvp(c->board, &m, found, out));
}

#define NANO_CPU "sys/devices/system/cpu/cpu0/cpufreq/"
#define NANO_GPU "sys/devices/gpu.0/devfreq/57000000.gpu/"

/* ---- nvpmodel.conf --------------------------------------------------------------------------- */

static void reads_modes(void)
{
    struct copy c;
    struct ew_nvpmodel m;
    if (!copy_board("agx-xavier-jp5", &c))
        return;
    EW_EXPECT_OK(ew_nvpmodel_read(&c.board->root, &c.board->arena, &m));
    EW_EXPECT_INT(m.n_modes, 8);
    EW_EXPECT_INT(m.default_id, 7);
    EW_EXPECT_INT(ew_nvpmodel_active(&c.board->root), 0);
    EW_EXPECT_SAME(ew_nvpmodel_find(&m, "2"), ew_nvpmodel_find(&m, "MODE_15W"));
    EW_EXPECT_SAME(ew_nvpmodel_find(&m, "9"), NULL);
    ew_board_close(c.board);
}

static void refuses_bad_conf(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {{"< PARAM TYPE=FILE NAME=X", "conf:1: no '>'"},
               {"\n< POWER_MODEL ID=x NAME=A >", "conf:2: POWER_MODEL"},
               {"< PARAM TYPE=FILE >", "PARAM without NAME"},
               {"< >", "empty heading"},
               {"< PM_CONFIG DEFAULT=z >", "without DEFAULT"},
               {"< POWER_MODEL ID=0 NAME=A >\nCPU MAX fast", "'fast' is not a whole number"}};
    for (size_t i = 0; i < EW_COUNT(bad); i++) {
        struct ew_arena a;
        struct ew_nvpmodel m;
        char text[128];
        ew_arena_init(&a);
        snprintf(text, sizeof(text), "%s", bad[i].text);
        EW_EXPECT_ERR(ew_nvpmodel_parse(&a, text, &m), EW_ERR_FORMAT, bad[i].message);
        ew_arena_fini(&a);
    }
}

/* ---- Setting and restoring ---- */

static void sets_and_restores(void)
{
    struct copy c;
    struct ew_power_list l;
    int n;
    if (!copy_board("jetson-nano-jp4", &c) || !changes_of(&c, "5W", &l))
        return;
    const uint64_t before = tree(&c);
    EW_EXPECT_OK(ew_power_apply(&c.board->root, &l, &(struct ew_power_opts){.keep = true}, &n));
    EW_EXPECT_INT(number(&c, NANO_CPU "scaling_max_freq"), 921600); /* nearest to 918000 */
    EW_EXPECT_INT(number(&c, NANO_GPU "max_freq"), 614400000);
    EW_EXPECT_INT(number(&c, "sys/devices/system/cpu/cpu3/online"), 0);
    EW_EXPECT_INT(number(&c, "sys/kernel/nvpmodel_emc_cap/emc_iso_cap"), 1600000000);
    EW_EXPECT(tree(&c) != before);
    /* Permanent: a later start does not undo it, restore does. */
    EW_EXPECT_OK(ew_power_recover(&c.board->root, &n));
    EW_EXPECT_INT(n, 0);
    struct ew_power_state s;
    EW_EXPECT_OK(ew_power_state(&c.board->root, &s));
    EW_EXPECT(s.active && s.keep && s.files == 5);
    /* A second change keeps the originally saved values. */
    ew_power_list_free(&l);
    EW_EXPECT_OK(ew_power_list_set_int(&l, NANO_CPU "scaling_max_freq", 1036800));
    EW_EXPECT_OK(ew_power_apply(&c.board->root, &l, &(struct ew_power_opts){.keep = true}, &n));
    EW_EXPECT_INT(number(&c, NANO_CPU "scaling_max_freq"), 1036800);
    EW_EXPECT_OK(ew_power_restore(&c.board->root, NULL, &n));
    EW_EXPECT_INT(n, 5);
    EW_EXPECT(tree(&c) == before);
    EW_EXPECT_OK(ew_power_restore(&c.board->root, NULL, &n));
    EW_EXPECT_INT(n, 0);
    ew_power_list_free(&l);
    ew_board_close(c.board);
}

/* Minimum and maximum of a clock never cross, in either direction. */
static void check_ranges(void *ctx, int write)
{
    const struct copy *c = ctx;
    static const char *const dirs[] = {
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_%s_freq",
        "sys/devices/system/cpu/cpu6/cpufreq/scaling_%s_freq",
        "sys/devices/platform/17000000.gv11b/devfreq/17000000.gv11b/%s_freq"};
    static const char *const ends[] = {"min", "max"};
    for (size_t i = 0; i < EW_COUNT(dirs); i++) {
        int64_t v[2];
        for (int k = 0; k < 2; k++) {
            char path[160];
            const char *slot = strstr(dirs[i], "%s");
            snprintf(path, sizeof(path), "%.*s%s%s", (int)(slot - dirs[i]), dirs[i], ends[k],
                     slot + 2);
            v[k] = number(c, path);
        }
        if (v[0] > v[1])
            EW_FAIL("before write %d: %s: min %lld over max %lld", write, dirs[i], (long long)v[0],
                    (long long)v[1]);
    }
}

static void ranges_stay_whole(void)
{
    static const char *const modes[] = {"MODE_15W", "MODE_30W_ALL", "MAXN", "MODE_30W_6CORE",
                                        "MODE_15W_DESKTOP"};
    struct copy c;
    int n;
    if (!copy_board("agx-xavier-jp5", &c))
        return;
    const uint64_t before = tree(&c);
    const struct ew_power_opts o = {.keep = true, .before_write = check_ranges, .ctx = &c};
    for (size_t i = 0; i < EW_COUNT(modes); i++) {
        struct ew_power_list l;
        if (changes_of(&c, modes[i], &l))
            EW_EXPECT_OK(ew_power_apply(&c.board->root, &l, &o, &n));
        check_ranges(&c, -1);
        ew_power_list_free(&l);
    }
    EW_EXPECT_OK(ew_power_restore(&c.board->root, &o, &n));
    EW_EXPECT(tree(&c) == before);
    ew_board_close(c.board);
}

static void custom_modes(void)
{
    struct copy c;
    int n;
    if (!copy_board("agx-xavier-jp5", &c))
        return;
    const uint64_t before = tree(&c);
    struct ew_power_list l = {0};
    /* Mode k of the TRAIN study, with fixed clocks. */
    const struct ew_power_want k = {4, 1036, 420, 2133, 0, false};
    EW_EXPECT_OK(ew_powermode_custom(c.board, &k, &l));
    EW_EXPECT_OK(ew_power_apply(&c.board->root, &l, NULL, &n));
    EW_EXPECT_INT(number(&c, "sys/devices/system/cpu/cpu2/cpufreq/scaling_min_freq"), 1036800);
    EW_EXPECT_INT(number(&c, "sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq"), 1036800);
    EW_EXPECT_INT(number(&c, "sys/class/devfreq/17000000.gv11b/max_freq"), 420750000);
    EW_EXPECT_INT(number(&c, "sys/devices/system/cpu/cpu4/online"), 0);
    EW_EXPECT_INT(number(&c, "sys/kernel/nvpmodel_emc_cap/emc_iso_cap"), 2133000000);
    EW_EXPECT_OK(ew_power_restore(&c.board->root, NULL, &n));
    EW_EXPECT(tree(&c) == before);
    ew_power_list_free(&l);
    EW_EXPECT_ERR(
        ew_powermode_custom(c.board, &(struct ew_power_want){.cpu_mhz = 3000, .dvfs = -1}, &l),
        EW_ERR_ARG, "cannot run at 3000 MHz; allowed: 115 192");
    EW_EXPECT_ERR(ew_powermode_custom(c.board, &(struct ew_power_want){.cores = 9, .dvfs = -1}, &l),
                  EW_ERR_ARG, "9 cores wanted, the board has 8");
    ew_power_list_free(&l);
    ew_board_close(c.board);
}

static void write_text(const struct copy *c, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof(full), "%s/%s", c->path, path);
    FILE *f = fopen(full, "w");
    if (EW_EXPECT(f)) {
        fputs(text, f);
        fclose(f);
    }
}

/* Values that are no clocks, as a captured board may have, are not counted with. */
static void absurd_clocks(void)
{
    static const char table[] =
        "sys/devices/system/cpu/cpufreq/policy0/scaling_available_frequencies";
    struct copy c;
    struct ew_power_list l = {0};
    if (!copy_board("agx-xavier-jp5", &c))
        return;
    write_text(&c, table, "115200 9223372036854775 2265600\n");
    EW_EXPECT_OK(
        ew_powermode_custom(c.board, &(struct ew_power_want){.cpu_mhz = 2265, .dvfs = -1}, &l));
    ew_power_list_free(&l);
    write_text(&c, table, "9223372036854774\n");
    EW_EXPECT_OK(
        ew_powermode_custom(c.board, &(struct ew_power_want){.cpu_mhz = 500, .dvfs = -1}, &l));
    ew_power_list_free(&l);
    ew_board_close(c.board);
}

/* A clock without the file that limits it is refused. */
static void clock_without_limit(void)
{
    struct copy c;
    struct ew_power_list l = {0};
    if (!copy_board("agx-xavier-jp5", &c))
        return;
    char path[512];
    snprintf(path, sizeof(path), "%s/sys/class/devfreq/17000000.gv11b/max_freq", c.path);
    EW_EXPECT_INT(unlink(path), 0);
    EW_EXPECT_ERR(
        ew_powermode_custom(c.board, &(struct ew_power_want){.gpu_mhz = 420, .dvfs = -1}, &l),
        EW_ERR_UNSUPPORTED, "gpu: has no file that limits its clock");
    ew_power_list_free(&l);
    ew_board_close(c.board);
}

/* A named mode with clocks fixed at the mode's maximum, the memory's locked, the fan at full speed;
 * then everything restored. */
static void named_and_held(void)
{
    static const char emc[] = "sys/kernel/debug/bpmp/debug/clk/emc/rate";
    static const char locked[] = "sys/kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked";
    struct copy c;
    struct ew_nvpmodel m;
    int n;
    if (!copy_board("agx-xavier-jp5", &c))
        return;
    write_text(&c, locked, "0");
    write_text(&c, "sys/class/hwmon/hwmon2/pwm1_enable", "2");
    const uint64_t before = tree(&c);
    static const struct {
        const char *mode;
        int64_t cpu_khz, gpu_hz, emc_hz; /* from Table 3 of TRAIN, and from nvpmodel.conf */
    } modes[] = {{"c", 1190400, 905250000, 1331200000},
                 {"MODE_30W_ALL", 1190400, 905250000, 1600000000}};
    for (size_t i = 0; i < EW_COUNT(modes); i++) {
        struct ew_power_list l = {0};
        const struct ew_power_want held = {.dvfs = 0, .fan = true};
        EW_EXPECT_OK(ew_nvpmodel_read(&c.board->root, &c.board->arena, &m));
        EW_EXPECT_OK(ew_powermode_named(c.board, &m, modes[i].mode, &held, &l));
        EW_EXPECT_OK(ew_power_apply(&c.board->root, &l, NULL, &n));
        EW_EXPECT_INT(number(&c, "sys/devices/system/cpu/cpu2/cpufreq/scaling_min_freq"),
                      modes[i].cpu_khz);
        EW_EXPECT_INT(number(&c, "sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq"),
                      modes[i].cpu_khz);
        EW_EXPECT_INT(number(&c, "sys/class/devfreq/17000000.gv11b/min_freq"), modes[i].gpu_hz);
        EW_EXPECT_INT(number(&c, emc), modes[i].emc_hz);
        EW_EXPECT_INT(number(&c, locked), 1);
        EW_EXPECT_INT(number(&c, "sys/class/hwmon/hwmon2/pwm1"), 255);
        EW_EXPECT_INT(number(&c, "sys/class/hwmon/hwmon2/pwm1_enable"), 1);
        EW_EXPECT_OK(ew_power_restore(&c.board->root, NULL, &n));
        EW_EXPECT(tree(&c) == before);
        ew_power_list_free(&l);
    }
    ew_board_close(c.board);
}

/* Modes that power-gate parts of the GPU need a reboot. */
static void gating_is_refused(void)
{
    struct copy c;
    struct ew_nvpmodel m;
    struct ew_power_list l = {0};
    if (!copy_board("agx-xavier-jp5", &c))
        return;
    EW_EXPECT_OK(ew_nvpmodel_read(&c.board->root, &c.board->arena, &m));
    EW_EXPECT_ERR(ew_powermode_nvp(c.board, &m, ew_nvpmodel_find(&m, "MODE_10W"), &l),
                  EW_ERR_UNSUPPORTED, "needs a reboot: use nvpmodel -m 1");
    ew_power_list_free(&l);
    ew_board_close(c.board);
}

/* ---- Kills ---- */

static void die_at(void *ctx, int n)
{
    if (n == *(const int *)ctx)
        raise(SIGKILL);
}

/* In a child: sets a mode and restores, killed before its n-th write.  True: it completed. */
static bool killed_at(struct copy *c, const struct ew_power_list *l, int at)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        const struct ew_power_opts o = {.before_write = die_at, .ctx = &at};
        int n;
        const bool ok = ew_power_apply(&c->board->root, l, &o, &n) == EW_OK;
        /* Writes are counted again while restoring: kills happen at at - 1000. */
        int back = at - 1000;
        const struct ew_power_opts o2 = {.before_write = die_at, .ctx = &back};
        _exit(ok && ew_power_restore(&c->board->root, &o2, &n) == EW_OK ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EW_EXPECT(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFEXITED(status);
}

static void survives_kill_at_every_write(void)
{
    static const char *const boards[][2] = {
        {"jetson-nano-jp4", "5W"}, {"agx-xavier-jp5", "MODE_30W_4CORE"}, {"orin-nano-jp6", "15W"}};
    for (size_t i = 0; i < EW_COUNT(boards); i++) {
        struct copy c;
        struct ew_power_list l;
        int kills = 0;
        if (!copy_board(boards[i][0], &c) || !changes_of(&c, boards[i][1], &l))
            return;
        const uint64_t before = tree(&c);
        for (int phase = 0; phase < 2; phase++)
            for (int at = phase * 1000; !killed_at(&c, &l, at); at++, kills++) {
                int n;
                EW_EXPECT_OK(ew_power_recover(&c.board->root, &n));
                if (!EW_EXPECT(tree(&c) == before))
                    return;
            }
        EW_EXPECT(tree(&c) == before);
        printf("  %s %s: %d kills, all put back\n", boards[i][0], boards[i][1], kills);
        EW_EXPECT(kills >= 8);
        ew_power_list_free(&l);
        ew_board_close(c.board);
    }
}

/* While the owner is alive nobody else changes or undoes anything. */
static void owner_is_respected(void)
{
    struct copy c;
    struct ew_power_list l;
    int n, ready[2], done[2];
    char byte = 0;
    if (!copy_board("jetson-nano-jp4", &c) || !changes_of(&c, "5W", &l))
        return;
    EW_EXPECT(pipe(ready) == 0 && pipe(done) == 0);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        const bool ok = ew_power_apply(&c.board->root, &l, NULL, &n) == EW_OK;
        byte = ok ? 'y' : 'n';
        (void)!write(ready[1], &byte, 1);
        (void)!read(done[0], &byte, 1);
        _exit(0); /* without restoring */
    }
    EW_EXPECT(read(ready[0], &byte, 1) == 1 && byte == 'y');
    EW_EXPECT_OK(ew_power_recover(&c.board->root, &n));
    EW_EXPECT_INT(n, 0);
    EW_EXPECT_ERR(ew_power_apply(&c.board->root, &l, NULL, &n), EW_ERR_IO, "is still running");
    EW_EXPECT(write(done[1], "x", 1) == 1);
    waitpid(pid, NULL, 0);
    EW_EXPECT_OK(ew_power_recover(&c.board->root, &n));
    EW_EXPECT_INT(n, 5);
    ew_power_list_free(&l);
    ew_board_close(c.board);
}

/* Of processes that set a mode at the same moment one does, and it alone puts back. */
static void several_at_once(void)
{
    enum { PROCESSES = 4, TIMES = 25 };
    struct copy c;
    struct ew_power_list l;
    if (!copy_board("jetson-nano-jp4", &c) || !changes_of(&c, "5W", &l))
        return;
    const uint64_t before = tree(&c);
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() != 0)
            continue;
        int n;
        bool well = true;
        for (int k = 0; k < TIMES; k++)
            if (ew_power_apply(&c.board->root, &l, NULL, &n) == EW_OK)
                well &= ew_power_restore(&c.board->root, NULL, &n) == EW_OK;
            else
                well &= strstr(ew_error_message(), "is still running") != NULL;
        _exit(well ? 0 : 1);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        wait(&status);
        EW_EXPECT_INT(status, 0);
    }
    EW_EXPECT(tree(&c) == before);
    ew_power_list_free(&l);
    ew_board_close(c.board);
}

/* ---- Errors -------------------------------------------------------------------------------- */

/* A device file that ignores writes stands for a kernel that refuses a value. */
static void value_not_taken(void)
{
    struct copy c;
    struct ew_power_list l;
    char file[512];
    int n;
    if (!copy_board("jetson-nano-jp4", &c) || !changes_of(&c, "5W", &l))
        return;
    snprintf(file, sizeof(file), "%s/sys/kernel/nvpmodel_emc_cap/emc_iso_cap", c.path);
    unlink(file);
    if (mknod(file, S_IFCHR | 0666, makedev(1, 3)) != 0)
        EW_SKIP("no device file can be made here");
    const uint64_t before = tree(&c);
    EW_EXPECT_ERR(ew_power_apply(&c.board->root, &l, NULL, &n), EW_ERR_IO,
                  "emc_iso_cap: set to 1600000000, but the kernel reports ''");
    EW_EXPECT(tree(&c) == before);
    ew_power_list_free(&l);
    ew_board_close(c.board);
}

/* Settings of a device that has disappeared cannot be restored, the others are; when the device is
 * back, its settings are restored too. */
static void one_setting_is_gone(void)
{
    static const char *const gone[] = {"sys/devices/57000000.gpu/devfreq/57000000.gpu/max_freq",
                                       "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq",
                                       "sys/kernel/nvpmodel_emc_cap/emc_iso_cap"};
    for (size_t i = 0; i < EW_COUNT(gone); i++) {
        struct copy c;
        struct ew_power_list l;
        int n;
        if (!copy_board("jetson-nano-jp4", &c) || !changes_of(&c, "5W", &l))
            return;
        const uint64_t before = tree(&c);
        char file[512], away[512], now[64], was[64];
        snprintf(file, sizeof(file), "%s/%s", c.path, gone[i]);
        snprintf(away, sizeof(away), "%s/away", c.path);
        EW_EXPECT_OK(ew_root_read(&c.board->root, gone[i], was, sizeof(was)));
        EW_EXPECT_OK(ew_power_apply(&c.board->root, &l, NULL, &n));
        EW_EXPECT_OK(ew_root_read(&c.board->root, gone[i], now, sizeof(now)));
        EW_EXPECT(strcmp(now, was) != 0);
        EW_EXPECT(rename(file, away) == 0);
        EW_EXPECT_ERR(ew_power_restore(&c.board->root, NULL, &n), EW_ERR_NOT_FOUND,
                      strrchr(gone[i], '/') + 1);
        EW_EXPECT(rename(away, file) == 0);
        write_text(&c, gone[i], was);
        EW_EXPECT(tree(&c) == before);
        write_text(&c, gone[i], now);
        EW_EXPECT_OK(ew_power_restore(&c.board->root, NULL, &n));
        EW_EXPECT(tree(&c) == before);
        ew_power_list_free(&l);
        ew_board_close(c.board);
    }
}

static void no_permission(void)
{
    struct copy c;
    struct ew_power_list l;
    if (getuid() != 0)
        EW_SKIP("needs root, to become somebody else");
    if (!copy_board("jetson-nano-jp4", &c) || !changes_of(&c, "5W", &l))
        return;
    const uint64_t before = tree(&c);
    EW_EXPECT_INT(chmod(ew_test_dir(), 0755), 0);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        int n;
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(2);
        const ew_err err = ew_power_apply(&c.board->root, &l, NULL, &n);
        _exit(err == EW_ERR_IO && strstr(ew_error_message(), "no permission") ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EW_EXPECT_INT(status, 0);
    EW_EXPECT(tree(&c) == before);
    ew_power_list_free(&l);
    ew_board_close(c.board);
}

EW_TEST_MAIN(EW_TEST(reads_modes), EW_TEST(refuses_bad_conf), EW_TEST(sets_and_restores),
             EW_TEST(ranges_stay_whole), EW_TEST(custom_modes), EW_TEST(absurd_clocks),
             EW_TEST(clock_without_limit), EW_TEST(named_and_held), EW_TEST(gating_is_refused),
             EW_TEST(survives_kill_at_every_write), EW_TEST(owner_is_respected),
             EW_TEST(several_at_once), EW_TEST(value_not_taken), EW_TEST(no_permission),
             EW_TEST(one_setting_is_gone))
