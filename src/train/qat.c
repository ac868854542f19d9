/* SPDX-License-Identifier: Apache-2.0 */
/* Rounded weights for each step of training. */
#include "train/qat.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Weights that two layers share are rounded once. */
static bool is_known(const struct ew_qat *q, int weights)
{
    for (int i = 0; i < q->n; i++)
        if (q->layers[i].of.weights == weights)
            return true;
    return false;
}

ew_err ew_qat_open(const struct ew_graph *g, struct ew_qat *out)
{
    *out = (struct ew_qat){.g = g};
    if (!ew_fake_quant_any(g))
        return EW_OK;
    out->layers = calloc((size_t)g->n_nodes + 1, sizeof(*out->layers));
    EW_CHECK(out->layers, EW_ERR_MEMORY, "no memory for %d layers", g->n_nodes);
    for (int k = 0; k < g->n_nodes; k++) {
        struct ew_fake_layer l;
        if (!ew_fake_quant_layer(g, k, &l) || is_known(out, l.of.weights))
            continue;
        out->layers[out->n++] = l;
        out->count += ew_tensor_count(&g->values[l.of.weights].t);
    }
    const size_t bytes = (size_t)out->count * sizeof(float);
    EW_TRY(ew_aligned_new(bytes + 1, (void **)&out->kept));
    return ew_aligned_new(bytes + 1, (void **)&out->rounded);
}

void ew_qat_close(struct ew_qat *q)
{
    free(q->layers);
    free(q->kept);
    free(q->rounded);
    *q = (struct ew_qat){0};
}

void ew_qat_begin(struct ew_qat *q)
{
    int64_t at = 0;
    for (int i = 0; i < q->n; i++) {
        const struct ew_tensor *w = &q->g->values[q->layers[i].of.weights].t;
        const size_t bytes = ew_tensor_bytes(w);
        memcpy(q->kept + at, w->data, bytes);
        ew_fake_quant_round(q->g, &q->layers[i], q->rounded + at);
        memcpy(w->data, q->rounded + at, bytes);
        at += ew_tensor_count(w);
    }
}

void ew_qat_end(struct ew_qat *q)
{
    const float *kept = q->kept, *rounded = q->rounded;
    for (int i = 0; i < q->n; i++) {
        const struct ew_tensor *t = &q->g->values[q->layers[i].of.weights].t;
        const int64_t n = ew_tensor_count(t);
        float *w = t->data;
        for (int64_t k = 0; k < n; k++)
            w[k] = kept[k] + (w[k] - rounded[k]);
        kept += n;
        rounded += n;
    }
}
