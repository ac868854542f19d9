/* SPDX-License-Identifier: Apache-2.0 */
/* The MPI module, for the MPI library that it was built with. */
#include "train/mpi/mpi_calls.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* One for each kind of message, since collectives are ordered within a communicator. */
static MPI_Comm comms[EW_MPI_COMMS];

static int start(int *rank, int *size)
{
    int given, code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < EW_MPI_COMMS && code == MPI_SUCCESS; i++)
        code = MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(MPI_COMM_WORLD, rank);
    return code == MPI_SUCCESS ? MPI_Comm_size(MPI_COMM_WORLD, size) : code;
}

static int stop(void)
{
    for (int i = 0; i < EW_MPI_COMMS; i++)
        MPI_Comm_free(&comms[i]);
    return MPI_Finalize();
}

static void abort_all(int status)
{
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void error_text(int code, char *out, int size)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    snprintf(out, (size_t)size, "%s", text);
}

/* MPI counts are int: large messages are counted in a larger unit that divides their size. */
#define UNIT 64

static int counted(int64_t bytes, MPI_Datatype *type, int *count)
{
    const int unit = bytes > INT_MAX && bytes % UNIT == 0 ? UNIT : 1;
    *count = (int)(bytes / unit);
    *type = MPI_BYTE;
    if (bytes / unit > INT_MAX)
        return MPI_ERR_COUNT;
    if (unit == 1)
        return MPI_SUCCESS;
    const int code = MPI_Type_contiguous(unit, MPI_BYTE, type);
    return code == MPI_SUCCESS ? MPI_Type_commit(type) : code;
}

static int allgather(const void *in, void *out, int64_t bytes)
{
    return bytes > INT_MAX
               ? MPI_ERR_COUNT
               : MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* Frees a datatype, which MPI keeps until the message has ended. */
static int release(MPI_Datatype type, int code)
{
    MPI_Datatype own = type;
    if (type != MPI_BYTE)
        MPI_Type_free(&own);
    return code;
}

static int begin(int (*call)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm,
                             MPI_Request *),
                 int comm, const void *in, void *out, int64_t bytes, void **request)
{
    MPI_Datatype type;
    int count, code = counted(bytes, &type, &count);
    MPI_Request *r = malloc(sizeof(*r));
    if (code == MPI_SUCCESS && !r)
        code = MPI_ERR_NO_MEM;
    if (code == MPI_SUCCESS)
        code = release(type, call(in, count, type, out, count, type, comms[comm], r));
    if (code != MPI_SUCCESS) {
        free(r);
        r = NULL;
    }
    *request = r;
    return code;
}

static int iallgather(int comm, const void *in, void *out, int64_t bytes, void **request)
{
    return begin(MPI_Iallgather, comm, in, out, bytes, request);
}

static int ialltoall(int comm, const void *in, void *out, int64_t bytes, void **request)
{
    return begin(MPI_Ialltoall, comm, in, out, bytes, request);
}

static int test(void **request, int *done)
{
    *done = 1;
    if (!*request)
        return MPI_SUCCESS;
    MPI_Request *r = *request;
    const int code = MPI_Test(r, done, MPI_STATUS_IGNORE);
    if (*done || code != MPI_SUCCESS) {
        free(r);
        *request = NULL;
    }
    return code;
}

__attribute__((visibility("default"))) const struct ew_mpi_calls *ew_mpi_module(void)
{
    static const struct ew_mpi_calls calls = {.version = EW_MPI_VERSION,
                                              .start = start,
                                              .stop = stop,
                                              .abort = abort_all,
                                              .error_text = error_text,
                                              .allgather = allgather,
                                              .iallgather = iallgather,
                                              .ialltoall = ialltoall,
                                              .test = test};
    return &calls;
}
