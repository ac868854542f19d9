/* SPDX-License-Identifier: Apache-2.0 */
/* The sides of a comparison: networks and engines, each with the plan that is timed, and what else
 * is known of them.  comparison.h measures several in turns, the protocols those of the studies. */
#ifndef EW_MEASURE_SIDE_H
#define EW_MEASURE_SIDE_H

#include "bench/bench.h"
#include "engine/engine.h"
#include "graph/facts.h"
#include "measure/classifier.h"
#include "measure/power_meter.h"

/* ---- Sides ---- */

struct ew_side_opts {
    struct ew_network_opts net;
    int threads;
    bool plain;             /* the graph as it is: no passes, no tuning */
    bool reference;         /* and references instead of kernels */
    struct ew_tuner *tuner; /* NULL: by rules */
};

struct ew_side {
    const char *name; /* as given */
    const char *form; /* "engine", "network", "plain graph" */
    struct ew_graph *g;
    struct ew_plan *p;
    struct ew_network network; /* where it was opened; p is its context's where it is an engine */
    struct ew_facts facts;     /* of one image, of the network as it came */
    const char *precision, *isa;
    int64_t batch, threads, file_bytes; /* file_bytes 0: there is no file */
    int64_t activation_bytes;           /* activations and scratch */
    int64_t weight_bytes;               /* what is in memory of weights, packed copies included */
    struct ew_preprocess prep;          /* of images */
};

/* Loads FILE.ewe, FILE.onnx, a checkpoint, or a network of the zoo with random weights, and fills
 * its inputs with random numbers.  Release with fini, also after a failure. */
ew_err ew_side_load(const char *what, const struct ew_side_opts *o, struct ew_side *out);
/* The same from a graph that has its weights, which is taken over, also on failure. */
ew_err ew_side_take(struct ew_graph *g, const char *name, const struct ew_side_opts *o,
                    struct ew_side *out);
void ew_side_fini(struct ew_side *s);

/* Bytes that a process of its own has in memory after loading `what` and a few runs; 0 where that
 * cannot be found out.  Call it before any thread is there. */
int64_t ew_side_resident(const char *what, const struct ew_side_opts *o);

/* ---- Power ---- */

/* Runs the side for so long. */
ew_err ew_side_power(struct ew_side *s, struct ew_power_meter *m, double seconds,
                     struct ew_bench_power *out);

/* ---- Accuracy ---- */

/* The side's own plan over a split, as ew_image_set_open names it; a share from 0 to 1. */
ew_err ew_side_accuracy(struct ew_side *s, const char *data, double *out);

#endif
