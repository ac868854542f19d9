/* SPDX-License-Identifier: Apache-2.0 */
/* Experiment files: sweeps, defaults, quick keys, order, hashes, published figures, and files that
 * are wrong. */
#include "ew_test.h"
#include "study_kit.h"

#define HEAD "[study]\norder = file\n[defaults]\ncommand = work\n"

static struct ew_arena arena;

static struct ew_study parse(const char *text, bool quick, const char *only)
{
    struct ew_study s = {0};
    ew_arena_fini(&arena);
    ew_arena_init(&arena);
    EW_EXPECT_OK(kit_parse(&arena, text, quick, only, &s));
    return s;
}

static const char *given(const struct ew_study *s, int job, const char *name)
{
    const char *v = job < s->n_jobs ? ew_study_given(&s->jobs[job], name) : NULL;
    return v ? v : "none";
}

static void lists_are_swept(void)
{
    const struct ew_study s = parse(HEAD "batch = 4 8\n[a]\nnetwork = lenet5\nworkers = 0 1 2\n"
                                         "[b]\nnetwork = \"my net\" vgg11\nbatch = 1\n",
                                    false, NULL);
    EW_EXPECT_INT(s.n_jobs, 8);
    EW_EXPECT_STR(given(&s, 0, "batch"), "4");
    EW_EXPECT_STR(given(&s, 1, "workers"), "1"); /* the last key varies fastest */
    EW_EXPECT_STR(given(&s, 5, "batch"), "8");
    EW_EXPECT_STR(given(&s, 6, "network"), "my net");
    EW_EXPECT_STR(s.jobs[6].label, "b");
    EW_EXPECT_STR(s.jobs[0].argv[0], "work");
    EW_EXPECT_STR(s.jobs[0].argv[1], "lenet5");
    EW_EXPECT_STR(s.jobs[0].argv[2], "--batch=4");
    EW_EXPECT(s.jobs[0].argv[s.jobs[0].n_argv] == NULL);
}

static void quick_keys_win(void)
{
    static const char text[] = HEAD "batch = 8\nquick.batch = 2\n[a]\nbatch = 16\nworkers = 1\n"
                                    "quick.workers = 0\n[b]\nquick = no\nworkers = 7\n";
    const struct ew_study full = parse(text, false, NULL);
    EW_EXPECT_INT(full.n_jobs, 2);
    EW_EXPECT_STR(given(&full, 0, "batch"), "16");
    EW_EXPECT_STR(given(&full, 0, "workers"), "1");
    const struct ew_study quick = parse(text, true, NULL);
    EW_EXPECT_INT(quick.n_jobs, 1);
    EW_EXPECT_STR(given(&quick, 0, "batch"), "2");
    EW_EXPECT_STR(given(&quick, 0, "workers"), "0");
}

/* The hash is of the resolved options: spelling, order and defaults do not matter, values do. */
static void hashes_are_of_resolved_options(void)
{
    char ids[5][EW_RECORD_ID_CHARS];
    static const char *const texts[5] = {
        HEAD "[a]\nnetwork = x\nworkers = 1\nlr = 0.01\n",
        HEAD "[other]\nlr = 0.010\nbatch = 16\nnetwork = x\n",
        HEAD "[a]\nnetwork = x\nworkers = 2\n",
        HEAD "[a]\nnetwork = y\nworkers = 1\n",
        HEAD "[a]\nnetwork = x\nworkers = 1\npower-mode = MAXN\n",
    };
    for (int i = 0; i < 5; i++) {
        const struct ew_study s = parse(texts[i], false, NULL);
        if (EW_EXPECT_INT(s.n_jobs, 1))
            snprintf(ids[i], sizeof(ids[i]), "%s", s.jobs[0].row.id);
    }
    EW_EXPECT_STR(ids[0], ids[1]);
    for (int i = 2; i < 5; i++)
        for (int k = 0; k < i; k++)
            EW_EXPECT(strcmp(ids[i], ids[k]) != 0);
    const struct ew_study s = parse(texts[0], false, NULL);
    EW_EXPECT_STR(s.jobs[0].row.options,
                  "{\"batch\":16,\"cold\":false,\"command\":\"work\",\"data\":null,\"lr\":0.01,"
                  "\"network\":\"x\",\"workers\":1}");
}

static void order_is_random_by_seed(void)
{
    static const char body[] = "[defaults]\ncommand = work\n[a]\nworkers = 0 1 2 3 4 5 6 7 8 9\n";
    char text[256], first[3][64];
    for (int k = 0; k < 3; k++) {
        snprintf(text, sizeof(text), "[study]\nseed = %d\n%s", k == 2 ? 6 : 5, body);
        const struct ew_study s = parse(text, false, NULL);
        EW_EXPECT_INT(s.n_jobs, 10);
        first[k][0] = '\0';
        for (int i = 0; i < s.n_jobs; i++)
            snprintf(first[k] + i, sizeof(first[k]) - (size_t)i, "%s", given(&s, i, "workers"));
    }
    EW_EXPECT_STR(first[0], first[1]);
    EW_EXPECT(strcmp(first[0], first[2]) != 0);
    EW_EXPECT(strcmp(first[0], "0123456789") != 0);
}

static void blocks_stay_together(void)
{
    const struct ew_study s = parse("[study]\nblock = batch\nrepeat = 2\n[defaults]\n"
                                    "command = work\n[a]\nworkers = 0 1 2\nbatch = 1 2\n",
                                    false, NULL);
    EW_EXPECT_INT(s.n_jobs, 12);
    for (int i = 0; i < s.n_jobs; i++) {
        EW_EXPECT_STR(given(&s, i, "batch"), i < 6 ? "1" : "2");
        EW_EXPECT_INT(s.jobs[i].repeat, i / 3 % 2); /* all jobs once, then all again */
    }
}

static void only_picks_jobs(void)
{
    static const char text[] = HEAD "[a]\nworkers = 0 1\n[b]\nworkers = 1 2\nbatch = 3\n"
                                    "[c]\nworkers = 9\n";
    EW_EXPECT_INT(parse(text, false, "a,b").n_jobs, 4);
    EW_EXPECT_INT(parse(text, false, "workers=1").n_jobs, 2);
    EW_EXPECT_INT(parse(text, false, "b,workers=1").n_jobs, 1);
    struct ew_study s;
    EW_EXPECT_ERR(kit_parse(&arena, text, false, "zzz", &s), EW_ERR_USAGE, "zzz");
}

static void published_figures_are_read(void)
{
    const struct ew_study s =
        parse(HEAD "[a]\nworkers = 0\n[published]\ncite = Them, 2022\nboard = Nano\n"
                   "figure = stall_s 42.6 s | workers=0 network=lenet5\n"
                   "figure = f1 0.845 | | NX\n",
              false, NULL);
    if (!EW_EXPECT_INT(s.n_published, 2))
        return;
    EW_EXPECT_STR(s.published[0].metric, "stall_s");
    EW_EXPECT_NEAR(s.published[0].value, 42.6, 1e-12);
    EW_EXPECT_STR(s.published[0].unit, "s");
    EW_EXPECT_STR(s.published[0].settings, "workers=0 network=lenet5");
    EW_EXPECT_STR(s.published[0].board, "Nano");
    EW_EXPECT_STR(s.published[0].cite, "Them, 2022");
    EW_EXPECT(s.published[1].unit == NULL);
    EW_EXPECT_STR(s.published[1].board, "NX");
}

static void wrong_files_are_refused(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {HEAD "[a]\nworkes = 1\n", "kit:6: no option 'workes'; did you mean 'workers'?"},
        {HEAD "[a]\nworkers = 2\nminutes = 5\n", "kit:7: [a]: 'minutes' is an option of other"},
        {HEAD "[a]\nworkers = many\n", "kit:6: workers: 'many' is not a whole number"},
        {HEAD "[a]\nworkers = 99\n", "not between"},
        {HEAD "[a]\nworkers =\n", "kit:6: 'workers' has no value"},
        {HEAD "[a]\ndb = x\n", "cannot be used in studies"},
        {HEAD "[a]\ndata = \"x\n", "quote"},
        {"[a]\nworkers = 1\n", "no command"},
        {"[a]\ncommand = fly\n", "no command 'fly'"},
        {"workers = 1\n", "before the first"},
        {HEAD, "no jobs"},
        {HEAD "[a]\nbatch = 1\n[b]\nbatch = 1\n", "the same job"},
        {HEAD "[a]\nbatch = 1\n[b]\nbatch = 2\n[a]\nworkers = 2\n", "twice"},
        {"[study]\ncolour = red\n" HEAD "[a]\nbatch = 1\n", "no key 'colour'"},
        {HEAD "[a]\nbatch = 1\n[published]\nfigure = x y z\n", "not a number"},
        {HEAD "[a]\nbatch = 1\n[published]\nfigure = x\n", "a figure is"},
        {HEAD "[a]\nbatch = 1 2 3 4 5 6 7 8 9 10\nworkers = 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 "
              "16 17 18 19 20 21 22 23 24 25\nlr = 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "
              "19 20 21\n",
         "more than 5000 jobs"},
        {HEAD "[a\nbatch = 1\n", "neither"},
    };
    for (size_t i = 0; i < EW_COUNT(bad); i++) {
        struct ew_study s;
        ew_arena_reset(&arena);
        const ew_err err = kit_parse(&arena, bad[i].text, false, NULL, &s);
        EW_EXPECT(err == EW_ERR_FORMAT || err == EW_ERR_USAGE || err == EW_ERR_LIMIT);
        EW_EXPECT_HAS(ew_error_message(), bad[i].message);
    }
    ew_arena_fini(&arena);
}

EW_TEST_MAIN(EW_TEST(lists_are_swept), EW_TEST(quick_keys_win),
             EW_TEST(hashes_are_of_resolved_options), EW_TEST(order_is_random_by_seed),
             EW_TEST(blocks_stay_together), EW_TEST(only_picks_jobs),
             EW_TEST(published_figures_are_read), EW_TEST(wrong_files_are_refused))
