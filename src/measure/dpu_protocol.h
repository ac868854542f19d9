/* SPDX-License-Identifier: Apache-2.0 */
/* The scaling study's protocol on an FPGA: networks at four widths with modelled latencies, and
 * trained networks with their accuracy in the DPU's arithmetic. */
#ifndef EW_MEASURE_DPU_PROTOCOL_H
#define EW_MEASURE_DPU_PROTOCOL_H

#include "backend/dpu/dpu_model.h"
#include "base/regress.h"
#include "graph/facts.h"

/* The study's line of latency (ms) over parameters (its Table 4, ZCU104, 24 networks). */
#define EW_SCALE_LINE_SLOPE      1.7e-7
#define EW_SCALE_LINE_START      0.69
#define EW_SCALE_LINE_MS(params) (EW_SCALE_LINE_SLOPE * (params) + EW_SCALE_LINE_START)

struct ew_dpu_study_network {
    const char *name, *title, *data;
    int64_t side, classes;
    bool in_line;     /* part of Table 4 (CIFAR-10) */
    double published; /* published ratio of NeuralScale's latency to that of uniform widths; 0: not
                         stated */
};

#define EW_DPU_STUDY_NETWORKS 4
#define EW_DPU_STUDY_RATIOS   4
#define EW_DPU_STUDY_POINTS   (EW_DPU_STUDY_NETWORKS * 2 * EW_DPU_STUDY_RATIOS)
extern const struct ew_dpu_study_network ew_dpu_study_networks[EW_DPU_STUDY_NETWORKS];

struct ew_dpu_study_point {
    const struct ew_dpu_study_network *of;
    const char *method; /* "uniform" or "NeuralScale" */
    double ratio;
    int64_t params;
    struct ew_dpu_times times;
};

struct ew_dpu_study {
    struct ew_dpu_study_point points[EW_DPU_STUDY_POINTS]; /* by network, method, ratio */
    int n;
    struct ew_line line; /* our regression line, ms over parameters, of networks `in_line` */
    double slower[EW_DPU_STUDY_NETWORKS]; /* latency of NeuralScale / uniform; 0: no such widths */
    double speed; /* latency of uniform / NeuralScale, mean over the networks `in_line` */
};

/* Models the study's networks on `c`; nothing is executed. */
ew_err ew_dpu_study_run(const struct ew_dpu_config *c, struct ew_dpu_study *out);

struct ew_dpu_trained {
    const char *name;
    struct ew_facts facts;
    int64_t calibrated, images;
    double before, after, sqnr_db; /* accuracy in float32 and in the DPU's arithmetic */
    struct ew_dpu_times times;
};

/* Quantises the trained network `name` with power-of-two scales, calibrated on 500 training images
 * of `eval`, and evaluates it on the test images in the DPU's arithmetic, single-threaded; times
 * are modelled. */
ew_err ew_dpu_trained_run(const char *name, const char *eval, const struct ew_dpu_config *c,
                          struct ew_dpu_trained *out);

#endif
