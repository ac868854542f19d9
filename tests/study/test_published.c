/* SPDX-License-Identifier: Apache-2.0 */
/* Published values: all files are read, errata match rows, and lines of studies select the rows
 * that they name. */
#include <math.h>

#include "ew_test.h"
#include "study/published.h"
#include "study_kit.h"

#define HEAD "[study]\ntitle = T\n[defaults]\ncommand = work\n[a]\nworkers = 0\n"

static struct ew_arena arena;

static void all_files_are_read(void)
{
    static const struct {
        const char *file;
        int n;
    } files[] = {
        {"engine", 86}, {"nx", 126}, {"scale", 170}, {"train", 378}, {"train_fig9", 34 * 7}};
    struct ew_published_list f;
    if (!EW_EXPECT_OK(ew_published_list_load(&arena, &f)))
        return;
    int all = 0;
    for (size_t k = 0; k < EW_COUNT(files); k++) {
        int n = 0;
        for (int i = 0; i < f.n; i++)
            n += strcmp(f.v[i].file, files[k].file) == 0;
        EW_EXPECT_INT(n, files[k].n);
        all += n;
    }
    EW_EXPECT_INT(f.n, all);
    for (int i = 0; i < f.n; i++)
        if (!*ew_published_value_get(&f.v[i], "where") || !*ew_published_value_get(&f.v[i], "kind"))
            EW_FAIL("value %d of %s has no where or kind", i, f.v[i].file);
}

/* Each of the sixteen errata matches at least one row. */
static void errata_find_their_rows(void)
{
    struct ew_published_list f;
    if (!EW_EXPECT_OK(ew_published_list_load(&arena, &f)))
        return;
    const char *seen[64];
    int n = 0;
    for (int i = 0; i < f.n; i++) {
        int k = 0;
        while (k < n && f.v[i].wrong && strcmp(seen[k], f.v[i].wrong) != 0)
            k++;
        if (f.v[i].wrong && k == n && n < 64)
            seen[n++] = f.v[i].wrong;
    }
    EW_EXPECT_INT(n, 16);
}

static const struct ew_published_row *find(const struct ew_study *s, const char *metric,
                                           const char *settings, const char *board)
{
    for (int i = 0; i < s->n_published; i++)
        if (strcmp(s->published[i].metric, metric) == 0 &&
            strcmp(s->published[i].settings, settings) == 0 &&
            strcmp(s->published[i].board, board) == 0)
            return &s->published[i];
    EW_FAIL("no %s of %s on %s", metric, settings, board);
    return NULL;
}

static void rows_are_picked(void)
{
    struct ew_study s;
    EW_EXPECT_OK(kit_parse(&arena,
                           HEAD "[published]\ncite = Them\nfrom = train\n"
                                "name = network resnet18 r18\n"
                                "rows = stall_s s | network workers | metric=stall epochs=1+ "
                                "where=5.1* kind=stated,approx\n"
                                "rows = energy_j J | network dvfs=on | metric=energy note=*on*\n"
                                "from = train_fig9\n"
                                "rows = power_w | network mode={power_mode} | metric=power_mean\n",
                           false, NULL, &s));
    const struct ew_published_row *p;
    if ((p = find(&s, "stall_s", "network=lenet5 workers=1", "Jetson Xavier NX")) != NULL) {
        EW_EXPECT_NEAR(p->value, 18.7, 1e-12); /* not the upper bound of 20 */
        EW_EXPECT_STR(p->place, "5.1.3");
        EW_EXPECT_STR(p->unit, "s");
        EW_EXPECT_STR(p->cite, "Them");
    }
    /* Stated exactly in one place and approximately in another: the exact value counts. */
    if ((p = find(&s, "stall_s", "network=mobilenet_v3_large workers=4", "Jetson Xavier NX")))
        EW_EXPECT_NEAR(p->value, 20.9, 1e-12);
    if ((p = find(&s, "energy_j", "network=r18 dvfs=on", "Jetson AGX Xavier")))
        EW_EXPECT_NEAR(p->value, 10620, 1e-9);
    if ((p = find(&s, "power_w", "network=r18 mode=g", "Jetson AGX Xavier")))
        EW_EXPECT_NEAR(p->value, 30.74, 1e-9);
}

static void wrong_is_marked(void)
{
    struct ew_study s;
    EW_EXPECT_OK(kit_parse(&arena,
                           HEAD "[published]\nfrom = nx\n"
                                "rows = test_f1 | label={dataset}-{network} | metric=f1 "
                                "init=scratch where=Table*\n",
                           false, NULL, &s));
    EW_EXPECT_INT(s.n_published, 10);
    const struct ew_published_row *p =
        find(&s, "test_f1", "label=STL-10-resnet50", "Jetson Xavier NX");
    EW_EXPECT(p && p->wrong && strstr(p->wrong, "0.4505"));
    p = find(&s, "test_f1", "label=STL-10-alexnet", "Jetson Xavier NX");
    EW_EXPECT(p && !p->wrong);
}

static void bad_lines_are_refused(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {{"rows = a | b | c=d\n", "after a line 'from'"},
               {"from = train\nrows = stall_s | network\n", "kit:9: rows are METRIC"},
               {"from = train\nrows = stall_s | network | metric=nothing\n", "no published value"},
               {"from = nowhere\nrows = a | b | metric=*\n", "no published value of nowhere"},
               {"name = one two\n", "a name is COLUMN THEIRS OURS"},
               {"from = train\nrows = a b c | | metric=*\n", "not METRIC [UNIT]"}};
    for (size_t i = 0; i < EW_COUNT(bad); i++) {
        struct ew_study s;
        char text[512];
        snprintf(text, sizeof(text), HEAD "[published]\n%s", bad[i].text);
        EW_EXPECT_ERR(kit_parse(&arena, text, false, NULL, &s), EW_ERR_FORMAT, bad[i].message);
    }
}

static void done(void)
{
    ew_arena_fini(&arena);
}

EW_TEST_MAIN(EW_TEST(all_files_are_read), EW_TEST(errata_find_their_rows), EW_TEST(rows_are_picked),
             EW_TEST(wrong_is_marked), EW_TEST(bad_lines_are_refused), EW_TEST(done))
