/* SPDX-License-Identifier: Apache-2.0 */
/* Job sections: keys from [defaults] and the section, lists of values swept, options resolved by
 * the command's own table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "study/study.h"

#define MAX_KEYS 128
#define MAX_JOBS 5000

/* A key of a section, the values that it takes, and the present one with {names} filled in. */
struct key {
    const char *name;
    const char **values;
    const char *value;
    int n, at, line;
    bool own;  /* from the section, not from [defaults], which may serve several commands */
    bool used; /* an option of the command, or filled in elsewhere */
};

struct section {
    const struct ew_study_file *file;
    const struct ew_study_opts *opts;
    struct ew_arena *arena;
    const char *label;
    struct key keys[MAX_KEYS];
    int n;
};

/* Settings that are not options of a command; those of the machine's power come first. */
static const char *const power_keys[] = {"power-mode", "dvfs",    "cores", "cpu-mhz",
                                         "gpu-mhz",    "mem-mhz", "fan"};
static const char *const own_keys[] = {"command", "network", "cool-down", "job-timeout",
                                       "quick",   "seconds", "keep"};

static bool listed(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static bool is_power(const char *name)
{
    return listed(power_keys, EW_COUNT(power_keys), name);
}

/* "var.net" defines {net} for other values; it is not an option. */
static bool is_var(const char *name)
{
    return strncmp(name, "var.", 4) == 0 && name[4];
}

static bool is_own(const char *name)
{
    return is_power(name) || is_var(name) || listed(own_keys, EW_COUNT(own_keys), name);
}

static const struct ew_study_command *find_command(const struct ew_study_opts *o, const char *name)
{
    for (int i = 0; i < o->n_commands; i++)
        if (strcmp(o->commands[i].name, name) == 0)
            return &o->commands[i];
    return NULL;
}

/* Whether any command has the option: [defaults] may serve several. */
static bool is_known(const struct ew_study_opts *o, const char *name)
{
    for (int i = 0; i < o->n_commands; i++)
        if (ew_field_find(o->commands[i].opts, name))
            return true;
    return is_own(name);
}

static ew_err unknown_key(const struct ew_study_file *f, const struct ew_study_opts *o,
                          const struct ew_study_line *l, const char *key)
{
    const char *near = NULL;
    for (int i = 0; i < o->n_commands && !near; i++)
        near = ew_field_nearest(o->commands[i].opts, key);
    return ew_fail(EW_ERR_FORMAT, "%s:%d: no option '%s'%s%s%s", f->name, l->line, key,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static struct key *find_key(struct section *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->keys[i].name, name) == 0)
            return &s->keys[i];
    return NULL;
}

/* "advise 10": replaces the value by the ten most informative modes. */
static ew_err take_advice(struct section *s, struct key *k)
{
    double n = 0;
    EW_CHECK(k->n == 2 && ew_num_float(k->values[1], &n) && n >= 1 && n <= 1000, EW_ERR_FORMAT,
             "%s:%d: 'advise' is followed by how many modes, as in 'advise 10'", s->file->name,
             k->line);
    EW_CHECK(s->opts->n_advised > 0, EW_ERR_UNSUPPORTED,
             "%s:%d: power-mode = advise: the clocks of this board are not known; --simulate names "
             "one",
             s->file->name, k->line);
    EW_CHECK(n <= s->opts->n_advised, EW_ERR_LIMIT, "%s:%d: at most %d modes are advised",
             s->file->name, k->line, s->opts->n_advised);
    k->n = (int)n;
    k->values = ew_arena_array(s->arena, (size_t)k->n, sizeof(*k->values));
    EW_CHECK(k->values, EW_ERR_MEMORY, "no memory for a study");
    for (int i = 0; i < k->n; i++)
        k->values[i] = s->opts->advised[i];
    return EW_OK;
}

static ew_err set_key(struct section *s, const struct ew_study_line *l, const char *name, bool own)
{
    if (strcmp(name, "modes") == 0 && !is_known(s->opts, name))
        name = "power-mode";
    if (!is_known(s->opts, name))
        return unknown_key(s->file, s->opts, l, name);
    EW_CHECK(!ew_job_ignores_option(name), EW_ERR_FORMAT, "%s:%d: '%s' cannot be used in studies",
             s->file->name, l->line, name);
    struct key *k = find_key(s, name);
    if (!k) {
        EW_CHECK(s->n < MAX_KEYS, EW_ERR_LIMIT, "%s:%d: more than %d keys", s->file->name, l->line,
                 MAX_KEYS);
        k = &s->keys[s->n++];
    }
    *k = (struct key){.name = name, .line = l->line, .own = own};
    EW_TRY(ew_fail_in(ew_study_words(s->arena, l->value, &k->values, &k->n), "%s:%d", s->file->name,
                      l->line));
    EW_CHECK(k->n > 0, EW_ERR_FORMAT, "%s:%d: '%s' has no value", s->file->name, l->line, name);
    return strcmp(name, "power-mode") == 0 && strcmp(k->values[0], "advise") == 0
               ? take_advice(s, k)
               : EW_OK;
}

/* Later ones win: defaults, the section, then both again with their quick. keys. */
static ew_err read_keys(struct section *s)
{
    const char *const from[2] = {"defaults", s->label};
    for (int pass = 0; pass < 4; pass++) {
        const bool quick = pass >= 2;
        if (quick && !s->opts->quick)
            break;
        for (int i = 0; i < s->file->n; i++) {
            const struct ew_study_line *l = &s->file->lines[i];
            const bool is_quick = strncmp(l->key, "quick.", 6) == 0;
            if (strcmp(l->section, from[pass % 2]) == 0 && is_quick == quick)
                EW_TRY(set_key(s, l, is_quick ? l->key + 6 : l->key, pass % 2 == 1));
        }
    }
    return EW_OK;
}

static const char *value_of(struct section *s, const char *name)
{
    const struct key *k = find_key(s, name);
    return k ? k->value : NULL;
}

/* The current value of the key that {name} refers to; NULL: none. */
static const char *meaning(struct section *s, const char *name, size_t n)
{
    for (int i = 0; i < s->n; i++) {
        struct key *k = &s->keys[i];
        const char *plain = is_var(k->name) ? k->name + 4 : k->name;
        if (strlen(plain) == n && strncmp(plain, name, n) == 0) {
            k->used = true;
            return k->values[k->at];
        }
    }
    return NULL;
}

/* Replaces each {name} in the value, one level deep, so that there are no cycles. */
static ew_err fill_in(struct section *s, struct key *k)
{
    const char *text = k->values[k->at], *out = "";
    for (const char *p = text; p && *p;) {
        const char *open = strchr(p, '{'), *close = open ? strchr(open, '}') : NULL;
        if (!close) {
            out = ew_arena_printf(s->arena, "%s%s", out, p);
            break;
        }
        const char *value = meaning(s, open + 1, (size_t)(close - open - 1));
        EW_CHECK(value, EW_ERR_FORMAT, "%s:%d: unknown name %.*s", s->file->name, k->line,
                 (int)(close - open + 1), open);
        out = ew_arena_printf(s->arena, "%s%.*s%s", out, (int)(open - p), p, value);
        EW_CHECK(out && strlen(out) < 4096, EW_ERR_LIMIT, "%s:%d: the value is too long",
                 s->file->name, k->line);
        p = close + 1;
    }
    k->value = out;
    EW_CHECK(out, EW_ERR_MEMORY, "no memory for a study");
    return EW_OK;
}

/* ---- One job --------------------------------------------------------------------------------- */

/* The next setting of CORES/CPU/GPU/MEM; NULL for one that the board does not have. */
static const char *next_setting(char **words)
{
    const char *word = strsep(words, "/");
    return word && strcmp(word, "-") == 0 ? NULL : word;
}

static struct ew_study_power power_of(struct section *s)
{
    struct ew_study_power p = {.mode = value_of(s, "power-mode"),
                               .dvfs = value_of(s, "dvfs"),
                               .cores = value_of(s, "cores"),
                               .cpu_mhz = value_of(s, "cpu-mhz"),
                               .gpu_mhz = value_of(s, "gpu-mhz"),
                               .mem_mhz = value_of(s, "mem-mhz"),
                               .fan = value_of(s, "fan")};
    char *words = p.mode && strchr(p.mode, '/') ? ew_arena_strdup(s->arena, p.mode) : NULL;
    if (words && !s->opts->simulate) { /* CORES/CPU/GPU/MEM */
        p.mode = NULL;
        p.cores = next_setting(&words);
        p.cpu_mhz = next_setting(&words);
        p.gpu_mhz = next_setting(&words);
        p.mem_mhz = words && strcmp(words, "-") == 0 ? NULL : words;
    }
    return p;
}

/* Writes one option into the command's struct and the words of its command line. */
static ew_err take_option(struct section *s, const struct ew_study_command *c, struct key *k,
                          void *opts, struct ew_study_job *j)
{
    const struct ew_field *f = ew_field_find(c->opts, k->name);
    if (!f || is_own(k->name)) /* from [defaults] for another command, or a setting of the study */
        return EW_OK;
    k->used = true;
    const char *value = k->value;
    EW_TRY(ew_fail_in(ew_field_parse(f, value, opts), "%s:%d", s->file->name, k->line));
    j->argv[j->n_argv++] = ew_arena_printf(s->arena, "--%s=%s", f->name, value);
    return EW_OK;
}

/* Settings that the job's hash covers beside the options; each is a key of the section. */
static int more_settings(struct section *s, struct ew_setting *out)
{
    int n = 0;
    for (size_t i = 0; i < EW_COUNT(power_keys); i++)
        if (value_of(s, power_keys[i]))
            out[n++] = (struct ew_setting){power_keys[i], value_of(s, power_keys[i])};
    if (value_of(s, "seconds"))
        out[n++] = (struct ew_setting){"seconds", value_of(s, "seconds")};
    if (value_of(s, "network"))
        out[n++] = (struct ew_setting){"network", value_of(s, "network")};
    for (int i = 0; i < s->n; i++)
        if (is_var(s->keys[i].name))
            out[n++] = (struct ew_setting){s->keys[i].name + 4, s->keys[i].value};
    return n;
}

/* "BOARD:MODE" for --simulate, from what the job asks of the machine. */
static const char *simulated_mode(struct section *s, const struct ew_study_power *p)
{
    const char *board = s->opts->simulate;
    if (p->mode)
        return ew_arena_printf(s->arena, "%s:%s", board, p->mode);
    if (p->cores && p->cpu_mhz && p->gpu_mhz && p->mem_mhz)
        return ew_arena_printf(s->arena, "%s:%s/%s/%s/%s", board, p->cores, p->cpu_mhz, p->gpu_mhz,
                               p->mem_mhz);
    return board;
}

/* The job runs on the board's model, so no setting of this machine is changed. */
static ew_err simulate_job(struct section *s, const struct ew_study_command *c, void *opts,
                           struct ew_study_job *j)
{
    struct key k = {.name = "simulate", .value = simulated_mode(s, &j->power)};
    EW_CHECK(k.value, EW_ERR_MEMORY, "no memory for a study");
    j->power = (struct ew_study_power){0};
    j->cool_down_s = 0;
    return take_option(s, c, &k, opts, j);
}

static ew_err resolve(struct section *s, const struct ew_study_command *c, void *opts,
                      struct ew_study_job *j)
{
    struct ew_setting more[MAX_KEYS], *given;
    given = ew_arena_array(s->arena, (size_t)s->n + 1, sizeof(*given));
    j->argv = ew_arena_array(s->arena, (size_t)s->n + 6, sizeof(*j->argv));
    EW_CHECK(given && j->argv, EW_ERR_MEMORY, "no memory for a study");
    j->argv[j->n_argv++] = c->name;
    if (j->network)
        j->argv[j->n_argv++] = j->network;
    ew_fields_default(c->opts, opts, c->opts_size);
    for (int i = 0; i < s->n; i++) {
        struct key *k = &s->keys[i];
        given[j->n_given++] =
            (struct ew_setting){is_var(k->name) ? k->name + 4 : k->name, k->value};
        EW_TRY(take_option(s, c, k, opts, j));
    }
    j->given = given;
    if (s->opts->device && !find_key(s, "device")) {
        struct key k = {.name = "device", .value = s->opts->device};
        EW_TRY(take_option(s, c, &k, opts, j));
    }
    if (s->opts->simulate)
        EW_TRY(simulate_job(s, c, opts, j));
    const struct ew_job_command command = {c->name, c->opts, opts, more, more_settings(s, more)};
    return ew_job_describe(s->arena, &command, &j->row);
}

/* Reads a key in seconds; if the section has none, *out is unchanged. */
static ew_err take_seconds(struct section *s, const char *name, double most, double *out)
{
    const char *text = value_of(s, name);
    EW_CHECK(!text || (ew_num_float(text, out) && *out >= 0 && *out <= most), EW_ERR_FORMAT,
             "%s: [%s]: %s '%s' is not a number of seconds up to %g", s->file->name, s->label, name,
             text, most);
    return EW_OK;
}

static ew_err make_job(struct section *s, struct ew_study_job *j)
{
    for (int i = 0; i < s->n; i++)
        EW_TRY(fill_in(s, &s->keys[i]));
    const char *command = value_of(s, "command");
    EW_CHECK(command, EW_ERR_FORMAT, "%s: [%s] has no command", s->file->name, s->label);
    const struct ew_study_command *c = find_command(s->opts, command);
    EW_CHECK(c, EW_ERR_FORMAT, "%s: [%s]: studies have no command '%s'", s->file->name, s->label,
             command);
    *j = (struct ew_study_job){.label = s->label,
                               .command = c->name,
                               .network = value_of(s, "network"),
                               .keep = value_of(s, "keep"),
                               .timeout_s = -1,
                               .samples = c->samples,
                               .power = power_of(s)};
    EW_TRY(take_seconds(s, "cool-down", EW_STUDY_MAX_S, &j->cool_down_s));
    EW_TRY(take_seconds(s, "job-timeout", EW_STUDY_MAX_S, &j->timeout_s));
    void *opts = ew_arena_alloc(s->arena, c->opts_size + 1);
    EW_CHECK(opts, EW_ERR_MEMORY, "no memory for a study");
    j->fields = c->opts;
    j->opts = opts;
    return resolve(s, c, opts, j);
}

/* ---- All jobs -------------------------------------------------------------------------------- */

/* The next combination, the last key fastest; false after the last. */
static bool advance(struct section *s)
{
    for (int i = s->n - 1; i >= 0; i--) {
        if (++s->keys[i].at < s->keys[i].n)
            return true;
        s->keys[i].at = 0;
    }
    return false;
}

/* Whether the job can be simulated: only some commands, and not with clocks that follow the
 * load. */
static bool can_simulate(struct section *s, const struct ew_study_job *j)
{
    const char *dvfs = value_of(s, "dvfs");
    return ew_field_find(j->fields, "simulate") && !(dvfs && strcmp(dvfs, "on") == 0);
}

/* Refuses keys of the section that its command does not take. */
static ew_err check_used(const struct section *s)
{
    for (int i = 0; i < s->n; i++) {
        const struct key *k = &s->keys[i];
        EW_CHECK(!k->own || k->used || is_own(k->name), EW_ERR_FORMAT,
                 "%s:%d: [%s]: '%s' is an option of other commands only", s->file->name, k->line,
                 s->label, k->name);
    }
    return EW_OK;
}

static ew_err expand_section(struct section *s, struct ew_study_job **jobs, int *n, int *cap)
{
    EW_TRY(read_keys(s));
    const struct key *key = find_key(s, "quick");
    const char *quick = key ? key->values[0] : NULL;
    if (s->opts->quick && quick && strcmp(quick, "no") == 0)
        return EW_OK;
    do {
        EW_CHECK(*n < MAX_JOBS, EW_ERR_LIMIT, "%s: more than %d jobs", s->file->name, MAX_JOBS);
        EW_TRY(ew_grow((void **)jobs, cap, *n + 1, sizeof(**jobs)));
        EW_TRY(make_job(s, &(*jobs)[*n]));
        *n += !s->opts->simulate || can_simulate(s, &(*jobs)[*n]);
    } while (advance(s));
    return check_used(s);
}

static bool is_job_section(const char *name)
{
    static const char *const others[] = {"study", "published", "defaults"};
    return !listed(others, EW_COUNT(others), name);
}

static ew_err expand_all(struct section *s, const struct ew_study_file *f,
                         struct ew_study_job **jobs, int *n)
{
    int cap = 0;
    const char *last = NULL;
    for (int i = 0; i < f->n; i++) {
        const char *name = f->lines[i].section;
        if (!is_job_section(name) || (last && strcmp(name, last) == 0))
            continue;
        for (int k = 0; k < i; k++)
            EW_CHECK(strcmp(f->lines[k].section, name) != 0, EW_ERR_FORMAT,
                     "%s:%d: section [%s] appears twice", f->name, f->lines[i].line, name);
        last = name;
        s->n = 0;
        s->label = name;
        EW_TRY(expand_section(s, jobs, n, &cap));
    }
    return EW_OK;
}

ew_err ew_study_expand(struct ew_arena *a, const struct ew_study_file *f,
                       const struct ew_study_opts *o, struct ew_study *s)
{
    struct section *work = calloc(1, sizeof(*work));
    EW_CHECK(work, EW_ERR_MEMORY, "no memory for a study");
    *work = (struct section){.file = f, .opts = o, .arena = a};
    struct ew_study_job *jobs = NULL;
    int n = 0;
    ew_err err = expand_all(work, f, &jobs, &n);
    free(work);
    if (err == EW_OK && n == 0)
        err = ew_fail(EW_ERR_FORMAT, "%s: no jobs", f->name);
    if (err == EW_OK) {
        s->jobs = ew_arena_array(a, (size_t)n, sizeof(*jobs));
        s->n_jobs = n;
        if (s->jobs)
            memcpy(s->jobs, jobs, (size_t)n * sizeof(*jobs));
        else
            err = ew_fail(EW_ERR_MEMORY, "no memory for a study");
    }
    free(jobs);
    return err;
}

bool ew_study_value(const struct ew_study_job *j, const char *name, char out[EW_STUDY_VALUE])
{
    const char *given = ew_study_given(j, name);
    const struct ew_field *f = ew_field_find(j->fields, name);
    if (f && !ew_field_absent(f, j->opts))
        ew_field_print(f, j->opts, out, EW_STUDY_VALUE);
    else if (given)
        snprintf(out, EW_STUDY_VALUE, "%s", given);
    return given || f;
}

double ew_study_number(const struct ew_study_job *j, const char *name, double otherwise)
{
    char text[EW_STUDY_VALUE] = "";
    double x;
    return ew_study_value(j, name, text) && ew_num_float(text, &x) ? x : otherwise;
}

const char *ew_study_given(const struct ew_study_job *j, const char *name)
{
    if (strcmp(name, "label") == 0)
        return j->label;
    return ew_setting_find(j->given, j->n_given, name);
}
