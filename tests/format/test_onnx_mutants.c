/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's own test models, each operator with its attributes, mutated in structure: other operators,
 * connections, types, sizes, constants and versions, in well-formed messages.  Flipped bytes
 * (fuzz_onnx) rarely get past the parser; these reach shape inference, the passes and the kernels.
 * Accepted models are run in all configurations, as in fuzz_onnx.
 *
 *   EW_SEED=100000 EW_RUNS=50000 test_onnx_mutants     others, and more of them
 *   EW_SEED=123 EW_RUNS=1 EW_SAVE=x.onnx ...           a single one, also written to a file */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "ew_test.h"
#include "graph/op.h"
#include "onnx.pb-c.h"

#define ROOT      "/usr/share/libonnx-testdata/data/node"
#define CORPUS    "tests/fuzz/corpus/onnx"
#define MAX_FILE  ((size_t)1 << 18)
#define MAX_SEEDS 2000
#define RUNS      400 /* a few seconds */
#define LIMIT_S   10  /* of CPU time, per mutant */

int fuzz_onnx(const uint8_t *data, size_t size); /* the fuzz target */

/* ---- Seeds ----------------------------------------------------------------------------------- */

static struct {
    char path[300];
} seeds[MAX_SEEDS];
static int n_seeds;

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void find_seeds(const char *dir, const char *file)
{
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d)) && n_seeds < MAX_SEEDS;)
        if (e->d_name[0] != '.')
            snprintf(seeds[n_seeds++].path, sizeof(seeds->path), "%.100s/%.150s%s", dir, e->d_name,
                     file);
    if (d)
        closedir(d);
}

/* ---- The model in memory: in an arena, since parts are replaced ------------------------------ */

static void *take(void *arena, size_t size)
{
    return ew_arena_alloc(arena, size);
}

static void give(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

struct mutant {
    struct ew_arena arena;
    struct ew_rng r;
    Ew__OnnxModel *m;
    Ew__OnnxGraph *g;
};

static size_t pick(struct mutant *x, size_t n)
{
    return n ? (size_t)ew_rng_next_below(&x->r, n) : 0;
}

static int64_t edge(struct mutant *x)
{
    static const int64_t edges[] = {
        0,         1,       -1, 2,  3,         5,         -2,
        7,         16,      64, -9, INT64_MAX, INT64_MIN, INT32_MAX,
        INT32_MIN, 1 << 20, 4,  8,  1,         2,         (int64_t)1 << 33};
    return edges[pick(x, EW_COUNT(edges))];
}

static float edge_float(struct mutant *x)
{
    static const float edges[] = {0, -1, 0.5f, 1e-30f, 3.4e38f, -3.4e38f, 2.25f, 1e9f};
    const size_t i = pick(x, EW_COUNT(edges) + 2);
    return i < EW_COUNT(edges)    ? edges[i]
           : i == EW_COUNT(edges) ? __builtin_nanf("")
                                  : __builtin_inff();
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static Ew__OnnxNode *some_node(struct mutant *x)
{
    return x->g->n_node ? x->g->node[pick(x, x->g->n_node)] : NULL;
}

static char *any_name(struct mutant *x)
{
    static char none[] = "", unknown[] = "unknown";
    const Ew__OnnxNode *n = some_node(x);
    const size_t kind = pick(x, 12);
    if (kind == 0)
        return none;
    if (kind == 1)
        return unknown;
    if (kind < 5 && x->g->n_input)
        return x->g->input[pick(x, x->g->n_input)]->name;
    if (kind < 8 && x->g->n_initializer)
        return x->g->initializer[pick(x, x->g->n_initializer)]->name;
    if (n && kind < 10 && n->n_output)
        return n->output[pick(x, n->n_output)];
    return n && n->n_input ? n->input[pick(x, n->n_input)] : none;
}

/* A repeated text cannot be absent, a single one can. */
static char *some_name(struct mutant *x)
{
    static char none[] = "";
    char *name = any_name(x);
    return name ? name : none;
}

/* Appends to a repeated field of pointers. */
static void *grow(struct mutant *x, const void *list, size_t n, size_t item)
{
    char *more = ew_arena_alloc(&x->arena, (n + 1) * item);
    if (n)
        memcpy(more, list, n * item);
    return more;
}

static void change_type(struct mutant *x, Ew__OnnxNode *n)
{
    const Ew__OnnxNode *other = some_node(x);
    const struct ew_op *op = ew_op_at((int)pick(x, (size_t)ew_op_count()));
    const char *const *also = op->onnx.also;
    if (pick(x, 4) == 0)
        n->op_type = other->op_type;
    else if (op->onnx.type || also)
        n->op_type = ew_arena_strdup(&x->arena, also && pick(x, 2) ? also[0]
                                                : op->onnx.type    ? op->onnx.type
                                                                   : also[0]);
}

static void change_wires(struct mutant *x, Ew__OnnxNode *n)
{
    switch (pick(x, 6)) {
    case 0: /* one input fewer, or one more */
        n->n_input -= n->n_input > 0;
        break;
    case 1:
        n->input = grow(x, n->input, n->n_input, sizeof(*n->input));
        n->input[n->n_input++] = some_name(x);
        break;
    case 2:
        if (n->n_output)
            n->output[pick(x, n->n_output)] = some_name(x);
        break;
    case 3:
        n->n_output -= n->n_output > 0;
        break;
    default:
        if (n->n_input)
            n->input[pick(x, n->n_input)] = some_name(x);
    }
}

static void change_attr(struct mutant *x, Ew__OnnxNode *n)
{
    const Ew__OnnxNode *other = some_node(x);
    if (pick(x, 6) == 0 && other->n_attribute) { /* another node's */
        n->attribute = grow(x, n->attribute, n->n_attribute, sizeof(*n->attribute));
        n->attribute[n->n_attribute++] = other->attribute[pick(x, other->n_attribute)];
    }
    if (!n->n_attribute)
        return;
    Ew__OnnxAttr *a = n->attribute[pick(x, n->n_attribute)];
    switch (pick(x, 8)) {
    case 0:
        n->attribute[0] = n->attribute[--n->n_attribute];
        break;
    case 1:
        a->type = (int32_t)pick(x, 15);
        break;
    case 2:
        a->ints = grow(x, a->ints, a->n_ints, sizeof(*a->ints));
        a->ints[a->n_ints++] = edge(x);
        break;
    case 3:
        a->n_ints -= a->n_ints > 0;
        break;
    default:
        a->i = edge(x);
        a->f = edge_float(x);
        if (a->n_ints)
            a->ints[pick(x, a->n_ints)] = edge(x);
        if (a->n_floats)
            a->floats[pick(x, a->n_floats)] = edge_float(x);
    }
}

/* Changes a constant that determines shapes: a value, the type, the size, the bytes. */
static void change_constant(struct mutant *x)
{
    if (!x->g->n_initializer)
        return;
    Ew__OnnxTensor *t = x->g->initializer[pick(x, x->g->n_initializer)];
    const int64_t v = edge(x);
    switch (pick(x, 7)) {
    case 0:
        t->data_type = (int32_t)pick(x, 18);
        break;
    case 1:
        if (t->n_dims)
            t->dims[pick(x, t->n_dims)] = edge(x);
        break;
    case 2:
        t->n_dims -= t->n_dims > 0;
        break;
    case 3:
        t->name = some_name(x);
        break;
    default:
        if (t->n_int64_data)
            t->int64_data[pick(x, t->n_int64_data)] = v;
        if (t->has_raw_data && t->raw_data.len >= 8)
            memcpy(t->raw_data.data + pick(x, t->raw_data.len / 8) * 8, &v, 8);
        if (t->n_float_data)
            t->float_data[pick(x, t->n_float_data)] = edge_float(x);
    }
}

static void change_value(struct mutant *x)
{
    Ew__OnnxGraph *g = x->g;
    Ew__OnnxValue *v = pick(x, 3) && g->n_input ? g->input[pick(x, g->n_input)]
                       : g->n_output            ? g->output[pick(x, g->n_output)]
                                                : NULL;
    Ew__OnnxTensorType *t = v && v->type ? v->type->tensor_type : NULL;
    if (!t)
        return;
    switch (pick(x, 5)) {
    case 0:
        t->elem_type = (int32_t)pick(x, 18);
        break;
    case 1:
        if (t->shape)
            t->shape->n_dim -= t->shape->n_dim > 0;
        break;
    case 2:
        v->name = some_name(x);
        break;
    default:
        if (t->shape && t->shape->n_dim) {
            Ew__OnnxDim *d = t->shape->dim[pick(x, t->shape->n_dim)];
            d->has_dim_value = pick(x, 6) != 0;
            d->dim_param = NULL;
            d->dim_value = edge(x);
        }
    }
}

/* Replaces an input by a constant of its size, with small or unusual values. */
static void make_constant(struct mutant *x)
{
    Ew__OnnxGraph *g = x->g;
    if (!g->n_input)
        return;
    const Ew__OnnxValue *v = g->input[pick(x, g->n_input)];
    const Ew__OnnxTensorType *type = v->type ? v->type->tensor_type : NULL;
    if (!type || !type->shape || (type->elem_type != 7 && type->elem_type != 1))
        return;
    Ew__OnnxTensor *t = ew_arena_alloc(&x->arena, sizeof(*t));
    size_t n = 1;
    ew__onnx_tensor__init(t);
    t->n_dims = type->shape->n_dim;
    t->dims = ew_arena_alloc(&x->arena, (t->n_dims + 1) * sizeof(*t->dims));
    for (size_t i = 0; i < t->n_dims; i++) {
        t->dims[i] = type->shape->dim[i]->dim_value;
        n *= t->dims[i] > 0 && t->dims[i] < 64 ? (size_t)t->dims[i] : 1;
    }
    n = n > 4096 ? 4096 : n;
    t->name = v->name;
    t->has_data_type = true;
    t->data_type = type->elem_type;
    t->int64_data = ew_arena_alloc(&x->arena, n * sizeof(int64_t));
    t->float_data = ew_arena_alloc(&x->arena, n * sizeof(float));
    const bool odd = pick(x, 3) == 0;
    for (size_t i = 0; i < n; i++) {
        t->int64_data[i] = odd ? edge(x) : (int64_t)pick(x, 4);
        t->float_data[i] = odd ? edge_float(x) : (float)pick(x, 8) - 2;
    }
    t->n_int64_data = type->elem_type == 7 ? n : 0;
    t->n_float_data = type->elem_type == 1 ? n : 0;
    g->initializer = grow(x, g->initializer, g->n_initializer, sizeof(*g->initializer));
    g->initializer[g->n_initializer++] = t;
}

static void change_nodes(struct mutant *x)
{
    Ew__OnnxGraph *g = x->g;
    Ew__OnnxNode *n = some_node(x), *copy;
    switch (pick(x, 4)) {
    case 0:
        g->node[pick(x, g->n_node)] = g->node[g->n_node - 1];
        g->n_node--;
        break;
    case 1: /* applies the node twice: y = f(f(x)) */
        copy = ew_arena_alloc(&x->arena, sizeof(*copy));
        *copy = *n;
        copy->input = grow(x, n->input, n->n_input, sizeof(*n->input));
        copy->output = grow(x, n->output, n->n_output, sizeof(*n->output));
        if (n->n_output && n->n_input) {
            n->output[0] = ew_arena_printf(&x->arena, "between%d", (int)pick(x, 3));
            copy->input[pick(x, n->n_input)] = n->output[0];
        }
        g->node = grow(x, g->node, g->n_node, sizeof(*g->node));
        g->node[g->n_node++] = copy;
        break;
    default:
        if (x->m->n_opset_import)
            x->m->opset_import[0]->version = 1 + (int64_t)pick(x, 25);
    }
}

static void mutate(struct mutant *x)
{
    for (size_t n = 1 + pick(x, 4); n > 0 && x->g->n_node; n--) {
        const size_t kind = pick(x, 16);
        if (kind < 2)
            change_type(x, some_node(x));
        else if (kind < 4)
            change_wires(x, some_node(x));
        else if (kind < 8)
            change_attr(x, some_node(x));
        else if (kind < 10)
            change_constant(x);
        else if (kind < 12)
            change_value(x);
        else if (kind < 15)
            make_constant(x);
        else
            change_nodes(x);
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

static void save(const uint8_t *bytes, size_t size)
{
    const char *to = getenv("EW_SAVE");
    if (to)
        EW_EXPECT_OK(ew_file_write(to, (const char *)bytes, size));
}

/* Runs mutant k. */
static void run_one(int64_t k)
{
    struct mutant x = {.r = {.seed = (uint64_t)k, .stream = 77}};
    char *bytes = NULL;
    size_t size = 0;
    ew_arena_init(&x.arena);
    ProtobufCAllocator allocator = {take, give, &x.arena};
    const char *path = seeds[pick(&x, (size_t)n_seeds)].path;
    if (ew_file_read(path, MAX_FILE, &bytes, &size) == EW_OK)
        x.m = ew__onnx_model__unpack(&allocator, size, (const uint8_t *)bytes);
    x.g = x.m ? x.m->graph : NULL;
    if (x.g) {
        mutate(&x);
        const size_t n = ew__onnx_model__get_packed_size(x.m);
        uint8_t *out = malloc(n + 1);
        ew__onnx_model__pack(x.m, out);
        save(out, n);
        setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = LIMIT_S}}, NULL);
        fuzz_onnx(out, n);
        free(out);
    }
    free(bytes);
    ew_arena_fini(&x.arena);
}

static int64_t number(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text ? atoll(text) : otherwise;
}

/* In child processes, so that a crash is attributed to its mutant. */
static void structure(void)
{
    const int64_t first = number("EW_SEED", 1),
                  end = first + number("EW_RUNS", ew_test_quick() ? RUNS / 4 : RUNS);
    int64_t *at =
        mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    find_seeds(ROOT, "/model.onnx");
    find_seeds(CORPUS, "");
    EW_EXPECT(n_seeds > 0 && at != MAP_FAILED);
    qsort(seeds, (size_t)n_seeds, sizeof(seeds[0]), by_name);
    for (*at = first; *at < end; ++*at) {
        int status = 0;
        fflush(NULL);
        const pid_t pid = fork();
        if (pid == 0) {
            for (; *at < end; ++*at)
                run_one(*at);
            _exit(0);
        }
        EW_EXPECT(waitpid(pid, &status, 0) == pid);
        if (status)
            EW_FAIL("mutant %lld ends with status %#x", (long long)*at, status);
    }
    munmap(at, sizeof(*at));
}

EW_TEST_MAIN(EW_TEST(structure))
