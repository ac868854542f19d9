/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel table of one instruction set. */
#include "backend/cpu/kernel/common/vec.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

extern const struct ew_kernels EW_K(kernels);

const struct ew_kernels EW_K(kernels) = {.isa = TEXT(EW_ISA),
                                         .lanes = LANES,
#define EW_KERNEL_ROW(ret, name, args) .name = EW_KF(name),
                                         EW_KERNEL_MAP(EW_KERNEL_ROW)
                                             EW_TENSOR_KERNEL_MAP(EW_KERNEL_ROW)
#undef EW_KERNEL_ROW
#define EW_KERNEL_ROW(ret, name, args) .name = EW_K(name),
                                                 EW_INT8_KERNEL_MAP(EW_KERNEL_ROW)
#undef EW_KERNEL_ROW
};
