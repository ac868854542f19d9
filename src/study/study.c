/* SPDX-License-Identifier: Apache-2.0 */
/* Reading experiment files: the section [study], and words.  Job sections are expand.c's, the
 * section [published] is in study_published.c. */
#include "study/study.h"

#include <string.h>

#include "base/ini.h"
#include "base/num.h"

#define EW_EMBED_LIST "studies_embed.h"
#include "base/embed_table.h"

static const char *const order_words[] = {"file", "random", NULL};

/* The keys of [study]. */
struct head {
    const char *title, *about, *differs, *show, *sort, *block, *setup, *repeat;
    int order;
    int64_t seed;
    double cool_down, job_timeout;
};

#define HEAD_TEXT(member)                                                                          \
    {                                                                                              \
        .name = #member, .type = EW_FIELD_STR, .offset = offsetof(struct head, member)             \
    }

static const struct ew_field head_fields[] = {
    HEAD_TEXT(title),
    HEAD_TEXT(about),
    HEAD_TEXT(differs),
    HEAD_TEXT(show),
    HEAD_TEXT(sort),
    HEAD_TEXT(block),
    HEAD_TEXT(setup),
    {.name = "order",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct head, order),
     .choices = order_words,
     .def = "random"},
    {.name = "seed",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct head, seed),
     .min = 0,
     .max = 9e15,
     .def = "1"},
    HEAD_TEXT(repeat),
    {.name = "cool-down",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct head, cool_down),
     .min = 0,
     .max = 86400},
    {.name = "job-timeout",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct head, job_timeout),
     .min = 0,
     .max = EW_STUDY_MAX_S},
    EW_FIELD_END,
};

const char *ew_study_shipped(int i, const char **text)
{
    if (i < 0 || i >= (int)EW_COUNT(embedded))
        return NULL;
    *text = embedded[i].text;
    return embedded[i].file;
}

/* ---- Words ----------------------------------------------------------------------------------- */

ew_err ew_study_words(struct ew_arena *a, const char *text, const char ***out, int *n)
{
    char *copy = ew_arena_strdup(a, text);
    const char **words = ew_arena_array(a, strlen(text) / 2 + 2, sizeof(*words));
    EW_CHECK(copy && words, EW_ERR_MEMORY, "no memory for a study");
    *n = 0;
    for (char *p = copy;;) {
        p += strspn(p, " \t");
        if (!*p)
            break;
        const bool quoted = *p == '"';
        p += quoted;
        words[(*n)++] = p;
        p += strcspn(p, quoted ? "\"" : " \t");
        EW_CHECK(*p || !quoted, EW_ERR_FORMAT, "'%.60s': a quote is not closed", text);
        if (*p)
            *p++ = '\0';
    }
    *out = words;
    return EW_OK;
}

/* ---- [study] --------------------------------------------------------------------------------- */

/* "quick.epochs" is "epochs" of a quick run; *applies: the line counts in this kind of run. */
static const char *plain_key(const char *key, bool quick, bool *applies)
{
    const bool is_quick = strncmp(key, "quick.", 6) == 0;
    *applies = !is_quick || quick;
    return is_quick ? key + 6 : key;
}

/* Texts over several lines of one key are joined. */
static const char *join(struct ew_arena *a, const char *before, const char *more)
{
    return ew_arena_printf(a, "%s\n%s", before, more);
}

static ew_err read_head(struct ew_arena *a, const struct ew_study_file *f, bool quick,
                        struct head *h)
{
    ew_fields_default(head_fields, h, sizeof(*h));
    for (int pass = 0; pass < 2; pass++) { /* quick ones last: they win */
        bool seen[EW_COUNT(head_fields)] = {false};
        for (int i = 0; i < f->n; i++) {
            const struct ew_study_line *l = &f->lines[i];
            bool applies;
            if (strcmp(l->section, "study") != 0)
                continue;
            const char *key = plain_key(l->key, quick, &applies);
            if (!applies || (key != l->key) != pass)
                continue;
            const struct ew_field *field = ew_field_find(head_fields, key);
            EW_CHECK(field, EW_ERR_FORMAT, "%s:%d: [study] has no key '%s'", f->name, l->line, key);
            const char *value = l->value;
            if (field->type == EW_FIELD_STR && seen[field - head_fields]) {
                const void *at = (const char *)h + field->offset;
                value = join(a, *(const char *const *)at, l->value);
            }
            seen[field - head_fields] = true;
            EW_TRY(ew_fail_in(ew_field_parse(field, value, h), "%s:%d", f->name, l->line));
        }
    }
    return EW_OK;
}

/* "3", "per-device", "3 per-device". */
static ew_err read_repeat(struct ew_arena *a, const char *name, const char *text,
                          struct ew_study *s)
{
    const char **words;
    int n;
    EW_TRY(ew_study_words(a, text ? text : "1", &words, &n));
    bool good = n == 1 || n == 2;
    s->repeat = 1;
    for (int i = 0; i < n && good; i++) {
        if (i == n - 1 && strcmp(words[i], "per-device") == 0)
            s->per_device = true;
        else
            good = i == 0 && ew_num_int(words[i], &s->repeat);
    }
    good &= s->repeat >= 1 && s->repeat <= 10000;
    EW_CHECK(good, EW_ERR_FORMAT,
             "%s: repeat '%s': a number from 1 to 10000, 'per-device', or both", name, text);
    return EW_OK;
}

/* ---- The file -------------------------------------------------------------------------------- */

static ew_err read_lines(struct ew_arena *a, const char *name, char *text,
                         struct ew_study_file *out)
{
    size_t n = 1;
    for (const char *p = text; *p; p++)
        n += *p == '\n';
    struct ew_study_line *lines = ew_arena_array(a, n, sizeof(*lines));
    EW_CHECK(lines, EW_ERR_MEMORY, "no memory for a study");
    *out = (struct ew_study_file){.name = name, .lines = lines};
    struct ew_ini ini;
    ew_ini_init(&ini, text, name);
    while (ew_ini_next(&ini)) {
        if (!ini.key)
            continue;
        EW_CHECK(*ini.section, EW_ERR_FORMAT, "%s:%d: a key before the first [section]", name,
                 ini.line);
        lines[out->n++] = (struct ew_study_line){ini.section, ini.key, ini.value, ini.line};
    }
    return ini.err;
}

ew_err ew_study_parse(struct ew_arena *a, const char *name, char *text,
                      const struct ew_study_opts *o, struct ew_study *out)
{
    struct ew_study_file f;
    struct head h;
    EW_TRY(read_lines(a, name, text, &f));
    EW_TRY(read_head(a, &f, o->quick, &h));
    *out = (struct ew_study){
        .name = name,
        .title = h.title ? h.title : name,
        .about = h.about,
        .differs = h.differs,
        .show = h.show,
        .sort = h.sort,
        .setup = h.setup,
        .seed = h.seed,
        .cool_down_s = h.cool_down,
        .timeout_s = h.job_timeout,
        .random = h.order == 1 && o->n_advised == 0, /* advised modes are ordered by their gain */
        .quick = o->quick};
    EW_TRY(read_repeat(a, name, h.repeat, out));
    if (o->repeat)
        out->repeat = o->repeat;
    EW_TRY(ew_study_published(a, &f, out));
    EW_TRY(ew_study_expand(a, &f, o, out));
    return ew_study_arrange(a, o, h.block, out);
}
