/* SPDX-License-Identifier: Apache-2.0 */
/* Input of `predict` and `recommend`. */
#include "advise/store/advice_source.h"

#include <math.h>
#include <string.h>

#include "advise/store/measured_store.h"
#include "base/file.h"
#include "base/log.h"
#include "store/store.h"

#define FILE_LIMIT ((size_t)256 << 20)
#define ODD        4.0 /* leave-one-out, in standard deviations */

/* ---- Reading --------------------------------------------------------------------------------- */

static ew_err read_csv(struct ew_arena *a, const char *path, struct ew_measured *out)
{
    EW_CLEANUP(ew_free_ptr) char *data = NULL;
    size_t size;
    EW_TRY(ew_file_read(path, FILE_LIMIT, &data, &size));
    char *text = ew_arena_strdup(a, data); /* a NUL byte ends it, as in any text */
    EW_CHECK(text, EW_ERR_MEMORY, "%s: no memory for %zu bytes", path, size);
    return ew_measured_parse(a, path, text, out);
}

/* Warns of modes beyond the board's limits: the file may be another board's. */
static void say_beyond(const struct ew_advice_source *s)
{
    const struct ew_mode top = ew_grid_top(s->board);
    for (int i = 0; i < s->measured.n; i++) {
        const struct ew_mode *m = &s->measured.rows[i].mode;
        if (m->cores <= top.cores && m->cpu <= 1.02 * top.cpu && m->gpu <= 1.02 * top.gpu &&
            m->mem <= 1.02 * top.mem)
            continue;
        EW_WARN("%s:%d: %.0f/%.0f/%.0f/%.0f is more than %s has (%.0f/%.0f/%.0f/%.0f): is it "
                "another board?",
                s->measured.file, s->measured.rows[i].line, m->cores, 1000 * m->cpu, 1000 * m->gpu,
                1000 * m->mem, s->board->name, top.cores, 1000 * top.cpu, 1000 * top.gpu,
                1000 * top.mem);
        return;
    }
}

static ew_err find_board(struct ew_advice_source *s, const char *name)
{
    if (name) {
        s->board_given = true;
        EW_TRY(ew_profile_named(s->profiles, s->n_profiles, name, &s->board));
        say_beyond(s);
        return EW_OK;
    }
    if (!s->measured.n)
        return EW_OK;
    struct ew_mode *modes = ew_arena_array(&s->arena, (size_t)s->measured.n, sizeof(*modes));
    EW_CHECK(modes, EW_ERR_MEMORY, "no memory for %d modes", s->measured.n);
    for (int i = 0; i < s->measured.n; i++)
        modes[i] = s->measured.rows[i].mode;
    s->board = ew_grid_match_board(s->profiles, s->n_profiles, modes, s->measured.n);
    return EW_OK;
}

ew_err ew_advice_open(const char *file, const char *board, struct ew_advice_source *s)
{
    *s = (struct ew_advice_source){.measured = {.n = 0}};
    ew_arena_init(&s->arena);
    EW_TRY(ew_profiles_load(&s->arena, &s->profiles, &s->n_profiles));
    if (file && ew_store_is(file))
        EW_TRY(ew_measured_from_store(&s->arena, file, s->profiles, s->n_profiles, &s->measured));
    else if (file)
        EW_TRY(read_csv(&s->arena, file, &s->measured));
    return find_board(s, board);
}

ew_err ew_advice_open_store(const char *path, struct ew_advice_source *s)
{
    *s = (struct ew_advice_source){.measured = {.n = 0}};
    ew_arena_init(&s->arena);
    EW_TRY(ew_profiles_load(&s->arena, &s->profiles, &s->n_profiles));
    EW_TRY(ew_measured_from_store(&s->arena, path, s->profiles, s->n_profiles, &s->measured));
    return find_board(s, NULL);
}

void ew_advice_close(struct ew_advice_source *s)
{
    ew_arena_fini(&s->arena);
}

struct ew_holdout_board ew_advice_board(const struct ew_advice_source *s)
{
    struct ew_holdout_board b = {.name = NULL};
    if (s->board) {
        b.name = s->board->name;
        b.top = ew_grid_top(s->board);
    }
    return b;
}

unsigned ew_advice_lacks(const struct ew_advice_source *s)
{
    const bool rows = s->measured.n > 0, grid = s->board && (!rows || s->board->gpu_hz);
    const unsigned board = grid ? ew_profile_lacks(s->board) : 0;
    if (!rows)
        return board;
    return grid ? s->measured.lacks & board : s->measured.lacks;
}

/* ---- Modes ----------------------------------------------------------------------------------- */

static ew_err read_list(struct ew_advice_source *s, const char *words, struct ew_mode **out, int *n)
{
    char *text = ew_arena_strdup(&s->arena, words);
    EW_CHECK(text, EW_ERR_MEMORY, "no memory");
    int count = 1;
    for (const char *c = words; *c; c++)
        count += *c == ',';
    *out = ew_arena_array(&s->arena, (size_t)count, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory");
    *n = 0;
    for (char *rest = text, *word; (word = strsep(&rest, ","));)
        EW_TRY(ew_fail_in(ew_grid_mode(NULL, word, &(*out)[(*n)++]), "--modes"));
    return EW_OK;
}

static ew_err modes_of_rows(struct ew_arena *a, const struct ew_measured *m, struct ew_mode **out,
                            int *n)
{
    *out = ew_arena_array(a, (size_t)m->n, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for %d modes", m->n);
    for (int i = 0; i < m->n; i++)
        (*out)[i] = m->rows[i].mode;
    *n = m->n;
    return EW_OK;
}

static ew_err all_modes(struct ew_advice_source *s, struct ew_mode **out, int *n)
{
    if (s->board && s->board->gpu_hz)
        return ew_grid_of_board(&s->arena, s->board, out, n);
    EW_CHECK(s->measured.n || s->board, EW_ERR_USAGE,
             "no modes to choose from: name the board (--board) or a file (--from, --modes)");
    if (!s->measured.n)
        return ew_grid_of_board(&s->arena, s->board, out, n);
    struct ew_mode *rows;
    int count;
    EW_TRY(modes_of_rows(&s->arena, &s->measured, &rows, &count));
    if (!s->board)
        EW_INFO("%s: no board known by its clocks: all combinations of its settings are meant "
                "(--board NAME: all modes of that board)",
                s->measured.file);
    return ew_grid_of_modes(&s->arena, rows, count, out, n);
}

ew_err ew_advice_modes(struct ew_advice_source *s, const char *workload, const char *words,
                       struct ew_mode **out, int *n)
{
    if (!words && s->measured.n) {
        struct ew_mode_series untried;
        EW_TRY(ew_measured_of(&s->arena, &s->measured, workload, true, &untried));
        *out = untried.modes;
        *n = untried.n;
        if (*n > 0)
            return EW_OK;
    }
    if (!words || strcmp(words, "all") == 0)
        return all_modes(s, out, n);
    if (strchr(words, '/') && !strstr(words, ".csv"))
        return read_list(s, words, out, n);
    struct ew_measured file;
    EW_TRY(read_csv(&s->arena, words, &file));
    return modes_of_rows(&s->arena, &file, out, n);
}

/* ---- Fitting --------------------------------------------------------------------------------- */

static void say_constant(const struct ew_mode_series *m, unsigned lacks, const char *file)
{
    static const char *const names[] = {"cores", "cpu_mhz", "gpu_mhz", "mem_mhz"};
    for (int k = 0; k < 4; k++) {
        bool same = !(lacks & (EW_NO_CORES << k));
        for (int i = 1; i < m->n && same; i++) {
            const double a[] = {m->modes[0].cores, m->modes[0].cpu, m->modes[0].gpu,
                                m->modes[0].mem};
            const double b[] = {m->modes[i].cores, m->modes[i].cpu, m->modes[i].gpu,
                                m->modes[i].mem};
            same = fabs(a[k] - b[k]) < 1e-9;
        }
        if (same)
            EW_WARN("%s: %s is the same in all measured modes: its effect is guessed from other "
                    "boards; measure another value",
                    file, names[k]);
    }
}

static void say_odd_run(const char *file, const struct ew_mode *m, const char *took,
                        const char *more, double off)
{
    EW_WARN("%s: %.0f/%.0f/%.0f/%.0f took %.0f %% %s %s: measure it again or leave it out", file,
            m->cores, 1000 * m->cpu, 1000 * m->gpu, 1000 * m->mem, 100 * fabs(expm1(off)), took,
            more);
}

/* Warns of outliers by leave-one-out residuals. */
static void say_odd(const struct ew_mode_series *m, const struct ew_predictor *p, const char *file)
{
    for (int i = 0; i < m->n; i++)
        if (fabs(p->time.z_usual[i]) > ODD)
            say_odd_run(file, &m->modes[i], p->time.loo_ln[i] > 0 ? "longer" : "less time",
                        p->time.loo_ln[i] > 0 ? "than the other modes say (throttled?)"
                                              : "than the other modes say",
                        p->time.loo_ln[i]);
    for (int i = 0, k = 0; i < m->n && p->has_power; i++)
        if (isfinite(m->power[i]) && fabs(p->power.z_usual[k++]) > ODD)
            say_odd_run(file, &m->modes[i],
                        p->power.loo_ln[k - 1] > 0 ? "more power" : "less power",
                        "than the other modes say", p->power.loo_ln[k - 1]);
}

ew_err ew_advice_fit(struct ew_advice_source *s, const struct ew_mode_series *m,
                     struct ew_predictor **out)
{
    const struct ew_holdout_board b = ew_advice_board(s);
    const struct ew_predict_data d = {.modes = m->modes,
                                      .time = m->time,
                                      .power = m->any_power ? m->power : NULL,
                                      .n = m->n,
                                      .top = b.top,
                                      .board = b.name};
    EW_TRY(ew_fail_in(ew_predictor_fit(&s->arena, &d, out), "%s%s%s", s->measured.file,
                      *m->workload ? ": " : "", m->workload));
    say_constant(m, s->measured.lacks, s->measured.file);
    say_odd(m, *out, s->measured.file);
    if (!(*out)->has_power)
        EW_WARN("%s: fewer than %d modes have power_w: time only", s->measured.file,
                EW_PREDICT_MIN);
    return EW_OK;
}

ew_err ew_advice_workload(const struct ew_advice_source *s, const char *name, const char **out)
{
    const struct ew_measured *f = &s->measured;
    *out = f->workloads[0];
    if (!name) {
        EW_CHECK(f->n_workloads == 1, EW_ERR_USAGE,
                 "%s has %d workloads: --workload says which, as in %s", f->file, f->n_workloads,
                 f->workloads[0]);
        return EW_OK;
    }
    for (int i = 0; i < f->n_workloads; i++)
        if (strcmp(f->workloads[i], name) == 0) {
            *out = f->workloads[i];
            return EW_OK;
        }
    return ew_fail(EW_ERR_NOT_FOUND, "%s: no workload '%s'", f->file, name);
}
