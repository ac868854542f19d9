/* SPDX-License-Identifier: Apache-2.0 */
/* --device. */
#include "cli/device_opt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"

/* The option's text; NULL where the command has no such option, or the command line none. */
static const char *device_of(const struct ew_cmd_line *line)
{
    const struct ew_field *f = line->cmd->opts;
    while (f && f->name && strcmp(f->name, "device") != 0)
        f++;
    if (!f || !f->name)
        return NULL;
    const char *device;
    memcpy(&device, (const char *)line->opts + f->offset, sizeof(device));
    return device;
}

ew_err ew_device_choose(const struct ew_cmd_line *line)
{
    struct ew_device_found found;
    const char *device = device_of(line);
    if (!device)
        return EW_OK;
    EW_TRY(ew_backend_probe(device, &found));
    EW_CHECK(setenv("EW_DEVICE", device, 1) == 0, EW_ERR_MEMORY, "--device %s: %s", device,
             strerror(errno));
    return EW_OK;
}
