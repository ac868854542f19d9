/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: which layers stay float32, and why. */
#ifndef EW_QUANT_GATE_H
#define EW_QUANT_GATE_H

#include "compress/pass.h"
#include "quant/quant_impl.h"

struct ew_quant_gate {
    const struct ew_quant_job *job;
    const struct ew_quant_probe *probe;
    const struct ew_quant_variant *v;
    struct ew_quant_result *out; /* its layers are filled in */
    bool *keep;                  /* by node of v->g: it stays float32 */
    struct ew_readers *readers;
};

/* Rates and times every layer and decides; release with close, also after a failure. */
ew_err ew_quant_gate_open(struct ew_quant_gate *gate);
void ew_quant_gate_close(struct ew_quant_gate *gate);

/* The network in QDQ form as it stands. */
ew_err ew_quant_gate_build(const struct ew_quant_gate *gate, struct ew_graph **out);

/* The layers that are quantised now, the costliest first. */
ew_err ew_quant_gate_order(struct ew_quant_gate *gate, struct ew_quant_layer ***out, int *n);
/* A layer stays float32 for a reason, or (NULL) is quantised after all. */
void ew_quant_gate_set(struct ew_quant_gate *gate, struct ew_quant_layer *l, const char *reason);

/* Layers in a row of which some take longer in int8 by themselves. */
struct ew_quant_group {
    int first, n;   /* of the layers */
    double saves_s; /* by themselves, without the conversions round the group */
};

/* The groups of `n` layers in a network that takes whole_s in float32, the largest saving first,
 * into room for n; returns how many. */
int ew_quant_slow_groups(const struct ew_quant_layer *layers, int n, double whole_s,
                         struct ew_quant_group *out);

/* Slow groups stay float32 where the whole network is measured faster for it. */
ew_err ew_quant_gate_by_time(struct ew_quant_gate *gate);

#endif
