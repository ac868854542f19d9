/* SPDX-License-Identifier: Apache-2.0 */
/* Every table and figure of the four studies: the experiment file and the figure of the report that
 * reproduce it, and what the machine needs for that. */
#ifndef EW_REPORT_REPRODUCE_H
#define EW_REPORT_REPRODUCE_H

#include "report/figure.h"

/* What a machine must have. */
enum ew_reproduce_needs {
    EW_NEEDS_NOTHING = 0,
    EW_NEEDS_POWER = 1,  /* a power sensor or meter that stands for the board */
    EW_NEEDS_CLOCKS = 2, /* clocks that can be set, and root */
    EW_NEEDS_GPU = 4
};

struct ew_reproduction {
    const char *id;    /* "TRAIN-fig8": never changes */
    const char *title; /* what it shows */
    const char
        *study;       /* experiment files that come with the program, space-separated; NULL: none */
    const char *only; /* of it; NULL: all */
    const char *figures; /* of the report, by their ids, space-separated */
    const char *part;    /* only values of x with this beginning: "stl10"; NULL: all */
    const char *board;   /* only published values of this board; NULL: of all */
    const char *dtype;   /* only runs of this type: "int8"; NULL: all */
    int needs;           /* enum ew_reproduce_needs, or'ed */
    const char *command; /* command that prints it instead: "boards"; NULL: none */
    const char *none;    /* why it cannot be reproduced; NULL: it can */
};

/* Ended by an id of NULL. */
extern const struct ew_reproduction ew_reproductions[];

/* The reproduction with this id, case-insensitive; NULL: none. */
const struct ew_reproduction *ew_reproduction_find(const char *id);

/* What this machine has: flags of enum ew_reproduce_needs. */
struct ew_reproduce_here {
    int has;
};

enum ew_reproduce_state {
    EW_REPRODUCE_MEASURED,
    EW_REPRODUCE_EMULATED,
    EW_REPRODUCE_SIMULATED,
    EW_REPRODUCE_READY,   /* can be run here */
    EW_REPRODUCE_COMMAND, /* a command prints it */
    EW_REPRODUCE_NEEDS,   /* something is missing here */
    EW_REPRODUCE_NONE     /* there is nothing to make */
};

/* The state according to the figures of a database; `text`: "needs a power sensor". */
#define EW_REPRODUCE_CHARS 120
enum ew_reproduce_state ew_reproduce_state(const struct ew_reproduction *r,
                                           const struct ew_figures *f,
                                           const struct ew_reproduce_here *here,
                                           char text[EW_REPRODUCE_CHARS]);

/* Whether the figure belongs to the reproduction. */
bool ew_reproduce_has(const struct ew_reproduction *r, const struct ew_figure *f);

/* Whether the reproduction's figures show the metric, over the setting `key` (NULL: any). */
bool ew_reproduce_shows(const struct ew_reproduction *r, const char *metric, const char *key);
/* Whether the published value belongs to the reproduction's part and board. */
bool ew_reproduce_about(const struct ew_reproduction *r, const struct ew_published_row *p);

#endif
