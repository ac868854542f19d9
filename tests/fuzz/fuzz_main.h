/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target without libFuzzer. */
#ifndef EW_TESTS_FUZZ_MAIN_H
#define EW_TESTS_FUZZ_MAIN_H

#include <stddef.h>
#include <stdint.h>

typedef int ew_fuzz_target(const uint8_t *data, size_t size);

/* The main function of fuzz targets; arguments are described in fuzz_main.c. */
int ew_fuzz_main(int argc, char **argv, ew_fuzz_target *target);

#endif
