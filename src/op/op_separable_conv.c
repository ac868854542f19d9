/* SPDX-License-Identifier: Apache-2.0 */
/* SeparableConv: made for inference from up to three convolutions (compress/fuse_separable.c).
 * Files have separate nodes. */
#include <string.h>

#include "graph/ops.h"
#include "op/separable.h"

/* clang-format off */
#define END_FIELDS(prefix, stage)                                                                  \
    {.name = prefix "_act", .type = EW_FIELD_ENUM,                                                 \
     .offset = offsetof(struct ew_separable_attr, end[stage].act), .choices = ew_act_names,        \
     .help = "activation of the " prefix " convolution"},                                          \
    {.name = prefix "_lo", .type = EW_FIELD_FLOAT,                                                 \
     .offset = offsetof(struct ew_separable_attr, end[stage].lo),                                  \
     .help = "the activation's first parameter"},                                                  \
    {.name = prefix "_hi", .type = EW_FIELD_FLOAT,                                                 \
     .offset = offsetof(struct ew_separable_attr, end[stage].hi),                                  \
     .help = "the activation's second parameter"}

static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct ew_separable_attr, win),
    END_FIELDS("expand", EW_SEPARABLE_EXPAND),
    END_FIELDS("depthwise", EW_SEPARABLE_DEPTHWISE),
    END_FIELDS("project", EW_SEPARABLE_PROJECT),
    {.name = "add_after", .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_separable_attr, end[EW_SEPARABLE_PROJECT].add_after),
     .help = "add the residual after the last activation, not before it"},
    EW_FIELD_END};
/* clang-format on */

/* Input i, or NULL. */
static struct ew_tensor *input(const struct ew_call *c, int i)
{
    return i < c->n_in ? c->in[i] : NULL;
}

/* The inputs of stage i, whose first is x; its filters are input `w`, its bias the next. */
static void set_stage(const struct ew_call *c, int i, struct ew_tensor *x, int w,
                      struct ew_separable *s)
{
    const struct ew_separable_attr *a = c->attr;
    const bool last = i == s->last;
    s->attr[i] = (struct ew_conv_attr){.groups = 1, .end = a->end[i]};
    if (i == EW_SEPARABLE_DEPTHWISE) {
        s->attr[i].win = a->win;
        s->attr[i].groups = x->shape.rank ? x->shape.dim[x->shape.rank - 1] : 1;
    }
    s->attr[i].end.add_after = last && a->end[EW_SEPARABLE_PROJECT].add_after;
    s->in[i][0] = x;
    s->in[i][1] = input(c, w);
    s->in[i][2] = input(c, w + 1);
    s->in[i][3] = last ? input(c, EW_SEPARABLE_RESIDUAL) : NULL;
    s->out[i] = last ? c->out[0] : &s->between[i];
    s->call[i] = (struct ew_call){.name = c->name,
                                  .op = &ew_op_conv,
                                  .attr = &s->attr[i],
                                  .n_in = s->in[i][3] ? 4 : 3,
                                  .n_out = 1,
                                  .in = s->in[i],
                                  .out = &s->out[i],
                                  .be = c->be};
}

ew_err ew_separable_resolve(const struct ew_call *c, struct ew_separable *s)
{
    static const int weights[EW_SEPARABLE_STAGES] = {
        EW_SEPARABLE_EXPAND_W, EW_SEPARABLE_DEPTHWISE_W, EW_SEPARABLE_PROJECT_W};
    struct ew_tensor *x = c->in[EW_SEPARABLE_X];
    memset(s, 0, sizeof(*s));
    for (int i = 0; i < EW_SEPARABLE_STAGES; i++) {
        s->has[i] = input(c, weights[i]) != NULL;
        s->last = s->has[i] ? i : s->last;
    }
    EW_CHECK(s->has[EW_SEPARABLE_DEPTHWISE] && x->shape.rank == 4, EW_ERR_SHAPE,
             "needs an image [N, H, W, C] and depthwise filters");
    for (int i = 0; i < EW_SEPARABLE_STAGES; i++) {
        if (!s->has[i])
            continue;
        set_stage(c, i, x, weights[i], s);
        s->out[i]->dtype = x->dtype;
        EW_TRY(ew_op_conv.infer(&s->call[i]));
        EW_CHECK(i == EW_SEPARABLE_DEPTHWISE ||
                     (s->in[i][1]->shape.dim[1] == 1 && s->in[i][1]->shape.dim[2] == 1),
                 EW_ERR_SHAPE, "the filters of the other convolutions must be 1x1");
        x = s->out[i];
    }
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_separable s;
    return ew_separable_resolve(c, &s);
}

static size_t scratch(const struct ew_call *c)
{
    struct ew_separable s;
    size_t bytes = 0;
    if (ew_separable_resolve(c, &s) != EW_OK)
        return 0;
    for (int i = 0; i < s.last; i++)
        bytes += s.has[i] ? ew_tensor_bytes(&s.between[i]) : 0;
    return bytes;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_separable s;
    if (ew_separable_resolve(c, &s) != EW_OK)
        return;
    for (int i = 0; i < EW_SEPARABLE_STAGES; i++)
        if (s.has[i])
            ew_op_conv.cost(&s.call[i], out);
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_separable s;
    EW_TRY(ew_separable_resolve(c, &s));
    char *at = c->scratch;
    for (int i = 0; i < EW_SEPARABLE_STAGES; i++) {
        if (!s.has[i])
            continue;
        if (i < s.last) {
            s.between[i].data = at;
            at += ew_tensor_bytes(&s.between[i]);
        }
        EW_TRY(ew_op_conv.forward(&s.call[i]));
    }
    return EW_OK;
}

/* clang-format off */
/* In: x, depthwise filters and bias, expansion, projection, residual. */
static const struct ew_op_case cases[] = {
    {.name = "depthwise and projection", .attrs = "pad=1x1x1x1 depthwise_act=relu",
     .in = {{"2x20x19x5"}, {"5x3x3x1"}, {"5"}, {NULL}, {NULL}, {"7x1x1x5"}, {"7"}}, .n_in = 7,
     .out_shape = "2x20x19x7"},
    {.name = "expansion and depthwise, stride 2",
     .attrs = "pad=1x1x1x1 stride=2x2 expand_act=hard_swish depthwise_act=silu",
     .in = {{"1x43x41x3"}, {"18x3x3x1"}, {"18"}, {"18x1x1x3"}, {"18"}}, .n_in = 5,
     .out_shape = "1x22x21x18"},
    {.name = "inverted residual",
     .attrs = "pad=1x1x1x1 expand_act=clip expand_lo=0 expand_hi=6 depthwise_act=clip "
              "depthwise_lo=0 depthwise_hi=6",
     .in = {{"2x37x18x8"}, {"48x3x3x1"}, {"48"}, {"48x1x1x8"}, {"48"}, {"8x1x1x48"}, {"8"},
            {"2x37x18x8"}}, .n_in = 8, .out_shape = "2x37x18x8"},
    {.name = "5x5, no biases, an activation before the residual",
     .attrs = "pad=2x2x2x2 project_act=relu add_after=true",
     .in = {{"1x30x33x4"}, {"24x5x5x1"}, {NULL}, {"24x1x1x4"}, {NULL}, {"40x1x1x24"}, {NULL},
            {"1x30x33x40"}}, .n_in = 8, .out_shape = "1x30x33x40"},
    {.name = "uneven padding, dilation", .attrs = "pad=0x2x3x1 dilation=2x1 stride=2x1",
     .in = {{"1x29x24x6"}, {"6x3x3x1"}, {NULL}, {NULL}, {NULL}, {"9x1x1x6"}}, .n_in = 6,
     .out_shape = "1x14x25x9"},
    {.name = "a small image", .attrs = "pad=1x1x1x1",
     .in = {{"3x4x5x2"}, {"6x3x3x1"}, {"6"}, {"6x1x1x2"}, {"6"}, {"3x1x1x6"}, {"3"}}, .n_in = 7,
     .out_shape = "3x4x5x3"},
};
/* clang-format on */

const struct ew_op ew_op_separable_conv = {
    .name = "separable_conv",
    .help = "2-D depthwise convolution between 1x1 ones",
    .flags = EW_OP_SPATIAL,
    .min_in = 2,
    .max_in = EW_SEPARABLE_INPUTS,
    .param_in = 0x7e, /* filters and biases */
    .spatial_in = 1 << EW_SEPARABLE_RESIDUAL,
    .filter_in =
        1 << EW_SEPARABLE_EXPAND_W | 1 << EW_SEPARABLE_DEPTHWISE_W | 1 << EW_SEPARABLE_PROJECT_W,
    .attr_size = sizeof(struct ew_separable_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    EW_OP_CASES(cases),
};
