/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce of gradients over ranks, overlapped with backward: a bucket is sent as soon as it is
 * complete (plan.h), and all sums are back before parameters are updated.
 *
 * Reduce-scatter and all-gather: a bucket has one piece per rank.  Every rank sends each piece to
 * its owner, which adds them in rank order, and the sums are sent to all.  This moves 2 (N - 1) / N
 * of the bucket's bytes each way and fixes the order of additions, unlike MPI's own choice of
 * algorithm (Rabenseifner). */
#ifndef EW_TRAIN_EXCHANGE_H
#define EW_TRAIN_EXCHANGE_H

#include "format/checkpoint.h"
#include "plan/plan.h"
#include "train/ranks.h"

enum ew_exchange_form {
    EW_EXCHANGE_PLAIN, /* float32 */
    EW_EXCHANGE_FP16, /* rounded to float16, with error feedback: the rounding error is added to the
                       * next step */
    EW_EXCHANGE_TOPK  /* the largest magnitudes only, with error feedback (Lin et al. 2018, Stich et
                       * al. 2018) */
};
extern const char *const ew_exchange_forms[]; /* NULL-terminated */

struct ew_exchange_opts {
    int form;            /* enum ew_exchange_form */
    double share;        /* TOPK: share of a bucket that is sent */
    size_t bucket_bytes; /* 0: no exchange */
    bool sync_norms;     /* synchronised batch norm */
};

struct ew_exchange;

/* `weight` is this rank's share of a batch's samples, by which its gradients are weighted, and
 * running statistics (values of kind STATE of `g`) averaged. */
ew_err ew_exchange_open(struct ew_ranks *ranks, struct ew_plan *plan, struct ew_graph *g,
                        const struct ew_exchange_opts *o, double weight, struct ew_exchange **out);
void ew_exchange_close(struct ew_exchange *x); /* NULL is fine */

/* Starts the exchange of a complete bucket. */
ew_err ew_exchange_begin(struct ew_exchange *x, int bucket);
/* Progresses messages, which MPI does only inside its calls. */
ew_err ew_exchange_progress(struct ew_exchange *x);
/* Synchronises a batch norm's statistics or sums at a stop (plan.h). */
ew_err ew_exchange_norm(struct ew_exchange *x, const struct ew_stop *stop);
/* After all buckets are started: waits until the plan's gradients are the sums. */
ew_err ew_exchange_finish(struct ew_exchange *x);
/* After the updates: averages running statistics, and sums n numbers over the ranks. */
#define EW_EXCHANGE_NUMBERS 8
ew_err ew_exchange_numbers(struct ew_exchange *x, double *numbers, int n);

/* Collects the error feedback (residuals) of compression for a checkpoint.  All ranks call it; rank
 * 0 gets states that are valid until the next call, other ranks and uncompressed exchanges none. */
#define EW_RESIDUAL_SLOT_SUMS 16 /* fp16: residuals of the sums */
#define EW_RESIDUAL_SLOT_RANK 17 /* residuals of rank 0, then of the others */
ew_err ew_exchange_residuals(struct ew_exchange *x, const struct ew_checkpoint_state **out, int *n);
/* Restores this rank's residuals from a checkpoint's states, ignoring others.  If the number of
 * ranks has changed, rank 0 takes all. */
ew_err ew_exchange_set_residuals(struct ew_exchange *x, const struct ew_checkpoint_state *s, int n);
/* Their bytes in a checkpoint. */
int64_t ew_exchange_residual_bytes(const struct ew_exchange *x); /* NULL: 0 */

/* Times since the last call. */
struct ew_exchange_times {
    int64_t spent_ns;  /* spent in the exchange */
    int64_t hidden_ns; /* computed while a message was in flight throughout */
    int64_t bytes;     /* sent */
};
struct ew_exchange_times ew_exchange_spent(struct ew_exchange *x);

#endif
