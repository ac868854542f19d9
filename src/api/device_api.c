/* SPDX-License-Identifier: Apache-2.0 */
/* Devices for programs (edgewise_device.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/num.h"
#include "base/sized.h"
#include "edgewise_device.h"

EW_API ew_err ew_device_at(int i, struct ew_device *out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    struct ew_device_found found;
    EW_TRY(ew_sized_check(out));
    EW_CHECK(i >= 0 && ew_backend_find(i, &found), EW_ERR_NOT_FOUND, "there is no device %d", i);
    struct ew_device d = {.memory_bytes = (int64_t)found.memory_bytes, .emulated = found.emulated};
    snprintf(d.id, sizeof(d.id), "%s", found.device);
    snprintf(d.backend, sizeof(d.backend), "%s", found.backend);
    snprintf(d.name, sizeof(d.name), "%s", found.name);
    snprintf(d.target, sizeof(d.target), "%s", found.target);
    snprintf(d.why, sizeof(d.why), "%s", found.why);
    ew_sized_export(&d, sizeof(d), out);
    return EW_OK;
}

EW_API ew_err ew_device_use(const char *id)
{
    EW_C_LOCALE;
    EW_NEED(id);
    struct ew_device_found found;
    EW_TRY(ew_backend_probe(id, &found));
    EW_CHECK(setenv("EW_DEVICE", id, 1) == 0, EW_ERR_MEMORY, "EW_DEVICE: %s", strerror(errno));
    return EW_OK;
}
