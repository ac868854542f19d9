/* SPDX-License-Identifier: Apache-2.0 */
/* Options as one sorted JSON object, and its hash. */
#include "study/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define MAX_ENTRIES 256
#define VALUE_CHARS 1024

struct entry {
    const char *name, *text; /* text NULL: null */
    enum ew_field_type type;
};

const char *ew_setting_find(const struct ew_setting *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].value;
    return NULL;
}

bool ew_job_ignores_option(const char *option)
{
    static const char *const names[] = {"db",     "json", "help",   "out",     "output",
                                        "resume", "on",   "carbon", "elastic", "dry"};
    for (size_t i = 0; i < EW_COUNT(names); i++)
        if (strcmp(names[i], option) == 0)
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static ew_err add_options(struct ew_arena *a, const struct ew_field *table, const void *opts,
                          struct entry *list, int *n)
{
    for (const struct ew_field *f = table; f && f->name; f++) {
        if (ew_job_ignores_option(f->name))
            continue;
        char text[VALUE_CHARS];
        const bool absent = ew_field_absent(f, opts);
        if (!absent)
            EW_CHECK(ew_field_print(f, opts, text, sizeof(text)) < VALUE_CHARS, EW_ERR_LIMIT,
                     "%s: value is longer than %d characters", f->name, VALUE_CHARS);
        EW_CHECK(*n < MAX_ENTRIES, EW_ERR_LIMIT, "more than %d options", MAX_ENTRIES);
        list[(*n)++] = (struct entry){f->name, absent ? NULL : ew_arena_strdup(a, text), f->type};
    }
    return EW_OK;
}

/* Type of a value given as text: a number if it parses as one. */
static enum ew_field_type guess_type(const char *text)
{
    double x;
    int64_t i;
    if (ew_num_int(text, &i))
        return EW_FIELD_INT;
    return ew_num_float(text, &x) ? EW_FIELD_FLOAT : EW_FIELD_STR;
}

static void put_size(struct ew_json *j, const struct entry *e)
{
    const struct ew_field f = {.name = e->name, .type = EW_FIELD_SIZE};
    int64_t bytes = 0;
    if (ew_field_parse(&f, e->text, &bytes) == EW_OK)
        ew_json_int(j, e->name, bytes);
    else
        ew_json_str(j, e->name, e->text);
}

static void put_entry(struct ew_json *j, const struct entry *e)
{
    int64_t i;
    double x;
    if (!e->text)
        ew_json_null(j, e->name);
    else if (e->type == EW_FIELD_BOOL)
        ew_json_bool(j, e->name, strcmp(e->text, "true") == 0);
    else if (e->type == EW_FIELD_INT && ew_num_int(e->text, &i))
        ew_json_int(j, e->name, i);
    else if (e->type == EW_FIELD_FLOAT && ew_num_float(e->text, &x))
        ew_json_num(j, e->name, x);
    else if (e->type == EW_FIELD_SIZE)
        put_size(j, e);
    else
        ew_json_str(j, e->name, e->text);
}

static ew_err write_entries(struct ew_arena *a, const struct entry *list, int n, const char **out)
{
    struct ew_json j;
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    ew_json_init_text(&j, &text);
    j.compact = true;
    ew_json_object(&j, NULL);
    for (int i = 0; i < n; i++)
        put_entry(&j, &list[i]);
    ew_json_end(&j);
    EW_TRY(ew_json_finish(&j));
    text[strcspn(text, "\n")] = '\0';
    *out = ew_arena_strdup(a, text);
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for a job");
    return EW_OK;
}

ew_err ew_job_describe(struct ew_arena *a, const struct ew_job_command *c, struct ew_job_row *out)
{
    struct entry list[MAX_ENTRIES];
    int n = 0;
    ew_record_clear(EW_RECORD_JOB, out);
    EW_TRY(add_options(a, c->fields, c->opts, list, &n));
    EW_CHECK(n + c->n_more < MAX_ENTRIES, EW_ERR_LIMIT, "more than %d options", MAX_ENTRIES);
    list[n++] = (struct entry){"command", c->name, EW_FIELD_STR};
    for (int i = 0; i < c->n_more; i++)
        list[n++] = (struct entry){c->more[i].name, c->more[i].value, guess_type(c->more[i].value)};
    qsort(list, (size_t)n, sizeof(list[0]), by_name);
    for (int i = 1; i < n; i++)
        EW_CHECK(strcmp(list[i].name, list[i - 1].name) != 0, EW_ERR_INTERNAL,
                 "%s: setting %s twice", c->name, list[i].name);
    EW_TRY(write_entries(a, list, n, &out->options));
    char id[EW_RECORD_ID_CHARS];
    ew_record_id(out->options, id);
    out->id = ew_arena_strdup(a, id);
    out->command = c->name;
    out->network = ew_setting_find(c->more, c->n_more, "network");
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, "data") == 0)
            out->dataset = list[i].text;
    EW_CHECK(out->id, EW_ERR_MEMORY, "no memory for a job");
    return EW_OK;
}
