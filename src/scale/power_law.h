/* SPDX-License-Identifier: Apache-2.0 */
/* Widths by power laws (NeuralScale, sections 3.2 and 3.3): phi = alpha * tau^beta is fitted to the
 * surviving filters of each gate at each size, and gives the widths of a network of any size. */
#ifndef EW_SCALE_POWER_LAW_H
#define EW_SCALE_POWER_LAW_H

#include "scale/scaling.h"

/* Surviving filters by gate, one row per pruning step. */
struct ew_prune_rows {
    int32_t *counts; /* [n, gates], owned */
    int n, gates, cap;
};

ew_err ew_prune_rows_add(struct ew_prune_rows *r, const int32_t *counts, int gates);
/* Reads a CSV without a header. */
ew_err ew_prune_rows_read(const char *path, struct ew_prune_rows *out);
ew_err ew_prune_rows_write(const struct ew_prune_rows *r, const char *path);
void ew_prune_rows_fini(struct ew_prune_rows *r);

struct ew_power_law {
    int n;    /* gates */
    int rows; /* rows of the fit; below EW_LAW_ROWS beta is 0 and alpha the first row */
    double alpha[EW_MAX_GATES], beta[EW_MAX_GATES];
    double r2[EW_MAX_GATES]; /* of the log-log fit; nan: no fit */
    double tau_least, tau_most;
    bool first; /* first descent iteration, which may have another tolerance */
};

#define EW_LAW_ROWS 6

/* Log-log least squares, unweighted. */
ew_err ew_power_law_fit(const struct ew_scaling *s, const struct ew_prune_rows *rows,
                        struct ew_power_law *out);

/* The law fitted to the records published by NeuralScale's authors for this zoo network; NULL:
 * none. */
const struct ew_power_law *ew_power_law_published(const char *network);

/* Fits a law to a file of records, or gets the published one ("published"). */
ew_err ew_power_law_read(const struct ew_scaling *s, const char *path, struct ew_power_law *out);

/* Target size: one of these. */
struct ew_widths_wanted {
    double ratio;  /* the size of uniform widths at this ratio */
    double params; /* about this many parameters; at most, if uniform */
    double macs;   /* at most this many multiply-accumulates */
};

struct ew_widths_found {
    double target, tau; /* target tau; tau of the widths */
    int steps;
    int32_t widths[EW_MAX_GATES];
};

/* Widths whose tau is close to the target.  Fails if the search does not converge, or a gate would
 * get no filter. */
ew_err ew_power_law_widths(const struct ew_scaling *s, const struct ew_power_law *law,
                           double target, struct ew_widths_found *out);

/* Widths of the target size, by the law, or uniform if it is NULL, in which case `tau` is the
 * ratio. */
ew_err ew_widths_find(const struct ew_scaling *s, const struct ew_power_law *law,
                      const struct ew_widths_wanted *w, struct ew_widths_found *out);

/* The largest widths with at most `limit` true parameters or, if `macs`, multiply-accumulates;
 * `law` NULL: uniform. */
ew_err ew_widths_within(const struct ew_scaling *s, const struct ew_power_law *law, double limit,
                        bool macs, struct ew_widths_found *out);

#endif
