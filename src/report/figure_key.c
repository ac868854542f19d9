/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: the settings that runs share and those in which they differ. */
#include "report/figure_key.h"

#include <stdlib.h>
#include <string.h>

bool ew_words_have(const char *words, const char *name)
{
    const size_t len = strlen(name);
    for (const char *p = words; p && *p;) {
        const size_t n = strcspn(p, " ");
        if (n == len && memcmp(p, name, n) == 0)
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

/* ---- Making ---- */

static int by_line(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct lines {
    const char *v[256];
    size_t n;
};

/* A key consists of lines, so a value must be a single one. */
static const char *one_line(char *text)
{
    for (char *p = text; p && *p; p++)
        *p = *p == '\n' ? ' ' : *p;
    return text;
}

static void add_line(struct lines *l, const char *used, const char *name, const char *value,
                     struct ew_arena *a)
{
    if (l->n < EW_COUNT(l->v) && value && !ew_words_have(used, name) &&
        !ew_option_is_incidental(name))
        l->v[l->n++] = one_line(ew_arena_printf(a, "%s=%s", name, value));
}

static const char *join(struct lines *l, struct ew_arena *a)
{
    size_t bytes = 2;
    for (size_t i = 0; i < l->n; i++)
        bytes += l->v[i] ? strlen(l->v[i]) + 1 : 0;
    char *out = ew_arena_alloc(a, bytes);
    if (!out || a->failed)
        return NULL;
    qsort(l->v, l->n, sizeof(l->v[0]), by_line);
    char *at = out;
    *at++ = '\n';
    for (size_t i = 0; i < l->n; i++) {
        at = stpcpy(at, l->v[i]);
        *at++ = '\n';
    }
    *at = 0;
    return out;
}

/* Whether a job names its power mode in an option of its own; `simulate` = "BOARD:MODE" would
 * then repeat it. */
static bool says_mode(const struct ew_run_data *d, struct ew_arena *a)
{
    struct ew_option_walk o = ew_option_begin(d->job.options, a);
    while (ew_option_next(&o))
        if (strcmp(o.name, "power-mode") == 0 || strcmp(o.name, "cpu-mhz") == 0)
            return true;
    return false;
}

const char *ew_key_options(const struct ew_run_data *d, const char *used, struct ew_arena *a)
{
    struct lines l = {.n = 0};
    add_line(&l, used, "command", d->job.command, a);
    add_line(&l, used, "network", d->job.network, a);
    add_line(&l, used, "dataset", d->job.dataset, a);
    struct ew_option_walk o = ew_option_begin(d->job.options, a);
    while (ew_option_next(&o)) {
        const bool model = strcmp(o.name, "simulate") == 0 && says_mode(d, a);
        add_line(&l, used, o.name, model ? ew_run_board(d, a) : o.value, a);
    }
    return join(&l, a);
}

const char *ew_key_machine(const struct ew_run_data *d, const char *used, struct ew_arena *a)
{
    struct lines l = {.n = 0};
    for (const struct ew_field *f = ew_record_kind(EW_RECORD_MACHINE)->fields; f->name; f++) {
        char text[256];
        if (strcmp(f->name, "id") == 0 || ew_field_absent(f, &d->machine))
            continue;
        ew_field_print(f, &d->machine, text, sizeof(text));
        add_line(&l, used, f->name, text, a);
    }
    return join(&l, a);
}

/* ---- Comparing ---- */

/* The next line of a key without its newline; false at the end. */
static bool next_line(const char **at, const char **line, size_t *len)
{
    if (**at == '\n')
        ++*at;
    *line = *at;
    *len = strcspn(*at, "\n");
    *at += *len;
    return *len > 0;
}

/* "\n<text>\n" is in the set. */
static bool has(const char *set, const char *text, size_t len)
{
    for (const char *p = set; (p = memmem(p, strlen(p), text, len)) != NULL; p++)
        if (p > set && p[-1] == '\n' && p[len] == '\n')
            return true;
    return false;
}

static const char *missing_names(const char *key, const char *other, const char *names,
                                 struct ew_arena *a)
{
    const char *at = key, *line;
    size_t len;
    while (names && next_line(&at, &line, &len)) {
        const char *eq = memchr(line, '=', len);
        if (eq && !has(other, line, len) && !has(names, line, (size_t)(eq - line)))
            names = ew_arena_printf(a, "%s%.*s\n", names, (int)(eq - line), line);
    }
    return names;
}

const char *ew_key_differ(const char *a_key, const char *b_key, const char *names,
                          struct ew_arena *a)
{
    if (!names || strcmp(a_key, b_key) == 0)
        return names;
    return missing_names(b_key, a_key, missing_names(a_key, b_key, names, a), a);
}

const char *ew_key_only(const char *key, const char *names, struct ew_arena *a)
{
    char *out = ew_arena_alloc(a, strlen(key) + 2);
    if (!out)
        return NULL;
    char *to = out;
    *to++ = '\n';
    const char *at = key, *line;
    size_t len;
    while (next_line(&at, &line, &len)) {
        const char *eq = memchr(line, '=', len);
        if (!eq || !has(names, line, (size_t)(eq - line)))
            continue;
        to = mempcpy(to, line, len);
        *to++ = '\n';
    }
    *to = 0;
    return out;
}

const char *ew_key_label(const char *key, const char *names, bool bare, struct ew_arena *a)
{
    const char *out = "", *at = key, *line;
    size_t len;
    while (out && next_line(&at, &line, &len)) {
        const char *eq = memchr(line, '=', len);
        const int n = eq ? (int)(eq - line) : 0;
        if (!eq || !has(names, line, (size_t)n))
            continue;
        const int value = (int)len - n - 1;
        out = bare ? ew_arena_printf(a, "%s%s%.*s", out, *out ? ", " : "", value, eq + 1)
                   : ew_arena_printf(a, "%s%s%.*s %.*s", out, *out ? ", " : "", n, line, value,
                                     eq + 1);
    }
    return out;
}

const char *ew_names_without(const char *names, const char *other, struct ew_arena *a)
{
    const char *out = "", *at = names, *line;
    size_t len;
    while (out && next_line(&at, &line, &len))
        if (!has(other, line, len))
            out = ew_arena_printf(a, "%s%s%.*s", out, *out ? ", " : "", (int)len, line);
    return out;
}

/* ---- Sets ---- */

ew_err ew_key_set_add(struct ew_key_set *s, const char *key, struct ew_arena *a)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->keys[i], key) == 0)
            return EW_OK;
    if (s->n)
        s->names = ew_key_differ(s->keys[s->n - 1], key, s->names, a);
    EW_CHECK(s->names, EW_ERR_MEMORY, "no memory for figures");
    if (s->n < EW_KEY_SET_MOST)
        s->keys[s->n++] = key;
    return EW_OK;
}

static bool tell_apart(const struct ew_key_set *s, const char *names, struct ew_arena *a)
{
    const char *only[EW_KEY_SET_MOST];
    for (int i = 0; i < s->n; i++) {
        only[i] = ew_key_only(s->keys[i], names, a);
        for (int j = 0; j < i; j++)
            if (!only[i] || !only[j] || strcmp(only[i], only[j]) == 0)
                return false;
    }
    return true;
}

/* `names` as a set again, without the one. */
static const char *set_without(const char *names, const char *name, size_t n, struct ew_arena *a)
{
    const char *out = "\n", *at = names, *line;
    size_t len;
    while (out && next_line(&at, &line, &len))
        if (len != n || memcmp(line, name, n) != 0)
            out = ew_arena_printf(a, "%s%.*s\n", out, (int)len, line);
    return out;
}

/* Names are dropped in an order that keeps the ones that people use and drops details that
 * follow from them. */
ew_err ew_key_set_trim(struct ew_key_set *s, struct ew_arena *a)
{
    static const char telling[] = "board power_mode storage width precision batch workers";
    for (int keep = 0; keep < 2; keep++) {
        const char *at = s->names, *line;
        size_t len;
        while (next_line(&at, &line, &len)) {
            const char *name = ew_arena_printf(a, "%.*s", (int)len, line);
            const char *less = set_without(s->names, line, len, a);
            EW_CHECK(name && less, EW_ERR_MEMORY, "no memory for figures");
            if (ew_words_have(telling, name) == (keep == 1) && tell_apart(s, less, a))
                s->names = less;
        }
    }
    return EW_OK;
}
