/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise scale search: records of pruning by NeuralScale's architecture descent. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/data_cmd.h"
#include "cli/scale_cmd.h"
#include "report/text_table.h"
#include "scale/search.h"
#include "study/recording.h"

#define MEASURED_SAMPLES 10000 /* for mean and deviation */

static ew_err normalise(const struct ew_scale_opts *o, const struct ew_dataset *data,
                        struct ew_preprocess *p)
{
    struct ew_dataset_stats s;
    EW_TRY(ew_preprocess_parse(o->mean, o->std, p));
    if (p->normalised)
        return EW_OK;
    EW_TRY(ew_dataset_measure(data, EW_SPLIT_TRAIN, MEASURED_SAMPLES, &s));
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++) {
        p->mean[i] = s.mean[i];
        p->std[i] = s.std[i] > 0 ? s.std[i] : 1;
    }
    p->normalised = true;
    return EW_OK;
}

/* The first samples, spread evenly; NULL: all. */
static ew_err choose(int64_t all, int64_t n, struct ew_loader_opts *lo, int64_t **subset)
{
    *subset = NULL;
    if (n == 0 || n >= all)
        return EW_OK;
    *subset = malloc((size_t)n * sizeof(**subset));
    EW_CHECK(*subset, EW_ERR_MEMORY, "no memory for %lld samples", (long long)n);
    for (int64_t i = 0; i < n; i++)
        (*subset)[i] = i * all / n;
    lo->subset = *subset;
    lo->n_subset = n;
    return EW_OK;
}

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

/* The time of this process: what was done before a kill is not in it. */
static ew_err record(const struct ew_cmd_call *c, const struct ew_scaling *s, double seconds)
{
    const struct ew_scale_opts *o = c->opts;
    const struct ew_recorded_command command = {
        .name = c->cmd->name, .network = s->network, .fields = c->cmd->opts, .opts = c->opts};
    struct ew_recording rec;
    EW_TRY(ew_recording_begin(&command, o->db, &rec));
    const ew_err e = ew_recording_metric(&rec, "descent_s", seconds, "s", EW_BETTER_LOWER);
    return ew_recording_end(&rec, e);
}

static ew_err search(const struct ew_cmd_call *c, const struct ew_scaling *s,
                     struct ew_dataset *data)
{
    const struct ew_scale_opts *o = c->opts;
    const struct ew_dataset_info *info = ew_dataset_info(data);
    struct ew_search_job job = {
        .net = s,
        .loader = {.data = data, .split = EW_SPLIT_TRAIN, .batch = o->batch, .workers = 1},
        .opts = search_opts(o),
        .folder = o->output,
        .talk = stderr};
    struct ew_search_result r;
    int64_t *subset;
    EW_CHECK(s->opts.classes >= info->classes, EW_ERR_ARG,
             "%s has %lld classes, data set %s has %lld: --classes must be as many or more",
             s->network, (long long)s->opts.classes, info->name, (long long)info->classes);
    EW_TRY(ew_augment_parse(o->augment, &job.loader.augment));
    EW_TRY(normalise(o, data, &job.loader.prep));
    EW_TRY(choose(info->count[EW_SPLIT_TRAIN], o->samples, &job.loader, &subset));
    const int64_t start = ew_clock_ns();
    const ew_err e = ew_search_run(&job, &r);
    free(subset);
    EW_TRY(e);
    EW_TRY(record(c, s, (double)(ew_clock_ns() - start) / (double)EW_NS_PER_S));
    return print(c, s, &r);
}

ew_err ew_scale_search(struct ew_cmd_call *c, const struct ew_scaling *s)
{
    const struct ew_scale_opts *o = c->opts;
    struct ew_dataset *data;
    struct ew_graph *g;
    EW_CHECK(o->data, EW_ERR_USAGE, "scale search: --data says what to train on");
    EW_CHECK(o->output, EW_ERR_USAGE, "scale search: --output says where the records go");
    struct ew_model_opts m = s->opts;
    EW_TRY(ew_model_build(s->network, &m, &g)); /* before any work */
    ew_err e = ew_gates_insert(g, s->network, s->n);
    ew_graph_free(g);
    EW_TRY(e);
    EW_TRY(ew_data_open(c, o->data, &data));
    e = search(c, s, data);
    ew_dataset_close(data);
    return e;
}
