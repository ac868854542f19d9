/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a Raspberry Pi 5's firmware to "pmic_read_adc". */
#ifndef EW_DEVICE_PMIC_H
#define EW_DEVICE_PMIC_H

#include "base/rootfs.h"
#include "device/sample.h"

#define EW_PMIC_BYTES    1025
#define EW_PMIC_CAPTURED "captured/pmic_read_adc"

/* Asks through /dev/vcio, or reads a captured board's answer. */
enum ew_absent ew_pmic_ask(const struct ew_root *root, bool captured, char answer[EW_PMIC_BYTES]);

#endif
