/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware simulation: random layers through share/fpga/dpu_tile.v under verilator give the bits of
 * the emulated DPU, in as many cycles as the model's formula says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/dpu/dpu_model.h"
#include "base/rng.h"
#include "edgewise.h"
#include "ew_test.h"
#include "op/dpu.h"
#include "plan/plan.h"

/* The smallest DPU size: larger ones are the same source with other parameters. */
enum { PP = 4, ICP = 8, OCP = 8 };

struct layer {
    const char *name;
    int h, w, ic, oc, kernel, stride, shift, bias_shift, lo, hi;
};

static const struct layer layers[] = {
    {"3x3, relu", 7, 6, 11, 9, 3, 1, 9, 6, 0, 127},
    {"1x1, stride 2, no bias shift", 9, 5, 16, 17, 1, 2, 7, 0, -128, 127},
    {"5x5, relu6, the last shift", 5, 6, 20, 8, 5, 1, 16, 12, 0, 96},
    {"no shift", 4, 3, 1, 3, 1, 1, 0, 0, -128, 127},
    {"3x3, ties often", 6, 6, 2, 8, 3, 1, 2, 1, -128, 127},
};

struct work {
    const struct layer *l;
    char dir[256];
    int8_t *x, *w, *b;
    int oh, ow;
    int64_t cycles;
};

static bool build_tile(const char *dir)
{
    char command[2400], here[512];
    if (!getcwd(here, sizeof(here)))
        return false;
    snprintf(command, sizeof(command),
             "cd '%s' && verilator --binary -Wno-fatal -GPP=%d -GICP=%d -GOCP=%d --top-module "
             "dpu_tile_bench -Mdir obj -CFLAGS -O0 '%s/tests/backend/dpu_tile_bench.sv' "
             "'%s/share/fpga/dpu_tile.v' >build.log 2>&1",
             dir, PP, ICP, OCP, here, here);
    return system(command) == 0;
}

/* Writes the bytes of a vector in hexadecimal, most significant (last) first, as in Verilog. */
static void put_bytes(FILE *f, const int8_t *v, int n)
{
    for (int i = n - 1; i >= 0; i--)
        fprintf(f, "%02x", (uint8_t)v[i]);
    fputc(' ', f);
}

static int8_t pixel(const struct work *k, int row, int column, int channel)
{
    const struct layer *l = k->l;
    if (row < 0 || row >= l->h || column < 0 || column >= l->w || channel >= l->ic)
        return 0;
    return k->x[(row * l->w + column) * l->ic + channel];
}

static int8_t weight(const struct work *k, int filter, int tap, int channel)
{
    const struct layer *l = k->l;
    return filter < l->oc && channel < l->ic
               ? k->w[(filter * l->kernel * l->kernel + tap) * l->ic + channel]
               : 0;
}

/* One cycle.  at: first row, column, first filter; then tap, first channel. */
static void put_cycle(const struct work *k, const int at[3], int tap, int channel, FILE *f)
{
    const struct layer *l = k->l;
    const int pad = l->kernel / 2, taps = l->kernel * l->kernel;
    int8_t x[PP * ICP], w[OCP * ICP], b[OCP];
    for (int i = 0; i < PP * ICP; i++)
        x[i] = pixel(k, (at[0] + i / ICP) * l->stride - pad + tap / l->kernel,
                     at[1] * l->stride - pad + tap % l->kernel, channel + i % ICP);
    for (int i = 0; i < OCP * ICP; i++)
        w[i] = weight(k, at[2] + i / ICP, tap, channel + i % ICP);
    for (int i = 0; i < OCP; i++)
        b[i] = at[2] + i < l->oc ? k->b[at[2] + i] : 0;
    fprintf(f, "%d %d ", tap == 0 && channel == 0, tap == taps - 1 && channel + ICP >= l->ic);
    put_bytes(f, x, PP * ICP);
    put_bytes(f, w, OCP * ICP);
    put_bytes(f, b, OCP);
    fputc('\n', f);
}

static void put_layer(struct work *k, FILE *f)
{
    const struct layer *l = k->l;
    fprintf(f, "%d %d %d %d\n", l->shift, l->bias_shift, l->lo, l->hi);
    for (int row = 0; row < k->oh; row += PP)
        for (int column = 0; column < k->ow; column++)
            for (int filter = 0; filter < l->oc; filter += OCP)
                for (int tap = 0; tap < l->kernel * l->kernel; tap++)
                    for (int channel = 0; channel < l->ic; channel += ICP) {
                        put_cycle(k, (int[]){row, column, filter}, tap, channel, f);
                        k->cycles++;
                    }
}

/* Compares the tiles, in the order of input, with the emulator's output. */
static void compare(const struct work *k, const int8_t *want, FILE *f)
{
    const struct layer *l = k->l;
    char line[2 * PP * OCP + 64];
    int wrong = 0, seen = 0;
    for (int row = 0; row < k->oh; row += PP)
        for (int column = 0; column < k->ow; column++)
            for (int filter = 0; filter < l->oc; filter += OCP) {
                if (!fgets(line, sizeof(line), f) || strlen(line) < 2 * PP * OCP)
                    break;
                for (int i = 0; i < PP * OCP; i++) {
                    const int r = row + i / OCP, o = filter + i % OCP;
                    char byte[3] = {0};
                    memcpy(byte, line + 2 * (PP * OCP - 1 - i), 2);
                    if (r >= k->oh || o >= l->oc)
                        continue;
                    seen++;
                    wrong +=
                        (int8_t)strtol(byte, NULL, 16) != want[(r * k->ow + column) * l->oc + o];
                }
            }
    long long cycles = -1;
    EW_EXPECT_INT(seen, k->oh * k->ow * l->oc);
    EW_EXPECT_INT(wrong, 0);
    EW_EXPECT(fgets(line, sizeof(line), f) && sscanf(line, "cycles %lld", &cycles) == 1);
    EW_EXPECT_INT(cycles, k->cycles);
}

static bool run_tile(const char *dir)
{
    char command[400];
    snprintf(command, sizeof(command), "cd '%s' && obj/Vdpu_tile_bench >run.log 2>&1", dir);
    return system(command) == 0;
}

static struct ew_graph *graph_of(const struct work *k)
{
    const struct layer *l = k->l;
    const struct ew_tensor x = {.dtype = EW_S8, .shape = {4, {1, l->h, l->w, l->ic}}};
    const struct ew_tensor w = {
        .dtype = EW_S8, .shape = {4, {l->oc, l->kernel, l->kernel, l->ic}}, .data = k->w};
    const struct ew_tensor b = {.dtype = EW_S8, .shape = {1, {l->oc}}, .data = k->b};
    const int pad = l->kernel / 2;
    const struct ew_dpu_conv_attr a = {
        .conv = {.win = {.stride = {2, {l->stride, l->stride}}, .pad = {4, {pad, pad, pad, pad}}},
                 .groups = 1},
        .clamp = {l->lo, l->hi},
        .shift = l->shift,
        .bias_shift = l->bias_shift};
    struct ew_graph *g = NULL;
    int in[3], out = 0;
    EW_EXPECT_OK(ew_graph_new("layer", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_S8, &x.shape, &in[0]));
    EW_EXPECT_OK(ew_graph_const(g, "w", EW_VALUE_CONST, &w, true, &in[1]));
    EW_EXPECT_OK(ew_graph_const(g, "b", EW_VALUE_CONST, &b, true, &in[2]));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("dpu_conv"), "conv", &a, ew_inputs(in, 3), &out));
    EW_EXPECT_OK(ew_graph_output(g, out));
    return g;
}

static void emulate_and_compare(struct work *k)
{
    const struct ew_plan_opts o = {.backend = {.device = "dpu", .threads = 1}};
    char path[300];
    struct ew_graph *g = graph_of(k);
    struct ew_plan *p = NULL;
    if (EW_EXPECT_OK(ew_plan_compile(g, &o, &p))) {
        memcpy(ew_plan_input(p, 0)->data, k->x, (size_t)k->l->h * k->l->w * k->l->ic);
        EW_EXPECT_OK(ew_plan_run(p));
        snprintf(path, sizeof(path), "%s/results.txt", k->dir);
        FILE *f = fopen(path, "r");
        if (EW_EXPECT(f)) {
            compare(k, ew_plan_output(p, 0)->data, f);
            fclose(f);
        }
    }
    ew_plan_free(p);
    ew_graph_free(g);
}

static int8_t *random_bytes(struct ew_rng *r, int n)
{
    int8_t *v = malloc((size_t)n);
    for (int i = 0; v && i < n; i++)
        v[i] = (int8_t)ew_rng_next(r);
    return v;
}

static void run_layer(const struct layer *l, const char *dir, struct ew_rng *r)
{
    const int pad = l->kernel / 2, taps = l->kernel * l->kernel;
    struct work k = {.l = l,
                     .x = random_bytes(r, l->h * l->w * l->ic),
                     .w = random_bytes(r, l->oc * taps * l->ic),
                     .b = random_bytes(r, l->oc),
                     .oh = (l->h + 2 * pad - l->kernel) / l->stride + 1,
                     .ow = (l->w + 2 * pad - l->kernel) / l->stride + 1};
    char path[300];
    snprintf(k.dir, sizeof(k.dir), "%s", dir);
    snprintf(path, sizeof(path), "%s/cycles.txt", dir);
    FILE *f = fopen(path, "w");
    if (EW_EXPECT(f && k.x && k.w && k.b)) {
        put_layer(&k, f);
        fclose(f);
        const int64_t formula = (int64_t)((k.oh + PP - 1) / PP) * k.ow * ((l->oc + OCP - 1) / OCP) *
                                ((l->ic + ICP - 1) / ICP) * taps;
        EW_EXPECT_INT(k.cycles, formula);
        if (EW_EXPECT(run_tile(dir)))
            emulate_and_compare(&k);
    }
    free(k.x);
    free(k.w);
    free(k.b);
}

static void tiles(void)
{
    struct ew_rng r = {.seed = 1};
    const char *dir = ew_test_dir();
    if (ew_test_quick())
        EW_SKIP("the model of the circuit is run once, where all cases are");
    if (system("verilator --version >/dev/null 2>&1") != 0)
        EW_SKIP("verilator is not installed");
    if (!EW_EXPECT(build_tile(dir)))
        return;
    for (size_t i = 0; i < EW_COUNT(layers); i++)
        run_layer(&layers[i], dir, &r);
}

EW_TEST_MAIN(EW_TEST(tiles))
