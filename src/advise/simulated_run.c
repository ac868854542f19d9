/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on boards that are not here. */
#include "advise/simulated_run.h"

#include <string.h>

#include "advise/mode_grid.h"

/* ---- Which board ----------------------------------------------------------------------------- */

static ew_err check_mode(const struct ew_simulated *s)
{
    const struct ew_mode top = ew_sim_top(s->board), *m = &s->mode;
    EW_CHECK(s->board->model.gpu > 0, EW_ERR_UNSUPPORTED, "the profile of %s has no [model]",
             s->board->name);
    EW_CHECK(m->cores <= top.cores && m->cpu <= 1.02 * top.cpu && m->gpu <= 1.02 * top.gpu &&
                 m->mem <= 1.02 * top.mem,
             EW_ERR_ARG, "mode '%s' is above the highest of %s: %.0f/%.0f/%.0f/%.0f", s->mode_name,
             s->board->name, top.cores, 1000 * top.cpu, 1000 * top.gpu, 1000 * top.mem);
    return EW_OK;
}

ew_err ew_simulated_init(struct ew_simulated *s, const char *words)
{
    const struct ew_profile *list;
    int n;
    ew_arena_init(&s->arena);
    char *board = ew_arena_strdup(&s->arena, words);
    EW_CHECK(board, EW_ERR_MEMORY, "no memory");
    char *mode = strchr(board, ':');
    if (mode)
        *mode++ = '\0';
    EW_TRY(ew_profiles_load(&s->arena, &list, &n));
    EW_TRY(ew_profile_named(list, n, board, &s->board));
    s->mode = ew_sim_top(s->board);
    s->mode_name = mode && *mode ? mode : "";
    if (*s->mode_name)
        EW_TRY(ew_grid_mode(s->board, s->mode_name, &s->mode));
    return check_mode(s);
}

void ew_simulated_fini(struct ew_simulated *s)
{
    ew_arena_fini(&s->arena);
}

/* ---- One run --------------------------------------------------------------------------------- */

ew_err ew_simulated_plan(struct ew_simulated *s, const struct ew_graph *g, bool train,
                         struct ew_simulated_run *out)
{
    struct ew_sim_work work;
    const struct ew_sim_setting setting = {.mode = s->mode, .workers = 1};
    EW_TRY(ew_sim_load_of(&s->arena, g, train, &out->load));
    out->software = train ? EW_SIM_TRAIN : EW_SIM_NATIVE;
    ew_sim_work_of(&out->load, out->software, &work);
    return ew_simulate(s->board, &work, &setting, &out->run);
}
