/* SPDX-License-Identifier: Apache-2.0 */
/* --device, --precision and --fast. */
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

/* Appends the precision to the device, as backends parse it: "cuda:0,fp16". */
static ew_err join(const char *device, int precision, bool fast, char *out, size_t size)
{
    const char *name = ew_precision_names[precision];
    const char *const given = getenv("EW_DEVICE");
    device = device ? device : given && *given ? given : "cpu";
    const bool cuda = strncmp(device, "cuda", 4) == 0;
    EW_CHECK(!fast || cuda, EW_ERR_USAGE, "--fast: %s has no nondeterministic kernels", device);
    if (precision == 0) {
        snprintf(out, size, "%s%s%s", device,
                 !fast                 ? ""
                 : strchr(device, ':') ? ","
                                       : ":",
                 fast ? "fast" : "");
        return EW_OK;
    }
    EW_CHECK(cuda || strcmp(name, "fp32") == 0, EW_ERR_USAGE,
             "--precision %s: %s computes in fp32; only --device cuda has others", name, device);
    snprintf(out, size, "%s%s%s%s", device,
             !cuda                 ? ""
             : strchr(device, ':') ? ","
                                   : ":",
             cuda ? name : "", fast ? ",fast" : "");
    return EW_OK;
}

ew_err ew_device_opt_use(const char *device, int precision, bool fast)
{
    struct ew_device_found found;
    char text[256];
    EW_TRY(join(device, precision, fast, text, sizeof(text)));
    EW_TRY(ew_backend_probe(text, &found));
    EW_CHECK(setenv("EW_DEVICE", text, 1) == 0, EW_ERR_MEMORY, "--device %s: %s", text,
             strerror(errno));
    return EW_OK;
}

ew_err ew_device_choose(const struct ew_cmd_line *line)
{
    const struct ew_field *device = find(line, "device"), *precision = find(line, "precision");
    const struct ew_field *quick = find(line, "fast");
    const char *name = NULL;
    int kind = 0;
    bool fast = false;
    if (device)
        memcpy(&name, (const char *)line->opts + device->offset, sizeof(name));
    if (precision && precision->choices == ew_precision_names)
        memcpy(&kind, (const char *)line->opts + precision->offset, sizeof(kind));
    if (quick)
        memcpy(&fast, (const char *)line->opts + quick->offset, sizeof(fast));
    return name || kind || fast ? ew_device_opt_use(name, kind, fast) : EW_OK;
}
