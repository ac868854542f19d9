/* SPDX-License-Identifier: Apache-2.0 */
/* What libedgewise-mpi.so offers: the few calls of MPI that ranks need, as a table, so that nothing
 * else is linked to MPI and the program starts without it. */
#ifndef EW_TRAIN_MPI_CALLS_H
#define EW_TRAIN_MPI_CALLS_H

#include <stdint.h>

#define EW_MPI_VERSION 3
#define EW_MPI_MODULE  "libedgewise-mpi.so"

enum { EW_MPI_LANE_GRADIENTS, EW_MPI_LANE_SUMS, EW_MPI_LANE_STATISTICS, EW_MPI_LANES };

/* All return 0, or a code that error_text explains.  Sizes are bytes. */
struct ew_mpi_calls {
    int version;
    int (*start)(int *rank, int *size);
    int (*stop)(void);
    void (*abort)(int status); /* ends all ranks */
    void (*error_text)(int code, char *out, int size);
    /* Each rank's bytes, one after the other, on all ranks. */
    int (*gather_all)(const void *in, void *out, int64_t bytes);
    /* The same, and the i-th `bytes` of `in` to rank i (out: from each rank), under way until test
     * says that it is done.  Messages of one lane begin in the same order on all ranks. */
    int (*gather_begin)(int lane, const void *in, void *out, int64_t bytes, void **request);
    int (*exchange_begin)(int lane, const void *in, void *out, int64_t bytes, void **request);
    int (*test)(void **request, int *done); /* *request is NULL after it where it is done */
};

const struct ew_mpi_calls *ew_mpi_module(void);

#endif
