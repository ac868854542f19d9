/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements from a store: every finished run of a network is a row. */
#include "advise/store/measured_store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "advise/mode_grid.h"
#include "store/store.h"

struct reader {
    struct ew_arena *arena;
    struct ew_rows *rows;
    const struct ew_profile *list;
    int n_list;
    struct ew_measured *out;
    int cap;
    unsigned lacks; /* settings that the run's mode does not have */
};

static const char *text(struct reader *r, const char *column)
{
    const int c = ew_rows_find(r->rows, column);
    return c >= 0 ? ew_rows_text(r->rows, c) : NULL;
}

/* The first of these columns that has a number here; nan: none. */
static double number(struct reader *r, const char *a, const char *b)
{
    const char *const names[] = {a, b};
    for (size_t i = 0; i < EW_COUNT(names); i++) {
        const int c = names[i] ? ew_rows_find(r->rows, names[i]) : -1;
        const double v = c >= 0 ? ew_rows_num(r->rows, c) : (double)NAN;
        if (isfinite(v) && v > 0)
            return v;
    }
    return NAN;
}

/* ---- The mode -------------------------------------------------------------------------------- */

/* "agx-xavier:g" */
static bool simulated_mode(struct reader *r, const char *words, struct ew_mode *m)
{
    char board[64];
    const size_t n = strcspn(words, ":");
    if (n >= sizeof(board))
        return false;
    snprintf(board, sizeof(board), "%.*s", (int)n, words);
    const struct ew_profile *p = ew_profile_find(r->list, r->n_list, board);
    if (!p)
        return false;
    *m = ew_grid_top(p);
    r->lacks = ew_profile_lacks(p);
    return !words[n] || ew_grid_mode(p, words + n + 1, m) == EW_OK;
}

/* The power mode by the run's options of cores and clocks; false: not stated completely. */
static bool mode_of(struct reader *r, struct ew_mode *m)
{
    const char *simulate = text(r, "simulate"), *profile = text(r, "machine_profile");
    const char *name = text(r, "power_mode");
    if (simulate && *simulate)
        return simulated_mode(r, simulate, m);
    const struct ew_profile *p = profile ? ew_profile_find(r->list, r->n_list, profile) : NULL;
    const double cores = number(r, "cores", NULL), cpu = number(r, "option_cpu_mhz", NULL);
    const double gpu = number(r, "gpu_mhz", "option_gpu_mhz");
    const double mem = number(r, "mem_mhz", "option_mem_mhz");
    r->lacks = p ? ew_profile_lacks(p) : 0;
    if (p)
        *m = ew_grid_top(p);
    bool found = name && (p || strchr(name, '/')) && ew_grid_mode(p, name, m) == EW_OK;
    if (isfinite(cores) && isfinite(cpu)) {
        found = p || (isfinite(gpu) && isfinite(mem));
        m->cores = cores;
        m->cpu = cpu / 1000;
        m->gpu = isfinite(gpu) ? gpu / 1000 : m->gpu;
        m->mem = isfinite(mem) ? mem / 1000 : m->mem;
    }
    return found;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* The options that distinguish runs of one network: "batch 16, workers 4". */
static const char *settings(struct reader *r, bool with_threads)
{
    static const char *const names[] = {"batch", "workers", "width", "device", "threads"};
    const char *out = "";
    for (size_t i = 0; i < EW_COUNT(names); i++) {
        const char *value = text(r, names[i]);
        if (!value || !*value || (i == 4 && !with_threads))
            continue;
        if (i == 2 && (strcmp(value, "1") == 0 || strcmp(value, "1.0") == 0))
            continue;
        out = ew_arena_printf(r->arena, "%s%s%s %s", out ? out : "", out && *out ? ", " : "",
                              names[i], value);
    }
    return out ? out : "";
}

static ew_err fill(struct reader *r, const char *network, struct ew_measured_row *row)
{
    const char *command = text(r, "command");
    const bool train = number(r, "epoch_s", NULL) > 0;
    const bool moded = mode_of(r, &row->mode);
    const int id = ew_rows_find(r->rows, "id");
    row->line = (int)ew_rows_int(r->rows, id);
    row->time = train ? number(r, "epoch_s", NULL) : 1e-3 * number(r, "median_ms", NULL);
    row->power = number(r, "power_w", NULL);
    row->accuracy = number(r, "test_accuracy", "accuracy");
    row->memory_mib = number(r, "planned_bytes", NULL) / (1 << 20);
    row->latency_ms = number(r, "median_ms", NULL);
    row->price_usd = NAN;
    const char *what = settings(r, !moded);
    if (moded) {
        row->workload = ew_arena_printf(r->arena, "%s, %s%s%s", network, command ? command : "",
                                        *what ? ", " : "", what);
        const char *name = text(r, "power_mode");
        row->name = ew_arena_strdup(r->arena, name ? name : "");
        r->out->lacks = r->out->has_clocks ? r->out->lacks & r->lacks : r->lacks;
        r->out->has_clocks = true;
    } else {
        row->mode = (struct ew_mode){0};
        row->workload = ew_arena_strdup(r->arena, network);
        row->name = ew_arena_printf(r->arena, "%s: %s", command ? command : "run", what);
    }
    EW_CHECK(row->workload && row->name, EW_ERR_MEMORY, "no memory for the store's runs");
    return EW_OK;
}

static ew_err take(struct reader *r)
{
    struct ew_measured *m = r->out;
    struct ew_measured_row row = {0};
    const char *network = text(r, "network");
    if (!network || !*network)
        return EW_OK;
    EW_TRY(fill(r, network, &row));
    if (isnan(row.time))
        return EW_OK;
    EW_CHECK(m->n < EW_MEASURED_ROWS, EW_ERR_LIMIT, "%s: more than %d runs", m->file,
             EW_MEASURED_ROWS);
    if (m->n == r->cap) {
        const int cap = r->cap ? 2 * r->cap : 64;
        struct ew_measured_row *more = ew_arena_array(r->arena, (size_t)cap, sizeof(*more));
        EW_CHECK(more, EW_ERR_MEMORY, "%s: no memory for its runs", m->file);
        if (m->n)
            memcpy(more, m->rows, (size_t)m->n * sizeof(*more));
        m->rows = more;
        r->cap = cap;
    }
    const char *quality = text(r, "quality");
    m->simulated |= quality && strcmp(quality, "simulated") == 0;
    m->rows[m->n++] = row;
    return EW_OK;
}

/* If some runs have power modes, drops those without. */
static ew_err settle(struct reader *r)
{
    struct ew_measured *m = r->out;
    int kept = 0, cap = 0;
    for (int i = 0; i < m->n; i++) {
        struct ew_measured_row row = m->rows[i];
        if (m->has_clocks && !(row.mode.cpu > 0))
            continue;
        if (!m->has_clocks)
            row.mode = (struct ew_mode){1, 1, 1, 1};
        m->rows[kept++] = row;
        EW_TRY(ew_measured_workload(r->arena, m, row.workload, &cap));
    }
    m->n = kept;
    m->has_more = !m->has_clocks;
    return EW_OK;
}

ew_err ew_measured_from_store(struct ew_arena *a, const char *path, const struct ew_profile *list,
                              int n_list, struct ew_measured *out)
{
    struct ew_store *store;
    *out = (struct ew_measured){.file = path};
    struct reader r = {.arena = a, .list = list, .n_list = n_list, .out = out};
    EW_TRY(ew_store_open(path, &(struct ew_store_opts){.read_only = true}, &store));
    ew_err err = ew_store_results(store, "status = 'done'", NULL, &r.rows);
    if (err == EW_OK) {
        while (err == EW_OK && ew_rows_next(r.rows))
            err = take(&r);
        const ew_err ended = ew_rows_free(r.rows);
        err = err == EW_OK ? ended : err;
    }
    ew_store_close(store);
    EW_TRY(err);
    EW_CHECK(out->n > 0, EW_ERR_NOT_FOUND,
             "%s: no finished run of a network; 'edgewise bench NET --db %s' records one", path,
             path);
    return settle(&r);
}
