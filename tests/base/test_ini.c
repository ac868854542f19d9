/* SPDX-License-Identifier: Apache-2.0 */
/* Reading INI text: sections, values, comments, and lines that are neither. */
#include "base/ini.h"

#include <string.h>

#include "ew_test.h"

static void expect(struct ew_ini *ini, const char *section, const char *key, const char *value)
{
    if (!EW_EXPECT(ew_ini_next(ini)))
        return;
    EW_EXPECT_STR(ini->section, section);
    EW_EXPECT_STR(ini->key ? ini->key : "", key);
    EW_EXPECT_STR(ini->value ? ini->value : "", value);
}

static void sections_and_values(void)
{
    char text[] = "# a comment\r\nfirst = 1\r\n\n[ two ]\n ; another\nkey=a = b # c\nempty =\n[x]";
    struct ew_ini ini;
    ew_ini_init(&ini, text, "a.ini");
    expect(&ini, "", "first", "1");
    expect(&ini, "two", "", "");
    expect(&ini, "two", "key", "a = b # c");
    EW_EXPECT_INT(ini.line, 6);
    expect(&ini, "two", "empty", "");
    expect(&ini, "x", "", "");
    EW_EXPECT(!ew_ini_next(&ini) && ini.err == EW_OK);
}

static void comments_behind_values(void)
{
    char text[] = "a = 1 # one\nb = \"x # y\" # z\nc = d#e\n";
    struct ew_ini ini;
    ew_ini_init(&ini, text, "a.ini");
    ini.notes = true;
    expect(&ini, "", "a", "1");
    expect(&ini, "", "b", "\"x # y\"");
    expect(&ini, "", "c", "d#e");
}

/* Some editors write a byte order mark first. */
static void byte_order_mark(void)
{
    char text[] = "\xef\xbb\xbf[study]\nname = x\n";
    struct ew_ini ini;
    ew_ini_init(&ini, text, "a.study");
    expect(&ini, "study", "", "");
    expect(&ini, "study", "name", "x");
}

static void malformed_lines(void)
{
    static const char *const bad[] = {"a = 1\nno value\n", "a = 1\n= 2\n", "a = 1\n[open\n",
                                      "a = 1\n[]\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[64];
        struct ew_ini ini;
        strcpy(text, bad[i]);
        ew_ini_init(&ini, text, "a.ini");
        expect(&ini, "", "a", "1");
        EW_EXPECT(!ew_ini_next(&ini));
        EW_EXPECT_ERR(ini.err, EW_ERR_FORMAT, "a.ini:2: '");
    }
}

EW_TEST_MAIN(EW_TEST(sections_and_values), EW_TEST(comments_behind_values),
             EW_TEST(byte_order_mark), EW_TEST(malformed_lines))
