/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer: nesting, escapes, numbers, misuse. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ew_test.h"

static void nests(void)
{
    struct ew_json j;
    char *text;
    ew_json_init_text(&j, &text);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", "lenet5");
    ew_json_array(&j, "dims");
    ew_json_int(&j, NULL, 28);
    ew_json_int(&j, NULL, -1);
    ew_json_end(&j);
    ew_json_object(&j, "none");
    ew_json_end(&j);
    ew_json_bool(&j, "exact", true);
    ew_json_null(&j, "power");
    ew_json_str(&j, "reason", NULL);
    ew_json_end(&j);
    EW_EXPECT_OK(ew_json_finish(&j));
    EW_EXPECT_STR(text, "{\n"
                        "  \"name\": \"lenet5\",\n"
                        "  \"dims\": [\n"
                        "    28,\n"
                        "    -1\n"
                        "  ],\n"
                        "  \"none\": {},\n"
                        "  \"exact\": true,\n"
                        "  \"power\": null,\n"
                        "  \"reason\": null\n"
                        "}\n");
    free(text);
}

static void compact(void)
{
    struct ew_json j;
    char *text;
    ew_json_init_text(&j, &text);
    j.compact = true;
    ew_json_array(&j, NULL);
    for (int i = 0; i < 2; i++) {
        ew_json_object(&j, NULL);
        ew_json_int(&j, "i", i);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    EW_EXPECT_OK(ew_json_finish(&j));
    EW_EXPECT_STR(text, "[{\"i\":0},{\"i\":1}]\n");
    free(text);
}

static void expect_value(void (*put)(struct ew_json *, const void *), const void *v,
                         const char *want)
{
    struct ew_json j;
    char *text;
    ew_json_init_text(&j, &text);
    put(&j, v);
    EW_EXPECT_OK(ew_json_finish(&j));
    EW_EXPECT_STR(text, want);
    free(text);
}

static void put_str(struct ew_json *j, const void *v)
{
    ew_json_str(j, NULL, v);
}

static void put_num(struct ew_json *j, const void *v)
{
    ew_json_num(j, NULL, *(const double *)v);
}

static void escapes(void)
{
    expect_value(put_str, "a\"b\\c/d", "\"a\\\"b\\\\c/d\"\n");
    expect_value(put_str, "\n\r\t\b\f\x01\x1f\x7f", "\"\\n\\r\\t\\b\\f\\u0001\\u001f\\u007f\"\n");
    expect_value(put_str, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
                 "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"\n");
    /* Invalid UTF-8: lone continuation, overlong, surrogate, beyond U+10FFFF, truncated. */
    expect_value(put_str, "x\x80y", "\"x\\ufffdy\"\n");
    expect_value(put_str, "\xc0\xaf", "\"\\ufffd\\ufffd\"\n");
    expect_value(put_str, "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"\n");
    expect_value(put_str, "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"\n");
    expect_value(put_str, "\xe2\x82", "\"\\ufffd\\ufffd\"\n");
}

static void numbers(void)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0.1, "0.1\n"},       {1e300, "1e+300\n"},     {1.0 / 3, "0.3333333333333333\n"},
                 {-2, "-2\n"},         {(double)NAN, "null\n"}, {HUGE_VAL, "null\n"},
                 {-HUGE_VAL, "null\n"}};
    for (size_t i = 0; i < EW_COUNT(cases); i++)
        expect_value(put_num, &cases[i].v, cases[i].text);
}

static void misuse_is_reported(void)
{
    struct ew_json j;
    char *text;
    ew_json_init_text(&j, &text);
    ew_json_object(&j, NULL);
    ew_json_int(&j, NULL, 1);
    ew_json_end(&j);
    EW_EXPECT_ERR(ew_json_finish(&j), EW_ERR_INTERNAL, "without a key");
    EW_EXPECT_SAME(text, NULL);

    ew_json_init_text(&j, &text);
    ew_json_array(&j, NULL);
    EW_EXPECT_ERR(ew_json_finish(&j), EW_ERR_INTERNAL, "still open");

    ew_json_init_text(&j, &text);
    ew_json_end(&j);
    EW_EXPECT_ERR(ew_json_finish(&j), EW_ERR_INTERNAL, "without a beginning");

    ew_json_init_text(&j, &text);
    for (int i = 0; i < 65; i++)
        ew_json_array(&j, NULL);
    EW_EXPECT_ERR(ew_json_finish(&j), EW_ERR_LIMIT, "deeper than 64");
}

static void full_disk_is_reported(void)
{
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        EW_SKIP("no /dev/full here");
    struct ew_json j;
    ew_json_init(&j, full);
    ew_json_int(&j, NULL, 1);
    EW_EXPECT_ERR(ew_json_finish(&j), EW_ERR_IO, "writing JSON");
    fclose(full);
}

EW_TEST_MAIN(EW_TEST(nests), EW_TEST(compact), EW_TEST(escapes), EW_TEST(numbers),
             EW_TEST(misuse_is_reported), EW_TEST(full_disk_is_reported))
