/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as a checkpoint.  Its checksum is corrected first, otherwise nothing behind it
 * would be reached.  Small graphs are run in all configurations, which must agree. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "all_configs.h"
#include "base/hash.h"
#include "format/checkpoint.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(ew_err e)
{
    if (e != EW_ERR_INTERNAL && e != EW_ERR_MEMORY)
        return;
    fprintf(stderr, "%s\n", ew_error_message());
    abort();
}

static uint8_t *with_sum(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        return NULL;
    memcpy(copy, data, size);
    if (size < 8)
        return copy;
    const uint64_t sum = ew_hash_of(copy, size - 8);
    for (int i = 0; i < 8; i++)
        copy[size - 8 + (size_t)i] = (uint8_t)(sum >> (8 * i));
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_checkpoint c;
    uint8_t *bytes = with_sum(data, size);
    const ew_err e = bytes ? ew_checkpoint_parse(bytes, size, "fuzz.ckpt", &c) : EW_ERR_ARG;
    check(e);
    if (e == EW_OK) {
        struct ew_plan *p;
        const ew_err planned = ew_plan_compile(c.graph, &(struct ew_plan_opts){.dry = true}, &p);
        check(planned);
        if (planned == EW_OK)
            ew_plan_free(p);
        if (ew_run_all_configs_small(c.graph) != EW_OK) {
            fprintf(stderr, "%s\n", ew_error_message());
            abort();
        }
        ew_checkpoint_fini(&c);
    }
    free(bytes);
    return 0;
}
