/* SPDX-License-Identifier: Apache-2.0 */
/* Widths by power laws: what pruning left of each gate at each size, phi = alpha * tau^beta fitted
 * to it, and the widths of a network of any size from that (NeuralScale, sections 3.2 and 3.3). */
#ifndef EW_SCALE_POWER_LAW_H
#define EW_SCALE_POWER_LAW_H

#include "scale/scaling.h"

/* Surviving filters by gate, one row after each pruning step. */
struct ew_prune_rows {
    int32_t *counts; /* [n, gates], owned */
    int n, gates, cap;
};

ew_err ew_prune_rows_add(struct ew_prune_rows *r, const int32_t *counts, int gates);
/* Reads a CSV without heading. */
ew_err ew_prune_rows_read(const char *path, struct ew_prune_rows *out);
ew_err ew_prune_rows_write(const struct ew_prune_rows *r, const char *path);
void ew_prune_rows_fini(struct ew_prune_rows *r);

struct ew_power_law {
    int n;    /* gates */
    int rows; /* it was fitted to; below EW_LAW_ROWS beta is 0 and alpha the first row */
    double alpha[EW_MAX_GATES], beta[EW_MAX_GATES];
    double r2[EW_MAX_GATES]; /* of the line in logarithms; nan where there is none */
    double tau_least, tau_most;
    bool first; /* of the first descent iteration, whose tolerance may be another */
};

#define EW_LAW_ROWS 6

/* Least squares in logarithms, all rows alike. */
ew_err ew_power_law_fit(const struct ew_scaling *s, const struct ew_prune_rows *rows,
                        struct ew_power_law *out);

/* The law of the records that NeuralScale's authors published for this network of the zoo; NULL:
 * they published none. */
const struct ew_power_law *ew_power_law_published(const char *network);

/* The same from a file of such records, or of those that NeuralScale's authors published:
 * "published". */
ew_err ew_power_law_read(const struct ew_scaling *s, const char *path, struct ew_power_law *out);

/* How large a network is to be: one of these. */
struct ew_widths_wanted {
    double ratio;  /* as large as uniform widths at it */
    double params; /* about so many parameters, or at most where uniform */
    double macs;   /* at most so many multiply-accumulates */
};

struct ew_widths_found {
    double target, tau; /* asked for; what the widths were taken at */
    int steps;
    int32_t widths[EW_MAX_GATES];
};

/* Widths whose tau is near the target.  Fails where the search does not end, or a gate would get no
 * filter. */
ew_err ew_power_law_widths(const struct ew_scaling *s, const struct ew_power_law *law,
                           double target, struct ew_widths_found *out);

/* Widths of that size, by the law or, where it is NULL, uniform ones; `tau` is then the ratio. */
ew_err ew_widths_find(const struct ew_scaling *s, const struct ew_power_law *law,
                      const struct ew_widths_wanted *w, struct ew_widths_found *out);

/* The largest widths with at most so many true parameters or, where `macs`, multiply-accumulates;
 * `law` NULL: of uniform scaling. *ratio: the uniform ratio, or nan. */
ew_err ew_widths_within(const struct ew_scaling *s, const struct ew_power_law *law, double limit,
                        bool macs, struct ew_widths_found *out);

#endif
