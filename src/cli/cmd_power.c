/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise power: sets power modes, clocks and cores, and restores them.  Showing is in
 * power_show.c. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "cli/board_text.h"
#include "cli/cmd.h"
#include "cli/power_show.h"

struct opts {
    const char *root;
    int64_t cores, cpu_mhz, gpu_mhz, mem_mhz;
    int dvfs, fan;
    double gpu_limit;
};

static const char *const dvfs_words[] = {"keep", "on", "off", NULL};
static const char *const fan_words[] = {"keep", "full", NULL};

#define MHZ_FIELD(member, flag, text)                                                              \
    {                                                                                              \
        .name = flag, .type = EW_FIELD_INT, .offset = offsetof(struct opts, member), .min = 0,     \
        .max = 100000, .metavar = "N", .verbs = "set", .help = text                                \
    }

static const struct ew_field fields[] = {
    EW_BOARD_ROOT_FIELD(struct opts),
    MHZ_FIELD(cores, "cores", "number of cores online"),
    MHZ_FIELD(cpu_mhz, "cpu-mhz", "maximum CPU clock"),
    MHZ_FIELD(gpu_mhz, "gpu-mhz", "maximum GPU clock"),
    MHZ_FIELD(mem_mhz, "mem-mhz", "maximum memory clock"),
    {.name = "dvfs",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct opts, dvfs),
     .choices = dvfs_words,
     .def = "keep",
     .verbs = "set",
     .help = "let clocks scale with the load (on) or lock them at their maximum (off)"},
    {.name = "fan",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct opts, fan),
     .choices = fan_words,
     .def = "keep",
     .verbs = "set",
     .help = "fan at full speed, regardless of temperature"},
    {.name = "gpu-power-limit",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct opts, gpu_limit),
     .min = 0,
     .max = 10000,
     .metavar = "WATTS",
     .verbs = "set",
     .help = "power limit of NVIDIA graphics card 0"},
    EW_FIELD_END,
};

/* The command's call and the board with its clocks and modes. */
struct context {
    struct ew_cmd_call *call;
    const struct opts *opts;
    struct ew_power_view view;
};

/* ---- Setting --------------------------------------------------------------------------------- */

static bool is_custom(const struct opts *o)
{
    return o->cores || o->cpu_mhz || o->gpu_mhz || o->mem_mhz || o->dvfs || o->fan ||
           o->gpu_limit > 0;
}

static ew_err find_changes(struct context *x, const char *name, struct ew_power_list *out)
{
    const struct opts *o = x->opts;
    const struct ew_power_want want = {.cores = o->cores,
                                       .cpu_mhz = o->cpu_mhz,
                                       .gpu_mhz = o->gpu_mhz,
                                       .mem_mhz = o->mem_mhz,
                                       .dvfs = o->dvfs == 0 ? -1 : o->dvfs == 1,
                                       .fan = o->fan == 1};
    if (o->gpu_limit > 0)
        EW_TRY(
            ew_power_list_set_int(out, "nvml/gpu0/power_limit_mw", (int64_t)(o->gpu_limit * 1000)));
    if (!name)
        return ew_powermode_custom(x->view.board, &want, out);
    const ew_err err = ew_powermode_named(x->view.board, &x->view.nvp, name, &want, out);
    if (err == EW_ERR_NOT_FOUND)
        ew_cmd_hint(x->call, "edgewise power list");
    return err;
}

/* Reads the current value; "" if unreadable. */
static void read_now(const struct ew_root *root, const char *path, char out[EW_POWER_TEXT])
{
    if (ew_root_read(root, path, out, EW_POWER_TEXT) != EW_OK)
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

static bool is_core_file(const char *path)
{
    int core, n = 0;
    return sscanf(path, "sys/devices/system/cpu/cpu%d/online%n", &core, &n) == 1 && n > 0;
}

/* Warns before cores go offline: threads migrate, and everything else on the machine slows down. */
static void warn_cores(const struct ew_root *root, const struct ew_power_list *changes)
{
    int off = 0;
    for (int i = 0; i < changes->n; i++) {
        char now[EW_POWER_TEXT];
        const struct ew_power_change *c = &changes->items[i];
        if (!is_core_file(c->path) || strcmp(c->value, "0") != 0)
            continue;
        read_now(root, c->path, now);
        off += strcmp(now, "0") != 0;
    }
    if (off)
        EW_WARN("this takes %d core%s away from everything that runs here", off,
                off == 1 ? "" : "s");
}

/* The value of a file before the change. */
struct previous_value {
    char value[EW_POWER_TEXT];
};

static void print_changes(const struct ew_root *root, const struct ew_power_list *changes,
                          const struct previous_value *before)
{
    for (int i = 0; i < changes->n; i++) {
        char now[EW_POWER_TEXT];
        const char *path = changes->items[i].path, *was = before[i].value;
        read_now(root, path, now);
        if (now[0] && strcmp(now, was) != 0)
            printf("%s: %s -> %s\n", path, was[0] ? was : "?", now);
    }
}

/* Runs the command while the mode is set. */
static ew_err run_under(const char *const *argv, const sigset_t *mask, int *status)
{
    struct ew_spawned p;
    EW_CHECK(!ew_signals_pending(), EW_ERR_IO, "%s: not started: told to end before", argv[0]);
    EW_TRY(ew_spawn(argv, &(struct ew_spawn_opts){.mask = mask}, &p));
    while (ew_spawn_supervise(&p, -1))
        continue;
    return ew_spawn_wait(&p, status, NULL);
}

/* Signals that would end this process stay blocked from the first change until all is restored. */
static ew_err set_for_command(struct context *x, const struct ew_power_list *changes,
                              const char *const *argv)
{
    sigset_t before;
    const struct ew_root *root = &x->view.board->root;
    int skipped, n, status = 0;
    ew_signals_hold(&before);
    EW_TRY(ew_power_apply(root, changes, &(struct ew_power_opts){.keep = false}, &skipped));
    char why[512];
    const ew_err err = run_under(argv, &before, &status);
    snprintf(why, sizeof(why), "%s", ew_error_message());
    EW_TRY(ew_power_restore(root, NULL, &n));
    EW_CHECK(err == EW_OK, err, "%s", why);
    char text[EW_STATUS_CHARS];
    ew_status_text(status, text);
    EW_CHECK(ew_status_is_success(status), EW_ERR_IO, "%s: %s", argv[0], text);
    return EW_OK;
}

/* Prints `text`, or the number of files as JSON. */
static ew_err say(const struct context *x, const char *key, int files, const char *text)
{
    if (!x->call->json) {
        printf("%s\n", text);
        return EW_OK;
    }
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_int(&j, key, files);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err set_lasting(struct context *x, const struct ew_power_list *changes)
{
    const struct ew_root *root = &x->view.board->root;
    int skipped;
    sigset_t unused;
    struct ew_power_state state;
    EW_CLEANUP(ew_free_ptr)
    struct previous_value *before = calloc((size_t)changes->n + 1, sizeof(*before));
    EW_CHECK(before, EW_ERR_MEMORY, "no memory for %d settings", changes->n);
    for (int i = 0; i < changes->n; i++)
        read_now(root, changes->items[i].path, before[i].value);
    ew_signals_hold(&unused); /* no signal between the changes of a mode */
    EW_TRY(ew_power_apply(root, changes, &(struct ew_power_opts){.keep = true}, &skipped));
    EW_TRY(ew_power_state(root, &state));
    if (!x->call->json)
        print_changes(root, changes, before);
    return say(x, "changed_files", state.active ? state.files : 0,
               "set; 'edgewise power restore' restores the previous settings");
}

static ew_err set_mode(struct context *x)
{
    const struct ew_cmd_call *c = x->call;
    const bool custom = is_custom(x->opts), named = c->n_before >= 2;
    EW_CHECK(custom || named, EW_ERR_USAGE,
             "power: set needs a mode, or --cores, --cpu-mhz, --gpu-mhz, --mem-mhz, --dvfs, --fan");
    struct ew_power_list changes = {0};
    ew_err err = find_changes(x, named ? c->args[1] : NULL, &changes);
    if (err == EW_OK && changes.n == 0) {
        err = ew_fail(EW_ERR_UNSUPPORTED,
                      "power: this machine has no control that these options could set");
        ew_cmd_hint(x->call, "edgewise power show lists what there is; in a virtual machine the "
                             "host controls them");
    }
    if (err == EW_OK)
        warn_cores(&x->view.board->root, &changes);
    if (err == EW_OK && c->n_args > c->n_before)
        err = set_for_command(x, &changes, c->args + c->n_before);
    else if (err == EW_OK)
        err = set_lasting(x, &changes);
    ew_power_list_free(&changes);
    return err;
}

static ew_err restore(struct context *x)
{
    int n;
    sigset_t unused;
    char text[64] = "nothing to restore";
    ew_signals_hold(&unused);
    EW_TRY(ew_power_restore(&x->view.board->root, NULL, &n));
    if (n)
        snprintf(text, sizeof(text), "%d file%s restored", n, n == 1 ? "" : "s");
    return say(x, "restored_files", n, text);
}

/* ---- The command ----------------------------------------------------------------------------- */

enum verb { LIST, SHOW, SET, RESTORE, N_VERBS };

static ew_err find_verb(const struct ew_cmd_call *c, enum verb *out)
{
    static const char *const verbs[N_VERBS] = {"list", "show", "set", "restore"};
    int i = 0;
    while (i < N_VERBS && strcmp(verbs[i], c->args[0]) != 0)
        i++;
    EW_CHECK(i < N_VERBS, EW_ERR_USAGE, "power: '%s' is not one of list, show, set, restore",
             c->args[0]);
    const int most = i == SET ? 2 : 1; /* arguments before "--" */
    EW_CHECK(c->n_before <= most, EW_ERR_USAGE, "power: unexpected '%s'", c->args[most]);
    EW_CHECK(i == SET || c->n_args == c->n_before, EW_ERR_USAGE,
             "power: a command goes with set, not with %s", verbs[i]);
    *out = (enum verb)i;
    return EW_OK;
}

static ew_err dispatch(struct context *x, enum verb verb)
{
    if (verb == RESTORE)
        return restore(x);
    ew_board_recover(x->view.board);
    if (verb == SET)
        return set_mode(x);
    if (x->call->json)
        return ew_power_print_json(&x->view);
    return verb == SHOW ? ew_power_print_state(&x->view) : ew_power_print_list(&x->view);
}

static ew_err run(struct ew_cmd_call *c)
{
    struct context x = {.call = c, .opts = c->opts};
    x.view.captured = x.opts->root != NULL;
    enum verb verb = LIST;
    EW_TRY(find_verb(c, &verb));
    EW_TRY(ew_board_open(&(struct ew_board_opts){.root = x.opts->root}, &x.view.board));
    ew_err err = ew_power_view_read(&x.view);
    if (err == EW_OK)
        err = dispatch(&x, verb);
    ew_board_close(x.view.board);
    return err;
}

const struct ew_cmd ew_cmd_power = {
    .name = "power",
    .group = EW_CMD_MEASURE,
    .summary = "power modes, clocks and cores: list, show, set, restore",
    .args = "list|show|set [MODE] [-- COMMAND...]|restore",
    .about = "list: the board's modes and available clocks.  show: current settings.\n"
             "set: a mode by name or number, single settings by options, or both: options "
             "override the mode's. --dvfs off locks every clock at the mode's maximum, the memory "
             "clock too where possible. Needs root.\n"
             "With a command the mode applies while it runs and is restored afterwards, also "
             "after Ctrl-C; after kill -9 the next start restores it.\n"
             "Without a command it stays until 'power restore'.\n"
             "Clocks and power limits of graphics cards are listed, and a limit is set only on "
             "request.",
    .examples = "power list\npower set MAXN -- edgewise bench resnet18\n"
                "power set --cores 4 --cpu-mhz 1190 --dvfs off\n"
                "power set g --dvfs off --fan full -- edgewise train lenet5 --data mnist\n"
                "power restore",
    .min_args = 1,
    .max_args = -1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
