/* SPDX-License-Identifier: Apache-2.0 */
/* Tables from field tables: creates missing tables and adds columns of new fields. */
#include <stdio.h>

#include "store/store_impl.h"

/* Older libraries on boards create ordinary tables with the same columns. */
#define STRICT_SINCE 3037000

const struct ew_table_form *ew_table_form(enum ew_record r)
{
    static const struct ew_table_form forms[EW_RECORD_N] = {
        [EW_RECORD_MACHINE] = {.key = "id", .first_stays = true},
        [EW_RECORD_JOB] = {.key = "id", .first_stays = true},
        [EW_RECORD_RUN] = {.key = "uid"},
        [EW_RECORD_EPOCH] = {.of_run = true, .key = "run, epoch"},
        [EW_RECORD_BATCH] = {.of_run = true, .key = "run, epoch, batch"},
        [EW_RECORD_SAMPLE] = {.of_run = true},
        [EW_RECORD_METRIC] = {.of_run = true, .key = "run, name, quality"},
        [EW_RECORD_STUDY] = {.key = "name"},
        [EW_RECORD_PUBLISHED] = {.key = "study, metric, settings, board"},
    };
    return &forms[r];
}

static const char *column_type(const struct ew_field *f)
{
    switch (f->type) {
    case EW_FIELD_BOOL:
    case EW_FIELD_INT:
    case EW_FIELD_SIZE:
        return "INTEGER";
    case EW_FIELD_FLOAT:
        return "REAL";
    case EW_FIELD_STR:
    case EW_FIELD_ENUM:
    case EW_FIELD_INTS:
        break;
    }
    return "TEXT";
}

int ew_schema_version(void)
{
    int columns = 0;
    for (int r = 0; r < EW_RECORD_N; r++)
        for (const struct ew_field *f = ew_record_kind((enum ew_record)r)->fields; f->name; f++)
            columns++;
    return EW_STORE_LAYOUT * 10000 + columns;
}

const char *ew_schema_columns(enum ew_record r, struct ew_arena *a)
{
    const struct ew_field *fields = ew_record_kind(r)->fields;
    const char *text = ew_table_form(r)->of_run ? "run" : "";
    for (const struct ew_field *f = fields; f->name && text; f++)
        text = ew_arena_printf(a, "%s%s\"%s\"", text, *text ? ", " : "", f->name);
    return text;
}

static ew_err create(struct ew_store *s, enum ew_record r, struct ew_arena *a)
{
    const struct ew_record_kind *kind = ew_record_kind(r);
    const struct ew_table_form *form = ew_table_form(r);
    const char *text = ew_arena_printf(
        a, "CREATE TABLE IF NOT EXISTS \"%s\"(%s%s", kind->name,
        r == EW_RECORD_RUN ? "id INTEGER PRIMARY KEY, " : "",
        form->of_run ? "run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE, " : "");
    for (const struct ew_field *f = kind->fields; f->name && text; f++)
        text = ew_arena_printf(a, "%s%s\"%s\" %s", text, f == kind->fields ? "" : ", ", f->name,
                               column_type(f));
    if (form->key && text)
        text = ew_arena_printf(a, "%s, %s(%s)", text, r == EW_RECORD_RUN ? "UNIQUE" : "PRIMARY KEY",
                               form->key);
    if (text)
        text = ew_arena_printf(a, "%s)%s", text,
                               sqlite3_libversion_number() >= STRICT_SINCE ? " STRICT" : "");
    EW_CHECK(text, EW_ERR_MEMORY, "no memory for the schema");
    return ew_store_exec(s, text);
}

/* Adds columns of fields that are newer than the file. */
static ew_err widen(struct ew_store *s, enum ew_record r, struct ew_arena *a)
{
    const struct ew_record_kind *kind = ew_record_kind(r);
    for (const struct ew_field *f = kind->fields; f->name; f++) {
        bool there;
        int64_t n;
        EW_TRY(ew_store_int(s, &n, &there, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2",
                            "ss", kind->name, f->name));
        if (there)
            continue;
        const char *text = ew_arena_printf(a, "ALTER TABLE \"%s\" ADD COLUMN \"%s\" %s", kind->name,
                                           f->name, column_type(f));
        EW_CHECK(text, EW_ERR_MEMORY, "no memory for the schema");
        EW_TRY(ew_store_exec(s, text));
    }
    return EW_OK;
}

static ew_err upgrade(struct ew_store *s, struct ew_arena *a)
{
    for (int r = 0; r < EW_RECORD_N; r++) {
        EW_TRY(create(s, (enum ew_record)r, a));
        EW_TRY(widen(s, (enum ew_record)r, a));
    }
    EW_TRY(ew_store_exec(s, "CREATE INDEX IF NOT EXISTS sample_by_run ON sample(run, channel, t_s);"
                            "CREATE INDEX IF NOT EXISTS run_by_job ON run(job);"
                            "CREATE INDEX IF NOT EXISTS run_by_study ON run(study)"));
    char version[64];
    snprintf(version, sizeof(version), "PRAGMA user_version = %d", ew_schema_version());
    return ew_store_exec(s, version);
}

ew_err ew_schema_upgrade(struct ew_store *s)
{
    struct ew_arena a;
    ew_arena_init(&a);
    const ew_err err = upgrade(s, &a);
    ew_arena_fini(&a);
    return err;
}
