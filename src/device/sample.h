/* SPDX-License-Identifier: Apache-2.0 */
/* Channels of a board, and single values.  A missing value is absent with a reason, never 0. */
#ifndef EW_DEVICE_SAMPLE_H
#define EW_DEVICE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "record/quality.h"

/* clang-format off */
#define EW_QUANTITY_MAP(X)                                                                         \
    X(LOAD,    "%")                                                                                \
    X(FREQ,    "MHz")                                                                              \
    X(POWER,   "W")                                                                                \
    X(ENERGY,  "J")                                                                                \
    X(VOLTAGE, "V")                                                                                \
    X(CURRENT, "A")                                                                                \
    X(TEMP,    "C")                                                                                \
    X(BYTES,   "B")                                                                                \
    X(RATE,    "B/s")                                                                              \
    X(OPS,     "1/s")                                                                              \
    X(SHARE,   "%")                                                                                \
    X(FAN,     "rpm")                                                                              \
    X(COUNT,   "")                                                                                 \
    X(STATE,   "")

/* Reasons of absence. */
#define EW_ABSENT_MAP(X)                                                                           \
    X(NOT,           "")                                                                           \
    X(NO_SENSOR,     "no sensor")                                                                  \
    X(NO_PERMISSION, "no permission")                                                              \
    X(UNSUPPORTED,   "not supported")                                                              \
    X(NOT_READY,     "not ready")            /* EAGAIN: the block is powered down */               \
    X(OFF,           "switched off")                                                               \
    X(FIRST,         "needs two readings")                                                         \
    X(STILL,         "counter stands still")                                                       \
    X(BAD,           "implausible value")                                                     \
    X(LOST,          "gone")                                                                       \
    X(STALE,         "too old")
/* clang-format on */

enum ew_quantity {
#define EW_QUANTITY_ENUM(id, unit) EW_QUANTITY_##id,
    EW_QUANTITY_MAP(EW_QUANTITY_ENUM)
#undef EW_QUANTITY_ENUM
        EW_QUANTITY_N
};

enum ew_absent {
#define EW_ABSENT_ENUM(id, text) EW_ABSENT_##id,
    EW_ABSENT_MAP(EW_ABSENT_ENUM)
#undef EW_ABSENT_ENUM
        EW_ABSENT_N
};

/* A measured quantity.  Created when the board is opened, constant afterwards. */
struct ew_channel {
    const char *name; /* "cpu0.load", "power.VDD_IN": unique on a board, the same in every run */
    enum ew_quantity quantity;
    enum ew_quality quality;
    const char *source; /* file or interface */
    double resolution;  /* smallest step, in the quantity's unit; 0: not known */
};

struct ew_sample_value {
    double v;
    enum ew_absent absent; /* EW_ABSENT_NOT: v is valid */
};

static inline struct ew_sample_value ew_sample_value_of(double v)
{
    return (struct ew_sample_value){v, EW_ABSENT_NOT};
}

static inline struct ew_sample_value ew_sample_value_absent(enum ew_absent why)
{
    return (struct ew_sample_value){0, why};
}

static inline bool ew_sample_value_is(struct ew_sample_value v)
{
    return v.absent == EW_ABSENT_NOT;
}

const char *ew_quantity_unit(enum ew_quantity q);
const char *ew_absent_text(enum ew_absent a);

/* The rate of a counter per second since the last reading; absent if it went backwards, did not
 * change or has no previous reading.  Updates the counter. */
struct ew_counter {
    double value;
    int64_t ns; /* 0: no reading yet */
};
struct ew_sample_value ew_counter_rate(struct ew_counter *c, double value, int64_t now_ns);

#endif
