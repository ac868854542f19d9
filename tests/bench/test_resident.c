/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says it needs is what the process takes, within 5 %; and running it takes nothing
 * more. Each case has a process of its own, so that freed memory of another does not hide anything.
 */
#include <malloc.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum kind { KEEP, CONSUME, TRAIN };

struct figures {
    int64_t planned, taken; /* bytes */
    int64_t weights;        /* of the graph, as it was */
    int64_t heap_growth;    /* of the heap over ten runs */
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
    /* The caller gives its weights up: what is packed is all there is. */
    const struct figures alone = check("resnet18", CONSUME);
    EW_EXPECT((double)(keep.planned - alone.planned) > 0.95 * (double)keep.weights);
}

static void training(void)
{
    if (SANITIZED)
        EW_SKIP("sanitizers have their own memory");
    check("resnet18", TRAIN);
}

EW_TEST_MAIN(EW_TEST(inference), EW_TEST(training))
