/* SPDX-License-Identifier: Apache-2.0 */
/* bench --protocol scale: the scaling study's latencies. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/bench_cmd.h"
#include "report/text_table.h"

static void print_row(const struct ew_scale_result *s, int i, struct ew_table *t)
{
    char a[EW_TEXT_CHARS];
    const struct ew_side *side = &s->sides[i];
    const struct ew_bench_stats *b = &s->times[i].time;
    ew_table_cell(t, "%s", s->called[i]);
    ew_table_cell(t, "%.2f", s->width[i]);
    ew_table_cell(t, "%s", ew_text_count(side->facts.params, a));
    ew_table_cell(t, "%.2f", (double)side->facts.flops_thop * 1e-6);
    ew_table_cell(t, "%lld", (long long)side->facts.cdl);
    ew_table_cell(t, "%.3f", b->mean_ms);
    ew_table_cell(t, "%.3f", b->sd_ms);
    ew_table_cell(t, "%.3f", s->times[i].trial_sd_ms);
    ew_table_cell(t, "%s", b->mean_ms < EW_SCALE_REAL_TIME_MS ? "yes" : "no");
    ew_table_cell(t, "%s", ew_text_bytes(side->weight_bytes + side->activation_bytes, a));
    if (!s->meter)
        return;
    ew_table_cell(t, "%.2f", s->power[i].peak_w - s->power[i].idle_w);
    ew_table_cell(t, "%.1f", ew_scale_per_watt(s, i));
}

static ew_err print_text(const struct ew_scale_result *s, const struct ew_bench_opts *b)
{
    static const char *const head[] = {"network",   "width",   "parameters", "MFLOPs",
                                       "CDL",       "mean ms", "deviation",  "of trials",
                                       "real time", "memory",  "dynamic W",  "images/s/W"};
    const size_t columns = s->meter ? EW_COUNT(head) : EW_COUNT(head) - 2;
    struct ew_table t;
    ew_table_init(&t, s->meter ? "lrrrrrrrlrrr" : "lrrrrrrrlr");
    for (size_t i = 0; i < columns; i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < EW_SCALE_SIDES; i++)
        print_row(s, i, &t);
    EW_TRY(ew_table_print(&t, stdout));
    printf(
        "batch 1, %lld threads, %s, float32; %lld + %lld runs, %lld interleaved trials; real time "
        "is under %.2f ms\n",
        (long long)s->sides[0].threads, s->sides[0].isa, (long long)b->warmup, (long long)b->iters,
        (long long)b->trials, EW_SCALE_REAL_TIME_MS);
    printf("times: measured, monotonic clock; MFLOPs: derived, as thop counts; memory: derived, "
           "weights and activations\n");
    if (s->meter)
        printf("power: peak minus %.2f W idle, of %s\n", s->power[0].idle_w, s->power[0].rails);
    else
        printf("power: absent, %s\n", s->power[0].absent);
    return EW_OK;
}

static ew_err print_json(const struct ew_scale_result *s, const struct ew_bench_opts *bench)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "protocol", "scale");
    ew_json_int(&j, "threads", s->sides[0].threads);
    ew_json_str(&j, "isa", s->sides[0].isa);
    ew_json_int(&j, "warmup", bench->warmup);
    ew_json_int(&j, "iters", bench->iters);
    ew_json_int(&j, "trials", bench->trials);
    ew_json_num(&j, "real_time_ms", EW_SCALE_REAL_TIME_MS);
    if (!s->meter)
        ew_json_str(&j, "power_absent", s->power[0].absent);
    ew_json_array(&j, "networks");
    for (int i = 0; i < EW_SCALE_SIDES; i++) {
        const struct ew_bench_stats *b = &s->times[i].time;
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", s->name[i]);
        ew_json_num(&j, "width", s->width[i]);
        ew_json_int(&j, "params", s->sides[i].facts.params);
        ew_json_int(&j, "flops", s->sides[i].facts.flops);
        ew_json_int(&j, "flops_thop", s->sides[i].facts.flops_thop);
        ew_json_int(&j, "cdl", s->sides[i].facts.cdl);
        ew_json_num(&j, "mean_ms", b->mean_ms);
        ew_json_num(&j, "median_ms", b->median_ms);
        ew_json_num(&j, "sd_ms", b->sd_ms);
        ew_json_num(&j, "trial_sd_ms", s->times[i].trial_sd_ms);
        ew_json_bool(&j, "real_time", b->mean_ms < EW_SCALE_REAL_TIME_MS);
        ew_json_int(&j, "weight_bytes", s->sides[i].weight_bytes);
        ew_json_int(&j, "activation_bytes", s->sides[i].activation_bytes);
        if (s->meter) {
            ew_json_num(&j, "idle_w", s->power[i].idle_w);
            ew_json_num(&j, "peak_w", s->power[i].peak_w);
            ew_json_num(&j, "dynamic_w", s->power[i].peak_w - s->power[i].idle_w);
            ew_json_num(&j, "images_per_s_per_w", ew_scale_per_watt(s, i));
        }
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_bench_protocol_scale(struct ew_cmd_call *c, const struct ew_compare_opts *o)
{
    EW_CHECK(c->n_args == 0, EW_ERR_USAGE, "the protocol has its own networks, not %s", c->args[0]);
    struct ew_scale_result *s = calloc(1, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    ew_err e = ew_scale_protocol_run(o, s);
    if (e == EW_OK)
        e = c->json ? print_json(s, &o->bench) : print_text(s, &o->bench);
    ew_scale_protocol_fini(s);
    free(s);
    return e;
}
