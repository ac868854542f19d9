/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise reproduce`. */
#include "cli/reproduce_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "cli/study_show.h"
#include "device/powermode.h"
#include "report/figure_key.h"
#include "report/text_table.h"
#include "study/estimate.h"
#include "study/trend_agreement.h"

/* ---- Here ------------------------------------------------------------------------------------ */

/* Whether this process may set the limit of some clock. */
static bool clocks_can_be_set(struct ew_board *b)
{
    struct ew_clock_info *clocks = calloc(EW_MAX_CLOCKS, sizeof(*clocks));
    int n = 0;
    bool can = false;
    if (clocks && ew_clocks_read(b, clocks, &n) == EW_OK)
        for (int i = 0; i < n && !can; i++) {
            char path[256];
            snprintf(path, sizeof(path), "/%s", clocks[i].max_path ? clocks[i].max_path : "");
            can = clocks[i].max_path && access(path, W_OK) == 0;
        }
    free(clocks);
    return can;
}

ew_err ew_reproduce_look(struct ew_reproduce_here *out)
{
    struct ew_board *b = NULL;
    struct ew_device_found d;
    *out = (struct ew_reproduce_here){0};
    EW_TRY(ew_board_open(&(struct ew_board_opts){.root = NULL}, &b));
    if (b->total.power >= 0 || b->total.energy >= 0)
        out->has |= EW_NEEDS_POWER;
    if (clocks_can_be_set(b))
        out->has |= EW_NEEDS_CLOCKS;
    ew_board_close(b);
    for (int i = 0; ew_backend_find(i, &d); i++)
        if (*d.device && strcmp(d.backend, "cuda") == 0)
            out->has |= EW_NEEDS_GPU;
    return EW_OK;
}

/* ---- All of them ----------------------------------------------------------------------------- */

ew_err ew_reproduce_list(const struct ew_figures *f, const struct ew_reproduce_here *here,
                         struct ew_grid *g)
{
    static const char *const head[] = {"id", "shows", "by", "state"};
    for (size_t i = 0; i < EW_COUNT(head); i++)
        EW_TRY(ew_grid_head(g, false, "%s", head[i]));
    for (const struct ew_reproduction *r = ew_reproductions; r->id; r++) {
        char text[EW_REPRODUCE_CHARS];
        ew_reproduce_state(r, f, here, text);
        EW_TRY(ew_grid_put(g, r->id));
        EW_TRY(ew_grid_put(g, r->title));
        if (r->study)
            EW_TRY(ew_grid_cell(g, "study %s", r->study));
        else
            EW_TRY(ew_grid_put(g, r->command ? r->command : ""));
        EW_TRY(ew_grid_cell(g, "%s", text));
    }
    return EW_OK;
}

/* ---- Comparison with published values -------------------------------------------------------- */

static ew_err heads(struct ew_reproduce_tables *t)
{
    static const struct {
        const char *name;
        bool number;
    } values[] = {{"study", false},    {"where", false},   {"figure", false}, {"of", false},
                  {"published", true}, {"on", false},      {"here", true},    {"unit", false},
                  {"ratio", true},     {"quality", false}, {"remark", false}};
    static const char *const shapes[] = {"study", "figure", "by", "of", "published on", "verdict"};
    ew_grid_init(&t->values);
    ew_grid_init(&t->shapes);
    for (size_t i = 0; i < EW_COUNT(values); i++)
        EW_TRY(ew_grid_head(&t->values, values[i].number, "%s", values[i].name));
    for (size_t i = 0; i < EW_COUNT(shapes); i++)
        EW_TRY(ew_grid_head(&t->shapes, false, "%s", shapes[i]));
    return EW_OK;
}

/* Seconds and joules of a reduced study are not comparable with the full size. */
static bool has_ratio(const struct ew_study *s, const struct ew_published_row *p)
{
    const bool amount = p->unit && (strcmp(p->unit, "s") == 0 || strcmp(p->unit, "J") == 0);
    return p->value > 0 && !(s->quick && amount);
}

static ew_err value_row(struct ew_grid *g, const struct ew_study *s,
                        const struct ew_published_comparison *c)
{
    const struct ew_published_row *p = c->published;
    char text[EW_VALUE_CHARS];
    EW_TRY(ew_grid_cell(g, "%s", s->name));
    EW_TRY(ew_grid_cell(g, "%s", p->place ? p->place : ""));
    EW_TRY(ew_grid_cell(g, "%s", p->metric));
    EW_TRY(ew_grid_cell(g, "%s", p->settings));
    EW_TRY(ew_grid_cell(g, "%s", ew_text_value(p->value, text)));
    EW_TRY(ew_grid_cell(g, "%s", p->board));
    EW_TRY(ew_grid_cell(g, "%s", ew_text_value(c->value, text)));
    EW_TRY(ew_grid_cell(g, "%s", p->unit ? p->unit : ""));
    EW_TRY(has_ratio(s, p) ? ew_grid_cell(g, "%.3g", c->value / p->value) : ew_grid_put(g, ""));
    EW_TRY(ew_grid_cell(g, "%s", c->quality ? c->quality : ""));
    return ew_grid_cell(g, "%s%s%s%s%s%s", p->wrong ? "printed value is wrong: " : "published: ",
                        p->wrong  ? p->wrong
                        : p->kind ? p->kind
                                  : "",
                        s->quick || c->noisy ? "; here: " : "", s->quick ? "reduced size" : "",
                        s->quick && c->noisy ? ", " : "", c->noisy ? "noisy" : "");
}

static ew_err shape_row(struct ew_grid *g, const struct ew_study *s,
                        const struct ew_trend_agreement *x)
{
    char text[EW_TREND_AGREEMENT_CHARS];
    EW_TRY(ew_grid_cell(g, "%s", s->name));
    EW_TRY(ew_grid_cell(g, "%s", x->metric));
    EW_TRY(ew_grid_cell(g, "%s", x->key));
    EW_TRY(ew_grid_cell(g, "%s", x->fixed));
    EW_TRY(ew_grid_cell(g, "%s", x->board));
    return ew_grid_cell(g, "%s%s", ew_trend_agreement_holds(x) ? "as published: " : "",
                        ew_trend_agreement_text(x, text));
}

/* Moves the values of the reproduction (NULL: all) to the front and returns their number. */
static int pick(struct ew_published_comparison *list, int n, const struct ew_reproduction *r)
{
    int m = 0;
    for (int i = 0; i < n; i++)
        if (!r || ew_reproduce_about(r, list[i].published))
            list[m++] = list[i];
    return m;
}

static ew_err compare_study(struct ew_store *s, const struct ew_reproduce_whose *w,
                            const struct ew_study *study, struct ew_reproduce_tables *t)
{
    struct ew_arena a;
    struct ew_published_comparison *list;
    struct ew_trend_agreement *shapes;
    int n = 0;
    ew_arena_init(&a);
    ew_err err = ew_published_compare(s, study, w->unit, &a, &list);
    const int all = err == EW_OK ? pick(list, study->n_published, w->only) : 0;
    for (int i = 0; err == EW_OK && i < all; i++)
        if (list[i].runs && isfinite(list[i].value))
            err = value_row(&t->values, study, &list[i]);
    if (err == EW_OK)
        err = ew_trend_agreement_find(list, all, &a, &shapes, &n);
    for (int i = 0; err == EW_OK && i < n; i++)
        if (!w->only || ew_reproduce_shows(w->only, shapes[i].metric, shapes[i].key))
            err = shape_row(&t->shapes, study, &shapes[i]);
    ew_arena_fini(&a);
    return err;
}

/* Opens the included study of this name, at the size (quick or full) recorded in the store; *there:
 * whether it is recorded. */
static ew_err open_study(struct ew_store *s, const struct ew_reproduce_whose *w, const char *name,
                         struct ew_arena *a, struct ew_study *out, bool *there)
{
    struct ew_study_command commands[8];
    struct ew_study_opts o = {.commands = commands,
                              .n_commands = ew_study_commands(commands, 8),
                              .simulate = w->simulate};
    const char *text, *file, *found = NULL;
    int64_t quick = 0;
    for (int i = 0; !found && (file = ew_study_shipped(i, &text)); i++)
        if (strcspn(file, ".") == strlen(name) && strncmp(file, name, strlen(name)) == 0)
            found = text;
    EW_TRY(ew_store_int(s, &quick, there, "SELECT quick FROM study WHERE name = ?1", "s", name));
    *there = *there && found;
    if (!*there)
        return EW_OK;
    char *copy = ew_arena_strdup(a, found);
    EW_CHECK(copy, EW_ERR_MEMORY, "no memory for a study");
    o.quick = quick != 0;
    return ew_study_parse(a, name, copy, &o, out);
}

static ew_err compare_name(struct ew_store *s, const struct ew_reproduce_whose *w, const char *name,
                           struct ew_reproduce_tables *t)
{
    struct ew_arena a;
    struct ew_study study;
    bool there;
    ew_arena_init(&a);
    const char *own = ew_arena_strdup(&a, name);
    ew_err err = own ? EW_OK : ew_fail(EW_ERR_MEMORY, "no memory for a study");
    if (err == EW_OK)
        err = open_study(s, w, own, &a, &study, &there);
    if (err == EW_OK && there)
        err = compare_study(s, w, &study, t);
    ew_arena_fini(&a);
    return err;
}

/* ---- Between two studies --------------------------------------------------------------------- */

/* A study with its published and measured values. */
struct side {
    struct ew_study study;
    struct ew_published_comparison *list;
    bool there;
};

static ew_err open_side(struct ew_store *s, const struct ew_reproduce_whose *w, const char *name,
                        struct ew_arena *a, struct side *out)
{
    EW_TRY(open_study(s, w, name, a, &out->study, &out->there));
    return out->there ? ew_published_compare(s, &out->study, w->unit, a, &out->list) : EW_OK;
}

/* The other study's value for the same jobs; NULL: one of the two was not run. */
static const struct ew_published_comparison *partner(const struct side *other,
                                                     const struct ew_published_comparison *c)
{
    for (int i = 0; c->runs && i < other->study.n_published; i++) {
        const struct ew_published_comparison *o = &other->list[i];
        if (o->runs && strcmp(o->published->metric, c->published->metric) == 0 &&
            strcmp(o->published->settings, c->published->settings) == 0)
            return o;
    }
    return NULL;
}

#define TIE 0.03 /* closer published values count as equal */

/* Counts the jobs in which one study's value is above the other's, published and here. */
static ew_err pair_row(struct ew_grid *g, const struct side x[2], const char *metric)
{
    const char *board = "";
    int jobs = 0, alike = 0, above = 0, above_here = 0;
    bool noisy = false;
    for (int i = 0; i < x[0].study.n_published; i++) {
        const struct ew_published_comparison *a = &x[0].list[i];
        if (strcmp(a->published->metric, metric) != 0)
            continue;
        const struct ew_published_comparison *b = partner(&x[1], a);
        const double there = b ? b->published->value / a->published->value - 1 : 0;
        if (fabs(there) <= TIE)
            continue;
        jobs++;
        above += there > 0;
        above_here += b->value > a->value;
        alike += (there > 0) == (b->value > a->value);
        noisy |= a->noisy || b->noisy;
        board = a->published->board;
    }
    if (!jobs)
        return EW_OK;
    EW_TRY(ew_grid_cell(g, "%s, %s", x[0].study.name, x[1].study.name));
    EW_TRY(ew_grid_cell(g, "%s", metric));
    EW_TRY(ew_grid_put(g, "study"));
    EW_TRY(ew_grid_cell(g, "%d jobs in both", jobs));
    EW_TRY(ew_grid_cell(g, "%s", board));
    return ew_grid_cell(g, "%s%s is higher in %d of %d, in the study in %d%s",
                        alike == jobs ? "as published: " : "", x[1].study.name, above_here, jobs,
                        above, noisy ? "; ours are noisy" : "");
}

/* The question of the NX study: does transfer learning improve F1 and time? */
static ew_err compare_transfer(struct ew_store *s, const struct ew_reproduce_whose *w,
                               struct ew_reproduce_tables *t)
{
    static const char *const metrics[] = {"test_f1", "train_s", "epoch_s"};
    struct ew_arena a;
    struct side x[2];
    memset(x, 0, sizeof(x));
    if (w->only && !(w->only->study && ew_words_have(w->only->study, "nx-transfer")))
        return EW_OK;
    ew_arena_init(&a);
    ew_err err = open_side(s, w, "nx-scratch", &a, &x[0]);
    if (err == EW_OK)
        err = open_side(s, w, "nx-transfer", &a, &x[1]);
    for (size_t i = 0; err == EW_OK && x[0].there && x[1].there && i < EW_COUNT(metrics); i++)
        err = pair_row(&t->shapes, x, metrics[i]);
    ew_arena_fini(&a);
    return err;
}

ew_err ew_reproduce_compare(struct ew_store *s, const struct ew_reproduce_whose *w,
                            struct ew_reproduce_tables *t)
{
    const struct ew_reproduction *only = w->only;
    const char *text, *file;
    EW_TRY(heads(t));
    EW_TRY(compare_transfer(s, w, t));
    for (int i = 0; (file = ew_study_shipped(i, &text)); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(file, "."), file);
        if (!only || (only->study && ew_words_have(only->study, name)))
            EW_TRY(compare_name(s, w, name, t));
    }
    return EW_OK;
}

/* ---- What fits ------------------------------------------------------------------------------- */

static const struct {
    const char *network;
    int64_t side, classes, batch;
    const char *of, *on; /* publication, and the boards that trained it there */
} trained[] = {
    {"lenet5", 28, 10, 16, "TRAIN", "agx-xavier xavier-nx jetson-nano"},
    {"mobilenet_v3_large", 224, 203, 16, "TRAIN", "agx-xavier xavier-nx"},
    {"resnet18_cifar_gn", 32, 10, 16, "TRAIN", "agx-xavier"},
    {"vgg11", 32, 1000, 16, "TRAIN", "agx-xavier"},
    {"vgg11", 224, 10, 64, "NX", ""},
    {"vgg19", 224, 10, 64, "NX", ""},
};

#define MOST_DOUBLED 10 /* batches 1, 2, ... 1024 */

/* Bytes of a training step at the published batch size, and at powers of two. */
struct training_bytes {
    int64_t own, doubled[MOST_DOUBLED + 1];
};

static ew_err plan_row(size_t row, struct training_bytes *out)
{
    for (int i = -1; i <= MOST_DOUBLED; i++)
        EW_TRY(ew_estimate_training(trained[row].network, trained[row].side, trained[row].classes,
                                    i < 0 ? trained[row].batch : (int64_t)1 << i,
                                    i < 0 ? &out->own : &out->doubled[i]));
    return EW_OK;
}

static ew_err fit_cell(struct ew_grid *g, const struct ew_profile *p,
                       const struct training_bytes *bytes, const char *there)
{
    const double room = (double)p->ram_gb * (1 << 30), left = room - (double)bytes->own;
    int n = 0;
    while (n <= MOST_DOUBLED && (double)bytes->doubled[n] <= room)
        n++;
    if (left > 0)
        return ew_grid_cell(g, "fits, %.0f %% left, up to batch %d%s%s", 100 * left / room,
                            1 << (n - 1), n > MOST_DOUBLED ? " or more" : "", there);
    if (!n)
        return ew_grid_cell(g, "%.1f x its memory, not one image fits%s", (double)bytes->own / room,
                            there);
    return ew_grid_cell(g, "%.1f x its memory, batch %d fits%s", (double)bytes->own / room,
                        1 << (n - 1), there);
}

/* What the publications say: TRAIN names the boards that trained each network, not why others are
 * missing; in NX the Xavier NX ran out of memory. */
static const char *said_of(size_t row, const char *board)
{
    if (strcmp(trained[row].of, "NX") == 0)
        return strcmp(board, "xavier-nx") == 0 ? "; in the study it did not" : "";
    return strstr(trained[row].on, board) ? "" : "; the study did not train it there";
}

ew_err ew_reproduce_fits(struct ew_grid *g)
{
    static const char *const boards[] = {"agx-xavier", "xavier-nx", "jetson-nano"};
    struct ew_arena a;
    const struct ew_profile *list;
    int n = 0;
    EW_TRY(ew_grid_head(g, false, "network"));
    EW_TRY(ew_grid_head(g, true, "batch"));
    EW_TRY(ew_grid_head(g, true, "planned"));
    for (size_t b = 0; b < EW_COUNT(boards); b++)
        EW_TRY(ew_grid_head(g, false, "%s", boards[b]));
    ew_arena_init(&a);
    ew_err err = ew_profiles_load(&a, &list, &n);
    for (size_t i = 0; err == EW_OK && i < EW_COUNT(trained); i++) {
        char text[EW_TEXT_CHARS];
        struct training_bytes bytes;
        err = plan_row(i, &bytes);
        if (err == EW_OK)
            err = ew_grid_cell(g, "%s %s at %lldx%lld", trained[i].of, trained[i].network,
                               (long long)trained[i].side, (long long)trained[i].side);
        if (err == EW_OK)
            err = ew_grid_cell(g, "%lld", (long long)trained[i].batch);
        if (err == EW_OK)
            err = ew_grid_cell(g, "%s", ew_text_bytes(bytes.own, text));
        for (size_t b = 0; err == EW_OK && b < EW_COUNT(boards); b++) {
            const struct ew_profile *p = ew_profile_find(list, n, boards[b]);
            err = fit_cell(g, p, &bytes, said_of(i, boards[b]));
        }
    }
    ew_arena_fini(&a);
    return err;
}
