/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of predictions of power modes. */
#include "advise/store/mode_check.h"

#include <stdio.h>
#include <string.h>

struct check {
    struct ew_advice_source *s;
    const struct ew_mode_check *o;
    struct ew_check_row *rows;
    int n, cap;
};

static bool wanted(const struct check *k, const char *workload)
{
    return !k->o->workload || strcmp(k->o->workload, workload) == 0;
}

static ew_err add_check(struct check *k, const struct ew_mode_series *m, const struct ew_holdout *t,
                        const char *split)
{
    EW_TRY(ew_grow((void **)&k->rows, &k->cap, k->n + 1, sizeof(*k->rows)));
    struct ew_check_row *r = &k->rows[k->n++];
    *r = (struct ew_check_row){.workload = m->workload,
                               .method = ew_method_name(t->method),
                               .split = ew_arena_strdup(&k->s->arena, split)};
    EW_CHECK(r->split, EW_ERR_MEMORY, "no memory");
    ew_holdout_errors(m, t, &r->errors);
    return EW_OK;
}

static ew_err check_rows(struct check *k, const struct ew_mode_series *m, const int *rows,
                         int n_rows, const char *split)
{
    const struct ew_holdout_board board = ew_advice_board(k->s);
    for (int method = 0; method < (k->o->compare ? EW_METHODS : 1); method++) {
        struct ew_holdout t;
        EW_TRY(ew_holdout_split(&k->s->arena,
                                &(struct ew_holdout_setup){m, &board, (enum ew_method)method}, rows,
                                n_rows, &t));
        EW_TRY(add_check(k, m, &t, split));
    }
    return EW_OK;
}

static ew_err check_each(struct check *k, const struct ew_mode_series *m)
{
    const struct ew_holdout_board board = ew_advice_board(k->s);
    for (int method = 0; method < (k->o->compare ? EW_METHODS : 1); method++) {
        struct ew_holdout t;
        EW_TRY(ew_holdout_leave_one_out(
            &k->s->arena, &(struct ew_holdout_setup){m, &board, (enum ew_method)method}, &t));
        EW_TRY(add_check(k, m, &t, "all but one"));
    }
    return EW_OK;
}

static ew_err check_designed(struct check *k, const struct ew_mode_series *m, int n)
{
    char split[32];
    int *rows, n_rows;
    EW_TRY(ew_holdout_design(&k->s->arena, m, n, &rows, &n_rows));
    snprintf(split, sizeof(split), "%d designed", n_rows);
    return check_rows(k, m, rows, n_rows, split);
}

bool ew_mode_check_leaves_enough(const struct ew_mode_series *m, int n)
{
    return m->n >= n + (n < 10 ? 3 : 10);
}

static ew_err check_workload(struct check *k, const char *workload)
{
    struct ew_mode_series m;
    EW_TRY(ew_measured_of(&k->s->arena, &k->s->measured, workload, false, &m));
    const int want = k->o->count;
    EW_CHECK(m.n > EW_PREDICT_MIN, EW_ERR_ARG,
             "%s: %s%s%d measured modes: a check holds some out and needs at least %d",
             k->s->measured.file, workload, *workload ? ": " : "", m.n, EW_PREDICT_MIN + 1);
    EW_CHECK(want == 0 || (want >= EW_PREDICT_MIN && m.n > want), EW_ERR_ARG,
             "--count %d: %d modes were measured, and a fit needs %d", want, m.n, EW_PREDICT_MIN);
    if (want)
        return check_designed(k, &m, want);
    if (ew_mode_check_leaves_enough(&m, 10))
        EW_TRY(check_designed(k, &m, 10));
    else
        EW_TRY(check_each(k, &m));
    return ew_mode_check_leaves_enough(&m, 50) ? check_designed(k, &m, 50) : EW_OK;
}

static bool has_mode(const struct ew_mode_series *m, const struct ew_mode *mode, int *at)
{
    for (*at = 0; *at < m->n; (*at)++)
        if (memcmp(&m->modes[*at], mode, sizeof(*mode)) == 0)
            return true;
    return false;
}

/* Leaves of each workload the modes that all have, in the same order. */
static void keep_common(struct ew_mode_series *m, int n)
{
    int kept = 0;
    for (int i = 0; i < m[0].n; i++) {
        const struct ew_mode mode = m[0].modes[i];
        bool all = true;
        int at;
        for (int w = 1; w < n && all; w++)
            all = has_mode(&m[w], &mode, &at);
        for (int w = 0; w < n && all; w++) {
            has_mode(&m[w], &mode, &at); /* at or after `kept`: rows are sorted by mode */
            m[w].modes[kept] = m[w].modes[at];
            m[w].time[kept] = m[w].time[at];
            m[w].power[kept] = m[w].power[at];
        }
        kept += all;
    }
    for (int w = 0; w < n; w++)
        m[w].n = kept;
}

/* TRAIN's way: the four modes that linear regression likes best, and all methods from those. */
static ew_err compare_four(struct check *k)
{
    const struct ew_measured *f = &k->s->measured;
    struct ew_mode_series *m = ew_arena_array(&k->s->arena, (size_t)f->n_workloads, sizeof(*m));
    const double **time = ew_arena_array(&k->s->arena, (size_t)f->n_workloads, sizeof(*time));
    EW_CHECK(m && time, EW_ERR_MEMORY, "no memory");
    int n = 0, four[4];
    for (int i = 0; i < f->n_workloads; i++)
        if (wanted(k, f->workloads[i])) {
            EW_TRY(ew_measured_of(&k->s->arena, f, f->workloads[i], false, &m[n]));
            time[n] = m[n].time;
            if (m[n++].n > 40)
                return EW_OK; /* 91,390 quadruples: an exhaustive search takes few modes */
        }
    keep_common(m, n);
    if (m[0].n < 6)
        return EW_OK;
    EW_TRY(ew_method_best_four(m[0].modes, time, n, m[0].n, four));
    for (int i = 0; i < n; i++) {
        EW_TRY(check_rows(k, &m[i], four, 4, "linear's best four"));
        EW_TRY(check_designed(k, &m[i], 4));
    }
    return EW_OK;
}

static ew_err check_all(struct check *k)
{
    const struct ew_measured *f = &k->s->measured;
    for (int i = 0; i < f->n_workloads; i++)
        if (wanted(k, f->workloads[i]))
            EW_TRY(check_workload(k, f->workloads[i]));
    EW_CHECK(k->n, EW_ERR_NOT_FOUND, "%s: no workload '%s'", f->file, k->o->workload);
    if (k->o->compare && !k->o->count)
        EW_TRY(compare_four(k));
    return EW_OK;
}

ew_err ew_mode_check(struct ew_advice_source *s, const struct ew_mode_check *o,
                     struct ew_check_row **rows, int *n)
{
    struct check k = {.s = s, .o = o};
    const ew_err e = check_all(&k);
    *rows = k.rows;
    *n = k.n;
    return e;
}
