/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of libedgewise-mpi.so: the few MPI calls that ranks need, as a table, so that the
 * program does not link to MPI. */
#ifndef EW_TRAIN_MPI_CALLS_H
#define EW_TRAIN_MPI_CALLS_H

#include <stdint.h>

#define EW_MPI_VERSION 3
#define EW_MPI_MODULE  "libedgewise-mpi.so"

enum { EW_MPI_COMM_GRADIENTS, EW_MPI_COMM_SUMS, EW_MPI_COMM_STATISTICS, EW_MPI_COMMS };

/* Calls return 0 or a code for error_text.  Sizes are in bytes. */
struct ew_mpi_calls {
    int version;
    int (*start)(int *rank, int *size);
    int (*stop)(void);
    void (*abort)(int status); /* aborts all ranks */
    void (*error_text)(int code, char *out, int size);
    /* All-gather, in rank order. */
    int (*allgather)(const void *in, void *out, int64_t bytes);
    /* Non-blocking all-gather, and all-to-all (the i-th `bytes` of `in` go to rank i), until test
     * reports completion.  Messages of a communicator must be started in the same order on all
     * ranks. */
    int (*iallgather)(int comm, const void *in, void *out, int64_t bytes, void **request);
    int (*ialltoall)(int comm, const void *in, void *out, int64_t bytes, void **request);
    int (*test)(void **request, int *done); /* *request becomes NULL when it is done */
};

const struct ew_mpi_calls *ew_mpi_module(void);

#endif
