/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as a tar file, plain or gzip, as source of a data set. */
#include "data/unpack.h"
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const wanted[] = {"a.bin", "b.bin", NULL};
    int found = 0;
    ew_fuzz_file("archive", data, size);
    ew_fuzz_file("out/mark", "", 0);
    (void)ew_unpack_tar(ew_fuzz_path("archive"), wanted, ew_fuzz_path("out"), &found);
    return 0;
}
