/* SPDX-License-Identifier: Apache-2.0 */
/* `predict --network` and `predict --check` on a store of benches: networks, batches, widths and
 * threads that were never run here. */
#ifndef EW_CLI_PREDICT_WORK_H
#define EW_CLI_PREDICT_WORK_H

#include "cli/cmd.h"
#include "network/network.h"

struct ew_work_opts {
    const char *store; /* NULL: a first guess by the board's model */
    const char *board; /* to guess for; NULL: none */
    const char *network;
    struct ew_network_opts net;
    int64_t threads; /* 0: all of the machine */
    bool train;
};

ew_err ew_predict_work(const struct ew_work_opts *o, bool json);

/* Fits to a third of the store's benches and predicts the others. */
ew_err ew_predict_work_check(const char *store, bool json);

#endif
