/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as an engine file.  Checksums and machine are corrected first, otherwise
 * nothing behind them would be reached; small engines are run, and their graphs in all other
 * configurations. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "all_configs.h"
#include "backend/backend.h"
#include "base/hash.h"
#include "engine/engine.h"
#include "format/engine_layout.h"

#define SMALL_BYTES ((int64_t)1 << 20)
#define SMALL_FLOPS ((int64_t)1 << 22)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(ew_err e)
{
    if (e != EW_ERR_INTERNAL && e != EW_ERR_MEMORY)
        return;
    fprintf(stderr, "%s\n", ew_error_message());
    abort();
}

static uint64_t get(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static void put(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

/* A page-aligned copy, with size and checksums corrected if the sections are within it. */
static uint8_t *mend(const uint8_t *data, size_t size)
{
    void *copy = NULL;
    if (ew_aligned_new(size, &copy) != EW_OK)
        return NULL;
    uint8_t *p = copy;
    if (size)
        memcpy(p, data, size);
    if (size < EW_ENGINE_HEAD + 8)
        return p;
    uint8_t *last = p + 8 * (4 + 3 * EW_ENGINE_WEIGHTS);
    put(p + 16, size);
    if (get(last) <= size)
        put(last + 8, size - get(last));
    for (int i = 0; i < EW_ENGINE_SECTIONS; i++) {
        uint8_t *s = p + 8 * (4 + 3 * i);
        const uint64_t offset = get(s), bytes = get(s + 8);
        if (offset <= size && bytes <= size - offset)
            put(s + 16, i == EW_ENGINE_PLAN ? ew_hash_of(p + offset, bytes)
                                            : ew_hash_wide_of(p + offset, bytes));
    }
    put(p + EW_ENGINE_HEAD, ew_hash_of(p, EW_ENGINE_HEAD));
    return p;
}

static void run_small(const struct ew_engine *e)
{
    struct ew_cost cost;
    if (ew_graph_cost(e->file.graph, &cost, NULL) != EW_OK ||
        e->block_bytes > (size_t)SMALL_BYTES || cost.flops < 0 || cost.flops > SMALL_FLOPS)
        return;
    struct ew_context *c = NULL;
    const ew_err err = ew_context_new(e, 1, &c);
    check(err);
    if (err == EW_OK)
        check(ew_context_run(c));
    if (err == EW_OK && ew_context_set_batch(c, e->file.card.batch_max) == EW_OK &&
        e->file.card.batch_max < 8)
        check(ew_context_run(c));
    ew_context_free(c);
    /* Omitted weights exist only in packed form. */
    if (!e->file.absent && ew_run_all_configs_small(e->file.graph) != EW_OK) {
        fprintf(stderr, "%s\n", ew_error_message());
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_engine_file file;
    struct ew_engine *e = NULL;
    struct ew_device_found here;
    uint8_t *bytes = mend(data, size);
    ew_err err = bytes ? ew_engine_file_parse(bytes, size, "fuzz.ewe", &file) : EW_ERR_ARG;
    check(err);
    if (err == EW_OK && ew_backend_probe(NULL, &here) == EW_OK) {
        file.card.arch = ew_engine_arch();
        file.card.isa = here.target;
        file.card.kernels = here.kernels;
        file.card.threads = 1;
        err = ew_engine_take(&file, "fuzz.ewe", &e);
        check(err);
        if (err == EW_OK)
            run_small(e);
        ew_engine_free(err == EW_OK ? e : NULL);
    }
    free(bytes);
    return 0;
}
