/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a network, prunes channels until a share of its multiply-accumulates is left, and trains
 * it again.
 *
 *   cc shrink.c $(pkg-config --cflags --libs edgewise) -o shrink
 *   edgewise data get mnist
 *   ./shrink lenet5 mnist 0.5 small.onnx */
#include <edgewise.h>
#include <edgewise_data.h>
#include <edgewise_shrink.h>
#include <edgewise_train.h>
#include <stdio.h>
#include <stdlib.h>

static ew_err train(struct ew_graph *net, const struct ew_dataset *data)
{
    const struct ew_training_opts o = {.size = sizeof(o), .epochs = 2, .batch = 32, .lr = 0.05};
    struct ew_training *t = NULL;
    int event = EW_TRAINING_BATCH;
    ew_err err = ew_training_open(net, data, &o, &t);
    while (!err && event != EW_TRAINING_DONE)
        err = ew_training_step(t, &event);
    ew_training_close(t);
    return err;
}

static ew_err show(const char *when, const struct ew_graph *net, const struct ew_dataset *data)
{
    struct ew_evaluation e = {.size = sizeof(e)};
    const ew_err err = ew_evaluate_graph(net, data, NULL, &e);
    if (!err)
        printf("%s: accuracy %.1f %%\n", when, 100 * e.accuracy);
    return err;
}

static ew_err prune(struct ew_graph *net, double keep)
{
    const struct ew_pruning_opts o = {.size = sizeof(o), .of = "macs", .keep = keep};
    struct ew_pruning p = {.size = sizeof(p)};
    const ew_err err = ew_prune_graph(net, NULL, &o, &p);
    if (!err)
        printf("MACs: %lld -> %lld, %lld layers are narrower\n", (long long)p.macs_before,
               (long long)p.macs, (long long)p.layers);
    return err;
}

int main(int argc, char **argv)
{
    struct ew_dataset *data = NULL;
    struct ew_graph *net = NULL;
    if (argc != 5)
        return fprintf(stderr, "usage: shrink NETWORK DATA SHARE FILE.onnx\n"), 2;
    ew_err err = ew_dataset_open(argv[2], &data);
    if (!err)
        err = ew_network_for_data(argv[1], data, 1, &net);
    if (!err)
        err = train(net, data);
    if (!err)
        err = show("trained", net, data);
    if (!err)
        err = prune(net, atof(argv[3]));
    if (!err)
        err = show("cut", net, data);
    if (!err)
        err = train(net, data);
    if (!err)
        err = show("trained again", net, data);
    if (!err)
        err = ew_onnx_save(net, argv[4], NULL);
    if (err)
        fprintf(stderr, "shrink: %s\n", ew_error_message());
    ew_graph_free(net);
    ew_dataset_close(data);
    return err ? 1 : 0;
}
