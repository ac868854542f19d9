/* SPDX-License-Identifier: Apache-2.0 */
/* A network over overlapping windows of a clip, reusing features of earlier windows
 * (compress/slide_graph.h).  The first windows run in full, to fill the kept features; after that a
 * smaller plan runs.  One thread at a time. */
#ifndef EW_PLAN_SLIDE_SLIDE_H
#define EW_PLAN_SLIDE_SLIDE_H

#include "plan/plan.h"

struct ew_slide;

/* For windows that advance by `hop` frames.  g, which must be inferred, outlives it.  *out is NULL
 * if no features can be reused. */
ew_err ew_slide_new(const struct ew_graph *g, int64_t hop, const struct ew_plan_opts *o,
                    struct ew_slide **out);
void ew_slide_free(struct ew_slide *s);

/* The whole window, to be written before each run; it keeps its contents. */
struct ew_tensor *ew_slide_input(struct ew_slide *s);
/* Runs on a window that is `hop` frames after the last one. */
ew_err ew_slide_run(struct ew_slide *s);
const struct ew_tensor *ew_slide_output(const struct ew_slide *s, int i);

/* MACs of a run over those of a full window, after the first windows. */
double ew_slide_share(const struct ew_slide *s);

#endif
