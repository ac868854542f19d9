/* SPDX-License-Identifier: Apache-2.0 */
/* One graph run in every way that there is, and the results compared: for the fuzz targets, the
 * files that broke something once, and random graphs. */
#ifndef EW_EVERY_WAY_H
#define EW_EVERY_WAY_H

#include "graph/graph.h"

struct ew_every_way {
    uint64_t seed;      /* of the inputs */
    int64_t most_flops; /* beyond, nothing is run; 0: no bound */
    size_t most_bytes;  /* of the plan's block, likewise */
    double tolerance; /* of floats, as a share of the largest result; 0: results are not compared */
    bool files;       /* also as an engine, and through export and import */
    bool must_run;    /* it is an error where the references cannot run it */
    bool one_thread;  /* no plans of more threads */
    bool any_byte;    /* inputs of 8 bits have all that they can hold, not just small numbers */
    struct ew_graph *by; /* the graph whose references count, with the same inputs and outputs;
                          * NULL: its own */
    int64_t most_batch;  /* with files: one engine for batches 1 to this, run with each; 0: none */
};

/* Runs the graph by the references; then on each instruction set of the machine (or EW_ISA alone)
 * with and without passes, with 2, 3 and 7 threads, and where `files` says so as an engine and
 * after export and import, each of which may be refused.  Where the references fail all must.
 * Fails with the first difference: the message names the way and the output. */
ew_err ew_run_every_way(struct ew_graph *g, const struct ew_every_way *o);

/* For files of unknown contents: small graphs alone, one thread, and results are compared where
 * that means something, that is without jumps (below) and with constants of common sizes. */
ew_err ew_run_every_way_small(struct ew_graph *g);

/* True where nearly equal values may give results that are far apart (ArgMax, Cast, quantisers),
 * so that results cannot be compared. */
bool ew_graph_has_jumps(const struct ew_graph *g);

#endif
