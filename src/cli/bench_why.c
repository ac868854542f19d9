/* SPDX-License-Identifier: Apache-2.0 */
/* Why a step has its kernel: the backend's candidates with cost estimates, measured times, and the
 * condition that excludes each. */
#include "cli/bench_why.h"

#include <stdlib.h>
#include <string.h>

#include "backend/candidates.h"
#include "base/json.h"
#include "report/text_table.h"

#define CANDIDATES 32
#define VERDICT    384

struct step_choice {
    struct ew_step_info step;
    int number; /* counted from 1 */
    struct ew_kernel_candidate candidate[CANDIDATES];
    int64_t ns[CANDIDATES]; /* INT64_MAX: not measured */
    int n;
    bool tuned;
};

static bool is_chosen(const struct step_choice *w, int i)
{
    return strcmp(w->candidate[i].name, w->step.kernel) == 0 && !w->candidate[i].refused;
}

/* Only forward kernels are tuned; kernels whose time depends on the data are not timed on random
 * numbers. */
static void take_times(struct step_choice *w, struct ew_backend *be,
                       const struct ew_kernel_query *query)
{
    struct ew_kernel offers[EW_OFFERS];
    int64_t ns[EW_OFFERS];
    int n = 0;
    for (int i = 0; i < CANDIDATES; i++)
        w->ns[i] = INT64_MAX;
    if (!w->tuned || query->be != be || query->phase != EW_PHASE_FORWARD ||
        ew_backend_offer(query, offers, &n) != EW_OK)
        return;
    n -= n > 1 && strcmp(offers[n - 1].name, "reference") == 0;
    ew_tuner_times(be, query, offers, n, ns);
    for (int i = 0; i < w->n; i++)
        for (int k = 0; k < n && !w->candidate[i].refused; k++)
            if (strcmp(offers[k].name, w->candidate[i].name) == 0)
                w->ns[i] = ns[k];
}

/* The applicable candidate other than i with the lowest estimate; -1: none. */
static int find_rival(const struct step_choice *w, int i)
{
    int best = -1;
    for (int k = 0; k < w->n; k++)
        if (k != i && !w->candidate[k].refused && w->candidate[k].cycles > 0 &&
            (best < 0 || w->candidate[k].cycles < w->candidate[best].cycles))
            best = k;
    return best;
}

/* Formats the ratio of candidate i's estimate to the best other one's; empty if either has none or
 * both are equal. */
static void compare(const struct step_choice *w, int i, char *out, size_t size)
{
    const int rival = find_rival(w, i);
    out[0] = '\0';
    if (rival < 0 || !(w->candidate[i].cycles > 0))
        return;
    const double own = w->candidate[i].cycles, other = w->candidate[rival].cycles;
    if (own > 0.995 * other && own < 1.005 * other)
        return;
    snprintf(out, size, "; estimated at %.2f times the cycles of %s", own / other,
             w->candidate[rival].name);
}

static void verdict(const struct step_choice *w, int i, char out[VERDICT])
{
    const struct ew_kernel_candidate *k = &w->candidate[i];
    char estimates[VERDICT / 2] = "";
    if (k->refused || is_chosen(w, i))
        compare(w, i, estimates, sizeof(estimates));
    if (k->refused)
        snprintf(out, VERDICT, "no: needs %s%s", k->refused, estimates);
    else if (!is_chosen(w, i))
        snprintf(out, VERDICT, "could run, but %s",
                 w->tuned && w->ns[i] != INT64_MAX ? "was slower when it was tuned"
                                                   : "comes later in the order");
    else if (k->wraps)
        snprintf(out, VERDICT, "chosen: skips zeros where the data has them, else runs the next");
    else if (w->tuned && w->ns[i] != INT64_MAX)
        snprintf(out, VERDICT, "chosen: the fastest when it was tuned%s", estimates);
    else
        snprintf(out, VERDICT, "chosen: the first whose conditions all hold%s", estimates);
    if (!k->refused && k->detail)
        snprintf(out + strlen(out), VERDICT - strlen(out), "; %s", k->detail);
}

/* ---- Output ---- */

static const char *const phases[] = {"forward", "backward", "update"};

static void print_title(const struct step_choice *w)
{
    char shape[EW_SHAPE_TEXT];
    printf("step %d, %s (%s%s%s, %s%s%s): %s\n", w->number, w->step.name, w->step.op,
           w->step.act ? "+" : "", w->step.act ? w->step.act : "", phases[w->step.phase],
           w->step.out.rank ? ", " : "", w->step.out.rank ? ew_shape_text(&w->step.out, shape) : "",
           w->step.kernel);
}

static bool any_roofline(const struct step_choice *w)
{
    for (int i = 0; i < w->n; i++)
        if (w->candidate[i].roofline > 0 && !(w->candidate[i].cycles > 0))
            return true;
    return false;
}

static ew_err print_text(const struct step_choice *w)
{
    struct ew_table t;
    char text[VERDICT];
    print_title(w);
    if (w->n == 0) {
        const bool view = strcmp(w->step.kernel, "view") == 0;
        const bool reference = strcmp(w->step.kernel, "reference") == 0;
        printf("  %s\n\n", view        ? "the same bytes under another shape: nothing to do"
                           : reference ? "only the reference kernel exists for it"
                                       : "the only kernel for it besides the reference");
        return EW_OK;
    }
    ew_table_init(&t, "llrrl");
    static const char *const head[] = {"candidate", "technique", "Mcycles", "us", "verdict"};
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < w->n; i++) {
        const struct ew_kernel_candidate *k = &w->candidate[i];
        ew_table_cell(&t, "%s", k->name);
        ew_table_cell(&t, "%s", k->technique);
        if (k->cycles > 0)
            ew_table_cell(&t, "%.2f", k->cycles * 1e-6);
        else if (k->roofline > 0)
            ew_table_cell(&t, "~%.2f", k->roofline * 1e-6);
        else
            ew_table_cell(&t, "-");
        if (w->ns[i] != INT64_MAX)
            ew_table_cell(&t, "%.1f", (double)w->ns[i] * 1e-3);
        else
            ew_table_cell(&t, "-");
        verdict(w, i, text);
        ew_table_cell(&t, "%s", text);
    }
    EW_TRY(ew_table_print(&t, stdout));
    if (any_roofline(w))
        printf("~: no cost model of the kernel; roofline estimate on one core\n");
    printf("\n");
    return EW_OK;
}

static void put_json(struct ew_json *j, const struct step_choice *w)
{
    char text[VERDICT];
    ew_json_object(j, NULL);
    ew_json_int(j, "step", w->number);
    ew_json_str(j, "name", w->step.name);
    ew_json_str(j, "operator", w->step.op);
    if (w->step.act)
        ew_json_str(j, "activation", w->step.act);
    ew_json_str(j, "phase", phases[w->step.phase]);
    ew_json_str(j, "kernel", w->step.kernel);
    ew_json_array(j, "candidates");
    for (int i = 0; i < w->n; i++) {
        const struct ew_kernel_candidate *k = &w->candidate[i];
        ew_json_object(j, NULL);
        ew_json_str(j, "kernel", k->name);
        ew_json_str(j, "technique", k->technique);
        ew_json_bool(j, "chosen", is_chosen(w, i));
        if (k->cycles > 0)
            ew_json_num(j, "estimated_cycles", k->cycles);
        if (k->roofline > 0)
            ew_json_num(j, "roofline_cycles", k->roofline);
        if (w->ns[i] != INT64_MAX)
            ew_json_num(j, "us", (double)w->ns[i] * 1e-3);
        verdict(w, i, text);
        ew_json_str(j, "verdict", text);
        ew_json_end(j);
    }
    ew_json_end(j);
    ew_json_end(j);
}

/* ---- The steps ---- */

static bool is_meant(const struct step_choice *w, const char *step)
{
    char *end;
    const long number = strtol(step, &end, 10);
    return strcmp(w->step.name, step) == 0 || (*step && !*end && number == w->number);
}

/* The next step from `from` on that matches `step` and has a kernel for a node. */
static int find(const struct ew_plan *p, int from, const char *step)
{
    struct ew_kernel_query query;
    for (int i = from; i < ew_plan_step_count(p); i++) {
        struct step_choice w = {.number = i + 1};
        ew_plan_step_info(p, i, &w.step);
        if (is_meant(&w, step) && ew_plan_step_query(p, i, &query))
            return i;
    }
    return -1;
}

static struct step_choice look(const struct ew_plan *p, int i, bool tuned)
{
    struct step_choice w = {.number = i + 1, .tuned = tuned};
    struct ew_kernel_query query;
    ew_plan_step_info(p, i, &w.step);
    ew_plan_step_query(p, i, &query);
    w.n = ew_backend_candidates(&query, w.candidate, CANDIDATES);
    take_times(&w, ew_plan_backend(p), &query);
    return w;
}

static ew_err json_all(const struct ew_plan *p, const char *step, bool tuned)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_array(&j, "steps");
    for (int i = find(p, 0, step); i >= 0; i = find(p, i + 1, step)) {
        const struct step_choice w = look(p, i, tuned);
        put_json(&j, &w);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_bench_why(const struct ew_plan *p, const char *step, bool tuned, bool json)
{
    EW_CHECK(find(p, 0, step) >= 0, EW_ERR_USAGE,
             "--why %s: the plan has no step of this name or number; --profile lists them", step);
    if (json)
        return json_all(p, step, tuned);
    for (int i = find(p, 0, step); i >= 0; i = find(p, i + 1, step)) {
        const struct step_choice w = look(p, i, tuned);
        EW_TRY(print_text(&w));
    }
    return EW_OK;
}
