/* SPDX-License-Identifier: Apache-2.0 */
/* Reference loops of quantised add, mul and average pool. */
#include "op/qlinear.h"

#include "graph/graph.h"
#include "graph/onnx.h"
#include "op/pointwise.h"

/* ---- Two inputs ---- */

ew_err ew_qbinary_infer(const struct ew_call *c)
{
    EW_TRY(ew_quant_check(c, EW_QBINARY_A, EW_QBINARY_A_ZERO, 1));
    EW_TRY(ew_quant_check(c, EW_QBINARY_B, EW_QBINARY_B_ZERO, 1));
    EW_TRY(ew_quant_check(c, EW_QBINARY_Y_ZERO, EW_QBINARY_Y_ZERO, 1));
    EW_TRY(ew_quant_check_scale(c, EW_QBINARY_A_SCALE, 1));
    EW_TRY(ew_quant_check_scale(c, EW_QBINARY_B_SCALE, 1));
    EW_TRY(ew_quant_check_scale(c, EW_QBINARY_Y_SCALE, 1));
    c->out[0]->dtype = c->in[EW_QBINARY_Y_ZERO]->dtype;
    return ew_shape_broadcast(&c->in[EW_QBINARY_A]->shape, &c->in[EW_QBINARY_B]->shape,
                              &c->out[0]->shape);
}

ew_err ew_qbinary_export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_qbinary_attr *a = g->nodes[node].attr;
    EW_CHECK(ew_quant_clamps_nothing(&a->clamp), EW_ERR_UNSUPPORTED,
             "node %s: fused with what follows it", g->nodes[node].name);
    return EW_OK;
}

static double scale_of(const struct ew_call *c, int slot)
{
    return ew_tensor_get(c->in[slot], 0);
}

static struct ew_quant_binary output_of(const struct ew_call *c)
{
    return (struct ew_quant_binary){.zero = ew_quant_zero(c->in[EW_QBINARY_Y_ZERO], 0),
                                    .dtype = c->in[EW_QBINARY_Y_ZERO]->dtype};
}

struct ew_quant_binary ew_qadd_ratios(const struct ew_call *c)
{
    struct ew_quant_binary q = output_of(c);
    const double y = scale_of(c, EW_QBINARY_Y_SCALE);
    q.a_ratio = ew_quant_ratio(scale_of(c, EW_QBINARY_A_SCALE), 1, y);
    q.b_ratio = ew_quant_ratio(scale_of(c, EW_QBINARY_B_SCALE), 1, y);
    return q;
}

struct ew_quant_binary ew_qmul_ratios(const struct ew_call *c)
{
    struct ew_quant_binary q = output_of(c);
    q.a_ratio = ew_quant_ratio(scale_of(c, EW_QBINARY_A_SCALE), scale_of(c, EW_QBINARY_B_SCALE),
                               scale_of(c, EW_QBINARY_Y_SCALE));
    return q;
}

ew_err ew_qbinary_forward(const struct ew_call *c, const struct ew_quant_binary *q,
                          ew_qbinary_fn *f)
{
    const struct ew_qbinary_attr *attr = c->attr;
    const struct ew_shape *out = &c->out[0]->shape;
    const int64_t za = ew_quant_zero(c->in[EW_QBINARY_A_ZERO], 0);
    const int64_t zb = ew_quant_zero(c->in[EW_QBINARY_B_ZERO], 0);
    const int64_t count = ew_tensor_count(c->out[0]);
    int64_t a[EW_CHUNK], b[EW_CHUNK];
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_broadcast_load_int(c->in[EW_QBINARY_A], out, at, n, a);
        ew_broadcast_load_int(c->in[EW_QBINARY_B], out, at, n, b);
        for (int64_t i = 0; i < n; i++)
            a[i] = ew_quant_clamp(&attr->clamp, f(q, a[i] - za, b[i] - zb));
        ew_tensor_store_int(c->out[0], at, n, a);
    }
    return EW_OK;
}

const struct ew_field ew_qbinary_attrs[] = {EW_QUANT_CLAMP_FIELDS(struct ew_qbinary_attr, clamp),
                                            EW_FIELD_END};
const char *const ew_qbinary_renames[] = {EW_QUANT_CLAMP_RENAMES, NULL};

/* clang-format off */
#define SCALE {"", .fill = EW_FILL_POSITIVE, .constant = true}
#define BYTE(value, type) {"", type, EW_FILL_VALUES, .values = value, .constant = true}
#define BYTES(shape, type) {shape, type, EW_FILL_BYTES}

const struct ew_op_case ew_qbinary_cases[EW_QBINARY_CASES] = {
    {.name = "uint8",
     .in = {BYTES("2x5x7x11", EW_U8), SCALE, BYTE("100", EW_U8), BYTES("2x5x7x11", EW_U8), SCALE,
            BYTE("7", EW_U8), SCALE, BYTE("131", EW_U8)},
     .n_in = 8, .out_shape = "2x5x7x11"},
    {.name = "int8, clamped", .attrs = "lo=-20 hi=100",
     .in = {BYTES("300", EW_S8), SCALE, BYTE("-100", EW_S8), BYTES("300", EW_S8), SCALE,
            BYTE("7", EW_S8), SCALE, BYTE("-13", EW_S8)},
     .n_in = 8, .out_shape = "300"},
    {.name = "mixed types",
     .in = {BYTES("70", EW_S8), SCALE, BYTE("-100", EW_S8), BYTES("70", EW_U8), SCALE,
            BYTE("30", EW_U8), SCALE, BYTE("13", EW_U8)},
     .n_in = 8, .out_shape = "70"},
    {.name = "one a channel",
     .in = {BYTES("2x3x3x37", EW_U8), SCALE, BYTE("100", EW_U8), BYTES("2x1x1x37", EW_U8), SCALE,
            BYTE("7", EW_U8), SCALE, BYTE("131", EW_U8)},
     .n_in = 8, .out_shape = "2x3x3x37"},
    {.name = "broadcast both ways",
     .in = {BYTES("3x1x5", EW_U8), SCALE, BYTE("100", EW_U8), BYTES("4x1", EW_U8), SCALE,
            BYTE("7", EW_U8), SCALE, BYTE("131", EW_U8)},
     .n_in = 8, .out_shape = "3x4x5"},
};
/* clang-format on */

/* ---- Averages ---- */

ew_err ew_qpool_infer(const struct ew_call *c, const struct ew_window *w)
{
    EW_TRY(ew_quant_check(c, EW_QPOOL_X, EW_QPOOL_X_ZERO, 1));
    EW_TRY(ew_quant_check(c, EW_QPOOL_Y_ZERO, EW_QPOOL_Y_ZERO, 1));
    EW_TRY(ew_quant_check_scale(c, EW_QPOOL_X_SCALE, 1));
    EW_TRY(ew_quant_check_scale(c, EW_QPOOL_Y_SCALE, 1));
    ew_pool_shape(c, w);
    c->out[0]->dtype = c->in[EW_QPOOL_Y_ZERO]->dtype;
    return EW_OK;
}

/* The ratio of a window of so many elements. */
static float pool_ratio(const struct ew_call *c, int64_t elements)
{
    const float y = (float)scale_of(c, EW_QPOOL_Y_SCALE) * (float)elements;
    return ew_quant_ratio(scale_of(c, EW_QPOOL_X_SCALE), 1, (double)y);
}

/* The sum of one window of one channel. */
static int32_t window_sum(const struct ew_call *c, const struct ew_window *w, int64_t image,
                          const int64_t *o, int64_t channel)
{
    const int64_t zero = ew_quant_zero(c->in[EW_QPOOL_X_ZERO], 0);
    uint32_t sum = 0;
    struct ew_tap t;
    for (bool more = ew_tap_first(w, image, o, &t); more; more = ew_tap_next(w, &t))
        sum +=
            (uint32_t)(ew_tensor_get_int(c->in[EW_QPOOL_X], t.row * w->channels + channel) - zero);
    return (int32_t)sum;
}

ew_err ew_qpool_forward(const struct ew_call *c, const struct ew_window *w, bool padded)
{
    const int64_t zero = ew_quant_zero(c->in[EW_QPOOL_Y_ZERO], 0);
    int64_t to = 0;
    for (int64_t n = 0; n < w->batch; n++) {
        int64_t o[EW_WINDOW_DIMS] = {0};
        do {
            const float ratio = pool_ratio(c, ew_tap_count(w, o, padded));
            for (int64_t k = 0; k < w->channels; k++) {
                const int64_t q =
                    ew_quant_sum(window_sum(c, w, n, o, k), ratio, zero, c->out[0]->dtype);
                ew_tensor_store_int(c->out[0], to++, 1, &q);
            }
        } while (ew_window_next(w, o));
    }
    return EW_OK;
}
