/* SPDX-License-Identifier: Apache-2.0 */
/* Performance model of a DPU for a network, fitted to published speeds (docs/fpga.md).
 *
 *   layers     the work of the DPU's units and of the host (dpu_layers.c)
 *   time       cycles and DDR traffic of each layer, and what overlaps (dpu_model.c)
 *
 * Nothing is executed and no weights are read: float32 networks are treated as quantised ones. */
#ifndef EW_BACKEND_DPU_MODEL_H
#define EW_BACKEND_DPU_MODEL_H

#include "backend/dpu/dpu_arch.h"
#include "graph/graph.h"

enum ew_dpu_unit {
    EW_DPU_CONV,
    EW_DPU_DEPTHWISE,
    EW_DPU_POOL,
    EW_DPU_ELEMENT, /* additions, products, data movement */
    EW_DPU_HOST,
};

extern const char *const ew_dpu_unit_names[];

#define EW_DPU_LAYER_INPUTS 4

struct ew_dpu_layer {
    const char *name, *op; /* of the graph's node */
    enum ew_dpu_unit unit;
    const char *reason; /* HOST: why the DPU cannot do it */
    int64_t out_h, out_w, out_c, in_c, kernel_h, kernel_w;
    int64_t macs, flops, weight_bytes;
    int in[EW_DPU_LAYER_INPUTS], n_in; /* indices of tensors */
    int64_t in_bytes[EW_DPU_LAYER_INPUTS];
    int out;
    int fused_into; /* index of the layer that it is fused into as its last step; -1: none */

    /* Results of the model: */
    int64_t ticks;
    int64_t load_bytes, store_bytes; /* DDR traffic; loads include weights */
    double seconds;                  /* including the layers fused into it */
    bool ddr_bound;
};

/* A feature map.  Inputs of a concatenation are written directly into its output. */
struct ew_dpu_tensor {
    int64_t bytes;
    int root;     /* index of the concatenation that it is an input of, or its own */
    int reads;    /* number of layers that read it */
    int producer; /* layer; -1: it is a graph input or a concatenation */
    bool is_input;
};

struct ew_dpu_net {
    struct ew_arena arena;
    struct ew_dpu_layer *layers;
    int n_layers;
    struct ew_dpu_tensor *tensors;
    int n_tensors;
};

/* From an inference graph at batch 1, whose names are borrowed.  Call fini also after a failure. */
ew_err ew_dpu_net_init(const struct ew_graph *g, struct ew_dpu_net *out);
void ew_dpu_net_fini(struct ew_dpu_net *n);

struct ew_dpu_times {
    double core_s;        /* one core alone */
    double shared_s;      /* one core while all are running */
    double layers_host_s; /* layers that the DPU cannot do */
    double host_s;        /* preprocessing, postprocessing and start-up per image, without
                           * overlap */
    double latency_s;     /* one image, one thread */
    double images_s;      /* throughput with several threads on all cores */
    double efficiency;    /* MACs in core_s relative to the peak */
    int64_t macs, ticks, weight_bytes, load_bytes, store_bytes;
    int layers, host_layers;
    double watts_one, watts_all; /* board power with one thread, and with all cores; 0: unknown */
};

/* Parameters of the model, fitted to published speeds. */
struct ew_dpu_constants {
    double conv_s;     /* start-up of a convolution: instruction issue, pipeline fill and drain */
    double other_s;    /* likewise of the other units' layers */
    double port_share; /* achievable share of the peak bandwidth of a core's ports */
    double ddr_share;  /* achievable share of the memory's peak, by all cores together */
    double swap;       /* cycles to switch between sets of ICP x OCP weights */
    double depthwise_speed; /* speed relative to the documented default parallelism */
    double pool_speed;      /* likewise; pools overlap with the convolutions before them */
};
extern const struct ew_dpu_constants ew_dpu_fitted;

/* Fills in the layers' times (for one core alone) and the totals. */
void ew_dpu_time(struct ew_dpu_net *n, const struct ew_dpu_config *c, struct ew_dpu_times *out);
/* With other parameters, for fits. */
void ew_dpu_time_by(struct ew_dpu_net *n, const struct ew_dpu_config *c,
                    const struct ew_dpu_constants *by, struct ew_dpu_times *out);

#endif
