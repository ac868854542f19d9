/* SPDX-License-Identifier: Apache-2.0 */
/* Order, optimum and trend of figures that differ in one setting. */
#include "study/trend_agreement.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

#define TIE          0.03 /* published values closer than this have no order */
#define MOST_SETS    1024
#define MOST_MEMBERS 32

/* A comparison, with one of its settings as the variable. */
struct member {
    const struct ew_published_comparison *c;
    const char *key, *value, *fixed;
};

struct set {
    struct member m[MOST_MEMBERS];
    int n;
};

static bool split(struct ew_arena *a, const struct ew_published_comparison *c, int which,
                  struct member *out)
{
    const char **words, *fixed = "";
    int n;
    if (!c->published->settings || ew_study_words(a, c->published->settings, &words, &n) != EW_OK ||
        which >= n)
        return false;
    for (int i = 0; fixed && i < n; i++)
        if (i != which)
            fixed = ew_arena_printf(a, "%s%s%s", fixed, *fixed ? " " : "", words[i]);
    char *word = ew_arena_strdup(a, words[which]), *equals = word ? strchr(word, '=') : NULL;
    if (!equals || !fixed)
        return false;
    *equals = '\0';
    *out = (struct member){c, word, equals + 1, fixed};
    return true;
}

static bool same_set(const struct member *a, const struct member *b)
{
    const struct ew_published_row *p = a->c->published, *q = b->c->published;
    return strcmp(p->metric, q->metric) == 0 && strcmp(p->board, q->board) == 0 &&
           strcmp(a->key, b->key) == 0 && strcmp(a->fixed, b->fixed) == 0;
}

static void add(struct set *sets, int *n, const struct member *m)
{
    int i = 0;
    while (i < *n && !same_set(&sets[i].m[0], m))
        i++;
    if (i == MOST_SETS || (i < *n && sets[i].n == MOST_MEMBERS))
        return;
    if (i == *n)
        sets[(*n)++] = (struct set){.n = 0};
    sets[i].m[sets[i].n++] = *m;
}

static int sign(double x)
{
    return (x > 0) - (x < 0);
}

/* Trend of a value over a numeric setting: the sign of the covariance if it is clear. */
static int trend(const struct set *s, bool here)
{
    double x[MOST_MEMBERS], y[MOST_MEMBERS];
    int up = 0, down = 0;
    for (int i = 0; i < s->n; i++) {
        if (!ew_num_float(s->m[i].value, &x[i]))
            return 0;
        y[i] = here ? s->m[i].c->value : s->m[i].c->published->value;
    }
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < i; k++) {
            const int d = fabs(y[i] - y[k]) > TIE * fmax(fabs(y[i]), fabs(y[k]))
                              ? sign(y[i] - y[k]) * sign(x[i] - x[k])
                              : 0;
            up += d > 0;
            down += d < 0;
        }
    return up > 2 * down ? 1 : down > 2 * up ? -1 : 0;
}

static void judge(const struct set *s, struct ew_trend_agreement *out)
{
    const struct member *first = &s->m[0], *best = first, *here = first;
    const double way = first->c->higher ? -1 : 1; /* then the lowest is best */
    *out = (struct ew_trend_agreement){.metric = first->c->published->metric,
                                       .board = first->c->published->board,
                                       .key = first->key,
                                       .fixed = first->fixed,
                                       .highest = first->c->higher,
                                       .n = s->n};
    for (int i = 0; i < s->n; i++) {
        const struct ew_published_comparison *a = s->m[i].c;
        best = way * a->published->value < way * best->c->published->value ? &s->m[i] : best;
        here = way * a->value < way * here->c->value ? &s->m[i] : here;
        out->noisy |= a->noisy > 0;
        for (int k = 0; k < i; k++) {
            const struct ew_published_comparison *b = s->m[k].c;
            const double d = a->published->value - b->published->value;
            if (fabs(d) <= TIE * fmax(fabs(a->published->value), fabs(b->published->value)))
                continue;
            out->pairs++;
            out->agree += sign(d) == sign(a->value - b->value);
        }
    }
    /* If the published optimum is within TIE of our best, it counts as our optimum. */
    if (way * best->c->value <= way * here->c->value + TIE * fabs(here->c->value))
        here = best;
    out->best = best->value;
    out->best_here = here->value;
    out->trend = trend(s, false);
    out->trend_here = trend(s, true);
}

ew_err ew_trend_agreement_find(const struct ew_published_comparison *list, int n,
                               struct ew_arena *a, struct ew_trend_agreement **out, int *n_out)
{
    struct set *sets = ew_arena_array(a, MOST_SETS, sizeof(*sets));
    int n_sets = 0;
    *n_out = 0;
    EW_CHECK(sets, EW_ERR_MEMORY, "no memory for a comparison");
    for (int i = 0; i < n; i++) {
        struct member m;
        for (int k = 0; list[i].runs && split(a, &list[i], k, &m); k++)
            add(sets, &n_sets, &m);
    }
    *out = ew_arena_array(a, (size_t)n_sets + 1, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for a comparison");
    for (int i = 0; i < n_sets; i++) {
        struct ew_trend_agreement s = {0};
        if (sets[i].n > 1)
            judge(&sets[i], &s);
        if (s.pairs)
            (*out)[(*n_out)++] = s;
    }
    return EW_OK;
}

bool ew_trend_agreement_holds(const struct ew_trend_agreement *s)
{
    return s->agree == s->pairs && strcmp(s->best, s->best_here) == 0 && s->trend == s->trend_here;
}

const char *ew_trend_agreement_text(const struct ew_trend_agreement *s,
                                    char buf[EW_TREND_AGREEMENT_CHARS])
{
    static const char *const ways[] = {"falls", "neither", "rises"};
    int n = s->agree == s->pairs ? snprintf(buf, EW_TREND_AGREEMENT_CHARS, "same order")
                                 : snprintf(buf, EW_TREND_AGREEMENT_CHARS,
                                            "order: %d of %d pairs agree", s->agree, s->pairs);
    const char *end = s->highest ? "highest" : "lowest";
    size_t at = (size_t)n;
    n = strcmp(s->best, s->best_here) == 0
            ? snprintf(buf + at, EW_TREND_AGREEMENT_CHARS - at, ", same %s (%.20s)", end, s->best)
            : snprintf(buf + at, EW_TREND_AGREEMENT_CHARS - at, ", %s at %.20s, published at %.20s",
                       end, s->best_here, s->best);
    at += (size_t)n;
    n = 0;
    if (s->trend && s->trend == s->trend_here)
        n = snprintf(buf + at, EW_TREND_AGREEMENT_CHARS - at, ", same trend (%s)",
                     ways[s->trend + 1]);
    else if (s->trend)
        n = snprintf(buf + at, EW_TREND_AGREEMENT_CHARS - at, ", trend: %s, published: %s",
                     ways[s->trend_here + 1], ways[s->trend + 1]);
    at += (size_t)n;
    if (s->noisy)
        snprintf(buf + at, EW_TREND_AGREEMENT_CHARS - at, "; ours are noisy");
    return buf;
}
