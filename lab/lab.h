/* SPDX-License-Identifier: Apache-2.0 */
/* Interface of the experiments: an experiment names a kernel, sets up a shape and runs it. */
#ifndef EW_LAB_H
#define EW_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cpu/isa.h"

/* A kernel with a shape, ready to run. */
struct lab_job {
    void (*run)(void *ctx);       /* the kernel; NULL: it does not support the shape */
    void (*reference)(void *ctx); /* the reference; NULL: not timed */
    void *ctx;
    double flops; /* 0: a kernel that only moves data */
    double bytes; /* compulsory traffic: every array read or written once */
    bool integer; /* relative to the peak of 8-bit products */
};

struct lab_experiment {
    const char *kernel; /* argument on the command line */
    const char *help;
    int shapes;
    const char *(*shape)(int i); /* name of shape i */
    void (*setup)(const struct ew_kernels *k, int i, struct lab_job *out);
};

/* Random, 64-byte aligned, never freed, since the program is short-lived.  Exits if memory runs
 * out. */
float *lab_array(size_t n);

/* Layers of common networks; depthwise ones are in a list of their own. */
struct lab_layer {
    const char *name;
    struct ew_conv_shape shape;
};

enum { LAB_LAYERS = 54, LAB_DEPTHWISE = 9 };
extern const struct lab_layer lab_layers[LAB_LAYERS], lab_depthwise[LAB_DEPTHWISE];
const char *lab_layer_name(int i);
const char *lab_depthwise_name(int i);

/* Arrays end with kernel NULL. */
extern const struct lab_experiment lab_conv[], lab_train[], lab_int[], lab_memory_bound[];

#endif
