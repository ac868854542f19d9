/* SPDX-License-Identifier: Apache-2.0 */
/* A network without batch norm, with a fixed order of additions: four ranks have the same bits as
 * one process that computes the same parts in sequence and adds them.  Once with ranks as plans in
 * this process, which exchange buckets while others still compute, and once by mpirun, whose ranks
 * are this program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "edgewise.h"
#include "ew_test.h"
#include "plan/plan.h"
#include "run_graph.h"
#include "train/exchange.h"

#define PARTS  4
#define EACH   2 /* samples per part */
#define BUCKET (1 << 14)
#define STEPS  5

static struct ew_graph *build(void)
{
    return ew_training_network("lenet5", EACH, 0);
}

static struct ew_plan *compile(struct ew_graph *g)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN,
                                   .update = true,
                                   .bucket_bytes = BUCKET,
                                   .optimizer = {.lr = 0.05, .momentum = 0.9},
                                   .backend = {.threads = 1}};
    EW_EXPECT_OK(ew_plan_compile(g, &o, &p));
    return p;
}

static int differing(const struct ew_graph *a, const struct ew_graph *b)
{
    int n = 0;
    for (int i = 0; i < a->n_values; i++) {
        const struct ew_tensor *s = &a->values[i].t, *t = &b->values[i].t;
        n += a->values[i].kind == EW_VALUE_PARAM &&
             memcmp(s->data, t->data, ew_tensor_bytes(s)) != 0;
    }
    return n;
}

/* Adds weighted gradients in the order of parts, as exchange.c does. */
static void add_in_order(const struct ew_tensor *const *t, float *sum)
{
    const float weight = 1.0f / PARTS;
    for (int64_t k = 0; k < ew_tensor_count(t[0]); k++) {
        float s = weight * ((const float *)t[0]->data)[k];
        for (int r = 1; r < PARTS; r++)
            s += weight * ((const float *)t[r]->data)[k];
        sum[k] = s;
    }
}

/* Replaces every rank's gradients of a bucket by their sum. */
static void exchange_bucket(struct ew_plan *q[PARTS], int bucket)
{
    int n = 0;
    const int *values = ew_plan_bucket(q[0], bucket, &n);
    for (int i = 0; i < n; i++) {
        const struct ew_tensor *t[PARTS];
        for (int r = 0; r < PARTS; r++)
            t[r] = ew_plan_grad(q[r], values[i]);
        EW_CLEANUP(ew_free_ptr) float *sum = malloc(ew_tensor_bytes(t[0]));
        add_in_order(t, sum);
        for (int r = 0; r < PARTS; r++)
            memcpy(t[r]->data, sum, ew_tensor_bytes(t[0]));
    }
}

/* Ranks exchange each bucket as soon as all have completed it, while backward continues. */
static void run_ranks(struct ew_plan *q[PARTS])
{
    for (;;) {
        struct ew_stop stop[PARTS];
        for (int r = 0; r < PARTS; r++)
            do
                EW_EXPECT_OK(ew_plan_run_to_stop(q[r], &stop[r]));
            while (stop[r].kind == EW_STOP_PAUSE);
        if (stop[0].kind == EW_STOP_END)
            break;
        exchange_bucket(q, stop[0].bucket);
    }
    for (int r = 0; r < PARTS; r++)
        EW_EXPECT_OK(ew_plan_run_updates(q[r]));
}

/* One set of weights: the parts in sequence, then their gradients summed in the first plan. */
static void run_parts(struct ew_plan *p[PARTS], const struct ew_graph *g)
{
    for (int r = 0; r < PARTS; r++) {
        struct ew_stop stop;
        do
            EW_EXPECT_OK(ew_plan_run_to_stop(p[r], &stop));
        while (stop.kind != EW_STOP_END);
    }
    for (int i = 0; i < g->n_values; i++) {
        const struct ew_tensor *t[PARTS];
        for (int r = 0; r < PARTS; r++)
            t[r] = ew_plan_grad(p[r], i);
        if (!t[0])
            continue;
        add_in_order(t, t[0]->data);
        for (int r = 1; r < PARTS; r++) /* updates of the other plans have no effect */
            memset(t[r]->data, 0, ew_tensor_bytes(t[r]));
    }
    for (int r = 0; r < PARTS; r++)
        EW_EXPECT_OK(ew_plan_run_updates(p[r]));
}

static void parts_begin(struct ew_plan *p[PARTS], struct ew_graph *g)
{
    for (int r = 0; r < PARTS; r++)
        p[r] = compile(g);
}

static void parts_end(struct ew_plan *p[PARTS])
{
    for (int r = 0; r < PARTS; r++)
        ew_plan_free(p[r]);
}

static void parts_step(struct ew_plan *p[PARTS], const struct ew_graph *g, int step)
{
    for (int r = 0; r < PARTS; r++)
        ew_fill_samples(p[r], (step * PARTS + r) * EACH, EACH);
    run_parts(p, g);
}

static void expect_learnt(const struct ew_graph *g)
{
    struct ew_graph *start = build();
    EW_EXPECT(differing(start, g) > 0);
    ew_graph_free(start);
}

static void ranks_of_one_process(void)
{
    struct ew_graph *one = build(), *part[PARTS];
    struct ew_plan *p[PARTS], *q[PARTS];
    parts_begin(p, one);
    for (int r = 0; r < PARTS; r++) {
        part[r] = build();
        q[r] = compile(part[r]);
    }
    EW_EXPECT(ew_plan_buckets(q[0]) > 1);
    for (int step = 0; step < STEPS; step++) {
        for (int r = 0; r < PARTS; r++)
            ew_fill_samples(q[r], (step * PARTS + r) * EACH, EACH);
        run_ranks(q);
        parts_step(p, one, step);
    }
    for (int r = 0; r < PARTS; r++) {
        EW_EXPECT_INT(differing(one, part[r]), 0);
        ew_plan_free(q[r]);
        ew_graph_free(part[r]);
    }
    expect_learnt(one);
    parts_end(p);
    ew_graph_free(one);
}

/* ---- By mpirun ------------------------------------------------------------------------------- */

/* Runs a step of this rank's part, and exchanges gradients with the others. */
static ew_err rank_step(struct ew_plan *p, struct ew_exchange *x)
{
    for (;;) {
        struct ew_stop stop;
        EW_TRY(ew_plan_run_to_stop(p, &stop));
        if (stop.kind == EW_STOP_END)
            break;
        EW_TRY(stop.kind == EW_STOP_BUCKET ? ew_exchange_begin(x, stop.bucket)
                                           : ew_exchange_progress(x));
    }
    EW_TRY(ew_exchange_finish(x));
    EW_TRY(ew_plan_run_updates(p));
    return ew_exchange_numbers(x, (double[]){0}, 1);
}

/* The main function of mpirun's processes: trains its part with the others, and all parts alone. */
static void be_a_rank(struct ew_ranks *ranks)
{
    struct ew_graph *one = build(), *mine = build();
    struct ew_plan *p[PARTS], *q = compile(mine);
    struct ew_exchange *x = NULL;
    const struct ew_exchange_opts o = {.bucket_bytes = BUCKET};
    const int rank = ew_ranks_rank(ranks);
    bool well = EW_EXPECT_OK(ew_exchange_open(ranks, q, mine, &o, 1.0 / PARTS, &x));
    parts_begin(p, one);
    for (int step = 0; well && step < STEPS; step++) {
        ew_fill_samples(q, (step * PARTS + rank) * EACH, EACH);
        well = EW_EXPECT_OK(rank_step(q, x));
        parts_step(p, one, step);
    }
    EW_EXPECT_INT(differing(one, mine), 0);
    expect_learnt(mine);
    ew_exchange_close(x);
    ew_plan_free(q);
    parts_end(p);
    ew_graph_free(mine);
    ew_graph_free(one);
}

static void start_ranks(void)
{
    char command[4096];
    if (!getenv("EDGEWISE_MPI_MODULE"))
        EW_SKIP("built without MPI");
    if (system("command -v mpirun >/dev/null") != 0)
        EW_SKIP("no mpirun");
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    setenv("OMPI_MCA_btl_base_warn_component_unused", "0", 1);
    snprintf(command, sizeof(command), "mpirun -np %d '%s' 2>&1", PARTS, program_invocation_name);
    EW_EXPECT_INT(system(command), 0);
}

static void ranks_of_mpirun(void)
{
    struct ew_ranks *ranks = NULL;
    if (!ew_ranks_launched()) {
        start_ranks();
        return;
    }
    if (!EW_EXPECT_OK(ew_ranks_open(&ranks)))
        return;
    if (EW_EXPECT_INT(ew_ranks_size(ranks), PARTS))
        be_a_rank(ranks);
    ew_ranks_close(ranks, true);
}

EW_TEST_MAIN(EW_TEST(ranks_of_one_process), EW_TEST(ranks_of_mpirun))
