/* SPDX-License-Identifier: Apache-2.0 */
/* Devices for programs (edgewise_device.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/num.h"
#include "edgewise_device.h"

EW_API ew_err ew_device_at(int i, struct ew_device *out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    struct ew_device_found found;
    EW_CHECK(out->size == sizeof(*out), EW_ERR_ARG,
             "the device is %zu bytes, this library gives %zu", out->size, sizeof(*out));
    EW_CHECK(i >= 0 && ew_backend_find(i, &found), EW_ERR_NOT_FOUND, "there is no device %d", i);
    *out = (struct ew_device){.size = sizeof(*out),
                              .memory_bytes = (int64_t)found.memory_bytes,
                              .emulated = found.emulated};
    snprintf(out->id, sizeof(out->id), "%s", found.device);
    snprintf(out->backend, sizeof(out->backend), "%s", found.backend);
    snprintf(out->name, sizeof(out->name), "%s", found.name);
    snprintf(out->target, sizeof(out->target), "%s", found.target);
    snprintf(out->why, sizeof(out->why), "%s", found.why);
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
