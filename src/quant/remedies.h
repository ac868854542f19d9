/* SPDX-License-Identifier: Apache-2.0 */
/* Remedies applied to a network before quantisation, and the choice of the best. */
#ifndef EW_QUANT_REMEDIES_H
#define EW_QUANT_REMEDIES_H

#include "quant/quant_impl.h"

struct ew_quant_remedies {
    const struct ew_quant_job *job;
    const struct ew_quant_probe *probe;
    struct ew_quant_result *out; /* its `remedies` are filled in */
    struct ew_quant_variant all[EW_QUANT_REMEDIES];
    const struct ew_quant_variant *best;
};

ew_err ew_quant_remedies_try(struct ew_quant_remedies *w);
void ew_quant_remedies_fini(struct ew_quant_remedies *w);

#endif
