/* SPDX-License-Identifier: Apache-2.0 */
/* Fleets from files. */
#include "federate/fleet.h"

#include <stdio.h>
#include <string.h>

#include "advise/simulate.h"
#include "base/field.h"
#include "base/file.h"
#include "base/ini.h"
#include "base/mem.h"
#include "model/objective.h"

#define FILE_MOST 65536 /* bytes */

/* The keys of a section. */
struct section {
    const char *board, *mode;
    int64_t count;
    double samples_per_s, power_w;
};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "board", .type = EW_FIELD_STR, .offset = offsetof(struct section, board)},
    {.name = "mode", .type = EW_FIELD_STR, .offset = offsetof(struct section, mode)},
    {.name = "count", .type = EW_FIELD_INT, .offset = offsetof(struct section, count), .def = "1",
     .min = 1, .max = 1e6},
    {.name = "samples_per_s", .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct section, samples_per_s), .def = "0", .min = 0, .max = 1e12},
    {.name = "power_w", .type = EW_FIELD_FLOAT, .offset = offsetof(struct section, power_w),
     .def = "0", .min = 0, .max = 1e6},
    EW_FIELD_END};
/* clang-format on */

static struct ew_mode mode_of(const struct ew_profile *board, const struct ew_profile_mode *m)
{
    const int64_t top[] = {board->cores, board->cpu_mhz, board->gpu_mhz, board->mem_mhz};
    const int64_t asked[] = {m->cores, m->cpu_mhz, m->gpu_mhz, m->mem_mhz};
    double x[4];
    for (int i = 0; i < 4; i++)
        x[i] = (double)(asked[i] ? asked[i] : top[i]);
    return (struct ew_mode){x[0], x[1] / 1000, x[2] / 1000, x[3] / 1000};
}

/* The mode of this name; the highest settings if there is none, or if it is MAXN, which not every
 * profile lists. */
static ew_err find_mode(const struct ew_profile *board, const char *name, struct ew_mode *out)
{
    *out = mode_of(board, &(const struct ew_profile_mode){0});
    if (!*name)
        return EW_OK;
    for (int i = 0; i < board->n_modes; i++)
        if (strcmp(board->modes[i].name, name) == 0) {
            *out = mode_of(board, &board->modes[i]);
            return EW_OK;
        }
    EW_CHECK(strcmp(name, "MAXN") == 0, EW_ERR_NOT_FOUND,
             "board %s has no mode '%s'; 'edgewise boards %s' lists them", board->name, name,
             board->name);
    return EW_OK;
}

/* The training task of the clients. */
struct training {
    const struct ew_graph *net;
    int64_t batch;
};

/* A training step of the network, from its plan. */
static ew_err plan_work(const struct training *t, struct ew_arena *a, struct ew_sim_work *out)
{
    struct ew_graph *g;
    struct ew_sim_load load;
    EW_TRY(ew_graph_clone(t->net, &g));
    ew_err e = ew_graph_set_batch(g, t->batch);
    if (e == EW_OK)
        e = ew_objective_add(g);
    if (e == EW_OK)
        e = ew_sim_load_of(a, g, true, &load);
    if (e == EW_OK) {
        ew_sim_work_of(&load, EW_SIM_TRAIN, out);
        out->samples = t->batch;
    }
    ew_graph_free(g);
    return e;
}

/* Speed and power of a board from its model: of an epoch if the network has published measurements,
 * else of a training step. */
static ew_err ask_model(struct ew_fleet_kind *k, const struct training *t)
{
    EW_CLEANUP(ew_arena_fini) struct ew_arena a;
    const struct ew_profile *list;
    struct ew_sim_work planned;
    int n;
    ew_arena_init(&a);
    EW_TRY(ew_profiles_load(&a, &list, &n));
    const struct ew_profile *board = ew_profile_find(list, n, k->board);
    EW_CHECK(board, EW_ERR_NOT_FOUND, "there is no board '%s'; 'edgewise boards' lists them",
             k->board);
    const struct ew_sim_work *work = ew_sim_work_find(t->net->name);
    struct ew_sim_setting s = {.workers = 1};
    EW_TRY(find_mode(board, k->mode, &s.mode));
    if (!work) {
        EW_TRY(plan_work(t, &a, &planned));
        work = &planned;
    }
    struct ew_sim_epoch e;
    EW_TRY(ew_simulate(board, work, &s, &e));
    k->samples_per_s = (double)work->samples / e.epoch_s;
    k->power_w = e.power_w;
    return EW_OK;
}

static ew_err add_kind(struct ew_fleet *f, const char *name, const struct section *s,
                       const struct training *t)
{
    EW_CHECK(f->n < EW_FLEET_KINDS, EW_ERR_LIMIT, "more than %d kinds of boards", EW_FLEET_KINDS);
    struct ew_fleet_kind *k = &f->kinds[f->n];
    *k = (struct ew_fleet_kind){
        .count = s->count, .samples_per_s = s->samples_per_s, .power_w = s->power_w};
    snprintf(k->name, sizeof(k->name), "%s", name);
    snprintf(k->board, sizeof(k->board), "%s", s->board ? s->board : "");
    snprintf(k->mode, sizeof(k->mode), "%s", s->mode ? s->mode : "");
    EW_CHECK(s->board || s->samples_per_s > 0, EW_ERR_FORMAT,
             "[%s] has neither board nor samples_per_s", name);
    if (!(s->samples_per_s > 0))
        EW_TRY(ew_fail_in(ask_model(k, t), "[%s]", name));
    f->clients += k->count;
    f->n++;
    return EW_OK;
}

static ew_err read_text(char *text, const char *path, const struct training *t,
                        struct ew_fleet *out)
{
    struct ew_ini ini;
    struct section s;
    char name[EW_FLEET_NAME] = "";
    ew_ini_init(&ini, text, path);
    ini.notes = true;
    while (ew_ini_next(&ini)) {
        if (!ini.key) {
            if (name[0])
                EW_TRY(add_kind(out, name, &s, t));
            snprintf(name, sizeof(name), "%s", ini.section);
            ew_fields_default(fields, &s, sizeof(s));
            continue;
        }
        EW_CHECK(name[0], EW_ERR_FORMAT, "line %d: '%s' before the first [name]", ini.line,
                 ini.key);
        const struct ew_field *f = ew_field_find(fields, ini.key);
        EW_CHECK(f, EW_ERR_FORMAT, "line %d: no key '%s'", ini.line, ini.key);
        EW_TRY(ew_fail_in(ew_field_parse(f, ini.value, &s), "line %d", ini.line));
    }
    EW_TRY(ini.err);
    EW_CHECK(name[0], EW_ERR_FORMAT, "has no [name] of a board");
    return add_kind(out, name, &s, t);
}

ew_err ew_fleet_read(const char *path, const struct ew_graph *net, int64_t batch,
                     struct ew_fleet *out)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size;
    *out = (struct ew_fleet){0};
    EW_TRY(ew_file_read(path, FILE_MOST, &text, &size));
    return ew_fail_in(read_text(text, path, &(const struct training){net, batch}, out), "%s", path);
}

const struct ew_fleet_kind *ew_fleet_client(const struct ew_fleet *f, int64_t k)
{
    int64_t left = k % f->clients;
    int i = 0;
    while (left >= f->kinds[i].count)
        left -= f->kinds[i++].count;
    return &f->kinds[i];
}
