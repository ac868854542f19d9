/* SPDX-License-Identifier: Apache-2.0 */
/* Names of quantities and reasons; rates of counters. */
#include "device/sample.h"

#include "base/clock.h"

const char *ew_quantity_unit(enum ew_quantity q)
{
    static const char *const units[] = {
#define EW_QUANTITY_UNIT(id, unit) unit,
        EW_QUANTITY_MAP(EW_QUANTITY_UNIT)
#undef EW_QUANTITY_UNIT
    };
    return units[q];
}

const char *ew_absent_text(enum ew_absent a)
{
    static const char *const texts[] = {
#define EW_ABSENT_TEXT(id, text) text,
        EW_ABSENT_MAP(EW_ABSENT_TEXT)
#undef EW_ABSENT_TEXT
    };
    return texts[a];
}

struct ew_sample_value ew_counter_rate(struct ew_counter *c, double value, int64_t now_ns)
{
    const struct ew_counter before = *c;
    *c = (struct ew_counter){value, now_ns};
    if (before.ns == 0 || now_ns <= before.ns)
        return ew_sample_value_absent(EW_ABSENT_FIRST);
    if (value < before.value)
        return ew_sample_value_absent(EW_ABSENT_BAD);
    const double seconds = (double)(now_ns - before.ns) / (double)EW_NS_PER_S;
    return ew_sample_value_of((value - before.value) / seconds);
}
