/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of all ranks, summed: a bucket goes on its way as soon as backward has completed it
 * (plan.h), and all are back before parameters are updated.
 *
 * A bucket is cut into one piece for each rank.  Every rank sends each piece to its owner, which
 * adds them in the order of ranks, and the sums go to all: 2 (N - 1) / N of the bucket's bytes each
 * way, and one order of additions (Rabenseifner's reduce-scatter and allgather, without a choice of
 * algorithm). */
#ifndef EW_TRAIN_EXCHANGE_H
#define EW_TRAIN_EXCHANGE_H

#include "format/checkpoint.h"
#include "plan/plan.h"
#include "train/ranks.h"

enum ew_exchange_form {
    EW_EXCHANGE_PLAIN, /* float32 */
    EW_EXCHANGE_FP16,  /* rounded to float16; what is lost is added to the next step's */
    EW_EXCHANGE_TOPK /* only the largest; the others are added to the next step's (Lin et al. 2018,
                        Stich et al. 2018) */
};
extern const char *const ew_exchange_forms[]; /* NULL-terminated */

struct ew_exchange_opts {
    int form;            /* enum ew_exchange_form */
    double share;        /* of a bucket, for TOPK */
    size_t bucket_bytes; /* 0: there is no exchange */
    bool sync_norms;     /* batch norms take the statistics of all ranks' samples */
};

struct ew_exchange;

/* `weight` is this rank's part in the sum: its samples of all in a batch.  Values of kind STATE of
 * `g` (running statistics) are averaged with it too. */
ew_err ew_exchange_open(struct ew_ranks *ranks, struct ew_plan *plan, struct ew_graph *g,
                        const struct ew_exchange_opts *o, double weight, struct ew_exchange **out);
void ew_exchange_close(struct ew_exchange *x); /* NULL is fine */

/* The bucket's gradients are complete. */
ew_err ew_exchange_begin(struct ew_exchange *x, int bucket);
/* Moves on what is under way, which MPI does only while it is called. */
ew_err ew_exchange_help(struct ew_exchange *x);
/* A batch norm has its statistics, or their sums (plan.h): they become those of all ranks. */
ew_err ew_exchange_norm(struct ew_exchange *x, const struct ew_stop *stop);
/* All are begun: waits until the plan has the sums. */
ew_err ew_exchange_finish(struct ew_exchange *x);
/* Behind the updates: running statistics are averaged, and n numbers summed over the ranks. */
#define EW_EXCHANGE_NUMBERS 8
ew_err ew_exchange_numbers(struct ew_exchange *x, double *numbers, int n);

/* What compression has not sent yet, for checkpoints: all ranks call it, and rank 0 gets states
 * that are valid until the next call; the others, and exchanges that send everything, none.  A
 * state's slot says whose it is. */
#define EW_REST_SLOT_SUMS 16 /* fp16: of the sums */
#define EW_REST_SLOT_RANK 17 /* of rank 0, then those of the others */
ew_err ew_exchange_rest(struct ew_exchange *x, const struct ew_checkpoint_state **out, int *n);
/* Takes this rank's of a checkpoint's states, others are passed over.  Where another number of
 * ranks has written it, rank 0 takes all. */
ew_err ew_exchange_set_rest(struct ew_exchange *x, const struct ew_checkpoint_state *s, int n);
/* Bytes of a checkpoint that they take. */
int64_t ew_exchange_rest_bytes(const struct ew_exchange *x); /* NULL: 0 */

/* Since the last call. */
struct ew_exchange_times {
    int64_t spent_ns;  /* that the rank has spent here */
    int64_t hidden_ns; /* that it has computed while something was under way all the time */
    int64_t bytes;     /* sent */
};
struct ew_exchange_times ew_exchange_spent(struct ew_exchange *x);

#endif
