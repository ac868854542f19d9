/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as a packed data set, unchanged and with all checksums corrected, which would
 * otherwise reject nearly everything. */
#include "base/hash.h"
#include "base/mem.h"
#include "data/packed.h"
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend_samples(uint8_t *b, size_t size, uint64_t at, uint64_t names)
{
    for (; at + EW_PACK_ENTRY <= names; at += EW_PACK_ENTRY) {
        const uint64_t from = ew_get_le(b + at, 8), n = ew_get_le(b + at + 8, 4);
        if (from <= size && n <= size - from)
            ew_put_le(b + at + 24, ew_hash_of(b + from, (size_t)n), 8);
    }
}

static void mend(uint8_t *b, size_t size)
{
    if (size < EW_PACK_HEADER)
        return;
    memcpy(b, EW_PACK_MAGIC, 8);
    ew_put_le(b + 8, EW_PACK_VERSION, 4);
    const uint64_t at = ew_get_le(b + 56, 8), names = ew_get_le(b + 64, 8);
    if (at >= EW_PACK_HEADER && at <= names && names <= size) {
        mend_samples(b, size, at, names);
        ew_put_le(b + 72, size - names, 8);
        ew_put_le(b + 88, ew_hash_of(b + at, (size_t)(size - at)), 8);
    }
    ew_put_le(b + 80, size, 8);
    ew_put_le(b + 120, ew_hash_of(b, 120), 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ew_fuzz_file("set.ewpack", data, size);
    ew_fuzz_read(ew_fuzz_path("set.ewpack"));
    EW_CLEANUP(ew_free_ptr) uint8_t *b = malloc(size + 1);
    if (!b)
        return 0;
    if (size)
        memcpy(b, data, size);
    mend(b, size);
    ew_fuzz_file("set.ewpack", b, size);
    ew_fuzz_read(ew_fuzz_path("set.ewpack"));
    return 0;
}
