/* SPDX-License-Identifier: Apache-2.0 */
/* Files with weights of several MiB: their bytes are extracted before the file is parsed; nothing
 * is lost, and damaged files are still refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "edgewise.h"
#include "ew_test.h"
#include "graph/graph.h"
#include "graph/ops.h"
#include "op/math_attr.h"

#define WIDE  1100 /* a layer of WIDE x WIDE floats has 4.6 MiB, and is extracted */
#define SMALL 8

static ew_err add_layer(struct ew_graph *g, int *x, int64_t in, int64_t out, uint32_t seed)
{
    const struct ew_gemm_attr attr = {.alpha = 1, .beta = 1, .trans_b = true};
    struct ew_tensor w = {.dtype = EW_F32, .shape = {2, {out, in}}};
    float *v = w.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&w));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory");
    for (int64_t i = 0; i < in * out; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(seed >> 8) * 0x1p-24f - 0.5f;
    }
    int parts[2] = {*x};
    EW_TRY(ew_graph_const(g, NULL, EW_VALUE_PARAM, &w, false, &parts[1]));
    return ew_graph_add(g, &ew_op_gemm, NULL, &attr, ew_inputs(parts, 2), x);
}

/* Large, small, large: the parts between and after large weights must be kept. */
static ew_err network(struct ew_graph **out)
{
    const struct ew_shape shape = {2, {1, WIDE}};
    int x;
    EW_TRY(ew_graph_new("layers", out));
    EW_TRY(ew_graph_input(*out, "x", EW_F32, &shape, &x));
    EW_TRY(add_layer(*out, &x, WIDE, WIDE, 1));
    EW_TRY(add_layer(*out, &x, WIDE, SMALL, 2));
    EW_TRY(add_layer(*out, &x, SMALL, WIDE, 3));
    EW_TRY(add_layer(*out, &x, WIDE, WIDE, 4));
    return ew_graph_output(*out, x);
}

/* Lists the weights of the graph. */
static int weights_of(const struct ew_graph *g, const struct ew_tensor *out[8])
{
    int n = 0;
    for (int i = 0; i < g->n_values && n < 8; i++)
        if (g->values[i].kind == EW_VALUE_PARAM || g->values[i].kind == EW_VALUE_CONST)
            out[n++] = &g->values[i].t;
    return n;
}

static void all_bytes_are_there(void)
{
    struct ew_graph *made = NULL, *read = NULL;
    const struct ew_tensor *a[8], *b[8];
    if (!EW_EXPECT_OK(network(&made)) ||
        !EW_EXPECT_OK(ew_onnx_save(made, ew_test_path("layers.onnx"), NULL)) ||
        !EW_EXPECT_OK(ew_onnx_load(ew_test_path("layers.onnx"), NULL, &read)))
        return;
    const int n = weights_of(made, a);
    EW_EXPECT_INT(n, 4);
    if (EW_EXPECT_INT(weights_of(read, b), n))
        for (int i = 0; i < n; i++) {
            EW_EXPECT_INT((int64_t)ew_tensor_bytes(b[i]), (int64_t)ew_tensor_bytes(a[i]));
            EW_EXPECT(memcmp(a[i]->data, b[i]->data, ew_tensor_bytes(a[i])) == 0);
        }
    ew_graph_free(read);
    ew_graph_free(made);
}

/* Truncated anywhere, in a large weight or before one, the file is refused. */
static void damaged_files_are_refused(void)
{
    struct ew_graph *g = NULL;
    char *bytes = NULL;
    size_t size = 0;
    if (!EW_EXPECT_OK(ew_file_read(ew_test_path("layers.onnx"), (size_t)64 << 20, &bytes, &size)))
        return;
    const size_t cuts[] = {size - 1, size / 2, size / 3, (size_t)5 << 20};
    for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
        FILE *f = fopen(ew_test_path("cut.onnx"), "wb");
        if (!EW_EXPECT(f && fwrite(bytes, 1, cuts[i], f) == cuts[i]))
            break;
        fclose(f);
        EW_EXPECT_ERR(ew_onnx_load(ew_test_path("cut.onnx"), NULL, &g), EW_ERR_FORMAT, "damaged");
    }
    free(bytes);
}

EW_TEST_MAIN(EW_TEST(all_bytes_are_there), EW_TEST(damaged_files_are_refused))
