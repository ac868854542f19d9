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
    struct ew_quant_result *out; /* its `layers` are filled in */
    bool *keep;                  /* by node of v->g: stays float32 */
    struct ew_readers *readers;
};

/* Rates and times every layer, and decides.  Free with close, also after a failure. */
ew_err ew_quant_gate_open(struct ew_quant_gate *gate);
void ew_quant_gate_close(struct ew_quant_gate *gate);

/* Builds the network in QDQ form with the present decisions. */
ew_err ew_quant_gate_build(const struct ew_quant_gate *gate, struct ew_graph **out);

/* The quantised layers, by decreasing loss of accuracy. */
ew_err ew_quant_gate_order(struct ew_quant_gate *gate, struct ew_quant_layer ***out, int *n);
/* Keeps a layer in float32 for a reason, or (NULL) quantises it. */
void ew_quant_gate_set(struct ew_quant_gate *gate, struct ew_quant_layer *l, const char *reason);

/* Adjacent layers of which some are slower in int8. */
struct ew_quant_group {
    int first, n;   /* index and number of layers */
    double saves_s; /* estimate, without conversions around the group */
};

/* Finds the groups among `n` layers of a network that takes whole_s in float32, by decreasing
 * saving; `out` has room for n.  Returns their number. */
int ew_quant_slow_groups(const struct ew_quant_layer *layers, int n, double whole_s,
                         struct ew_quant_group *out);

/* Keeps slow groups in float32 if the whole network is measured to be faster. */
ew_err ew_quant_gate_by_time(struct ew_quant_gate *gate);

#endif
