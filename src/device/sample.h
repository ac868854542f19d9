/* SPDX-License-Identifier: Apache-2.0 */
/* What a board can tell: channels, and one value of each.  A value that is not there is absent
 * with a reason; it is never 0. */
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

/* Why a value is not there. */
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

/* One thing that is measured.  Made when a board is opened, constant after that. */
struct ew_channel {
    const char *name; /* "cpu0.load", "power.VDD_IN": unique on a board, kept from run to run */
    enum ew_quantity quantity;
    enum ew_quality quality;
    const char *source; /* file or interface */
    double resolution;  /* smallest step in the quantity's unit; 0: not known */
};

struct ew_sample_value {
    double v;
    enum ew_absent absent; /* EW_ABSENT_NOT: v holds */
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

/* Growth of a counter since `*last` as a rate per second; absent where it went back, stood still or
 * has no reading before.  `*last` and `*last_ns` are brought up to date. */
struct ew_counter {
    double value;
    int64_t ns; /* 0: no reading yet */
};
struct ew_sample_value ew_counter_rate(struct ew_counter *c, double value, int64_t now_ns);

#endif
