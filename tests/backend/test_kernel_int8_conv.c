/* SPDX-License-Identifier: Apache-2.0 */
/* Every 8-bit convolution kernel gives, for each shape that it supports, the bits of the plain sum:
 * extreme bytes and weights, zero points, all epilogues; every instruction set, guarded arrays. */
#include <string.h>

#include "base/mem.h"
#include "kernel_test.h"
#include "ref_conv.h"

/* clang-format off */
#define A1 {1, 1, 1, 1, 1, 0}
static const struct ew_conv_shape shapes[] = {
    {1, 8, 32, 32, {A1, {6, 6, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}}},      /* groups of 4 */
    {2, 12, 48, 48, {A1, {7, 4, 3, 2, 1, 1}, {11, 6, 3, 2, 1, 1}}},
    {1, 4, 32, 32, {A1, {5, 5, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}}},      /* of 8 */
    {1, 2, 16, 16, {A1, {5, 3, 3, 2, 1, 1}, {12, 6, 3, 2, 1, 1}}},
    {1, 3, 48, 48, {A1, {4, 4, 3, 1, 1, 1}, {5, 5, 3, 1, 1, 1}}},      /* of 16 */
    {1, 1, 16, 16, {A1, {7, 4, 3, 2, 1, 1}, {7, 4, 3, 2, 1, 1}}},
    {1, 24, 24, 24, {A1, {6, 6, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}}},     /* depthwise */
    {2, 58, 58, 58, {A1, {7, 4, 3, 2, 1, 1}, {9, 5, 3, 2, 1, 1}}},
    {1, 40, 40, 40, {A1, {6, 6, 5, 1, 1, 2}, {8, 8, 5, 1, 1, 2}}},
    {1, 16, 16, 16, {A1, {9, 5, 5, 2, 1, 2}, {11, 6, 5, 2, 1, 2}}},
    {1, 7, 7, 7, {A1, {5, 5, 3, 1, 1, 1}, {5, 5, 3, 1, 1, 1}}},
    {1, 1, 37, 35, {A1, A1, A1}},                                      /* dense: rows are a batch */
    {5, 1, 64, 10, {A1, A1, A1}},
    {12, 1, 33, 48, {A1, A1, A1}},
    {13, 1, 32, 24, {A1, A1, A1}},
    {1, 1, 16, 16, {A1, {2, 2, 3, 1, 1, 1}, {2, 2, 3, 1, 1, 1}}},      /* few pixels */
    {5, 1, 9, 84, {A1, A1, A1}},                                       /* blocks of outputs */
    {1, 1, 24, 116, {A1, {3, 3, 1, 1, 1, 0}, {7, 7, 1, 1, 1, 0}}},
    {1, 1, 5, 72, {A1, {4, 4, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}}},
    {8, 1, 600, 40, {A1, A1, A1}},                                     /* long sums */
    {1, 1, 144, 24, {A1, {3, 3, 1, 1, 1, 0}, {5, 5, 1, 1, 1, 0}}},
    {1, 1, 37, 33, {A1, {6, 3, 3, 2, 1, 1}, {9, 5, 3, 2, 1, 1}}},
    {1, 1, 96, 16, {A1, {5, 5, 5, 1, 1, 2}, {8, 8, 5, 1, 1, 2}}},
};
/* clang-format on */

struct job {
    const struct ew_conv_shape *shape;
    struct ew_qconv conv;
    struct ew_qconv_weights weights;
};

/* Padding has the value of the zero point, so it adds nothing. */
static int32_t sum_at(const struct job *j, int64_t at)
{
    const struct ew_conv_shape *s = j->shape;
    const struct ew_conv_axis *a = s->axis;
    const int64_t o = at % s->cout, pixel = at / s->cout, taps = a[1].taps * a[2].taps;
    const int64_t ox = pixel % a[2].out, oy = pixel / a[2].out % a[1].out;
    const int64_t each = s->cin / s->groups, first = o / (s->cout / s->groups) * each;
    const uint8_t *image = j->conv.x + pixel / a[2].out / a[1].out * a[1].in * a[2].in * s->cin;
    int32_t sum = j->weights.bias[o];
    for (int64_t t = 0; t < taps; t++) {
        const int64_t y = oy * a[1].stride + t / a[2].taps - a[1].pad;
        const int64_t x = ox * a[2].stride + t % a[2].taps - a[2].pad;
        if (y < 0 || y >= a[1].in || x < 0 || x >= a[2].in)
            continue;
        for (int64_t c = 0; c < each; c++)
            sum += (image[(y * a[2].in + x) * s->cin + first + c] - j->conv.of_x.zero) *
                   (int8_t)j->weights.w[(o * taps + t) * each + c];
    }
    return sum;
}

static float float_at(const struct job *j, int64_t at)
{
    return (float)sum_at(j, at) * j->weights.ratio[at % j->shape->cout];
}

static uint8_t byte_at(const struct job *j, int64_t at)
{
    const struct ew_qend *e = &j->conv.end;
    float t = float_at(j, at);
    if (e->add) {
        const float lo = (float)-e->mid.zero, hi = (float)(255 - e->mid.zero);
        const float b = (float)((e->add[at] ^ e->of_add.flip) - e->of_add.zero);
        t = rintf(fminf(fmaxf(t, lo), hi)) * e->mid_ratio + b * e->add_ratio;
    }
    const float q = fminf(fmaxf(rintf(t) + (float)e->y.zero, (float)e->lo), (float)e->hi);
    const uint8_t byte = (uint8_t)q ^ e->y.flip;
    return e->table ? e->table[byte] : byte;
}

/* ---- Epilogues ---- */

enum end {
    PLAIN,
    TABLE,
    SIGNED,
    RESIDUAL,
    SUM_AND_TABLE,
    LARGE_RESIDUAL,
    LARGE_RATIOS,
    FLOATS,
    ENDS
};
static const char *const end_names[] = {
    "plain",          "table",        "signed", "residual", "residual and table",
    "large residual", "large ratios", "floats"};

static struct ew_qend end_of(enum end end, const uint8_t *table, const uint8_t *add)
{
    struct ew_qend e = {
        .ratios_below_1 = end != LARGE_RATIOS, .y = {.zero = 100}, .lo = 3, .hi = 250};
    if (end == TABLE || end == SUM_AND_TABLE)
        e.table = table;
    if (end == RESIDUAL || end == SUM_AND_TABLE || end == LARGE_RESIDUAL) {
        e.add = add;
        e.mid.zero = 60;
        e.of_add = (struct ew_qbyte){.zero = 90, .flip = end == RESIDUAL ? 0x80 : 0};
        e.mid_ratio = end == LARGE_RESIDUAL ? -3e8f : 0.8f; /* scales may be negative */
        e.add_ratio = 0.6f;
    }
    e.y.flip = end == SIGNED || end == RESIDUAL ? 0x80 : 0;
    e.to_float = end == FLOATS;
    return e;
}

/* ---- Kernels and packing ---- */

typedef const struct ew_kernels kernels;

static void run_gemm(kernels *k, struct job *j, void *packed, void *scratch)
{
    k->int8_gemm_pack(j->shape, &j->weights, packed, 0, k->int8_gemm_pack_tiles(j->shape));
    k->int8_gemm_run(&j->conv, 0, k->int8_gemm_tiles(j->shape), scratch);
}

#define RUN(name)                                                                                  \
    static void run_##name(kernels *k, struct job *j, void *packed, void *scratch)                 \
    {                                                                                              \
        k->int8_##name##_pack(j->shape, &j->weights, packed);                                      \
        k->int8_##name##_run(&j->conv, 0, k->int8_##name##_tiles(j->shape), scratch);              \
    }

RUN(grouped)
RUN(depthwise)
RUN(depthwise_column)

static bool gemm_fits(const struct ew_conv_shape *s)
{
    return true;
}

static void expect(const struct job *j, int64_t n)
{
    const uint8_t *y = j->conv.y;
    const float *f = j->conv.y;
    for (int64_t i = 0; i < n; i++) {
        const bool floats = j->conv.end.to_float;
        const double is = floats ? (double)f[i] : y[i];
        const double wanted = floats ? (double)float_at(j, i) : byte_at(j, i);
        if (is < wanted || is > wanted) {
            EW_FAIL("[%lld] is %g, not %g", (long long)i, is, wanted);
            return;
        }
    }
}

static void check(kernels *k, const struct ew_conv_shape *s, enum test_pattern p, enum end end,
                  int32_t zero, int method)
{
    const struct {
        const char *name;
        bool (*fits)(const struct ew_conv_shape *);
        size_t (*pack_size)(const struct ew_conv_shape *);
        size_t (*scratch)(const struct ew_conv_shape *);
        void (*run)(kernels *, struct job *, void *, void *);
    } methods[] = {{"gemm", gemm_fits, k->int8_gemm_pack_size, k->int8_gemm_scratch, run_gemm},
                   {"grouped", k->int8_grouped_fits, k->int8_grouped_pack_size,
                    k->int8_grouped_scratch, run_grouped},
                   {"depthwise", k->int8_depthwise_fits, k->int8_depthwise_pack_size,
                    k->int8_depthwise_scratch, run_depthwise},
                   {"depthwise columns", k->int8_depthwise_column_fits,
                    k->int8_depthwise_column_pack_size, k->int8_depthwise_column_scratch,
                    run_depthwise_column}};
    const bool columns = methods[method].run == run_depthwise_column; /* supports plain epilogues
                                                                       * only */
    if (!methods[method].fits(s) || (columns && end > SIGNED))
        return;
    ew_test_begin("%s: %s, %d to %d in %d groups, pattern %d, zero %d, %s", k->isa,
                  methods[method].name, s->cin, s->cout, s->groups, p, zero, end_names[end]);
    const int64_t n_x = ref_conv_in_count(s), n_w = ref_conv_filter_count(s);
    const int64_t n_y = ref_conv_out_count(s);
    uint8_t *x = ew_guard_end((size_t)n_x, 1), *w = ew_guard_end((size_t)n_w, 1);
    const size_t size = end == FLOATS ? sizeof(float) : 1;
    uint8_t *bytes = ew_guard_end(256, 1), *add = ew_guard_end((size_t)n_y, 1);
    void *y = ew_guard_end((size_t)n_y * size, size);
    int32_t *bias = ew_guard_end((size_t)s->cout * sizeof(*bias), sizeof(*bias));
    float *ratio = test_array(s->cout, 1);
    void *packed = test_scratch(methods[method].pack_size(s));
    void *scratch = test_scratch(methods[method].scratch(s));
    test_bytes(p, x, n_x, w, n_w);
    for (int64_t o = 0; o < s->cout; o++) {
        bias[o] = (int32_t)(o * 1000 - 7000);
        ratio[o] = (1.1f + ratio[o]) * (end == LARGE_RATIOS ? 3e4f : 0.002f);
    }
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (int64_t i = 0; i < n_y; i++)
        add[i] = (uint8_t)(i * 53 + 7);
    struct job j = {.shape = s,
                    .conv = {.shape = s,
                             .x = x,
                             .of_x = {.zero = zero},
                             .packed = packed,
                             .y = y,
                             .end = end_of(end, bytes, add)},
                    .weights = {.w = w, .of_x = {.zero = zero}, .bias = bias, .ratio = ratio}};
    methods[method].run(k, &j, packed, scratch);
    expect(&j, n_y);
    void *const all[] = {x, w, y, bytes, add, bias, ratio, packed, scratch};
    for (size_t i = 0; i < EW_COUNT(all); i++)
        ew_guard_free(all[i]);
    ew_test_end();
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_isa_at(i); i++)
        for (size_t s = 0; s < EW_COUNT(shapes); s++)
            for (int p = 0; p < PATTERNS; p++)
                for (int method = 0; method < 4; method++) {
                    for (int end = 0; end < ENDS; end++)
                        check(ew_isa_at(i), &shapes[s], (enum test_pattern)p, (enum end)end, 117,
                              method);
                    check(ew_isa_at(i), &shapes[s], (enum test_pattern)p, PLAIN, 0, method);
                    check(ew_isa_at(i), &shapes[s], (enum test_pattern)p, PLAIN, 255, method);
                }
    return ew_test_status();
}
