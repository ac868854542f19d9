/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of lab_conv.c in 8 bits: uint8 activations, int8 filters, relu as a clamp. */
#include "lab.h"
#include "ref_conv.h"

struct int_ctx {
    const struct ew_kernels *k;
    struct ew_conv_shape shape;
    struct ew_qconv conv;
    int64_t tiles;
    void *scratch;
    void (*kernel)(const struct ew_qconv *c, int64_t begin, int64_t end, void *scratch);
};

static void run(void *ctx)
{
    const struct int_ctx *c = ctx;
    c->kernel(&c->conv, 0, c->tiles, c->scratch);
}

static void *bytes(int64_t n)
{
    return lab_array((size_t)n / sizeof(float) + 1);
}

/* Sets up everything except the packed filters and the kernel. */
static struct ew_qconv_weights begin(const struct ew_kernels *k, const struct ew_conv_shape *s,
                                     struct int_ctx *c, struct lab_job *out)
{
    float *ratio = lab_array((size_t)s->cout);
    for (int i = 0; i < s->cout; i++)
        ratio[i] = 0.001f;
    *c = (struct int_ctx){.k = k, .shape = *s};
    c->conv =
        (struct ew_qconv){.shape = &c->shape,
                          .x = bytes(ref_conv_in_count(s)),
                          .of_x = {.zero = 7},
                          .y = bytes(ref_conv_out_count(s)),
                          .end = {.ratios_below_1 = true, .y = {.zero = 3}, .lo = 3, .hi = 255}};
    *out = (struct lab_job){.run = run, .ctx = c, .flops = 2 * ref_conv_macs(s), .integer = true};
    return (struct ew_qconv_weights){
        .w = bytes(ref_conv_filter_count(s)), .of_x = c->conv.of_x, .ratio = ratio};
}

static void conv_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    static struct int_ctx c;
    const struct ew_conv_shape *s = &lab_layers[i].shape;
    const struct ew_qconv_weights w = begin(k, s, &c, out);
    void *packed = bytes((int64_t)k->int8_gemm_pack_size(s));
    k->int8_gemm_pack(s, &w, packed, 0, k->int8_gemm_pack_tiles(s));
    c.conv.packed = packed;
    c.tiles = k->int8_gemm_tiles(s);
    c.scratch = bytes((int64_t)k->int8_gemm_scratch(s));
    c.kernel = k->int8_gemm_run;
}

static void wino_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    static struct int_ctx c;
    const struct ew_conv_shape *s = &lab_layers[i].shape;
    const struct ew_qconv_weights w = begin(k, s, &c, out);
    if (!k->int8_winograd_fits(s)) {
        out->run = NULL;
        return;
    }
    void *packed = bytes((int64_t)k->int8_winograd_pack_size(s));
    k->int8_winograd_pack(s, &w, packed, 0, k->int8_winograd_pack_tiles(s));
    c.conv.packed = packed;
    c.tiles = k->int8_winograd_tiles(s);
    c.scratch = bytes((int64_t)k->int8_winograd_scratch(s));
    c.kernel = k->int8_winograd_run;
}

static void group_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    static struct int_ctx c;
    const struct ew_conv_shape *s = &lab_layers[i].shape;
    const struct ew_qconv_weights w = begin(k, s, &c, out);
    if (!k->int8_grouped_fits(s)) {
        out->run = NULL;
        return;
    }
    void *packed = bytes((int64_t)k->int8_grouped_pack_size(s));
    k->int8_grouped_pack(s, &w, packed);
    c.conv.packed = packed;
    c.tiles = k->int8_grouped_tiles(s);
    c.scratch = bytes((int64_t)k->int8_grouped_scratch(s));
    c.kernel = k->int8_grouped_run;
}

static void depth_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    static struct int_ctx c;
    const struct ew_conv_shape *s = &lab_depthwise[i].shape;
    const struct ew_qconv_weights w = begin(k, s, &c, out);
    const bool columns = k->int8_depthwise_column_fits(s);
    const size_t size =
        columns ? k->int8_depthwise_column_pack_size(s) : k->int8_depthwise_pack_size(s);
    void *packed = bytes((int64_t)size);
    (columns ? k->int8_depthwise_column_pack : k->int8_depthwise_pack)(s, &w, packed);
    c.conv.packed = packed;
    c.tiles = (columns ? k->int8_depthwise_column_tiles : k->int8_depthwise_tiles)(s);
    c.scratch =
        bytes((int64_t)(columns ? k->int8_depthwise_column_scratch : k->int8_depthwise_scratch)(s));
    c.kernel = columns ? k->int8_depthwise_column_run : k->int8_depthwise_run;
    out->bytes = (double)(ref_conv_in_count(s) + ref_conv_out_count(s));
}

/* clang-format off */
const struct lab_experiment lab_int[] = {
    {"int8_gemm", "8-bit implicit GEMM", LAB_LAYERS, lab_layer_name, conv_setup},
    {"int8_winograd", "8-bit Winograd; rates by direct count", LAB_LAYERS, lab_layer_name, wino_setup},
    {"int8_grouped", "8-bit convolution of many small groups", LAB_LAYERS, lab_layer_name, group_setup},
    {"int8_depthwise", "8-bit depthwise convolution", LAB_DEPTHWISE, lab_depthwise_name, depth_setup},
    {NULL, NULL, 0, NULL, NULL},
};
/* clang-format on */
