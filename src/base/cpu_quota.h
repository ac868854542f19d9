/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU quota of control groups: a container's --cpus, a service's CPUQuota. */
#ifndef EW_BASE_CPU_QUOTA_H
#define EW_BASE_CPU_QUOTA_H

#include "base/rootfs.h"

/* CPUs that the process may use at a time by the quotas of its control groups, rounded up; INT_MAX:
 * no quota. */
int ew_cpu_quota(const struct ew_root *root);

#endif
