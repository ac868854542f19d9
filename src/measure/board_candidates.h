/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated boards as configurations to choose from. */
#ifndef EW_MEASURE_BOARD_CANDIDATES_H
#define EW_MEASURE_BOARD_CANDIDATES_H

#include "advise/recommend.h"
#include "device/profile.h"
#include "network/network.h"

struct ew_board_space {
    const char *names; /* comma-separated; "boards": all that have a model */
    const char *network;
    struct ew_network_opts net;
    bool train;
};

/* Every board in its named modes and in up to EW_BOARD_MODES others, as candidates: predicted time
 * and power with intervals, memory, and price if known. */
#define EW_BOARD_MODES 2000
ew_err ew_candidates_of_boards(struct ew_arena *a, const struct ew_board_space *o,
                               struct ew_candidate **out, int *n);

#endif
