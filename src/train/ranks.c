/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks, through the MPI module. */
#include "train/ranks.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/library.h"
#include "base/mem.h"
#include "train/mpi/mpi_calls.h"

#define HOST_CHARS 64
#define AT_ONCE    64 /* polls of a message before yielding */
/* Open MPI sends SIGTERM when a rank has died, and SIGKILL a second later; ranks that only have to
 * finish their batch answer before this. */
#define STOP_NS 700000000

/* Identity of a rank. */
struct rank_identity {
    int64_t pid;
    char host[HOST_CHARS];
};

struct ew_ranks {
    const struct ew_mpi_calls *mpi;
    int rank, size;
    struct rank_identity *all;
    char (*names)[EW_RANK_NAME];
    const volatile int *stop;
    int64_t stop_ns; /* when a wait first saw *stop set */
};

/* Open MPI, MPICH and its kin, and any launcher that speaks PMIx. */
bool ew_ranks_launched(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"};
    for (size_t i = 0; i < EW_COUNT(sizes); i++) {
        const char *n = getenv(sizes[i]);
        if (n && atoi(n) > 1)
            return true;
    }
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
    return getenv("PMIX_RANK") && tasks && atoi(tasks) > 1;
}

static ew_err check(const struct ew_ranks *r, int code, const char *what)
{
    char text[256];
    if (code == 0)
        return EW_OK;
    r->mpi->error_text(code, text, sizeof(text));
    return ew_fail(EW_ERR_IO, "%s: %s: %s", ew_ranks_name(r, r->rank), what, text);
}

/* ---- Joining --------------------------------------------------------------------------------- */

static ew_err load(const struct ew_mpi_calls **out)
{
    void *library;
    const struct ew_mpi_calls *(*find)(void);
    EW_TRY(ew_fail_in(ew_module_open(EW_MPI_MODULE, "EDGEWISE_MPI_MODULE", &library),
                      "several ranks were started, but this program has no MPI"));
    EW_CHECK(ew_library_find(library, "ew_mpi_module", &find), EW_ERR_UNSUPPORTED,
             EW_MPI_MODULE " is not Edgewise's");
    *out = find();
    EW_CHECK((*out)->version == EW_MPI_VERSION, EW_ERR_UNSUPPORTED,
             EW_MPI_MODULE " is of another version of Edgewise (%d, not %d)", (*out)->version,
             EW_MPI_VERSION);
    return EW_OK;
}

static ew_err introduce(struct ew_ranks *r)
{
    struct rank_identity me = {.pid = getpid()};
    gethostname(me.host, sizeof(me.host) - 1);
    r->all = calloc((size_t)r->size, sizeof(*r->all));
    r->names = calloc((size_t)r->size, sizeof(*r->names));
    EW_CHECK(r->all && r->names, EW_ERR_MEMORY, "no memory for %d ranks", r->size);
    EW_TRY(ew_ranks_allgather(r, &me, r->all, sizeof(me)));
    for (int i = 0; i < r->size; i++)
        snprintf(r->names[i], EW_RANK_NAME, "rank %d (%.*s, process %lld)", i, HOST_CHARS - 1,
                 r->all[i].host, (long long)r->all[i].pid);
    return EW_OK;
}

ew_err ew_ranks_open(struct ew_ranks **out)
{
    struct ew_ranks *r = calloc(1, sizeof(*r));
    EW_CHECK(r, EW_ERR_MEMORY, "no memory for ranks");
    ew_err err = load(&r->mpi);
    if (err == EW_OK && r->mpi->start(&r->rank, &r->size) != 0)
        err = ew_fail(EW_ERR_IO, "MPI cannot be started");
    if (err == EW_OK)
        err = introduce(r);
    if (err != EW_OK) {
        free(r->all);
        free(r->names);
        free(r);
        return err;
    }
    *out = r;
    return EW_OK;
}

void ew_ranks_close(struct ew_ranks *r, bool well)
{
    if (!r)
        return;
    if (well)
        r->mpi->stop();
    else
        r->mpi->abort(1);
    free(r->all);
    free(r->names);
    free(r);
}

int ew_ranks_rank(const struct ew_ranks *r)
{
    return r ? r->rank : 0;
}

int ew_ranks_size(const struct ew_ranks *r)
{
    return r ? r->size : 1;
}

const char *ew_ranks_name(const struct ew_ranks *r, int rank)
{
    return r && r->names ? r->names[rank] : "a rank";
}

void ew_ranks_watch(struct ew_ranks *r, const volatile int *stop)
{
    if (r)
        r->stop = stop;
}

/* ---- Messages -------------------------------------------------------------------------------- */

ew_err ew_ranks_allgather(struct ew_ranks *r, const void *in, void *out, size_t bytes)
{
    return check(r, r->mpi->allgather(in, out, (int64_t)bytes), "gathering");
}

ew_err ew_ranks_ialltoall(struct ew_ranks *r, const void *in, void *out, size_t bytes,
                          struct ew_message *m)
{
    return check(r, r->mpi->ialltoall(EW_MPI_COMM_GRADIENTS, in, out, (int64_t)bytes, &m->request),
                 "sending");
}

ew_err ew_ranks_iallgather(struct ew_ranks *r, const void *in, void *out, size_t bytes,
                           struct ew_message *m)
{
    return check(r, r->mpi->iallgather(EW_MPI_COMM_SUMS, in, out, (int64_t)bytes, &m->request),
                 "sending");
}

ew_err ew_ranks_test(struct ew_ranks *r, struct ew_message *m)
{
    int done;
    return check(r, r->mpi->test(&m->request, &done), "waiting");
}

/* Finds a rank on this machine whose process has died; the launcher reports others. */
static ew_err look_for_lost(const struct ew_ranks *r, bool late)
{
    for (int i = 0; i < r->size; i++)
        if (strcmp(r->all[i].host, r->all[r->rank].host) == 0 &&
            kill((pid_t)r->all[i].pid, 0) != 0 && errno == ESRCH)
            return ew_fail(EW_ERR_IO, "%s is gone, so the others cannot go on", r->names[i]);
    EW_CHECK(!late, EW_ERR_IO, "told to stop, and another rank does not answer any more");
    return EW_OK;
}

ew_err ew_ranks_wait(struct ew_ranks *r, struct ew_message *m)
{
    while (m->request) {
        for (int i = 0; i < AT_ONCE && m->request; i++)
            EW_TRY(ew_ranks_test(r, m));
        if (m->request && r->stop && *r->stop) {
            r->stop_ns = r->stop_ns ? r->stop_ns : ew_clock_ns();
            EW_TRY(look_for_lost(r, ew_clock_ns() - r->stop_ns > STOP_NS));
        }
        if (m->request) /* ranks may share a core */
            sched_yield();
    }
    return EW_OK;
}

ew_err ew_ranks_allgather_own_comm(struct ew_ranks *r, const void *in, void *out, size_t bytes)
{
    struct ew_message m = {NULL};
    EW_TRY(check(r, r->mpi->iallgather(EW_MPI_COMM_STATISTICS, in, out, (int64_t)bytes, &m.request),
                 "sending"));
    return ew_ranks_wait(r, &m);
}

ew_err ew_ranks_agree(struct ew_ranks *r, const void *bytes, size_t size, const char *what)
{
    uint64_t mine = ew_hash_of(bytes, size), *all = calloc((size_t)r->size, sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for %d ranks", r->size);
    ew_err err = ew_ranks_allgather(r, &mine, all, sizeof(mine));
    for (int i = 1; err == EW_OK && i < r->size; i++)
        if (all[i] != all[0])
            err = ew_fail(EW_ERR_USAGE, "%s has other %s than rank 0", r->names[i], what);
    free(all);
    return err;
}
