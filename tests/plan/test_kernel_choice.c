/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that the rules choose over the zoo, for inference, int8 and training, on every
 * instruction set of this machine: compared with tests/plan/kernel_choice.txt, so that the effect
 * of a changed rule is visible.
 *
 * A line is one plan: instruction set, network, mode, then each kernel with its number of steps,
 * and a hash of the sequence.  EW_TEST_DUMP=FILE writes the lines of this machine (the new
 * expectations, if a change is intended), EW_TEST_STEPS=FILE every step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/isa.h"
#include "base/file.h"
#include "compress/pass.h"
#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"
#include "quant_graph.h"

#define GOLDEN  "tests/plan/kernel_choice.txt"
#define KERNELS 64
#define LINE    2048

enum mode { INFER_1, INFER_16, TRAIN_16, INT8, MODES };

static const char *const mode_names[MODES] = {"infer_1", "infer_16", "train_16", "int8_1"};

/* One network of each family; int8: input size for int8, or 0. */
static const struct {
    const char *name;
    int int8;
} nets[] = {{"lenet5", 28},
            {"alexnet", 0},
            {"vgg11_cifar", 0},
            {"resnet9", 0},
            {"resnet18", 64},
            {"resnet50", 0},
            {"resnext50_32x4d", 64},
            {"preact_resnet18", 0},
            {"squeezenet1_1", 96},
            {"densenet121", 0},
            {"shufflenet_v2_x1_0", 64},
            {"mobilenet_v2", 64},
            {"mobilenet_v3_small", 64}};

/* The graph after the inference passes, which a dry plan does not apply. */
static struct ew_graph *passed(struct ew_graph *g)
{
    if (g && EW_EXPECT_OK(ew_pass_all(g)) && EW_EXPECT_OK(ew_graph_sweep(g)))
        return g;
    ew_graph_free(g);
    return NULL;
}

static struct ew_graph *build(const char *name, int size, enum mode mode)
{
    if (mode == INT8)
        return passed(ew_quant_graph(name, size, false));
    struct ew_model_opts o = {.size = sizeof(o), .batch = mode == TRAIN_16 ? 16 : 1};
    struct ew_graph *g = NULL;
    const bool train = mode == TRAIN_16;
    if (EW_EXPECT_OK(ew_model_build(name, &o, &g)) &&
        (train ? EW_EXPECT_OK(ew_objective_add(g)) : EW_EXPECT_OK(ew_model_init(name, 1, g))))
        return train ? g : passed(g);
    ew_graph_free(g);
    return NULL;
}

struct tally {
    const char *kernel[KERNELS];
    int count[KERNELS], n;
    uint64_t hash;
};

static void add(struct tally *t, const char *kernel)
{
    int i = 0;
    while (i < t->n && strcmp(t->kernel[i], kernel) != 0)
        i++;
    if (i == t->n && EW_EXPECT(t->n < KERNELS))
        t->kernel[t->n++] = kernel;
    if (i < KERNELS)
        t->count[i]++;
    for (const char *c = kernel;; c++) { /* FNV-1a, terminating zero included */
        t->hash = (t->hash ^ (uint8_t)*c) * 0x100000001b3u;
        if (!*c)
            break;
    }
}

/* The line of one plan. */
static void describe(const struct ew_plan *p, const char *title, FILE *steps, char out[LINE])
{
    struct tally t = {.hash = 0xcbf29ce484222325u};
    for (int i = 0; i < ew_plan_step_count(p); i++) {
        struct ew_step_info s;
        ew_plan_step_info(p, i, &s);
        if (!s.op)
            continue; /* a step of the plan itself */
        add(&t, s.kernel);
        if (steps)
            fprintf(steps, "%s %d %s %s: %s\n", title, (int)s.phase, s.name, s.op, s.kernel);
    }
    size_t at = (size_t)snprintf(out, LINE, "%s", title);
    for (int i = 0; i < t.n; i++)
        at += (size_t)snprintf(out + at, LINE - at, "; %s %d", t.kernel[i], t.count[i]);
    snprintf(out + at, LINE - at, "; %016llx\n", (unsigned long long)t.hash);
}

/* The file's line for this title, or NULL. */
static const char *expected(const char *all, const char *title)
{
    const size_t n = strlen(title);
    for (const char *line = all; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, title, n) == 0 && line[n] == ';')
            return line;
    }
    return NULL;
}

/* Arguments of a test run. */
struct job {
    const char *golden;
    FILE *lines, *steps; /* NULL: not wanted */
};

/* True if the file has lines for this instruction set. */
static bool covers(const char *golden, const char *isa)
{
    const size_t n = strlen(isa);
    for (const char *line = golden; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, isa, n) == 0 && line[n] == ' ')
            return true;
    }
    return false;
}

static void check(const struct job *j, struct ew_graph *g, const char *net, enum mode mode)
{
    char title[128], line[LINE];
    const bool train = mode == TRAIN_16;
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
                                   .dry = true,
                                   .update = train,
                                   .optimizer = {.momentum = 0.9},
                                   .backend = {.device = "cpu", .threads = 1}};
    snprintf(title, sizeof(title), "%s %s %s", getenv("EW_ISA"), net, mode_names[mode]);
    ew_test_begin("%s", title);
    if (!j->lines && !covers(j->golden, getenv("EW_ISA"))) {
        ew_test_skip("%s has no lines of %s", GOLDEN, getenv("EW_ISA"));
    } else if (EW_EXPECT_OK(ew_plan_compile(g, &o, &p))) {
        describe(p, title, j->steps, line);
        const char *want = expected(j->golden, title);
        if (j->lines)
            fputs(line, j->lines);
        else if (EW_EXPECT(want != NULL) && !EW_EXPECT(strncmp(want, line, strlen(line)) == 0))
            printf("  was %.*s\n  is  %s", (int)strcspn(want, "\n"), want, line);
    }
    ew_plan_free(p);
    ew_test_end();
}

static void check_isas(const struct job *j, struct ew_graph *g, const char *net, enum mode mode)
{
    for (int i = 0; ew_isa_at(i); i++) {
        setenv("EW_ISA", ew_isa_at(i)->isa, 1);
        check(j, g, net, mode);
    }
}

/* One graph for all instruction sets and both batch sizes of inference: initialising weights and
 * calibration take most of the time. */
static void check_all(const struct job *j, size_t net, enum mode mode)
{
    const char *name = nets[net].name;
    struct ew_graph *g = build(name, nets[net].int8, mode);
    if (g)
        check_isas(j, g, name, mode);
    if (g && mode == INFER_1 && EW_EXPECT_OK(ew_graph_set_batch(g, 16)))
        check_isas(j, g, name, INFER_16);
    ew_graph_free(g);
}

static FILE *file_of(const char *variable)
{
    const char *path = getenv(variable);
    return path ? fopen(path, "w") : NULL;
}

int main(int argc, char **argv)
{
    const bool quick = ew_test_quick();
    struct job j = {.lines = file_of("EW_TEST_DUMP"), .steps = file_of("EW_TEST_STEPS")};
    char *golden = NULL;
    size_t size;
    if (ew_file_read(GOLDEN, 1 << 20, &golden, &size) != EW_OK && !j.lines) {
        printf("FAIL %s cannot be read\n", GOLDEN);
        return 1;
    }
    j.golden = golden;
    for (size_t k = 0; k < (quick ? 1 : EW_COUNT(nets)); k++)
        for (enum mode m = 0; m < MODES; m++)
            if (m != INFER_16 && (m != INT8 || nets[k].int8) &&
                (argc < 2 || strcmp(argv[1], nets[k].name) == 0))
                check_all(&j, k, m);
    if (j.lines)
        fclose(j.lines);
    if (j.steps)
        fclose(j.steps);
    free(golden);
    return ew_test_status();
}
