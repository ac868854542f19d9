/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise power: power modes, clocks and cores; whatever is changed can be put back. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/board_text.h"
#include "cli/cmd.h"
#include "device/nvml.h"
#include "device/power.h"
#include "device/powermode.h"

extern char **environ;

struct opts {
    const char *root;
    int64_t cores, cpu_mhz, gpu_mhz, mem_mhz;
    int dvfs;
    double gpu_limit;
};

static const char *const dvfs_words[] = {"keep", "on", "off", NULL};

#define MHZ_FIELD(member, flag, text)                                                              \
    {                                                                                              \
        .name = flag, .type = EW_FIELD_INT, .offset = offsetof(struct opts, member), .min = 0,     \
        .max = 100000, .metavar = "N", .help = text                                                \
    }

static const struct ew_field fields[] = {
    EW_BOARD_ROOT_FIELD(struct opts),
    MHZ_FIELD(cores, "cores", "set: so many cores on"),
    MHZ_FIELD(cpu_mhz, "cpu-mhz", "set: highest CPU clock"),
    MHZ_FIELD(gpu_mhz, "gpu-mhz", "set: highest GPU clock"),
    MHZ_FIELD(mem_mhz, "mem-mhz", "set: highest memory clock"),
    {.name = "dvfs",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct opts, dvfs),
     .choices = dvfs_words,
     .def = "keep",
     .help = "set: clocks free to move, or held at their highest"},
    {.name = "gpu-power-limit",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct opts, gpu_limit),
     .min = 0,
     .max = 10000,
     .metavar = "WATTS",
     .help = "set: power limit of NVIDIA graphics card 0"},
    EW_FIELD_END,
};

/* A board with its clocks and modes. */
struct context {
    struct ew_cmd_call *call;
    const struct opts *opts;
    struct ew_board *board;
    struct ew_nvpmodel nvp; /* n_modes 0: none */
    struct ew_clock_info clocks[EW_MAX_CLOCKS];
    int n_clocks;
    int64_t active; /* nvpmodel's mode, -1: not known */
};

/* ---- Showing --------------------------------------------------------------------------------- */

/* The largest of a mode's settings of one kind, in MHz; 0: none, -1: no limit. */
static int64_t mode_mhz(const struct ew_nvpmodel *m, const struct ew_nvpm_mode *mode,
                        const char *param)
{
    for (int i = mode->first; i < mode->first + mode->n; i++) {
        const struct ew_nvpm_setting *s = &m->settings[i];
        if (strncmp(s->param, param, strlen(param)) != 0 || strcmp(s->arg, "MAX_FREQ") != 0)
            continue;
        return s->value < 0 ? -1 : strcmp(param, "CPU") == 0 ? s->value / 1000 : s->value / 1000000;
    }
    return 0;
}

static int mode_cores(const struct ew_nvpmodel *m, const struct ew_nvpm_mode *mode)
{
    int cores = 0;
    for (int i = mode->first; i < mode->first + mode->n; i++)
        cores += strcmp(m->settings[i].param, "CPU_ONLINE") == 0 && m->settings[i].value == 1;
    return cores;
}

static void print_mhz(int64_t mhz)
{
    if (mhz > 0)
        printf(" %9lld", (long long)mhz);
    else
        printf(" %9s", mhz < 0 ? "no limit" : "-");
}

static void print_modes(const struct context *x)
{
    const struct ew_profile *p = x->board->profile;
    if (x->nvp.n_modes || (p && p->n_modes))
        printf("%-4s %-20s %5s %9s %9s %9s\n", "id", "mode", "cores", "CPU MHz", "GPU MHz",
               "mem MHz");
    for (int i = 0; i < x->nvp.n_modes; i++) {
        const struct ew_nvpm_mode *m = &x->nvp.modes[i];
        printf("%-4lld %-20s %5d", (long long)m->id, m->name, mode_cores(&x->nvp, m));
        print_mhz(mode_mhz(&x->nvp, m, "CPU"));
        print_mhz(mode_mhz(&x->nvp, m, "GPU"));
        print_mhz(mode_mhz(&x->nvp, m, "EMC"));
        printf("%s\n", m->id == x->active ? "  active" : "");
    }
    for (int i = 0; p && i < p->n_modes; i++) {
        const struct ew_profile_mode *m = &p->modes[i];
        if (ew_nvpmodel_find(&x->nvp, m->name))
            continue;
        printf("%-4s %-20s %5lld", "", m->name, (long long)m->cores);
        print_mhz(m->cpu_mhz);
        print_mhz(m->gpu_mhz);
        print_mhz(m->mem_mhz);
        printf("%s%s\n", m->note ? "  " : "", m->note ? m->note : "");
    }
}

static void print_allowed(const struct context *x)
{
    printf("\nallowed MHz\n");
    for (int i = 0; i < x->n_clocks; i++) {
        const struct ew_clock_info *c = &x->clocks[i];
        printf("  %-8s", c->name);
        for (int k = 0; k < c->n_table; k++)
            printf(" %lld", (long long)(c->table[k] / 1000000));
        if (c->n_table == 0 && c->highest > 0)
            printf(" %lld to %lld", (long long)(c->lowest / 1000000),
                   (long long)(c->highest / 1000000));
        putchar('\n');
    }
    if (x->n_clocks == 0)
        printf("  none: no clock can be set here\n");
}

/* NVIDIA cards' limits are shown, and set only when asked for. */
static ew_err print_cards(const struct context *x)
{
    struct ew_nvml *nvml;
    const char *why;
    EW_TRY(ew_nvml_open(&x->board->root, x->opts->root != NULL, &nvml, &why));
    for (int i = 0; nvml && i < ew_nvml_count(nvml); i++) {
        const struct ew_value now = ew_nvml_ask(nvml, i, EW_NVML_LIMIT);
        const struct ew_value low = ew_nvml_ask(nvml, i, EW_NVML_LIMIT_MIN);
        const struct ew_value high = ew_nvml_ask(nvml, i, EW_NVML_LIMIT_MAX);
        printf("\ngpu%d %s: ", i, ew_nvml_name(nvml, i));
        if (ew_value_is(now))
            printf("power limit %.0f W, allowed %.0f to %.0f W\n", now.v / 1000, low.v / 1000,
                   high.v / 1000);
        else
            printf("power limit: %s\n", ew_absent_text(now.absent));
    }
    ew_nvml_close(nvml);
    return EW_OK;
}

static void show_mhz(int64_t hz)
{
    if (hz >= 0)
        printf(" %8lld", (long long)(hz / 1000000));
    else
        printf(" %8s", "-");
}

static ew_err print_state(const struct context *x)
{
    const struct ew_board *b = x->board;
    const struct ew_nvpm_mode *mode = NULL;
    for (int i = 0; i < x->nvp.n_modes; i++)
        if (x->nvp.modes[i].id == x->active)
            mode = &x->nvp.modes[i];
    printf("mode     %s\n", mode             ? mode->name
                            : x->nvp.n_modes ? "not known: no nvpmodel status"
                                             : "none: the board has no nvpmodel");
    printf("cores    %d of %d on\n", b->id.online, b->id.cores);
    if (x->n_clocks)
        printf("\n%-8s %8s %8s %8s  %s\n", "clock", "min", "now", "max", "governor");
    for (int i = 0; i < x->n_clocks; i++) {
        const struct ew_clock_info *c = &x->clocks[i];
        printf("%-8s", c->name);
        show_mhz(c->min);
        show_mhz(c->cur);
        if (c->cap && c->max == 0)
            printf(" %8s", "no cap");
        else
            show_mhz(c->max);
        printf("%s%s\n", c->governor[0] ? "  " : "", c->governor);
    }
    if (x->n_clocks == 0)
        printf("clocks   none that can be set\n");
    struct ew_power_state s;
    EW_TRY(ew_power_state(&b->root, &s));
    if (s.active)
        printf("\nchanged  %d files by process %d%s; 'edgewise power restore' puts them back\n",
               s.files, s.owner, s.owner_alive ? "" : ", which is gone");
    return EW_OK;
}

static void json_mode(struct ew_json *j, const char *name, int64_t cores, const int64_t mhz[3])
{
    static const char *const keys[3] = {"cpu_mhz", "gpu_mhz", "mem_mhz"};
    ew_json_object(j, NULL);
    ew_json_str(j, "name", name);
    ew_json_int(j, "cores", cores);
    for (int i = 0; i < 3; i++)
        if (mhz[i] > 0)
            ew_json_int(j, keys[i], mhz[i]);
        else
            ew_json_null(j, keys[i]);
    ew_json_end(j);
}

static void json_clock(struct ew_json *j, const struct ew_clock_info *c)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "name", c->name);
    ew_json_int(j, "min_hz", c->min);
    ew_json_int(j, "now_hz", c->cur);
    ew_json_int(j, "max_hz", c->max);
    ew_json_str(j, "governor", c->governor[0] ? c->governor : NULL);
    ew_json_array(j, "allowed_hz");
    for (int i = 0; i < c->n_table; i++)
        ew_json_int(j, NULL, c->table[i]);
    ew_json_end(j);
    ew_json_end(j);
}

static ew_err print_json(const struct context *x)
{
    const struct ew_profile *p = x->board->profile;
    struct ew_power_state s;
    EW_TRY(ew_power_state(&x->board->root, &s));
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    if (x->active >= 0)
        ew_json_int(&j, "active_mode", x->active);
    else
        ew_json_null(&j, "active_mode");
    ew_json_int(&j, "cores", x->board->id.cores);
    ew_json_int(&j, "cores_online", x->board->id.online);
    ew_json_int(&j, "changed_files", s.active ? s.files : 0);
    ew_json_array(&j, "modes");
    for (int i = 0; i < x->nvp.n_modes; i++) {
        const struct ew_nvpm_mode *m = &x->nvp.modes[i];
        const int64_t mhz[3] = {mode_mhz(&x->nvp, m, "CPU"), mode_mhz(&x->nvp, m, "GPU"),
                                mode_mhz(&x->nvp, m, "EMC")};
        json_mode(&j, m->name, mode_cores(&x->nvp, m), mhz);
    }
    for (int i = 0; p && i < p->n_modes; i++) {
        const struct ew_profile_mode *m = &p->modes[i];
        if (ew_nvpmodel_find(&x->nvp, m->name))
            continue;
        json_mode(&j, m->name, m->cores, (const int64_t[3]){m->cpu_mhz, m->gpu_mhz, m->mem_mhz});
    }
    ew_json_end(&j);
    ew_json_array(&j, "clocks");
    for (int i = 0; i < x->n_clocks; i++)
        json_clock(&j, &x->clocks[i]);
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- Setting --------------------------------------------------------------------------------- */

static bool is_custom(const struct opts *o)
{
    return o->cores || o->cpu_mhz || o->gpu_mhz || o->mem_mhz || o->dvfs || o->gpu_limit > 0;
}

static ew_err find_changes(struct context *x, const char *name, struct ew_power_list *out)
{
    const struct opts *o = x->opts;
    struct ew_power_want want = {.cores = o->cores,
                                 .cpu_mhz = o->cpu_mhz,
                                 .gpu_mhz = o->gpu_mhz,
                                 .mem_mhz = o->mem_mhz,
                                 .dvfs = o->dvfs == 0 ? -1 : o->dvfs == 1};
    if (o->gpu_limit > 0)
        EW_TRY(
            ew_power_list_set_int(out, "nvml/gpu0/power_limit_mw", (int64_t)(o->gpu_limit * 1000)));
    if (!name)
        return ew_powermode_custom(x->board, &want, out);
    const struct ew_nvpm_mode *mode = ew_nvpmodel_find(&x->nvp, name);
    if (mode)
        return ew_powermode_nvp(x->board, &x->nvp, mode, out);
    const struct ew_profile *p = x->board->profile;
    for (int i = 0; p && i < p->n_modes; i++)
        if (strcmp(p->modes[i].name, name) == 0) {
            const struct ew_profile_mode *m = &p->modes[i];
            want = (struct ew_power_want){m->cores, m->cpu_mhz, m->gpu_mhz, m->mem_mhz, -1};
            return ew_powermode_custom(x->board, &want, out);
        }
    ew_cmd_hint(x->call, "edgewise power list");
    return ew_fail(EW_ERR_NOT_FOUND, "power: no mode '%s' on this board", name);
}

/* Runs a command under the mode; signals that would end us wait until all is put back. */
static ew_err run_under(const char *const *argv, int *status)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &before);
    posix_spawnattr_t attr;
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &before);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    char **words;
    memcpy(&words, &argv, sizeof(words));
    pid_t pid;
    const int failed = posix_spawnp(&pid, argv[0], NULL, &attr, words, environ);
    posix_spawnattr_destroy(&attr);
    EW_CHECK(!failed, EW_ERR_IO, "%s: %s", argv[0], strerror(failed));
    while (waitpid(pid, status, WNOHANG) == 0) {
        const int signal = sigwaitinfo(&set, NULL);
        if (signal == SIGTERM || signal == SIGHUP) /* Ctrl-C has reached the command already */
            kill(pid, signal);
    }
    return EW_OK;
}

static ew_err set_for_command(struct context *x, const struct ew_power_list *changes,
                              const char *const *argv)
{
    const struct ew_root *root = &x->board->root;
    int skipped, n, status = 0;
    EW_TRY(ew_power_apply(root, changes, &(struct ew_power_opts){.keep = false}, &skipped));
    const ew_err err = run_under(argv, &status);
    EW_TRY(ew_power_restore(root, NULL, &n));
    EW_TRY(err);
    const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    EW_CHECK(well, EW_ERR_IO, "%s: %s %d", argv[0], WIFEXITED(status) ? "exit status" : "signal",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return EW_OK;
}

static ew_err set_mode(struct context *x)
{
    const struct ew_cmd_call *c = x->call;
    const bool custom = is_custom(x->opts);
    EW_CHECK(custom || c->n_args >= 2, EW_ERR_USAGE,
             "power: set needs a mode, or --cores, --cpu-mhz, --gpu-mhz, --mem-mhz, --dvfs");
    const int first = custom ? 1 : 2; /* of the command, if there is one */
    struct ew_power_list changes = {0};
    int skipped = 0;
    ew_err err = find_changes(x, custom ? NULL : c->args[1], &changes);
    if (err == EW_OK && c->n_args > first)
        err = set_for_command(x, &changes, c->args + first);
    else if (err == EW_OK)
        err = ew_power_apply(&x->board->root, &changes, &(struct ew_power_opts){.keep = true},
                             &skipped);
    ew_power_list_free(&changes);
    EW_TRY(err);
    if (c->n_args <= first)
        printf("set; 'edgewise power restore' puts everything back\n");
    return EW_OK;
}

static ew_err restore(struct context *x)
{
    int n;
    EW_TRY(ew_power_restore(&x->board->root, NULL, &n));
    if (n)
        printf("%d files put back\n", n);
    else
        printf("nothing to put back\n");
    return EW_OK;
}

/* ---- The command ----------------------------------------------------------------------------- */

static ew_err dispatch(struct context *x, const char *verb)
{
    if (strcmp(verb, "restore") == 0)
        return restore(x);
    ew_board_recover(x->board);
    if (strcmp(verb, "set") == 0)
        return set_mode(x);
    if (x->call->json)
        return print_json(x);
    if (strcmp(verb, "show") == 0)
        return print_state(x);
    print_modes(x);
    print_allowed(x);
    return print_cards(x);
}

static ew_err run(struct ew_cmd_call *c)
{
    static const char *const verbs[] = {"list", "show", "set", "restore"};
    struct context x = {.call = c, .opts = c->opts};
    bool known = false;
    for (size_t i = 0; i < EW_COUNT(verbs); i++)
        known = known || strcmp(verbs[i], c->args[0]) == 0;
    EW_CHECK(known, EW_ERR_USAGE, "power: '%s' is not one of list, show, set, restore", c->args[0]);
    EW_TRY(ew_board_open(&(struct ew_board_opts){.root = x.opts->root}, &x.board));
    ew_err err = ew_nvpmodel_read(&x.board->root, &x.board->arena, &x.nvp);
    if (err == EW_ERR_NOT_FOUND)
        err = EW_OK;
    if (err == EW_OK)
        err = ew_clocks_read(x.board, x.clocks, &x.n_clocks);
    x.active = ew_nvpmodel_active(&x.board->root);
    if (err == EW_OK)
        err = dispatch(&x, c->args[0]);
    ew_board_close(x.board);
    return err;
}

const struct ew_cmd ew_cmd_power = {
    .name = "power",
    .group = EW_CMD_MEASURE,
    .summary = "power modes, clocks and cores: list, show, set, restore",
    .args = "list|show|set [MODE] [-- COMMAND...]|restore",
    .about = "list: the board's modes and allowed clocks.  show: what is set now.\n"
             "set: a mode by name or number, or figures by options; needs root.\n"
             "With a command the mode holds while it runs and is put back after it, also\n"
             "when it is interrupted; after kill -9 the next start puts it back.\n"
             "Without one it holds until 'power restore'.",
    .examples = "power list\npower set MAXN -- edgewise bench resnet18\n"
                "power set --cores 4 --cpu-mhz 1190 --dvfs off\npower restore",
    .min_args = 1,
    .max_args = -1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
