/* SPDX-License-Identifier: Apache-2.0 */
/* Boards and sensor values as text and as JSON. */
#include "cli/board_text.h"

#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "device/power.h"

/* Bytes in the largest unit with a value of at least 1. */
static void bytes_text(double v, const char *per, char out[EW_VALUE_CHARS])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    while (fabs(v) >= 1024 && i + 1 < EW_COUNT(units)) {
        v /= 1024;
        i++;
    }
    snprintf(out, EW_VALUE_CHARS, "%.*f %s%s", i ? 1 : 0, v, units[i], per);
}

void ew_value_text(enum ew_quantity q, struct ew_sample_value v, char out[EW_VALUE_CHARS])
{
    static const int decimals[EW_QUANTITY_N] = {
        [EW_QUANTITY_LOAD] = 0,   [EW_QUANTITY_FREQ] = 0,    [EW_QUANTITY_POWER] = 3,
        [EW_QUANTITY_ENERGY] = 3, [EW_QUANTITY_VOLTAGE] = 3, [EW_QUANTITY_CURRENT] = 3,
        [EW_QUANTITY_TEMP] = 1,   [EW_QUANTITY_OPS] = 0,     [EW_QUANTITY_SHARE] = 1,
    };
    if (!ew_sample_value_is(v)) {
        snprintf(out, EW_VALUE_CHARS, "-");
    } else if (q == EW_QUANTITY_BYTES || q == EW_QUANTITY_RATE) {
        bytes_text(v.v, q == EW_QUANTITY_RATE ? "/s" : "", out);
    } else {
        const char *unit = ew_quantity_unit(q);
        snprintf(out, EW_VALUE_CHARS, "%.*f%s%s", decimals[q], v.v, unit[0] ? " " : "", unit);
    }
}

void ew_board_recover(const struct ew_board *b)
{
    int n;
    if (ew_power_recover(&b->root, &n) != EW_OK)
        EW_WARN("%s", ew_error_message());
    else if (n)
        EW_WARN("restored %d settings that a killed run had left changed", n);
}

void ew_board_print_head(const struct ew_board *b)
{
    const struct ew_board_id *id = &b->id;
    printf("board   %s", id->model ? id->model : "unknown");
    if (id->virtual_machine)
        printf(" (virtual machine)");
    printf("\n        profile %s", b->profile ? b->profile->name : "none");
    if (id->release)
        printf(", L4T %s (JetPack %d)", id->release, id->jetpack);
    if (id->kernel)
        printf(", Linux %s", id->kernel);
    printf("\ncpu     %s", id->cpu ? id->cpu : "unknown");
    if (id->cores)
        printf(", %d of %d cores on", id->online, id->cores);
    printf("\npower   %s", b->total.rails);
    if (b->total.power >= 0)
        printf("\n        covers %s", b->total.covers);
    printf("\n");
}

void ew_board_json_head(struct ew_json *j, const struct ew_board *b)
{
    ew_json_object(j, "board");
    ew_json_str(j, "model", b->id.model);
    ew_json_str(j, "compatible", b->id.compatible);
    ew_json_str(j, "profile", b->profile ? b->profile->name : NULL);
    ew_json_str(j, "l4t", b->id.release);
    if (b->id.jetpack)
        ew_json_int(j, "jetpack", b->id.jetpack);
    else
        ew_json_null(j, "jetpack");
    ew_json_str(j, "cpu", b->id.cpu);
    ew_json_int(j, "cores", b->id.cores);
    ew_json_int(j, "cores_online", b->id.online);
    ew_json_str(j, "kernel", b->id.kernel);
    ew_json_bool(j, "virtual_machine", b->id.virtual_machine);
    ew_json_end(j);
    ew_json_object(j, "power_total");
    ew_json_str(j, "rails", b->total.power >= 0 ? b->total.rails : NULL);
    ew_json_str(j, "covers", b->total.power >= 0 ? b->total.covers : NULL);
    ew_json_str(j, "absent", b->total.power >= 0 ? NULL : b->total.rails);
    ew_json_end(j);
}

void ew_value_json(struct ew_json *j, const char *key, struct ew_sample_value v)
{
    if (ew_sample_value_is(v))
        ew_json_num(j, key, v.v);
    else
        ew_json_null(j, key);
}

void ew_channel_json(struct ew_json *j, const struct ew_channel *c, struct ew_sample_value v)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "name", c->name);
    ew_value_json(j, "value", v);
    ew_json_str(j, "absent", ew_sample_value_is(v) ? NULL : ew_absent_text(v.absent));
    ew_json_str(j, "unit", ew_quantity_unit(c->quantity));
    ew_json_str(j, "quality", ew_quality_name(c->quality));
    ew_json_num(j, "resolution", c->resolution);
    ew_json_str(j, "source", c->source);
    ew_json_end(j);
}
