/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a card's peak rates: GEMM in its precision, and device-to-device copy. */
#include "backend/cuda/cuda_backend.h"
#include "base/mem.h"

#define SIDE   4096                /* of the square matrices; halved if memory is short */
#define BYTES  ((size_t)512 << 20) /* of the copy; likewise */
#define SMALL  ((size_t)8 << 30)
#define ROUNDS 5
#define EACH   4 /* launches per round */

struct trial {
    const struct ew_cuda *be;
    char *memory; /* three matrices, or source and destination of the copy */
    size_t bytes;
    struct ew_cuda_gemm gemm;
    void *events[2];
};

static int launch(const struct trial *t, bool product)
{
    const struct ew_cuda *be = t->be;
    const size_t half = t->bytes / 2;
    return product ? be->cu->gemm(be->q, &t->gemm)
                   : be->cu->copy(be->q, t->memory, t->memory + half, half, EW_CUDA_ON_DEVICE);
}

/* Seconds per launch, minimum of the rounds. */
static ew_err best_of(const struct trial *t, bool product, double *out)
{
    const struct ew_cuda *be = t->be;
    *out = 0;
    for (int round = 0; round < ROUNDS; round++) {
        float ms = 0;
        EW_CUDA_TRY(be->cu, event_record(be->q, t->events[0]));
        for (int i = 0; i < EACH; i++)
            EW_TRY(ew_cuda_check(be->cu, launch(t, product), "peaks"));
        EW_CUDA_TRY(be->cu, event_record(be->q, t->events[1]));
        EW_CUDA_TRY(be->cu, queue_wait(be->q));
        EW_CUDA_TRY(be->cu, event_ms(t->events[0], t->events[1], &ms));
        const double s = (double)ms * 1e-3 / EACH;
        *out = round == 0 || s < *out ? s : *out;
    }
    return EW_OK;
}

static ew_err run(struct trial *t, int64_t side, struct ew_peaks *out)
{
    const struct ew_cuda *be = t->be;
    double product, copy;
    EW_CUDA_TRY(be->cu, alloc(t->bytes, (void **)&t->memory));
    EW_CUDA_TRY(be->cu, event_new(1, &t->events[0]));
    EW_CUDA_TRY(be->cu, event_new(1, &t->events[1]));
    /* Values near 1: zeros would draw less power than real data. */
    EW_CUDA_TRY(be->cu, fill(be->q, t->memory, 0x3f, t->bytes));
    const size_t matrix = t->bytes / 4;
    t->gemm = (struct ew_cuda_gemm){.type = be->type,
                                    .math = be->math,
                                    .m = side,
                                    .n = side,
                                    .k = side,
                                    .alpha = 1,
                                    .a = t->memory,
                                    .b = t->memory + matrix,
                                    .y = t->memory + 2 * matrix};
    EW_TRY(best_of(t, true, &product));
    EW_TRY(best_of(t, false, &copy));
    out->flops = 2.0 * (double)side * (double)side * (double)side / product;
    out->bytes_s = (double)t->bytes / copy; /* half of the traffic is read, half written */
    return EW_OK;
}

ew_err ew_cuda_peaks(struct ew_backend *base, struct ew_peaks *out)
{
    const bool small = base->info.memory_bytes < SMALL;
    struct trial t = {.be = ew_cuda(base), .bytes = small ? BYTES / 4 : BYTES};
    const ew_err e = run(&t, small ? SIDE / 2 : SIDE, out);
    t.be->cu->release(t.memory);
    for (int i = 0; i < 2; i++)
        t.be->cu->event_free(t.events[i]);
    return e;
}
