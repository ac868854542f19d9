/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise bench` for one network. */
#include "cli/bench_show.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/bench_against.h"
#include "cli/bench_profile.h"
#include "report/text_table.h"

/* Steps of an accelerator's plan that run on the host. */
static void print_host_steps(const struct ew_plan *p, const struct ew_single_result *r)
{
    char bytes[EW_TEXT_CHARS];
    int64_t ns = 0;
    if (r->plan.host_steps == 0)
        return;
    printf("host:      %d of %d steps, for which %s has no kernel; %s copied each run",
           r->plan.host_steps, r->plan.steps, ew_backend_info(ew_plan_backend(p))->device,
           ew_text_bytes((int64_t)r->plan.copied_bytes, bytes));
    for (int k = 0; r->step_ns && k < r->plan.steps; k++) {
        struct ew_step_info s;
        ew_plan_step_info(p, k, &s);
        ns += s.copy_ns;
    }
    if (r->step_ns)
        printf(", in %.3f ms", (double)ns * 1e-6);
    printf("\n");
}

static void print_fit(const struct ew_plan_stats *s)
{
    if (s->swapped)
        printf("to fit:    %d layer%s with kernels that pack less, about %.0f%% more cycles\n",
               s->swapped, s->swapped == 1 ? "" : "s", 100 * s->slower);
    if (s->recompute_cheap)
        printf("to fit:    cheap operators recomputed, %.0f%% of forward's arithmetic\n",
               100 * s->recompute_share);
    if (s->segments > 1)
        printf("to fit:    %d segments recomputed, %.0f%% of forward's arithmetic\n", s->segments,
               100 * s->recompute_share);
    if (s->micro_batches > 1)
        printf("to fit:    batch split into %d parts%s\n", s->micro_batches,
               s->split_changes_statistics ? "; batch norm sees one part at a time, so its "
                                             "statistics differ from the whole batch's"
                                           : "");
}

static void print_times(const struct ew_bench_stats *t)
{
    const struct {
        const char *name;
        double ms;
    } all[] = {{"median", t->median_ms}, {"min", t->min_ms}, {"mean", t->mean_ms},
               {"p90", t->p90_ms},       {"p99", t->p99_ms}, {"sd", t->sd_ms}};
    char text[EW_TEXT_CHARS];
    for (size_t i = 0; i < EW_COUNT(all); i++)
        printf("%s%s %s%s", i ? ", " : "time:      ", all[i].name, ew_text_ms(all[i].ms, text),
               i ? "" : " ms");
    printf(" (%lld run%s)\n", (long long)t->n, t->n == 1 ? "" : "s");
}

static void print_power(const struct ew_bench_power *p, const char *samples)
{
    if (p->absent) {
        printf("power:     absent, %s\n", p->absent);
        return;
    }
    const double above = fmax(p->mean_w - p->idle_w, 0);
    printf("power:     %.2f W of %s, idle %.2f W, peak %.2f W\n", p->mean_w, p->rails, p->idle_w,
           p->peak_w);
    printf("energy:    %.4g mJ per %s, %.4g mJ above idle; %.4g %ss/s/W\n",
           1e3 * p->mean_w / p->images_per_s, samples, 1e3 * above / p->images_per_s,
           p->images_per_s / p->mean_w, samples);
}

static void json_power(struct ew_json *j, const struct ew_bench_power *p)
{
    if (p->absent) {
        ew_json_null(j, "power_w");
        ew_json_str(j, "power_absent", p->absent);
        return;
    }
    ew_json_num(j, "power_w", p->mean_w);
    ew_json_num(j, "idle_w", p->idle_w);
    ew_json_num(j, "peak_w", p->peak_w);
    ew_json_num(j, "dynamic_w", p->mean_w - p->idle_w);
    ew_json_num(j, "image_j", p->mean_w / p->images_per_s);
    ew_json_num(j, "images_per_s_per_w", p->images_per_s / p->mean_w);
    ew_json_str(j, "power_rails", p->rails);
}

ew_err ew_bench_print(const struct ew_bench_shown *s)
{
    const struct ew_bench_args *o = s->o;
    const struct ew_plan *p = s->p;
    const struct ew_single_result *r = &s->r;
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS];
    const struct ew_bench_stats *t = &r->time;
    const bool clips = ew_plan_input(s->p, 0)->shape.rank == 5;
    if (o->profile)
        EW_TRY(ew_profile_print(p, r, o->train));
    printf("%s, %s, batch %lld, %d thread%s", s->name, o->train ? "training step" : "inference",
           (long long)r->batch, r->threads, r->threads == 1 ? "" : "s");
    if (r->streams > 1)
        printf(" in each of %d streams", r->streams);
    printf(", %s\n", r->isa);
    if (o->beside)
        printf("beside:    %s, %.1f runs/s\n", o->beside, (double)r->load.beside / r->load.wall_s);
    print_times(t);
    ew_percentiles_print(&s->percentiles, &r->load);
    if (r->steps_ms > 0)
        printf("           median %s ms without copies of inputs and outputs\n",
               ew_text_ms(r->steps_ms, a));
    printf("speed:     %.1f %s/s", r->images_per_s, ew_text_samples(clips));
    if (o->qps > 0)
        printf(", asked for %g", o->qps * (double)r->batch);
    printf("\n");
    printf("memory:    planned %s, resident %s\n",
           ew_text_bytes((int64_t)(r->plan.arena_bytes + r->plan.weight_bytes), a),
           ew_text_bytes(r->resident, b));
    print_power(&r->power, clips ? "clip" : "image");
    print_host_steps(p, r);
    print_fit(&r->plan);
    return ew_baseline_print(s);
}

ew_err ew_bench_print_json(const struct ew_bench_shown *s)
{
    const struct ew_bench_args *o = s->o;
    const struct ew_plan *p = s->p;
    const struct ew_single_result *r = &s->r;
    struct ew_json j;
    const struct ew_bench_stats *t = &r->time;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", s->name);
    ew_json_str(&j, "mode", o->train ? "train" : "infer");
    ew_json_int(&j, "batch", r->batch);
    ew_json_int(&j, "threads", r->threads);
    ew_json_str(&j, "isa", r->isa);
    ew_json_str(&j, "device", ew_backend_info(ew_plan_backend(p))->device);
    ew_json_int(&j, "host_steps", r->plan.host_steps);
    ew_json_int(&j, "copied_bytes", (int64_t)r->plan.copied_bytes);
    ew_json_int(&j, "runs", t->n);
    ew_json_num(&j, "median_ms", t->median_ms);
    if (r->steps_ms > 0)
        ew_json_num(&j, "steps_ms", r->steps_ms);
    ew_json_num(&j, "min_ms", t->min_ms);
    ew_json_num(&j, "mean_ms", t->mean_ms);
    ew_json_num(&j, "p90_ms", t->p90_ms);
    ew_json_num(&j, "p99_ms", t->p99_ms);
    ew_json_num(&j, "max_ms", t->max_ms);
    ew_json_num(&j, "sd_ms", t->sd_ms);
    ew_percentiles_json(&j, &s->percentiles, &r->load);
    ew_json_num(&j, "images_per_s", r->images_per_s);
    ew_json_int(&j, "streams", r->streams);
    if (o->beside)
        ew_json_num(&j, "beside_per_s", (double)r->load.beside / r->load.wall_s);
    ew_json_num(&j, "wall_s", r->load.wall_s);
    ew_json_int(&j, "slow_runs", ew_load_slow_runs(&r->load, t->median_ms));
    ew_json_num(&j, "others_cpu_share", r->load.others);
    ew_json_int(&j, "planned_bytes", (int64_t)(r->plan.arena_bytes + r->plan.weight_bytes));
    ew_json_int(&j, "arena_bytes", (int64_t)r->plan.arena_bytes);
    ew_json_int(&j, "weight_bytes", (int64_t)r->plan.weight_bytes);
    ew_json_int(&j, "packed_bytes", (int64_t)r->plan.packed_bytes);
    ew_json_int(&j, "rss_bytes", r->resident);
    ew_json_int(&j, "rss_peak_bytes", r->resident_peak);
    ew_json_bool(&j, "recompute_cheap", r->plan.recompute_cheap);
    ew_json_int(&j, "segments", r->plan.segments);
    ew_json_int(&j, "swapped_layers", r->plan.swapped);
    ew_json_num(&j, "slower_share", r->plan.slower);
    ew_json_int(&j, "parts", r->plan.micro_batches);
    ew_json_num(&j, "recompute_share", r->plan.recompute_share);
    json_power(&j, &r->power);
    ew_baseline_json(&j, s);
    const ew_err e = o->profile ? ew_profile_json(&j, p, r) : EW_OK;
    ew_json_end(&j);
    const ew_err written = ew_json_finish(&j);
    return e ? e : written;
}
