/* SPDX-License-Identifier: Apache-2.0 */
/* Which figures there are: one line of names each.  A new picture is a new entry here. */
#include <stdlib.h>
#include <string.h>

#include "report/figure.h"
#include "report/figure_key.h"
#include "report/figure_stat.h"

#define LATENCY "median_ms|latency_ms"

#define TIME_PARTS                                                                                 \
    {                                                                                              \
        {.name = "compute_s", .label = "compute"}, {.name = "stall_s", .label = "stall"},          \
        {                                                                                          \
            .name = "overhead_s", .label = "overhead"                                              \
        }                                                                                          \
    }

/* Sections of the scaling study that time a network, and that say what it has learnt. */
#define SCALE_FLOAT_TIMES                                                                          \
    "latency mobilenet-latency neuralscale-latency mobilenet-neuralscale-latency"
#define SCALE_TIMES  SCALE_FLOAT_TIMES " int8-latency neuralscale-int8-latency"
#define SCALE_SCORES "train neuralscale int8 neuralscale-int8"

/* One measure by width; a panel for each network. */
#define SCALE_BARS(what, words, text, measure, called, sections)                                   \
    .id = what, .title = words, .about = text, .studies = "scale", .kind = EW_FIGURE_BARS,         \
    .from = EW_RECORD_METRIC, .facet = "net", .x = "ratio", .series = "scaling dtype",             \
    .y = {{.name = measure, .label = called, .of = sections}}, .min_x = 1

/* Dots of one measure over another, of runs of different sections; a panel for each network. */
#define SCALE_DOTS(what, words, text)                                                              \
    .id = what, .title = words, .about = text, .studies = "scale", .kind = EW_FIGURE_POINTS,       \
    .from = EW_RECORD_METRIC, .facet = "net", .x = "ratio", .series = "scaling dtype", .min_x = 1, \
    .across = true

/* All networks and widths in one. */
#define SCALE_LINE(what, words, text, measure, called)                                             \
    .id = what, .title = words, .about = text, .studies = "scale", .kind = EW_FIGURE_POINTS,       \
    .from = EW_RECORD_METRIC, .x = "net ratio scaling", .x_label = "network", .series = "dtype",   \
    .y = {{.name = "parameters", .label = "parameters", .of = SCALE_TIMES},                        \
          {.name = measure, .label = called, .of = SCALE_TIMES}},                                  \
    .min_x = 1, .trend = true

/* The original network in float32 by what makes it smaller. */
#define SCALE_GAINS(what, words, text, measure, called)                                            \
    .id = what, .title = words, .about = text, .studies = "scale", .kind = EW_FIGURE_BARS,         \
    .from = EW_RECORD_METRIC, .x = "net", .x_label = "network", .series = "scaling ratio dtype",   \
    .y = {{.name = measure, .label = called, .of = SCALE_TIMES}},                                  \
    .ratios = {{"uniform, 1, float32", "uniform, 1, int8", "int8"},                                \
               {"uniform, 1, float32", "uniform, 0.5, float32", "half the width"},                 \
               {"uniform, 1, float32", "NeuralScale, 0.5, float32", "NeuralScale 0.5"}},           \
    .min_x = 1

/* The study's own gain is from PyTorch, which goes operator by operator. */
#define ENGINE_GAINS                                                                               \
    {                                                                                              \
        {"reference", "after", "over the reference"},                                              \
        {                                                                                          \
            "before", "after", "over unfused kernels"                                              \
        }                                                                                          \
    }

#define DPU_TIMES "dpu dpu-neuralscale dpu-tiny dpu-tiny-neuralscale"

/* The front of `pareto` with its dots sorted by one setting of the modes. */
#define MODES_BY(what, words, property)                                                            \
    {                                                                                              \
        .id = "modes-" what, .title = "Time against energy, " words,                               \
        .about = "The power modes again, their dots by one setting.", .studies = "train-modes",    \
        .kind = EW_FIGURE_POINTS, .from = EW_RECORD_EPOCH, .epochs = EW_EPOCHS_LATER,              \
        .facet = "network", .x = "power-mode|power_mode", .x_label = "power mode",                 \
        .series = property,                                                                        \
        .y = {{.name = "wall_s", .label = "time of an epoch"}, {.name = "energy_j"}}, .min_x = 2   \
    }

const struct ew_figure_desc ew_figures_report[] = {
    {.id = "workers",
     .title = "Where the time of an epoch goes, by workers",
     .about = "Each bar is the mean epoch. The first epoch stands apart: it finds the data on "
              "storage, later ones in the page cache as far as it fits.",
     .studies = "train-workers",
     .kind = EW_FIGURE_STACK,
     .from = EW_RECORD_EPOCH,
     .facet = "network",
     .x = "workers",
     .series = "when",
     .y = TIME_PARTS,
     .min_x = 2},
    {.id = "workers-stall",
     .title = "Waiting for data, by workers",
     .about = "What an epoch after the first one waits for data, with the study's own figures "
              "beside.",
     .studies = "train-workers",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "workers",
     .y = {{.name = "stall_s", .label = "stall"}},
     .min_x = 2},
    {.id = "workers-energy",
     .title = "Energy of an epoch, by workers",
     .about = "Fewer stalls raise the power and shorten the epoch: what is left is its energy.",
     .studies = "train-workers",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_EPOCH,
     .facet = "network",
     .x = "workers",
     .series = "when",
     .y = {{.name = "energy_j", .label = "energy"}},
     .min_x = 2},
    {.id = "workers-dropped",
     .title = "With the page cache dropped before each epoch",
     .about =
         "The same job with its data in the page cache after the first epoch, and with none of "
         "it there at any.",
     .studies = "train-workers",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "cold",
     .x_label = "page cache dropped",
     .series = "workers",
     .y = {{.name = "stall_s", .label = "stall"}},
     .min_x = 2},
    {.id = "storage",
     .title = "Storage media",
     .about = "The same data read from different media: the first epoch pays for the medium, later "
              "ones only as far as the page cache is too small.",
     .studies = "train-storage",
     .kind = EW_FIGURE_STACK,
     .from = EW_RECORD_EPOCH,
     .facet = "network",
     .x = "storage",
     .series = "when",
     .y = TIME_PARTS,
     .min_x = 2},
    {.id = "storage-stall",
     .title = "Waiting for data, by storage medium",
     .about = "What an epoch waits for data, with the study's own figures beside.",
     .studies = "train-storage",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_EPOCH,
     .facet = "network",
     .x = "storage",
     .series = "when",
     .y = {{.name = "stall_s", .label = "stall"}},
     .min_x = 2},
    {.id = "storage-energy",
     .title = "Energy of an epoch, by storage medium",
     .about = "A slower medium costs energy as far as it costs time.",
     .studies = "train-storage",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_EPOCH,
     .facet = "network",
     .x = "storage",
     .series = "when",
     .y = {{.name = "energy_j", .label = "energy"}},
     .min_x = 2},
    {.id = "batch-parts",
     .title = "Where the time of an epoch goes, by batch size",
     .about = "Each bar is the mean epoch after the first.",
     .studies = "train-batch",
     .kind = EW_FIGURE_STACK,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "batch",
     .x_label = "batch size",
     .y = TIME_PARTS,
     .min_x = 2},
    {.id = "batch-compute",
     .title = "Computing one batch, by its size",
     .about = "Rises slowly while the machine's parallelism is not used up, then in proportion.",
     .studies = "train-batch",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .facet = "network",
     .x = "batch",
     .x_label = "batch size",
     .y = {{.name = "batch_compute_ms", .label = "computing a batch"}},
     .min_x = 2},
    {.id = "batch",
     .title = "Batch size",
     .about = "Time of an epoch (left) and what it costs beside (right). The first epoch is left "
              "out.",
     .studies = "train-batch",
     .kind = EW_FIGURE_LINES,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "batch",
     .x_label = "batch size",
     .y = {{.name = "wall_s", .label = "time of an epoch"},
           {.name = "energy_j|rss_peak_bytes", .right = true, .optional = true}},
     .min_x = 2},
    {.id = "variability",
     .title = "How much epochs vary",
     .about = "Boxes span the quartiles, the line is the median, whiskers reach the lowest and the "
              "highest epoch; dots are the epochs themselves.",
     .studies = "train-variability",
     .kind = EW_FIGURE_BOXES,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "repeat",
     .x_label = "repetition",
     .y = {{.name = "wall_s", .label = "time of an epoch"}},
     .min_x = 2},
    {.id = "variability-energy",
     .title = "How much the energy of epochs varies",
     .about = "Boxes, line, whiskers and dots as above.",
     .studies = "train-variability",
     .kind = EW_FIGURE_BOXES,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "repeat",
     .x_label = "repetition",
     .y = {{.name = "energy_j", .label = "energy"}},
     .min_x = 2},
    {.id = "variability-device",
     .title = "How much devices of one kind differ",
     .about = "Epochs of each device; stores are brought together by `edgewise results import`.",
     .studies = "train-variability",
     .kind = EW_FIGURE_BOXES,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "unit",
     .x_label = "device",
     .y = {{.name = "wall_s", .label = "time of an epoch"}},
     .min_x = 2,
     .any_machine = true},
    {.id = "dvfs",
     .title = "Clocks fixed and free",
     .about = "Clocks that follow the load, and clocks held at their highest.",
     .studies = "train-dvfs",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "dvfs|governor",
     .x_label = "clocks follow the load",
     .y = {{.name = "wall_s", .label = "time of an epoch"}},
     .min_x = 2},
    {.id = "dvfs-energy",
     .title = "Energy with clocks fixed and free",
     .about = "The same work with clocks that follow the load, and held at their highest.",
     .studies = "train-dvfs",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "dvfs|governor",
     .x_label = "clocks follow the load",
     .y = {{.name = "energy_j", .label = "energy"}},
     .min_x = 2},
    {.id = "clocks",
     .title = "How long the CPU was below its highest clock",
     .about = "Share of the run's readings below 95 % and below 90 % of the highest clock that the "
              "run saw.",
     .studies = "train-dvfs",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .facet = "network",
     .x = "dvfs|governor",
     .x_label = "clocks follow the load",
     .y = {{.name = "cpu_below_peak", .label = "below its highest clock"}},
     .min_x = 1},
    {.id = "gpu-clock",
     .title = "GPU clock, fixed and free",
     .about = "Mean of the run's readings; a network that leaves the GPU idle lets its clock fall.",
     .studies = "train-dvfs",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "network",
     .series = "dvfs",
     .y = {{.name = "gpu_mhz", .label = "GPU clock"}},
     .min_x = 1},
    {.id = "idle",
     .title = "Power at rest",
     .about = "Nothing runs: with the clocks free and held.",
     .studies = "train-modes",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "dvfs|label",
     .x_label = "clocks follow the load",
     .y = {{.name = "power_w", .label = "power at rest", .of = "idle idle-dvfs"}},
     .min_x = 1},
    {.id = "pareto",
     .title = "Time against energy",
     .about = "Each dot is a power mode. Nothing lies below and left of the front: to go faster "
              "than one of its dots costs energy, to save energy costs time.",
     .studies = "train-modes",
     .kind = EW_FIGURE_POINTS,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "power-mode|power_mode",
     .x_label = "power mode",
     .y = {{.name = "wall_s", .label = "time of an epoch"}, {.name = "energy_j"}},
     .min_x = 2,
     .front = true},
    {.id = "power-time",
     .title = "Time against power",
     .about = "Each dot is a power mode: more power, less time.",
     .studies = "train-modes",
     .kind = EW_FIGURE_POINTS,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "power-mode|power_mode",
     .x_label = "power mode",
     .y = {{.name = "power_w", .label = "power"}, {.name = "wall_s", .label = "time of an epoch"}},
     .min_x = 2},
    {.id = "modes-time",
     .title = "Where the time of an epoch goes, by power mode",
     .about = "Each bar is the mean epoch after the first.",
     .studies = "train-modes",
     .kind = EW_FIGURE_STACK,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .facet = "network",
     .x = "power-mode|power_mode",
     .x_label = "power mode",
     .y = TIME_PARTS,
     .min_x = 2},
    {.id = "modes-energy",
     .title = "Energy of an epoch, by power mode",
     .about = "What the board takes at rest in that mode (`train --idle`), and what training adds.",
     .studies = "train-modes",
     .kind = EW_FIGURE_STACK,
     .from = EW_RECORD_METRIC,
     .facet = "network",
     .x = "power-mode|power_mode",
     .x_label = "power mode",
     .y = {{.name = "base_energy_j", .label = "at rest"},
           {.name = "training_energy_j", .label = "training"}},
     .min_x = 2},
    MODES_BY("cores", "by CPU cores", "mode_cores"),
    MODES_BY("cpu", "by CPU clock", "mode_cpu_mhz"),
    MODES_BY("gpu", "by GPU clock", "mode_gpu_mhz"),
    MODES_BY("mem", "by memory clock", "mode_mem_mhz"),
    {.id = "latency",
     .title = "Time of a run, by batch",
     .about = "Medians of `bench` outside of the studies.",
     .studies = "none", /* those of studies have figures of their own */
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "batch",
     .series = "network",
     .y = {{.name = LATENCY, .label = "latency", .of = "bench"}},
     .log = true,
     .min_x = 1},
    {.id = "engine",
     .title = "Inference before and after",
     .about =
         "Median time of one inference: operator by operator in plain C, as an eager framework "
         "goes (reference), the same steps with kernels (before), and folded, fused and tuned "
         "(after).",
     .studies = "engine",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "network",
     .series = "label",
     .y = {{.name = LATENCY, .label = "latency", .of = "reference before after"}},
     .log = true,
     .min_x = 1},
    {.id = "speedup",
     .title = "Gain of the engine",
     .about =
         "How many times faster an inference becomes than operator by operator, in plain C and "
         "with kernels, with the study's own figure (PyTorch to TensorRT) beside.",
     .studies = "engine",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "network",
     .series = "label",
     .y = {{.name = LATENCY, .label = "times faster", .of = "reference before after"}},
     .ratios = ENGINE_GAINS,
     .log = true,
     .min_x = 1},
    {.id = "speedup-flops",
     .title = "Gain of the engine by arithmetic",
     .about = "Each dot is a network: does an engine gain more where there is more to compute?",
     .studies = "engine",
     .kind = EW_FIGURE_POINTS,
     .from = EW_RECORD_METRIC,
     .x = "network",
     .series = "label",
     .y = {{.name = "macs", .label = "multiply-adds", .of = "reference before after"},
           {.name = LATENCY, .label = "times faster", .of = "reference before after"}},
     .ratios = ENGINE_GAINS,
     .min_x = 1,
     .log_x = true,
     .trend = true},
    {.id = "engine-binary",
     .title = "With a head of two classes",
     .about = "The study's task has two classes, though its counts of parameters are those of a "
              "thousand: the same networks with two.",
     .studies = "engine",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "network",
     .series = "label",
     .y = {{.name = LATENCY, .label = "latency", .of = "binary-before binary-after"}},
     .log = true,
     .min_x = 1},
    {.id = "engine-together",
     .title = "Several networks at once",
     .about =
         "How much longer one inference takes while the other networks run on the same device, "
         "the threads divided among all.",
     .studies = "engine",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "network",
     .series = "label",
     .y = {{.name = LATENCY, .label = "times the latency alone", .of = "after together"}},
     .ratios = {{"together", "after", "beside the others"}},
     .min_x = 1},
    {.id = "f1",
     .title = "From scratch and by transfer: F1",
     .about = "On the test images, mean of the classes.",
     .studies = "nx-scratch nx-transfer",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "label",
     .x_label = "data and network",
     .series = "study",
     .y = {{.name = "test_f1", .label = "F1"}},
     .min_x = 1},
    {.id = "train-time",
     .title = "From scratch and by transfer: time to train",
     .about = "All epochs; how many each network gets is part of the study.",
     .studies = "nx-scratch nx-transfer",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "label",
     .x_label = "data and network",
     .series = "study",
     .y = {{.name = "train_s", .label = "time to train"}},
     .min_x = 1},
    {.id = "f1-cost",
     .title = "The best F1 at the least cost",
     .about = "Each dot is the first epoch whose F1 in validation is the run's highest to three "
              "digits. Nothing lies above and left of the front.",
     .studies = "nx-scratch nx-transfer",
     .kind = EW_FIGURE_POINTS,
     .from = EW_RECORD_METRIC,
     .x = "label",
     .x_label = "data and network",
     .series = "study",
     .y = {{.name = "best_f1_s", .label = "time until then"},
           {.name = "best_f1", .label = "best F1"},
           {.name = "best_f1_epochs", .label = "epochs", .optional = true}},
     .min_x = 1,
     .front = true},
    {.id = "f1-sweep",
     .title = "F1 against the time to train",
     .about = "Each dot is a number of epochs: at a constant rate the first epochs of a long run "
              "are those of a short one. In validation, from scratch and by transfer.",
     .studies = "nx-scratch nx-transfer",
     .kind = EW_FIGURE_POINTS,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_SWEEP,
     .facet = "label",
     .x = "epochs_done",
     .x_label = "epochs",
     .series = "study",
     .y = {{.name = "elapsed_s", .label = "time to train"}, {.name = "f1", .label = "F1"}},
     .min_x = 3,
     .front = true},
    {.id = "f1-epochs",
     .title = "F1 by epochs",
     .about =
         "At a constant rate the first epochs of a long run are those of a short one: read off "
         "10, 30, 50 ... epochs. In validation.",
     .studies = "nx-scratch nx-transfer",
     .kind = EW_FIGURE_LINES,
     .from = EW_RECORD_EPOCH,
     .facet = "dataset",
     .x = "epoch",
     .series = "net|network study",
     .y = {{.name = "f1", .label = "F1"}},
     .min_x = 3},
    {SCALE_DOTS("scale-params", "Accuracy against parameters",
                "Each dot is a width of the network: what it has learnt by how large it is."),
     .y = {{.name = "parameters", .label = "parameters", .of = SCALE_FLOAT_TIMES},
           {.name = "test_accuracy", .label = "accuracy", .of = "train neuralscale"}},
     .trend = true},
    {SCALE_DOTS("scale-flops", "Accuracy against FLOPs", "The same by what it computes."),
     .y = {{.name = "flops_thop", .label = "FLOPs", .of = SCALE_FLOAT_TIMES},
           {.name = "test_accuracy", .label = "accuracy", .of = "train neuralscale"}},
     .trend = true},
    {SCALE_DOTS("scale-flops-params", "FLOPs by parameters",
                "NeuralScale's widths compute more with as many parameters: by how much is the "
                "ratio of the slopes."),
     .y = {{.name = "parameters", .label = "parameters", .of = SCALE_FLOAT_TIMES},
           {.name = "flops_thop", .label = "FLOPs", .of = SCALE_FLOAT_TIMES}},
     .trend = true},
    {SCALE_BARS("scale-latency-ratio", "Latency by width",
                "One image; the study calls under 16.67 ms real time.", "median_ms", "latency",
                SCALE_TIMES)},
    {SCALE_BARS("scale-memory-ratio", "Memory by width", "Weights, activations and scratch.",
                "planned_bytes", "memory", SCALE_TIMES)},
    {SCALE_BARS("scale-accuracy-ratio", "Accuracy by width", "On the test images.", "test_accuracy",
                "accuracy", SCALE_SCORES)},
    {SCALE_BARS("scale-power-ratio", "Power by width", "Of the board while the network runs.",
                "run_power_w|power_w", "power", SCALE_TIMES)},
    {SCALE_BARS("scale-watt-ratio", "Images a second and watt by width",
                "The same by how many images it gives.", "images_per_s_per_w",
                "throughput by power", SCALE_TIMES)},
    {SCALE_DOTS("scale-latency", "Accuracy against latency",
                "Each dot is a width and a precision of the network; up and left is better."),
     .y = {{.name = "median_ms", .label = "latency", .of = SCALE_TIMES},
           {.name = "test_accuracy", .label = "accuracy", .of = SCALE_SCORES}},
     .front = true},
    {SCALE_DOTS("scale-memory", "Accuracy against memory",
                "Each dot is a width and a precision of the network: what an inference takes, and "
                "what it has learnt; up and left is better."),
     .y = {{.name = "planned_bytes", .label = "memory", .of = SCALE_TIMES},
           {.name = "test_accuracy", .label = "accuracy", .of = SCALE_SCORES}},
     .front = true},
    {.id = "dpu-latency",
     .title = "Latency on the DPU",
     .about = "One image and one thread on a ZCU104, by a model; the same number of parameters "
              "with uniform widths and with NeuralScale's.",
     .studies = "scale",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .facet = "net",
     .x = "ratio",
     .x_label = "width",
     .series = "method",
     .y = {{.name = "median_ms", .label = "latency", .of = DPU_TIMES}},
     .min_x = 1},
    {.id = "dpu-watt",
     .title = "Images a second and watt on the DPU",
     .about = "The same by the power of the board at work, modelled too.",
     .studies = "scale",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .facet = "net",
     .x = "ratio",
     .x_label = "width",
     .series = "method",
     .y = {{.name = "images_per_s_per_w", .label = "throughput by power", .of = DPU_TIMES}},
     .min_x = 1},
    {.id = "dpu-line",
     .title = "Latency on the DPU by parameters",
     .about =
         "Each dot is a width of a network on CIFAR-10's images, modelled. The study's line is "
         "what it measured on a ZCU104 (Table 4).",
     .studies = "scale",
     .kind = EW_FIGURE_POINTS,
     .from = EW_RECORD_METRIC,
     .x = "net ratio method",
     .x_label = "network",
     .y = {{.name = "parameters", .label = "parameters", .of = "dpu dpu-neuralscale"},
           {.name = "median_ms", .label = "latency", .of = "dpu dpu-neuralscale"}},
     .min_x = 1,
     .published_fit = "dpu_latency_fit",
     .trend = true},
    {.id = "dpu-accuracy",
     .title = "Accuracy against latency on the DPU",
     .about =
         "Each dot is a width of a network that has learnt, quantised with power-of-two scales "
         "on 500 images and evaluated by the DPU's arithmetic; times are modelled.",
     .studies = "scale",
     .kind = EW_FIGURE_POINTS,
     .from = EW_RECORD_METRIC,
     .x = "ratio",
     .x_label = "width",
     .series = "net method",
     .y = {{.name = "median_ms", .label = "latency", .of = "dpu-eval dpu-neuralscale-eval"},
           {.name = "dpu_accuracy", .label = "accuracy", .of = "dpu-eval dpu-neuralscale-eval"}},
     .min_x = 1,
     .front = true},
    {.id = "scale-data",
     .title = "MobileNetV2 by data set",
     .about = "Images of CIFAR-10 have 32x32 pixels, those of tiny ImageNet 64x64.",
     .studies = "scale",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "ratio",
     .series = "net scaling",
     .y = {{.name = "median_ms",
            .label = "latency",
            .of = "mobilenet-latency mobilenet-neuralscale-latency tiny-latency "
                  "tiny-neuralscale-latency"}},
     .min_x = 1},
    {SCALE_LINE("scale-latency-line", "Latency by parameters",
                "Each dot is a width of a network; the lines are what a width for a given latency "
                "is chosen by (`edgewise scale select`).",
                "median_ms", "latency"),
     .published_fit = "latency_fit"},
    {SCALE_LINE("scale-memory-line", "Memory by parameters", "The same for memory.",
                "planned_bytes", "memory"),
     .published_fit = "memory_fit"},
    {SCALE_BARS("scale-parameter-bytes", "Memory of one parameter",
                "Weights, activations and scratch, by the number of parameters.", "parameter_bytes",
                "memory of a parameter", SCALE_TIMES),
     .log = true},
    {SCALE_GAINS("scale-gain", "Quantising against scaling: latency",
                 "How many times faster than the original network in float32.", "median_ms",
                 "times faster")},
    {SCALE_GAINS("scale-gain-memory", "Quantising against scaling: memory",
                 "How many times smaller than the original network in float32.", "planned_bytes",
                 "times smaller")},
    {.id = "scale-epoch",
     .title = "Time of a training epoch by width",
     .about = "Each bar is the mean epoch after the first.",
     .studies = "scale",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .x = "net",
     .x_label = "network",
     .series = "scaling ratio",
     .y = {{.name = "wall_s", .label = "time of an epoch"}},
     .min_x = 1},
    {.id = "descent",
     .title = "Time of an architecture descent",
     .about = "What finding NeuralScale's widths takes before anything is trained.",
     .studies = "scale",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "network",
     .y = {{.name = "descent_s", .label = "time of the descent"}},
     .min_x = 1},
    {.id = "int8",
     .title = "float32 and int8",
     .about = "Time of one inference of a network before and after it is quantised.",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "net|network",
     .x_label = "network",
     .y = {{.name = "float32_ms", .label = "latency"}},
     .variants = {{"float32", {"float32_ms"}}, {"int8", {"int8_ms"}}},
     .min_x = 1},
    {.id = "learning",
     .title = "Accuracy in validation",
     .about = "After each epoch.",
     .studies = "nx-scratch nx-transfer scale",
     .kind = EW_FIGURE_LINES,
     .from = EW_RECORD_EPOCH,
     .facet = "dataset",
     .x = "epoch",
     .series = "net|network",
     .y = {{.name = "accuracy", .label = "accuracy"}},
     .min_x = 3},
    {.id = "power",
     .title = "Power over time",
     .about = "As the board's sensors gave it, with the epochs behind.",
     .kind = EW_FIGURE_TRACE,
     .from = EW_RECORD_SAMPLE,
     .facet = "net|network",
     .y = {{.name = "W", .label = "power"}}},
    {.id = "load",
     .title = "Load over time",
     .about = "As the system gave it, with the epochs behind and the loss of training beside.",
     .kind = EW_FIGURE_TRACE,
     .from = EW_RECORD_SAMPLE,
     .facet = "net|network",
     .y = {{.name = "%", .label = "load"},
           {.name = "train_loss", .label = "loss", .right = true, .optional = true}}},
    {.id = "memory",
     .title = "Memory over time",
     .about = "Of the whole machine, with the epochs behind and the loss of training beside.",
     .studies = "nx-scratch nx-transfer",
     .kind = EW_FIGURE_TRACE,
     .from = EW_RECORD_SAMPLE,
     .facet = "net|network",
     .y = {{.name = "B", .label = "memory in use"},
           {.name = "train_loss", .label = "loss", .right = true, .optional = true}}},
    {.id = "clock",
     .title = "Clocks over time",
     .about = "As the system gave them, with the epochs behind.",
     .studies = "train-dvfs train-modes",
     .kind = EW_FIGURE_TRACE,
     .from = EW_RECORD_SAMPLE,
     .facet = "net|network",
     .y = {{.name = "MHz", .label = "clock"}}},
    {.id = "confusion",
     .title = "Confusion matrix",
     .about =
         "Images of each true class by the class that the network gave, in the run that did best.",
     .kind = EW_FIGURE_MATRIX,
     .from = EW_RECORD_METRIC,
     .facet = "net|network",
     .x = "predicted",
     .y = {{.name = "confusion", .label = "images"}}},
    {.id = NULL},
};

const struct ew_figure_desc ew_figures_compare[] = {
    {.id = "compare-epoch",
     .title = "Time of an epoch",
     .about = "The same jobs on both sides; the first epoch is left out.",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .x = "label",
     .series = "side",
     .y = {{.name = "wall_s", .label = "time of an epoch"}},
     .any_machine = true},
    {.id = "compare-energy",
     .title = "Energy of an epoch",
     .about = "The same jobs on both sides; the first epoch is left out.",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_EPOCH,
     .epochs = EW_EPOCHS_LATER,
     .x = "label",
     .series = "side",
     .y = {{.name = "energy_j", .label = "energy"}},
     .any_machine = true},
    {.id = "compare-latency",
     .title = "Latency",
     .about = "The same jobs on both sides.",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "label",
     .series = "side",
     .y = {{.name = LATENCY, .label = "latency"}},
     .any_machine = true},
    {.id = NULL},
};

static bool known(const char *study)
{
    for (const struct ew_figure_desc *d = ew_figures_report; d->id; d++)
        if (ew_words_have(d->studies, study))
            return true;
    return false;
}

bool ew_figure_takes(const struct ew_figure_desc *d, const struct ew_run_data *run,
                     const char *study)
{
    const char *of = run->run.study;
    if (!ew_run_counts(run) || (study && (!of || strcmp(of, study) != 0)))
        return false;
    return !of || !d->studies || ew_words_have(d->studies, of) || !known(of);
}

static bool wanted(const struct ew_figure_desc *d, const char *study)
{
    return !study || !d->studies || ew_words_have(d->studies, study) || !known(study);
}

ew_err ew_figures_init(const struct ew_figure_desc *table, const struct ew_results *results,
                       const char *study, struct ew_figures *out)
{
    *out = (struct ew_figures){0};
    ew_arena_init(&out->arena);
    ew_err e = EW_OK;
    for (const struct ew_figure_desc *d = table; e == EW_OK && d->id; d++) {
        if (!wanted(d, study))
            continue;
        if (d->kind == EW_FIGURE_TRACE)
            e = ew_figure_trace(out, d, results, study);
        else if (d->kind == EW_FIGURE_MATRIX)
            e = ew_figure_matrix(out, d, results, study);
        else
            e = ew_figure_group(out, d, results, study);
    }
    if (e != EW_OK)
        ew_figures_fini(out);
    return e;
}

void ew_figures_fini(struct ew_figures *f)
{
    free(f->v);
    ew_arena_fini(&f->arena);
    *f = (struct ew_figures){0};
}
