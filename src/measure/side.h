/* SPDX-License-Identifier: Apache-2.0 */
/* A side of a comparison: a network or engine with its timed plan and properties.  comparison.h
 * measures several in interleaved trials, also by the protocols of the studies. */
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
    bool plain;             /* the graph without passes and tuning */
    bool reference;         /* and reference kernels */
    struct ew_tuner *tuner; /* NULL: kernels by rules */
};

struct ew_side {
    const char *name; /* as in the argument */
    const char *form; /* "engine", "network", "plain graph" */
    struct ew_graph *g;
    struct ew_plan *p;
    struct ew_network network; /* if opened here; of an engine, p belongs to its context */
    struct ew_facts facts;     /* for one image, of the network before passes */
    const char *precision, *isa;
    int64_t batch, threads, file_bytes; /* file_bytes 0: no file */
    int64_t activation_bytes;           /* activations and scratch */
    int64_t weight_bytes;               /* weights in memory, with packed copies */
    struct ew_preprocess prep;          /* of the images */
};

/* Loads FILE.ewe, FILE.onnx, a checkpoint, or a network of the zoo with random weights, and fills
 * its inputs with random numbers.  Release with fini, also after a failure. */
ew_err ew_side_load(const char *what, const struct ew_side_opts *o, struct ew_side *out);
/* The same from a graph with weights, of which it takes ownership, also on failure. */
ew_err ew_side_take(struct ew_graph *g, const char *name, const struct ew_side_opts *o,
                    struct ew_side *out);
void ew_side_fini(struct ew_side *s);

/* Resident bytes of a separate process after loading `what` and a few runs; 0 if not known.  Forks:
 * call it before any thread exists. */
int64_t ew_side_resident(const char *what, const struct ew_side_opts *o);

/* ---- Power ---- */

/* Runs the network for this time with the meter. */
ew_err ew_side_power(struct ew_side *s, struct ew_power_meter *m, double seconds,
                     struct ew_bench_power *out);

/* ---- Accuracy ---- */

/* Accuracy of the timed plan on a split, as ew_image_set_open names it; 0 to 1. */
ew_err ew_side_accuracy(struct ew_side *s, const char *data, double *out);

#endif
