/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements from a store instead of a CSV file. */
#ifndef EW_ADVISE_STORE_MEASURED_STORE_H
#define EW_ADVISE_STORE_MEASURED_STORE_H

#include "advise/measured.h"
#include "device/profile.h"

/* Every finished run that has a time: of an epoch, or the median of a bench.  Runs in power modes
 * (of the board, of the options, simulated) make workloads by network, command and settings; where
 * there are none, each run is a configuration of its network. */
ew_err ew_measured_from_store(struct ew_arena *a, const char *path, const struct ew_profile *list,
                              int n_list, struct ew_measured *out);

#endif
