/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as an ONNX model.  Accepted models must also plan and clone; small ones are
 * run in all configurations, which must agree. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "all_configs.h"
#include "ew_test.h"
#include "format/onnx_import.h"
#include "plan/plan.h"

#define MEMORY ((size_t)1 << 30) /* far more than any file of the corpus needs */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef __SANITIZE_ADDRESS__
#define EW_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EW_ASAN 1
#endif
#endif

/* Unbounded memory must show as a failure: by the sanitizer's limits (for gcc set by CTest), or the
 * system's. */
#if defined(EW_ASAN) && defined(__clang__)
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=1024:hard_rss_limit_mb=2048:allocator_may_return_null=0";
}
#endif

static void limit_memory(void)
{
#ifndef EW_ASAN
    const struct rlimit most = {MEMORY, MEMORY};
    setrlimit(RLIMIT_AS, &most);
#endif
}

/* A file may be refused for any reason except these. */
static void check(ew_err e)
{
    if (e != EW_ERR_INTERNAL && e != EW_ERR_MEMORY)
        return;
    fprintf(stderr, "%s\n", ew_error_message());
    abort();
}

static void use(struct ew_graph *g)
{
    struct ew_plan *p;
    struct ew_graph *copy;
    ew_err e = ew_plan_compile(g, &(struct ew_plan_opts){.dry = true}, &p);
    check(e);
    if (e == EW_OK)
        ew_plan_free(p);
    e = ew_graph_clone(g, &copy);
    check(e);
    if (e == EW_OK)
        ew_graph_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool limited;
    if (!limited)
        limit_memory();
    limited = true;
    struct ew_graph *g;
    const ew_err e = ew_onnx_parse(data, size, "fuzz.onnx", NULL, &g);
    check(e);
    if (e == EW_OK) {
        use(g);
        if (ew_run_all_configs_small(g) != EW_OK) {
            fprintf(stderr, "%s\n", ew_error_message());
            abort();
        }
        ew_graph_free(g);
    }
    return 0;
}
