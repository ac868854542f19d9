/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in and out of a graph. */
#include "federate/weight_vector.h"

#include <stdlib.h>
#include <string.h>

static bool is_kind(const struct ew_value *v, enum ew_value_kind kind)
{
    return v->kind == kind && !v->frozen && v->t.data && v->t.dtype == EW_F32;
}

static void add_kind(struct ew_weight_vector *w, enum ew_value_kind kind)
{
    for (int i = 0; i < w->g->n_values; i++)
        if (is_kind(&w->g->values[i], kind)) {
            w->values[w->n++] = i;
            w->size += (int64_t)(ew_tensor_bytes(&w->g->values[i].t) / sizeof(float));
        }
}

ew_err ew_weight_vector_open(struct ew_graph *g, struct ew_weight_vector *out)
{
    *out = (struct ew_weight_vector){.g = g};
    out->values = malloc((size_t)g->n_values * sizeof(*out->values) + 1);
    EW_CHECK(out->values, EW_ERR_MEMORY, "no memory for the weights of %s", g->name);
    add_kind(out, EW_VALUE_PARAM);
    out->learning = out->size;
    add_kind(out, EW_VALUE_STATE);
    return EW_OK;
}

void ew_weight_vector_close(struct ew_weight_vector *w)
{
    free(w->values);
    *w = (struct ew_weight_vector){0};
}

void ew_weight_vector_read(const struct ew_weight_vector *w, float *to)
{
    for (int i = 0; i < w->n; i++) {
        const struct ew_tensor *t = &w->g->values[w->values[i]].t;
        memcpy(to, t->data, ew_tensor_bytes(t));
        to += ew_tensor_bytes(t) / sizeof(float);
    }
}

void ew_weight_vector_write(const struct ew_weight_vector *w, const float *from)
{
    for (int i = 0; i < w->n; i++) {
        const struct ew_tensor *t = &w->g->values[w->values[i]].t;
        memcpy(t->data, from, ew_tensor_bytes(t));
        from += ew_tensor_bytes(t) / sizeof(float);
    }
}
