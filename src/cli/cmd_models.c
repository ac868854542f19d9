/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise models: the zoo. */
#include <stdio.h>

#include "base/json.h"
#include "cli/cmd.h"
#include "graph/facts.h"
#include "model/model.h"
#include "report/text_table.h"

static ew_err facts_of(const struct ew_variant *v, struct ew_facts *out)
{
    struct ew_graph *g;
    EW_TRY(ew_model_build(v->name, NULL, &g));
    const ew_err e = ew_graph_facts(g, out);
    ew_graph_free(g);
    return e;
}

static ew_err add_text(struct ew_table *t, const struct ew_family *family,
                       const struct ew_variant *v)
{
    struct ew_facts f;
    EW_TRY(facts_of(v, &f));
    ew_table_cell(t, "%s", v->name);
    ew_table_count(t, f.params);
    ew_table_count(t, f.macs);
    ew_table_cell(t, "%dx%dx%d", (int)v->height, (int)v->width, (int)v->channels);
    ew_table_cell(t, "%d", (int)v->classes);
    ew_table_cell(t, "%s", v->studies ? v->studies : "");
    ew_table_cell(t, "%s", v->about ? v->about : family->about);
    return EW_OK;
}

static ew_err add_json(struct ew_json *j, const struct ew_family *family,
                       const struct ew_variant *v)
{
    struct ew_facts f;
    EW_TRY(facts_of(v, &f));
    ew_json_object(j, NULL);
    ew_json_str(j, "name", v->name);
    ew_json_str(j, "family", family->name);
    ew_json_str(j, "about", v->about ? v->about : family->about);
    ew_json_str(j, "widths", family->widths);
    ew_json_str(j, "studies", v->studies);
    ew_json_int(j, "params", f.params);
    ew_json_int(j, "macs", f.macs);
    ew_json_array(j, "input");
    ew_json_int(j, NULL, v->height);
    ew_json_int(j, NULL, v->width);
    ew_json_int(j, NULL, v->channels);
    ew_json_end(j);
    ew_json_int(j, "classes", v->classes);
    ew_json_end(j);
    return EW_OK;
}

static ew_err each_text(struct ew_table *t)
{
    static const char *const head[] = {"name",    "parameters", "MACs", "input",
                                       "classes", "studies",    "what"};
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(t, "%s", head[i]);
    for (int f = 0; f < ew_family_count(); f++)
        for (int i = 0; i < ew_family_at(f)->n_variants; i++)
            EW_TRY(add_text(t, ew_family_at(f), &ew_family_at(f)->variants[i]));
    return EW_OK;
}

static ew_err each_json(struct ew_json *j)
{
    for (int f = 0; f < ew_family_count(); f++)
        for (int i = 0; i < ew_family_at(f)->n_variants; i++)
            EW_TRY(add_json(j, ew_family_at(f), &ew_family_at(f)->variants[i]));
    return EW_OK;
}

static ew_err run(struct ew_cmd_call *c)
{
    if (c->json) {
        struct ew_json j;
        ew_json_init(&j, stdout);
        ew_json_array(&j, NULL);
        const ew_err e = each_json(&j);
        ew_json_end(&j);
        const ew_err written = ew_json_finish(&j);
        return e == EW_OK ? written : e;
    }
    struct ew_table t;
    ew_table_init(&t, "lrrlrll");
    const ew_err e = each_text(&t);
    if (t.err == EW_OK)
        t.err = e;
    EW_TRY(ew_table_print(&t, stdout));
    fputs("\nstudies: NX      compact networks trained on a Xavier NX\n"
          "         ENGINE  an engine builder on a Nano\n"
          "         TRAIN   training across Jetsons and power modes\n"
          "         SCALE   widths against int8 on CPU, GPU and FPGA\n",
          stdout);
    return EW_OK;
}

const struct ew_cmd ew_cmd_models = {
    .name = "models",
    .group = EW_CMD_NETWORK,
    .summary = "list the zoo: sizes, inputs, and which study uses what",
    .about = "NX, ENGINE, TRAIN and SCALE are the four studies that Edgewise covers.\n"
             "`edgewise info NAME` says more of one network.",
    .run = run,
};
