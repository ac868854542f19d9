/* SPDX-License-Identifier: Apache-2.0 */
/* Smaller networks: channels that leave a trained one, and widths of one that is to be built.
 * Quantising is edgewise_train.h's. */
#ifndef EDGEWISE_SHRINK_H
#define EDGEWISE_SHRINK_H

#include "edgewise.h"
#include "edgewise_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Pruning --------------------------------------------------------------------------------- */

/* Zero it, set `size` and whatever is wanted. */
struct ew_pruning_opts {
    size_t size;            /* sizeof(struct ew_pruning_opts) */
    const char *of;         /* what is to become small: "channels", "macs", "params", "bytes" of the
                             * inference plan, "latency" of one image here; NULL: "channels" */
    double keep;            /* the share of it that may stay, over 0 and below 1 */
    const char *importance; /* what stays: "l1", "l2", "bn", "taylor", "random"; NULL: "l1" */
    int global;             /* 1: all layers compete; 0: each loses the same share */
    int64_t align;          /* layers keep multiples of so many channels; 0: 1 */
    int64_t threads;        /* 0: one for each CPU */
    uint64_t seed;
};

struct ew_pruning {
    size_t size; /* sizeof(struct ew_pruning), set before the call */
    int64_t params_before, params;
    int64_t macs_before, macs; /* of one image */
    int64_t layers;            /* that have fewer channels than before */
};

/* Takes the least important channels out of a network, in place, with all that belongs to them.  It
 * computes what it did with those channels at zero; training (edgewise_train.h) then makes up for
 * them, and another cut may follow.  `data` is for importance "taylor" alone, else NULL; `report`
 * may be NULL.  EW_ERR_LIMIT where so little cannot be reached, EW_ERR_UNSUPPORTED where no channel
 * can go; the network is then as it was. */
EW_API ew_err ew_prune_graph(struct ew_graph *net, const struct ew_dataset *data,
                             const struct ew_pruning_opts *opts, struct ew_pruning *report);

/* ---- Widths ---------------------------------------------------------------------------------- */

/* Zero it, set `size` and one of ratio, params and macs. */
struct ew_width_opts {
    size_t size;         /* sizeof(struct ew_width_opts) */
    double ratio;        /* as large as every filter count x ratio would be */
    double params;       /* at most so many parameters, or about so many with records */
    double macs;         /* at most so many multiply-accumulates */
    const char *records; /* CSV of `edgewise scale search`: widths by the laws that are fitted to it
                          * (NeuralScale), or "published": by its authors'; NULL: all layers
                          * alike */
};

/* Filter counts of a network of the zoo for a size, for ew_model_opts.filters; *n is their number.
 * `base` says input and classes, and may be NULL.  Fails as ew_model_filters does, and where no
 * widths meet the limit. */
EW_API ew_err ew_scale_filters(const char *network, const struct ew_model_opts *base,
                               const struct ew_width_opts *opts, int32_t *filters, int max, int *n);

#ifdef __cplusplus
}
#endif

#endif
