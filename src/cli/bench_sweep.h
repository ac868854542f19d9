/* SPDX-License-Identifier: Apache-2.0 */
/* bench --device dpu --sweep: a network on every size of DPU, number of cores, clock and memory. */
#ifndef EW_CLI_BENCH_SWEEP_H
#define EW_CLI_BENCH_SWEEP_H

#include "backend/dpu/dpu_model.h"
#include "base/json.h"
#include "cli/cmd.h"

/* All configurations with resources, latency and throughput; the Pareto-optimal ones in latency,
 * throughput and resources are marked.  `picture`: an SVG of them, or NULL. */
ew_err ew_bench_sweep(const struct ew_cmd_call *c, struct ew_dpu_net *n,
                      const struct ew_dpu_config *base, const char *picture);

/* Writes a configuration and its times as JSON members (bench_dpu.c). */
void ew_dpu_json_times(struct ew_json *j, const struct ew_dpu_config *c,
                       const struct ew_dpu_times *r);

#endif
