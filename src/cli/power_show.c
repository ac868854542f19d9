/* SPDX-License-Identifier: Apache-2.0 */
/* Power modes, clocks and graphics cards with their settings, as text and as JSON. */
#include "cli/power_show.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/board_text.h"
#include "device/nvml.h"

ew_err ew_power_view_read(struct ew_power_view *x)
{
    struct ew_board *b = x->board;
    const ew_err err = ew_nvpmodel_read(&b->root, &b->arena, &x->nvp);
    if (err != EW_ERR_NOT_FOUND)
        EW_TRY(err);
    x->active = ew_nvpmodel_active(&b->root);
    return ew_clocks_read(b, x->clocks, &x->n_clocks);
}

/* ---- Modes and allowed clocks ---------------------------------------------------------------- */

/* The largest MAX_FREQ setting of a mode for a kind of clock, in MHz; 0: none, -1: no limit. */
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

static void print_modes(const struct ew_power_view *x)
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

static void print_allowed(const struct ew_power_view *x)
{
    if (x->board->id.cores > 0)
        printf("\ncores    %d, %d online; --cores N keeps N online\n", x->board->id.cores,
               x->board->id.online);
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

/* ---- Graphics cards -------------------------------------------------------------------------- */

/* NVML has no query for locked clocks: absent for every card. */
#define LOCK_ABSENT "not reported by NVML"

/* Readable settings of a card. */
static const struct {
    enum ew_nvml_what what;
    const char *key;
    double scale;
} card_rows[] = {
    {EW_NVML_LIMIT, "power_limit_w", 1e-3},         {EW_NVML_LIMIT_MIN, "power_limit_min_w", 1e-3},
    {EW_NVML_LIMIT_MAX, "power_limit_max_w", 1e-3}, {EW_NVML_SM_MAX, "sm_max_mhz", 1},
    {EW_NVML_SM_APP, "sm_application_mhz", 1},
};

static ew_err open_cards(const struct ew_power_view *x, struct ew_nvml **nvml)
{
    const char *why;
    return ew_nvml_open(&x->board->root, x->captured, nvml, &why);
}

static void print_clock(const char *what, struct ew_sample_value mhz)
{
    if (ew_sample_value_is(mhz))
        printf("  %s %.0f MHz\n", what, mhz.v);
    else
        printf("  %s: %s\n", what, ew_absent_text(mhz.absent));
}

static ew_err print_cards(const struct ew_power_view *x)
{
    struct ew_nvml *nvml;
    EW_TRY(open_cards(x, &nvml));
    for (int i = 0; nvml && i < ew_nvml_count(nvml); i++) {
        const struct ew_sample_value now = ew_nvml_ask(nvml, i, EW_NVML_LIMIT);
        const struct ew_sample_value low = ew_nvml_ask(nvml, i, EW_NVML_LIMIT_MIN);
        const struct ew_sample_value high = ew_nvml_ask(nvml, i, EW_NVML_LIMIT_MAX);
        printf("\ngpu%d %s\n", i, ew_nvml_name(nvml, i));
        if (ew_sample_value_is(now))
            printf("  power limit %.0f W", now.v / 1000);
        else
            printf("  power limit: %s", ew_absent_text(now.absent));
        if (ew_sample_value_is(low) && ew_sample_value_is(high))
            printf(", allowed %.0f to %.0f W", low.v / 1000, high.v / 1000);
        putchar('\n');
        print_clock("highest clock", ew_nvml_ask(nvml, i, EW_NVML_SM_MAX));
        print_clock("application clock", ew_nvml_ask(nvml, i, EW_NVML_SM_APP));
        printf("  locked clocks: %s: %s\n", ew_absent_text(EW_ABSENT_UNSUPPORTED), LOCK_ABSENT);
    }
    ew_nvml_close(nvml);
    return EW_OK;
}

static ew_err json_cards(struct ew_json *j, const struct ew_power_view *x)
{
    struct ew_nvml *nvml;
    EW_TRY(open_cards(x, &nvml));
    ew_json_array(j, "cards");
    for (int i = 0; nvml && i < ew_nvml_count(nvml); i++) {
        ew_json_object(j, NULL);
        ew_json_str(j, "name", ew_nvml_name(nvml, i));
        for (size_t k = 0; k < EW_COUNT(card_rows); k++) {
            struct ew_sample_value v = ew_nvml_ask(nvml, i, card_rows[k].what);
            v.v *= card_rows[k].scale;
            ew_value_json(j, card_rows[k].key, v);
        }
        ew_json_null(j, "locked_mhz");
        ew_json_str(j, "locked_absent", LOCK_ABSENT);
        ew_json_end(j);
    }
    ew_json_end(j);
    ew_nvml_close(nvml);
    return EW_OK;
}

ew_err ew_power_print_list(const struct ew_power_view *x)
{
    print_modes(x);
    print_allowed(x);
    return print_cards(x);
}

/* ---- What is set ----------------------------------------------------------------------------- */

/* Why some values of a clock are absent; NULL: none is. */
static const char *clock_absent(const struct ew_clock_info *c)
{
    if (c->cap)
        return c->cur < 0
                   ? "has a cap and no lower limit; only root can read its present clock (debugfs)"
                   : "has a cap and no lower limit";
    return c->min < 0 || c->cur < 0 || c->max < 0 ? "not reported by the kernel" : NULL;
}

static void show_mhz(int64_t hz)
{
    if (hz >= 0)
        printf(" %8lld", (long long)(hz / 1000000));
    else
        printf(" %8s", "-");
}

ew_err ew_power_print_state(const struct ew_power_view *x)
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
    for (int i = 0; i < x->n_clocks; i++)
        if (clock_absent(&x->clocks[i]))
            printf("-        %s: %s\n", x->clocks[i].name, clock_absent(&x->clocks[i]));
    if (x->n_clocks == 0)
        printf("clocks   none that can be set\n");
    struct ew_power_state s;
    EW_TRY(ew_power_state(&b->root, &s));
    if (s.active)
        printf("\nchanged  %d files by process %d%s; 'edgewise power restore' restores them\n",
               s.files, s.owner, s.owner_alive ? "" : ", which has ended");
    return print_cards(x);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_known(struct ew_json *j, const char *key, bool known, int64_t v)
{
    if (known)
        ew_json_int(j, key, v);
    else
        ew_json_null(j, key);
}

/* `id` -1: not a mode of nvpmodel.  A clock without limit is null, like an unknown one. */
static void json_mode(struct ew_json *j, int64_t id, const char *name, int64_t cores,
                      const int64_t mhz[3])
{
    static const char *const keys[3] = {"cpu_mhz", "gpu_mhz", "mem_mhz"};
    ew_json_object(j, NULL);
    json_known(j, "id", id >= 0, id);
    ew_json_str(j, "name", name);
    ew_json_int(j, "cores", cores);
    for (int i = 0; i < 3; i++)
        json_known(j, keys[i], mhz[i] > 0, mhz[i]);
    ew_json_end(j);
}

static void json_modes(struct ew_json *j, const struct ew_power_view *x)
{
    const struct ew_profile *p = x->board->profile;
    ew_json_array(j, "modes");
    for (int i = 0; i < x->nvp.n_modes; i++) {
        const struct ew_nvpm_mode *m = &x->nvp.modes[i];
        const int64_t mhz[3] = {mode_mhz(&x->nvp, m, "CPU"), mode_mhz(&x->nvp, m, "GPU"),
                                mode_mhz(&x->nvp, m, "EMC")};
        json_mode(j, m->id, m->name, mode_cores(&x->nvp, m), mhz);
    }
    for (int i = 0; p && i < p->n_modes; i++) {
        const struct ew_profile_mode *m = &p->modes[i];
        if (ew_nvpmodel_find(&x->nvp, m->name))
            continue;
        json_mode(j, -1, m->name, m->cores, (const int64_t[3]){m->cpu_mhz, m->gpu_mhz, m->mem_mhz});
    }
    ew_json_end(j);
}

static void json_clock(struct ew_json *j, const struct ew_clock_info *c)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "name", c->name);
    json_known(j, "min_hz", c->min >= 0, c->min);
    json_known(j, "now_hz", c->cur >= 0, c->cur);
    json_known(j, "max_hz", c->max > 0, c->max); /* 0: not capped */
    json_known(j, "lowest_hz", c->lowest > 0, c->lowest);
    json_known(j, "highest_hz", c->highest > 0, c->highest);
    ew_json_str(j, "governor", c->governor[0] ? c->governor : NULL);
    ew_json_str(j, "absent", clock_absent(c));
    ew_json_array(j, "allowed_hz");
    for (int i = 0; i < c->n_table; i++)
        ew_json_int(j, NULL, c->table[i]);
    ew_json_end(j);
    ew_json_end(j);
}

ew_err ew_power_print_json(const struct ew_power_view *x)
{
    struct ew_power_state s;
    EW_TRY(ew_power_state(&x->board->root, &s));
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    json_known(&j, "active_mode", x->active >= 0, x->active);
    ew_json_int(&j, "cores", x->board->id.cores);
    ew_json_int(&j, "cores_online", x->board->id.online);
    ew_json_int(&j, "changed_files", s.active ? s.files : 0);
    json_modes(&j, x);
    ew_json_array(&j, "clocks");
    for (int i = 0; i < x->n_clocks; i++)
        json_clock(&j, &x->clocks[i]);
    ew_json_end(&j);
    EW_TRY(json_cards(&j, x));
    ew_json_end(&j);
    return ew_json_finish(&j);
}
