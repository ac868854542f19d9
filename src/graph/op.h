/* SPDX-License-Identifier: Apache-2.0 */
/* The operator contract.  Everything that the rest of the program wants to know about an operator
 * is a field of its descriptor: nothing else switches on operator kind. */
#ifndef EW_GRAPH_OP_H
#define EW_GRAPH_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "graph/tensor.h"

struct ew_backend;
struct ew_graph;
struct ew_onnx_node;
struct ew_op;

/* A call of another node, or of the optimiser, that a step does as well. */
struct ew_fused_call {
    unsigned role; /* what it is to the step, in the backend's own bits */
    struct ew_call *call;
};

/* What an operator function sees.  Optional inputs that are absent are NULL. */
struct ew_call {
    const char *name; /* of the node, for messages */
    const struct ew_op *op;
    const void *attr; /* the operator's own struct */
    int n_in, n_out;
    struct ew_tensor *const *in;
    struct ew_tensor *const *out;  /* NULL entries: outputs that nobody asked for */
    struct ew_tensor *const *dout; /* backward: gradients of the outputs; NULL entries are zero */
    struct ew_tensor *const *din;  /* backward: add to these; NULL where not wanted */
    unsigned fresh;                /* kernels that ask for it: bit i: write din[i], do not add */
    /* Kernels that ask for it: rows of out[0] and of its gradient, which are all that lies before
     * the last axis, begin so many elements apart, for they are parts of longer ones; 0: they
     * follow each other. */
    int64_t out_step;
    /* The step's part in fused groups, which references have none in (backend/group.h). */
    unsigned roles; /* bits of the backend's own */
    int n_fused;
    const struct ew_fused_call *fused;
    void *shared;                /* memory of the group, from its first step to its last */
    void *aux;                   /* kept from forward to backward (training only) */
    void *scratch;               /* op->scratch() bytes, contents undefined */
    void *state;                 /* a kernel's own, such as geometry; references need none */
    void *packed;                /* a kernel's own copy of weights, which runs only read */
    const struct ew_backend *be; /* kernels' threads and instruction set */
    bool train;                  /* batch statistics, dropout on */
    bool recompute;              /* forward once more, to save memory: leave running state alone */
    uint64_t seed;               /* stochastic operators: fixed by (run seed, step, node) */
};

struct ew_cost {
    int64_t macs;      /* multiply-accumulates of convolutions and matrix products */
    int64_t flops;     /* all arithmetic, a MAC being two */
    int64_t thop_macs; /* as thop counts: convolution and linear without bias, batch norm 4 an
                        * element, adaptive pooling window + 1 an output */
    int64_t bytes;     /* read and written once each: inputs, outputs, weights */
    int64_t params;    /* trainable elements */
};

enum ew_op_flag {
    EW_OP_INPLACE = 1 << 0,    /* out[0] may share memory with in[0] of the same size */
    EW_OP_STOCHASTIC = 1 << 1, /* depends on call.seed: never folded */
    EW_OP_SPATIAL = 1 << 2, /* in[0] and the outputs of its rank are [N, spatial..., C], where ONNX
                             * has [N, C, spatial...]; so are the inputs of spatial_in */
    EW_OP_ELEMENTWISE = 1 << 3, /* broadcasting, no axis: a transpose may pass through it */
    EW_OP_SHAPE_ONLY = 1 << 4,  /* forward reads its inputs' shapes, never their data */
    EW_OP_VIEW = 1 << 5,        /* out[0] has in[0]'s bytes in the same order (reshape, flatten) */
    EW_OP_NO_CDL = 1 << 6,      /* not a vertex of the critical datapath (constants, identities) */
    EW_OP_HANDS_ON = 1 << 7,    /* in inference out[0] is in[0] (identity, dropout) */
    EW_OP_LATE = 1 << 8,        /* not computed while inferring, whatever is known: passes look for
                                 * it (weights on their way from integers) */
    EW_OP_BATCH_NORM = 1 << 9, /* normalises the channels of in[0], in training by the statistics of
                                * the batch, which aux keeps; in[1] and in[2] scale and shift */
    EW_OP_JOIN = 1 << 10,      /* out[0] is all inputs, one after the other along an axis */
    EW_OP_ZEROS_PASS = 1 << 11, /* out[0] is positive only where what it is taken from is, in[0] or
                                 * with JOIN any input, and gradients go there alone */
    EW_OP_MEAN = 1 << 12,       /* averages in[0] over windows, of which each element is in one */
    EW_OP_PRODUCT = 1 << 13,    /* in[0] times in[1], element by element */
};

/* Layers with weights: in[1], and in[2], where it is there, is a bias an output channel. */
enum ew_layer {
    EW_LAYER_NONE,
    EW_LAYER_CONV,  /* filters [O, k..., I / groups], or as ONNX has them [O, I / groups, k...] */
    EW_LAYER_DENSE, /* a matrix that the attributes may transpose (gemm) */
    EW_LAYER_MATMUL /* [..., K, N], which may be an activation too; no bias */
};

/* What backward reads besides the gradients: it decides which activations training keeps. */
enum ew_op_saves {
    EW_SAVE_IN0 = 1 << 0, /* bit i: in[i]; weights are always there and need no bit */
    EW_SAVE_IN1 = 1 << 1,
    EW_SAVE_IN2 = 1 << 2,
    EW_SAVE_INS = 0xff,
    EW_SAVE_OUT = 1 << 8, /* bit 8 + i: out[i] */
    EW_SAVE_AUX = 1 << 16
};

/* ---- Test cases -------------------------------------------------------------------------------
 * Shapes and attributes that exercise the operator; the table walker makes the inputs. */

enum ew_case_fill {
    EW_FILL_NORMAL = 0, /* standard normal, or small whole numbers for integer types */
    EW_FILL_POSITIVE,   /* uniform in (0.1, 2) */
    EW_FILL_DISTINCT,   /* a shuffled ramp, 0.1 apart: for max, where ties have no gradient */
    EW_FILL_UNIT,       /* uniform in (-0.95, 0.95) */
    EW_FILL_AWAY,       /* normal, pushed at least 0.1 away from 0: for kinks at 0 */
    EW_FILL_CLASSES,    /* whole numbers in [0, arg) */
    EW_FILL_BYTES,      /* any value of an 8-bit type */
    EW_FILL_VALUES      /* the case's own `values` */
};

struct ew_case_in {
    const char *shape; /* "2x3x4"; "" is a scalar; NULL: optional input, absent */
    enum ew_dtype dtype;
    enum ew_case_fill fill;
    double arg;         /* fill's argument */
    const char *values; /* "1,2,-3" for EW_FILL_VALUES */
    bool constant;      /* known when the graph is inferred (shapes, pads, axes) */
    bool no_grad;       /* skip the gradient check of this input */
};

#define EW_CASE_INS 15

struct ew_op_case {
    const char *name;
    const char *attrs; /* "stride=2x2 pad=1x1x1x1 groups=2", in ew_field_parse's syntax */
    struct ew_case_in in[EW_CASE_INS];
    int n_in;              /* trailing entries beyond it do not exist */
    int n_out;             /* 0: 1 */
    const char *out_shape; /* what infer must say for out[0] */
    bool train;            /* run with call.train set */
    double tolerance;      /* of the gradient check, relative; 0: 1e-5 */
};

/* ---- ONNX mapping -----------------------------------------------------------------------------
 * Without hooks: the node type is `type`, attributes map by field name (`rename` where they
 * differ), inputs and outputs in order.  Layout is no concern of the hooks: nodes are imported and
 * exported in ONNX's order (ew_node.channels_first) and graph/layout.c moves the whole graph
 * between the two. */

struct ew_onnx_map {
    const char *type;          /* NULL: no ONNX form of its own; an export hook may set one */
    const char *domain;        /* NULL: the default domain */
    int since;                 /* the oldest opset whose meaning fits without a hook; 0: any */
    const char *const *rename; /* pairs (field name, ONNX attribute), NULL-terminated; a NULL ONNX
                                * name: the field is not exchanged */
    const char *const *also; /* more types that `import` takes, or "domain:Type"; ends with NULL */
    const char *sourceless; /* the one of `also` that has no inputs, though the operator has some */
    /* Adds nodes for n to the graph and gives the values of its outputs. */
    ew_err (*import)(struct ew_graph *g, const struct ew_onnx_node *n, int *out);
    /* Edits what the generic exporter has filled in (see graph/onnx.h). */
    ew_err (*export)(const struct ew_graph *g, int node, struct ew_onnx_node *n);
    /* Before export, on a graph in ONNX's order: adds plain nodes that compute the same and names
     * their values in `out`, for what ONNX (at the exporter's opset) has no single node for.
     * out[] holds -1 on entry; a node that can be written as it is adds nothing and leaves it so.
     */
    ew_err (*expand)(struct ew_graph *g, int node, int *out);
};

struct ew_op {
    const char *name; /* on disk and in the CLI: never changes */
    const char *help; /* one line: what it computes */
    unsigned flags;   /* enum ew_op_flag */
    unsigned saves;   /* enum ew_op_saves */
    enum ew_layer layer;
    int min_in, max_in, max_out; /* max_out 0: 1; max_in -1: any number */
    unsigned known_in;   /* bit i: infer must know the value of in[i] (shapes, axes, pads) */
    unsigned param_in;   /* bit i: a constant in[i] is trainable */
    unsigned state_in;   /* bit i: in[i] is kept by the operator itself (running statistics) */
    unsigned spatial_in; /* SPATIAL: bit i > 0: in[i] is laid out as in[0] is */
    unsigned filter_in;  /* SPATIAL: bit i: in[i] is [O, k..., I], where ONNX has [O, I, k...] */
    size_t attr_size;
    const struct ew_field *attrs;

    /* Sets dtype and shape of every out[i]; in[i]->data is set where the value is known.
     * NULL: out[0] is like in[0]. */
    ew_err (*infer)(const struct ew_call *c);
    /* NULL: one flop an output element. */
    void (*cost)(const struct ew_call *c, struct ew_cost *out);
    /* Bytes; NULL: none. */
    size_t (*scratch)(const struct ew_call *c);
    size_t (*aux)(const struct ew_call *c);
    /* The reference: plain C, obvious and slow.  float32 and float64 at least. */
    ew_err (*forward)(const struct ew_call *c);
    /* Adds to din.  NULL: the operator cannot be trained through. */
    ew_err (*backward)(const struct ew_call *c);
    /* What backward reads beside `saves` with these attributes; NULL: nothing. */
    unsigned (*saves_too)(const void *attr);
    /* True where out[0] is what a relu makes, whose gradient counts where that is positive; NULL:
     * never. */
    bool (*makes_relu)(const void *attr);

    /* in[0], and every other input of its rank that is not in known_in, is about to be permuted
     * (new axis i is old axis perm[i]): rewrites the node's attributes and constant inputs so that
     * its outputs are permuted alike.  out_perm holds perm on entry; an operator that changes the
     * rank writes what happens to its outputs.  NULL: transposes stop here (ELEMENTWISE operators
     * need no hook).  EW_ERR_UNSUPPORTED: not this node; then nothing has been changed. */
    ew_err (*permute)(struct ew_graph *g, int node, const int *perm, int *out_perm);

    struct ew_onnx_map onnx;

    const struct ew_op_case *cases;
    int n_cases;
};

/* True where no output has an element: there is nothing to compute, and no operator need care. */
bool ew_call_is_empty(const struct ew_call *c);

/* The other call that the step does in this role; NULL: it does not play it. */
static inline const struct ew_call *ew_call_fused(const struct ew_call *c, unsigned role)
{
    for (int i = 0; i < c->n_fused; i++)
        if (c->fused[i].role == role)
            return c->fused[i].call;
    return NULL;
}

/* All that backward of a node reads. */
static inline unsigned ew_op_saved(const struct ew_op *op, const void *attr)
{
    return op->saves | (op->saves_too ? op->saves_too(attr) : 0);
}

/* The registry (op/op.c, made from the files' names by the build). */
const struct ew_op *ew_op_find(const char *name); /* NULL: none */
const struct ew_op *ew_op_find_onnx(const char *type, const char *domain);
int ew_op_count(void);
const struct ew_op *ew_op_at(int i);

/* A list of four: pads and permutations, for C code that builds nodes. */
static inline struct ew_ints ew_ints4(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct ew_ints){4, {a, b, c, d}};
}

#endif
