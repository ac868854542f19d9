/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise version: version, build options and libraries. */
#include <stdio.h>

#include "base/json.h"
#include "cli/cmd.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#if defined(__x86_64__)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "other"
#endif

static ew_err run(struct ew_cmd_call *c)
{
    if (!c->json) {
        printf("edgewise %s (%s, %s)\n", ew_version(), MACHINE, COMPILER);
        return EW_OK;
    }
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "version", ew_version());
    ew_json_str(&j, "machine", MACHINE);
    ew_json_str(&j, "compiler", COMPILER);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

const struct ew_cmd ew_cmd_version = {
    .name = "version",
    .group = EW_CMD_GENERAL,
    .summary = "version and build of this program",
    .run = run,
};
