/* SPDX-License-Identifier: Apache-2.0 */
/* The laboratory's own contract: an experiment names a kernel, sets up one shape and runs it. */
#ifndef EW_LAB_H
#define EW_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cpu/isa.h"

/* One kernel on one shape, ready to run. */
struct lab_job {
    void (*run)(void *ctx);       /* the kernel; NULL: it does not do this shape */
    void (*reference)(void *ctx); /* the slow one; NULL: not timed */
    void *ctx;
    double flops; /* 0: a kernel that only moves data */
    double bytes; /* read and written once */
    bool integer; /* beside the peak of 8-bit products */
};

struct lab_experiment {
    const char *kernel; /* word on the command line */
    const char *help;
    int shapes;
    const char *(*shape)(int i); /* name of shape i */
    void (*setup)(const struct ew_kernels *k, int i, struct lab_job *out);
};

/* Random, 64-byte aligned, never freed: the program is short-lived.  Exits where there is none. */
float *lab_array(size_t n);

/* Layers of the networks that matter; depthwise ones apart. */
struct lab_layer {
    const char *name;
    struct ew_conv_shape shape;
};

enum { LAB_LAYERS = 54, LAB_DEPTHWISE = 9 };
extern const struct lab_layer lab_layers[LAB_LAYERS], lab_depthwise[LAB_DEPTHWISE];
const char *lab_layer_name(int i);
const char *lab_depthwise_name(int i);

/* Ends with the experiment whose kernel is NULL. */
extern const struct lab_experiment lab_conv[], lab_train[], lab_int[], lab_rest[];

#endif
