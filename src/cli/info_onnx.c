/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of an ONNX file as text and as JSON. */
#include "cli/info_onnx.h"

#include <stdio.h>

static void print_ports(const char *what, const struct ew_onnx_port *p, int n)
{
    for (int i = 0; i < n; i++)
        printf("%-12s %s, %s of %s\n", i ? "" : what, p[i].name, p[i].shape, p[i].type);
}

void ew_info_onnx_print(const struct ew_onnx_summary *s)
{
    if (s->n_unsupported)
        printf("NOT SUPPORTED\n");
    for (int i = 0; i < s->n_unsupported; i++)
        printf("  %s: %lld node%s, the first is %s\n", s->unsupported[i].op,
               (long long)s->unsupported[i].count, s->unsupported[i].count == 1 ? "" : "s",
               s->unsupported[i].first);
    if (s->n_unsupported)
        printf("\n");
    printf("%-12s %s\n", "producer", *s->producer ? s->producer : "not named");
    printf("%-12s %s, IR %lld\n", "opset", s->opsets, (long long)s->ir);
    printf("%-12s %lld, %lld constants", "nodes", (long long)s->nodes, (long long)s->initializers);
    if (s->functions)
        printf(", %lld functions", (long long)s->functions);
    printf("\n");
    print_ports("inputs", s->inputs, s->n_inputs);
    print_ports("outputs", s->outputs, s->n_outputs);
}

static void json_ports(struct ew_json *j, const char *key, const struct ew_onnx_port *p, int n)
{
    ew_json_array(j, key);
    for (int i = 0; i < n; i++) {
        ew_json_object(j, NULL);
        ew_json_str(j, "name", p[i].name);
        ew_json_str(j, "type", p[i].type);
        ew_json_str(j, "shape", p[i].shape);
        ew_json_end(j);
    }
    ew_json_end(j);
}

void ew_info_onnx_json(struct ew_json *j, const struct ew_onnx_summary *s)
{
    ew_json_object(j, "onnx");
    ew_json_str(j, "producer", s->producer);
    ew_json_str(j, "opsets", s->opsets);
    ew_json_int(j, "ir_version", s->ir);
    ew_json_int(j, "nodes", s->nodes);
    json_ports(j, "inputs", s->inputs, s->n_inputs);
    json_ports(j, "outputs", s->outputs, s->n_outputs);
    ew_json_array(j, "unsupported");
    for (int i = 0; i < s->n_unsupported; i++) {
        ew_json_object(j, NULL);
        ew_json_str(j, "operator", s->unsupported[i].op);
        ew_json_int(j, "nodes", s->unsupported[i].count);
        ew_json_str(j, "first", s->unsupported[i].first);
        ew_json_end(j);
    }
    ew_json_end(j);
    ew_json_end(j);
}

ew_err ew_info_onnx_check(const struct ew_onnx_summary *s, const char *path)
{
    EW_CHECK(s->n_unsupported == 0, EW_ERR_UNSUPPORTED,
             "%s: %d kind%s of operator that Edgewise does not have", path, s->n_unsupported,
             s->n_unsupported == 1 ? "" : "s");
    return EW_OK;
}
