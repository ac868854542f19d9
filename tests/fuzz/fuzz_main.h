/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target where there is no libFuzzer. */
#ifndef EW_TESTS_FUZZ_MAIN_H
#define EW_TESTS_FUZZ_MAIN_H

#include <stddef.h>
#include <stdint.h>

typedef int ew_fuzz_target(const uint8_t *data, size_t size);

/* The main of every target's program; fuzz_main.c says what its arguments are. */
int ew_fuzz_main(int argc, char **argv, ew_fuzz_target *target);

#endif
