/* SPDX-License-Identifier: Apache-2.0 */
/* Profile tables: one line per step, and one per operator with the sums of its steps. */
#include "cli/bench_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/text_table.h"

/* The steps of one operator in one phase. */
struct sum {
    const char *op, *phase;
    int steps;
    double ns, flops;
};

static const char *phase_name(const struct ew_step_info *s)
{
    static const char *const names[] = {"forward", "backward", "update"};
    return s->recompute ? "recompute" : names[s->phase];
}

/* Steps without an operator (clear, seed, update) are known by their kernel. */
static const char *op_name(const struct ew_step_info *s)
{
    return s->op ? s->op : s->kernel;
}

static double percent_of_peak(const struct ew_single_result *r, double flops_per_ns)
{
    return r->peak_flops > 0 ? 100 * flops_per_ns * 1e9 / r->peak_flops : 0;
}

/* ---- By operator ---- */

static int slower_first(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

/* One sum per operator and phase, the slowest first; free *out with free(). */
static ew_err add_up(const struct ew_plan *p, const struct ew_single_result *r, struct sum **out,
                     int *n)
{
    const int steps = ew_plan_step_count(p);
    struct sum *sums = calloc((size_t)steps + 1, sizeof(*sums));
    EW_CHECK(sums, EW_ERR_MEMORY, "no memory for the sums of %d steps", steps);
    *n = 0;
    for (int k = 0; k < steps; k++) {
        struct ew_step_info s;
        ew_plan_step_info(p, k, &s);
        int i = 0;
        while (i < *n &&
               (strcmp(sums[i].op, op_name(&s)) != 0 || strcmp(sums[i].phase, phase_name(&s)) != 0))
            i++;
        if (i == *n)
            sums[(*n)++] = (struct sum){.op = op_name(&s), .phase = phase_name(&s)};
        sums[i].steps++;
        sums[i].ns += (double)r->step_ns[k];
        sums[i].flops += s.flops;
    }
    qsort(sums, (size_t)*n, sizeof(*sums), slower_first);
    *out = sums;
    return EW_OK;
}

static ew_err print_sums(const struct sum *sums, int n, const struct ew_single_result *r,
                         bool train)
{
    struct ew_table t;
    double total = 0;
    for (int i = 0; i < n; i++)
        total += sums[i].ns;
    ew_table_init(&t, train ? "llrrrrr" : "lrrrrr");
    static const char *const head[] = {"operator", "phase",   "steps", "us",
                                       "share",    "GFLOP/s", "peak"};
    for (size_t i = 0; i < EW_COUNT(head); i++)
        if (i != 1 || train)
            ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < n; i++) {
        const double rate = sums[i].ns > 0 ? sums[i].flops / sums[i].ns : 0;
        ew_table_cell(&t, "%s", sums[i].op);
        if (train)
            ew_table_cell(&t, "%s", sums[i].phase);
        ew_table_cell(&t, "%d", sums[i].steps);
        ew_table_cell(&t, "%.1f", sums[i].ns * 1e-3);
        ew_table_cell(&t, "%.1f%%", total > 0 ? 100 * sums[i].ns / total : 0);
        ew_table_cell(&t, "%.1f", rate);
        ew_table_cell(&t, "%.0f%%", percent_of_peak(r, rate));
    }
    return ew_table_print(&t, stdout);
}

/* ---- All of it ---- */

static ew_err print_steps(const struct ew_plan *p, const struct ew_single_result *r, bool train)
{
    struct ew_table t;
    char shape[EW_SHAPE_TEXT];
    double total = 0;
    for (int k = 0; k < ew_plan_step_count(p); k++)
        total += (double)r->step_ns[k];
    ew_table_init(&t, train ? "rllllrrrrl" : "rlllrrrrl");
    static const char *const head[] = {"#",  "step",  "operator", "phase", "output",
                                       "us", "share", "GFLOP/s",  "peak",  "kernel"};
    for (size_t i = 0; i < EW_COUNT(head); i++)
        if (i != 3 || train)
            ew_table_cell(&t, "%s", head[i]);
    for (int k = 0; k < ew_plan_step_count(p); k++) {
        struct ew_step_info s;
        ew_plan_step_info(p, k, &s);
        const double ns = (double)r->step_ns[k];
        const double rate = ns > 0 ? s.flops / ns : 0;
        ew_table_cell(&t, "%d", k + 1); /* numbered from 1, as --why takes it */
        ew_table_cell(&t, "%s", s.name);
        ew_table_cell(&t, "%s%s%s", s.op ? s.op : "", s.act ? "+" : "", s.act ? s.act : "");
        if (train)
            ew_table_cell(&t, "%s", phase_name(&s));
        ew_table_cell(&t, "%s", s.out.rank ? ew_shape_text(&s.out, shape) : "");
        ew_table_cell(&t, "%.1f", ns * 1e-3);
        ew_table_cell(&t, "%.1f%%", total > 0 ? 100 * ns / total : 0);
        ew_table_cell(&t, "%.1f", rate);
        ew_table_cell(&t, "%.0f%%", percent_of_peak(r, rate));
        ew_table_cell(&t, "%s%s", s.on_host ? "host: " : "", s.kernel);
    }
    return ew_table_print(&t, stdout);
}

ew_err ew_profile_print(const struct ew_plan *p, const struct ew_single_result *r, bool train)
{
    struct sum *sums;
    int n;
    EW_TRY(print_steps(p, r, train));
    EW_TRY(add_up(p, r, &sums, &n));
    printf("\n");
    const ew_err e = print_sums(sums, n, r, train);
    free(sums);
    printf("peak: %.1f GFLOP/s, float32, measured here on %d thread%s\n\n", r->peak_flops * 1e-9,
           r->threads, r->threads == 1 ? "" : "s");
    return e;
}

static void json_sums(struct ew_json *j, const struct sum *sums, int n)
{
    ew_json_array(j, "operators");
    for (int i = 0; i < n; i++) {
        ew_json_object(j, NULL);
        ew_json_str(j, "op", sums[i].op);
        ew_json_str(j, "phase", sums[i].phase);
        ew_json_int(j, "steps", sums[i].steps);
        ew_json_num(j, "us", sums[i].ns / 1e3);
        ew_json_num(j, "flops", sums[i].flops);
        ew_json_end(j);
    }
    ew_json_end(j);
}

ew_err ew_profile_json(struct ew_json *j, const struct ew_plan *p, const struct ew_single_result *r)
{
    struct sum *sums;
    int n;
    EW_TRY(add_up(p, r, &sums, &n));
    ew_json_num(j, "peak_gflops", r->peak_flops * 1e-9);
    ew_json_array(j, "steps");
    for (int k = 0; k < ew_plan_step_count(p); k++) {
        struct ew_step_info s;
        ew_plan_step_info(p, k, &s);
        ew_json_object(j, NULL);
        ew_json_int(j, "step", k + 1);
        ew_json_str(j, "name", s.name);
        ew_json_str(j, "op", s.op);
        if (s.act)
            ew_json_str(j, "act", s.act);
        ew_json_str(j, "phase", phase_name(&s));
        ew_json_str(j, "kernel", s.kernel);
        ew_json_num(j, "us", (double)r->step_ns[k] / 1e3);
        ew_json_num(j, "flops", s.flops);
        ew_json_end(j);
    }
    ew_json_end(j);
    json_sums(j, sums, n);
    free(sums);
    return EW_OK;
}
