/* SPDX-License-Identifier: Apache-2.0 */
/* Every network of the zoo, at a quarter of its width: written, read back, the same outputs at two
 * batch sizes, and transposes only at the graph's ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "ew_test.h"
#include "graph/layout.h"
#include "model/loss_table.h"
#include "model/model.h"
#include "run_graph.h"

/* The two graphs differ in the order of sums only after flattening. */
#define RTOL 1e-4
#define ATOL 1e-5

#define BATCH 3

/* Random images in our layout, [N, H, W, C], or clips, [N, T, H, W, C], and in the file's. */
static ew_err make_images(const struct ew_graph *g, struct ew_arena *a, struct ew_tensor *ours,
                          struct ew_tensor *file)
{
    *ours = g->values[g->inputs[0]].t;
    const int to_first[] = {0, ours->shape.rank - 1, 1, 2, 3};
    *file = *ours;
    ours->data = ew_arena_alloc(a, ew_tensor_bytes(ours));
    file->data = ew_arena_alloc(a, ew_tensor_bytes(ours));
    EW_CHECK(ours->data && file->data, EW_ERR_MEMORY, "no memory");
    for (int64_t i = 0; i < ew_tensor_count(ours); i++)
        ew_tensor_store(ours, i, 1, &(double){ew_rng_normal(5, 0, (uint64_t)i)});
    ew_tensor_permute(ours, to_first, file);
    return EW_OK;
}

static ew_err same_outputs(struct ew_graph *g, struct ew_graph *back, int64_t batch)
{
    struct ew_arena a EW_CLEANUP(ew_arena_fini);
    ew_arena_init(&a);
    struct ew_tensor ours, file;
    EW_TRY(ew_graph_set_batch(g, batch));
    EW_TRY(ew_graph_set_batch(back, batch));
    EW_TRY(make_images(g, &a, &ours, &file));
    struct ew_plan *p = NULL, *q = NULL;
    const struct ew_tensor *in = &ours;
    ew_err e = ew_run_graph(g, &in, &p);
    in = &file;
    if (e == EW_OK)
        e = ew_run_graph(back, &in, &q);
    struct ew_tensor want = e == EW_OK ? *ew_plan_output(p, 0) : (struct ew_tensor){0};
    if (e == EW_OK && ew_net_reconstructs(g)) { /* in the file's layout */
        const struct ew_tensor given = want;
        want = file;
        ew_tensor_permute(&given, (const int[]){0, given.shape.rank - 1, 1, 2, 3}, &want);
    }
    if (e == EW_OK)
        e = ew_tensors_agree(ew_plan_output(q, 0), &want, RTOL, ATOL);
    ew_plan_free(p);
    ew_plan_free(q);
    return ew_fail_in(e, "batch %lld", (long long)batch);
}

static int64_t parameters(const struct ew_graph *g)
{
    struct ew_cost cost;
    EW_EXPECT_OK(ew_graph_cost(g, &cost, NULL));
    return cost.params;
}

static void check(struct ew_graph *g, struct ew_graph *back)
{
    int transposes = 0;
    for (int k = 0; k < back->n_nodes; k++)
        transposes += strcmp(back->nodes[k].op->name, "transpose") == 0;
    /* At the input, and before flattening; twice as many if the network reconstructs its input. */
    EW_EXPECT(transposes <= (ew_net_reconstructs(g) ? 4 : 2));
    EW_EXPECT_INT(parameters(back), parameters(g));
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].kind == EW_VALUE_PARAM)
            EW_EXPECT(ew_graph_find(back, g->values[i].name) >= 0);
    EW_EXPECT_OK(same_outputs(g, back, 1));
    EW_EXPECT_OK(same_outputs(g, back, BATCH));
}

/* At 64 x 64 for speed; 0: at the network's default size. */
static ew_err round_trip(const char *name, int64_t size)
{
    const struct ew_model_opts o = {
        .size = sizeof(o), .height = size, .width = size, .classes = 10, .scale = 0.25};
    const char *path = ew_test_path("zoo.onnx");
    struct ew_graph *g, *back;
    EW_TRY(ew_model_build(name, &o, &g));
    ew_err e = ew_model_init(name, 1, g);
    if (e == EW_OK)
        e = ew_onnx_save(g, path, NULL);
    if (e == EW_OK)
        e = ew_onnx_load(path, NULL, &back);
    if (e == EW_OK) {
        check(g, back);
        ew_graph_free(back);
    }
    ew_graph_free(g);
    return e;
}

int main(int argc, char **argv)
{
    const struct ew_family *family = NULL, *last = NULL;
    for (int i = 0; i < ew_model_count(); i++, last = family) {
        const struct ew_variant *v;
        EW_EXPECT_OK(ew_variant_find(ew_model_name(i), &family, &v));
        if (argc > 1 ? strcmp(argv[1], ew_model_name(i)) != 0 : ew_test_quick() && family == last)
            continue;
        ew_test_begin("%s", ew_model_name(i));
        ew_err e = round_trip(ew_model_name(i), v->frames ? 28 : 64);
        if (e == EW_ERR_UNSUPPORTED) /* an adaptive pool that ONNX can only express at the full
                                      * size */
            e = round_trip(ew_model_name(i), 0);
        EW_EXPECT_OK(e);
        ew_test_end();
    }
    return ew_test_status();
}
