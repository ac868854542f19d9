/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as a binary file of CIFAR-10, and of CIFAR-100. */
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ew_fuzz_file("ten/data_batch_1.bin", data, size);
    ew_fuzz_read(ew_fuzz_path("ten"));
    ew_fuzz_file("hundred/train.bin", data, size);
    ew_fuzz_read(ew_fuzz_path("hundred"));
    return 0;
}
