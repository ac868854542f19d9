/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as an .npy array. */
#include <stdint.h>
#include <stdlib.h>

#include "format/tensor_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_arena a;
    ew_arena_init(&a);
    struct ew_tensor t;
    const ew_err e = ew_npy_read(data, size, "fuzz.npy", &a, &t);
    if (e == EW_OK && ew_tensor_count(&t) > 0)
        (void)ew_tensor_get(&t, ew_tensor_count(&t) - 1);
    if (e == EW_ERR_MEMORY || a.used > 4 * size + 64)
        abort(); /* allocates more than the file contains */
    ew_arena_fini(&a);
    return 0;
}
