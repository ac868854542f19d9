/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise scale search: architecture descent by NeuralScale, which records pruned widths. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/data_cmd.h"
#include "cli/scale_cmd.h"
#include "report/text_table.h"
#include "scale/search.h"
#include "study/recording.h"
#include "train/options.h"

static struct ew_search_opts search_opts(const struct ew_scale_opts *o)
{
    return (struct ew_search_opts){.iterations = o->iterations,
                                   .warmup = o->warmup,
                                   .max_epochs = o->max_epochs,
                                   .prune = {.fraction = o->fraction,
                                             .per_step = (int)o->prune_units,
                                             .every = (int)o->prune_every},
                                   .lr = o->lr,
                                   .momentum = o->momentum,
                                   .weight_decay = o->weight_decay,
                                   .seed = (uint64_t)o->seed,
                                   .threads = (int)o->threads};
}

static ew_err print(const struct ew_cmd_call *c, const struct ew_scaling *s,
                    const struct ew_search_result *r)
{
    struct ew_scaling_facts f;
    char params[EW_TEXT_CHARS];
    EW_TRY(ew_scaling_facts(s, r->widths, &f));
    if (c->json) {
        struct ew_json j;
        ew_json_init(&j, stdout);
        ew_json_object(&j, NULL);
        ew_json_str(&j, "records", r->last);
        ew_json_int(&j, "iterations", r->done);
        ew_json_int(&j, "params", f.params);
        ew_json_array(&j, "widths");
        for (int l = 0; l < s->n; l++)
            ew_json_int(&j, NULL, r->widths[l]);
        ew_json_end(&j);
        ew_json_end(&j);
        return ew_json_finish(&j);
    }
    printf("%s: %d iterations; at the network's own size, %s parameters:\n", r->last, r->done,
           ew_text_count(f.params, params));
    for (int l = 0; l < s->n; l++)
        printf("%d%c", (int)r->widths[l], l + 1 < s->n ? ' ' : '\n');
    return EW_OK;
}

/* Runs the search and records its time in this process, without the part before a resume. */
static ew_err run_recorded(const struct ew_cmd_call *c, const struct ew_search_job *job,
                           struct ew_search_result *r)
{
    const struct ew_scale_opts *o = c->opts;
    const struct ew_recorded_command command = {.name = c->cmd->name,
                                                .network = job->net->network,
                                                .fields = c->cmd->opts,
                                                .opts = c->opts};
    struct ew_recording rec;
    EW_TRY(ew_recording_begin(&command, o->db, &rec));
    const int64_t start = ew_clock_ns();
    ew_err e = ew_search_run(job, r);
    const double seconds = (double)(ew_clock_ns() - start) / (double)EW_NS_PER_S;
    if (e == EW_OK)
        e = ew_recording_metric(&rec, "descent_s", seconds, "s", EW_BETTER_LOWER);
    return ew_recording_end(&rec, e);
}

/* The options that the records depend on: not paths, the number of iterations or threads. */
static ew_err options_text(const struct ew_cmd_call *c, const struct ew_scaling *s, char **out)
{
    const struct ew_scale_opts *o = c->opts;
    struct ew_scale_opts kept = *o;
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    kept.output = kept.db = NULL;
    kept.iterations = kept.threads = 0;
    EW_TRY(ew_fields_text(c->cmd->opts, &kept, &text));
    EW_CHECK(asprintf(out, "network = %s\n%s", s->network, text) >= 0, EW_ERR_MEMORY,
             "no memory for options");
    return EW_OK;
}

static ew_err search(const struct ew_cmd_call *c, const struct ew_scaling *s,
                     const struct ew_dataset *data)
{
    EW_CLEANUP(ew_free_ptr) char *options = NULL;
    const struct ew_scale_opts *o = c->opts;
    const struct ew_search_images images = {.data = data,
                                            .batch = o->batch,
                                            .samples = o->samples,
                                            .augment = o->augment,
                                            .mean = o->mean,
                                            .std = o->std};
    struct ew_search_result r;
    int64_t *subset;
    EW_TRY(options_text(c, s, &options));
    struct ew_search_job job = {
        .net = s, .opts = search_opts(o), .folder = o->output, .options = options, .talk = stderr};
    EW_TRY(ew_search_images(&images, &job, &subset));
    const ew_err e = run_recorded(c, &job, &r);
    free(subset);
    EW_TRY(e);
    return print(c, s, &r);
}

ew_err ew_scale_search(struct ew_cmd_call *c, const struct ew_scaling *s)
{
    const struct ew_scale_opts *o = c->opts;
    struct ew_dataset *data;
    EW_CHECK(o->data, EW_ERR_USAGE, "scale search: no training data: --data DIR or NAME");
    EW_CHECK(o->output, EW_ERR_USAGE, "scale search: no folder for the records: --output DIR");
    EW_TRY(ew_gates_check(s)); /* fail early */
    EW_TRY(ew_data_open(c, o->data, &data));
    const ew_err e = search(c, s, data);
    ew_dataset_close(data);
    return e;
}
