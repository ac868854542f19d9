/* SPDX-License-Identifier: Apache-2.0 */
/* Times of `edgewise bench`: percentiles, CSV of all runs, page by layer, warnings. */
#include "cli/bench_times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "report/graph_page.h"
#include "report/text_table.h"

#define LEAST_RUNS 10   /* fewer runs give no usable spread */
#define SLOW_SHARE 0.05 /* share of outliers that is worth a warning */

ew_err ew_percentiles_parse(const char *text, struct ew_percentiles *out)
{
    *out = (struct ew_percentiles){0};
    EW_CLEANUP(ew_free_ptr) char *copy = strdup(text);
    EW_CHECK(copy, EW_ERR_MEMORY, "no memory");
    char *save = NULL;
    for (char *w = strtok_r(copy, ", ", &save); w; w = strtok_r(NULL, ", ", &save)) {
        double v;
        EW_CHECK(ew_num_float(w, &v) && v >= 0 && v <= 100, EW_ERR_USAGE,
                 "--percentiles: '%s' is not a number from 0 to 100", w);
        EW_CHECK(out->n < EW_MAX_PERCENTILES, EW_ERR_USAGE, "--percentiles: at most %d",
                 EW_MAX_PERCENTILES);
        out->of[out->n++] = v;
    }
    return EW_OK;
}

void ew_percentiles_print(const struct ew_percentiles *p, const struct ew_load_result *r)
{
    char text[EW_TEXT_CHARS];
    for (int i = 0; i < p->n; i++)
        printf("%sp%g %s", i ? ", " : "latency:   ", p->of[i],
               ew_text_ms(ew_load_percentile(r, p->of[i]), text));
    if (p->n)
        printf(" ms\n");
}

void ew_percentiles_json(struct ew_json *j, const struct ew_percentiles *p,
                         const struct ew_load_result *r)
{
    if (!p->n)
        return;
    ew_json_object(j, "percentiles_ms");
    for (int i = 0; i < p->n; i++) {
        char key[32];
        snprintf(key, sizeof(key), "%g", p->of[i]);
        ew_json_num(j, key, ew_load_percentile(r, p->of[i]));
    }
    ew_json_end(j);
}

ew_err ew_times_write_csv(const struct ew_load_result *r, const char *path)
{
    struct ew_file_out out;
    EW_TRY(ew_file_out_open(path, &out));
    fputs("run,stream,start_ms,latency_ms\n", out.f);
    for (int64_t i = 0; i < r->n; i++)
        fprintf(out.f, "%lld,%d,%.6f,%.6f\n", (long long)i, r->runs[i].stream,
                (double)r->runs[i].start_ns * 1e-6, (double)r->runs[i].latency_ns * 1e-6);
    return ew_file_out_commit(&out);
}

ew_err ew_times_write_page(struct ew_graph *g, const struct ew_plan *p, const int64_t *step_ns,
                           const char *path)
{
    const int n = ew_plan_step_count(p);
    const struct ew_device_info *d = ew_backend_info(ew_plan_backend(p));
    char where[256];
    const int64_t batch = ew_graph_images(g);
    EW_CLEANUP(ew_free_ptr) struct ew_graph_time *t = calloc((size_t)n + 1, sizeof(*t));
    EW_CHECK(t, EW_ERR_MEMORY, "%s: no memory for the times", path);
    for (int k = 0; k < n; k++) {
        struct ew_step_info s;
        ew_plan_step_info(p, k, &s);
        t[k] = (struct ew_graph_time){s.name, s.kernel, (double)step_ns[k] * 1e-3};
    }
    snprintf(where, sizeof(where), "Median times on %.60s, %.60s, %d thread%s, batch %lld.",
             d->device, d->target, d->threads, d->threads == 1 ? "" : "s", (long long)batch);
    const struct ew_graph_times times = {.steps = t, .n = n, .where = where};
    return ew_graph_page_save(g, &times, path);
}

void ew_times_warn_busy(double others)
{
    if (others >= EW_BUSY_SHARE) /* false for nan */
        EW_WARN("other programs used %.0f %% of this machine's CPU meanwhile: on a quiet machine "
                "times are lower, and nearest to the minima",
                100 * others);
}

void ew_times_warn(const struct ew_load_result *r, const struct ew_bench_stats *s)
{
    ew_times_warn_busy(r->others);
    if (r->n < LEAST_RUNS)
        return;
    const int64_t slow = ew_load_slow_runs(r, s->median_ms);
    const bool first = (double)r->runs[0].latency_ns * 1e-6 >= s->max_ms;
    if (first && slow > 0)
        EW_WARN("the first run was the slowest, %.1f times the median: more --warmup may help",
                s->max_ms / s->median_ms);
    else if ((double)slow > SLOW_SHARE * (double)r->n)
        EW_WARN("%lld of %lld runs took over %.1f times the median: look at the percentiles, not "
                "at the mean",
                (long long)slow, (long long)r->n, EW_LOAD_SLOW);
}
