/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's own backend tests, as packaged in Debian's libonnx-testdata: each is a model with inputs
 * and expected outputs.  Counts passed, refused (by a clear error) and wrong ones; arguments select
 * tests by name and print each. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ew_test.h"
#include "format/tensor_file.h"
#include "run_graph.h"

#define ROOT      "/usr/share/libonnx-testdata/data"
#define MAX_PORTS 32

/* The tolerances of ONNX's runner. */
#define RTOL 1e-3
#define ATOL 1e-5

struct reason {
    char text[160];
    int count;
};

static struct {
    int passed, unsupported, wrong;
    struct reason reasons[400];
    int n_reasons;
    char **words; /* arguments */
    int n_words;
} tally;

struct ports {
    struct ew_tensor t[MAX_PORTS];
    const char *name[MAX_PORTS];
    int n;
};

/* ---- One data set ---- */

/* The data's NumPy had no bfloat16: it is stored as uint16; and CastLike's second input, of which
 * only the type matters, has one element where the model says 3x4. */
static ew_err mend_bfloat16(struct ew_tensor *t, struct ew_arena *a)
{
    t->dtype = t->dtype == EW_U16 ? EW_BF16 : t->dtype;
    if (ew_tensor_count(t) != 1)
        return EW_OK;
    t->shape = (struct ew_shape){2, {3, 4}};
    t->data = ew_arena_alloc(a, ew_tensor_bytes(t));
    EW_CHECK(t->data, EW_ERR_MEMORY, "no memory");
    return EW_OK;
}

/* input_0.pb, input_1.pb, ... or the outputs. */
static ew_err read_ports(const char *dir, const char *kind, struct ew_arena *a, struct ports *p)
{
    for (p->n = 0; p->n < MAX_PORTS; p->n++) {
        char path[600];
        snprintf(path, sizeof(path), "%.500s/%s_%d.pb", dir, kind, p->n);
        if (access(path, R_OK) != 0)
            break;
        EW_TRY(ew_tensor_file_read(path, a, &p->t[p->n], &p->name[p->n]));
        if (strstr(dir, "BFLOAT16"))
            EW_TRY(mend_bfloat16(&p->t[p->n], a));
    }
    return EW_OK;
}

/* NonMaxSuppression returns the largest possible number of rows: those after the selected boxes
 * must be -1, and are not compared. */
static ew_err trim_boxes(const struct ew_tensor *want, struct ew_tensor *t)
{
    const struct ew_shape *s = &want->shape;
    if (t->dtype != EW_S64 || s->rank != 2 || t->shape.rank != 2 || s->dim[0] > t->shape.dim[0])
        return EW_OK;
    for (int64_t i = ew_tensor_count(want); i < ew_tensor_count(t); i++)
        EW_CHECK(ew_tensor_get_int(t, i) == -1, EW_ERR_SHAPE, "row %lld is none too many",
                 (long long)(i / t->shape.dim[1]));
    t->shape.dim[0] = s->dim[0];
    return EW_OK;
}

static ew_err compare(struct ew_graph *g, const struct ew_plan *p, const struct ports *want)
{
    EW_CHECK(want->n == g->n_outputs, EW_ERR_ARG, "%d outputs, expected %d", g->n_outputs, want->n);
    for (int i = 0; i < want->n; i++) {
        const bool coarse = want->t[i].dtype == EW_BF16; /* the expected values are truncated, ours
                                                          * are rounded */
        struct ew_tensor out = *ew_plan_output(p, i);
        const int producer = g->values[g->outputs[i]].producer;
        if (producer >= 0 && strcmp(g->nodes[producer].op->name, "non_max_suppression") == 0)
            EW_TRY(trim_boxes(&want->t[i], &out));
        const ew_err e = ew_tensors_agree(&out, &want->t[i], coarse ? 0x1p-7 : RTOL, ATOL);
        if (e != EW_OK)
            return ew_fail_in(e, "output %d", i);
    }
    return EW_OK;
}

/* Binds the graph's inputs in order; those that became constants no longer exist. */
static ew_err run(struct ew_graph *g, const struct ports *in, const struct ports *want)
{
    const struct ew_tensor *list[MAX_PORTS];
    for (int i = 0; i < g->n_inputs; i++) {
        list[i] = in->n == g->n_inputs ? &in->t[i] : NULL;
        for (int k = 0; k < in->n; k++)
            if (strcmp(in->name[k], g->values[g->inputs[i]].name) == 0)
                list[i] = &in->t[k];
        EW_CHECK(list[i], EW_ERR_ARG, "no data for input %s", g->values[g->inputs[i]].name);
    }
    struct ew_plan *p;
    EW_TRY(ew_run_graph(g, list, &p));
    const ew_err e = compare(g, p, want);
    ew_plan_free(p);
    return e;
}

static ew_err run_set(const char *model, const char *dir, struct ew_arena *a)
{
    struct ports in, want;
    struct ew_onnx_input given[MAX_PORTS];
    struct ew_graph *g;
    ew_err e = read_ports(dir, "input", a, &in);
    if (e == EW_OK)
        e = read_ports(dir, "output", a, &want);
    if (e != EW_OK) { /* sequences cannot be read; then the model must be refused */
        EW_TRY(ew_onnx_load(model, NULL, &g));
        ew_graph_free(g);
        return ew_fail(e, "%s: its data cannot be read", dir);
    }
    for (int i = 0; i < in.n; i++)
        given[i] = (struct ew_onnx_input){.name = in.name[i],
                                          .dtype = ew_dtype_name(in.t[i].dtype),
                                          .rank = in.t[i].shape.rank,
                                          .dims = in.t[i].shape.dim,
                                          .data = in.t[i].data};
    EW_TRY(
        ew_onnx_load(model, &(struct ew_onnx_opts){sizeof(struct ew_onnx_opts), given, in.n}, &g));
    e = run(g, &in, &want);
    ew_graph_free(g);
    return e;
}

/* ---- One test ---- */

static ew_err run_test(const char *dir)
{
    char model[400], set[500];
    snprintf(model, sizeof(model), "%s/model.onnx", dir);
    int n_sets = 0;
    for (;; n_sets++) {
        snprintf(set, sizeof(set), "%s/test_data_set_%d", dir, n_sets);
        if (access(set, R_OK) != 0)
            break;
        struct ew_arena a;
        ew_arena_init(&a);
        const ew_err e = run_set(model, set, &a);
        ew_arena_fini(&a);
        EW_TRY(e);
    }
    EW_CHECK(n_sets, EW_ERR_NOT_FOUND, "%s: no data", dir);
    return EW_OK;
}

/* Counts by "operator Foo" if the message names one, else by the message without the file name. */
static void count_reason(const char *message)
{
    char text[160];
    const char *op = strstr(message, "operator ");
    const char *tail = strstr(message, "model.onnx: ");
    if (op && strstr(op, "is not supported"))
        snprintf(text, sizeof(text), "%.*s", (int)strcspn(op + 9, " ") + 9, op);
    else
        snprintf(text, sizeof(text), "%.150s", tail ? tail + 12 : message);
    int i = 0;
    while (i < tally.n_reasons && strcmp(tally.reasons[i].text, text) != 0)
        i++;
    if (i == (int)EW_COUNT(tally.reasons))
        return;
    if (i == tally.n_reasons)
        snprintf(tally.reasons[tally.n_reasons++].text, sizeof(text), "%s", text);
    tally.reasons[i].count++;
}

static bool picked(const char *name)
{
    for (int i = 0; i < tally.n_words; i++)
        if (strstr(name, tally.words[i]))
            return true;
    return tally.n_words == 0;
}

static void judge(const char *folder, const char *name)
{
    char dir[300];
    snprintf(dir, sizeof(dir), ROOT "/%.40s/%.200s", folder, name);
    const ew_err e = run_test(dir);
    if (tally.n_words)
        printf("%s %s%s%s\n",
               e == EW_OK                ? "pass"
               : e == EW_ERR_UNSUPPORTED ? "unsupported"
                                         : "WRONG",
               name, e == EW_OK ? "" : ": ", e == EW_OK ? "" : ew_error_message());
    else if (e != EW_OK && e != EW_ERR_UNSUPPORTED)
        printf("wrong: %s/%s: %s\n", folder, name, ew_error_message());
    if (e == EW_OK)
        tally.passed++;
    else if (e == EW_ERR_UNSUPPORTED) {
        tally.unsupported++;
        count_reason(ew_error_message());
    } else
        tally.wrong++;
}

static int walk(const char *folder)
{
    char dir[300];
    snprintf(dir, sizeof(dir), ROOT "/%.40s", folder);
    struct dirent **names;
    const int n = scandir(dir, &names, NULL, alphasort);
    const int before = tally.passed + tally.unsupported + tally.wrong, passed = tally.passed;
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.' && picked(names[i]->d_name))
            judge(folder, names[i]->d_name);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    printf("%s: %d of %d passed\n", folder, tally.passed - passed,
           tally.passed + tally.unsupported + tally.wrong - before);
    return tally.passed - passed;
}

static int by_count(const void *a, const void *b)
{
    const struct reason *x = a, *y = b;
    return y->count != x->count ? y->count - x->count : strcmp(x->text, y->text);
}

static void conformance(void)
{
    if (access(ROOT, R_OK) != 0)
        EW_SKIP("there is no " ROOT " (package libonnx-testdata)");
    const int node = walk("node");
    const int converted = walk("pytorch-converted");
    const int operators = walk("pytorch-operator");
    const int simple = walk("simple");
    qsort(tally.reasons, (size_t)tally.n_reasons, sizeof(tally.reasons[0]), by_count);
    for (int i = 0; i < tally.n_reasons; i++)
        printf("unsupported %3d: %s\n", tally.reasons[i].count, tally.reasons[i].text);
    printf("%d passed, %d unsupported, %d wrong\n", tally.passed, tally.unsupported, tally.wrong);
    if (tally.n_words)
        return;
    EW_EXPECT_INT(tally.wrong, 0);
    EW_EXPECT(node >= 864);
    EW_EXPECT_INT(converted, 82);
    EW_EXPECT_INT(operators, 35);
    EW_EXPECT(simple >= 7);
}

int main(int argc, char **argv)
{
    tally.words = argv + 1;
    tally.n_words = argc - 1;
    ew_test_begin("conformance");
    conformance();
    ew_test_end();
    return ew_test_status();
}
