/* SPDX-License-Identifier: Apache-2.0 */
/* A network over windows of clips that overlap: what the windows before have computed is kept (see
 * compress/slide_graph.h).  The first windows run whole, until all is there; then a smaller plan
 * runs.  One thread at a time. */
#ifndef EW_PLAN_SLIDE_SLIDE_H
#define EW_PLAN_SLIDE_SLIDE_H

#include "plan/plan.h"

struct ew_slide;

/* For windows that move by `hop` frames; g outlives it, and is inferred.  *out is NULL where
 * nothing could be kept. */
ew_err ew_slide_new(const struct ew_graph *g, int64_t hop, const struct ew_plan_opts *o,
                    struct ew_slide **out);
void ew_slide_free(struct ew_slide *s);

/* The whole window, to be filled before each run; its contents stay. */
struct ew_tensor *ew_slide_input(struct ew_slide *s);
/* The window is `hop` frames after that of the last run. */
ew_err ew_slide_run(struct ew_slide *s);
const struct ew_tensor *ew_slide_output(const struct ew_slide *s, int i);

/* Arithmetic of a run over that of a whole window, once all is there. */
double ew_slide_share(const struct ew_slide *s);

#endif
