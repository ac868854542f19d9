/* SPDX-License-Identifier: Apache-2.0 */
/* Records a command line as the job of a run. */
#include "cli/recorded.h"

#include <math.h>

#include "graph/facts.h"

ew_err ew_cmd_record(const struct ew_cmd_call *c, const char *db, struct ew_recording *out)
{
    const struct ew_recorded_command command = {.name = c->cmd->name,
                                                .network = c->n_args ? c->args[0] : "",
                                                .fields = c->cmd->opts,
                                                .opts = c->opts};
    return ew_recording_begin(&command, db, out);
}

ew_err ew_facts_record(struct ew_recording *rec, const struct ew_graph *g, double planned_bytes)
{
    struct ew_facts f;
    EW_TRY(ew_graph_facts(g, &f));
    const struct {
        const char *name, *unit;
        double value;
    } all[] = {{"parameters", NULL, (double)f.params},
               {"flops", NULL, (double)f.flops},
               {"flops_thop", NULL, (double)f.flops_thop},
               {"macs", NULL, (double)f.macs},
               {"parameter_bytes", "bytes", planned_bytes / (double)f.params}};
    for (size_t i = 0; i < EW_COUNT(all); i++)
        if (isfinite(all[i].value))
            EW_TRY(
                ew_recording_derived(rec, all[i].name, all[i].value, all[i].unit, EW_BETTER_LOWER));
    return EW_OK;
}
