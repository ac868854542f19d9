/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of users' own studies: finds the options that vary between the runs and draws each
 * measure over them.  The studies that come with the program have entries in figures.c. */
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "report/figure.h"
#include "report/figure_key.h"
#include "report/figure_stat.h"

#define LINE_FROM 3 /* values of a numeric x from which on a line is drawn instead of bars */

/* The measures that are drawn for such a study. */
static const struct {
    const char *metric, *label;
} measures[] = {{"median_ms", "latency"},
                {"images_per_s_per_w", "throughput by power"},
                {"epoch_s", "time of an epoch"},
                {"energy_j", "energy of an epoch"},
                {"test_accuracy", "accuracy on the test images"},
                {"planned_bytes", "planned memory"}};

/* The runs of a study's one command, and what tells them apart. */
struct sweep {
    const struct ew_results *results;
    const char *study, *command;
    struct ew_arena *arena;
    const char *names;  /* "\nthreads\nwidth\n" */
    const char *labels; /* of its sections: "a b" */
    const char *x, *series;
    int values; /* number of values of x */
    bool number;
};

static bool is_of(const struct sweep *s, const struct ew_run_data *d)
{
    return ew_run_counts(d) && d->run.study && strcmp(d->run.study, s->study) == 0 &&
           d->job.command && strcmp(d->job.command, s->command) == 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Counts the different values of an option over the runs; *number: all are numeric. */
static ew_err count_values(const struct sweep *s, const char *name, int *out, bool *number)
{
    const struct ew_results *r = s->results;
    size_t n = 0;
    const char **all = ew_arena_array(s->arena, (size_t)r->n_runs, sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for figures");
    *number = true;
    for (int i = 0; i < r->n_runs; i++) {
        double x;
        const char *own =
            is_of(s, &r->runs[i]) ? ew_run_property(&r->runs[i], name, s->arena) : NULL;
        if (!own)
            continue;
        *number &= ew_num_float(own, &x);
        all[n++] = own;
    }
    qsort(all, n, sizeof(*all), by_text);
    *out = n > 0;
    for (size_t i = 1; i < n; i++)
        *out += strcmp(all[i - 1], all[i]) != 0;
    return EW_OK;
}

/* Finds the labels of the runs and the names of the options that vary. */
static ew_err look(struct sweep *s)
{
    struct ew_key_set set = {.names = "\n"};
    s->labels = "";
    for (int i = 0; i < s->results->n_runs; i++) {
        const struct ew_run_data *d = &s->results->runs[i];
        if (!is_of(s, d))
            continue;
        const char *key = ew_key_options(d, "command dataset seed", s->arena);
        EW_CHECK(key, EW_ERR_MEMORY, "no memory for figures");
        EW_TRY(ew_key_set_add(&set, key, s->arena));
        const char *label = d->run.label ? d->run.label : s->command;
        if (!ew_words_have(s->labels, label))
            s->labels =
                ew_arena_printf(s->arena, "%s%s%s", s->labels, *s->labels ? " " : "", label);
        EW_CHECK(s->labels, EW_ERR_MEMORY, "no memory for figures");
    }
    EW_TRY(ew_key_set_trim(&set, s->arena));
    s->names = set.names;
    return EW_OK;
}

/* Chooses x: the numeric option with the most values, else any option with the most; the others
 * form the series. */
static ew_err choose(struct sweep *s)
{
    char *all = ew_arena_strdup(s->arena, s->names), *save = NULL;
    s->series = "";
    for (char *name = all ? strtok_r(all, "\n", &save) : NULL; name;
         name = strtok_r(NULL, "\n", &save)) {
        bool number = false;
        int n = 0;
        EW_TRY(count_values(s, name, &n, &number));
        const bool better =
            !s->x || (number && !s->number) || (number == s->number && n > s->values);
        const char *rest = better ? s->x : name;
        if (better) {
            s->x = name;
            s->values = n;
            s->number = number;
        }
        if (rest)
            s->series = ew_arena_printf(s->arena, "%s%s%s", s->series, *s->series ? " " : "", rest);
        EW_CHECK(s->series, EW_ERR_MEMORY, "no memory for figures");
    }
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for figures");
    return EW_OK;
}

/* "threads batch" as "threads, batch". */
static const char *with_commas(struct ew_arena *a, const char *names)
{
    const char *out = "";
    for (const char *p = names; out && *p; p += strspn(p, " ")) {
        const int n = (int)strcspn(p, " ");
        out = ew_arena_printf(a, "%s%s%.*s", out, *out ? ", " : "", n, p);
        p += n;
    }
    return out ? out : names;
}

static ew_err describe(const struct sweep *s, size_t m, struct ew_figure_desc *d)
{
    struct ew_arena *a = s->arena;
    *d = (struct ew_figure_desc){
        .id = ew_arena_printf(a, "own-%s-%s-%s", s->study, s->command, measures[m].metric),
        .title = ew_arena_printf(a, "Study %s, %s: %s", s->study, s->command, measures[m].label),
        .about = *s->series
                     ? ew_arena_printf(a, "By %s, for each %s.", s->x, with_commas(a, s->series))
                     : ew_arena_printf(a, "By %s.", s->x),
        .studies = s->study,
        .kind = s->number && s->values >= LINE_FROM ? EW_FIGURE_LINES : EW_FIGURE_BARS,
        .from = EW_RECORD_METRIC,
        .x = s->x,
        .series = *s->series ? s->series : NULL,
        .series_named = true,
        .y = {{.name = measures[m].metric, .label = measures[m].label, .of = s->labels}},
        .min_x = 2};
    EW_CHECK(d->id && d->title && d->about, EW_ERR_MEMORY, "no memory for figures");
    return EW_OK;
}

/* A figure for each measure that the sweep has. */
static ew_err draw(const struct sweep *s, struct ew_figures *out)
{
    for (size_t m = 0; m < EW_COUNT(measures); m++) {
        struct ew_figure_desc *d = ew_arena_alloc(s->arena, sizeof(*d));
        EW_CHECK(d, EW_ERR_MEMORY, "no memory for figures");
        EW_TRY(describe(s, m, d));
        const int before = out->n;
        EW_TRY(ew_figure_group(out, d, s->results, s->study));
        int kept = before;
        for (int i = before; i < out->n; i++) /* measures without data are not listed as missing */
            if (!out->v[i].missing)
                out->v[kept++] = out->v[i];
        out->n = kept;
    }
    return EW_OK;
}

/* Whether this is the first run of its study and command. */
static bool is_first(const struct ew_results *r, int i)
{
    const struct ew_run_data *d = &r->runs[i];
    const struct sweep s = {.study = d->run.study, .command = d->job.command};
    for (int k = 0; k < i; k++)
        if (is_of(&s, &r->runs[k]))
            return false;
    return true;
}

ew_err ew_figure_own(struct ew_figures *out, const struct ew_results *r, const char *study)
{
    for (int i = 0; i < r->n_runs; i++) {
        const struct ew_run_data *d = &r->runs[i];
        const bool own = ew_run_counts(d) && d->run.study && d->job.command &&
                         !ew_figure_known(d->run.study) && !strchr(d->run.study, ' ');
        if (!own || (study && strcmp(study, d->run.study) != 0) || !is_first(r, i))
            continue;
        struct sweep s = {
            .results = r, .study = d->run.study, .command = d->job.command, .arena = &out->arena};
        EW_TRY(look(&s));
        EW_TRY(choose(&s));
        if (s.x)
            EW_TRY(draw(&s, out));
    }
    return EW_OK;
}
