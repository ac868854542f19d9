/* SPDX-License-Identifier: Apache-2.0 */
/* What `edgewise prune` shows when it is over. */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/prune_cmd.h"
#include "report/text_table.h"

static void count_row(struct ew_table *t, const char *what, int64_t before, int64_t after)
{
    ew_table_cell(t, "%s", what);
    ew_table_count(t, before);
    ew_table_count(t, after);
    ew_table_cell(t, "%.1f %%", before ? 100.0 * (double)after / (double)before : 0.0);
}

static void accuracy_row(struct ew_table *t, const struct ew_pruned *p)
{
    ew_table_cell(t, "accuracy");
    ew_table_cell(t, "%.2f %%", 100 * p->accuracy_before);
    ew_table_cell(t, "%.2f %%", 100 * p->accuracy_after);
    ew_table_cell(t, "%+.2f", 100 * (p->accuracy_after - p->accuracy_before));
}

ew_err ew_prune_print(const struct ew_prune_shown *s)
{
    const struct ew_pruned *p = &s->pruned;
    char bytes[EW_TEXT_CHARS];
    struct ew_table t;
    ew_table_init(&t, "lrrr");
    for (int i = 0; i < 4; i++)
        ew_table_cell(&t, "%s", (const char *[]){"", "before", "after", "left"}[i]);
    count_row(&t, "parameters", p->cost_before.params, p->cost_after.params);
    count_row(&t, "MACs", p->cost_before.macs, p->cost_after.macs);
    ew_table_cell(&t, "ms");
    ew_table_cell(&t, "%.3f", p->ms_before);
    ew_table_cell(&t, "%.3f", p->ms_after);
    ew_table_cell(&t, "%.2f times as fast", p->ratio);
    if (!isnan(p->accuracy_after))
        accuracy_row(&t, p);
    for (int i = 0; i < p->n_layers; i++)
        if (p->layers[i].after != p->layers[i].before)
            count_row(&t, p->layers[i].name, p->layers[i].before, p->layers[i].after);
    EW_TRY(ew_table_print(&t, stdout));
    if (!isnan(p->accuracy_cut))
        printf("right after the last cut the accuracy was %.2f %%\n", 100 * p->accuracy_cut);
    printf("%s: %s\n", s->file, ew_text_bytes(s->file_bytes, bytes));
    return EW_OK;
}

ew_err ew_prune_print_json(const struct ew_prune_shown *s)
{
    const struct ew_pruned *p = &s->pruned;
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "file", s->file);
    ew_json_int(&j, "bytes", s->file_bytes);
    ew_json_int(&j, "params_before", p->cost_before.params);
    ew_json_int(&j, "params", p->cost_after.params);
    ew_json_int(&j, "macs_before", p->cost_before.macs);
    ew_json_int(&j, "macs", p->cost_after.macs);
    ew_json_num(&j, "ms_before", p->ms_before);
    ew_json_num(&j, "ms", p->ms_after);
    ew_json_num(&j, "speedup", p->ratio);
    ew_json_num(&j, "accuracy_before", p->accuracy_before);
    ew_json_num(&j, "accuracy_cut", p->accuracy_cut);
    ew_json_num(&j, "accuracy", p->accuracy_after);
    ew_json_array(&j, "layers");
    for (int i = 0; i < p->n_layers; i++) {
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", p->layers[i].name);
        ew_json_int(&j, "before", p->layers[i].before);
        ew_json_int(&j, "after", p->layers[i].after);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}
