/* SPDX-License-Identifier: Apache-2.0 */
/* The tables and figures of the studies, and the state of each on a machine. */
#include "report/reproduce.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "report/figure_key.h"

#define POWER  EW_NEEDS_POWER
#define CLOCKS (EW_NEEDS_CLOCKS | EW_NEEDS_POWER)

#define STUDY(name, text, file, ids, need)                                                         \
    {                                                                                              \
        .id = name, .title = text, .study = file, .figures = ids, .needs = need                    \
    }
/* Figures that need only SCALE's sections for the FPGA. */
#define SCALE_DPU(name, text, sections, ids)                                                       \
    {                                                                                              \
        .id = name, .title = text, .study = "scale", .only = sections, .figures = ids,             \
        .board = "ZCU104"                                                                          \
    }
/* Figures of SCALE's runs in one precision. */
#define SCALE_IN(type, name, text, ids, need)                                                      \
    {                                                                                              \
        .id = name, .title = text, .study = "scale", .figures = ids, .needs = need, .dtype = type  \
    }
#define COMMAND(name, text, words)                                                                 \
    {                                                                                              \
        .id = name, .title = text, .command = words                                                \
    }
#define NOTHING(name, text, why)                                                                   \
    {                                                                                              \
        .id = name, .title = text, .none = why                                                     \
    }
#define DRAWING "a drawing, nothing is measured"
#define NO_TINY "needs tiny ImageNet for calibration, which has no official download"
#define SCALE_ALL                                                                                  \
    "scale-latency-ratio scale-memory-ratio scale-accuracy-ratio scale-power-ratio "               \
    "scale-watt-ratio"
#define SCALE_AGAINST "scale-latency scale-memory"

/* NX trained the same five networks on both data sets. */
#define NX_SECTIONS(set)                                                                           \
    set "-alexnet," set "-shufflenet," set "-squeezenet," set "-resnet50," set "-mobilenet"
#define NX_FIGURES "f1 train-time f1-cost f1-sweep f1-epochs load memory"

/* clang-format off */
const struct ew_reproduction ew_reproductions[] = {
    {.id = "NX-table1", .title = "F1 and time to train on CIFAR-10, from scratch and by transfer",
     .study = "nx-scratch nx-transfer", .figures = NX_FIGURES, .part = "cifar10",
     .only = NX_SECTIONS("cifar10")},
    {.id = "NX-table2", .title = "F1 and time to train on STL-10, from scratch and by transfer",
     .study = "nx-scratch nx-transfer", .figures = NX_FIGURES, .part = "stl10",
     .only = NX_SECTIONS("stl10")},
    NOTHING("ENGINE-fig1", "the Jetson Nano's connectors", DRAWING),
    NOTHING("ENGINE-fig2", "from PyTorch to an engine file", DRAWING),
    NOTHING("ENGINE-fig3", "running an engine", DRAWING),
    STUDY("ENGINE-table1", "time of one inference before and after, parameters, FLOPs", "engine",
          "engine speedup speedup-flops engine-binary engine-together", 0),
    STUDY("ENGINE-fig4", "gain of the engine by network", "engine", "speedup speedup-flops", 0),
    COMMAND("TRAIN-table1", "the boards", "boards"),
    COMMAND("TRAIN-table2", "networks, and which board has room to train them", "reproduce fits"),
    COMMAND("TRAIN-table3", "the AGX Xavier's power modes", "boards agx-xavier"),
    NOTHING("TRAIN-fig1", "stages of training", DRAWING),
    STUDY("TRAIN-fig2a", "time of an epoch by loader workers", "train-workers", "workers workers-stall",
          0),
    STUDY("TRAIN-fig2b", "stall in the first epoch and later", "train-workers",
          "workers workers-dropped", 0),
    STUDY("TRAIN-fig2c", "energy of an epoch by loader workers", "train-workers", "workers-energy",
          POWER),
    STUDY("TRAIN-fig3a", "storage media without cache and workers", "train-storage",
          "storage storage-stall", 0),
    STUDY("TRAIN-fig3b", "storage media with cache and workers", "train-storage", "storage storage-stall", 0),
    STUDY("TRAIN-fig3c", "energy by storage medium", "train-storage", "storage-energy", POWER),
    STUDY("TRAIN-fig4a", "stall of an epoch and of a batch, by batch size", "train-batch",
          "batch-stall", 0),
    STUDY("TRAIN-fig4b", "compute time of an epoch and of a batch, by batch size", "train-batch",
          "batch-compute", 0),
    STUDY("TRAIN-fig4c", "time of an epoch by batch size", "train-batch", "batch batch-parts", 0),
    STUDY("TRAIN-fig5a", "variation between epochs and devices: time", "train-variability",
          "variability variability-device", 0),
    STUDY("TRAIN-fig5b", "variation between epochs and devices: energy", "train-variability", "variability-energy", POWER),
    COMMAND("TRAIN-sec5.4.4", "effect of a software update: databases from before and after",
            "report --compare BEFORE.db AFTER.db"),
    STUDY("TRAIN-fig6a", "time and energy with clocks following the load and locked", "train-dvfs",
          "dvfs dvfs-energy", EW_NEEDS_CLOCKS),
    STUDY("TRAIN-fig6b", "the energy alone (the paper's text has it in 6a and names no 6b)", "train-dvfs",
          "dvfs-energy", CLOCKS),
    STUDY("TRAIN-fig6c", "GPU clock while it follows the load", "train-dvfs", "gpu-clock clock",
          EW_NEEDS_CLOCKS | EW_NEEDS_GPU),
    STUDY("TRAIN-fig6d", "CPU clock while it follows the load", "train-dvfs", "clocks clock",
          EW_NEEDS_CLOCKS),
    STUDY("TRAIN-fig7", "idle power", "train-modes", "idle", POWER),
    STUDY("TRAIN-fig8", "time against energy by power mode", "train-modes", "pareto", CLOCKS),
    STUDY("TRAIN-fig9a", "time of an epoch by power mode", "train-modes", "modes-time",
          EW_NEEDS_CLOCKS),
    STUDY("TRAIN-fig9b", "energy by power mode, idle and training", "train-modes", "modes-energy",
          CLOCKS),
    COMMAND("TRAIN-fig10a", "prediction of an epoch's time",
            "predict --simulate agx-xavier --compare"),
    COMMAND("TRAIN-fig10b", "prediction of an epoch's energy",
            "predict --simulate agx-xavier --compare"),
    STUDY("TRAIN-fig11", "time against power by power mode", "train-modes", "power-time", CLOCKS),
    STUDY("TRAIN-fig12", "figure 8 again", "train-modes", "pareto", CLOCKS),
    STUDY("TRAIN-fig13", "figure 8 by CPU cores", "train-modes", "modes-cores", CLOCKS),
    STUDY("TRAIN-fig14", "figure 8 by CPU clock", "train-modes", "modes-cpu", CLOCKS),
    STUDY("TRAIN-fig15", "figure 8 by GPU clock", "train-modes", "modes-gpu", CLOCKS),
    STUDY("TRAIN-fig16", "figure 8 by memory clock", "train-modes", "modes-mem", CLOCKS),
    COMMAND("SCALE-table1", "devices and their frameworks", "devices"),
    COMMAND("SCALE-table2", "the AGX Xavier", "boards agx-xavier"),
    STUDY("SCALE-table3", "FLOPs and depth of the networks", "scale", "scale-flops-params", 0),
    STUDY("SCALE-table4", "linear fits of latency over parameters", "scale", "scale-latency-line", 0),
    STUDY("SCALE-table5", "linear fits of memory over parameters", "scale", "scale-memory-line", 0),
    STUDY("SCALE-table6", "time of an architecture descent", "scale", "descent", 0),
    NOTHING("SCALE-fig1", "uniform scaling and NeuralScale", DRAWING),
    STUDY("SCALE-fig2", "accuracy over parameters and FLOPs, FLOPs over parameters", "scale",
          "scale-params scale-flops scale-flops-params", 0),
    SCALE_IN("float32", "SCALE-fig3", "Cortex-A72 float32: latency, memory, accuracy, power",
             SCALE_ALL, 0),
    SCALE_IN("float32", "SCALE-fig4", "Cortex-A72 float32: accuracy against latency and memory",
             SCALE_AGAINST, 0),
    SCALE_IN("int8", "SCALE-fig5", "Cortex-A72 int8: latency, memory, accuracy, power",
             SCALE_ALL, 0),
    SCALE_IN("int8", "SCALE-fig6", "Cortex-A72 int8: accuracy against latency and memory",
             SCALE_AGAINST, 0),
    SCALE_IN("float32", "SCALE-fig7", "Cortex-A72 float32 by data set",
             "scale-data", 0),
    NOTHING("SCALE-fig8", "Cortex-A72 int8 by data set", NO_TINY),
    SCALE_IN("float32", "SCALE-fig9", "AGX Xavier float32: latency, memory, accuracy, power",
             SCALE_ALL, EW_NEEDS_GPU),
    SCALE_IN("float32", "SCALE-fig10", "AGX Xavier float32: accuracy against latency and memory",
             SCALE_AGAINST, EW_NEEDS_GPU),
    SCALE_IN("int8", "SCALE-fig11", "AGX Xavier int8: latency, memory, accuracy, power",
             SCALE_ALL, EW_NEEDS_GPU),
    SCALE_IN("int8", "SCALE-fig12", "AGX Xavier int8: accuracy against latency and memory",
             SCALE_AGAINST, EW_NEEDS_GPU),
    STUDY("SCALE-fig13", "memory of a parameter on the AGX Xavier", "scale", "scale-parameter-bytes",
          EW_NEEDS_GPU),
    SCALE_IN("float32", "SCALE-fig14", "AGX Xavier float32 by data set",
             "scale-data", EW_NEEDS_GPU),
    NOTHING("SCALE-fig15", "AGX Xavier int8 by data set", NO_TINY),
    SCALE_DPU("SCALE-fig16", "ZCU104 int8, modelled: latency and power",
              "dpu,dpu-neuralscale", "dpu-latency dpu-watt dpu-line"),
    SCALE_DPU("SCALE-fig17", "ZCU104 int8, modelled: accuracy against latency",
              "train,neuralscale,dpu-eval,dpu-neuralscale-eval", "dpu-accuracy"),
    SCALE_DPU("SCALE-fig18", "ZCU104 int8, modelled, by data set",
              "dpu,dpu-neuralscale,dpu-tiny,dpu-tiny-neuralscale", "dpu-latency dpu-watt"),
    STUDY("SCALE-fig19", "Cortex-A72: quantising against scaling", "scale",
          "scale-gain scale-gain-memory", 0),
    STUDY("SCALE-fig20", "AGX Xavier: quantising against scaling", "scale",
          "scale-gain scale-gain-memory", EW_NEEDS_GPU),
    COMMAND("SCALE-fig21", "widths of the layers", 
            "scale generate vgg11_cifar --published --ratio 1 --svg SCALE-fig21.svg"),
    STUDY("SCALE-fig22", "time of a training epoch", "scale", "scale-epoch", 0),
    {.id = NULL},
};
/* clang-format on */

const struct ew_reproduction *ew_reproduction_find(const char *id)
{
    for (const struct ew_reproduction *r = ew_reproductions; r->id; r++)
        if (strcasecmp(r->id, id) == 0)
            return r;
    return NULL;
}

bool ew_reproduce_has(const struct ew_reproduction *r, const struct ew_figure *f)
{
    return r->figures && ew_words_have(r->figures, f->desc->id);
}

/* Whether `metric` is one of the alternatives "wall_s|median_ms" or derived from it: the first
 * epoch's (stall_s_first), the time of an epoch, a ratio of settings (stall_s:...).
 */
static bool is_measure(const char *names, const char *metric)
{
    const size_t len = strcspn(metric, ":");
    const bool epoch = strncmp(metric, "epoch_s", strlen("epoch_s")) == 0;
    for (const char *p = names; p && *p;) {
        const size_t n = strcspn(p, "|");
        const char *rest = metric + n;
        if (epoch && n == strlen("wall_s") && strncmp(p, "wall_s", n) == 0)
            return true;
        if (n <= len && strncmp(p, metric, n) == 0 &&
            (n == len || strncmp(rest, "_first", strlen("_first")) == 0))
            return true;
        p += n + (p[n] == '|');
    }
    return false;
}

/* Whether `key` is among the words, each of which is a list of alternatives. */
static bool have_key(const char *words, const char *key)
{
    for (const char *p = words; p && *p; p += strcspn(p, " |"), p += *p != 0)
        if (strcspn(p, " |") == strlen(key) && strncmp(p, key, strlen(key)) == 0)
            return true;
    return false;
}

static bool desc_shows(const struct ew_figure_desc *d, const char *metric, const char *key)
{
    const char *fit = d->published_fit; /* NAME_slope, NAME_bias */
    if (key && !have_key(d->x, key) && !have_key(d->series, key))
        return false;
    if (fit && strncmp(metric, fit, strlen(fit)) == 0)
        return true;
    for (int k = 0; k < EW_FIGURE_MAX_Y && d->y[k].name; k++)
        if (is_measure(d->y[k].name, metric))
            return true;
    for (int v = 0; v < EW_FIGURE_MAX_VARIANTS && d->variants[v].name; v++)
        for (int k = 0; k < EW_FIGURE_MAX_Y && d->variants[v].y[k]; k++)
            if (is_measure(d->variants[v].y[k], metric))
                return true;
    return false;
}

bool ew_reproduce_shows(const struct ew_reproduction *r, const char *metric, const char *key)
{
    for (const struct ew_figure_desc *d = ew_figures_report; d->id && r->figures; d++)
        if (ew_words_have(r->figures, d->id) && desc_shows(d, metric, key))
            return true;
    return false;
}

/* Whether the setting of that name begins with the text. */
static bool begins(const char *settings, const char *name, const char *text)
{
    const char *at = strstr(settings, name);
    return at && strncmp(at + strlen(name), text, strlen(text)) == 0;
}

bool ew_reproduce_about(const struct ew_reproduction *r, const struct ew_published_row *p)
{
    return (!r->part || begins(p->settings, "label=", r->part)) &&
           (!r->board || (p->board && strcmp(p->board, r->board) == 0)) &&
           ew_reproduce_shows(r, p->metric, NULL);
}

/* Whether values of this quality come from a model, with nothing run. */
static bool is_computed(int quality)
{
    return quality == EW_QUALITY_SIMULATED || quality == EW_QUALITY_MODELLED;
}

/* The best quality among the figure's series, published ones excluded; -1: none. */
static int quality_of(const struct ew_figure *f)
{
    int best = -1;
    for (int i = 0; i < f->n_series; i++) {
        const int q = f->series[i].published ? -1 : f->series[i].quality;
        const bool made = is_computed(q) || q == EW_QUALITY_EMULATED;
        if (q >= 0 && (best < 0 || !made))
            best = q;
    }
    return best;
}

static const char *missing_here(int missing)
{
    if (missing & EW_NEEDS_CLOCKS)
        return "needs root on a board whose clocks can be set";
    if (missing & EW_NEEDS_GPU)
        return "needs a GPU";
    return "needs a power sensor";
}

/* Whether the figure is made from runs of the reproduction's own studies only. */
static bool is_own(const struct ew_reproduction *r, const struct ew_figure *f)
{
    for (const char *p = r->study ? r->study : ""; *p && f->desc->studies;) {
        char name[64];
        const size_t n = strcspn(p, " ");
        snprintf(name, sizeof(name), "%.*s", (int)n, p);
        if (ew_words_have(f->desc->studies, name))
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

/* Number of our runs in the figure whose x begins with `part`; NULL: all. */
static int runs_of(const struct ew_figure *f, const char *part)
{
    int runs = 0;
    for (int i = 0; part && i < f->n_groups; i++)
        if (!f->groups[i].published && strncmp(f->groups[i].x, part, strlen(part)) == 0)
            runs += f->groups[i].runs;
    return part ? runs : f->runs;
}

enum ew_reproduce_state ew_reproduce_state(const struct ew_reproduction *r,
                                           const struct ew_figures *f,
                                           const struct ew_reproduce_here *here,
                                           char text[EW_REPRODUCE_CHARS])
{
    int runs = 0, sum = 0, quality = -1;
    const struct ew_figure_desc *last = NULL;
    for (int i = 0; f && i < f->n; i++) {
        if (!ew_reproduce_has(r, &f->v[i]) || f->v[i].missing || !is_own(r, &f->v[i]))
            continue;
        const int own = runs_of(&f->v[i], r->part);
        if (!own)
            continue;
        /* Panels of one figure have different runs; other figures show the same runs. */
        sum = f->v[i].desc == last ? sum + own : own;
        last = f->v[i].desc;
        runs = sum > runs ? sum : runs;
        const int q = quality_of(&f->v[i]);
        quality = quality < 0 || is_computed(quality) ? q : quality;
    }
    const int missing = r->needs & ~here->has;
    /* Measurements on a CPU do not reproduce a figure of a GPU. */
    const bool of_another = (missing & EW_NEEDS_GPU) && quality != EW_QUALITY_SIMULATED;
    if (runs && quality >= 0 && !of_another) {
        snprintf(text, EW_REPRODUCE_CHARS, "%s, %d %s",
                 quality == EW_QUALITY_DERIVED ? "measured" : ew_figure_quality(quality), runs,
                 runs == 1 ? "run" : "runs");
        return is_computed(quality)             ? EW_REPRODUCE_SIMULATED
               : quality == EW_QUALITY_EMULATED ? EW_REPRODUCE_EMULATED
                                                : EW_REPRODUCE_MEASURED;
    }
    const char *what = r->none      ? r->none
                       : missing    ? missing_here(missing)
                       : r->command ? "printed by a command"
                                    : "can be run here";
    snprintf(text, EW_REPRODUCE_CHARS, "%s", what);
    return r->none      ? EW_REPRODUCE_NONE
           : missing    ? EW_REPRODUCE_NEEDS
           : r->command ? EW_REPRODUCE_COMMAND
                        : EW_REPRODUCE_READY;
}
