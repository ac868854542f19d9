/* SPDX-License-Identifier: Apache-2.0 */
/* --device and --precision. */
#include "cli/device_opt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"

const char *const ew_precision_names[] = {"default", "fp32", "tf32", "bf16", "fp16", NULL};

/* The option of the command, or NULL. */
static const struct ew_field *find(const struct ew_cmd_line *line, const char *name)
{
    const struct ew_field *f = line->cmd->opts;
    while (f && f->name && strcmp(f->name, name) != 0)
        f++;
    return f && f->name ? f : NULL;
}

/* The device with the precision behind it, as backends read it: "cuda:0,fp16". */
static ew_err join(const char *device, int precision, char *out, size_t size)
{
    const char *name = ew_precision_names[precision];
    const char *const given = getenv("EW_DEVICE");
    device = device ? device : given && *given ? given : "cpu";
    if (precision == 0) {
        snprintf(out, size, "%s", device);
        return EW_OK;
    }
    EW_CHECK(strncmp(device, "cuda", 4) == 0 || strcmp(name, "fp32") == 0, EW_ERR_USAGE,
             "--precision %s: %s computes in fp32; only --device cuda has others", name, device);
    const bool cuda = strncmp(device, "cuda", 4) == 0;
    snprintf(out, size, "%s%s%s", device,
             !cuda                 ? ""
             : strchr(device, ':') ? ","
                                   : ":",
             cuda ? name : "");
    return EW_OK;
}

ew_err ew_device_choose(const struct ew_cmd_line *line)
{
    struct ew_device_found found;
    const struct ew_field *device = find(line, "device"), *precision = find(line, "precision");
    const char *name = NULL;
    int kind = 0;
    if (device)
        memcpy(&name, (const char *)line->opts + device->offset, sizeof(name));
    if (precision && precision->choices == ew_precision_names)
        memcpy(&kind, (const char *)line->opts + precision->offset, sizeof(kind));
    if (!name && kind == 0)
        return EW_OK;
    char text[256];
    EW_TRY(join(name, kind, text, sizeof(text)));
    EW_TRY(ew_backend_probe(text, &found));
    EW_CHECK(setenv("EW_DEVICE", text, 1) == 0, EW_ERR_MEMORY, "--device %s: %s", text,
             strerror(errno));
    return EW_OK;
}
