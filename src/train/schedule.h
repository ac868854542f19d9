/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rate schedules: the rate as a function of the step number. */
#ifndef EW_TRAIN_SCHEDULE_H
#define EW_TRAIN_SCHEDULE_H

#include "base/field.h"

/* clang-format off */
#define EW_SCHEDULE_MAP(X)                                                                         \
    X(CONSTANT,  "constant")                                                                       \
    X(STEP,      "step")      /* x gamma every `every` epochs */                               \
    X(COSINE,    "cosine")    /* half a cosine from lr to 0, per step */                 \
    X(MULTISTEP, "multistep") /* x gamma at each milestone */
/* clang-format on */

enum ew_schedule_kind {
#define EW_SCHEDULE_ENUM(id, name) EW_SCHEDULE_##id,
    EW_SCHEDULE_MAP(EW_SCHEDULE_ENUM)
#undef EW_SCHEDULE_ENUM
        EW_SCHEDULE_COUNT
};

extern const char *const ew_schedule_names[]; /* NULL-terminated */

struct ew_schedule {
    int kind; /* enum ew_schedule_kind */
    double lr;
    double warmup; /* epochs of linear warm-up to lr; 0: none */
    double gamma;
    int64_t every;             /* step: epochs */
    struct ew_ints milestones; /* multistep: epochs */
    int64_t epochs, steps_per_epoch;
};

/* The rate of step `step`, from 0 over all epochs. */
double ew_schedule_rate(const struct ew_schedule *s, int64_t step);

#endif
