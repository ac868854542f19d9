/* SPDX-License-Identifier: Apache-2.0 */
/* Smaller networks: channel pruning of trained ones, and widths for new ones.  Quantisation is in
 * edgewise_train.h. */
#ifndef EDGEWISE_SHRINK_H
#define EDGEWISE_SHRINK_H

#include "edgewise.h"
#include "edgewise_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Pruning --------------------------------------------------------------------------------- */

/* Zero the struct, set `size` and the fields that you need. */
struct ew_pruning_opts {
    size_t size;    /* sizeof(struct ew_pruning_opts) */
    const char *of; /* the size to reduce: "channels", "macs", "params", "bytes" of the inference
                     * plan, or "latency" of one image on this machine; NULL: "channels" */
    double keep;    /* fraction of it to keep, in (0, 1) */
    const char *importance; /* importance criterion of channels: "l1", "l2", "bn", "taylor",
                             * "random"; NULL: "l1" */
    int global;      /* 1: one ranking over all layers; 0: every layer loses the same fraction */
    int64_t align;   /* channel counts stay multiples of this; 0: 1 */
    int64_t threads; /* 0: one for each CPU */
    uint64_t seed;
};

struct ew_pruning {
    size_t size; /* sizeof(struct ew_pruning), set before the call */
    int64_t params_before, params;
    int64_t macs_before, macs; /* of one image, or of a batch that the network fixes */
    int64_t layers;            /* number that lost channels */
};

/* Removes the least important channels, in place, with everything that depends on them.  The result
 * computes what the network did with those channels zeroed; fine-tuning (edgewise_train.h) recovers
 * accuracy, and another round may follow.  `data` is used by importance "taylor" alone, which needs
 * images [N, H, W, C] as ew_network_graph gives them; else NULL.  `report` may be NULL.
 * EW_ERR_LIMIT if the target cannot be reached, EW_ERR_UNSUPPORTED if no channel can be removed;
 * the network is unchanged then. */
EW_API ew_err ew_prune_graph(struct ew_graph *net, const struct ew_dataset *data,
                             const struct ew_pruning_opts *opts, struct ew_pruning *report);

/* ---- Widths ---------------------------------------------------------------------------------- */

/* Zero the struct, set `size` and one of ratio, params and macs. */
struct ew_width_opts {
    size_t size;         /* sizeof(struct ew_width_opts) */
    double ratio;        /* the size that multiplying every filter count by it would give */
    double params;       /* at most this many parameters (with records: about) */
    double macs;         /* at most this many multiply-accumulates */
    const char *records; /* CSV of `edgewise scale search`: power laws fitted to it give the widths
                          * (NeuralScale); "published": the authors' laws; NULL: all layers scaled
                          * alike */
};

/* Filter counts of a zoo network for a target size, for ew_model_opts.filters; *n is their number.
 * `base` gives input and classes, and may be NULL.  Fails as ew_model_filters does, and if no
 * widths meet the target. */
EW_API ew_err ew_scale_filters(const char *network, const struct ew_model_opts *base,
                               const struct ew_width_opts *opts, int32_t *filters, int max, int *n);

#ifdef __cplusplus
}
#endif

#endif
