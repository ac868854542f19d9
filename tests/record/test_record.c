/* SPDX-License-Identifier: Apache-2.0 */
/* Records: every field of every table has the right absent value, format and name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ew_test.h"
#include "record/record.h"

union any_row {
    struct ew_machine_row machine;
    struct ew_job_row job;
    struct ew_run_row run;
    struct ew_epoch_row epoch;
    struct ew_batch_row batch;
    struct ew_sample_row sample;
    struct ew_metric_row metric;
    struct ew_study_row study;
    struct ew_published_row published;
};

/* A table with a wrong offset or a duplicate name would silently corrupt files. */
static void tables_are_sound(void)
{
    for (int r = 0; r < EW_RECORD_N; r++) {
        const struct ew_record_kind *k = ew_record_kind((enum ew_record)r);
        EW_EXPECT(k->size <= sizeof(union any_row));
        for (const struct ew_field *f = k->fields; f->name; f++) {
            EW_EXPECT(f->offset < k->size);
            EW_EXPECT(f->help != NULL);
            EW_EXPECT(strspn(f->name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(f->name));
            for (const struct ew_field *g = k->fields; g < f; g++) {
                EW_EXPECT(strcmp(g->name, f->name) != 0);
                EW_EXPECT(g->offset != f->offset);
            }
        }
    }
}

static void cleared_is_absent(void)
{
    union any_row row;
    for (int r = 0; r < EW_RECORD_N; r++) {
        memset(&row, 0x5a, sizeof(row));
        ew_record_clear((enum ew_record)r, &row);
        for (const struct ew_field *f = ew_record_kind((enum ew_record)r)->fields; f->name; f++)
            if (f->type != EW_FIELD_BOOL && !ew_field_absent(f, &row))
                EW_FAIL("%s.%s is there", ew_record_kind((enum ew_record)r)->name, f->name);
    }
}

static char *csv_of(enum ew_record r, const void *row)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ew_record_csv_head(out, r);
    ew_record_csv_row(out, r, row);
    fclose(out);
    return text;
}

static void csv_has_empty_cells(void)
{
    struct ew_sample_row s;
    ew_record_clear(EW_RECORD_SAMPLE, &s);
    s.t_s = 0.25;
    s.channel = "power,\"in\"";
    EW_CLEANUP(ew_free_ptr) char *text = csv_of(EW_RECORD_SAMPLE, &s);
    EW_EXPECT_STR(text, "t_s,channel,value,unit,quality\n0.25,\"power,\"\"in\"\"\",,,\n");

    s.value = 0;
    s.unit = "W";
    s.quality = EW_QUALITY_DERIVED;
    EW_CLEANUP(ew_free_ptr) char *more = csv_of(EW_RECORD_SAMPLE, &s);
    EW_EXPECT_HAS(more, "\"power,\"\"in\"\"\",0,W,derived\n");
}

static void json_line_has_nulls(void)
{
    struct ew_metric_row m;
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = "latency";
    m.value = 1.5;
    m.quality = EW_QUALITY_MEASURED;
    m.n = 80;
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    EW_EXPECT_OK(ew_record_json_line(out, EW_RECORD_METRIC, &m));
    fclose(out);
    EW_EXPECT_STR(text, "{\"record\":\"metric\",\"name\":\"latency\",\"value\":1.5,\"unit\":null,"
                        "\"source\":null,\"quality\":\"measured\",\"n\":80,\"spread\":null,"
                        "\"lowest\":null,\"highest\":null,\"better\":null}\n");
}

static void measures_say_which_way(void)
{
    const struct ew_field *epoch = ew_record_kind(EW_RECORD_EPOCH)->fields;
    EW_EXPECT_INT(ew_field_find(epoch, "wall_s")->better, EW_BETTER_LOWER);
    EW_EXPECT_INT(ew_field_find(epoch, "f1")->better, EW_BETTER_HIGHER);
    EW_EXPECT_STR(ew_field_find(epoch, "energy_j")->unit, "J");
}

static void ids(void)
{
    char a[EW_RECORD_ID_CHARS], b[EW_RECORD_ID_CHARS];
    ew_record_id("", a); /* the offset basis of FNV-1a */
    EW_EXPECT_STR(a, "cbf29ce484222325");
    ew_record_id("a", a); /* published test value */
    EW_EXPECT_STR(a, "af63dc4c8601ec8c");
    ew_record_id("b", b);
    EW_EXPECT(strcmp(a, b) != 0);

    char u[EW_RUN_UID_CHARS], v[EW_RUN_UID_CHARS], t[EW_RUN_TIME_CHARS];
    EW_EXPECT_OK(ew_run_new_uid(u));
    EW_EXPECT_OK(ew_run_new_uid(v));
    EW_EXPECT_INT(strlen(u), EW_RUN_UID_CHARS - 1);
    EW_EXPECT(strcmp(u, v) != 0);
    ew_run_time_text(t);
    EW_EXPECT_INT(strlen(t), 20);
}

/* A label "=cmd|..." would be executed by a spreadsheet; numbers keep their sign. */
static void csv_has_no_formulas(void)
{
    static const char *const cells[][2] = {
        {"=1+1", "'=1+1"},
        {"@SUM(a)", "'@SUM(a)"},
        {"-2+3", "'-2+3"},
        {"+a", "'+a"},
        {"=a,\"b", "\"'=a,\"\"b\""},
        {"-0.5", "-0.5"},
        {"-1e-9", "-1e-9"},
        {"-", "-"},
        {"a=b", "a=b"},
        {"", ""},
    };
    for (size_t i = 0; i < EW_COUNT(cells); i++) {
        EW_CLEANUP(ew_free_ptr) char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        if (!EW_EXPECT(out))
            return;
        ew_csv_cell(out, cells[i][0]);
        fclose(out);
        EW_EXPECT_STR(text, cells[i][1]);
    }
}

EW_TEST_MAIN(EW_TEST(csv_has_no_formulas), EW_TEST(tables_are_sound), EW_TEST(cleared_is_absent),
             EW_TEST(csv_has_empty_cells), EW_TEST(json_line_has_nulls),
             EW_TEST(measures_say_which_way), EW_TEST(ids))
