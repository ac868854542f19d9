/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: from a description of names (figures.c) and results to groups of values, and from those
 * to the series that are drawn.  Everything that shows a figure (page, SVG, terminal, Markdown,
 * CSV) works from struct ew_figure, so they cannot disagree.
 *
 *   description + results -> groups (a row of the table each) -> series (what is drawn)
 *
 * Values are averaged only over repetitions: runs on the same machine in the same state, with the
 * same options but for the figure's own x and series, and of the same quality. */
#ifndef EW_REPORT_FIGURE_H
#define EW_REPORT_FIGURE_H

#include "base/regress.h"
#include "report/run_data.h"

enum ew_figure_kind {
    EW_FIGURE_STACK,  /* the measures on top of each other, one bar for each group */
    EW_FIGURE_BARS,   /* a bar with a whisker for each group */
    EW_FIGURE_LINES,  /* over x; measures may go to the right axis */
    EW_FIGURE_BOXES,  /* quartiles and the values themselves */
    EW_FIGURE_POINTS, /* the second measure over the first, labelled by x */
    EW_FIGURE_TRACE,  /* a channel over the time of one run, with its epochs behind */
    EW_FIGURE_MATRIX  /* counts by true and predicted class */
};

/* Which epochs count.  The first one is apart: it finds the page cache cold. */
enum ew_figure_epochs {
    EW_EPOCHS_ALL,
    EW_EPOCHS_LATER, /* all but the first; of a run with one epoch, that one */
    EW_EPOCHS_LAST,
    EW_EPOCHS_SWEEP /* 10, 30, 50, 60, 100, 150, 200, as the NX study's runs; all of a short run */
};

#define EW_FIGURE_MAX_Y        4
#define EW_FIGURE_MAX_VARIANTS 2
#define EW_FIGURE_MAX_RATIOS   3

/* A measure: a field of an epoch, or a metric of a run.  Alternatives are separated by '|', and the
 * first that the results have is taken.  "elapsed_s" is the sum of an epoch's wall_s and of all
 * before it. */
struct ew_figure_y {
    const char *name;
    const char *label; /* NULL: the field's own */
    const char *of;    /* only of runs with such a label or, without one, command; NULL: any */
    bool right;        /* on the right axis */
    bool optional;     /* the figure is drawn without it too */
};

struct ew_figure_desc {
    const char *id;      /* in links and file names: never changes */
    const char *title;   /* the value of `facet` is put before it */
    const char *about;   /* what it shows and how to read it */
    const char *studies; /* that ask for it, space-separated; NULL: any */
    enum ew_figure_kind kind;
    enum ew_record from;          /* EPOCH, METRIC or SAMPLE */
    enum ew_figure_epochs epochs; /* where it is EPOCH */
    const char *facet;            /* property: one figure for each of its values; NULL: one */
    const char *x, *x_label;      /* properties by alternatives, as in a measure */
    const char *series;           /* properties, space-separated; NULL: none */
    const char *series_label;     /* what one property is called, NULL: its name */
    const char *series_unit;      /* said after its values; NULL: none */
    bool series_named;            /* numbers among its values get the property's name: "batch 8" */
    struct ew_figure_y y[EW_FIGURE_MAX_Y];
    /* The same thing measured under several names by one run: its series get `name` added, and its
     * measures are these instead of those of `y`. */
    struct ew_figure_variant {
        const char *name, *y[EW_FIGURE_MAX_Y];
    } variants[EW_FIGURE_MAX_VARIANTS];
    /* In place of the values: the last measure of the series `top` by that of `bottom`. */
    struct ew_figure_ratio {
        const char *top, *bottom, *name;
    } ratios[EW_FIGURE_MAX_RATIOS];
    int min_x;        /* fewer values of x tell nothing */
    bool across;      /* joins runs of different jobs (a training, a bench) by facet, x, series */
    bool exact;       /* of `studies` alone, not of studies that people write themselves */
    bool any_machine; /* what machine it was is the series' business */
    bool log, log_x;  /* the left axis (ew_figure_log), the lower one of dots, is logarithmic */
    bool front;       /* with the Pareto front of its first two measures */
    const char *whiskers; /* what they show; NULL: one standard deviation */
    /* Metrics NAME_slope and NAME_bias of published values: that line is drawn too. */
    const char *published_fit;
    bool trend; /* with a line by least squares through each series of dots; where the lower axis
                   is logarithmic, over its logarithms */
};

/* Values of one measure. */
struct ew_stat {
    int n;
    double mean, sd; /* sd nan where n < 2 */
    double low, q1, median, q3, high;
    const double *v; /* all of them, sorted */
};

/* One row of a figure's table. */
struct ew_group {
    const char *x, *series; /* series "": none */
    const char *machine;    /* what tells it from other machines; "": nothing does */
    const char *options;    /* likewise of the settings: "batch=16" */
    int quality;            /* -1 where published */
    const char *published;  /* who says so; NULL: our own */
    int runs, noisy;
    struct ew_stat y[EW_FIGURE_MAX_Y];
};

struct ew_axis {
    const char *label, *unit; /* unit "": none */
    double scale;             /* stored values are multiplied by it */
    int better;               /* enum ew_better */
};

struct ew_point {
    double x, y;                  /* x: of the axis, or the number of the category */
    double low, high;             /* ends of the whisker; nan: none */
    const char *label;            /* NULL: none */
    const struct ew_group *group; /* NULL: of a trace, a front or a matrix */
};

enum ew_series_shape { EW_SHAPE_BAR, EW_SHAPE_LINE, EW_SHAPE_BOX, EW_SHAPE_DOT, EW_SHAPE_CELL };

struct ew_series {
    const char *name;
    enum ew_series_shape shape;
    int measure; /* of the group */
    int colour;
    bool stacked, right;
    bool front, trend; /* a line that is worked out from the dots */
    int quality;       /* as in the group */
    bool published;
    struct ew_point *points;
    int n_points;
};

/* A phase of a trace. */
struct ew_band {
    const char *name;
    double from, to;
};

/* A line through the dots of a series. */
struct ew_trend {
    const char *series;
    struct ew_line line;
};

struct ew_figure {
    const struct ew_figure_desc *desc;
    const char *id, *title;
    const char *facet;   /* "": none */
    const char *missing; /* why there is nothing to draw; then all below is empty */
    struct ew_axis x, y[2], measure[EW_FIGURE_MAX_Y];
    int n_measures;
    const char **categories, **rows; /* of x; of y in a matrix */
    int n_categories, n_rows;
    struct ew_group *groups;
    int n_groups;
    struct ew_series *series;
    int n_series;
    struct ew_trend *trends;
    int n_trends;
    int left_out;      /* series that are only in the table; runs that have no picture */
    bool no_published; /* there are published values, of another size than ours */
    struct ew_band *bands;
    int n_bands;
    const char *models; /* boards whose models gave simulated values: "agx-xavier"; NULL: none */
    const char *fitted; /* where the constants of that model come from, where published values are
                           beside; NULL: not said */
    const char *also;   /* options that change along with x; NULL or "": none */
    const char *cite;   /* where published values come from; NULL: there are none */
    const char *wrong;  /* which of them cannot be as printed, and why; NULL: none is known */
    int runs, noisy;    /* behind all of it */
};

struct ew_figures {
    struct ew_arena arena;
    struct ew_figure *v;
    int n, cap;
};

/* The descriptions, ended by an id of NULL: of a report and of a comparison. */
extern const struct ew_figure_desc ew_figures_report[];
extern const struct ew_figure_desc ew_figures_compare[];

/* Makes all figures of the table; `study` NULL: of all runs, whatever they belong to.  What cannot
 * be drawn is there too and says why.  Borrows from the results.  Release with fini. */
ew_err ew_figures_init(const struct ew_figure_desc *table, const struct ew_results *results,
                       const char *study, struct ew_figures *out);
void ew_figures_fini(struct ew_figures *f);

/* The text of a measure's value: "12.5"; "" for nan.  Returns buf. */
#define EW_VALUE_CHARS 32
const char *ew_text_value(double v, char buf[EW_VALUE_CHARS]);

/* "measured"; "published" where quality is -1. */
const char *ew_figure_quality(int quality);

/* Whether the left axis is logarithmic: asked for, and what is on it spans a factor of ten or the
 * lower axis is logarithmic as well. */
bool ew_figure_log(const struct ew_figure *f);

#endif
