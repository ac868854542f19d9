/* SPDX-License-Identifier: Apache-2.0 */
/* Fans at full speed: JetPack 4 has /sys/devices/pwm-fan, later versions and PCs have hwmon.
 * Temperature control that would override the PWM value is switched off first (device/power.c has
 * the order). */
#include <stdio.h>

#include "device/powermode.h"

#define FULL "255" /* both interfaces have 8 bits */

static ew_err set_if_there(const struct ew_board *b, const char *path, const char *value,
                           struct ew_power_list *out)
{
    return ew_root_has(&b->root, path) ? ew_power_list_set(out, path, value) : EW_OK;
}

/* pwm1 to pwm9 of one hwmon device. */
static ew_err add_hwmon(const struct ew_board *b, const char *name, int *n,
                        struct ew_power_list *out)
{
    for (int i = 1; i <= 9; i++) {
        char drive[128], enable[160];
        snprintf(drive, sizeof(drive), "sys/class/hwmon/%.60s/pwm%d", name, i);
        snprintf(enable, sizeof(enable), "%s_enable", drive);
        if (!ew_root_has(&b->root, drive))
            continue;
        EW_TRY(set_if_there(b, enable, "1", out));
        EW_TRY(ew_power_list_set(out, drive, FULL));
        (*n)++;
    }
    return EW_OK;
}

ew_err ew_powermode_fan(struct ew_board *b, struct ew_power_list *out)
{
    static const char drive[] = "sys/devices/pwm-fan/target_pwm";
    const char *const *names;
    int n = 0, count = 0;
    if (ew_root_has(&b->root, drive)) {
        EW_TRY(set_if_there(b, "sys/devices/pwm-fan/temp_control", "0", out));
        EW_TRY(ew_power_list_set(out, drive, FULL));
        n++;
    }
    if (ew_root_list(&b->root, "sys/class/hwmon", &b->arena, &names, &count) == EW_OK)
        for (int i = 0; i < count; i++)
            EW_TRY(add_hwmon(b, names[i], &n, out));
    EW_CHECK(n > 0, EW_ERR_UNSUPPORTED, "no fan here whose speed can be set");
    return EW_OK;
}
