/* SPDX-License-Identifier: Apache-2.0 */
/* Which figures a report has, and which runs each takes. */
#include <stdlib.h>
#include <string.h>

#include "report/figure.h"
#include "report/figure_key.h"
#include "report/figure_stat.h"

bool ew_figure_known(const char *study)
{
    for (const struct ew_figure_desc *d = ew_figures_report; d->id; d++)
        if (ew_words_have(d->studies, study))
            return true;
    return false;
}

bool ew_figure_takes(const struct ew_figure_desc *d, const struct ew_run_data *run,
                     const char *study)
{
    const char *of = run->run.study;
    if (!ew_run_counts(run) || (study && (!of || strcmp(of, study) != 0)))
        return false;
    return !of || !d->studies || ew_words_have(d->studies, of) ||
           (!d->exact && !ew_figure_known(of));
}

static bool wanted(const struct ew_figure_desc *d, const char *study)
{
    return !study || !d->studies || ew_words_have(d->studies, study) || !ew_figure_known(study);
}

ew_err ew_figures_init(const struct ew_figure_desc *table, const struct ew_results *results,
                       const char *study, struct ew_figures *out)
{
    *out = (struct ew_figures){0};
    ew_arena_init(&out->arena);
    ew_err e = table == ew_figures_report ? ew_figure_own(out, results, study) : EW_OK;
    for (const struct ew_figure_desc *d = table; e == EW_OK && d->id; d++) {
        if (!wanted(d, study))
            continue;
        if (d->kind == EW_FIGURE_TRACE)
            e = ew_figure_trace(out, d, results, study);
        else if (d->kind == EW_FIGURE_MATRIX)
            e = ew_figure_matrix(out, d, results, study);
        else
            e = ew_figure_group(out, d, results, study);
    }
    if (e != EW_OK)
        ew_figures_fini(out);
    return e;
}

void ew_figures_fini(struct ew_figures *f)
{
    free(f->v);
    ew_arena_fini(&f->arena);
    *f = (struct ew_figures){0};
}
