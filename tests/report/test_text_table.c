/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and numbers for the terminal. */
#include "report/text_table.h"

#include <stdlib.h>

#include "ew_test.h"

static void numbers(void)
{
    char buf[EW_TEXT_CHARS];
    EW_EXPECT_STR(ew_text_count(0, buf), "0");
    EW_EXPECT_STR(ew_text_count(999, buf), "999");
    EW_EXPECT_STR(ew_text_count(1000, buf), "1,000");
    EW_EXPECT_STR(ew_text_count(25557032, buf), "25,557,032");
    EW_EXPECT_STR(ew_text_count(-123456, buf), "-123,456");
    EW_EXPECT_STR(ew_text_count(INT64_MIN, buf), "-9,223,372,036,854,775,808");
    EW_EXPECT_STR(ew_text_bytes(0, buf), "0 B");
    EW_EXPECT_STR(ew_text_bytes(1023, buf), "1023 B");
    EW_EXPECT_STR(ew_text_bytes(1536, buf), "1.5 KiB");
    EW_EXPECT_STR(ew_text_bytes(102440608, buf), "97.7 MiB");
    EW_EXPECT_STR(ew_text_bytes(INT64_MAX, buf), "8192.0 PiB");
}

static void columns(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    struct ew_table t;
    ew_table_init(&t, "lrl");
    ew_table_cell(&t, "layer");
    ew_table_cell(&t, "MACs");
    ew_table_cell(&t, "note");
    ew_table_cell(&t, "conv%d", 1);
    ew_table_count(&t, 117600);
    ew_table_cell(&t, "%s", "");
    ew_table_cell(&t, "relu");
    ew_table_count(&t, 0);
    ew_table_cell(&t, "%s", "");
    EW_EXPECT_OK(ew_table_print(&t, f));
    fclose(f);
    EW_EXPECT_STR(text, "layer     MACs  note\nconv1  117,600\nrelu\n");
    free(text);
}

/* Regression: a table of results had more columns than the array of widths. */
static void any_number_of_columns(void)
{
    enum { COLUMNS = 100 };
    char align[COLUMNS + 1] = "", *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    struct ew_table t;
    for (int i = 0; i < COLUMNS; i++)
        align[i] = 'r';
    ew_table_init(&t, align);
    for (int i = 0; i < 2 * COLUMNS; i++)
        ew_table_cell(&t, "%d", i);
    EW_EXPECT_OK(ew_table_print(&t, f));
    fclose(f);
    EW_EXPECT_HAS(text, "   98   99\n100  101  ");
    free(text);
}

/* Regression: widths were counted in bytes: "größe" got two columns too few. */
static void display_width(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    struct ew_table t;
    static const char *const cells[] = {"name", "n",         "größe", "1",    "犬",
                                        "2",    "e\xcc\x81", "3",     "\xff", "4"};
    ew_table_init(&t, "lr");
    for (size_t i = 0; i < EW_COUNT(cells); i++)
        ew_table_cell(&t, "%s", cells[i]);
    EW_EXPECT_OK(ew_table_print(&t, f));
    fclose(f);
    EW_EXPECT_STR(text, "name   n\ngröße  1\n犬     2\ne\xcc\x81      3\n\xff   4\n");
    free(text);
}

static char *fitted(int columns)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    struct ew_table t;
    static const char *const cells[] = {
        "id", "reason", "median_ms", "epoch_s", "1", "a very long reason that goes on and on",
        "12", "3.5",    "2",         "short",   "7", "1"};
    ew_table_init(&t, "rlrr");
    for (size_t i = 0; i < EW_COUNT(cells); i++)
        ew_table_cell(&t, "%s", cells[i]);
    EW_EXPECT_OK(ew_table_print_fit(&t, f, columns));
    fclose(f);
    return text;
}

/* Texts are shortened first; if that is not enough, columns continue below. */
static void fits_a_terminal(void)
{
    char *text = fitted(46);
    EW_EXPECT_STR(text, "id  reason                  median_ms  epoch_s\n"
                        " 1  a very long reason th…         12      3.5\n"
                        " 2  short                           7        1\n");
    free(text);
    text = fitted(30);
    EW_EXPECT_STR(text, "id  reason\n 1  a very long rea…\n 2  short\n\n"
                        "id  median_ms  epoch_s\n 1         12      3.5\n 2          7        1\n");
    free(text);
    text = fitted(1); /* narrower than any column: one after another */
    EW_EXPECT_HAS(text, "\n\nid  epoch_s\n");
    free(text);
}

EW_TEST_MAIN(EW_TEST(numbers), EW_TEST(columns), EW_TEST(any_number_of_columns),
             EW_TEST(display_width), EW_TEST(fits_a_terminal))
