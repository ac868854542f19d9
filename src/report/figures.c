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
    {.id = "power",
     .title = "Power over time",
     .about = "As the board's sensors gave it, with the epochs behind.",
     .kind = EW_FIGURE_TRACE,
     .from = EW_RECORD_SAMPLE,
     .facet = "net|network",
     .y = {{.name = "W", .label = "power"}}},
    {.id = "load",
     .title = "Load over time",
     .about = "As the system gave it, with the epochs behind.",
     .kind = EW_FIGURE_TRACE,
     .from = EW_RECORD_SAMPLE,
     .facet = "net|network",
     .y = {{.name = "%", .label = "load"}}},
    {.id = "engine",
     .title = "Inference before and after",
     .about = "Median time of one inference as it comes, and folded, fused and tuned.",
     .studies = "engine",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "network",
     .series = "label",
     .y = {{.name = LATENCY, .label = "latency", .of = "before after"}},
     .log = true,
     .min_x = 1},
    {.id = "speedup",
     .title = "Gain of the engine",
     .about = "How many times faster an inference becomes, with the study's own figure beside.",
     .studies = "engine",
     .kind = EW_FIGURE_BARS,
     .from = EW_RECORD_METRIC,
     .x = "network",
     .series = "label",
     .y = {{.name = LATENCY, .label = "times faster", .of = "before after"}},
     .ratio = "before after",
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
    {.id = "scale-latency",
     .title = "Accuracy against latency",
     .about = "Each dot is a width and a precision of the network; up and left is better.",
     .studies = "scale",
     .kind = EW_FIGURE_POINTS,
     .from = EW_RECORD_METRIC,
     .x = "width",
     .series = "net|network",
     .y = {{.name = "float32_ms", .label = "latency"},
           {.name = "float32_accuracy", .label = "accuracy"}},
     .variants = {{"float32", {"float32_ms", "float32_accuracy"}},
                  {"int8", {"int8_ms", "int8_accuracy"}}},
     .min_x = 1,
     .front = true},
    {.id = "scale-memory",
     .title = "Accuracy against memory",
     .about = "Each dot is a width of the network in float32: what an inference takes, and what it "
              "has learnt; up and left is better.",
     .studies = "scale",
     .kind = EW_FIGURE_POINTS,
     .from = EW_RECORD_METRIC,
     .x = "width",
     .series = "net|network",
     .y = {{.name = "planned_bytes", .label = "memory", .of = "latency bench"},
           {.name = "test_accuracy", .label = "accuracy", .of = "train"}},
     .min_x = 1,
     .across = true,
     .front = true},
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
