/* SPDX-License-Identifier: Apache-2.0 */
/* One convolution pass, forward or dgrad, by any of the methods.  The step's state keeps geometry
 * and packed filters. */
#ifndef EW_BACKEND_CPU_STEP_CONV_PASS_H
#define EW_BACKEND_CPU_STEP_CONV_PASS_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "op/conv.h"

enum ew_conv_method {
    EW_CONV_GEMM,        /* implicit GEMM: any shape */
    EW_CONV_WINOGRAD,    /* filters of 3 to 5 strides */
    EW_CONV_DEPTHWISE,   /* one filter a channel */
    EW_CONV_GROUPED,     /* groups of few channels */
    EW_CONV_BATCH_LANES, /* few output channels, many images */
    EW_CONV_PIXEL_LANES, /* few channels */
    EW_CONV_INPUT_LANES, /* few output channels */
    /* Dgrad: */
    EW_CONV_DGRAD,          /* any shape */
    EW_CONV_WINOGRAD_DGRAD, /* stride 1; on the shape of ew_conv_dgrad_shape */
    EW_CONV_DEPTHWISE_DGRAD,
    EW_CONV_GROUPED_DGRAD,
    EW_CONV_BATCH_LANES_DGRAD /* likewise */
};

struct ew_conv_pass {
    struct ew_conv conv;
    enum ew_conv_method method;
    int64_t tiles;
    float *packed;
};

void ew_conv_shape_of(const struct ew_conv_sizes *s, struct ew_conv_shape *out);

/* The convolution that computes the dgrad of one with stride 1. */
struct ew_conv_shape ew_conv_dgrad_shape(const struct ew_conv_shape *s);

/* True if the method supports the shape. */
bool ew_conv_fits(const struct ew_kernels *k, enum ew_conv_method m, const struct ew_conv_shape *s);

/* Bytes of packed filters, and of scratch for one thread. */
size_t ew_conv_packed_bytes(const struct ew_kernels *k, enum ew_conv_method m,
                            const struct ew_conv_shape *s);
size_t ew_conv_scratch_bytes(const struct ew_kernels *k, enum ew_conv_method m,
                             const struct ew_conv_shape *s);

/* How the method divides the statistics of its output (ew_conv.stats); false: unsupported. */
bool ew_conv_stats_split(const struct ew_kernels *k, enum ew_conv_method m,
                         const struct ew_conv_shape *s, struct ew_stats_split *out);

/* Packs filters into p->packed over the backend's threads; with shape.unpacked it only sets
 * pointers to w. */
void ew_conv_pack(const struct ew_backend *be, struct ew_conv_pass *p, const float *w);

/* The same in pieces of about 1 MiB (ew_kernel.pack_piece), if ew_conv_packs_pieces. */
bool ew_conv_packs_pieces(enum ew_conv_method m, const struct ew_conv_shape *s);
size_t ew_conv_pack_piece(const struct ew_backend *be, struct ew_conv_pass *p, const float *w,
                          int64_t *next);

/* Runs the pass over the backend's threads; c->scratch holds scratch for all of them. */
void ew_conv_pass_run(const struct ew_call *c, struct ew_conv_pass *p);

#endif
