/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise devices: what can run networks here. */
#include <stdio.h>

#include "backend/backend.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/cmd.h"
#include "report/text_table.h"

static ew_err print_text(void)
{
    static const char *const head[] = {"device", "name", "kernels for", "memory", "what"};
    struct ew_device_found d;
    struct ew_table t;
    char bytes[EW_TEXT_CHARS];
    ew_table_init(&t, "lllrl");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; ew_backend_find(i, &d); i++) {
        if (!*d.device)
            continue;
        ew_table_cell(&t, "%s", d.device);
        ew_table_cell(&t, "%s", d.name);
        ew_table_cell(&t, "%s", d.target);
        ew_table_cell(&t, "%s",
                      d.memory_bytes ? ew_text_bytes((int64_t)d.memory_bytes, bytes) : "");
        ew_table_cell(&t, "%s", d.help);
    }
    EW_TRY(ew_table_print(&t, stdout));
    for (int i = 0; ew_backend_find(i, &d); i++)
        if (!*d.device)
            printf("no %s (%s): %s\n", d.backend, d.help, d.why);
    return EW_OK;
}

static ew_err print_json(void)
{
    struct ew_device_found d;
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    for (int i = 0; ew_backend_find(i, &d); i++) {
        ew_json_object(&j, NULL);
        ew_json_str(&j, "backend", d.backend);
        ew_json_str(&j, "help", d.help);
        ew_json_bool(&j, "available", *d.device != 0);
        ew_json_str(&j, "device", *d.device ? d.device : NULL);
        ew_json_str(&j, "name", *d.name ? d.name : NULL);
        ew_json_str(&j, "target", *d.target ? d.target : NULL);
        ew_json_int(&j, "memory_bytes", (int64_t)d.memory_bytes);
        ew_json_bool(&j, "emulated", d.emulated);
        ew_json_str(&j, "why", *d.why ? d.why : NULL);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err run(struct ew_cmd_call *c)
{
    return c->json ? print_json() : print_text();
}

const struct ew_cmd ew_cmd_devices = {
    .name = "devices",
    .group = EW_CMD_MEASURE,
    .summary = "list the devices that can run networks here",
    .about = "Each line is a device for --device of run, bench, train, eval, quantize, compile and "
             "demo.\n"
             "Device types that this build or this machine lacks follow, with the reason.",
    .examples = "devices\n"
                "devices --json",
    .run = run,
};
