/* SPDX-License-Identifier: Apache-2.0 */
/* A process takes the memory that the plan reports, within 5 %, and running takes no more.  Each
 * case has its own process, so that memory freed by another hides nothing. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "op/math_attr.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum kind { KEEP, CONSUME, TRAIN };

struct figures {
    int64_t planned, taken; /* bytes */
    int64_t weights;        /* bytes of the graph before compilation */
    int64_t heap_growth;    /* of the heap, over ten runs */
    bool ok;
};

static int64_t graph_bytes(const struct ew_graph *g)
{
    int64_t bytes = 0;
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].t.data)
            bytes += (int64_t)ew_tensor_bytes(&g->values[i].t);
    return bytes;
}

static ew_err measure(const char *name, enum kind kind, struct figures *f)
{
    const bool train = kind == TRAIN;
    struct ew_model_opts o = {.size = sizeof(o), .batch = 8, .height = 96, .width = 96};
    struct ew_graph *g;
    struct ew_plan *p;
    const int64_t before = ew_bench_resident();
    EW_TRY(ew_model_build(name, &o, &g));
    EW_TRY(ew_model_init(name, 1, g));
    if (train)
        EW_TRY(ew_objective_add(g));
    f->weights = graph_bytes(g);
    const struct ew_plan_opts po = {
        .mode = train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
        .optimize = true,
        .consume = kind == CONSUME,
        .update = train,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 1e-4, .momentum = 0.9},
        .backend = {.threads = 1}};
    EW_TRY(ew_plan_compile(g, &po, &p));
    ew_bench_fill(p, g, 2, 1);
    EW_TRY(ew_plan_run(p));
    const size_t heap = mallinfo2().uordblks;
    for (int i = 0; i < 10; i++)
        EW_TRY(ew_plan_run(p));
    struct ew_plan_stats s;
    ew_plan_stats(p, &s);
    f->heap_growth = (int64_t)(mallinfo2().uordblks - heap);
    f->taken = ew_bench_resident() - before;
    f->planned = (int64_t)(s.arena_bytes + s.weight_bytes);
    f->ok = true;
    return EW_OK;
}

static struct figures check(const char *name, enum kind kind)
{
    struct figures f = {0};
    int fds[2];
    if (!EW_EXPECT(pipe(fds) == 0))
        return f;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (measure(name, kind, &f) != EW_OK)
            fprintf(stderr, "%s\n", ew_error_message());
        const ssize_t wrote = write(fds[1], &f, sizeof(f));
        _exit(wrote == (ssize_t)sizeof(f) ? 0 : 1);
    }
    close(fds[1]);
    const ssize_t got = read(fds[0], &f, sizeof(f));
    close(fds[0]);
    waitpid(child, NULL, 0);
    if (!EW_EXPECT_INT(got, (int64_t)sizeof(f)) || !EW_EXPECT(f.ok))
        return f;
    EW_EXPECT_NEAR((double)f.taken / (double)f.planned, 1, 0.05);
    EW_EXPECT_INT(f.heap_growth, 0);
    return f;
}

static void inference(void)
{
    if (SANITIZED)
        EW_SKIP("sanitizers have their own memory");
    const struct figures keep = check("resnet18", KEEP);
    /* The caller gives its weights up: only the packed ones remain. */
    const struct figures alone = check("resnet18", CONSUME);
    EW_EXPECT((double)(keep.planned - alone.planned) > 0.95 * (double)keep.weights);
}

static void training(void)
{
    if (SANITIZED)
        EW_SKIP("sanitizers have their own memory");
    check("resnet18", TRAIN);
}

/* ---- One large layer: 3,001 outputs of 1,536 inputs, 18 MB ---- */

#define LARGE_OUT 3001
#define LARGE_IN  1536

static ew_err large_layer(struct ew_graph **out)
{
    const struct ew_shape x = {2, {3, LARGE_IN}};
    static float bias[LARGE_OUT];
    struct ew_tensor w = {.dtype = EW_F32, .shape = {2, {LARGE_OUT, LARGE_IN}}};
    const struct ew_tensor b = {.dtype = EW_F32, .shape = {1, {LARGE_OUT}}, .data = bias};
    const struct ew_gemm_attr attr = {.alpha = 1, .beta = 1, .trans_b = true};
    int in[3], y;
    EW_TRY(ew_graph_new("large", out));
    EW_TRY(ew_graph_input(*out, "x", EW_F32, &x, &in[0]));
    float *v = w.data = ew_arena_alloc(&(*out)->arena, ew_tensor_bytes(&w));
    for (int64_t i = 0; v && i < (int64_t)LARGE_OUT * LARGE_IN; i++)
        v[i] = (float)(i % 1009) * 1e-3f - 0.5f;
    EW_TRY(ew_graph_const(*out, "w", EW_VALUE_PARAM, &w, false, &in[1]));
    EW_TRY(ew_graph_const(*out, "b", EW_VALUE_PARAM, &b, true, &in[2]));
    EW_TRY(ew_graph_add(*out, ew_op_find("gemm"), "y", &attr, ew_inputs(in, 3), &y));
    return ew_graph_output(*out, y);
}

/* Growth of the process's peak memory while the layer is compiled; also its outputs. */
static ew_err run_large(bool consume, int64_t *peak, float *y)
{
    struct ew_graph *g;
    struct ew_plan *p;
    struct rusage before, after;
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_INFER, .optimize = true, .consume = consume, .backend = {.threads = 1}};
    EW_TRY(large_layer(&g));
    getrusage(RUSAGE_SELF, &before);
    EW_TRY(ew_plan_compile(g, &o, &p));
    getrusage(RUSAGE_SELF, &after);
    *peak = (after.ru_maxrss - before.ru_maxrss) * 1024;
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = (float)(i % 31) * 0.1f;
    EW_TRY(ew_plan_run(p));
    memcpy(y, ew_plan_output(p, 0)->data, sizeof(float) * 3 * LARGE_OUT);
    ew_plan_free(p);
    ew_graph_free(g);
    return EW_OK;
}

/* Weights that are given up are freed as they are packed: both forms at once would take twice the
 * bytes. */
static void large_layers_are_packed_in_pieces(void)
{
    if (SANITIZED)
        EW_SKIP("sanitizers have their own memory");
    static float keep[3 * LARGE_OUT], alone[3 * LARGE_OUT];
    const int64_t bytes = (int64_t)LARGE_OUT * LARGE_IN * 4;
    int64_t peak;
    EW_EXPECT_OK(run_large(true, &peak, alone));
    EW_EXPECT(peak < bytes * 3 / 4);
    EW_EXPECT_OK(run_large(false, &peak, keep));
    EW_EXPECT(memcmp(keep, alone, sizeof(keep)) == 0);
}

EW_TEST_MAIN(EW_TEST(large_layers_are_packed_in_pieces), EW_TEST(inference), EW_TEST(training))
