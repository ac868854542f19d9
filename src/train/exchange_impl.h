/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the exchange: exchange.c sends, residual.c saves error feedback. */
#ifndef EW_TRAIN_EXCHANGE_IMPL_H
#define EW_TRAIN_EXCHANGE_IMPL_H

#include "train/exchange.h"

/* One bucket: `n` numbers, `piece` of them per rank. */
struct ew_exchange_bucket {
    int64_t n, piece, entries;
    void *sent, *got;    /* messages, in the format of the form */
    float *sum;          /* plain: this rank's piece; topk: the whole bucket */
    float *residual;     /* residuals (error feedback); NULL: uncompressed */
    float *residual_sum; /* fp16: residuals of this rank's piece of the sums */
    struct ew_message message;
};

struct ew_exchange {
    struct ew_ranks *ranks;
    struct ew_plan *plan;
    struct ew_graph *g;
    struct ew_exchange_opts o;
    float weight;
    int size, rank;
    struct ew_exchange_bucket *buckets;
    int n_buckets;
    struct ew_arena arena;
    char *tail, *tails; /* numbers and running statistics: this rank's, and all ranks' */
    size_t tail_bytes;
    int64_t *bins;     /* topk: histogram of BINS */
    double *weights;   /* of every rank */
    float *norms;      /* all ranks' messages for one batch norm */
    size_t norm_bytes; /* largest message of a rank; 0: not synchronised */
    int begun, summed; /* buckets of this step that are started; whose sums are being sent */
    bool flying;       /* a message was in flight when the rank resumed computing, */
    int64_t left_ns;   /* at this time */
    int64_t spent_ns, hidden_ns, sent_bytes;
    float *residual_all; /* rank 0, for checkpoints: residuals of all ranks */
    struct ew_checkpoint_state *residual_states;
};

#endif
