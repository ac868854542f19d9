/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a graph by all kernels, plans and file formats, and compares the results: for fuzz targets,
 * regression files and random graphs. */
#ifndef EW_ALL_CONFIGS_H
#define EW_ALL_CONFIGS_H

#include "graph/graph.h"

struct ew_all_configs {
    uint64_t seed;      /* seed of the inputs */
    int64_t most_flops; /* graphs with more are not run; 0: no limit */
    size_t most_bytes;  /* limit on the plan's memory, likewise */
    double tolerance;   /* of floats, relative to the largest result; 0: results are not compared */
    bool files;         /* also as an engine, and after ONNX export and import */
    bool must_run;      /* fail if the reference kernels cannot run it */
    bool one_thread;    /* no multi-threaded plans */
    bool any_byte;      /* 8-bit inputs use the full range, not only small numbers */
    struct ew_graph *by; /* run the references on this graph instead, which has the same inputs and
                          * outputs; NULL: on g */
    int64_t most_batch;  /* with `files`: one engine for batch sizes 1 to this, each of which is
                          * run; 0: none */
};

/* Runs the graph by reference kernels; then with each instruction set of the machine (or only
 * EW_ISA), with and without passes, with 2, 3 and 7 threads, and with `files` as an engine and
 * after export and import, either of which may be refused.  If the references fail, all must.
 * Fails with the first difference; the message names the configuration and the output. */
ew_err ew_run_all_configs(struct ew_graph *g, const struct ew_all_configs *o);

/* For arbitrary files: runs small graphs only, with one thread; compares results only if that is
 * meaningful: no jumps (below), and constants of ordinary magnitude. */
ew_err ew_run_all_configs_small(struct ew_graph *g);

/* True if the graph has discontinuous operators (ArgMax, Cast, quantisers), with which nearly equal
 * inputs can give very different results. */
bool ew_graph_has_jumps(const struct ew_graph *g);

#endif
