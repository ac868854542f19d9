/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in memory, and their properties by name. */
#include "report/run_data.h"

#include <stdlib.h>
#include <string.h>

#include "device/profile.h"

void ew_results_init(struct ew_results *r)
{
    *r = (struct ew_results){0};
    ew_arena_init(&r->arena);
}

void ew_results_fini(struct ew_results *r)
{
    free(r->runs);
    free(r->published);
    free(r->studies);
    ew_arena_fini(&r->arena);
    *r = (struct ew_results){0};
}

ew_err ew_results_add(struct ew_results *r, struct ew_run_data **out)
{
    EW_TRY(ew_grow((void **)&r->runs, &r->cap_runs, r->n_runs + 1, sizeof(*r->runs)));
    struct ew_run_data *d = &r->runs[r->n_runs++];
    *d = (struct ew_run_data){0};
    ew_record_clear(EW_RECORD_RUN, &d->run);
    ew_record_clear(EW_RECORD_JOB, &d->job);
    ew_record_clear(EW_RECORD_MACHINE, &d->machine);
    *out = d;
    return EW_OK;
}

ew_err ew_results_publish(struct ew_results *r, const struct ew_published_row *p)
{
    EW_TRY(ew_grow((void **)&r->published, &r->cap_published, r->n_published + 1,
                   sizeof(*r->published)));
    r->published[r->n_published++] = *p;
    return EW_OK;
}

ew_err ew_results_add_study(struct ew_results *r, const struct ew_study_row *s)
{
    EW_TRY(ew_grow((void **)&r->studies, &r->cap_studies, r->n_studies + 1, sizeof(*r->studies)));
    r->studies[r->n_studies++] = *s;
    return EW_OK;
}

/* ---- Options ---- */

struct ew_option_walk ew_option_begin(const char *options, struct ew_arena *a)
{
    const char *at = options ? strchr(options, '{') : NULL;
    return (struct ew_option_walk){.at = at ? at + 1 : "", .arena = a};
}

/* The character of \\uXXXX as UTF-8; surrogates and the like become '?'. */
static char *put_code(char *to, const char *hex)
{
    const char digits[5] = {hex[0], hex[1], hex[2], hex[3], 0};
    const unsigned long c = strtoul(digits, NULL, 16);
    if (c < 32 || (c >= 0xd800 && c < 0xe000)) {
        *to++ = '?';
    } else if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

/* The closing quote of a string, from after its opening one; NULL: it has none. */
static const char *string_end(const char *p)
{
    while (*p && *p != '"')
        p += p[0] == '\\' && p[1] ? 2 : 1;
    return *p ? p : NULL;
}

/* A string from after its opening quote; NULL: it has no end. */
static const char *read_string(struct ew_option_walk *w)
{
    const char *p = w->at, *const end = string_end(p);
    char *out = end ? ew_arena_alloc(w->arena, (size_t)(end - p) + 1) : NULL, *to = out;
    while (out && p < end) {
        if (*p != '\\') {
            *to++ = *p++;
        } else if (p[1] == 'u' && strspn(p + 2, "0123456789abcdefABCDEF") >= 4) {
            to = put_code(to, p + 2);
            p += 6;
        } else {
            *to++ = strchr("bfnrt", p[1]) ? ' ' : p[1];
            p += 2;
        }
    }
    if (out)
        w->at = end + 1;
    return out;
}

static const char *read_value(struct ew_option_walk *w)
{
    if (*w->at == '"') {
        w->at++;
        return read_string(w);
    }
    const int n = (int)strcspn(w->at, ",} \t\r\n");
    const char *out = ew_arena_printf(w->arena, "%.*s", n, w->at);
    w->at += n;
    return out;
}

bool ew_option_next(struct ew_option_walk *w)
{
    for (;;) {
        w->at += strspn(w->at, ", \t\r\n");
        if (*w->at != '"')
            return false;
        w->at++;
        w->name = read_string(w);
        if (!w->name)
            return false;
        w->at += strspn(w->at, ": \t\r\n");
        const bool text = *w->at == '"';
        w->value = read_value(w);
        if (!w->value)
            return false;
        if (text || strcmp(w->value, "null") != 0)
            return true;
    }
}

bool ew_option_is_incidental(const char *name)
{
    static const char *const names[] = {
        "seed",        "repeat",     "output",      "log",     "db",           "checkpoint",
        "json",        "save-every", "resume",      "quiet",   "save",         "idle",
        "csv",         "html",       "png",         "picture", "predictions",  "mistakes",
        "tensorboard", "profile",    "percentiles", "against", "max-slowdown", "min-accuracy"};
    for (size_t i = 0; i < EW_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Passes over the names and values before the one that is wanted: reports ask often. */
static const char *option(const char *options, const char *name, struct ew_arena *a)
{
    struct ew_option_walk w = ew_option_begin(options, a);
    const size_t n = strlen(name);
    for (;;) {
        w.at += strspn(w.at, ", \t\r\n");
        const char *end = *w.at == '"' ? string_end(w.at + 1) : NULL;
        if (!end || ((size_t)(end - w.at) == n + 1 && memcmp(w.at + 1, name, n) == 0))
            break;
        w.at = end + 1 + strspn(end + 1, ": \t\r\n");
        end = *w.at == '"' ? string_end(w.at + 1) : w.at + strcspn(w.at, ",} \t\r\n") - 1;
        w.at = end ? end + 1 : "";
    }
    return ew_option_next(&w) && strcmp(w.name, name) == 0 ? w.value : NULL;
}

/* ---- Properties ---- */

static const char *field_text(enum ew_record kind, const void *row, const char *name,
                              struct ew_arena *a)
{
    const struct ew_field *f = ew_field_find(ew_record_kind(kind)->fields, name);
    if (!f || ew_field_absent(f, row))
        return NULL;
    if (f->type == EW_FIELD_STR) {
        const void *at = (const char *)row + f->offset;
        return *(const char *const *)at;
    }
    char text[64];
    ew_field_print(f, row, text, sizeof(text));
    return ew_arena_strdup(a, text);
}

const char *ew_run_board(const struct ew_run_data *d, struct ew_arena *a)
{
    const char *model = option(d->job.options, "simulate", a); /* "BOARD:MODE" */
    return model && *model ? ew_arena_printf(a, "%.*s", (int)strcspn(model, ":"), model)
                           : d->machine.profile;
}

/* "mode_gpu_mhz": a setting of the run's power mode, by its own option or its board's profile. */
static const char *mode_setting(const struct ew_run_data *d, const char *name, struct ew_arena *a)
{
    static const struct {
        const char *name, *option;
        size_t offset;
    } known[] = {{"mode_cores", "cores", offsetof(struct ew_profile_mode, cores)},
                 {"mode_cpu_mhz", "cpu-mhz", offsetof(struct ew_profile_mode, cpu_mhz)},
                 {"mode_gpu_mhz", "gpu-mhz", offsetof(struct ew_profile_mode, gpu_mhz)},
                 {"mode_mem_mhz", "mem-mhz", offsetof(struct ew_profile_mode, mem_mhz)}};
    const struct ew_profile *list;
    int n = 0;
    for (size_t i = 0; i < EW_COUNT(known); i++) {
        if (strcmp(known[i].name, name) != 0)
            continue;
        const char *own = option(d->job.options, known[i].option, a);
        const char *mode = option(d->job.options, "power-mode", a);
        const char *board = own ? NULL : ew_run_board(d, a);
        if (own || !mode || !board || ew_profiles_load(a, &list, &n) != EW_OK)
            return own;
        const struct ew_profile *p = ew_profile_find(list, n, board);
        for (int k = 0; p && k < p->n_modes; k++) {
            int64_t v;
            memcpy(&v, (const char *)&p->modes[k] + known[i].offset, sizeof(v));
            if (strcmp(p->modes[k].name, mode) == 0 && v > 0)
                return ew_arena_printf(a, "%lld", (long long)v);
        }
    }
    return NULL;
}

const char *ew_run_property(const struct ew_run_data *d, const char *name, struct ew_arena *a)
{
    if (strcmp(name, "side") == 0)
        return d->side;
    const char *text = field_text(EW_RECORD_RUN, &d->run, name, a);
    if (!text)
        text = field_text(EW_RECORD_JOB, &d->job, name, a);
    if (!text)
        text = field_text(EW_RECORD_MACHINE, &d->machine, name, a);
    if (!text)
        text = option(d->job.options, name, a);
    return text ? text : mode_setting(d, name, a);
}

bool ew_run_counts(const struct ew_run_data *d)
{
    return d->run.status == EW_RUN_DONE;
}
