/* SPDX-License-Identifier: Apache-2.0 */
/* How long a DPU takes for a network: a model, fitted on published speeds (docs/fpga.md).
 *
 *   layers     what the graph asks of the DPU's units, and of the host (dpu_layers.c)
 *   time       ticks of each layer, traffic with DDR, what runs at the same time (dpu_model.c)
 *
 * Nothing is run, and no weight is read: networks in float32 are taken as if quantised. */
#ifndef EW_BACKEND_DPU_MODEL_H
#define EW_BACKEND_DPU_MODEL_H

#include "backend/dpu/dpu_arch.h"
#include "graph/graph.h"

enum ew_dpu_unit {
    EW_DPU_CONV,
    EW_DPU_DEPTHWISE,
    EW_DPU_POOL,
    EW_DPU_ELEMENT, /* sums, products, moves */
    EW_DPU_HOST,
};

extern const char *const ew_dpu_unit_names[];

#define EW_DPU_LAYER_INPUTS 4

struct ew_dpu_layer {
    const char *name, *op; /* the graph's */
    enum ew_dpu_unit unit;
    const char *reason; /* HOST: why it is not the DPU's */
    int64_t out_h, out_w, out_c, in_c, kernel_h, kernel_w;
    int64_t macs, flops, weight_bytes;
    int in[EW_DPU_LAYER_INPUTS], n_in; /* tensors */
    int64_t in_bytes[EW_DPU_LAYER_INPUTS];
    int out;
    int with; /* the layer that does it as its last step, before it; -1: it stands alone */

    /* The model's: */
    int64_t ticks;
    int64_t load_bytes, store_bytes; /* of DDR; weights among the first */
    double seconds;                  /* with what is joined to it */
    bool ddr_bound;
};

/* A feature map.  Parts of a concatenation are written where that lies. */
struct ew_dpu_tensor {
    int64_t bytes;
    int root;  /* the concatenation that it is part of, or itself */
    int reads; /* by layers */
    int maker; /* layer; -1: none, it is an input or a concatenation */
    bool is_input;
};

struct ew_dpu_net {
    struct ew_arena arena;
    struct ew_dpu_layer *layers;
    int n_layers;
    struct ew_dpu_tensor *tensors;
    int n_tensors;
};

/* Of an inference graph at batch 1; names are borrowed of it.  Release with fini, also after a
 * failure. */
ew_err ew_dpu_net_init(const struct ew_graph *g, struct ew_dpu_net *out);
void ew_dpu_net_fini(struct ew_dpu_net *n);

struct ew_dpu_times {
    double core_s;        /* of one core, alone on its memory */
    double shared_s;      /* with all cores at work */
    double layers_host_s; /* layers that the DPU cannot do */
    double host_s;        /* pre- and post-processing and start-up, where nothing hides them */
    double latency_s;     /* one thread, one image */
    double images_s;      /* several threads, all cores */
    double efficiency;    /* of core_s: share of the multipliers' peak */
    int64_t macs, ticks, weight_bytes, load_bytes, store_bytes;
    int layers, host_layers;
    double watts_one, watts_all; /* of the board with one thread and with all cores; 0: unknown */
};

/* What the model's formulas leave open, fitted on published speeds. */
struct ew_dpu_constants {
    double conv_s;     /* start-up of a convolution: instructions, filling and draining pipelines */
    double other_s;    /* the same of what other units do */
    double port_share; /* of the peak of a core's ports that is reached */
    double ddr_share;  /* of the memory's peak that all cores reach together */
    double swap;       /* cycles between two sets of ICP x OCP weights */
    double depthwise_speed; /* times as many rows at once as documented by default */
    double pool_speed;      /* the same; pools run beside the convolutions before them */
};
extern const struct ew_dpu_constants ew_dpu_fitted;

/* Fills the layers' times (of one core alone) and the sums. */
void ew_dpu_time(struct ew_dpu_net *n, const struct ew_dpu_config *c, struct ew_dpu_times *out);
/* The same with other constants, for fits. */
void ew_dpu_time_by(struct ew_dpu_net *n, const struct ew_dpu_config *c,
                    const struct ew_dpu_constants *by, struct ew_dpu_times *out);

#endif
