/* SPDX-License-Identifier: Apache-2.0 */
/* Units of coupled channels: finding, grouping and removing them.  Rules by operator are in
 * channel_rules.c. */
#include "compress/channels.h"

#include <stdlib.h>
#include <string.h>

/* ---- Union-find ---- */

int ew_unit_root(struct ew_channel_search *s, int unit)
{
    while (s->parent[unit] != unit) {
        s->parent[unit] = s->parent[s->parent[unit]];
        unit = s->parent[unit];
    }
    return unit;
}

void ew_unit_join(struct ew_channel_search *s, int a, int b)
{
    a = ew_unit_root(s, a);
    b = ew_unit_root(s, b);
    if (a == b)
        return;
    const int low = a < b ? a : b, high = a < b ? b : a;
    s->parent[high] = low;
    if (s->keeper[low] == EW_UNIT_FREE)
        s->keeper[low] = s->keeper[high];
}

ew_err ew_unit_fresh(struct ew_channel_search *s, int64_t n, int **out)
{
    const int first = s->n;
    EW_CHECK(n >= 0 && n < (1 << 28) - first, EW_ERR_LIMIT, "%s: too many channels", s->g->name);
    EW_TRY(ew_grow((void **)&s->parent, &s->cap, first + (int)n + 1, sizeof(*s->parent)));
    EW_TRY(ew_grow((void **)&s->keeper, &s->cap_keeper, first + (int)n + 1, sizeof(*s->keeper)));
    *out = ew_arena_array(&s->c->arena, (size_t)n + 1, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for %lld channels", (long long)n);
    for (int i = 0; i < (int)n; i++) {
        (*out)[i] = first + i;
        s->parent[first + i] = first + i;
        s->keeper[first + i] = EW_UNIT_FREE;
    }
    s->n = first + (int)n;
    return EW_OK;
}

ew_err ew_unit_set(struct ew_channel_search *s, int value, int axis, int *units)
{
    int **at = &s->c->of[value][axis];
    const int64_t n = s->g->values[value].t.shape.dim[axis];
    if (!*at) {
        *at = units;
        return EW_OK;
    }
    for (int64_t i = 0; i < n; i++)
        ew_unit_join(s, (*at)[i], units[i]);
    return EW_OK;
}

int *ew_unit_of(const struct ew_channel_search *s, int value)
{
    return value >= 0 && s->axis[value] >= 0 ? s->c->of[value][s->axis[value]] : NULL;
}

void ew_unit_fix(struct ew_channel_search *s, int value, int node)
{
    const int *units = ew_unit_of(s, value);
    if (!units)
        return;
    const int64_t n = s->g->values[value].t.shape.dim[s->axis[value]];
    for (int64_t i = 0; i < n; i++) {
        int *keeper = &s->keeper[ew_unit_root(s, units[i])];
        if (*keeper == EW_UNIT_FREE)
            *keeper = node;
    }
}

/* ---- Numbering and groups ---- */

/* Renumbers the roots of the union-find contiguously, and rewrites every list of units. */
static ew_err renumber_units(struct ew_channel_search *s)
{
    struct ew_channels *c = s->c;
    int *to = ew_arena_array(&c->arena, (size_t)s->n + 1, sizeof(*to));
    c->units = ew_arena_array(&c->arena, (size_t)s->n + 1, sizeof(*c->units));
    EW_CHECK(to && c->units, EW_ERR_MEMORY, "no memory for %d channels", s->n);
    for (int u = 0; u < s->n; u++)
        if (ew_unit_root(s, u) == u) {
            const int keeper = s->keeper[u];
            c->units[c->n_units] = (struct ew_channel_unit){.group = -1,
                                                            .keeper = keeper < 0 ? -1 : keeper,
                                                            .is_fixed = keeper != EW_UNIT_FREE};
            to[u] = c->n_units++;
        }
    for (int v = 0; v < c->n_values; v++)
        for (int a = 0; a < EW_MAX_RANK; a++) {
            if (!c->of[v][a])
                continue;
            const int64_t n = s->g->values[v].t.shape.dim[a];
            int *own = ew_arena_array(&c->arena, (size_t)n + 1, sizeof(*own));
            EW_CHECK(own, EW_ERR_MEMORY, "no memory for %lld channels", (long long)n);
            for (int64_t i = 0; i < n; i++)
                own[i] = to[ew_unit_root(s, c->of[v][a][i])];
            c->of[v][a] = own;
        }
    return EW_OK;
}

/* Hash of the layers that produce a unit; units with equal hashes are a group. */
struct signature {
    uint64_t hash;
    int last, first; /* layers that produce it */
};

static void hash_units(const struct ew_channels *c, const struct ew_graph *g, struct signature *of)
{
    for (int u = 0; u < c->n_units; u++)
        of[u] = (struct signature){.hash = 0xcbf29ce484222325u, .last = -1, .first = -1};
    for (int m = 0; m < c->n_producers; m++) {
        const struct ew_channel_producer *k = &c->producers[m];
        const int *units = c->of[k->weight][k->axis];
        for (int64_t i = 0; i < g->values[k->weight].t.shape.dim[k->axis]; i++) {
            struct signature *s = &of[units[i]];
            if (s->last == m)
                continue;
            s->hash = (s->hash ^ (uint64_t)(m + 1)) * 0x100000001b3u;
            s->last = m;
            s->first = s->first < 0 ? m : s->first;
        }
    }
}

static int group_of(const struct ew_channels *c, const uint64_t *hashes, uint64_t hash)
{
    for (int i = c->n_groups - 1; i >= 0; i--)
        if (hashes[i] == hash)
            return i;
    return -1;
}

static ew_err make_groups(struct ew_channels *c, const struct ew_graph *g,
                          const struct signature *of)
{
    uint64_t *hashes = ew_arena_array(&c->arena, (size_t)c->n_units + 1, sizeof(*hashes));
    c->groups = ew_arena_array(&c->arena, (size_t)c->n_units + 1, sizeof(*c->groups));
    EW_CHECK(hashes && c->groups, EW_ERR_MEMORY, "no memory for groups of channels");
    for (int u = 0; u < c->n_units; u++) {
        if (c->units[u].is_fixed || of[u].first < 0)
            continue;
        int at = group_of(c, hashes, of[u].hash);
        if (at < 0) {
            at = c->n_groups++;
            hashes[at] = of[u].hash;
            c->groups[at].name = g->nodes[c->producers[of[u].first].node].name;
        }
        c->units[u].group = at;
        c->groups[at].n++;
    }
    for (int i = 0; i < c->n_groups; i++) {
        c->groups[i].units = ew_arena_array(&c->arena, (size_t)c->groups[i].n, sizeof(int));
        EW_CHECK(c->groups[i].units, EW_ERR_MEMORY, "no memory for groups of channels");
        c->groups[i].n = 0;
    }
    for (int u = 0; u < c->n_units; u++)
        if (c->units[u].group >= 0) {
            struct ew_channel_group *k = &c->groups[c->units[u].group];
            k->units[k->n++] = u;
        }
    return EW_OK;
}

/* ---- Finding ---- */

static ew_err find_units(struct ew_channel_search *s)
{
    const struct ew_graph *g = s->g;
    for (int v = 0; v < g->n_values; v++)
        s->axis[v] = -1;
    for (int k = 0; k < g->n_nodes; k++)
        EW_TRY(ew_channel_rule(s, k));
    for (int i = 0; i < g->n_outputs; i++)
        ew_unit_fix(s, g->outputs[i], -1);
    EW_TRY(renumber_units(s));
    EW_CLEANUP(ew_free_ptr) void *of = calloc((size_t)s->c->n_units + 1, sizeof(struct signature));
    EW_CHECK(of, EW_ERR_MEMORY, "no memory for groups of channels");
    hash_units(s->c, g, of);
    return make_groups(s->c, g, of);
}

ew_err ew_channels_find(const struct ew_graph *g, struct ew_channels *out)
{
    *out = (struct ew_channels){.n_values = g->n_values};
    ew_arena_init(&out->arena);
    EW_CHECK(g->inferred, EW_ERR_INTERNAL, "%s: has no shapes yet", g->name);
    out->of = ew_arena_array(&out->arena, (size_t)g->n_values + 1, sizeof(*out->of));
    out->producers = ew_arena_array(&out->arena, (size_t)g->n_nodes + 1, sizeof(*out->producers));
    struct ew_channel_search s = {.g = g, .c = out};
    s.axis = ew_arena_array(&out->arena, (size_t)g->n_values + 1, sizeof(*s.axis));
    s.uses = ew_arena_array(&out->arena, (size_t)g->n_values + 1, sizeof(*s.uses));
    EW_CHECK(out->of && out->producers && s.axis && s.uses, EW_ERR_MEMORY,
             "no memory for channels");
    ew_graph_count_uses(g, s.uses);
    const ew_err e = find_units(&s);
    free(s.parent);
    free(s.keeper);
    return e;
}

void ew_channels_fini(struct ew_channels *c)
{
    ew_arena_fini(&c->arena);
    *c = (struct ew_channels){0};
}

/* ---- Removing ---- */

/* Counts and lists (kept may be NULL) the remaining indices. */
static int64_t count_kept(const int *units, int64_t n, const bool *gone, int64_t *kept)
{
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++)
        if (!gone[units[i]]) {
            if (kept)
                kept[m] = i;
            m++;
        }
    return m;
}

/* Gathers the indices `kept` of one axis. */
static void gather(const struct ew_tensor *from, int axis, const int64_t *kept, int64_t n, void *to)
{
    const size_t inner = ew_dtype_size(from->dtype) *
                         (size_t)ew_shape_span(&from->shape, axis + 1, from->shape.rank);
    const int64_t outer = ew_shape_span(&from->shape, 0, axis), d = from->shape.dim[axis];
    const char *src = from->data;
    char *dst = to;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++, dst += inner)
            memcpy(dst, src + (size_t)(o * d + kept[i]) * inner, inner);
}

static ew_err cut_axis(struct ew_graph *g, int v, int axis, const int *units, const bool *gone)
{
    struct ew_tensor *t = &g->values[v].t;
    const int64_t d = t->shape.dim[axis];
    EW_CLEANUP(ew_free_ptr) void *kept = malloc((size_t)(d + 1) * sizeof(int64_t));
    EW_CHECK(kept, EW_ERR_MEMORY, "no memory for %lld channels", (long long)d);
    const int64_t n = count_kept(units, d, gone, kept);
    if (n == d)
        return EW_OK;
    EW_CHECK(n > 0, EW_ERR_ARG, "%s: nothing would be left of it", g->values[v].name);
    struct ew_tensor made = *t;
    made.shape.dim[axis] = n;
    if (t->data) {
        made.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&made));
        EW_CHECK(made.data, EW_ERR_MEMORY, "no memory for %s", g->values[v].name);
        gather(t, axis, kept, n, made.data);
    }
    *t = made;
    return EW_OK;
}

ew_err ew_channels_remove(struct ew_graph *g, const struct ew_channels *c, const bool *gone,
                          bool shapes_only)
{
    for (int k = 0; k < g->n_nodes; k++)
        EW_TRY(ew_channel_resize(g, c, k, gone));
    for (int v = 0; v < c->n_values; v++) {
        if (!ew_value_is_weight(&g->values[v]))
            continue;
        if (shapes_only && g->values[v].kind != EW_VALUE_CONST)
            g->values[v].t.data = NULL;
        for (int a = 0; a < g->values[v].t.shape.rank; a++)
            if (c->of[v][a])
                EW_TRY(cut_axis(g, v, a, c->of[v][a], gone));
    }
    return ew_graph_infer(g);
}
