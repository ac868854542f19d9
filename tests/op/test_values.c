/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values of operators for cases that ONNX's own tests do not cover: newer operators,
 * limits of integer types, NaN, label smoothing, and the statistics of dropout. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "op_case.h"
#include "plan/plan.h"

#define MAX_IN  5
#define MAX_OUT 16

/* An operator on constants; `out` must be the elements of out[slot]. */
struct row {
    const char *op, *attrs;
    struct ew_case_in in[MAX_IN];
    int slot;
    const char *out;
};

/* clang-format off */
#define F32(shape, text)   {shape, EW_F32, EW_FILL_VALUES, .values = text, .constant = true}
#define S64(shape, text)   {shape, EW_S64, EW_FILL_VALUES, .values = text, .constant = true}
#define S32(shape, text)   {shape, EW_S32, EW_FILL_VALUES, .values = text, .constant = true}
#define U64(shape, text)   {shape, EW_U64, EW_FILL_VALUES, .values = text, .constant = true}
#define S8(shape, text)    {shape, EW_S8, EW_FILL_VALUES, .values = text, .constant = true}
#define U8(shape, text)    {shape, EW_U8, EW_FILL_VALUES, .values = text, .constant = true}
#define BF16(shape, text)  {shape, EW_BF16, EW_FILL_VALUES, .values = text, .constant = true}

#define NORM_OF_NAN                                                                             \
    {F32("3x1", "nan,-9,9"), F32("1", "1"), F32("1", "0"), F32("1", "0"), F32("1", "1")}

static const struct row rows[] = {
    /* torch.nn.functional.gelu, silu, mish, hardswish */
    {"gelu", NULL, {F32("3", "-1,0,1")}, 0, "-0.15865526,0,0.84134474"},
    {"gelu", "approximate=tanh", {F32("3", "-1,0,1")}, 0, "-0.15880801,0,0.84119199"},
    {"silu", NULL, {F32("3", "-2,0,1")}, 0, "-0.23840584,0,0.73105858"},
    {"mish", NULL, {F32("3", "-1,0,1")}, 0, "-0.30340146,0,0.86509839"},
    {"hard_swish", NULL, {F32("4", "-4,-1,1,4")}, 0, "0,-0.33333333,0.66666667,4"},
    {"celu", "alpha=2", {F32("2", "-2,2")}, 0, "-1.26424112,2"},
    {"softplus", NULL, {F32("3", "-800,0,800")}, 0, "0,0.69314718,800"},
    {"relu", NULL, {F32("3", "nan,-9,9")}, 0, "nan,0,9"},
    {"clip", NULL, {F32("3", "nan,-9,9"), F32("", "-1"), F32("", "1")}, 0, "nan,-1,1"},
    {"batch_norm", "act=clip act_lo=-1 act_hi=1", NORM_OF_NAN, 0, "nan,-1,1"},
    {"batch_norm", "act=hard_sigmoid act_lo=1 act_hi=0", NORM_OF_NAN, 0, "nan,0,1"},
    {"clip", NULL, {U64("2", "18446744073709549568,3"), U64("", "5")}, 0, "18446744073709549568,5"},

    {"bitwise_and", NULL, {S8("2", "12,-1"), S8("2", "10,6")}, 0, "8,6"},
    {"bitwise_or", NULL, {S8("2", "12,-128"), S8("2", "10,6")}, 0, "14,-122"},
    {"bitwise_xor", NULL, {S8("2", "12,-1"), S8("2", "10,6")}, 0, "6,-7"},
    {"bitwise_not", NULL, {S8("3", "5,0,-1")}, 0, "-6,-1,0"},
    {"abs", NULL, {S8("2", "-128,-5")}, 0, "-128,5"},
    {"neg", NULL, {S8("2", "-128,-5")}, 0, "-128,5"},
    {"div", NULL, {S32("4", "-7,7,7,-2147483648"), S32("4", "2,-2,0,-1")}, 0,
     "-3,-3,0,-2147483648"},
    {"div", NULL, {U64("", "18446744073709549568"), U64("", "2")}, 0, "9223372036854774784"},
    {"max", NULL, {U64("", "18446744073709549568"), U64("", "2")}, 0, "18446744073709549568"},
    {"greater", NULL, {U64("", "18446744073709549568"), U64("", "2")}, 0, "1"},
    {"reduce_min", NULL, {U64("2", "18446744073709549568,2")}, 0, "2"},
    {"sign", NULL, {U64("2", "18446744073709549568,0")}, 0, "1,0"},
    {"pow", NULL, {S64("5", "-1,1,2,-3,7"), S64("5", "-3,-2,-1,3,0")}, 0, "-1,1,0,-27,1"},
    {"add", NULL, {BF16("2", "1,256"), BF16("2", "0.0078125,1")}, 0, "1.0078125,256"},
    {"max", NULL, {F32("3", "nan,1,2"), F32("3", "1,nan,1")}, 0, "nan,nan,2"},
    {"reduce_max", NULL, {F32("3", "1,nan,2")}, 0, "nan"},
    {"is_inf", "detect_positive=false", {F32("3", "inf,-inf,nan")}, 0, "0,1,0"},

    {"softmax", "axis=1 flatten=true", {F32("1x2x2", "0,0,0,0")}, 0, "0.25,0.25,0.25,0.25"},
    {"softmax", "axis=1", {F32("1x2x2", "0,1000,0,1000")}, 0, "0.5,0.5,0.5,0.5"},
    {"log_softmax", NULL, {F32("3", "1000,1001,-1000")}, 0, "-1.3132617,-0.3132617,-2001.3132617"},
    {"reduce_log_sum_exp", "keepdims=false", {F32("3", "1000,1001,-1000")}, 0, "1001.3132617"},
    {"reduce_log_sum_exp", NULL, {F32("2", "-inf,-inf")}, 0, "-inf"},
    {"reduce_log_sum_exp", NULL, {F32("2", "nan,1")}, 0, "nan"},
    {"reduce_log_sum_exp", NULL, {F32("2", "1,nan")}, 0, "nan"},
    {"reduce_mean", "noop_with_empty_axes=true", {F32("2", "3,5")}, 0, "3,5"},
    {"reduce_l2", "noop_with_empty_axes=true", {F32("2", "-3,5")}, 0, "3,5"},
    {"reduce_sum_square", "noop_with_empty_axes=true", {F32("2", "-3,5")}, 0, "9,25"},
    {"reduce_log_sum", "noop_with_empty_axes=true keepdims=false", {F32("2", "1,2")}, 0,
     "0,0.69314718"},
    {"reduce_mean", NULL, {S32("2", "-3,-4")}, 0, "-3"},
    {"top_k", NULL, {F32("5", "1,7,1,7,3"), S64("1", "4")}, 0, "7,7,3,1"},
    {"top_k", NULL, {F32("5", "1,7,1,7,3"), S64("1", "4")}, 1, "1,3,4,0"},
    /* 2^53 + 1, 2^53: equal as doubles */
    {"top_k", "largest=false", {S64("2", "9007199254740993,9007199254740992"), S64("1", "1")}, 1,
     "1"},
    {"argmin", NULL, {S64("2", "9007199254740993,9007199254740992")}, 0, "1"},
    {"argmax", NULL, {U64("2", "2,18446744073709549568")}, 0, "1"},
    {"argmin", "select_last_index=true", {F32("5", "1,7,1,7,3")}, 0, "2"},

    /* Data movement: as numpy.pad, slices, split and take */
    {"pad", "mode=wrap", {S64("3", "1,2,3"), S64("2", "4,2")}, 0, "3,1,2,3,1,2,3,1,2"},
    {"pad", "mode=wrap", {S64("4", "1,2,3,4"), S64("2", "-1,2")}, 0, "2,3,4,1,2"},
    {"pad", "mode=reflect", {S64("3", "1,2,3"), S64("2", "5,0")}, 0, "2,1,2,3,2,1,2,3"},
    {"pad", "mode=edge", {S64("2x2", "1,2,3,4"), S64("2", "1,1"), S64("", "0"), S64("1", "1")}, 0,
     "1,1,2,2,3,3,4,4"},
    {"pad", NULL, {S64("3", "1,2,3"), S64("2", "-1,1"), S64("", "9")}, 0, "2,3,9"},
    {"slice", NULL, {S64("5", "0,1,2,3,4"), S64("1", "9223372036854775807"),
                     S64("1", "-9223372036854775807"), S64("1", "0"), S64("1", "-2")}, 0, "4,2,0"},
    {"slice", NULL, {S64("5", "0,1,2,3,4"), S64("1", "1"), S64("1", "5"), S64("1", "0"),
                     S64("1", "9223372036854775807")}, 0, "1"},
    {"split", NULL, {S64("7", "1,2,3,4,5,6,7")}, 2, "7"},
    {"gather", "axis=1", {S64("2x3", "1,2,3,4,5,6"), S64("2", "-1,0")}, 0, "3,1,6,4"},
    {"channel_shuffle", "groups=2", {S64("1x1x6", "0,1,2,3,4,5")}, 0, "0,3,1,4,2,5"},
    {"tile", NULL, {S64("1x2", "1,2"), S64("2", "2,2")}, 0, "1,2,1,2,1,2,1,2"},
    {"cast", "to=int8", {F32("4", "-1.9,300,-300,nan")}, 0, "-1,127,-128,0"},
    {"cast", "to=uint8", {S64("3", "257,-1,5")}, 0, "1,255,5"},
    {"cast", "to=bool", {F32("4", "0,-0.5,nan,0")}, 0, "0,1,1,0"},
    {"range", NULL, {S64("", "5"), S64("", "-3"), S64("", "-4")}, 0, "5,1"},
    {"shape", "start=-2", {F32("1x2x1", "1,2")}, 0, "2,1"},
    {"scatter_elements", "reduction=max", {S64("3", "1,2,3"), S64("2", "0,0"), S64("2", "9,4")}, 0,
     "9,2,3"},

    /* Round half to even, saturate; a scale per element, and blocks of two */
    {"quantize_linear", NULL, {F32("6", "1,3,5,-1,999,-999"), F32("", "2"), S8("", "1")}, 0,
     "1,3,3,1,127,-128"},
    {"quantize_linear", "axis=0", {F32("2x2", "2,4,2,4"), F32("2", "1,2"), U8("2", "0,10")}, 0,
     "2,4,11,12"},
    {"quantize_linear", "axis=1 block_size=2",
     {F32("2x3", "2,4,6,8,10,12"), F32("2x2", "1,2,4,8"), U8("2x2", "0,0,0,1")}, 0,
     "2,4,3,2,2,3"},
    {"dequantize_linear", "axis=0 block_size=2", {U8("3", "1,2,3"), F32("2", "2,10"), U8("2", "1,1")},
     0, "0,2,20"},
    {"matmul_integer", NULL, {U8("1x2", "3,4"), S8("2x1", "-1,2"), U8("", "1"), S8("1", "1")}, 0,
     "-1"},

    /* torch.nn.functional.cross_entropy(x, label_smoothing=0.1); with weights 1, 2, 3 */
    {"softmax_cross_entropy", "smoothing=0.1", {F32("1x3", "1,2,3"), S64("1", "2")}, 0,
     "0.50760596"},
    {"softmax_cross_entropy", "smoothing=0.1",
     {F32("1x3", "1,2,3"), S64("1", "2"), F32("3", "1,2,3")}, 0, "0.43846354"},
    {"softmax_cross_entropy", "ignore_index=2 reduction=sum",
     {F32("2x3", "1,2,3,1,2,3"), S64("2", "2,0")}, 0, "2.40760596"},
};
/* clang-format on */

static void check_row(const struct row *r)
{
    struct ew_op_case k = {.name = r->op, .attrs = r->attrs, .n_out = r->slot + 1};
    for (; k.n_in < MAX_IN && r->in[k.n_in].shape; k.n_in++)
        k.in[k.n_in] = r->in[k.n_in];
    const struct ew_op *op = ew_op_find(r->op);
    struct ew_graph *g;
    ew_test_begin("%s %s = %s", r->op, r->attrs ? r->attrs : "", r->out);
    if (EW_EXPECT(op) && EW_EXPECT_OK(ew_case_graph(op, &k, false, &g))) {
        const struct ew_plan_opts reference = {.backend = {.threads = 1, .reference = true}};
        const struct ew_tensor *t = &g->values[g->nodes[0].out[r->slot]].t;
        const char *at = r->out;
        struct ew_plan *p = NULL;
        if ((op->flags & EW_OP_NO_FOLD) && EW_EXPECT_OK(ew_plan_compile(g, &reference, &p)) &&
            EW_EXPECT_OK(ew_plan_run(p)))
            t = ew_plan_output(p, r->slot);
        EW_EXPECT(t->data); /* constants are known at inference, except late ones */
        for (int64_t i = 0; t->data && i < ew_tensor_count(t); i++) {
            char *end;
            const double want = strtod(at, &end), got = ew_tensor_get(t, i);
            if (EW_EXPECT(end != at) && isnan(want))
                EW_EXPECT(isnan(got));
            else if (isinf(want))
                EW_EXPECT(isinf(got) && (got < 0) == (want < 0));
            else
                EW_EXPECT_NEAR(got, want, 1e-6 * fmax(1, fabs(want)));
            at = *end == ',' ? end + 1 : end;
        }
        EW_EXPECT_STR(at, "");
        ew_plan_free(p);
        ew_graph_free(g);
    }
    ew_test_end();
}

/* ---- Dropout ---- */

#define MANY 20000

static void drop(uint64_t seed, double ratio, float *y, uint8_t *mask)
{
    static float x[MANY];
    for (int i = 0; i < MANY; i++)
        x[i] = 1;
    struct ew_tensor tx = {EW_F32, {1, {MANY}}, x}, ty = {EW_F32, {1, {MANY}}, y},
                     tm = {EW_BOOL, {1, {MANY}}, mask};
    struct ew_tensor *in[] = {&tx}, *out[] = {&ty, &tm};
    const struct ew_call c = {.name = "drop",
                              .attr = &ratio, /* the only member of the attribute struct */
                              .n_in = 1,
                              .n_out = 2,
                              .in = in,
                              .out = out,
                              .train = true,
                              .seed = seed};
    EW_EXPECT_OK(ew_op_find("dropout")->forward(&c));
}

/* Drops the right share, scales the rest, and depends on the seed only. */
static void check_dropout(void)
{
    static float a[MANY], b[MANY];
    static uint8_t mask[MANY], other[MANY];
    ew_test_begin("dropout: share, scale, seed");
    drop(7, 0.3, a, mask);
    int dropped = 0, unlike = 0;
    for (int i = 0; i < MANY; i++) {
        dropped += !mask[i];
        unlike += mask[i] ? fabs((double)a[i] - 1 / 0.7) > 1e-6 : fabs((double)a[i]) > 0;
    }
    EW_EXPECT_INT(unlike, 0);
    EW_EXPECT_NEAR(dropped, 0.3 * MANY, 5 * sqrt(0.3 * 0.7 * MANY)); /* five standard deviations */
    drop(7, 0.3, b, other);
    EW_EXPECT_INT(memcmp(a, b, sizeof(a)), 0);
    drop(8, 0.3, b, other);
    EW_EXPECT(memcmp(mask, other, sizeof(mask)) != 0);
    ew_test_end();
}

/* ---- Refusals ---- */

static void check_refusal(const char *name, const char *attrs, struct ew_case_in a,
                          struct ew_case_in b, const char *text)
{
    const struct ew_op_case k = {.attrs = attrs, .in = {a, b}, .n_in = b.shape ? 2 : 1};
    const struct ew_op *op = ew_op_find(name);
    struct ew_graph *g = NULL;
    ew_test_begin("%s: %s", name, text);
    if (EW_EXPECT(op)) {
        EW_EXPECT(ew_case_graph(op, &k, false, &g) != EW_OK);
        EW_EXPECT_HAS(ew_error_message(), text);
    }
    ew_test_end();
}

static void check_refusals(void)
{
    const struct ew_case_in none = {NULL};
    check_refusal("exp", NULL, (struct ew_case_in){"3", EW_S32}, none, "cannot be int32");
    check_refusal("neg", NULL, (struct ew_case_in){"3", EW_U8}, none, "cannot be uint8");
    check_refusal("add", NULL, (struct ew_case_in){"3"}, (struct ew_case_in){"4"},
                  "3 and 4 do not broadcast");
    check_refusal("add", NULL, (struct ew_case_in){"3"}, (struct ew_case_in){"3", EW_S8},
                  "float32 and int8");
    check_refusal("mod", NULL, (struct ew_case_in){"3"}, (struct ew_case_in){"3"}, "needs fmod");
    check_refusal("prelu", NULL, (struct ew_case_in){"3"}, (struct ew_case_in){"2x3"},
                  "does not broadcast to 3");
    check_refusal("gemm", NULL, (struct ew_case_in){"2x3"}, (struct ew_case_in){"4x5"},
                  "2x3 and 4x5 do not fit");
    check_refusal("matmul", NULL, (struct ew_case_in){"2x3"}, (struct ew_case_in){"4"},
                  "2x3 and 4 do not fit");
    check_refusal("softmax", "axis=2", (struct ew_case_in){"2x3"}, none, "axis 2");
    check_refusal("reduce_sum", NULL, (struct ew_case_in){"2x3"},
                  (struct ew_case_in)S64("2", "0,-2"), "listed twice");
    check_refusal("softmax_cross_entropy", NULL, (struct ew_case_in){"2x3"},
                  (struct ew_case_in){"3", EW_S64}, "labels are 3 for scores of 2x3");
    check_refusal("softmax_cross_entropy", NULL, (struct ew_case_in)F32("1x3", "1,2,3"),
                  (struct ew_case_in)S64("1", "3"), "label 3 of sample 0 is outside 3 classes");
    check_refusal("gather", NULL, (struct ew_case_in)F32("2", "1,2"),
                  (struct ew_case_in)S64("1", "-3"), "index -3 is outside an axis of 2");
    check_refusal("gather_nd", NULL, (struct ew_case_in)F32("2", "1,2"),
                  (struct ew_case_in)S64("1x1", "2"), "index 2 is outside an axis of 2");
    check_refusal("reshape", NULL, (struct ew_case_in){"2x3"}, (struct ew_case_in)S64("2", "4,-1"),
                  "6 elements do not divide into 4");
    check_refusal("reshape", NULL, (struct ew_case_in){"2x3"}, (struct ew_case_in)S64("2", "-1,-1"),
                  "-1 twice");
    check_refusal("reshape", NULL, (struct ew_case_in){"2x3"},
                  (struct ew_case_in)S64("3", "4294967296,4294967296,2"), "too many elements");
    check_refusal("reshape", NULL, (struct ew_case_in){"6"}, (struct ew_case_in){"2", EW_S64},
                  "must be known before the run");
    check_refusal("flatten", "unit=2", (struct ew_case_in){"2x3"}, none,
                  "dimension 1 was 1 when the layout was chosen and is 3");
    check_refusal("concat", "axis=1", (struct ew_case_in){"2x3"}, (struct ew_case_in){"3x3"},
                  "dimension 0 of input 1 is 3, of input 0 2");
    check_refusal("split", NULL, (struct ew_case_in){"5"}, (struct ew_case_in)S64("1", "6"),
                  "part 0 has 6 elements, 5 are left");
    check_refusal("squeeze", NULL, (struct ew_case_in){"2x3"}, (struct ew_case_in)S64("1", "1"),
                  "axis 1 has 3 elements");
    check_refusal("tile", NULL, (struct ew_case_in){"2"},
                  (struct ew_case_in)S64("1", "1099511627776"), "more than 2^40");
    check_refusal("pad", NULL, (struct ew_case_in){"2"}, (struct ew_case_in)S64("2", "-2,-1"),
                  "take 3 elements from an axis of 2");
    check_refusal("channel_shuffle", "groups=4", (struct ew_case_in){"1x1x6"}, none,
                  "6 channels do not divide into 4 groups");
    check_refusal("einsum", "equation=ij,jk", (struct ew_case_in){"2x3"},
                  (struct ew_case_in){"4x2"}, "3 and 4 elements");
    check_refusal("einsum", "equation=ij->k", (struct ew_case_in){"2x3"}, none, "in no input");
    check_refusal("quantize_linear", "axis=1", (struct ew_case_in){"2x3"}, (struct ew_case_in){"2"},
                  "2 scales for an axis of 3");
    check_refusal("top_k", NULL, (struct ew_case_in){"5"}, (struct ew_case_in)S64("1", "6"),
                  "k is 6 of 5");
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < EW_COUNT(rows); i++)
        check_row(&rows[i]);
    check_dropout();
    check_refusals();
    return ew_test_status();
}
