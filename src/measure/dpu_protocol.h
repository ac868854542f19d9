/* SPDX-License-Identifier: Apache-2.0 */
/* The scaling study's protocol on an FPGA: networks at four widths with modelled latencies, and
 * trained networks with the accuracy that the DPU's arithmetic has. */
#ifndef EW_MEASURE_DPU_PROTOCOL_H
#define EW_MEASURE_DPU_PROTOCOL_H

#include "backend/dpu/dpu_model.h"
#include "base/regress.h"
#include "graph/facts.h"

/* The study's line of latency over parameters, in ms (its Table 4, ZCU104, 24 networks). */
#define EW_SCALE_LINE_SLOPE      1.7e-7
#define EW_SCALE_LINE_START      0.69
#define EW_SCALE_LINE_MS(params) (EW_SCALE_LINE_SLOPE * (params) + EW_SCALE_LINE_START)

struct ew_dpu_study_network {
    const char *name, *title, *data;
    int64_t side, classes;
    bool in_line;     /* of Table 4, which is CIFAR-10's */
    double published; /* NeuralScale's latency by that of uniform widths; 0: not stated */
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
    struct ew_line line;                  /* ours, in ms over parameters, of networks `in_line` */
    double slower[EW_DPU_STUDY_NETWORKS]; /* NeuralScale's latency by uniform; 0: no such widths */
    double speed; /* uniform by NeuralScale's latency, mean of all pairs of networks `in_line` */
};

/* The study's networks on `c`; nothing is run. */
ew_err ew_dpu_study_run(const struct ew_dpu_config *c, struct ew_dpu_study *out);

struct ew_dpu_trained {
    const char *name;
    struct ew_facts facts;
    int64_t calibrated, images;
    double before, after, sqnr_db; /* accuracies: float32, the DPU's */
    struct ew_dpu_times times;
};

/* Quantises the trained network `name` with power-of-two scales on 500 training images of the data
 * set `eval` and evaluates it on the test images by the DPU's arithmetic, one thread; times are
 * modelled. */
ew_err ew_dpu_trained_run(const char *name, const char *eval, const struct ew_dpu_config *c,
                          struct ew_dpu_trained *out);

#endif
