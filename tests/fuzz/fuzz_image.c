/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as a PNG or JPEG image. */
#include <stdint.h>
#include <stdlib.h>

#include "data/image_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int channels = 1; channels <= 3; channels += 2) {
        struct ew_bytes pixels = {0};
        void *kept = NULL;
        int64_t shape[3];
        if (ew_image_decode_here(data, size, channels, &kept, &pixels, shape) == EW_ERR_MEMORY)
            abort();
        ew_image_kept_free(kept);
        free(pixels.at);
    }
    return 0;
}
