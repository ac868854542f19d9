/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as MNIST's files; the first two give the offset of the labels. */
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const size_t rest = size - 2, told = (size_t)data[0] << 8 | data[1];
    const size_t images = told < rest ? told : rest;
    ew_fuzz_file("set/train-images-idx3-ubyte", data + 2, images);
    ew_fuzz_file("set/train-labels-idx1-ubyte", data + 2 + images, rest - images);
    ew_fuzz_read(ew_fuzz_path("set"));
    return 0;
}
