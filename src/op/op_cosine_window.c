/* SPDX-License-Identifier: Apache-2.0 */
/* HannWindow, HammingWindow, BlackmanWindow: sums of cosines over a number of samples that is known
 * when shapes are inferred. */
#include <math.h>
#include <string.h>

#include "op/dtype_attr.h"
#include "op/types.h"

extern const struct ew_op ew_op_cosine_window;

enum kind { HANN, HAMMING, BLACKMAN };

struct attr {
    int kind;      /* enum kind */
    bool periodic; /* the sample after the last would equal the first */
    int dtype;     /* enum ew_dtype of the output */
};

static const char *const kinds[] = {"hann", "hamming", "blackman", NULL};
static const char *const types[] = {"HannWindow", "HammingWindow", "BlackmanWindow", NULL};

/* Coefficients of 1, -cos(2 pi k / N) and cos(4 pi k / N); Hamming's are ONNX's, 25/46 and 21/46.
 */
static const double weights[][3] = {{0.5, 0.5, 0}, {25.0 / 46, 21.0 / 46, 0}, {0.42, 0.5, 0.08}};

static const struct ew_field attrs[] = {
    {.name = "kind",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct attr, kind),
     .choices = kinds,
     .help = "which window"},
    {.name = "periodic",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct attr, periodic),
     .def = "true",
     .help = "else symmetric"},
    {.name = "dtype",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct attr, dtype),
     .def = "float32",
     .choices = ew_dtype_choices,
     .help = "type of the output"},
    EW_FIELD_END,
};

static ew_err infer(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_INDEX));
    EW_CHECK(ew_tensor_count(c->in[0]) == 1, EW_ERR_SHAPE, "size is not a single number");
    const int64_t size = ew_tensor_get_int(c->in[0], 0);
    EW_CHECK(size >= 0, EW_ERR_SHAPE, "size is %lld", (long long)size);
    EW_CHECK(EW_TYPES_NUMBER >> a->dtype & 1, EW_ERR_TYPE, "cannot be of type %s",
             ew_dtype_name((enum ew_dtype)a->dtype));
    c->out[0]->dtype = (enum ew_dtype)a->dtype;
    c->out[0]->shape = (struct ew_shape){1, {size}};
    return ew_shape_check(&c->out[0]->shape, c->name);
}

static ew_err forward(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    const double *w = weights[a->kind];
    const int64_t size = c->out[0]->shape.dim[0];
    const double n = (double)ew_max_i64(1, a->periodic ? size : size - 1);
    for (int64_t k = 0; k < size; k++) {
        const double angle = 2 * M_PI * (double)k / n;
        const double v = w[0] - w[1] * cos(angle) + w[2] * cos(2 * angle);
        ew_tensor_store(c->out[0], k, 1, &v);
    }
    return EW_OK;
}

static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    struct attr a = {.periodic = ew_onnx_int(n, "periodic", 1) != 0};
    enum ew_dtype dtype;
    EW_TRY(ew_dtype_attr(n, "output_datatype", EW_F32, &dtype));
    a.dtype = (int)dtype;
    while (strcmp(types[a.kind], n->type) != 0)
        a.kind++;
    return ew_onnx_import_default(g, &ew_op_cosine_window, n, &a, out);
}

static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct attr *a = g->nodes[node].attr;
    n->type = types[a->kind];
    n->opset = n->opset < 17 ? 17 : n->opset;
    return ew_onnx_set_int(n, "output_datatype", ew_dtype_onnx((enum ew_dtype)a->dtype));
}

static const char *const renames[] = {"kind", NULL, "dtype", NULL, NULL};

#define SIZE(v)                                                                                    \
    {                                                                                              \
        "", EW_S64, EW_FILL_VALUES, .values = v, .constant = true                                  \
    }
static const struct ew_op_case cases[] = {
    {.name = "hann", .in = {SIZE("8")}, .n_in = 1, .out_shape = "8"},
    {.name = "hamming, symmetric",
     .attrs = "kind=hamming periodic=false",
     .in = {SIZE("5")},
     .n_in = 1,
     .out_shape = "5"},
    {.name = "blackman, double",
     .attrs = "kind=blackman dtype=float64",
     .in = {SIZE("10")},
     .n_in = 1,
     .out_shape = "10"},
    {.name = "one sample",
     .attrs = "periodic=false",
     .in = {SIZE("1")},
     .n_in = 1,
     .out_shape = "1"},
};

const struct ew_op ew_op_cosine_window = {
    .name = "cosine_window",
    .help = "a Hann, Hamming or Blackman window",
    .min_in = 1,
    .max_in = 1,
    .known_in = 1 << 0,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .onnx = {.rename = renames, .also = types, .import = import, .export = export_node},
    EW_OP_CASES(cases),
};
