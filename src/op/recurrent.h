/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of rnn, gru and lstm: attributes, shapes, the loop over directions, sequences and
 * time.  Each operator adds the step of its cell.  Inference only.
 *
 * in: X [T, B, I] (layout 1: [B, T, I]), W [D, gates H, I], R [D, gates H, H], bias [D, 2 gates H],
 * lengths [B], initial h [D, B, H] (layout 1: [B, D, H]); lstm also initial c and peepholes
 * [D, 3 H].  out: Y [T, D, B, H] (layout 1: [B, T, D, H]), last h, and lstm's last c. */
#ifndef EW_OP_RECURRENT_H
#define EW_OP_RECURRENT_H

#include "graph/onnx.h"
#include "op/types.h"

enum ew_rnn_in {
    EW_RNN_X,
    EW_RNN_W,
    EW_RNN_R,
    EW_RNN_BIAS,
    EW_RNN_LENGTHS,
    EW_RNN_H,
    EW_RNN_C,
    EW_RNN_PEEPHOLES
};

enum ew_rnn_direction { EW_RNN_FORWARD, EW_RNN_REVERSE, EW_RNN_BOTH };
extern const char *const ew_rnn_directions[];

struct ew_rnn_attr {
    int direction;       /* enum ew_rnn_direction */
    int64_t hidden_size; /* 0: from R */
    int64_t layout;      /* 1: the batch comes first */
    double clip;         /* of the activations' inputs; 0: none */
    bool linear_before_reset, input_forget;
};

/* clang-format off */
#define EW_RNN_AT(field) .offset = offsetof(struct ew_rnn_attr, field)
#define EW_RNN_FIELDS                                                                              \
    {.name = "direction", .type = EW_FIELD_ENUM, EW_RNN_AT(direction), .choices = ew_rnn_directions,\
     .help = "of time"},                                                                           \
    {.name = "hidden_size", .type = EW_FIELD_INT, EW_RNN_AT(hidden_size), .min = 0,                \
     .max = INT32_MAX, .help = "elements of the state; 0: as the weights say"},                    \
    {.name = "layout", .type = EW_FIELD_INT, EW_RNN_AT(layout), .min = 0, .max = 1,                \
     .help = "1: the batch comes before time"},                                                    \
    {.name = "clip", .type = EW_FIELD_FLOAT, EW_RNN_AT(clip),                                      \
     .help = "bound of what goes into activations; 0: none"}
/* clang-format on */

/* State of one sequence in one direction, in double. */
struct ew_rnn {
    const struct ew_call *c;
    const struct ew_rnn_attr *a;
    int gates;
    int64_t steps, batch, inputs, hidden, directions;
    int64_t direction;
    double *x;            /* [inputs] of this step */
    double *h, *cell;     /* [hidden], the state */
    double *from_x;       /* [gates, hidden]: W x + its bias */
    double *from_h, *tmp; /* the same for R h; [hidden] */
};

/* Updates h (and cell) by one step, from from_x and from_h. */
typedef void ew_rnn_step_fn(struct ew_rnn *r);

ew_err ew_rnn_infer(const struct ew_call *c, int gates);
size_t ew_rnn_scratch(const struct ew_call *c, int gates);
void ew_rnn_cost(const struct ew_call *c, int gates, struct ew_cost *out);
ew_err ew_rnn_forward(const struct ew_call *c, int gates, ew_rnn_step_fn *step);

/* R v + bias of one gate. */
void ew_rnn_recur(const struct ew_rnn *r, int gate, const double *v, double *out);
/* The function of the clipped input. */
double ew_rnn_sigmoid(const struct ew_rnn *r, double v);
double ew_rnn_tanh(const struct ew_rnn *r, double v);

/* Imports a node; fails on activations other than `usual` ("Sigmoid,Tanh"). */
ew_err ew_rnn_import(struct ew_graph *g, const struct ew_op *op, const struct ew_onnx_node *n,
                     const char *usual, int *out);
ew_err ew_rnn_export(const struct ew_graph *g, int node, struct ew_onnx_node *n);

/* The hooks of a layer, by number of gates, step and default activations. */
#define EW_RNN_HOOKS(op, gates, step, usual)                                                       \
    extern const struct ew_op op;                                                                  \
    static ew_err infer(const struct ew_call *c)                                                   \
    {                                                                                              \
        return ew_rnn_infer(c, gates);                                                             \
    }                                                                                              \
    static size_t scratch(const struct ew_call *c)                                                 \
    {                                                                                              \
        return ew_rnn_scratch(c, gates);                                                           \
    }                                                                                              \
    static void cost(const struct ew_call *c, struct ew_cost *out)                                 \
    {                                                                                              \
        ew_rnn_cost(c, gates, out);                                                                \
    }                                                                                              \
    static ew_err forward(const struct ew_call *c)                                                 \
    {                                                                                              \
        return ew_rnn_forward(c, gates, step);                                                     \
    }                                                                                              \
    static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)               \
    {                                                                                              \
        return ew_rnn_import(g, &op, n, usual, out);                                               \
    }

/* Common fields of their descriptors. */
#define EW_RNN_OP(onnx_type)                                                                       \
    .min_in = 3, .attr_size = sizeof(struct ew_rnn_attr), .attrs = attrs, .infer = infer,          \
    .cost = cost, .scratch = scratch, .forward = forward,                                          \
    .onnx = {.type = onnx_type, .since = 7, .import = import, .export = ew_rnn_export}

#endif
