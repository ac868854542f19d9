/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing, printing and lookup in field tables. */
#include "base/field.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

#define LIST_CHARS 256 /* for the allowed values in a message */

static void *member(const struct ew_field *f, void *object)
{
    return (char *)object + f->offset;
}

static const void *member_const(const struct ew_field *f, const void *object)
{
    return (const char *)object + f->offset;
}

static bool has_range(const struct ew_field *f)
{
    return f->min < f->max || f->min > f->max;
}

/* Describes the field's values, for messages. */
static const char *expected(const struct ew_field *f)
{
    switch (f->type) {
    case EW_FIELD_BOOL:
        return "true or false";
    case EW_FIELD_INT:
        return "a whole number";
    case EW_FIELD_FLOAT:
        return "a number";
    case EW_FIELD_INTS:
        return "whole numbers with 'x' or ',' between them";
    case EW_FIELD_SIZE:
        return "bytes, as in 4096, 64K, 512M or 2G";
    case EW_FIELD_STR:
    case EW_FIELD_ENUM:
        break;
    }
    return "text";
}

static ew_err bad_text(const struct ew_field *f, const char *text)
{
    return ew_fail(EW_ERR_USAGE, "%s: '%.100s' is not %s", f->name, text, expected(f));
}

static ew_err check_range(const struct ew_field *f, double v, const char *text)
{
    if (!has_range(f) || (v >= f->min && v <= f->max))
        return EW_OK;
    char lo[EW_NUM_CHARS], hi[EW_NUM_CHARS];
    ew_num_text(f->min, lo);
    ew_num_text(f->max, hi);
    return ew_fail(EW_ERR_USAGE, "%s: '%.100s' is not between %s and %s", f->name, text, lo, hi);
}

static ew_err parse_bool(const struct ew_field *f, const char *text, bool *out)
{
    static const char *const words[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};
    for (size_t i = 0; i < EW_COUNT(words); i++)
        if (strcmp(text, words[i]) == 0) {
            *out = i % 2 == 1;
            return EW_OK;
        }
    return bad_text(f, text);
}

static ew_err parse_int(const struct ew_field *f, const char *text, int64_t *out)
{
    int64_t v;
    if (!ew_num_int(text, &v))
        return bad_text(f, text);
    EW_TRY(check_range(f, (double)v, text));
    *out = v;
    return EW_OK;
}

static ew_err parse_size(const struct ew_field *f, const char *text, int64_t *out)
{
    char digits[24];
    size_t n = strlen(text);
    if (n == 0 || n >= sizeof(digits))
        return bad_text(f, text);
    int shift = 0;
    switch (text[n - 1]) {
    case 'K':
    case 'k':
        shift = 10;
        break;
    case 'M':
    case 'm':
        shift = 20;
        break;
    case 'G':
    case 'g':
        shift = 30;
        break;
    default:
        break;
    }
    n -= shift != 0;
    memcpy(digits, text, n);
    digits[n] = '\0';
    int64_t v;
    if (!ew_num_int(digits, &v) || __builtin_mul_overflow(v, (int64_t)1 << shift, &v) || v < 0)
        return bad_text(f, text);
    EW_TRY(check_range(f, (double)v, text));
    *out = v;
    return EW_OK;
}

static ew_err parse_float(const struct ew_field *f, const char *text, double *out)
{
    double v;
    if (!ew_num_float(text, &v))
        return bad_text(f, text);
    EW_TRY(check_range(f, v, text));
    *out = v;
    return EW_OK;
}

static ew_err parse_ints(const struct ew_field *f, const char *text, struct ew_ints *out)
{
    struct ew_ints list = {0};
    const char *p = text;
    while (*p || p != text) {
        const size_t n = strcspn(p, "x,");
        char item[24];
        if (n == 0 || n >= sizeof(item))
            return bad_text(f, text);
        memcpy(item, p, n);
        item[n] = '\0';
        int64_t v;
        if (!ew_num_int(item, &v))
            return bad_text(f, text);
        EW_TRY(check_range(f, (double)v, item));
        EW_CHECK(list.n < EW_MAX_INTS, EW_ERR_USAGE, "%s: '%.100s' has more than %d numbers",
                 f->name, text, EW_MAX_INTS);
        list.v[list.n++] = v;
        p += n;
        if (!*p)
            break;
        p++;
    }
    *out = list;
    return EW_OK;
}

static ew_err parse_enum(const struct ew_field *f, const char *text, int *out)
{
    char list[LIST_CHARS] = "";
    size_t used = 0;
    for (int i = 0; f->choices[i]; i++) {
        if (strcmp(text, f->choices[i]) == 0) {
            *out = i;
            return EW_OK;
        }
        if (used < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
                                     f->choices[i]);
    }
    const bool yes = strcmp(text, "true") == 0, no = strcmp(text, "false") == 0;
    if ((yes || no) && f->choices[0] && f->choices[1] && strcmp(f->choices[0], "no") == 0 &&
        strcmp(f->choices[1], "yes") == 0) { /* values of fields that were BOOL in older files */
        *out = yes;
        return EW_OK;
    }
    return ew_fail(EW_ERR_USAGE, "%s: '%.100s' is not one of %s", f->name, text, list);
}

ew_err ew_field_parse(const struct ew_field *f, const char *text, void *object)
{
    void *at = member(f, object);
    switch (f->type) {
    case EW_FIELD_BOOL:
        return parse_bool(f, text, at);
    case EW_FIELD_INT:
        return parse_int(f, text, at);
    case EW_FIELD_FLOAT:
        return parse_float(f, text, at);
    case EW_FIELD_STR:
        *(const char **)at = text;
        return EW_OK;
    case EW_FIELD_ENUM:
        return parse_enum(f, text, at);
    case EW_FIELD_INTS:
        return parse_ints(f, text, at);
    case EW_FIELD_SIZE:
        return parse_size(f, text, at);
    }
    return ew_fail(EW_ERR_INTERNAL, "%s: field of unknown type %d", f->name, (int)f->type);
}

void ew_fields_default(const struct ew_field *table, void *object, size_t size)
{
    memset(object, 0, size);
    for (const struct ew_field *f = table; f && f->name; f++) {
        if (!f->def)
            continue;
        const ew_err err = ew_field_parse(f, f->def, object);
        EW_ASSERT(err == EW_OK); /* defaults must be valid */
        (void)err;
    }
}

void ew_fields_clear(const struct ew_field *table, void *object, size_t size)
{
    memset(object, 0, size);
    for (const struct ew_field *f = table; f && f->name; f++) {
        void *at = member(f, object);
        if (f->type == EW_FIELD_FLOAT)
            *(double *)at = NAN;
        else if (f->type == EW_FIELD_INT || f->type == EW_FIELD_SIZE)
            *(int64_t *)at = EW_INT_ABSENT;
        else if (f->type == EW_FIELD_ENUM)
            *(int *)at = -1;
    }
}

bool ew_field_absent(const struct ew_field *f, const void *object)
{
    const void *at = member_const(f, object);
    switch (f->type) {
    case EW_FIELD_INT:
    case EW_FIELD_SIZE:
        return *(const int64_t *)at == EW_INT_ABSENT;
    case EW_FIELD_FLOAT:
        return isnan(*(const double *)at);
    case EW_FIELD_STR:
        return !*(const char *const *)at;
    case EW_FIELD_ENUM:
        return *(const int *)at < 0;
    case EW_FIELD_BOOL:
    case EW_FIELD_INTS:
        break;
    }
    return false;
}

const struct ew_field *ew_field_find(const struct ew_field *table, const char *name)
{
    for (const struct ew_field *f = table; f && f->name; f++)
        if (strcmp(f->name, name) == 0 || (f->also && strcmp(f->also, name) == 0))
            return f;
    return NULL;
}

ew_err ew_fields_parse(const struct ew_field *table, char *line, void *object)
{
    char *save = NULL;
    for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        EW_CHECK(value, EW_ERR_ARG, "%s: has no value", word);
        *value++ = 0;
        const struct ew_field *f = ew_field_find(table, word);
        const char *near = f ? NULL : ew_field_nearest(table, word);
        EW_CHECK(f || !near, EW_ERR_ARG, "%s: no such field; did you mean %s?", word, near);
        EW_CHECK(f, EW_ERR_ARG, "%s: no such field", word);
        EW_TRY(ew_field_parse(f, value, object));
    }
    return EW_OK;
}

static int print_size(int64_t v, char *buf, size_t size)
{
    static const char unit[] = {'K', 'M', 'G'};
    int i = -1;
    while (i < 2 && v != 0 && v % 1024 == 0) {
        v /= 1024;
        i++;
    }
    return i < 0 ? snprintf(buf, size, "%lld", (long long)v)
                 : snprintf(buf, size, "%lld%c", (long long)v, unit[i]);
}

/* "2x3x4"; with commas if an entry is negative. */
static int print_ints(const struct ew_ints *list, char *buf, size_t size)
{
    char sep = 'x';
    for (int i = 0; i < list->n; i++)
        if (list->v[i] < 0)
            sep = ',';
    char all[EW_MAX_INTS * 21 + 1] = "";
    int used = 0;
    for (int i = 0; i < list->n; i++) {
        if (i)
            all[used++] = sep;
        used += snprintf(all + used, sizeof(all) - (size_t)used, "%lld", (long long)list->v[i]);
    }
    return snprintf(buf, size, "%s", all);
}

int ew_field_print(const struct ew_field *f, const void *object, char *buf, size_t size)
{
    const void *at = member_const(f, object);
    char number[EW_NUM_CHARS];
    const char *text = NULL;
    switch (f->type) {
    case EW_FIELD_BOOL:
        text = *(const bool *)at ? "true" : "false";
        break;
    case EW_FIELD_INT:
        return snprintf(buf, size, "%lld", (long long)*(const int64_t *)at);
    case EW_FIELD_FLOAT:
        ew_num_text(*(const double *)at, number);
        text = number;
        break;
    case EW_FIELD_STR:
        text = *(const char *const *)at;
        break;
    case EW_FIELD_ENUM:
        text = f->choices[*(const int *)at];
        break;
    case EW_FIELD_INTS:
        return print_ints(at, buf, size);
    case EW_FIELD_SIZE:
        return print_size(*(const int64_t *)at, buf, size);
    }
    return snprintf(buf, size, "%s", text ? text : "");
}

int ew_edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    const int na = (int)strnlen(a, LONGEST), nb = (int)strnlen(b, LONGEST);
    int row[LONGEST + 1]; /* row[j]: edits from the first i characters of a to the first j of b */
    for (int j = 0; j <= nb; j++)
        row[j] = j;
    for (int i = 1; i <= na; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            const int replace = diagonal + (a[i - 1] != b[j - 1]);
            const int insert = row[j - 1] + 1, delete = row[j] + 1;
            diagonal = row[j];
            row[j] = replace < insert ? replace : insert;
            row[j] = row[j] < delete ? row[j] : delete;
        }
    }
    return row[nb];
}

/* True if `initials` are those of a name's words: "lr" of "learning-rate". */
static bool is_initials(const char *initials, const char *name)
{
    for (; *initials && *name; initials++) {
        if (*initials != *name)
            return false;
        name += strcspn(name, "-_");
        name += strspn(name, "-_");
    }
    return !*initials && !*name;
}

/* Finds a field by names that other programs use: "batch-size", "num-workers", "iterations",
 * "learning-rate". */
static const char *same_beginning(const struct ew_field *table, const char *name)
{
    enum { SHORTEST = 4 };
    const char *best = NULL;
    size_t most = SHORTEST - 1;
    for (const struct ew_field *f = table; f && f->name; f++) {
        size_t n = 0;
        while (name[n] && name[n] == f->name[n])
            n++;
        if (strlen(f->name) >= SHORTEST && strstr(name, f->name))
            n = strlen(f->name);
        if (strlen(f->name) >= 2 && is_initials(f->name, name))
            n = strlen(name);
        if (n > most) {
            most = n;
            best = f->name;
        }
    }
    return best;
}

const char *ew_field_nearest(const struct ew_field *table, const char *name)
{
    const char *best = NULL;
    const int len = (int)strnlen(name, 64);
    int limit = len / 3 > 2 ? len / 3 : 2;
    for (const struct ew_field *f = table; f && f->name; f++) {
        const int d = ew_edit_distance(name, f->name);
        if (d <= limit && d < len && d < (int)strlen(f->name)) {
            best = f->name;
            limit = d - 1;
        }
    }
    return best ? best : same_beginning(table, name);
}
