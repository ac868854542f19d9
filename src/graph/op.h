/* SPDX-License-Identifier: Apache-2.0 */
/* The operator contract: all that the rest of the program knows about an operator is in its
 * descriptor.  Nothing else switches on the kind of operator. */
#ifndef EW_GRAPH_OP_H
#define EW_GRAPH_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "base/mem.h"
#include "graph/tensor.h"

struct ew_backend;
struct ew_graph;
struct ew_onnx_node;
struct ew_op;

/* The call of another node, or of the optimiser, fused into a step. */
struct ew_fused_call {
    unsigned role; /* its role in the step: a bit that the backend defines */
    struct ew_call *call;
};

/* The arguments of an operator's functions.  Absent optional inputs are NULL. */
struct ew_call {
    const char *name; /* of the node, for messages */
    const struct ew_op *op;
    const void *attr; /* the operator's own struct */
    int n_in, n_out;
    struct ew_tensor *const *in;
    struct ew_tensor *const *out;  /* NULL entries: outputs that are not wanted */
    struct ew_tensor *const *dout; /* backward: gradients of the outputs; NULL entries are zero */
    struct ew_tensor *const *din;  /* backward: added to; NULL entries: not wanted */
    unsigned fresh; /* bit i: overwrite din[i] instead of accumulating; only for kernels that
                     * declare `fresh` */
    /* Row stride of out[0] and of its gradient in elements, where a row is the last axis: they lie
     * inside the rows of a concatenation.  0: contiguous.  Only for kernels that declare it. */
    int64_t out_step;
    /* Part of the step in fused groups (backend/group.h); none for references. */
    unsigned roles; /* bits that the backend defines */
    int n_fused;
    const struct ew_fused_call *fused;
    void *shared;                /* memory shared by the steps of the group */
    void *aux;                   /* saved by forward for backward (training only) */
    void *scratch;               /* op->scratch() bytes, contents undefined */
    void *state;                 /* a kernel's own, such as resolved geometry; not for references */
    void *packed;                /* a kernel's repacked weights, read-only during runs */
    const struct ew_backend *be; /* thread pool and instruction set */
    bool train;                  /* batch statistics, dropout on */
    bool recompute;              /* recomputation in backward: must not update running statistics */
    uint64_t seed;               /* stochastic operators: a function of (run seed, step, node) */
};

struct ew_cost {
    int64_t macs;      /* multiply-accumulates of convolutions and matrix products */
    int64_t flops;     /* all arithmetic; a MAC is two */
    int64_t thop_macs; /* MACs as thop counts them: convolution and linear without bias, batch norm
                        * 4 per element, adaptive pooling window + 1 per output */
    int64_t bytes;     /* inputs, outputs and weights, each once */
    int64_t params;    /* trainable elements */
};

enum ew_op_flag {
    EW_OP_INPLACE = 1 << 0,    /* out[0] may alias in[0], if of the same size */
    EW_OP_STOCHASTIC = 1 << 1, /* depends on call.seed: never constant-folded */
    EW_OP_SPATIAL = 1 << 2, /* in[0], spatial_in inputs and outputs of in[0]'s rank have the layout
                             * [N, spatial..., C], where ONNX has [N, C, spatial...] */
    EW_OP_ELEMENTWISE = 1 << 3, /* broadcasts and has no axis: transposes propagate through it */
    EW_OP_SHAPE_ONLY = 1 << 4,  /* forward reads shapes of its inputs, never their data */
    EW_OP_VIEW = 1 << 5,       /* out[0] aliases in[0]: same bytes, same order (reshape, flatten) */
    EW_OP_NO_CDL = 1 << 6,     /* not a vertex of the critical datapath (constants, identities) */
    EW_OP_IDENTITY = 1 << 7,   /* the identity in inference (identity, dropout) */
    EW_OP_NO_FOLD = 1 << 8,    /* not constant-folded during inference, since passes match it
                                * (dequantize_linear of weights) */
    EW_OP_BATCH_NORM = 1 << 9, /* normalises the channels of in[0], in training with batch
                                * statistics, which aux saves; in[1] is scale, in[2] shift */
    EW_OP_CONCAT = 1 << 10,    /* concatenation: out[0] is all inputs along an axis */
    /* out[0] > 0 only where the input element that it comes from (of in[0]; CONCAT: of any input)
     * is, and gradients go to that element alone: the gradient mask of a relu before it can be
     * taken from out[0]. */
    EW_OP_ZEROS_PASS = 1 << 11,
    EW_OP_MEAN = 1 << 12,    /* averages in[0] over windows that partition it */
    EW_OP_PRODUCT = 1 << 13, /* element-wise in[0] * in[1] */
};

/* Layers with weights: in[1]; in[2], if present, is a bias per output channel. */
enum ew_layer {
    EW_LAYER_NONE,
    EW_LAYER_CONV,  /* filters [O, k..., I / groups], or as ONNX has them [O, I / groups, k...] */
    EW_LAYER_DENSE, /* a matrix, possibly stored transposed (gemm) */
    EW_LAYER_MATMUL /* [..., K, N], which may be an activation too; no bias */
};

/* What backward reads besides gradients, and so which activations training saves. */
enum ew_op_saves {
    EW_SAVE_IN0 = 1 << 0, /* bit i: in[i]; weights need no bit */
    EW_SAVE_IN1 = 1 << 1,
    EW_SAVE_IN2 = 1 << 2,
    EW_SAVE_INS = 0xff,
    EW_SAVE_OUT = 1 << 8, /* bit 8 + i: out[i] */
    EW_SAVE_AUX = 1 << 16
};

/* ---- Test cases -------------------------------------------------------------------------------
 * Shapes and attributes that exercise the operator; the table walker generates the inputs. */

enum ew_case_fill {
    EW_FILL_NORMAL = 0, /* standard normal, or small whole numbers for integer types */
    EW_FILL_POSITIVE,   /* uniform in (0.1, 2) */
    EW_FILL_DISTINCT,   /* a shuffled ramp, 0.1 apart: for max, where ties have no gradient */
    EW_FILL_UNIT,       /* uniform in (-0.95, 0.95) */
    EW_FILL_AWAY,       /* normal, at least 0.1 away from 0: for kinks at 0 */
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
    const char *out_shape; /* expected shape of out[0] */
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
    int since;                 /* oldest opset whose semantics need no hook; 0: any */
    const char *const *rename; /* pairs (field name, ONNX attribute), NULL-terminated; ONNX name
                                * NULL: the field is not exchanged */
    const char *const *also;   /* further types ("Type" or "domain:Type") for `import`;
                                * NULL-terminated */
    const char *sourceless;    /* the type in `also` that has no inputs, though the operator has */
    /* Adds nodes that compute n, and gives the values of its outputs. */
    ew_err (*import)(struct ew_graph *g, const struct ew_onnx_node *n, int *out);
    /* Edits what the generic exporter has filled in (see graph/onnx.h). */
    ew_err (*export)(const struct ew_graph *g, int node, struct ew_onnx_node *n);
    /* Before export, on a graph in ONNX's layout: for nodes that ONNX at the exporter's opset
     * cannot express as one, adds nodes that compute the same and writes their values to `out`.  A
     * node that can be written as it is adds nothing and leaves out[] at -1. */
    ew_err (*expand)(struct ew_graph *g, int node, int *out);
};

struct ew_op {
    const char *name; /* in files and the CLI: never changes */
    const char *help; /* one line: what it computes */
    unsigned flags;   /* enum ew_op_flag */
    unsigned saves;   /* enum ew_op_saves */
    enum ew_layer layer;
    int min_in, max_in, max_out; /* max_out 0: 1; max_in -1: any number */
    unsigned known_in;           /* bit i: infer needs the data of in[i] (shapes, axes, pads) */
    unsigned param_in;           /* bit i: a constant in[i] is trainable */
    unsigned state_in;           /* bit i: the operator updates in[i] itself (running statistics) */
    unsigned spatial_in;         /* SPATIAL: bit i > 0: in[i] has the layout of in[0] */
    unsigned filter_in; /* SPATIAL: bit i: in[i] is [O, k..., I], where ONNX has [O, I, k...] */
    size_t attr_size;
    const struct ew_field *attrs;

    /* Sets dtype and shape of every out[i]; in[i]->data is not NULL where the value is known.
     * NULL: out[0] is like in[0]. */
    ew_err (*infer)(const struct ew_call *c);
    /* NULL: one flop per output element. */
    void (*cost)(const struct ew_call *c, struct ew_cost *out);
    /* Bytes of call.scratch and call.aux; NULL: none. */
    size_t (*scratch)(const struct ew_call *c);
    size_t (*aux)(const struct ew_call *c);
    /* The reference: plain C, obvious and slow.  float32 and float64 at least. */
    ew_err (*forward)(const struct ew_call *c);
    /* Accumulates into din.  NULL: not differentiable. */
    ew_err (*backward)(const struct ew_call *c);
    /* What backward reads in addition to `saves` with these attributes; NULL: nothing. */
    unsigned (*saves_too)(const void *attr);
    /* True if out[0] ends in a relu with these attributes, so that its gradient is masked by out[0]
     * > 0; NULL: never. */
    bool (*makes_relu)(const void *attr);

    /* Propagates a transpose through the node.  in[0], and every other input of its rank that is
     * not in known_in, is about to be permuted (new axis i is old axis perm[i]): rewrites the
     * node's attributes and constant inputs so that its outputs are permuted alike.  out_perm holds
     * perm on entry; an operator that changes the rank writes the permutation of its outputs. NULL:
     * transposes stop here (ELEMENTWISE operators need no hook).  EW_ERR_UNSUPPORTED: not for this
     * node, which is unchanged then. */
    ew_err (*permute)(struct ew_graph *g, int node, const int *perm, int *out_perm);

    struct ew_onnx_map onnx;

    const struct ew_op_case *cases; /* EW_OP_CASES */
    int n_cases;
};

/* A descriptor's .cases and .n_cases; NULL in builds without tests, where they would take half a
 * megabyte. */
#ifdef EW_NO_OP_CASES
#define EW_OP_CASES(list) .cases = 0 ? (list) : NULL
#else
#define EW_OP_CASES(list) .cases = (list), .n_cases = (int)EW_COUNT(list)
#endif

/* True if every output has zero elements, so that there is nothing to compute. */
bool ew_call_is_empty(const struct ew_call *c);

/* The fused call with this role; NULL: none. */
static inline const struct ew_call *ew_call_fused(const struct ew_call *c, unsigned role)
{
    for (int i = 0; i < c->n_fused; i++)
        if (c->fused[i].role == role)
            return c->fused[i].call;
    return NULL;
}

/* All that backward of a node reads (enum ew_op_saves). */
static inline unsigned ew_op_saved(const struct ew_op *op, const void *attr)
{
    return op->saves | (op->saves_too ? op->saves_too(attr) : 0);
}

/* The registry (op/op.c, generated from the file names by the build). */
const struct ew_op *ew_op_find(const char *name); /* NULL: none */
const struct ew_op *ew_op_find_onnx(const char *type, const char *domain);
int ew_op_count(void);
const struct ew_op *ew_op_at(int i);

#endif
