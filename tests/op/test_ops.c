/* SPDX-License-Identifier: Apache-2.0 */
/* Runs all test cases of all operators, and checks shapes, out-of-bounds access, in-place use,
 * float32 against float64, and the gradient against central differences in double.  An operator
 * without a case fails. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "graph/graph.h"
#include "op_case.h"

#define MAX_SLOTS  24
#define MAX_PROBES 160 /* gradient elements checked per input */
#define PROBE_STEP 1e-5
#define GRAD_START 0.75 /* initial gradient: backward must accumulate */

enum place { AT_END, AT_START };

/* An operator call with a guarded buffer for each tensor. */
struct bench {
    struct ew_graph *g;
    const struct ew_node *node;
    const struct ew_op *op;
    const struct ew_op_case *k;
    enum place place;
    int n_in, n_out;
    struct ew_tensor in[MAX_SLOTS], out[MAX_SLOTS], din[MAX_SLOTS], dout[MAX_SLOTS];
    struct ew_tensor *in_p[MAX_SLOTS], *out_p[MAX_SLOTS], *din_p[MAX_SLOTS], *dout_p[MAX_SLOTS];
    struct ew_call call;
};

static void *guarded(enum place place, size_t bytes)
{
    const size_t align = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;
    return place == AT_END ? ew_guard_end(bytes, align) : ew_guard_start(bytes);
}

/* Restores all inputs, since some operators update their state. */
static void refill(struct bench *b)
{
    for (int i = 0; i < b->n_in; i++)
        if (b->in_p[i])
            ew_case_fill(b->k, i, &b->in[i]);
}

static void setup_tensors(struct bench *b)
{
    for (int i = 0; i < b->n_in; i++) {
        if (b->node->in[i] < 0)
            continue;
        b->in[i] = b->g->values[b->node->in[i]].t;
        b->in[i].data = guarded(b->place, ew_tensor_bytes(&b->in[i]));
        b->in_p[i] = &b->in[i];
    }
    for (int i = 0; i < b->n_out; i++) {
        b->out[i] = b->g->values[b->node->out[i]].t;
        b->out[i].data = guarded(b->place, ew_tensor_bytes(&b->out[i]));
        b->out_p[i] = &b->out[i];
    }
}

static bool setup(struct bench *b, const struct ew_op *op, const struct ew_op_case *k, bool f64,
                  enum place place)
{
    *b = (struct bench){.op = op, .k = k, .place = place};
    if (!EW_EXPECT_OK(ew_case_graph(op, k, f64, &b->g)))
        return false;
    b->node = &b->g->nodes[0];
    b->n_in = b->node->n_in;
    b->n_out = b->node->n_out;
    setup_tensors(b);
    b->call = (struct ew_call){.name = "node",
                               .attr = b->node->attr,
                               .n_in = b->n_in,
                               .n_out = b->n_out,
                               .in = b->in_p,
                               .out = b->out_p,
                               .din = b->din_p,
                               .dout = b->dout_p,
                               .train = k->train,
                               .seed = 12345};
    refill(b); /* sizes may depend on known inputs */
    b->call.scratch = op->scratch ? guarded(place, op->scratch(&b->call)) : NULL;
    b->call.aux = op->aux ? guarded(place, op->aux(&b->call)) : NULL;
    return true;
}

static void teardown(struct bench *b)
{
    for (int i = 0; i < MAX_SLOTS; i++) {
        if (b->out[i].data != b->in[0].data)
            ew_guard_free(b->out[i].data);
        ew_guard_free(b->din[i].data);
        ew_guard_free(b->dout[i].data);
    }
    for (int i = 0; i < MAX_SLOTS; i++)
        ew_guard_free(b->in[i].data);
    ew_guard_free(b->call.scratch);
    ew_guard_free(b->call.aux);
    ew_graph_free(b->g);
}

static void expect_equal(const struct ew_tensor *a, const struct ew_tensor *b, const char *what)
{
    for (int64_t i = 0; i < ew_tensor_count(a); i++) {
        const double x = ew_tensor_get(a, i), y = ew_tensor_get(b, i);
        if ((isnan(x) && isnan(y)) || (!isnan(x) && !isnan(y) && !(x < y) && !(x > y)))
            continue;
        EW_FAIL("%s: element %lld is %g and %g", what, (long long)i, x, y);
        return;
    }
}

/* ---- Forward ---- */

static void check_shape_and_cost(const struct bench *b)
{
    struct ew_shape want;
    char got_text[EW_SHAPE_TEXT], want_text[EW_SHAPE_TEXT];
    if (EW_EXPECT(b->k->out_shape) && EW_EXPECT_OK(ew_case_shape(b->k->out_shape, &want)))
        EW_EXPECT_STR(ew_shape_text(&b->out[0].shape, got_text), ew_shape_text(&want, want_text));
    struct ew_cost cost;
    ew_graph_node_cost(b->g, 0, &cost);
    EW_EXPECT(cost.bytes > 0 || ew_tensor_count(&b->out[0]) == 0);
    EW_EXPECT(cost.macs >= 0 && cost.flops >= 2 * cost.macs && cost.thop_macs >= 0);
}

/* Buffers that end at a guard page and buffers that begin after one give the same results. */
static void check_forward(const struct ew_op *op, const struct ew_op_case *k)
{
    struct bench a, b;
    if (!setup(&a, op, k, false, AT_END))
        return;
    check_shape_and_cost(&a);
    const bool ran = EW_EXPECT(op->forward) && EW_EXPECT_OK(op->forward(&a.call));
    if (ran && setup(&b, op, k, false, AT_START)) {
        EW_EXPECT_OK(op->forward(&b.call));
        for (int i = 0; i < a.n_out; i++)
            expect_equal(&a.out[i], &b.out[i], "upper against lower guard");
        teardown(&b);
    }
    teardown(&a);
}

static void check_in_place(const struct ew_op *op, const struct ew_op_case *k)
{
    struct bench a, b;
    if (!(op->flags & EW_OP_INPLACE) || !setup(&a, op, k, false, AT_END))
        return;
    if (ew_tensor_bytes(&a.in[0]) == ew_tensor_bytes(&a.out[0]) &&
        setup(&b, op, k, false, AT_END)) {
        ew_guard_free(b.out[0].data);
        b.out[0].data = b.in[0].data;
        if (EW_EXPECT_OK(op->forward(&a.call)) && EW_EXPECT_OK(op->forward(&b.call)))
            expect_equal(&a.out[0], &b.out[0], "apart against in place");
        teardown(&b);
    }
    teardown(&a);
}

/* 1e-4 of the largest output covers the float32 rounding of sums of some hundred terms. */
static void expect_f32_near(const struct ew_tensor *f32, const struct ew_tensor *f64)
{
    double most = 1e-6;
    for (int64_t i = 0; i < ew_tensor_count(f64); i++) {
        const double v = fabs(ew_tensor_get(f64, i));
        most = isfinite(v) && v > most ? v : most;
    }
    for (int64_t i = 0; i < ew_tensor_count(f64); i++) {
        const double x = ew_tensor_get(f32, i), y = ew_tensor_get(f64, i);
        if (fabs(x - y) > 1e-4 * most) {
            EW_FAIL("element %lld is %g in float32, %g in float64", (long long)i, x, y);
            return;
        }
    }
}

static void check_f64(const struct ew_op *op, const struct ew_op_case *k)
{
    struct bench a, b;
    if (!setup(&a, op, k, false, AT_END))
        return;
    if (a.out[0].dtype == EW_F32 && setup(&b, op, k, true, AT_END)) {
        /* Operators whose output is always float32 have nothing to compare. */
        if (b.out[0].dtype == EW_F64 && EW_EXPECT_OK(op->forward(&a.call)) &&
            EW_EXPECT_OK(op->forward(&b.call)))
            expect_f32_near(&a.out[0], &b.out[0]);
        teardown(&b);
    }
    teardown(&a);
}

/* ---- Gradients ---- */

/* The differentiated scalar: the sum of all outputs, weighted by their dout. */
static double objective(struct bench *b)
{
    EW_EXPECT_OK(b->op->forward(&b->call));
    double sum = 0;
    for (int i = 0; i < b->n_out; i++)
        for (int64_t j = 0; b->dout_p[i] && j < ew_tensor_count(&b->out[i]); j++)
            sum += ew_tensor_get(&b->out[i], j) * ew_tensor_get(&b->dout[i], j);
    return sum;
}

static bool wants_gradient(const struct bench *b, int i)
{
    return b->in_p[i] && b->in[i].dtype == EW_F64 && !b->k->in[i].constant &&
           !b->k->in[i].no_grad && !(b->op->state_in >> i & 1);
}

static void setup_gradients(struct bench *b, bool *any, bool *driven)
{
    uint64_t state = 4242;
    for (int i = 0; i < b->n_out; i++) {
        if (b->out[i].dtype != EW_F64)
            continue;
        b->dout[i] = b->out[i];
        b->dout[i].data = guarded(b->place, ew_tensor_bytes(&b->out[i]));
        b->dout_p[i] = &b->dout[i];
        *driven = true;
        for (int64_t j = 0; j < ew_tensor_count(&b->out[i]); j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const double w = (double)(state >> 40) * 0x1p-24 - 0.4;
            ew_tensor_store(&b->dout[i], j, 1, &w);
        }
    }
    for (int i = 0; i < b->n_in; i++) {
        if (!wants_gradient(b, i))
            continue;
        const double start = GRAD_START;
        b->din[i] = b->in[i];
        b->din[i].data = guarded(b->place, ew_tensor_bytes(&b->in[i]));
        b->din_p[i] = &b->din[i];
        *any = true;
        for (int64_t j = 0; j < ew_tensor_count(&b->in[i]); j++)
            ew_tensor_store(&b->din[i], j, 1, &start);
    }
}

/* True if a training plan would still have in[i] when backward runs. */
static bool is_kept(const struct bench *b, int i)
{
    const unsigned weights = b->op->param_in | b->op->state_in | b->op->known_in;
    const unsigned saves = ew_op_saved(b->op, b->call.attr);
    const bool saved = i < 8 ? saves >> i & 1 : (saves & EW_SAVE_INS) == EW_SAVE_INS;
    return saved || (weights >> i & 1) || b->k->in[i].constant;
}

/* Runs backward with only the values that the operator declares as saved; the others have no
 * data. */
static bool run_backward(struct bench *b)
{
    void *in_data[MAX_SLOTS], *out_data[MAX_SLOTS];
    for (int i = 0; i < b->n_in; i++) {
        in_data[i] = b->in[i].data;
        if (!is_kept(b, i))
            b->in[i].data = NULL;
    }
    for (int i = 0; i < b->n_out; i++) {
        out_data[i] = b->out[i].data;
        if (!(ew_op_saved(b->op, b->call.attr) >> (8 + i) & 1))
            b->out[i].data = NULL;
    }
    const bool ok = EW_EXPECT_OK(b->op->backward(&b->call));
    for (int i = 0; i < b->n_in; i++)
        b->in[i].data = in_data[i];
    for (int i = 0; i < b->n_out; i++)
        b->out[i].data = out_data[i];
    return ok;
}

static double difference(struct bench *b, int i, int64_t j)
{
    refill(b);
    const double x = ew_tensor_get(&b->in[i], j);
    const double up = x + PROBE_STEP, down = x - PROBE_STEP;
    ew_tensor_store(&b->in[i], j, 1, &up);
    const double high = objective(b);
    refill(b);
    ew_tensor_store(&b->in[i], j, 1, &down);
    return (high - objective(b)) / (up - down);
}

static void probe_input(struct bench *b, int i)
{
    const double tolerance = b->k->tolerance > 0 ? b->k->tolerance : 1e-5;
    const int64_t n = ew_tensor_count(&b->in[i]);
    const int64_t most = ew_test_quick() ? MAX_PROBES / 8 : MAX_PROBES;
    const int64_t stride = n > most ? n / most : 1;
    for (int64_t j = 0; j < n; j += stride) {
        const double numeric = difference(b, i, j);
        const double analytic = ew_tensor_get(&b->din[i], j) - GRAD_START;
        if (!(fabs(numeric - analytic) <= tolerance * fmax(1, fabs(numeric)))) {
            EW_FAIL("gradient of input %d, element %lld: backward says %.9g, differences %.9g", i,
                    (long long)j, analytic, numeric);
            return;
        }
    }
}

static void check_gradient(const struct ew_op *op, const struct ew_op_case *k)
{
    struct bench b;
    if (!op->backward || !setup(&b, op, k, true, AT_END))
        return;
    bool any = false, driven = false;
    setup_gradients(&b, &any, &driven);
    if (any && driven && EW_EXPECT_OK(op->forward(&b.call)) && run_backward(&b))
        for (int i = 0; i < b.n_in; i++)
            if (b.din_p[i])
                probe_input(&b, i);
    teardown(&b);
}

static void check_case(const struct ew_op *op, const struct ew_op_case *k)
{
    ew_test_begin("%s/%s", op->name, k->name);
    check_forward(op, k);
    check_in_place(op, k);
    check_f64(op, k);
    check_gradient(op, k);
    ew_test_end();
}

/* With arguments: only the operators of these names. */
static bool wanted(const struct ew_op *op, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], op->name) == 0)
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < ew_op_count(); i++) {
        const struct ew_op *op = ew_op_at(i);
        if (!wanted(op, argc, argv))
            continue;
        ew_test_begin("%s: is described", op->name);
        EW_EXPECT(op->help && op->help[0]);
        EW_EXPECT(op->n_cases > 0);
        EW_EXPECT_SAME(ew_op_find(op->name), op);
        ew_test_end();
        for (int k = 0; k < op->n_cases; k++)
            check_case(op, &op->cases[k]);
    }
    return ew_test_status();
}
