/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise bench NET --compare-with onnxruntime`. */
#include "cli/bench_peer.h"

#include <stdio.h>

#include "base/json.h"
#include "cli/bench_times.h"
#include "report/text_table.h"

static void table_row(struct ew_table *t, const char *what, double ours, double theirs)
{
    ew_table_cell(t, "%s", what);
    char text[EW_TEXT_CHARS];
    ew_table_cell(t, "%s ms", ew_text_ms(ours, text));
    ew_table_cell(t, "%s ms", ew_text_ms(theirs, text));
}

static ew_err show_text(const struct ew_cmd_call *c, const struct ew_peer_result *d)
{
    const struct ew_bench_stats *a = &d->time[EW_PEER_OURS], *b = &d->time[EW_PEER_THEIRS];
    struct ew_table t;
    ew_table_init(&t, "lrr");
    ew_table_cell(&t, "%s", c->args[0]);
    ew_table_cell(&t, "edgewise %s", ew_version());
    ew_table_cell(&t, "onnxruntime %s", d->peer_version);
    table_row(&t, "time, median", a->median_ms, b->median_ms);
    table_row(&t, "  min", a->min_ms, b->min_ms);
    table_row(&t, "  p99", a->p99_ms, b->p99_ms);
    EW_TRY(ew_table_print(&t, stdout));
    printf(
        "edgewise takes %.2f of its time (%.2f times as fast; by minima %.2f): median of %d turns, "
        "%lld runs each, %d thread%s\n",
        1 / d->speed_up, d->speed_up, d->speed_up_min, EW_PEER_TURNS, (long long)d->runs,
        d->threads, d->threads == 1 ? "" : "s");
    printf("outputs differ by at most %.3g, the largest value is %.3g\n", d->worst, d->largest);
    return EW_OK;
}

static ew_err show_json(const struct ew_cmd_call *c, const struct ew_peer_result *d)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", c->args[0]);
    ew_json_str(&j, "peer", "onnxruntime");
    ew_json_str(&j, "peer_version", d->peer_version);
    ew_json_int(&j, "threads", d->threads);
    ew_json_int(&j, "runs", d->runs);
    ew_json_num(&j, "median_ms", d->time[EW_PEER_OURS].median_ms);
    ew_json_num(&j, "min_ms", d->time[EW_PEER_OURS].min_ms);
    ew_json_num(&j, "peer_median_ms", d->time[EW_PEER_THEIRS].median_ms);
    ew_json_num(&j, "peer_min_ms", d->time[EW_PEER_THEIRS].min_ms);
    ew_json_num(&j, "speed_up", d->speed_up);
    ew_json_num(&j, "speed_up_min", d->speed_up_min);
    ew_json_num(&j, "output_difference", d->worst);
    ew_json_num(&j, "output_largest", d->largest);
    ew_json_num(&j, "others_cpu_share", d->others);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_bench_peer(struct ew_cmd_call *c, const struct ew_peer_opts *o)
{
    struct ew_peer_result r;
    EW_TRY(ew_peer_bench(c->args[0], o, &r));
    EW_TRY(c->json ? show_json(c, &r) : show_text(c, &r));
    ew_times_warn_busy(r.others);
    return EW_OK;
}
