/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise export: a network as an ONNX or XIR file. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/cmd.h"
#include "compress/pass.h"
#include "format/xir.h"
#include "network/network.h"
#include "report/text_table.h"

enum { QDQ_AS_IS, QDQ_POW2, QDQ_QCDQ };
static const char *const qdq_names[] = {"as-is", "pow2", "qcdq", NULL};

struct opts {
    struct ew_network_opts net; /* net.batch 0: symbolic batch */
    const char *output;
    bool fold;
    int qdq;
    int64_t seed, max_bytes;
};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "output", .type = EW_FIELD_STR, .offset = offsetof(struct opts, output),
     .metavar = "FILE.onnx|FILE.xmodel", .help = "file to write", .letter = 'o'},
    EW_NETWORK_SIZE_FIELDS(struct opts, net),
    {.name = "batch", .type = EW_FIELD_INT, .offset = offsetof(struct opts, net.batch), .def = "0",
     .min = 0, .max = 1048576, .metavar = "B", .help = "fixed batch size; 0: dynamic"},
    {.name = "fold", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, fold),
     .help = "fold batch norms into the preceding convolutions"},
    {.name = "qdq", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, qdq),
     .choices = qdq_names, .def = "as-is",
     .help = "form of Q/DQ nodes: pow2 checks that all are int8 with power-of-two scales and "
     "writes every zero point; qcdq adds Clip nodes, for QONNX (FINN, hls4ml)"},
    {.name = "seed", .type = EW_FIELD_INT, .offset = offsetof(struct opts, seed), .def = "1",
     .metavar = "N", .help = "seed of the random weights of a zoo network"},
    {.name = "max-bytes", .type = EW_FIELD_SIZE, .offset = offsetof(struct opts, max_bytes),
     .def = "0", .metavar = "BYTES",
     .help = "store weights in FILE.onnx.data if the file would be larger; 0: 2G"},
    EW_FIELD_END};
/* clang-format on */

static int64_t file_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : 0;
}

/* The batch of the file: 0 if it is open, which a network can rule out. */
static int64_t file_batch(const struct opts *o, struct ew_graph *g)
{
    int64_t batch;
    bool open = false;
    if (o->net.batch || ew_network_is_xir(o->output))
        return ew_max_i64(o->net.batch, 1);
    for (int i = 0; i < g->n_inputs; i++)
        open |= g->values[g->inputs[i]].dynamic & 1;
    if (!open || ew_graph_batch(g, &batch) != EW_OK)
        return ew_graph_images(g);
    open = ew_graph_set_batch(g, batch + 1) == EW_OK;
    return ew_graph_set_batch(g, batch) == EW_OK && open ? 0 : batch;
}

static ew_err print(const struct ew_cmd_call *c, struct ew_graph *g)
{
    const struct opts *o = c->opts;
    const int64_t batch = file_batch(o, g);
    char bytes[EW_TEXT_CHARS], count[EW_TEXT_CHARS];
    struct ew_cost cost;
    EW_TRY(ew_graph_cost(g, &cost, NULL));
    if (!c->json) {
        printf("%s: %s, ", o->output, ew_text_bytes(file_bytes(o->output), bytes));
        if (cost.params > 0) /* 0 for an integer network: its weights are constants */
            printf("%s parameters, ", ew_text_count(cost.params, count));
        printf("batch %s\n", batch ? "fixed" : "open");
        return EW_OK;
    }
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", g->name);
    ew_json_str(&j, "file", o->output);
    ew_json_int(&j, "bytes", file_bytes(o->output));
    ew_json_int(&j, "params", cost.params);
    ew_json_int(&j, "nodes", g->n_nodes);
    ew_json_int(&j, "batch", batch);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err write_xir(const struct opts *o, struct ew_graph *g)
{
    EW_CHECK(o->qdq == QDQ_AS_IS, EW_ERR_USAGE, "--qdq is for ONNX: %s is XIR", o->output);
    EW_CHECK(o->max_bytes == 0, EW_ERR_USAGE, "--max-bytes is for ONNX: %s is XIR", o->output);
    return ew_xir_save(g, o->output, o->net.batch);
}

static ew_err write_onnx(const struct opts *o, struct ew_graph *g)
{
    const struct ew_onnx_save_opts save = {
        .size = sizeof(save), .batch = o->net.batch, .max_bytes = o->max_bytes};
    if (o->qdq != QDQ_AS_IS)
        EW_TRY(ew_fail_in(o->qdq == QDQ_QCDQ ? ew_pass_qcdq(g) : ew_pass_explicit_pow2(g), "%s",
                          o->output));
    return ew_onnx_save(g, o->output, &save);
}

static ew_err export_graph(struct ew_cmd_call *c, struct ew_graph *g)
{
    const struct opts *o = c->opts;
    EW_TRY(ew_pass_convert_fake_quant(g));
    if (o->fold)
        EW_TRY(ew_pass_fold_batch_norm(g));
    EW_TRY(ew_network_is_xir(o->output) ? write_xir(o, g) : write_onnx(o, g));
    return print(c, g);
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    EW_CHECK(o->output, EW_ERR_USAGE, "no output file: --output FILE");
    struct ew_network_open_opts how = {.opts = o->net, .seed = (uint64_t)o->seed};
    how.opts.batch = 1; /* the exporter sets the batch of the file */
    struct ew_network n;
    ew_err e = ew_network_open(c->args[0], &how, &n);
    if (e == EW_OK && n.random)
        EW_INFO("%s has random weights (seed %lld), and the file says so", c->args[0],
                (long long)o->seed);
    if (e == EW_OK)
        e = export_graph(c, n.graph);
    ew_network_close(&n);
    return e;
}

const struct ew_cmd ew_cmd_export = {
    .name = "export",
    .group = EW_CMD_NETWORK,
    .summary = "write a network as an ONNX or XIR file",
    .args = "NAME|FILE.onnx|FILE.xmodel|CKPT",
    .about = "Zoo networks get random weights from --seed; their input in the file is [N, C, H, "
             "W].\n"
             "The file has opset 13, or the first opset that has all of its operators.\n"
             "FILE.xmodel is XIR, for AMD's DPU: the network must have been quantised with "
             "--scheme pow2, and its images are [N, H, W, C].",
    .examples = "export resnet18 -o resnet18.onnx\n"
                "export mobilenet_v2 --input 96x96x3 --classes 10 --batch 1 --fold -o small.onnx\n"
                "export model.onnx --fold -o folded.onnx\n"
                "export dpu.onnx --qdq qcdq -o finn.onnx\n"
                "export dpu.onnx -o dpu.xmodel",
    .min_args = 1,
    .max_args = 1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
    .starts_nothing = true,
};
