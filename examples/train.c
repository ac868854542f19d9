/* SPDX-License-Identifier: Apache-2.0 */
/* From a data set to an int8 engine: trains a network of the zoo on a data set, evaluates it,
 * quantises it and compiles it.
 *
 *   cc train.c $(pkg-config --cflags --libs edgewise) -o train
 *   edgewise data get mnist
 *   ./train lenet5 mnist 2 net.ewe */
#include <edgewise.h>
#include <edgewise_data.h>
#include <edgewise_train.h>
#include <stdio.h>
#include <stdlib.h>

/* A network for the image size and classes of this data set, with initial weights. */
static ew_err build(const char *name, const struct ew_dataset *data, struct ew_graph **out)
{
    struct ew_dataset_facts f = {.size = sizeof(f)};
    struct ew_model_opts o = {.size = sizeof(o)};
    ew_err err = ew_dataset_facts(data, &f);
    if (err)
        return err;
    printf("%s: %lld training images, %lld test images, %lld classes\n", f.name, (long long)f.train,
           (long long)f.test, (long long)f.classes);
    o.height = f.height; /* 0 if sizes differ: the network's own */
    o.width = f.width;
    o.channels = f.channels;
    o.classes = f.classes;
    err = ew_model_build(name, &o, out);
    return err ? err : ew_model_init(name, 1, *out);
}

/* Step by step, so that a program can do something else in between, or stop. */
static ew_err train(struct ew_graph *net, const struct ew_dataset *data, int epochs)
{
    const struct ew_training_opts o = {.size = sizeof(o),
                                       .epochs = epochs,
                                       .batch = 32,
                                       .lr = 0.05,
                                       .options = "momentum = 0.9\nschedule = cosine"};
    struct ew_training *t = NULL;
    struct ew_training_state s = {.size = sizeof(s)};
    int event = EW_TRAINING_BATCH;
    ew_err err = ew_training_open(net, data, &o, &t);
    while (!err && event != EW_TRAINING_DONE) {
        err = ew_training_step(t, &event);
        if (!err && event == EW_TRAINING_EPOCH)
            err = ew_training_state(t, &s);
        if (!err && event == EW_TRAINING_EPOCH)
            printf("validation: accuracy %.1f %%, loss %.3f\n", 100 * s.validation_accuracy,
                   s.validation_loss);
    }
    ew_training_close(t);
    return err;
}

/* Accuracy of the float32 network and of the int8 one. */
static ew_err shrink(const struct ew_graph *net, const struct ew_dataset *data, const char *path)
{
    struct ew_evaluation e = {.size = sizeof(e)};
    struct ew_quantization q = {.size = sizeof(q)};
    const struct ew_quantization_opts o = {.size = sizeof(o), .images = 200, .max_drop = 5};
    struct ew_graph *int8 = NULL;
    ew_err err = ew_evaluate_graph(net, data, NULL, &e);
    if (!err)
        printf("float32: accuracy %.1f %% of %lld images\n", 100 * e.accuracy,
               (long long)e.samples);
    if (!err)
        err = ew_quantize_graph(net, data, &o, &q, &int8);
    if (!err)
        printf("int8: accuracy %.1f %%, %lld of %lld layers stay float32, weights %lld -> %lld "
               "bytes\n",
               100 * q.int8_accuracy, (long long)q.float_layers, (long long)q.layers,
               (long long)q.float_bytes, (long long)q.int8_bytes);
    if (!err)
        err = ew_engine_compile(int8, NULL, path);
    ew_graph_free(int8);
    return err;
}

int main(int argc, char **argv)
{
    struct ew_dataset *data = NULL;
    struct ew_graph *net = NULL;
    if (argc != 5)
        return fprintf(stderr, "usage: train NETWORK DATA EPOCHS ENGINE.ewe\n"), 2;
    ew_err err = ew_dataset_open(argv[2], &data);
    if (!err)
        err = build(argv[1], data, &net);
    if (!err)
        err = train(net, data, atoi(argv[3]));
    if (!err)
        err = shrink(net, data, argv[4]);
    if (err)
        fprintf(stderr, "train: %s\n", ew_error_message());
    ew_graph_free(net);
    ew_dataset_close(data);
    return err ? 1 : 0;
}
