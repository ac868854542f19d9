/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of an MPI launcher (mpirun, srun), and messages between them.
 *
 * Sums have a fixed order, rank 0 first, whatever MPI does: pieces go to the rank that adds them,
 * and the sums to all.  So the same number of ranks gives the same bits, on all ranks. */
#ifndef EW_TRAIN_RANKS_H
#define EW_TRAIN_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define EW_RANK_NAME 96

struct ew_ranks;

/* True if a launcher has started several processes, by its environment variables. */
bool ew_ranks_launched(void);

/* Joins the other ranks (collective).  Fails if the MPI module is missing. */
ew_err ew_ranks_open(struct ew_ranks **out);
/* Leaves; `well` false: aborts the other ranks, which would wait forever.  NULL is fine. */
void ew_ranks_close(struct ew_ranks *r, bool well);

int ew_ranks_rank(const struct ew_ranks *r); /* 0 where r is NULL */
int ew_ranks_size(const struct ew_ranks *r); /* 1 where r is NULL */
/* "rank 1 (node7, process 4711)". */
const char *ew_ranks_name(const struct ew_ranks *r, int rank);

/* Makes waits poll *stop: when it becomes true, they fail with an error that names ranks of this
 * machine that have died.  NULL: no polling. */
void ew_ranks_watch(struct ew_ranks *r, const volatile int *stop);

/* All-gather: the bytes of all ranks, in rank order. */
ew_err ew_ranks_allgather(struct ew_ranks *r, const void *in, void *out, size_t bytes);

/* A non-blocking message. */
struct ew_message {
    void *request; /* NULL: none */
};

/* Starts an all-to-all (the i-th `bytes` of `in` go to rank i) or an all-gather (`in` goes to all).
 * The memory must not change until the message has ended.  All ranks must start messages of a
 * communicator in the same order. */
ew_err ew_ranks_ialltoall(struct ew_ranks *r, const void *in, void *out, size_t bytes,
                          struct ew_message *m);
ew_err ew_ranks_iallgather(struct ew_ranks *r, const void *in, void *out, size_t bytes,
                           struct ew_message *m);
ew_err ew_ranks_wait(struct ew_ranks *r, struct ew_message *m); /* until it has ended */
ew_err ew_ranks_test(struct ew_ranks *r, struct ew_message *m); /* progresses it and returns */

/* Blocking all-gather on a communicator of its own: independent of the order of other messages. */
ew_err ew_ranks_allgather_own_comm(struct ew_ranks *r, const void *in, void *out, size_t bytes);

/* Fails if `bytes` differ between ranks; the message names the first that differs. */
ew_err ew_ranks_agree(struct ew_ranks *r, const void *bytes, size_t size, const char *what);

#endif
