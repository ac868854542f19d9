/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an exchange: exchange.c sends, residual.c keeps what was not sent. */
#ifndef EW_TRAIN_EXCHANGE_IMPL_H
#define EW_TRAIN_EXCHANGE_IMPL_H

#include "train/exchange.h"

/* One bucket: `n` numbers, `piece` of them a rank. */
struct ew_exchange_box {
    int64_t n, piece, spikes;
    void *sent, *got; /* messages, as the form has them */
    float *sum;       /* plain: this rank's piece; topk: all */
    float *rest;      /* what was not sent yet; NULL: everything is sent */
    float *rest_sum;  /* fp16: of this rank's piece of the sums */
    struct ew_message message;
};

struct ew_exchange {
    struct ew_ranks *ranks;
    struct ew_plan *plan;
    struct ew_graph *g;
    struct ew_exchange_opts o;
    float weight;
    int size, rank;
    struct ew_exchange_box *boxes;
    int n_boxes;
    struct ew_arena arena;
    char *tail, *tails; /* numbers and running statistics: ours, and all ranks' */
    size_t tail_bytes;
    int64_t *bins;     /* topk: BINS, to choose by */
    double *weights;   /* every rank's */
    float *norms;      /* all ranks' messages of one batch norm */
    size_t norm_bytes; /* the largest of a rank; 0: they are not synchronised */
    int begun, summed; /* buckets of this step that are on their way; whose sums are */
    bool flying;       /* something was under way when the rank went back to its computing, */
    int64_t left_ns;   /* which was then */
    int64_t spent_ns, hidden_ns, sent_bytes;
    float *rest_all; /* rank 0, for checkpoints: what every rank has not sent yet */
    struct ew_checkpoint_state *rest_states;
};

#endif
