/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as an XIR graph.  Accepted ones must plan, and small ones must give the same
 * result in all configurations. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "all_configs.h"
#include "ew_test.h"
#include "format/xir.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file may be refused for any reason except these. */
static void check(ew_err e)
{
    if (e != EW_ERR_INTERNAL && e != EW_ERR_MEMORY)
        return;
    fprintf(stderr, "%s\n", ew_error_message());
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_graph *g;
    struct ew_plan *p;
    ew_err e = ew_xir_parse(data, size, "fuzz.xmodel", &g);
    check(e);
    if (e != EW_OK)
        return 0;
    e = ew_plan_compile(g, &(struct ew_plan_opts){.dry = true}, &p);
    check(e);
    if (e == EW_OK)
        ew_plan_free(p);
    if (ew_run_all_configs_small(g) != EW_OK) {
        fprintf(stderr, "%s\n", ew_error_message());
        abort();
    }
    ew_graph_free(g);
    return 0;
}
