/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as a PNG or JPEG image. */
#include <stdint.h>
#include <stdlib.h>

#include "data/image_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int channels = 1; channels <= 3; channels += 2) {
        struct ew_arena a;
        ew_arena_init(&a);
        struct ew_tensor t;
        if (ew_image_decode(data, size, "fuzz", channels, &a, &t) == EW_ERR_MEMORY)
            abort();
        ew_arena_fini(&a);
    }
    return 0;
}
