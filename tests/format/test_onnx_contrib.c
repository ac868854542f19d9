/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the domain com.microsoft, which tools write into files: each next to the equivalent
 * standard nodes in one model; both outputs must agree. */
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "graph/graph.h"
#include "onnx_build.h"
#include "run_graph.h"

/* Without the domain's opset, which tools omit. */
static Ew__OnnxNode *contrib(struct ew_build *b, const char *type, const char *in, const char *out)
{
    Ew__OnnxNode *n = ew_build_node(b, type, in, out);
    n->domain = ew_build_text(b, "com.microsoft");
    return n;
}

static void set_int(struct ew_build *b, Ew__OnnxNode *n, const char *name, int64_t v)
{
    Ew__OnnxAttr *a = ew_build_attr(b, n, name, EW_PB_ATTR_INT);
    a->has_i = true;
    a->i = v;
}

static void set_float(struct ew_build *b, Ew__OnnxNode *n, const char *name, float v)
{
    Ew__OnnxAttr *a = ew_build_attr(b, n, name, EW_PB_ATTR_FLOAT);
    a->has_f = true;
    a->f = v;
}

static void set_text(struct ew_build *b, Ew__OnnxNode *n, const char *name, const char *v)
{
    Ew__OnnxAttr *a = ew_build_attr(b, n, name, EW_PB_ATTR_STRING);
    a->has_s = true;
    a->s.data = (uint8_t *)ew_build_text(b, v);
    a->s.len = strlen(v);
}

/* A constant with small elements around 0. */
static void constant(struct ew_build *b, const char *name, const char *dims)
{
    Ew__OnnxTensor *t = ew_build_init_tensor(b, name, EW_PB_FLOAT, dims);
    float *v = (float *)(void *)t->raw_data.data;
    for (size_t i = 0; i < t->raw_data.len / sizeof(*v); i++)
        v[i] = (float)((int)(i * 7 % 11) - 5) * 0.1f;
}

static void scalar(struct ew_build *b, const char *name, float value)
{
    Ew__OnnxTensor *t = ew_build_init_tensor(b, name, EW_PB_FLOAT, "");
    memcpy(t->raw_data.data, &value, sizeof(value));
}

/* Runs the model on one input and compares the first output with the second, the third with the
 * fourth.  Takes ownership of the build. */
static void pairs_agree(struct ew_build *b)
{
    struct ew_graph *g = NULL;
    struct ew_plan *p = NULL;
    if (EW_EXPECT_OK(ew_onnx_load(ew_build_file(b, "contrib.onnx"), NULL, &g))) {
        struct ew_tensor x = g->values[g->inputs[0]].t;
        const struct ew_tensor *in = &x;
        x.data = calloc(1, ew_tensor_bytes(&x));
        for (int64_t k = 0; k < ew_tensor_count(&x); k++)
            ew_tensor_store(&x, k, 1, &(double){(double)(k * 5 % 13) * 0.5 - 3});
        if (EW_EXPECT_OK(ew_run_graph(g, &in, &p)))
            for (int i = 0; i + 1 < g->n_outputs; i += 2)
                EW_EXPECT_OK(
                    ew_tensors_agree(ew_plan_output(p, i), ew_plan_output(p, i + 1), 1e-5, 1e-6));
        ew_plan_free(p);
        free(x.data);
        ew_graph_free(g);
    }
    ew_build_fini(b);
}

static void begin(struct ew_build *b, int64_t opset, const char *dims)
{
    ew_build_init(b);
    b->model.opset_import[0]->version = opset;
    b->model.ir_version = 13;
    ew_build_input(b, "x", EW_PB_FLOAT, dims);
}

static void two_outputs(struct ew_build *b, const char *first, const char *second)
{
    ew_build_output(b, first);
    ew_build_output(b, second);
}

static void gelus(void)
{
    struct ew_build b;
    begin(&b, 24, "2,3,4");
    constant(&b, "c", "4");
    ew_build_node(&b, "Add", "x,c", "s");
    contrib(&b, "BiasGelu", "x,c", "y0");
    ew_build_node(&b, "Gelu", "s", "y1");
    contrib(&b, "FastGelu", "x,c", "y2");
    set_text(&b, ew_build_node(&b, "Gelu", "s", "y3"), "approximate", "tanh");
    contrib(&b, "Gelu", "x", "y4");
    ew_build_node(&b, "Gelu", "x", "y5");
    set_float(&b, contrib(&b, "QuickGelu", "x", "y6"), "alpha", 1.5f);
    set_float(&b, ew_build_node(&b, "Swish", "x", "y7"), "alpha", 1.5f);
    contrib(&b, "QuickGelu", "x", "y8");
    scalar(&b, "a", 1.702f);
    ew_build_node(&b, "Mul", "x,a", "t");
    ew_build_node(&b, "Sigmoid", "t", "u");
    ew_build_node(&b, "Mul", "x,u", "y9");
    ew_build_node(&b, "Swish", "x", "ya");
    ew_build_node(&b, "Sigmoid", "x", "v");
    ew_build_node(&b, "Mul", "x,v", "yb");
    two_outputs(&b, "y0", "y1");
    two_outputs(&b, "y2", "y3");
    two_outputs(&b, "y4", "y5");
    two_outputs(&b, "y6", "y7");
    two_outputs(&b, "y8", "y9");
    two_outputs(&b, "ya", "yb");
    pairs_agree(&b);
}

static void integers(struct ew_build *b, const char *name, const char *dims, int64_t first)
{
    Ew__OnnxTensor *t = ew_build_init_tensor(b, name, EW_PB_INT64, dims);
    int64_t *v = (int64_t *)(void *)t->raw_data.data;
    for (size_t i = 0; i < t->raw_data.len / sizeof(*v); i++)
        v[i] = first + (int64_t)i;
}

/* The definition in standard nodes. */
static void plain_rms(struct ew_build *b, const char *out)
{
    ew_build_node(b, "Mul", "x,x", "squares");
    ew_build_node(b, "ReduceMean", "squares,axes", "mean");
    ew_build_node(b, "Add", "mean,eps", "sum");
    ew_build_node(b, "Sqrt", "sum", "root");
    ew_build_node(b, "Div", "x,root", "normal");
    ew_build_node(b, "Mul", "normal,gamma", out);
}

/* RMSNormalization, and the name under which ONNX Runtime writes it. */
static void rms_norm(void)
{
    for (int all = 0; all < 2; all++) {
        struct ew_build b;
        begin(&b, 23, "2,3,4");
        constant(&b, "gamma", all ? "3,4" : "4");
        scalar(&b, "eps", 1e-3f);
        integers(&b, "axes", all ? "2" : "1", all ? 1 : 2);
        Ew__OnnxNode *n = ew_build_node(&b, "RMSNormalization", "x,gamma", "y0");
        set_int(&b, n, "axis", all ? 1 : -1);
        set_float(&b, n, "epsilon", 1e-3f);
        n = ew_build_node(&b, "SimplifiedLayerNormalization", "x,gamma", "y2");
        set_int(&b, n, "axis", all ? 1 : -1);
        set_float(&b, n, "epsilon", 1e-3f);
        plain_rms(&b, "y1");
        ew_build_node(&b, "Identity", "y1", "y3");
        two_outputs(&b, "y0", "y1");
        two_outputs(&b, "y2", "y3");
        pairs_agree(&b);
    }
}

/* At an opset before LayerNormalization. */
static void skip_layer_norm(void)
{
    struct ew_build b;
    begin(&b, 12, "2,3,4");
    constant(&b, "skip", "3,4");
    constant(&b, "gamma", "4");
    constant(&b, "beta", "4");
    constant(&b, "bias", "4");
    Ew__OnnxNode *n = contrib(&b, "SkipLayerNormalization", "x,skip,gamma,beta,bias", "y0,,,y2");
    set_float(&b, n, "epsilon", 1e-3f);
    ew_build_node(&b, "Add", "x,skip", "s");
    ew_build_node(&b, "Add", "s,bias", "y3");
    n = ew_build_node(&b, "LayerNormalization", "y3,gamma,beta", "y1");
    set_float(&b, n, "epsilon", 1e-3f);
    two_outputs(&b, "y0", "y1");
    two_outputs(&b, "y2", "y3");
    pairs_agree(&b);
}

static void ints(struct ew_build *b, const char *name, const int64_t *v, int n)
{
    Ew__OnnxTensor *t = ew_build_init_tensor(b, name, EW_PB_INT64, n == 4 ? "4" : "3");
    memcpy(t->raw_data.data, v, (size_t)n * sizeof(*v));
}

/* Two heads of 4 over 3 tokens by Einsum, output y1; x is projected to q, k and v.  The heads of v
 * have `size` elements. */
static void plain_attention(struct ew_build *b, int size)
{
    constant(b, "w", size == 4 ? "8,24" : "8,22");
    constant(b, "c", size == 4 ? "24" : "22");
    scalar(b, "scale", 0.5f);
    ints(b, "parts", (const int64_t[]){8, 8, 2 * size}, 3);
    ints(b, "heads", (const int64_t[]){2, 3, 2, 4}, 4);
    ints(b, "heads_of_v", (const int64_t[]){2, 3, 2, size}, 4);
    ints(b, "flat", (const int64_t[]){2, 3, 2 * size}, 3);
    ew_build_node(b, "MatMul", "x,w", "all");
    ew_build_node(b, "Add", "all,c", "biased");
    set_int(b, ew_build_node(b, "Split", "biased,parts", "q,k,v"), "axis", 2);
    ew_build_node(b, "Reshape", "q,heads", "qh");
    ew_build_node(b, "Reshape", "k,heads", "kh");
    ew_build_node(b, "Reshape", "v,heads_of_v", "vh");
    set_text(b, ew_build_node(b, "Einsum", "qh,kh", "s"), "equation", "bshd,bthd->bhst");
    ew_build_node(b, "Mul", "s,scale", "scaled");
    ew_build_node(b, "Add", "scaled,added", "masked");
    set_int(b, ew_build_node(b, "Softmax", "masked", "p"), "axis", -1);
    set_text(b, ew_build_node(b, "Einsum", "p,vh", "o"), "equation", "bhst,bthd->bshd");
    ew_build_node(b, "Reshape", "o,flat", "y1");
}

/* As optimisers write it into vision transformers, with a mask of keys. */
static void attention(void)
{
    enum { INT32 = 6 };
    const int32_t seen[] = {1, 1, 0, 0, 1, 1};
    const float added[] = {0, 0, -1e4f, -1e4f, 0, 0};
    struct ew_build b;
    begin(&b, 13, "2,3,8");
    memcpy(ew_build_init_tensor(&b, "mask", INT32, "2,3")->raw_data.data, seen, sizeof(seen));
    memcpy(ew_build_init_tensor(&b, "added", EW_PB_FLOAT, "2,1,1,3")->raw_data.data, added,
           sizeof(added));
    plain_attention(&b, 4);
    set_int(&b, contrib(&b, "Attention", "x,w,c,mask", "y0"), "num_heads", 2);
    two_outputs(&b, "y0", "y1");
    pairs_agree(&b);
}

/* Heads of v smaller than those of q and k. */
static void sizes_of_heads(void)
{
    const float added[] = {0, 0, 0};
    struct ew_build b;
    begin(&b, 13, "2,3,8");
    memcpy(ew_build_init_tensor(&b, "added", EW_PB_FLOAT, "3")->raw_data.data, added,
           sizeof(added));
    plain_attention(&b, 3);
    Ew__OnnxNode *n = contrib(&b, "Attention", "x,w,c", "y0");
    set_int(&b, n, "num_heads", 2);
    ew_build_ints(&b, n, "qkv_hidden_sizes", "8,8,6");
    set_int(&b, ew_build_node(&b, "Split", "all,parts", "q0,k0,v0"), "axis", 2);
    set_int(&b, contrib(&b, "MultiHeadAttention", "q0,k0,v0,c", "y2"), "num_heads", 2);
    ew_build_node(&b, "Identity", "y1", "y3");
    two_outputs(&b, "y0", "y1");
    two_outputs(&b, "y2", "y3");
    pairs_agree(&b);
}

/* With inputs that are projected already, and causal: a token attends to none after itself. */
static void multi_head_attention(void)
{
    const float never = -1e30f, added[] = {0, never, never, 0, 0, never, 0, 0, 0};
    struct ew_build b;
    begin(&b, 13, "2,3,8");
    memcpy(ew_build_init_tensor(&b, "added", EW_PB_FLOAT, "3,3")->raw_data.data, added,
           sizeof(added));
    plain_attention(&b, 4);
    set_int(&b, ew_build_node(&b, "Split", "all", "q0,k0,v0"), "axis", 2);
    Ew__OnnxNode *n = contrib(&b, "MultiHeadAttention", "q0,k0,v0,c", "y0");
    set_int(&b, n, "num_heads", 2);
    set_int(&b, n, "unidirectional", 1);
    two_outputs(&b, "y0", "y1");
    pairs_agree(&b);
    struct ew_graph *g;
    begin(&b, 13, "2,3,8");
    set_int(&b, contrib(&b, "MultiHeadAttention", "x,x,x", "y,k"), "num_heads", 2);
    ew_build_output(&b, "y");
    ew_build_output(&b, "k");
    EW_EXPECT_ERR(ew_onnx_load(ew_build_file(&b, "state.onnx"), NULL, &g), EW_ERR_UNSUPPORTED,
                  "keys and values as outputs");
    ew_build_fini(&b);
}

/* Attention of opset 23: inputs of rank 3 and 4, float and boolean masks, is_causal. */
static void standard_attention(void)
{
    enum { BOOL = 9 };
    const float never = -1e30f, added[] = {0, never, never, 0, 0, never, 0, 0, 0};
    const uint8_t seen[] = {1, 0, 0, 1, 1, 0, 1, 1, 1};
    struct ew_build b;
    begin(&b, 23, "2,3,8");
    memcpy(ew_build_init_tensor(&b, "added", EW_PB_FLOAT, "3,3")->raw_data.data, added,
           sizeof(added));
    memcpy(ew_build_init_tensor(&b, "seen", BOOL, "3,3")->raw_data.data, seen, sizeof(seen));
    plain_attention(&b, 4);
    Ew__OnnxNode *n[] = {ew_build_node(&b, "Attention", "q,k,v,added", "y0"),
                         ew_build_node(&b, "Attention", "q,k,v", "y2")};
    for (int i = 0; i < 2; i++) {
        set_int(&b, n[i], "q_num_heads", 2);
        set_int(&b, n[i], "kv_num_heads", 2);
    }
    set_int(&b, n[1], "is_causal", 1);
    ew_build_ints(&b, ew_build_node(&b, "Transpose", "qh", "qt"), "perm", "0,2,1,3");
    ew_build_ints(&b, ew_build_node(&b, "Transpose", "kh", "kt"), "perm", "0,2,1,3");
    ew_build_ints(&b, ew_build_node(&b, "Transpose", "vh", "vt"), "perm", "0,2,1,3");
    set_float(&b, ew_build_node(&b, "Attention", "qt,kt,vt,seen", "o4"), "scale", 0.5f);
    ew_build_ints(&b, ew_build_node(&b, "Transpose", "o4", "o4t"), "perm", "0,2,1,3");
    ew_build_node(&b, "Reshape", "o4t,flat", "y4");
    ew_build_node(&b, "Identity", "y1", "y3");
    ew_build_node(&b, "Identity", "y1", "y5");
    two_outputs(&b, "y0", "y1");
    two_outputs(&b, "y2", "y3");
    two_outputs(&b, "y4", "y5");
    pairs_agree(&b);
    struct ew_graph *g;
    begin(&b, 23, "2,3,8");
    n[0] = ew_build_node(&b, "Attention", "x,x,x", "y");
    set_int(&b, n[0], "q_num_heads", 4);
    set_int(&b, n[0], "kv_num_heads", 2);
    ew_build_output(&b, "y");
    EW_EXPECT_ERR(ew_onnx_load(ew_build_file(&b, "grouped.onnx"), NULL, &g), EW_ERR_UNSUPPORTED,
                  "2 heads of keys for 4 of queries");
    ew_build_fini(&b);
}

static void fused_conv(void)
{
    struct ew_build b;
    begin(&b, 22, "1,2,5,5");
    constant(&b, "w", "3,2,3,3");
    constant(&b, "c", "3");
    constant(&b, "z", "1,3,3,3");
    Ew__OnnxNode *n = contrib(&b, "FusedConv", "x,w,c,z", "y0");
    set_text(&b, n, "activation", "LeakyRelu");
    float slope = 0.25f;
    Ew__OnnxAttr *a = ew_build_attr(&b, n, "activation_params", EW_PB_ATTR_FLOATS);
    a->floats = &slope;
    a->n_floats = 1;
    ew_build_node(&b, "Conv", "x,w,c", "s");
    ew_build_node(&b, "Add", "s,z", "t");
    set_float(&b, ew_build_node(&b, "LeakyRelu", "t", "y1"), "alpha", slope);
    set_text(&b, contrib(&b, "FusedConv", "x,w", "y2"), "activation", "Relu");
    ew_build_node(&b, "Conv", "x,w", "u");
    ew_build_node(&b, "Relu", "u", "y3");
    two_outputs(&b, "y0", "y1");
    two_outputs(&b, "y2", "y3");
    pairs_agree(&b);
}

static void fused_products(void)
{
    struct ew_build b;
    begin(&b, 13, "4,3");
    constant(&b, "w", "5,4");
    constant(&b, "c", "5");
    Ew__OnnxNode *n = contrib(&b, "FusedMatMul", "x,w", "y0");
    set_int(&b, n, "transA", 1);
    set_int(&b, n, "transB", 1);
    set_float(&b, n, "alpha", 0.5f);
    Ew__OnnxNode *gemm[2] = {ew_build_node(&b, "Gemm", "x,w", "y1"),
                             ew_build_node(&b, "Gemm", "x,w,c", "s")};
    n = contrib(&b, "FusedGemm", "x,w,c", "y2");
    set_text(&b, n, "activation", "HardSigmoid");
    set_float(&b, n, "activation_alpha", 0.1f);
    set_float(&b, n, "activation_beta", 0.4f);
    for (int i = 0; i < 3; i++) {
        Ew__OnnxNode *k = i < 2 ? gemm[i] : n;
        set_int(&b, k, "transA", 1);
        set_int(&b, k, "transB", 1);
        set_float(&b, k, "alpha", 0.5f);
    }
    n = ew_build_node(&b, "HardSigmoid", "s", "y3");
    set_float(&b, n, "alpha", 0.1f);
    set_float(&b, n, "beta", 0.4f);
    two_outputs(&b, "y0", "y1");
    two_outputs(&b, "y2", "y3");
    pairs_agree(&b);
}

static void quantize(void)
{
    struct ew_build b;
    begin(&b, 13, "4,3");
    scalar(&b, "s", 0.05f);
    Ew__OnnxTensor *z = ew_build_init_tensor(&b, "z", 2, ""); /* uint8 */
    z->raw_data.data[0] = 128;
    contrib(&b, "QuantizeLinear", "x,s,z", "q");
    contrib(&b, "DequantizeLinear", "q,s,z", "y0");
    ew_build_node(&b, "QuantizeLinear", "x,s,z", "r");
    ew_build_node(&b, "DequantizeLinear", "r,s,z", "y1");
    two_outputs(&b, "y0", "y1");
    pairs_agree(&b);
}

/* As ONNX Runtime writes them, with channels_last = 0. */
static void quantized_functions(void)
{
    enum { UINT8 = 2 };
    struct ew_build b;
    begin(&b, 13, "1,3,3,5");
    scalar(&b, "s", 0.05f);
    scalar(&b, "t", 0.0041f);
    ew_build_init_tensor(&b, "z", UINT8, "")->raw_data.data[0] = 128;
    ew_build_init_tensor(&b, "o", UINT8, "")->raw_data.data[0] = 3;
    ew_build_node(&b, "QuantizeLinear", "x,s,z", "q");
    ew_build_node(&b, "DequantizeLinear", "q,s,z", "d");
    set_int(&b, contrib(&b, "QLinearGlobalAveragePool", "q,s,z,t,z", "p"), "channels_last", 0);
    ew_build_node(&b, "DequantizeLinear", "p,t,z", "y0");
    ew_build_node(&b, "GlobalAveragePool", "d", "mean");
    ew_build_node(&b, "QuantizeLinear", "mean,t,z", "mean_q");
    ew_build_node(&b, "DequantizeLinear", "mean_q,t,z", "y1");
    Ew__OnnxNode *n = contrib(&b, "QLinearSoftmax", "q,s,z,t,o", "f");
    set_int(&b, n, "axis", 1);
    set_int(&b, n, "opset", 13);
    ew_build_node(&b, "DequantizeLinear", "f,t,o", "y2");
    set_int(&b, ew_build_node(&b, "Softmax", "d", "shares"), "axis", 1);
    ew_build_node(&b, "QuantizeLinear", "shares,t,o", "shares_q");
    ew_build_node(&b, "DequantizeLinear", "shares_q,t,o", "y3");
    two_outputs(&b, "y0", "y1");
    two_outputs(&b, "y2", "y3");
    pairs_agree(&b);
}

/* Before opset 13 the softmax is over all axes from `axis` on. */
static void quantized_block_softmax(void)
{
    struct ew_build b;
    begin(&b, 12, "2,3,2");
    scalar(&b, "s", 0.05f);
    scalar(&b, "t", 0.0041f);
    ew_build_init_tensor(&b, "z", 2, "")->raw_data.data[0] = 128;
    ew_build_init_tensor(&b, "o", 2, "")->raw_data.data[0] = 3;
    ew_build_node(&b, "QuantizeLinear", "x,s,z", "q");
    ew_build_node(&b, "DequantizeLinear", "q,s,z", "d");
    Ew__OnnxNode *n = contrib(&b, "QLinearSoftmax", "q,s,z,t,o", "f");
    set_int(&b, n, "axis", 1);
    set_int(&b, n, "opset", 12);
    ew_build_node(&b, "DequantizeLinear", "f,t,o", "y0");
    set_int(&b, ew_build_node(&b, "Softmax", "d", "shares"), "axis", 1);
    ew_build_node(&b, "QuantizeLinear", "shares,t,o", "shares_q");
    ew_build_node(&b, "DequantizeLinear", "shares_q,t,o", "y1");
    two_outputs(&b, "y0", "y1");
    pairs_agree(&b);
}

/* From dynamic quantisation, with a scale per column. */
static void quantized_products(void)
{
    struct ew_build b;
    begin(&b, 13, "4,3");
    constant(&b, "c", "5");
    Ew__OnnxTensor *w = ew_build_init_tensor(&b, "w", 2, "3,5");
    for (int i = 0; i < 15; i++)
        w->raw_data.data[i] = (uint8_t)(100 + 9 * i);
    Ew__OnnxTensor *s = ew_build_init_tensor(&b, "s", EW_PB_FLOAT, "5");
    for (int i = 0; i < 5; i++)
        ((float *)(void *)s->raw_data.data)[i] = 0.01f * (float)(i + 1);
    memset(ew_build_init_tensor(&b, "z", 2, "5")->raw_data.data, 128, 5);
    ew_build_node(&b, "DynamicQuantizeLinear", "x", "q,qs,qz");
    ew_build_node(&b, "DequantizeLinear", "q,qs,qz", "d");
    ew_build_node(&b, "DequantizeLinear", "w,s,z", "e");
    ew_build_node(&b, "MatMul", "d,e", "y1");
    ew_build_node(&b, "Add", "y1,c", "y3");
    contrib(&b, "MatMulIntegerToFloat", "q,w,qs,s,qz,z", "y0");
    contrib(&b, "DynamicQuantizeMatMul", "x,w,s,z,c", "y2");
    two_outputs(&b, "y0", "y1");
    two_outputs(&b, "y2", "y3");
    pairs_agree(&b);
}

static void image_scaler(void)
{
    struct ew_build b;
    begin(&b, 9, "1,3,2,2");
    constant(&b, "c", "1,3,1,1");
    scalar(&b, "s", 0.25f);
    Ew__OnnxNode *n = ew_build_node(&b, "ImageScaler", "x", "y0");
    set_float(&b, n, "scale", 0.25f);
    Ew__OnnxAttr *a = ew_build_attr(&b, n, "bias", EW_PB_ATTR_FLOATS);
    a->floats = (float *)(void *)b.graph.initializer[0]->raw_data.data;
    a->n_floats = 3;
    ew_build_node(&b, "Mul", "x,s", "t");
    ew_build_node(&b, "Add", "t,c", "y1");
    n = ew_build_node(&b, "Affine", "x", "y2");
    set_float(&b, n, "alpha", 0.25f);
    set_float(&b, n, "beta", 3);
    scalar(&b, "d", 3);
    ew_build_node(&b, "Add", "t,d", "y3");
    two_outputs(&b, "y0", "y1");
    two_outputs(&b, "y2", "y3");
    pairs_agree(&b);
}

static void crop(void)
{
    struct ew_build b;
    begin(&b, 7, "1,2,5,6");
    ew_build_ints(&b, ew_build_node(&b, "Crop", "x", "y0"), "border", "1,2,3,0");
    Ew__OnnxNode *n = ew_build_node(&b, "Slice", "x", "y1");
    ew_build_ints(&b, n, "axes", "2,3");
    ew_build_ints(&b, n, "starts", "2,1");
    ew_build_ints(&b, n, "ends", "5,3");
    n = ew_build_node(&b, "Crop", "x", "y2");
    ew_build_ints(&b, n, "border", "1,2,0,0");
    ew_build_ints(&b, n, "scale", "2,3");
    n = ew_build_node(&b, "Slice", "x", "y3");
    ew_build_ints(&b, n, "axes", "2,3");
    ew_build_ints(&b, n, "starts", "2,1");
    ew_build_ints(&b, n, "ends", "4,4");
    two_outputs(&b, "y0", "y1");
    two_outputs(&b, "y2", "y3");
    pairs_agree(&b);
}

/* What is refused says so. */
static void refused(void)
{
    struct ew_build b;
    struct ew_graph *g;
    begin(&b, 13, "1,2,5,5");
    constant(&b, "w", "3,2,3,3");
    set_text(&b, contrib(&b, "FusedConv", "x,w", "y"), "activation", "Frobnicate");
    ew_build_output(&b, "y");
    EW_EXPECT_ERR(ew_onnx_load(ew_build_file(&b, "bad.onnx"), NULL, &g), EW_ERR_UNSUPPORTED,
                  "activation \"Frobnicate\" is not supported");
    ew_build_fini(&b);
    begin(&b, 13, "2,3");
    contrib(&b, "FusedMatMul", "x", "y");
    ew_build_output(&b, "y");
    EW_EXPECT_ERR(ew_onnx_load(ew_build_file(&b, "bad.onnx"), NULL, &g), EW_ERR_FORMAT,
                  "needs two inputs");
    ew_build_fini(&b);
}

EW_TEST_MAIN(EW_TEST(gelus), EW_TEST(skip_layer_norm), EW_TEST(attention),
             EW_TEST(multi_head_attention), EW_TEST(sizes_of_heads), EW_TEST(standard_attention),
             EW_TEST(rms_norm), EW_TEST(fused_conv), EW_TEST(fused_products), EW_TEST(quantize),
             EW_TEST(quantized_functions), EW_TEST(quantized_block_softmax),
             EW_TEST(quantized_products), EW_TEST(image_scaler), EW_TEST(crop), EW_TEST(refused))
