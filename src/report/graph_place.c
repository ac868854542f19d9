/* SPDX-License-Identifier: Apache-2.0 */
/* Where boxes and edges go.  Boxes that follow each other form straight columns; the longest is in
 * the middle, the others and the tracks of long edges lie as near to it as there is room.  A tall
 * drawing is cut into pages side by side, below boxes from which all edges there come. */
#include "report/graph_boxes.h"

#include <stdlib.h>
#include <string.h>

/* Something that takes room in layers [first, last] round x: a column of boxes, or a track. */
struct strip {
    int first, last, half; /* half its width */
    int x, wish;           /* centre; preferred centre */
    int box;               /* the first of a column; -1 */
    int edge;              /* of a track; -1 */
};

struct strips {
    struct strip *all;
    int n, placed; /* those before `placed` have their x */
};

/* ---- Columns ---- */

/* Heights, from the bottom up: edges are ordered by target, targets by layer or later. */
static void find_heights(struct ew_drawing *d)
{
    for (int i = 0; i < d->n_boxes; i++) {
        d->boxes[i].height = 1;
        d->boxes[i].main_pred = d->boxes[i].main_succ = -1;
        if (d->boxes[i].layer >= d->n_layers)
            d->n_layers = d->boxes[i].layer + 1;
    }
    for (int i = d->n_edges - 1; i >= 0; i--) {
        const int below = d->boxes[d->edges[i].to].height;
        struct ew_box *from = &d->boxes[d->edges[i].from];
        if (from->height <= below)
            from->height = below + 1;
    }
}

/* Below each box goes the successor with the longest way left; it must be in the next layer and
 * have nobody above it yet. */
static void link_columns(struct ew_drawing *d)
{
    for (int i = 0; i < d->n_edges; i++) {
        struct ew_box *from = &d->boxes[d->edges[i].from], *to = &d->boxes[d->edges[i].to];
        if (to->layer != from->layer + 1 || to->main_pred >= 0)
            continue;
        if (from->main_succ >= 0) {
            struct ew_box *rival = &d->boxes[from->main_succ];
            if (rival->height >= to->height)
                continue;
            rival->main_pred = -1;
        }
        from->main_succ = d->edges[i].to;
        to->main_pred = d->edges[i].from;
    }
}

/* ---- Room ---- */

static bool share_layers(const struct strip *a, const struct strip *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int distance(const struct strip *a, const struct strip *b)
{
    return a->half + b->half + EW_TRACK_GAP;
}

static bool fits(const struct strips *s, const struct strip *a, int x)
{
    for (int i = 0; i < s->placed; i++)
        if (share_layers(a, &s->all[i]) && abs(s->all[i].x - x) < distance(a, &s->all[i]))
            return false;
    return true;
}

/* The nearest free place: the preferred one, or beside one of the strips in its layers, on the
 * right first. */
static int find_room(const struct strips *s, const struct strip *a)
{
    if (fits(s, a, a->wish))
        return a->wish;
    int best = INT32_MAX, best_x = a->wish;
    for (int i = 0; i < s->placed; i++) {
        if (!share_layers(a, &s->all[i]))
            continue;
        for (int side = 1; side >= -1; side -= 2) {
            const int x = s->all[i].x + side * distance(a, &s->all[i]);
            if (abs(x - a->wish) < best && fits(s, a, x)) {
                best = abs(x - a->wish);
                best_x = x;
            }
        }
    }
    return best_x;
}

/* Longest column first, then the other columns from the top, then tracks, short ones inside. */
static int by_turn(const void *pa, const void *pb)
{
    const struct strip *a = pa, *b = pb;
    if ((a->edge < 0) != (b->edge < 0))
        return a->edge < 0 ? -1 : 1;
    if (a->edge < 0)
        return a->first != b->first ? a->first - b->first : a->box - b->box;
    const int span = (a->last - a->first) - (b->last - b->first);
    return span ? span : a->first != b->first ? a->first - b->first : a->edge - b->edge;
}

static void set_column(struct ew_drawing *d, const struct strip *s)
{
    for (int b = s->box; b >= 0; b = d->boxes[b].main_succ)
        d->boxes[b].x = s->x;
}

/* Preferred place of a strip: columns below the box that they hang from, tracks straight below
 * their start. */
static int wish(const struct ew_drawing *d, const struct strip *s)
{
    if (s->edge >= 0)
        return d->boxes[d->edges[s->edge].from].x;
    for (int i = 0; i < d->n_edges; i++)
        if (d->edges[i].to == s->box)
            return d->boxes[d->edges[i].from].x;
    return 0;
}

static void put_first(struct strips *s)
{
    int longest = 0;
    for (int i = 1; i < s->n; i++)
        if (s->all[i].edge < 0 &&
            s->all[i].last - s->all[i].first > s->all[longest].last - s->all[longest].first)
            longest = i;
    if (s->n) {
        const struct strip t = s->all[longest];
        memmove(&s->all[1], &s->all[0], (size_t)longest * sizeof(t));
        s->all[0] = t;
    }
}

static void place_strips(struct ew_drawing *d, struct strips *s)
{
    qsort(s->all, (size_t)s->n, sizeof(*s->all), by_turn);
    put_first(s);
    for (int i = 0; i < s->n; i++) {
        struct strip *a = &s->all[i];
        a->wish = i ? wish(d, a) : 0;
        a->x = find_room(s, a);
        if (a->edge >= 0)
            d->edges[a->edge].track = a->x;
        else
            set_column(d, a);
        s->placed++;
    }
}

static void make_strips(const struct ew_drawing *d, struct strips *s)
{
    for (int i = 0; i < d->n_boxes; i++) {
        if (d->boxes[i].main_pred >= 0)
            continue;
        int last = i;
        while (d->boxes[last].main_succ >= 0)
            last = d->boxes[last].main_succ;
        s->all[s->n++] = (struct strip){.first = d->boxes[i].layer,
                                        .last = d->boxes[last].layer,
                                        .half = d->box_width / 2,
                                        .box = i,
                                        .edge = -1};
    }
    for (int i = 0; i < d->n_edges; i++)
        if (ew_edge_is_long(d, &d->edges[i]))
            s->all[s->n++] = (struct strip){.first = d->boxes[d->edges[i].from].layer + 1,
                                            .last = d->boxes[d->edges[i].to].layer - 1,
                                            .box = -1,
                                            .edge = i};
}

/* ---- Pages ---- */

/* source[l]: the box of layer l from which all edges between layers l and l + 1 come, or -1. */
static void find_cuts(const struct ew_drawing *d, int *source)
{
    enum { NONE = -2 };
    for (int l = 0; l < d->n_layers; l++)
        source[l] = NONE;
    for (int i = 0; i < d->n_edges; i++) {
        const int from = d->edges[i].from, first = d->boxes[from].layer;
        for (int l = first; l < d->boxes[d->edges[i].to].layer; l++)
            source[l] = l == first && (source[l] == NONE || source[l] == from) ? from : -1;
    }
    for (int l = 0; l < d->n_layers; l++)
        source[l] = source[l] == NONE ? -1 : source[l];
}

/* Layers per page such that the sheet is somewhat wider than high and all pages are about equal. */
static int page_layers(const struct ew_drawing *d)
{
    int rows = 14;
    while (rows * rows * EW_LAYER_PITCH * 4 < d->n_layers * (d->box_width * 3 / 2 + 60) * 3)
        rows++;
    const int pages = d->n_layers / rows + 1;
    return (d->n_layers + pages - 1) / pages;
}

static void cut_pages(struct ew_drawing *d, const int *source)
{
    const int rows = page_layers(d);
    int first = 0, again = -1;
    for (int l = 0; l < d->n_layers; l++) {
        const bool end = l + 1 == d->n_layers;
        const bool full = l - first + 1 >= rows && source[l] >= 0;
        const bool rest_fits = d->n_layers - first <= rows + rows / 8;
        if (!end && (!full || rest_fits || d->n_pages == EW_MAX_PAGES - 1))
            continue;
        d->pages[d->n_pages++] = (struct ew_page){.first = first, .last = l, .again = again};
        again = source[l];
        first = l + 1;
    }
}

static int page_of(const struct ew_drawing *d, int layer)
{
    int p = 0;
    while (p + 1 < d->n_pages && d->pages[p].last < layer)
        p++;
    return p;
}

static void widen(struct ew_page *p, int left, int right)
{
    p->left = left < p->left ? left : p->left;
    p->right = right > p->right ? right : p->right;
}

static void measure_pages(struct ew_drawing *d)
{
    const int half = d->box_width / 2;
    for (int i = 0; i < d->n_boxes; i++) {
        struct ew_box *b = &d->boxes[i];
        b->page = page_of(d, b->layer);
        widen(&d->pages[b->page], b->x - half, b->x + half);
    }
    for (int i = 0; i < d->n_edges; i++)
        if (ew_edge_is_long(d, &d->edges[i]))
            widen(&d->pages[d->boxes[d->edges[i].to].page], d->edges[i].track, d->edges[i].track);
}

ew_err ew_drawing_place(struct ew_drawing *d)
{
    find_heights(d);
    link_columns(d);
    struct strips s = {0};
    EW_CLEANUP(ew_free_ptr)
    void *all = calloc((size_t)(d->n_boxes + d->n_edges) + 1, sizeof(*s.all));
    EW_CLEANUP(ew_free_ptr) int *source = calloc((size_t)d->n_layers + 1, sizeof(*source));
    EW_CHECK(all && source, EW_ERR_MEMORY, "no memory for a picture");
    s.all = all;
    make_strips(d, &s);
    place_strips(d, &s);
    find_cuts(d, source);
    cut_pages(d, source);
    measure_pages(d);
    return EW_OK;
}
