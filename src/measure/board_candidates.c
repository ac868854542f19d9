/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated boards as configurations to choose from. */
#include "measure/board_candidates.h"

#include <math.h>
#include <string.h>

#include "advise/mode_grid.h"
#include "advise/simulate.h"
#include "model/objective.h"

static const struct ew_interval none = {NAN, NAN, NAN, NAN, NAN, 0};

static struct ew_interval first_guess(double v, double sd)
{
    return ew_interval_lognormal(log(v), sd, sd);
}

static struct ew_interval known(double v)
{
    return (struct ew_interval){v, v, v, v, v, 0};
}

/* Memory of a process beside its plan: the program (11 and 16 MB with mobilenet_v2 and resnet18 on
 * x86), and an accelerator's context and libraries (assumed). */
#define PROCESS_BYTES 14e6
#define CONTEXT_BYTES 300e6
#define SYSTEM_BYTES  500e6 /* memory of the operating system: assumed, no desktop */
#define BESIDE_SD     0.4

static double beside_bytes(const struct ew_profile *b)
{
    return PROCESS_BYTES + (b->gpu_mhz ? CONTEXT_BYTES : 0);
}

/* Memory in MiB. */
static struct ew_interval memory_guess(const struct ew_profile *b, const struct ew_sim_load *l)
{
    const double plan = (double)l->memory_bytes, mid = plan + beside_bytes(b);
    return ew_interval_lognormal(log(mid / (1 << 20)), BESIDE_SD * beside_bytes(b) / mid,
                                 BESIDE_SD * beside_bytes(b) / mid);
}

static ew_err load_of(struct ew_arena *a, const struct ew_board_space *o, struct ew_sim_load *out)
{
    const struct ew_network_open_opts how = {.opts = o->net, .shapes = true};
    struct ew_network n = {0};
    ew_err e = ew_network_open(o->network, &how, &n);
    if (e == EW_OK && o->train)
        e = ew_objective_add(n.graph);
    if (e == EW_OK)
        e = ew_sim_load_of(a, n.graph, o->train, out);
    ew_network_close(&n);
    return e;
}

static bool is_among(const char *names, const char *board)
{
    const size_t n = strlen(board);
    if (strcmp(names, "boards") == 0)
        return true;
    for (const char *p = names; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, board, n) == 0 && (p[n] == ',' || !p[n]))
            return true;
    }
    return false;
}

static ew_err check_names(const char *names, const struct ew_profile *list, int n)
{
    if (strcmp(names, "boards") == 0)
        return EW_OK;
    for (const char *p = names; *p; p += *p == ',') {
        const size_t length = strcspn(p, ",");
        const struct ew_profile *found = NULL;
        for (int i = 0; i < n && !found; i++)
            if (strlen(list[i].name) == length && strncmp(list[i].name, p, length) == 0)
                found = &list[i];
        EW_CHECK(found, EW_ERR_NOT_FOUND,
                 "--among '%.*s': no such board; 'boards' means all, 'edgewise boards' lists them",
                 (int)length, p);
        EW_CHECK(found->model.gpu > 0, EW_ERR_UNSUPPORTED,
                 "--among %s: its profile has no [model] to simulate", found->name);
        p += length;
    }
    return EW_OK;
}

/* Adds one board in one mode. */
static ew_err add(const struct ew_profile *b, const struct ew_sim_load *l, const struct ew_mode *m,
                  const char *name, struct ew_candidate *x)
{
    struct ew_sim_work w;
    struct ew_sim_epoch e;
    const struct ew_sim_setting s = {.mode = *m, .workers = 1};
    ew_sim_work_of(l, l->train ? EW_SIM_TRAIN : EW_SIM_NATIVE, &w);
    EW_TRY(ew_simulate(b, &w, &s, &e));
    *x = (struct ew_candidate){.name = name, .mode = *m, .lacks = ew_profile_lacks(b)};
    for (int k = 0; k < EW_CRITERIA; k++)
        x->v[k] = none;
    x->v[EW_CRITERION_TIME] = first_guess(e.epoch_s, EW_SIM_TIME_SD);
    x->v[EW_CRITERION_LATENCY] = first_guess(1e3 * e.epoch_s, EW_SIM_TIME_SD);
    x->v[EW_CRITERION_POWER] = first_guess(e.power_w, EW_SIM_POWER_SD);
    x->v[EW_CRITERION_ENERGY] = first_guess(
        e.energy_j, sqrt(EW_SIM_TIME_SD * EW_SIM_TIME_SD + EW_SIM_POWER_SD * EW_SIM_POWER_SD));
    x->v[EW_CRITERION_MEMORY] = memory_guess(b, l);
    if (b->price_usd > 0)
        x->v[EW_CRITERION_PRICE] = known(b->price_usd);
    return EW_OK;
}

static bool fits(const struct ew_profile *b, const struct ew_sim_load *l)
{
    return !b->ram_gb ||
           (double)l->memory_bytes + beside_bytes(b) + SYSTEM_BYTES < 1e9 * (double)b->ram_gb;
}

static bool same_mode(const struct ew_mode *a, const struct ew_mode *b)
{
    return fabs(a->cores - b->cores) < 0.5 && fabs(a->cpu - b->cpu) < 1e-3 &&
           fabs(a->gpu - b->gpu) < 1e-3 && fabs(a->mem - b->mem) < 1e-3;
}

static ew_err add_board(struct ew_arena *a, const struct ew_profile *b, const struct ew_sim_load *l,
                        struct ew_candidate *out, int *n)
{
    const struct ew_mode top = ew_sim_top(b);
    struct ew_mode *grid, m = top;
    int n_grid;
    EW_TRY(add(b, l, &m, b->name, &out[(*n)++]));
    for (int i = 0; i < b->n_modes; i++) {
        const char *name = ew_arena_printf(a, "%s, mode %s", b->name, b->modes[i].name);
        EW_CHECK(name, EW_ERR_MEMORY, "no memory for boards");
        m = ew_sim_top(b);
        EW_TRY(ew_grid_mode(b, b->modes[i].name, &m));
        EW_TRY(add(b, l, &m, name, &out[(*n)++]));
    }
    if (!b->cpu_khz)
        return EW_OK;
    EW_TRY(ew_grid_of_board(a, b, &grid, &n_grid));
    const int take = n_grid < EW_BOARD_MODES ? n_grid : EW_BOARD_MODES;
    for (int i = 0; i < take; i++) {
        m = grid[(int64_t)i * n_grid / take];
        m.gpu = b->gpu_mhz ? m.gpu : m.cpu;
        if (same_mode(&m, &top)) /* added already */
            continue;
        EW_TRY(add(b, l, &m, b->name, &out[(*n)++]));
    }
    return EW_OK;
}

ew_err ew_candidates_of_boards(struct ew_arena *a, const struct ew_board_space *o,
                               struct ew_candidate **out, int *n)
{
    const struct ew_profile *list;
    struct ew_sim_load l;
    int n_list, n_fit = 0;
    size_t room = 0;
    EW_TRY(ew_profiles_load(a, &list, &n_list));
    EW_TRY(check_names(o->names, list, n_list));
    EW_TRY(load_of(a, o, &l));
    for (int i = 0; i < n_list; i++)
        room += (size_t)list[i].n_modes + 1 + EW_BOARD_MODES;
    *out = ew_arena_array(a, room, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for boards");
    *n = 0;
    for (int i = 0; i < n_list; i++)
        if (list[i].model.gpu > 0 && is_among(o->names, list[i].name) && fits(&list[i], &l)) {
            EW_TRY(add_board(a, &list[i], &l, *out, n));
            n_fit++;
        }
    EW_CHECK(
        n_fit, EW_ERR_NOT_FOUND,
        "%s needs %.0f MiB, more than any of these boards has left beside its operating system",
        o->network, (double)l.memory_bytes / (1 << 20));
    return EW_OK;
}
