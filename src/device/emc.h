/* SPDX-License-Identifier: Apache-2.0 */
/* Files in which Jetsons report the memory clock (EMC): the first readable one counts. */
#ifndef EW_DEVICE_EMC_H
#define EW_DEVICE_EMC_H

static const char *const ew_emc_paths[] = {
    "sys/kernel/debug/bpmp/debug/clk/emc/rate",
    "sys/class/devfreq/bwmgr/cur_freq",
    "sys/kernel/debug/clk/override.emc/clk_rate",
    "sys/kernel/debug/clk/emc/clk_rate",
};

#endif
