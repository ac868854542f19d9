/* SPDX-License-Identifier: Apache-2.0 */
/* Records as CSV and JSON, by their field tables; ids and times as text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/file.h"
#include "base/num.h"
#include "record/record.h"

#define CELL_CHARS 512 /* of anything but text, which is taken as it is */

/* Spreadsheets take a text that begins so for a formula, and run it; a number may begin with a
 * sign. */
static bool is_formula(const char *text)
{
    double x;
    return *text && strchr("=+-@\t\r", *text) && text[1] && !ew_num_float(text, &x);
}

void ew_csv_cell(FILE *out, const char *text)
{
    const char *mark = is_formula(text) ? "'" : "";
    if (!strpbrk(text, ",\"\r\n")) {
        fprintf(out, "%s%s", mark, text);
        return;
    }
    fprintf(out, "\"%s", mark);
    for (const char *p = text; *p; p++) {
        if (*p == '"')
            putc('"', out);
        putc(*p, out);
    }
    putc('"', out);
}

void ew_record_csv_head(FILE *out, enum ew_record r)
{
    const struct ew_field *fields = ew_record_kind(r)->fields;
    for (const struct ew_field *f = fields; f->name; f++)
        fprintf(out, "%s%s", f == fields ? "" : ",", f->name);
    putc('\n', out);
}

static const char *text_of(const struct ew_field *f, const void *row)
{
    const void *at = (const char *)row + f->offset;
    return *(const char *const *)at;
}

void ew_record_csv_row(FILE *out, enum ew_record r, const void *row)
{
    const struct ew_field *fields = ew_record_kind(r)->fields;
    for (const struct ew_field *f = fields; f->name; f++) {
        if (f != fields)
            putc(',', out);
        if (ew_field_absent(f, row))
            continue;
        char text[CELL_CHARS];
        if (f->type != EW_FIELD_STR)
            ew_field_print(f, row, text, sizeof(text));
        ew_csv_cell(out, f->type == EW_FIELD_STR ? text_of(f, row) : text);
    }
    putc('\n', out);
}

static void json_field(struct ew_json *j, const struct ew_field *f, const void *row)
{
    const void *at = (const char *)row + f->offset;
    char text[CELL_CHARS];
    if (ew_field_absent(f, row)) {
        ew_json_null(j, f->name);
        return;
    }
    switch (f->type) {
    case EW_FIELD_BOOL:
        ew_json_bool(j, f->name, *(const bool *)at);
        break;
    case EW_FIELD_INT:
    case EW_FIELD_SIZE:
        ew_json_int(j, f->name, *(const int64_t *)at);
        break;
    case EW_FIELD_FLOAT:
        ew_json_num(j, f->name, *(const double *)at);
        break;
    case EW_FIELD_STR:
        ew_json_str(j, f->name, text_of(f, row));
        break;
    case EW_FIELD_ENUM:
    case EW_FIELD_INTS:
        ew_field_print(f, row, text, sizeof(text));
        ew_json_str(j, f->name, text);
        break;
    }
}

void ew_record_json(struct ew_json *j, enum ew_record r, const void *row)
{
    for (const struct ew_field *f = ew_record_kind(r)->fields; f->name; f++)
        json_field(j, f, row);
}

ew_err ew_record_json_line(FILE *out, enum ew_record r, const void *row)
{
    struct ew_json j;
    ew_json_init(&j, out);
    j.compact = true;
    ew_json_object(&j, NULL);
    ew_json_str(&j, "record", ew_record_kind(r)->name);
    ew_record_json(&j, r, row);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_run_new_uid(char out[EW_RUN_UID_CHARS])
{
    unsigned char bytes[(EW_RUN_UID_CHARS - 1) / 2];
    EW_CHECK(getrandom(bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes), EW_ERR_IO,
             "no random name for the run: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return EW_OK;
}

void ew_run_time_text(char out[EW_RUN_TIME_CHARS])
{
    const time_t now = time(NULL);
    struct tm t;
    gmtime_r(&now, &t);
    strftime(out, EW_RUN_TIME_CHARS, "%Y-%m-%dT%H:%M:%SZ", &t);
}

void ew_record_id(const char *text, char out[EW_RECORD_ID_CHARS])
{
    uint64_t h = 14695981039346656037u;
    for (const char *p = text; *p; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    snprintf(out, EW_RECORD_ID_CHARS, "%016llx", (unsigned long long)h);
}

/* All fields but the id itself. */
ew_err ew_machine_row_id(const struct ew_machine_row *m, char out[EW_RECORD_ID_CHARS])
{
    struct ew_machine_row rest = *m;
    char *text = NULL;
    size_t size = 0;
    rest.id = NULL;
    FILE *f = open_memstream(&text, &size);
    EW_CHECK(f, EW_ERR_MEMORY, "no memory for the machine");
    ew_record_csv_row(f, EW_RECORD_MACHINE, &rest);
    EW_CHECK(ew_memstream_close(f, &text), EW_ERR_MEMORY, "no memory for the machine");
    ew_record_id(text, out);
    free(text);
    return EW_OK;
}
