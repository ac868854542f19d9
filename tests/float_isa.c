/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets that tests of float kernels iterate over. */
#include "float_isa.h"

#include "backend/cpu/kernel.h"

const struct ew_kernels *ew_float_isa_at(int i)
{
    const struct ew_kernels *k;
    for (int n = 0; (k = ew_isa_at(n)); n++) {
        const struct ew_kernels *next = ew_isa_at(n + 1);
        if ((!next || next->conv_run != k->conv_run) && i-- == 0)
            return k;
    }
    return NULL;
}
