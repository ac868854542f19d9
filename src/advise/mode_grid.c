/* SPDX-License-Identifier: Apache-2.0 */
/* The modes that a board can be put into. */
#include "advise/mode_grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/order_stats.h"
#include "base/text.h"

#define MAX_CLOCKS 256

/* Values of one setting. */
struct axis {
    double v[MAX_CLOCKS];
    int n;
};

/* Whole numbers separated by spaces, in GHz by `unit`; `only` where there is no table. */
static void read_table(const char *text, double unit, double only, struct axis *x)
{
    x->n = 0;
    while (text && *text && x->n < MAX_CLOCKS) {
        char *end;
        const long long v = strtoll(text, &end, 10);
        if (end == text || v <= 0)
            break;
        x->v[x->n++] = (double)v * unit;
        text = end;
    }
    if (x->n == 0)
        x->v[x->n++] = only > 0 ? only : 1;
}

static ew_err combine(struct ew_arena *a, const struct axis x[4], struct ew_mode **out, int *n)
{
    const double count = (double)x[0].n * x[1].n * x[2].n * x[3].n;
    EW_CHECK(count <= EW_GRID_MODES, EW_ERR_LIMIT,
             "%.0f modes are more than %d: list them in a file", count, EW_GRID_MODES);
    struct ew_mode *m = ew_arena_array(a, (size_t)count, sizeof(*m));
    EW_CHECK(m, EW_ERR_MEMORY, "no memory for %.0f modes", count);
    *out = m;
    for (int c = 0; c < x[0].n; c++)
        for (int f = 0; f < x[1].n; f++)
            for (int g = 0; g < x[2].n; g++)
                for (int e = 0; e < x[3].n; e++)
                    *m++ = (struct ew_mode){x[0].v[c], x[1].v[f], x[2].v[g], x[3].v[e]};
    *n = (int)count;
    return EW_OK;
}

static void tables(const struct ew_profile *p, struct axis x[4])
{
    x[0].n = 0;
    for (int c = 1; c <= p->cores && c < MAX_CLOCKS; c++)
        x[0].v[x[0].n++] = c;
    if (x[0].n == 0)
        x[0].v[x[0].n++] = 1;
    read_table(p->cpu_khz, 1e-6, (double)p->cpu_mhz / 1000, &x[1]);
    read_table(p->gpu_hz, 1e-9, (double)p->gpu_mhz / 1000, &x[2]);
    read_table(p->emc_hz, 1e-9, (double)p->mem_mhz / 1000, &x[3]);
}

ew_err ew_grid_of_board(struct ew_arena *a, const struct ew_profile *p, struct ew_mode **out,
                        int *n)
{
    struct axis x[4];
    tables(p, x);
    return combine(a, x, out, n);
}

static double member(const struct ew_mode *m, int i)
{
    const double v[] = {m->cores, m->cpu, m->gpu, m->mem};
    return v[i];
}

ew_err ew_grid_of_modes(struct ew_arena *a, const struct ew_mode *modes, int n,
                        struct ew_mode **out, int *n_out)
{
    struct axis x[4];
    for (int k = 0; k < 4; k++) {
        x[k].n = 0;
        for (int i = 0; i < n; i++) {
            const double v = member(&modes[i], k);
            int j = 0;
            while (j < x[k].n && fabs(x[k].v[j] - v) > 1e-9)
                j++;
            EW_CHECK(j < MAX_CLOCKS, EW_ERR_LIMIT, "more than %d values of one setting",
                     MAX_CLOCKS);
            if (j == x[k].n)
                x[k].v[x[k].n++] = v;
        }
        ew_sort(x[k].v, x[k].n);
    }
    return combine(a, x, out, n_out);
}

static bool holds(const struct axis *x, double v)
{
    for (int i = 0; i < x->n; i++)
        if (fabs(x->v[i] / v - 1) < 0.02)
            return true;
    return false;
}

struct ew_mode ew_grid_top(const struct ew_profile *p)
{
    struct axis x[4];
    tables(p, x);
    struct ew_mode top = {.cores = (double)p->cores};
    for (int i = 0; i < x[1].n; i++)
        top.cpu = fmax(top.cpu, x[1].v[i]);
    for (int i = 0; i < x[2].n; i++)
        top.gpu = fmax(top.gpu, x[2].v[i]);
    for (int i = 0; i < x[3].n; i++)
        top.mem = fmax(top.mem, x[3].v[i]);
    return top;
}

/* CPU and memory clocks are the boards' own; GPU clocks change with the system's release. */
static bool can_be(const struct ew_profile *p, const struct ew_mode *modes, int n)
{
    struct axis x[4];
    tables(p, x);
    const struct ew_mode top = ew_grid_top(p);
    for (int i = 0; i < n; i++)
        if (modes[i].cores > top.cores || modes[i].gpu > 1.02 * top.gpu ||
            !holds(&x[1], modes[i].cpu) || !holds(&x[3], modes[i].mem))
            return false;
    return true;
}

const struct ew_profile *ew_grid_match_board(const struct ew_profile *list, int n_list,
                                             const struct ew_mode *modes, int n)
{
    const struct ew_profile *found = NULL;
    double best = HUGE_VAL;
    struct ew_mode high = {0};
    for (int i = 0; i < n; i++) {
        high.cores = fmax(high.cores, modes[i].cores);
        high.cpu = fmax(high.cpu, modes[i].cpu);
        high.mem = fmax(high.mem, modes[i].mem);
    }
    for (int i = 0; i < n_list; i++) {
        const struct ew_mode top = ew_grid_top(&list[i]);
        const double far = top.cores / high.cores + top.cpu / high.cpu + top.mem / high.mem;
        if (list[i].gpu_hz && list[i].emc_hz && far < best && far < 3.2 &&
            can_be(&list[i], modes, n)) {
            best = far;
            found = &list[i];
        }
    }
    return found;
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* Settings that a board does not have are "-"; those stay as they are in `m` if `p` is known. */
static ew_err mode_of_numbers(const struct ew_profile *p, const char *text, struct ew_mode *m)
{
    char copy[64], *rest = copy;
    double v[4] = {1, 1000, 1000, 1000};
    if (p)
        memcpy(v, (const double[]){m->cores, 1000 * m->cpu, 1000 * m->gpu, 1000 * m->mem},
               sizeof(v));
    EW_CHECK(strlen(text) < sizeof(copy), EW_ERR_USAGE, "'%.60s...' is not a mode", text);
    snprintf(copy, sizeof(copy), "%s", text);
    for (int i = 0; i < 4; i++) {
        const char *word = strsep(&rest, "/");
        if (word && strcmp(word, "-") == 0)
            continue;
        EW_CHECK(word && ew_num_float(word, &v[i]) && v[i] > 0 && v[i] < 1e6, EW_ERR_USAGE,
                 "mode '%s' is not CORES/CPU/GPU/MEM in MHz", text);
    }
    EW_CHECK(!rest, EW_ERR_USAGE, "mode '%s' has more than four numbers", text);
    *m = (struct ew_mode){v[0], v[1] / 1000, v[2] / 1000, v[3] / 1000};
    return EW_OK;
}

ew_err ew_grid_mode(const struct ew_profile *p, const char *words, struct ew_mode *m)
{
    if (strchr(words, '/'))
        return mode_of_numbers(p, words, m);
    for (int i = 0; p && i < p->n_modes; i++) {
        const struct ew_profile_mode *x = &p->modes[i];
        if (strcmp(x->name, words) != 0)
            continue;
        m->cores = x->cores ? (double)x->cores : m->cores;
        m->cpu = x->cpu_mhz ? (double)x->cpu_mhz / 1000 : m->cpu;
        m->gpu = x->gpu_mhz ? (double)x->gpu_mhz / 1000 : m->gpu;
        m->mem = x->mem_mhz ? (double)x->mem_mhz / 1000 : m->mem;
        return EW_OK;
    }
    EW_CHECK(p, EW_ERR_USAGE, "mode '%s' is not CORES/CPU/GPU/MEM in MHz", words);
    return ew_fail(EW_ERR_NOT_FOUND, "%s has no mode '%s': 'edgewise boards %s' lists them",
                   p->name, words, p->name);
}

unsigned ew_profile_lacks(const struct ew_profile *p)
{
    return (p->cores ? 0U : EW_NO_CORES) | (p->cpu_khz || p->cpu_mhz ? 0U : EW_NO_CPU) |
           (p->gpu_hz || p->gpu_mhz ? 0U : EW_NO_GPU) | (p->emc_hz || p->mem_mhz ? 0U : EW_NO_MEM);
}

const char *ew_mode_words(const struct ew_mode *m, unsigned lacks, char text[EW_MODE_CHARS])
{
    const double v[] = {m->cores, 1000 * m->cpu, 1000 * m->gpu, 1000 * m->mem};
    *text = '\0';
    for (int i = 0; i < 4; i++) {
        const char *slash = i ? "/" : "";
        if (lacks & (EW_NO_CORES << i))
            ew_text_add(text, EW_MODE_CHARS, "%s-", slash);
        else
            ew_text_add(text, EW_MODE_CHARS, "%s%.0f", slash, v[i]);
    }
    return text;
}

const char *ew_mode_text(const struct ew_mode *m, unsigned lacks, char text[EW_MODE_CHARS])
{
    static const char *const names[] = {"CPU", "GPU", "memory"};
    const double clocks[] = {m->cpu, m->gpu, m->mem};
    bool any = false;
    *text = '\0';
    if (!(lacks & EW_NO_CORES))
        ew_text_add(text, EW_MODE_CHARS, "%.0f cores", m->cores);
    for (int i = 0; i < 3; i++)
        if (!(lacks & (EW_NO_CPU << i))) {
            ew_text_add(text, EW_MODE_CHARS, "%s%s %.0f", *text ? ", " : "", names[i],
                        1000 * clocks[i]);
            any = true;
        }
    if (any)
        ew_text_add(text, EW_MODE_CHARS, " MHz");
    return text;
}
