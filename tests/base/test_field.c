/* SPDX-License-Identifier: Apache-2.0 */
/* Field tables: parsing, printing, defaults, nearest names. */
#include "base/field.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "ew_test.h"

static const char *const modes[] = {"same", "valid", "full", NULL};

struct opts {
    bool quick;
    int64_t batch, bytes;
    double rate;
    const char *out;
    int mode;
    struct ew_ints dims;
};

static const struct ew_field table[] = {
    {.name = "quick", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, quick)},
    {.name = "batch",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct opts, batch),
     .def = "16",
     .min = 1,
     .max = 4096},
    {.name = "memory-limit", .type = EW_FIELD_SIZE, .offset = offsetof(struct opts, bytes)},
    {.name = "rate",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct opts, rate),
     .def = "0.01",
     .min = -1,
     .max = 1},
    {.name = "out", .type = EW_FIELD_STR, .offset = offsetof(struct opts, out)},
    {.name = "mode",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct opts, mode),
     .def = "valid",
     .choices = modes},
    {.name = "dims", .type = EW_FIELD_INTS, .offset = offsetof(struct opts, dims), .def = "3x4"},
    EW_FIELD_END,
};

static ew_err set(struct opts *o, const char *name, const char *text)
{
    return ew_field_parse(ew_field_find(table, name), text, o);
}

static void defaults(void)
{
    struct opts o;
    memset(&o, 0xff, sizeof(o));
    ew_fields_default(table, &o, sizeof(o));
    EW_EXPECT(!o.quick);
    EW_EXPECT_INT(o.batch, 16);
    EW_EXPECT_INT(o.bytes, 0);
    EW_EXPECT_NEAR(o.rate, 0.01, 0);
    EW_EXPECT_SAME(o.out, NULL);
    EW_EXPECT_INT(o.mode, 1);
    EW_EXPECT_INT(o.dims.n, 2);
    EW_EXPECT_INT(o.dims.v[0], 3);
    EW_EXPECT_INT(o.dims.v[1], 4);
}

static void whole_numbers(void)
{
    struct opts o = {0};
    EW_EXPECT_OK(set(&o, "batch", "4096"));
    EW_EXPECT_INT(o.batch, 4096);
    static const char *const bad[] = {
        "", "1x", " 1", "1 ", "0x10", "1.0", "1e3", "-", "+-1", "--1", "99999999999999999999"};
    for (size_t i = 0; i < EW_COUNT(bad); i++)
        EW_EXPECT_ERR(set(&o, "batch", bad[i]), EW_ERR_USAGE, "is not a whole number");
    EW_EXPECT_ERR(set(&o, "batch", "4097"), EW_ERR_USAGE,
                  "batch: '4097' is not between 1 and 4096");
    EW_EXPECT_ERR(set(&o, "batch", "0"), EW_ERR_USAGE, "between");
    EW_EXPECT_INT(o.batch, 4096); /* a failure leaves the value unchanged */
    int64_t v = 0;
    EW_EXPECT(ew_num_int("-9223372036854775808", &v));
    EW_EXPECT_INT(v, INT64_MIN);
    EW_EXPECT(!ew_num_int("9223372036854775808", &v));
}

static void sizes(void)
{
    struct opts o = {0};
    EW_EXPECT_OK(set(&o, "memory-limit", "512M"));
    EW_EXPECT_INT(o.bytes, (int64_t)512 << 20);
    EW_EXPECT_OK(set(&o, "memory-limit", "3k"));
    EW_EXPECT_INT(o.bytes, 3072);
    EW_EXPECT_OK(set(&o, "memory-limit", "2G"));
    EW_EXPECT_INT(o.bytes, (int64_t)2 << 30);
    EW_EXPECT_OK(set(&o, "memory-limit", "17"));
    EW_EXPECT_INT(o.bytes, 17);
    static const char *const bad[] = {"", "K", "1KB", "-1K", "1.5G", "9999999999G", "1T"};
    for (size_t i = 0; i < EW_COUNT(bad); i++)
        EW_EXPECT_ERR(set(&o, "memory-limit", bad[i]), EW_ERR_USAGE, "bytes, as in");
}

static void floats(void)
{
    struct opts o = {0};
    EW_EXPECT_OK(set(&o, "rate", "-2.5e-1"));
    EW_EXPECT_NEAR(o.rate, -0.25, 0);
    static const char *const bad[] = {"", "nan", "0x1p-1", "1,5", "0.5 ", "1e999", "infinity", "."};
    for (size_t i = 0; i < EW_COUNT(bad); i++)
        EW_EXPECT_ERR(set(&o, "rate", bad[i]), EW_ERR_USAGE, "is not a number");
    EW_EXPECT_ERR(set(&o, "rate", "1.01"), EW_ERR_USAGE, "not between -1 and 1");
    EW_EXPECT_ERR(set(&o, "rate", "inf"), EW_ERR_USAGE, "not between -1 and 1");
    double v = 0;
    EW_EXPECT(ew_num_float("-inf", &v) && isinf(v) && v < 0);
    EW_EXPECT(ew_num_ms("16.7ms", &v) && fabs(v - 16.7) < 1e-12);
    EW_EXPECT(ew_num_ms("20us", &v) && fabs(v - 0.02) < 1e-12);
    EW_EXPECT(ew_num_ms("1s", &v) && fabs(v - 1000) < 1e-12);
    EW_EXPECT(!ew_num_ms("5", &v) && !ew_num_ms("ms", &v) && !ew_num_ms("-1s", &v));
}

static void bools_and_choices(void)
{
    struct opts o = {0};
    EW_EXPECT_OK(set(&o, "quick", "yes"));
    EW_EXPECT(o.quick);
    EW_EXPECT_OK(set(&o, "quick", "off"));
    EW_EXPECT(!o.quick);
    EW_EXPECT_ERR(set(&o, "quick", "maybe"), EW_ERR_USAGE, "quick: 'maybe' is not true or false");
    EW_EXPECT_OK(set(&o, "mode", "full"));
    EW_EXPECT_INT(o.mode, 2);
    EW_EXPECT_ERR(set(&o, "mode", "fulll"), EW_ERR_USAGE,
                  "mode: 'fulll' is not one of same, valid, full");
}

static void lists(void)
{
    struct opts o = {0};
    EW_EXPECT_OK(set(&o, "dims", "224x224x3"));
    EW_EXPECT_INT(o.dims.n, 3);
    EW_EXPECT_INT(o.dims.v[2], 3);
    EW_EXPECT_OK(set(&o, "dims", "-1,2,-3"));
    EW_EXPECT_INT(o.dims.n, 3);
    EW_EXPECT_INT(o.dims.v[0], -1);
    EW_EXPECT_INT(o.dims.v[2], -3);
    EW_EXPECT_OK(set(&o, "dims", ""));
    EW_EXPECT_INT(o.dims.n, 0);
    EW_EXPECT_OK(set(&o, "dims", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"));
    EW_EXPECT_INT(o.dims.n, EW_MAX_INTS);
    EW_EXPECT_ERR(set(&o, "dims", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"), EW_ERR_USAGE,
                  "more than 16 numbers");
    static const char *const bad[] = {
        "x", "1x", "x1", "1,,2", "1x2y", "1 x 2", "99999999999999999999"};
    for (size_t i = 0; i < EW_COUNT(bad); i++)
        EW_EXPECT_ERR(set(&o, "dims", bad[i]), EW_ERR_USAGE, "whole numbers with");
}

static void prints_what_it_reads(void)
{
    static const char *const cases[][2] = {
        {"quick", "true"},     {"batch", "77"},   {"memory-limit", "1025"}, {"memory-limit", "64M"},
        {"memory-limit", "0"}, {"rate", "0.1"},   {"rate", "-1e-300"},      {"out", "a b.onnx"},
        {"mode", "same"},      {"dims", "1x2x3"}, {"dims", "1,-2,3"},       {"dims", ""}};
    for (size_t i = 0; i < EW_COUNT(cases); i++) {
        struct opts o = {0};
        char buf[64];
        EW_EXPECT_OK(set(&o, cases[i][0], cases[i][1]));
        const int n = ew_field_print(ew_field_find(table, cases[i][0]), &o, buf, sizeof(buf));
        EW_EXPECT_STR(buf, cases[i][1]);
        EW_EXPECT_INT(n, strlen(cases[i][1]));
    }
    struct opts o = {.batch = 123456};
    char tiny[4];
    EW_EXPECT_INT(ew_field_print(ew_field_find(table, "batch"), &o, tiny, sizeof(tiny)), 6);
    EW_EXPECT_STR(tiny, "123");
    EW_EXPECT_INT(ew_field_print(ew_field_find(table, "out"), &o, tiny, sizeof(tiny)), 0);
}

static void numbers_round_trip(void)
{
    static const double values[] = {0.0,
                                    -0.0,
                                    1.0 / 3,
                                    0.1,
                                    1e22,
                                    5e-324,
                                    1.7976931348623157e308,
                                    -2.5,
                                    123456.75,
                                    1e-5,
                                    3,
                                    1e300,
                                    2.2250738585072014e-308};
    for (size_t i = 0; i < EW_COUNT(values); i++) {
        char text[EW_NUM_CHARS];
        double back = 1;
        const int n = ew_num_text(values[i], text);
        EW_EXPECT_INT(n, strlen(text));
        EW_EXPECT(ew_num_float(text, &back));
        EW_EXPECT(memcmp(&back, &values[i], sizeof(back)) == 0);
    }
    char text[EW_NUM_CHARS];
    ew_num_text(0.1, text);
    EW_EXPECT_STR(text, "0.1");
}

/* The fast formatting of times gives the same text as printf. */
static void times_as_text(void)
{
    struct ew_rng r = {.seed = 7};
    for (int i = 0; i < 20000; i++) {
        const uint64_t below = i % 3 == 0 ? 100 : i % 3 == 1 ? 3000000 : 1000000000000000;
        const double x = (double)ew_rng_next_below(&r, below) / 1e9;
        char text[EW_NUM_CHARS], want[EW_NUM_CHARS];
        snprintf(want, sizeof(want), "%.15g", x);
        EW_EXPECT_INT(ew_num_text(x, text), strlen(want));
        EW_EXPECT_STR(text, want);
    }
}

/* A program that embeds the library may use a locale with decimal commas. */
static void locale_does_not_matter(void)
{
    char command[256];
    snprintf(command, sizeof(command), "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
             ew_test_dir());
    setenv("LOCPATH", ew_test_dir(), 1);
    if (system(command) != 0 || !setlocale(LC_ALL, "de_DE.UTF-8"))
        EW_SKIP("no locale with a decimal comma can be made (package locales)");
    EW_EXPECT_STR(localeconv()->decimal_point, ",");
    double v = 0;
    char text[EW_NUM_CHARS];
    EW_EXPECT(ew_num_float("1.5", &v));
    EW_EXPECT_NEAR(v, 1.5, 0);
    ew_num_text(1.5, text);
    setlocale(LC_ALL, "C");
    EW_EXPECT_STR(text, "1.5");
}

static void whole_lines(void)
{
    struct opts o;
    ew_fields_default(table, &o, sizeof(o));
    char line[] = "mode=full  dims=1,-2 out=a.csv";
    EW_EXPECT_OK(ew_fields_parse(table, line, &o));
    EW_EXPECT_INT(o.mode, 2);
    EW_EXPECT_INT(o.dims.v[1], -2);
    EW_EXPECT_INT(o.batch, 16);
    EW_EXPECT_STR(o.out, "a.csv");
    char unknown[] = "mode=full colour=red", bare[] = "mode", none[] = "";
    EW_EXPECT_ERR(ew_fields_parse(table, unknown, &o), EW_ERR_ARG, "colour");
    EW_EXPECT_ERR(ew_fields_parse(table, bare, &o), EW_ERR_ARG, "mode: has no value");
    EW_EXPECT_OK(ew_fields_parse(NULL, none, &o));
}

static void nearest(void)
{
    static const struct ew_field others[] = {{.name = "lr"}, {.name = "iters"}, EW_FIELD_END};
    EW_EXPECT_STR(ew_field_nearest(table, "bacth"), "batch");
    EW_EXPECT_STR(ew_field_nearest(table, "memorylimit"), "memory-limit");
    EW_EXPECT_STR(ew_field_nearest(table, "batch"), "batch");
    EW_EXPECT_STR(ew_field_nearest(table, "batch-size"), "batch");
    EW_EXPECT_STR(ew_field_nearest(table, "train-batch-sizes"), "batch");
    EW_EXPECT_STR(ew_field_nearest(table, "memory-of-the-run"), "memory-limit");
    EW_EXPECT_STR(ew_field_nearest(others, "learning-rate"), "lr");
    EW_EXPECT_STR(ew_field_nearest(others, "iterations"), "iters");
    EW_EXPECT_SAME(ew_field_nearest(others, "learning-rates-x"), NULL);
    EW_EXPECT_SAME(ew_field_nearest(table, "zzzzzz"), NULL);
    EW_EXPECT_SAME(ew_field_nearest(table, ""), NULL);
    EW_EXPECT_SAME(ew_field_nearest(table, "q"), NULL);
    EW_EXPECT_INT(ew_edit_distance("kitten", "sitting"), 3);
    EW_EXPECT_INT(ew_edit_distance("", "abc"), 3);
    EW_EXPECT_INT(ew_edit_distance("same", "same"), 0);
    EW_EXPECT_SAME(ew_field_find(table, "nothing"), NULL);
}

EW_TEST_MAIN(EW_TEST(defaults), EW_TEST(whole_numbers), EW_TEST(sizes), EW_TEST(floats),
             EW_TEST(bools_and_choices), EW_TEST(lists), EW_TEST(prints_what_it_reads),
             EW_TEST(numbers_round_trip), EW_TEST(times_as_text), EW_TEST(locale_does_not_matter),
             EW_TEST(whole_lines), EW_TEST(nearest))
