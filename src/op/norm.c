/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of instance, group and layer normalisation: y = (x - mean) / std * scale + bias, the
 * statistics being those of a set of elements. */
#include "op/norm.h"

#include <math.h>

#define CHUNK 256 /* elements at a time */

/* One set: offsets of its rows and parameters. */
struct set {
    int64_t base, step, param; /* step: from row to row */
    double mean, inv;
};

static struct set get_set(const struct ew_norm_sets *s, int64_t i, int64_t j)
{
    const int64_t step = s->inner * s->run;
    return (struct set){.base = i * s->rows * step + j * s->run,
                        .step = step,
                        .param = s->per_set ? j : j * s->run};
}

static struct ew_tensor aux_tensor(const struct ew_call *c, const struct ew_norm_sets *s)
{
    return (struct ew_tensor){c->in[0]->dtype, {1, {2 * s->outer * s->inner}}, c->aux};
}

size_t ew_norm_aux(const struct ew_call *c, const struct ew_norm_sets *s)
{
    return 2 * (size_t)(s->outer * s->inner) * ew_dtype_size(c->in[0]->dtype);
}

void ew_norm_cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 8 * ew_tensor_count(c->in[0]);
}

/* Parameters of elements [k, k + n) of the set's rows. */
static void load_params(const struct ew_norm_sets *s, const struct ew_tensor *t,
                        const struct set *set, int64_t k, int64_t n, double *v)
{
    if (ew_tensor_count(t) != 1 && !s->per_set) {
        ew_tensor_load(t, set->param + k, n, v);
        return;
    }
    const double one = ew_tensor_get(t, s->per_set ? set->param : 0);
    for (int64_t i = 0; i < n; i++)
        v[i] = one;
}

static void add_params(const struct ew_norm_sets *s, struct ew_tensor *t, const struct set *set,
                       int64_t k, int64_t n, const double *v)
{
    if (ew_tensor_count(t) != 1 && !s->per_set) {
        ew_tensor_accumulate(t, set->param + k, n, v);
        return;
    }
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += v[i];
    ew_tensor_accumulate(t, s->per_set ? set->param : 0, 1, &sum);
}

static void measure(const struct ew_tensor *x, const struct ew_norm_sets *s, struct set *set)
{
    const double count = (double)(s->rows * s->run);
    double v[CHUNK], sum = 0, square = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t r = 0; r < s->rows; r++) {
            for (int64_t k = 0; k < s->run; k += CHUNK) {
                const int64_t n = ew_min_i64(CHUNK, s->run - k);
                ew_tensor_load(x, set->base + r * set->step + k, n, v);
                for (int64_t i = 0; i < n; i++) {
                    sum += pass == 0 ? v[i] : 0;
                    square += pass == 1 ? (v[i] - set->mean) * (v[i] - set->mean) : 0;
                }
            }
        }
        set->mean = sum / count;
    }
    set->inv = 1 / sqrt(square / count + s->eps);
}

static void apply(const struct ew_call *c, const struct ew_norm_sets *s, const struct set *set)
{
    double v[CHUNK], scale[CHUNK], bias[CHUNK] = {0};
    for (int64_t r = 0; r < s->rows; r++) {
        for (int64_t k = 0; k < s->run; k += CHUNK) {
            const int64_t n = ew_min_i64(CHUNK, s->run - k), at = set->base + r * set->step + k;
            ew_tensor_load(c->in[0], at, n, v);
            load_params(s, c->in[1], set, k, n, scale);
            if (c->n_in > 2 && c->in[2])
                load_params(s, c->in[2], set, k, n, bias);
            for (int64_t i = 0; i < n; i++)
                v[i] = (v[i] - set->mean) * set->inv * scale[i] + bias[i];
            ew_tensor_store(c->out[0], at, n, v);
        }
    }
}

ew_err ew_norm_forward(const struct ew_call *c, const struct ew_norm_sets *s)
{
    struct ew_tensor kept = aux_tensor(c, s);
    for (int64_t i = 0; i < s->outer; i++) {
        for (int64_t j = 0; j < s->inner; j++) {
            const int64_t at = i * s->inner + j;
            struct set set = get_set(s, i, j);
            measure(c->in[0], s, &set);
            apply(c, s, &set);
            if (c->n_out > 1 && c->out[1])
                ew_tensor_store(c->out[1], at, 1, &set.mean);
            if (c->n_out > 2 && c->out[2])
                ew_tensor_store(c->out[2], at, 1, &set.inv);
            if (c->aux) {
                ew_tensor_store(&kept, at, 1, &set.mean);
                ew_tensor_store(&kept, s->outer * s->inner + at, 1, &set.inv);
            }
        }
    }
    return EW_OK;
}

/* A chunk of a row in backward: xhat, dy and dy * scale. */
struct piece {
    double xhat[CHUNK], dy[CHUNK], gy[CHUNK];
};

static void load_piece(const struct ew_call *c, const struct ew_norm_sets *s, const struct set *set,
                       int64_t r, int64_t k, struct piece *p)
{
    const int64_t n = ew_min_i64(CHUNK, s->run - k), at = set->base + r * set->step + k;
    ew_tensor_load(c->in[0], at, n, p->xhat);
    ew_tensor_load(c->dout[0], at, n, p->dy);
    load_params(s, c->in[1], set, k, n, p->gy);
    for (int64_t i = 0; i < n; i++) {
        p->xhat[i] = (p->xhat[i] - set->mean) * set->inv;
        p->gy[i] *= p->dy[i];
    }
}

/* Gradients of the parameters, and the sums that dx needs: of gy and of gy * xhat. */
static void backward_sums(const struct ew_call *c, const struct ew_norm_sets *s,
                          const struct set *set, double *sums)
{
    struct piece p;
    for (int64_t r = 0; r < s->rows; r++) {
        for (int64_t k = 0; k < s->run; k += CHUNK) {
            const int64_t n = ew_min_i64(CHUNK, s->run - k);
            load_piece(c, s, set, r, k, &p);
            if (c->n_in > 2 && c->din[2])
                add_params(s, c->din[2], set, k, n, p.dy);
            for (int64_t i = 0; i < n; i++) {
                sums[0] += p.gy[i];
                sums[1] += p.gy[i] * p.xhat[i];
                p.dy[i] *= p.xhat[i];
            }
            if (c->din[1])
                add_params(s, c->din[1], set, k, n, p.dy);
        }
    }
}

/* dx = (gy - mean(gy) - xhat * mean(gy * xhat)) / std */
static void backward_x(const struct ew_call *c, const struct ew_norm_sets *s, const struct set *set,
                       const double *sums)
{
    const double share = 1.0 / (double)(s->rows * s->run);
    struct piece p;
    for (int64_t r = 0; r < s->rows; r++) {
        for (int64_t k = 0; k < s->run; k += CHUNK) {
            const int64_t n = ew_min_i64(CHUNK, s->run - k);
            load_piece(c, s, set, r, k, &p);
            for (int64_t i = 0; i < n; i++)
                p.gy[i] = set->inv * (p.gy[i] - share * (sums[0] + p.xhat[i] * sums[1]));
            ew_tensor_accumulate(c->din[0], set->base + r * set->step + k, n, p.gy);
        }
    }
}

ew_err ew_norm_backward(const struct ew_call *c, const struct ew_norm_sets *s)
{
    const struct ew_tensor kept = aux_tensor(c, s);
    if (!c->dout[0])
        return EW_OK;
    for (int64_t i = 0; i < s->outer; i++) {
        for (int64_t j = 0; j < s->inner; j++) {
            const int64_t at = i * s->inner + j;
            struct set set = get_set(s, i, j);
            set.mean = ew_tensor_get(&kept, at);
            set.inv = ew_tensor_get(&kept, s->outer * s->inner + at);
            double sums[2] = {0};
            backward_sums(c, s, &set, sums);
            if (c->din[0])
                backward_x(c, s, &set, sums);
        }
    }
    return EW_OK;
}

ew_err ew_norm_axes(const struct ew_ints *axes, int rank, unsigned *out)
{
    *out = axes->n ? 0 : (1u << rank) - 1;
    for (int i = 0; i < axes->n; i++) {
        int axis;
        EW_TRY(ew_shape_axis(axes->v[i], rank, &axis));
        EW_CHECK(!(*out >> axis & 1), EW_ERR_SHAPE, "axis %d comes twice", axis);
        *out |= 1u << axis;
    }
    return EW_OK;
}
