/* SPDX-License-Identifier: Apache-2.0 */
/* Records a command line as the job of a run. */
#include "cli/recorded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "graph/facts.h"

/* The arguments, with spaces between them: `monitor` has the words of a command line. */
static char *all_args(const struct ew_cmd_call *c)
{
    char *text = NULL;
    FILE *f = NULL;
    size_t size = 0;
    if (c->n_args < 2)
        return strdup(c->n_args ? c->args[0] : "");
    f = open_memstream(&text, &size);
    for (int i = 0; f && i < c->n_args; i++)
        fprintf(f, "%s%s", i ? " " : "", c->args[i]);
    return f && ew_memstream_close(f, &text) ? text : NULL;
}

ew_err ew_cmd_record(const struct ew_cmd_call *c, const char *db, struct ew_recording *out)
{
    EW_CLEANUP(ew_free_ptr) char *args = all_args(c);
    EW_CHECK(args, EW_ERR_MEMORY, "no memory for %s", c->cmd->name);
    const struct ew_recorded_command command = {
        .name = c->cmd->name, .network = args, .fields = c->cmd->opts, .opts = c->opts};
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
