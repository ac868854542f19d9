/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that a launcher of MPI has started together (mpirun, srun): who we are among them,
 * and what passes between them.
 *
 * Sums have one order, rank 0's number first, whatever MPI does: pieces go to the rank that adds
 * them, and the sums to all.  So the same number of ranks gives the same bits, and all ranks have
 * the same ones. */
#ifndef EW_TRAIN_RANKS_H
#define EW_TRAIN_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define EW_RANK_NAME 96

struct ew_ranks;

/* True where a launcher has started several of us, by its environment. */
bool ew_ranks_asked(void);

/* Joins the others; all of them have to.  Fails where the module is missing. */
ew_err ew_ranks_open(struct ew_ranks **out);
/* Leaves; `well` false: the others are ended too, since they would wait for us.  NULL is fine. */
void ew_ranks_close(struct ew_ranks *r, bool well);

int ew_ranks_rank(const struct ew_ranks *r); /* 0 where r is NULL */
int ew_ranks_size(const struct ew_ranks *r); /* 1 where r is NULL */
/* "rank 1 (node7, process 4711)". */
const char *ew_ranks_name(const struct ew_ranks *r, int rank);

/* What `stop` points to is looked at while we wait: where it becomes true, waiting ends with an
 * error that names the ranks that are gone, as far as they can be seen from here.  NULL: not looked
 * at. */
void ew_ranks_watch(struct ew_ranks *r, const volatile int *stop);

/* The bytes of all ranks, one after the other. */
ew_err ew_ranks_gather(struct ew_ranks *r, const void *in, void *out, size_t bytes);

/* Messages under way. */
struct ew_message {
    void *request; /* NULL: there is none */
};

/* Begins to send the i-th `bytes` of `in` to rank i, and to get each rank's i-th into out; or all
 * of `in` to all.  The memory has to stay as it is until the message has ended.  All ranks begin
 * messages of a kind in the same order. */
ew_err ew_ranks_exchange(struct ew_ranks *r, const void *in, void *out, size_t bytes,
                         struct ew_message *m);
ew_err ew_ranks_spread(struct ew_ranks *r, const void *in, void *out, size_t bytes,
                       struct ew_message *m);
ew_err ew_ranks_wait(struct ew_ranks *r, struct ew_message *m); /* until it has ended */
ew_err ew_ranks_help(struct ew_ranks *r, struct ew_message *m); /* lets it go on, and returns */

/* The bytes of all ranks, as gather has them, at once and whatever is under way meanwhile: ranks
 * may begin other messages before it or after it. */
ew_err ew_ranks_share(struct ew_ranks *r, const void *in, void *out, size_t bytes);

/* True where `bytes` are the same on all ranks; else the message names the first that differs. */
ew_err ew_ranks_agree(struct ew_ranks *r, const void *bytes, size_t size, const char *what);

#endif
