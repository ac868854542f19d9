/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that begin with their size: a program and a library of different releases agree on the
 * fields that both know. */
#include "base/sized.h"

#include <stdint.h>

#include "ew_test.h"

/* A struct of this release, and as an earlier and a later one have it. */
struct now {
    size_t size;
    int64_t a, b;
};
struct earlier {
    size_t size;
    int64_t a;
};
struct later {
    size_t size;
    int64_t a, b, c;
};

static void options_of_every_release(void)
{
    struct now o;
    const struct earlier old = {.size = sizeof(old), .a = 1};
    struct later new = {.size = sizeof(new), .a = 1, .b = 2};
    EW_EXPECT_OK(ew_sized_import(NULL, &o, sizeof(o)));
    EW_EXPECT(o.size == sizeof(o) && o.a == 0 && o.b == 0);
    EW_EXPECT_OK(ew_sized_import(&old, &o, sizeof(o)));
    EW_EXPECT(o.size == sizeof(o) && o.a == 1 && o.b == 0);
    EW_EXPECT_OK(ew_sized_import(&new, &o, sizeof(o)));
    EW_EXPECT(o.size == sizeof(o) && o.a == 1 && o.b == 2);
    new.c = 3;
    EW_EXPECT_ERR(ew_sized_import(&new, &o, sizeof(o)), EW_ERR_UNSUPPORTED, "byte 24 of 32 is set");
}

static void results_of_every_release(void)
{
    const struct now r = {.a = 1, .b = 2};
    struct {
        struct earlier old;
        int64_t behind;
    } x = {.old = {.size = sizeof(x.old)}, .behind = 7};
    struct later new = {.size = sizeof(new), .c = 3};
    ew_sized_export(&r, sizeof(r), &x.old);
    EW_EXPECT(x.old.size == sizeof(x.old) && x.old.a == 1 && x.behind == 7);
    ew_sized_export(&r, sizeof(r), &new);
    EW_EXPECT(new.size == sizeof(new) && new.a == 1 && new.b == 2 && new.c == 0);
}

static void sizes_that_were_not_set(void)
{
    static const size_t bad[] = {0, 1, sizeof(size_t), 3 * sizeof(size_t) + 1, 4097, SIZE_MAX};
    struct now o, given = {.a = 1};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        given.size = bad[i];
        EW_EXPECT_ERR(ew_sized_check(&given), EW_ERR_ARG, "size is");
        EW_EXPECT_ERR(ew_sized_import(&given, &o, sizeof(o)), EW_ERR_ARG, "size is");
    }
}

EW_TEST_MAIN(EW_TEST(options_of_every_release), EW_TEST(results_of_every_release),
             EW_TEST(sizes_that_were_not_set))
