/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets that tests of float kernels walk. */
#ifndef EW_TEST_FLOAT_ISA_H
#define EW_TEST_FLOAT_ISA_H

#include "backend/cpu/isa.h"

/* The i-th of this machine with float kernels of its own, NULL beyond: one that adds something for
 * integers alone (VNNI, dot products) stands before the one whose float kernels it has. */
const struct ew_kernels *ew_float_isa_at(int i);

#endif
