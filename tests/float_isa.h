/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets that tests of float kernels iterate over. */
#ifndef EW_TEST_FLOAT_ISA_H
#define EW_TEST_FLOAT_ISA_H

#include "backend/cpu/isa.h"

/* The i-th instruction set of this machine that has its own float kernels, or NULL.  Extensions for
 * integers only (VNNI, dot product) are skipped: they use the float kernels of the set that they
 * extend. */
const struct ew_kernels *ew_float_isa_at(int i);

#endif
