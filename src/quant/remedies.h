/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to prepare a network for quantising, and the best of them. */
#ifndef EW_QUANT_WAYS_H
#define EW_QUANT_WAYS_H

#include "quant/quant_impl.h"

struct ew_quant_ways {
    const struct ew_quant_job *job;
    const struct ew_quant_probe *probe;
    struct ew_quant_result *out; /* its ways are filled in */
    struct ew_quant_variant all[EW_QUANT_WAYS];
    const struct ew_quant_variant *best;
};

ew_err ew_quant_ways_try(struct ew_quant_ways *w);
void ew_quant_ways_fini(struct ew_quant_ways *w);

#endif
