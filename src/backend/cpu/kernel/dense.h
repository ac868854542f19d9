/* SPDX-License-Identifier: Apache-2.0 */
/* Small dense layers in training: how both directions are cut.
 *
 * A tile is DENSE_WIDE inputs of all images and outputs, forward and backward, so that a core meets
 * the same filters and their state at each step: they stay in its cache, and no line of them
 * crosses to another core. */
#ifndef EW_BACKEND_CPU_KERNEL_DENSE_H
#define EW_BACKEND_CPU_KERNEL_DENSE_H

#include "backend/cpu/kernel/vec.h"

#define DENSE_VECS (LANES == 8 ? 2 : 4)
#define DENSE_WIDE (DENSE_VECS * LANES)

#endif
