/* SPDX-License-Identifier: Apache-2.0 */
/* Studies written by users: the options that they vary are drawn without a figure definition. */
#include <math.h>
#include <string.h>

#include "ew_test.h"
#include "report/figure.h"

static void put(struct ew_results *r, const char *study, const char *options, double ms)
{
    struct ew_run_data *d;
    struct ew_metric_row *m = ew_arena_array(&r->arena, 1, sizeof(*m));
    if (!EW_EXPECT(m) || !EW_EXPECT_OK(ew_results_add(r, &d)))
        return;
    *m = (struct ew_metric_row){.name = "median_ms",
                                .value = ms,
                                .unit = "ms",
                                .better = EW_BETTER_LOWER,
                                .quality = EW_QUALITY_MEASURED,
                                .n = 1};
    d->run.status = EW_RUN_DONE;
    d->run.study = study;
    d->run.label = "sweep";
    d->job.command = "bench";
    d->job.network = "mobilenet_v2";
    d->job.options = options;
    d->metrics = m;
    d->n_metrics = 1;
}

static const struct ew_figure *find(const struct ew_figures *f, const char *id)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->v[i].id, id) == 0)
            return &f->v[i];
    return NULL;
}

/* Regression: a sweep over widths and threads had no figure. */
static void sweeps_have_figures(void)
{
    static const char *const options[] = {
        "{\"width\":0.25,\"threads\":1}", "{\"width\":0.25,\"threads\":2}",
        "{\"width\":0.5,\"threads\":1}",  "{\"width\":0.5,\"threads\":2}",
        "{\"width\":1,\"threads\":1}",    "{\"width\":1,\"threads\":2}"};
    struct ew_results r;
    struct ew_figures f;
    ew_results_init(&r);
    for (size_t i = 0; i < EW_COUNT(options); i++)
        put(&r, "my", options[i], 1.0 + (double)i);
    put(&r, "other", options[0], 7);
    EW_EXPECT_OK(ew_figures_init(ew_figures_report, &r, NULL, &f));
    const struct ew_figure *own = find(&f, "own-my-bench-median-ms");
    if (EW_EXPECT(own)) {
        EW_EXPECT_STR(own->title, "Study my, bench: latency");
        EW_EXPECT_STR(own->desc->x, "width");
        EW_EXPECT_STR(own->desc->series, "threads");
        EW_EXPECT_INT(own->desc->kind, EW_FIGURE_LINES);
        EW_EXPECT_INT(own->n_series, 2);
        EW_EXPECT_STR(own->series[0].name, "threads 1"); /* and not "1" */
        EW_EXPECT_STR(own->series[1].name, "threads 2");
        EW_EXPECT_INT(own->n_categories, 3);
        EW_EXPECT_INT(own->runs, 6); /* not those of the other study */
    }
    EW_EXPECT(!find(&f, "own-other-bench-median-ms")); /* which varies nothing */
    EW_EXPECT(!find(&f, "own-my-bench-epoch-s"));
    ew_figures_fini(&f);
    /* Built-in studies, and runs without a study, have no such figures. */
    for (int i = 0; i < r.n_runs; i++)
        r.runs[i].run.study = i % 2 ? "engine" : NULL;
    EW_EXPECT_OK(ew_figures_init(ew_figures_report, &r, NULL, &f));
    for (int i = 0; i < f.n; i++)
        EW_EXPECT(strncmp(f.v[i].id, "own-", 4) != 0);
    ew_figures_fini(&f);
    ew_results_fini(&r);
}

EW_TEST_MAIN(EW_TEST(sweeps_have_figures))
