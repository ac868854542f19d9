/* SPDX-License-Identifier: Apache-2.0 */
/* The section [published] of an experiment file: values given in it, and rows selected from the
 * files of published values. */
#include <string.h>

#include "base/num.h"
#include "study/published.h"
#include "study/study.h"

#define MOST_RENAMED 32

/* The text up to the next '|', without white space around it. */
static char *next_part(char **rest)
{
    char *p = *rest;
    if (!p)
        return NULL;
    char *bar = strchr(p, '|');
    *rest = bar ? bar + 1 : NULL;
    if (bar)
        *bar = '\0';
    p += strspn(p, " \t");
    size_t n = strlen(p);
    while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        p[--n] = '\0';
    return p;
}

/* "stall_s 22 s | network=lenet5 workers=0 | Jetson AGX Xavier". */
static ew_err read_figure(struct ew_arena *a, const struct ew_study_file *f,
                          const struct ew_study_line *l, struct ew_published_row *row)
{
    char *rest = l->value;
    const char *head = next_part(&rest), *settings = next_part(&rest), *board = next_part(&rest);
    const char **words;
    int n;
    EW_TRY(ew_study_words(a, head, &words, &n));
    EW_CHECK(n == 2 || n == 3, EW_ERR_FORMAT,
             "%s:%d: a figure is METRIC VALUE [UNIT] | NAME=VALUE ... | board", f->name, l->line);
    row->metric = words[0];
    EW_CHECK(ew_num_float(words[1], &row->value), EW_ERR_FORMAT, "%s:%d: '%s' is not a number",
             f->name, l->line, words[1]);
    row->unit = n == 3 ? words[2] : NULL;
    row->settings = settings ? settings : "";
    if (board && *board)
        row->board = board;
    return EW_OK;
}

/* Adds a row; of two for the same quantity the better founded one counts, else the first. */
static ew_err add_row(struct ew_arena *a, struct ew_study *s, int *cap,
                      const struct ew_published_row *row)
{
    for (int i = 0; i < s->n_published; i++) {
        struct ew_published_row *p = &s->published[i];
        if (strcmp(p->metric, row->metric) != 0 || strcmp(p->settings, row->settings) != 0 ||
            strcmp(p->board, row->board) != 0)
            continue;
        if (ew_published_kind_rank(row->kind) > ew_published_kind_rank(p->kind))
            *p = *row;
        return EW_OK;
    }
    if (s->n_published == *cap) {
        struct ew_published_row *more = ew_arena_array(a, 2 * (size_t)*cap + 64, sizeof(*more));
        EW_CHECK(more, EW_ERR_MEMORY, "no memory for a study");
        for (int i = 0; i < s->n_published; i++)
            more[i] = s->published[i];
        s->published = more;
        *cap = 2 * *cap + 64;
    }
    s->published[s->n_published++] = *row;
    return EW_OK;
}

/* State of [published] up to a line. */
struct section_state {
    struct ew_published_list values;
    struct ew_published_row row;
    const char *board, *file;
    struct ew_published_name renamed[MOST_RENAMED];
    int n_renamed, cap;
};

/* "stall_s s | network workers | metric=stall epochs=1+": rows of the file of published values. */
static ew_err read_rows(struct ew_arena *a, const struct ew_study_file *f,
                        const struct ew_study_line *l, struct section_state *t, struct ew_study *s)
{
    char *rest = l->value;
    const char *head = next_part(&rest), *settings = next_part(&rest), *fit = next_part(&rest);
    const char **words, **own, **must;
    int n;
    struct ew_published_rule rule = {
        .file = t->file, .renamed = t->renamed, .n_renamed = t->n_renamed};
    EW_CHECK(
        t->file && head && settings && fit, EW_ERR_FORMAT,
        "%s:%d: rows are METRIC [UNIT] | SETTING ... | COLUMN=PATTERN ..., after a line 'from'",
        f->name, l->line);
    EW_TRY(ew_study_words(a, head, &words, &n));
    EW_TRY(ew_study_words(a, settings, &own, &rule.n_settings));
    EW_TRY(ew_study_words(a, fit, &must, &rule.n_fit));
    EW_CHECK(n == 1 || n == 2, EW_ERR_FORMAT, "%s:%d: '%s' is not METRIC [UNIT]", f->name, l->line,
             head);
    rule.metric = words[0];
    rule.unit = n == 2 ? words[1] : NULL;
    rule.settings = own;
    rule.fit = must;
    if (!t->values.v)
        EW_TRY(ew_published_list_load(a, &t->values));
    int found = 0;
    for (int i = 0; i < t->values.n; i++) {
        if (!ew_published_value_row(a, &t->values.v[i], &rule, &t->row))
            continue;
        found++;
        EW_TRY(add_row(a, s, &t->cap, &t->row));
    }
    EW_CHECK(found, EW_ERR_FORMAT, "%s:%d: no published value of %s matches", f->name, l->line,
             t->file);
    return EW_OK;
}

/* "network resnet18 resnet18_cifar_gn": what a value of a column is called here. */
static ew_err read_name(struct ew_arena *a, const struct ew_study_file *f,
                        const struct ew_study_line *l, struct section_state *t)
{
    const char **words;
    int n;
    EW_TRY(ew_study_words(a, l->value, &words, &n));
    EW_CHECK(n == 3 && t->n_renamed < MOST_RENAMED, EW_ERR_FORMAT,
             "%s:%d: a name is COLUMN THEIRS OURS, at most %d of them", f->name, l->line,
             MOST_RENAMED);
    t->renamed[t->n_renamed++] = (struct ew_published_name){words[0], words[1], words[2]};
    return EW_OK;
}

static ew_err read_own(struct ew_arena *a, const struct ew_study_file *f,
                       const struct ew_study_line *l, struct section_state *t, struct ew_study *s)
{
    EW_CHECK(strcmp(l->key, "figure") == 0, EW_ERR_FORMAT, "%s:%d: [published] has no key '%s'",
             f->name, l->line, l->key);
    struct ew_published_row row = t->row;
    row.place = row.kind = row.note = row.wrong = NULL;
    row.board = t->board;
    EW_TRY(read_figure(a, f, l, &row));
    return add_row(a, s, &t->cap, &row);
}

ew_err ew_study_published(struct ew_arena *a, const struct ew_study_file *f, struct ew_study *s)
{
    struct section_state t = {.board = ""};
    ew_record_clear(EW_RECORD_PUBLISHED, &t.row);
    t.row.study = s->name;
    for (int i = 0; i < f->n; i++) {
        const struct ew_study_line *l = &f->lines[i];
        if (strcmp(l->section, "published") != 0)
            continue;
        if (strcmp(l->key, "cite") == 0)
            t.row.cite = l->value;
        else if (strcmp(l->key, "board") == 0)
            t.board = l->value;
        else if (strcmp(l->key, "from") == 0)
            t.file = l->value;
        else if (strcmp(l->key, "name") == 0)
            EW_TRY(read_name(a, f, l, &t));
        else if (strcmp(l->key, "rows") == 0)
            EW_TRY(read_rows(a, f, l, &t, s));
        else
            EW_TRY(read_own(a, f, l, &t, s));
    }
    return EW_OK;
}
