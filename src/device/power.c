/* SPDX-License-Identifier: Apache-2.0 */
/* Changing settings in the right order, with a journal.  powermode.c says which settings a mode
 * has. */
#include "device/power.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "device/journal.h"
#include "device/nvml.h"

/* ---- Lists ----------------------------------------------------------------------------------- */

void ew_power_list_free(struct ew_power_list *l)
{
    free(l->items);
    *l = (struct ew_power_list){0};
}

static struct ew_power_change *find(const struct ew_power_list *l, const char *path)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->items[i].path, path) == 0)
            return &l->items[i];
    return NULL;
}

ew_err ew_power_list_set(struct ew_power_list *l, const char *path, const char *value)
{
    path += strspn(path, "/");
    EW_CHECK(strlen(path) < EW_POWER_PATH && strlen(value) < EW_POWER_TEXT, EW_ERR_LIMIT,
             "%.100s: path or value too long", path);
    struct ew_power_change *c = find(l, path);
    if (!c) {
        void *items = l->items;
        EW_TRY(ew_grow(&items, &l->cap, l->n + 1, sizeof(*l->items)));
        l->items = items;
        c = &l->items[l->n++];
        snprintf(c->path, sizeof(c->path), "%s", path);
    }
    snprintf(c->value, sizeof(c->value), "%s", value);
    return EW_OK;
}

ew_err ew_power_list_set_int(struct ew_power_list *l, const char *path, int64_t value)
{
    char text[EW_POWER_TEXT];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    return ew_power_list_set(l, path, text);
}

/* ---- One file -------------------------------------------------------------------------------- */

/* 3 of ".../cpu/cpu3/..." and of ".../cpufreq/policy3/...", or -1. */
static int core_of(const char *path)
{
    static const char *const dirs[] = {"sys/devices/system/cpu/cpu",
                                       "sys/devices/system/cpu/cpufreq/policy"};
    for (size_t i = 0; i < EW_COUNT(dirs); i++) {
        const size_t n = strlen(dirs[i]);
        if (strncmp(path, dirs[i], n) == 0 && path[n] >= '0' && path[n] <= '9')
            return (int)strtol(path + n, NULL, 10);
    }
    return -1;
}

static bool is_online_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    return core_of(path) >= 0 && slash && strcmp(slash, "/online") == 0;
}

static bool same_value(const char *a, const char *b)
{
    double x, y;
    if (ew_num_float(a, &x) && ew_num_float(b, &y))
        return memcmp(&x, &y, sizeof(x)) == 0;
    return strcmp(a, b) == 0;
}

/* The work of one apply or restore. */
struct writer {
    const struct ew_root *root;
    const struct ew_power_opts *opts;
    int writes;
    bool go_on;   /* after a setting that fails, with the others */
    ew_err first; /* what failed first */
    char first_text[512];
};

static void about_to_write(struct writer *w)
{
    if (w->opts && w->opts->before_write)
        w->opts->before_write(w->opts->ctx, w->writes);
    w->writes++;
}

/* N of "nvml/gpuN/power_limit_mw", the one setting that is no file; -1: it is a file. */
static int card_of(const char *path)
{
    int card = -1, end = 0;
    if (sscanf(path, "nvml/gpu%d/power_limit_mw%n", &card, &end) != 1 || path[end] || end == 0)
        return -1;
    return card;
}

static ew_err open_card(const struct ew_root *root, int card, struct ew_nvml **out)
{
    const char *why = NULL;
    EW_TRY(ew_nvml_open(root, strcmp(root->path, "/") != 0, out, &why));
    if (*out && card < ew_nvml_count(*out))
        return EW_OK;
    ew_nvml_close(*out);
    return ew_fail(EW_ERR_NOT_FOUND, "no graphics card %d%s%s", card, why ? ": " : "",
                   why ? why : "");
}

static ew_err read_card(const struct ew_root *root, int card, char out[EW_POWER_TEXT])
{
    struct ew_nvml *nvml;
    EW_TRY(open_card(root, card, &nvml));
    const struct ew_sample_value v = ew_nvml_ask(nvml, card, EW_NVML_LIMIT);
    ew_nvml_close(nvml);
    EW_CHECK(ew_sample_value_is(v), EW_ERR_UNSUPPORTED, "gpu%d: power limit: %s", card,
             ew_absent_text(v.absent));
    snprintf(out, EW_POWER_TEXT, "%.0f", v.v);
    return EW_OK;
}

static ew_err write_card(const struct ew_root *root, int card, const char *milliwatts)
{
    struct ew_nvml *nvml;
    double mw;
    EW_CHECK(ew_num_float(milliwatts, &mw), EW_ERR_ARG, "gpu%d: power limit of '%s' mW", card,
             milliwatts);
    EW_TRY(open_card(root, card, &nvml));
    const ew_err err = ew_nvml_set_limit(nvml, card, mw / 1000);
    ew_nvml_close(nvml);
    return err;
}

/* Present value; governors and the like are one word, lists are not ours. */
static ew_err read_value(const struct ew_root *root, const char *path, char out[EW_POWER_TEXT])
{
    const int card = card_of(path);
    return card < 0 ? ew_root_read(root, path, out, EW_POWER_TEXT) : read_card(root, card, out);
}

/* A failure that is to be told at the end only. */
static ew_err passed_over(struct writer *w, ew_err err)
{
    if (err == EW_OK || !w->go_on)
        return err;
    if (w->first == EW_OK)
        snprintf(w->first_text, sizeof(w->first_text), "%s", ew_error_message());
    w->first = w->first == EW_OK ? err : w->first;
    return EW_OK;
}

static ew_err write_file(const struct ew_root *root, const struct ew_power_change *c)
{
    int fd;
    EW_TRY(ew_root_open_file(root, c->path, O_WRONLY | O_TRUNC, &fd));
    const size_t n = strlen(c->value);
    const ssize_t done = write(fd, c->value, n);
    const int reason = errno;
    close(fd);
    EW_CHECK(done == (ssize_t)n, EW_ERR_IO, "%s: writing '%s': %s", c->path, c->value,
             done < 0 ? strerror(reason) : "cut short");
    return EW_OK;
}

static ew_err write_value(struct writer *w, const struct ew_power_change *c)
{
    const int card = card_of(c->path);
    char now[EW_POWER_TEXT];
    about_to_write(w);
    if (card >= 0)
        EW_TRY(write_card(w->root, card, c->value));
    else
        EW_TRY(write_file(w->root, c));
    EW_TRY(read_value(w->root, c->path, now));
    EW_CHECK(same_value(now, c->value), EW_ERR_IO, "%s: set to %s, but the kernel reports '%s'",
             c->path, c->value, now);
    return EW_OK;
}

/* ---- Order ----------------------------------------------------------------------------------- */

enum phase { CORES_ON, MAX_UP, MINIMA, MAX_DOWN, TAKE, REST, HAND_OVER, CORES_OFF, N_PHASES };

/* Switches between a value that is written and a control of the kernel's: with `by_hand` the value
 * can be written, so that a change to it comes before the values and one from it after them. */
static const struct {
    const char *name, *by_hand;
} switches[] = {
    {"_enable", "1"}, {"temp_control", "0"}, {"mrq_rate_locked", "0"}, {"clk_state", "0"}};

static enum phase phase_of_rest(const char *name, const char *value)
{
    for (size_t i = 0; i < EW_COUNT(switches); i++)
        if (strstr(name, switches[i].name))
            return strcmp(value, switches[i].by_hand) == 0 ? TAKE : HAND_OVER;
    return REST;
}

static enum phase phase_of(const struct ew_power_change *c, const char *now)
{
    const char *slash = strrchr(c->path, '/');
    const char *name = slash ? slash + 1 : c->path;
    if (is_online_file(c->path))
        return strcmp(c->value, "0") == 0 ? CORES_OFF : CORES_ON;
    if (strstr(name, "min_freq"))
        return MINIMA;
    if (!strstr(name, "max_freq"))
        return phase_of_rest(name, c->value);
    double from, to;
    const bool numbers = ew_num_float(now, &from) && ew_num_float(c->value, &to);
    return numbers && to < from ? MAX_DOWN : MAX_UP;
}

/* A file of a core that is off now, and that these changes do not turn on. */
static bool core_is_off(const struct ew_root *root, const struct ew_power_list *changes,
                        const char *path)
{
    const int core = core_of(path);
    if (core < 0 || is_online_file(path))
        return false;
    char online[EW_POWER_PATH], now[EW_POWER_TEXT];
    snprintf(online, sizeof(online), "sys/devices/system/cpu/cpu%d/online", core);
    const struct ew_power_change *c = find(changes, online);
    if (c)
        return strcmp(c->value, "0") == 0 && !ew_root_has(root, path);
    return read_value(root, online, now) == EW_OK && strcmp(now, "0") == 0;
}

/* phase N_PHASES: whatever it is. */
static ew_err change(struct writer *w, const struct ew_power_change *c, enum phase phase)
{
    char now[EW_POWER_TEXT];
    EW_TRY(read_value(w->root, c->path, now));
    if ((phase != N_PHASES && phase_of(c, now) != phase) || same_value(now, c->value))
        return EW_OK;
    return write_value(w, c);
}

/* All changes of one phase, in the order of the list. */
static ew_err run_phase(struct writer *w, const struct ew_power_list *changes, enum phase phase)
{
    for (int i = 0; i < changes->n; i++)
        if (!core_is_off(w->root, changes, changes->items[i].path))
            EW_TRY(passed_over(w, change(w, &changes->items[i], phase)));
    return EW_OK;
}

/* The phase of a change is determined each time: a maximum that was raised is no longer due to
 * be raised. */
static ew_err run_phases(struct writer *w, const struct ew_power_list *changes, int from, int to)
{
    for (int phase = from; phase < to; phase++)
        EW_TRY(run_phase(w, changes, (enum phase)phase));
    return EW_OK;
}

/* Only the cores to be turned on: files of the others are not there yet. */
static ew_err cores_on(struct writer *w, const struct ew_power_list *changes)
{
    for (int i = 0; i < changes->n; i++) {
        const struct ew_power_change *c = &changes->items[i];
        if (is_online_file(c->path) && strcmp(c->value, "0") != 0)
            EW_TRY(passed_over(w, change(w, c, N_PHASES)));
    }
    return EW_OK;
}

static ew_err make_changes(struct writer *w, const struct ew_power_list *changes)
{
    EW_TRY(cores_on(w, changes));
    return run_phases(w, changes, MAX_UP, N_PHASES);
}

/* ---- Apply and restore ----------------------------------------------------------------------- */

/* Checks that the file can be written, without changing it. */
static ew_err check_access(const struct ew_root *root, const char *path)
{
    int fd;
    if (card_of(path) >= 0)
        return EW_OK; /* the driver says so when it is set */
    const ew_err err = ew_root_open_file(root, path, O_WRONLY, &fd);
    if (err == EW_OK)
        close(fd);
    else if (errno == EACCES || errno == EPERM || errno == EROFS)
        return ew_fail(EW_ERR_IO, "%s: no permission to change it; run as root", path);
    return err;
}

/* Adds the present values of files that are about to change; earlier entries stay. */
static ew_err remember(const struct ew_root *root, const struct ew_power_list *changes,
                       bool cores_only, struct ew_journal *j)
{
    for (int i = 0; i < changes->n; i++) {
        const char *path = changes->items[i].path;
        char now[EW_POWER_TEXT];
        if (cores_only != is_online_file(path) || find(&j->old, path) ||
            core_is_off(root, changes, path))
            continue;
        EW_TRY(check_access(root, path));
        EW_TRY(read_value(root, path, now));
        if (!same_value(now, changes->items[i].value))
            EW_TRY(ew_power_list_set(&j->old, path, now));
    }
    return EW_OK;
}

static ew_err save(struct writer *w, const struct ew_journal *j)
{
    about_to_write(w);
    return ew_journal_write(w->root, j);
}

/* One setting that cannot be put back, as of a device that is gone, keeps none of the others; the
 * journal then stays, for another attempt. */
static ew_err put_back(struct writer *w, const struct ew_journal *j)
{
    w->go_on = true;
    EW_TRY(make_changes(w, &j->old));
    if (w->first != EW_OK)
        return ew_fail(w->first, "%s", w->first_text);
    about_to_write(w);
    return ew_journal_remove(w->root);
}

/* The journal is on disk before each step that it covers. */
static ew_err apply_steps(struct writer *w, const struct ew_power_list *changes,
                          struct ew_journal *j)
{
    EW_TRY(remember(w->root, changes, true, j));
    for (int i = 0; i < changes->n; i++) /* whatever can be asked now is asked before any change */
        if (!is_online_file(changes->items[i].path) && ew_root_has(w->root, changes->items[i].path))
            EW_TRY(check_access(w->root, changes->items[i].path));
    if (j->old.n)
        EW_TRY(save(w, j));
    EW_TRY(cores_on(w, changes));
    const int before = j->old.n;
    EW_TRY(remember(w->root, changes, false, j));
    if (j->old.n > before)
        EW_TRY(save(w, j));
    return run_phases(w, changes, MAX_UP, N_PHASES);
}

static ew_err apply(struct writer *w, const struct ew_power_list *changes, struct ew_journal *j)
{
    const bool mine = j->owner == (int)getpid();
    EW_CHECK(!j->there || mine || j->keep || !ew_journal_owner_alive(j), EW_ERR_IO,
             "process %d has changed the board's settings and is still running", j->owner);
    ew_journal_own(j);
    j->keep = w->opts && w->opts->keep;
    const ew_err err = apply_steps(w, changes, j);
    if (err == EW_OK || j->old.n == 0)
        return err;
    char why[512];
    snprintf(why, sizeof(why), "%s", ew_error_message());
    if (put_back(w, j) != EW_OK)
        return ew_fail(
            err, "%s; and the old settings were not restored: run 'edgewise power restore'", why);
    return ew_fail(err, "%s", why);
}

static void unlock(int fd)
{
    if (fd >= 0)
        close(fd);
}

static ew_err restore_locked(const struct ew_root *root, const struct ew_power_opts *opts,
                             bool forced, int *n)
{
    struct writer w = {.root = root, .opts = opts};
    struct ew_journal j;
    *n = 0;
    EW_TRY(ew_journal_read(root, &j));
    ew_err err = EW_OK;
    if (j.there && (forced || (!j.keep && !ew_journal_owner_alive(&j)))) {
        err = put_back(&w, &j);
        *n = err == EW_OK ? j.old.n : 0;
    }
    ew_power_list_free(&j.old);
    return ew_fail_in(err, "restoring the board's settings");
}

static ew_err apply_locked(const struct ew_root *root, const struct ew_power_list *changes,
                           const struct ew_power_opts *opts, int *skipped)
{
    struct writer w = {.root = root, .opts = opts};
    struct ew_journal j;
    int left;
    EW_TRY(restore_locked(root, NULL, false, &left));
    EW_TRY(ew_journal_read(root, &j));
    *skipped = 0;
    for (int i = 0; i < changes->n; i++)
        *skipped += core_is_off(root, changes, changes->items[i].path);
    const ew_err err = apply(&w, changes, &j);
    ew_power_list_free(&j.old);
    return err;
}

ew_err ew_power_apply(const struct ew_root *root, const struct ew_power_list *changes,
                      const struct ew_power_opts *opts, int *skipped)
{
    const int lock = ew_journal_lock(root);
    const ew_err err = apply_locked(root, changes, opts, skipped);
    unlock(lock);
    return err;
}

/* Where there is no journal nothing is written, not even a lock. */
static ew_err restore_if(const struct ew_root *root, const struct ew_power_opts *opts, bool forced,
                         int *n)
{
    struct ew_power_state state;
    *n = 0;
    EW_TRY(ew_fail_in(ew_power_state(root, &state), "putting the board's settings back"));
    if (!state.active)
        return EW_OK;
    const int lock = ew_journal_lock(root);
    const ew_err err = restore_locked(root, opts, forced, n);
    unlock(lock);
    return err;
}

ew_err ew_power_restore(const struct ew_root *root, const struct ew_power_opts *opts, int *n)
{
    return restore_if(root, opts, true, n);
}

ew_err ew_power_recover(const struct ew_root *root, int *n)
{
    return restore_if(root, NULL, false, n);
}

ew_err ew_power_state(const struct ew_root *root, struct ew_power_state *out)
{
    struct ew_journal j;
    EW_TRY(ew_journal_read(root, &j));
    *out = (struct ew_power_state){.active = j.there,
                                   .keep = j.keep,
                                   .owner_alive = ew_journal_owner_alive(&j),
                                   .owner = j.owner,
                                   .files = j.old.n};
    ew_power_list_free(&j.old);
    return EW_OK;
}
