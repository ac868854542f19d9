/* SPDX-License-Identifier: Apache-2.0 */
/* The image card: to a graph's notes and back. */
#include "format/image_card.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define KEY_MEAN    "edgewise.mean"
#define KEY_STD     "edgewise.std"
#define KEY_RESIZE  "edgewise.resize"
#define KEY_CLASSES "edgewise.classes"
#define KEY_WEIGHTS "edgewise.weights"
#define COVER       "cover"

/* ---- To notes ---- */

static int channels_of(const struct ew_graph *g)
{
    const struct ew_value *v = g->n_inputs ? &g->values[g->inputs[0]] : NULL;
    const int rank = v ? v->t.shape.rank : 0;
    if (rank != 4 && rank != 5)
        return EW_SAMPLE_CHANNELS;
    const int64_t n = v->t.shape.dim[v->channels_last ? rank - 1 : 1];
    return n >= 1 && n < EW_SAMPLE_CHANNELS ? (int)n : EW_SAMPLE_CHANNELS;
}

static ew_err put_numbers(struct ew_graph *g, const char *key, const double *v)
{
    char text[EW_SAMPLE_CHANNELS * (EW_NUM_CHARS + 1)] = "";
    size_t used = 0;
    const int n = channels_of(g);
    for (int i = 0; i < n; i++) {
        if (i)
            text[used++] = ',';
        used += (size_t)ew_num_text(v[i], text + used);
    }
    return ew_graph_note_set(g, key, text);
}

static ew_err put_classes(struct ew_graph *g, const struct ew_image_card *c)
{
    size_t size = 1;
    for (int i = 0; i < c->n_classes; i++)
        size += strlen(c->classes[i]) + 1;
    EW_CLEANUP(ew_free_ptr) char *text = malloc(size);
    EW_CHECK(text, EW_ERR_MEMORY, "no memory for the names of %d classes", c->n_classes);
    char *to = text;
    for (int i = 0; i < c->n_classes; i++) {
        if (i)
            *to++ = '\n';
        for (const char *p = c->classes[i]; *p; p++)
            *to++ = *p == '\n' ? ' ' : *p;
    }
    *to = '\0';
    return ew_graph_note_set(g, KEY_CLASSES, text);
}

ew_err ew_image_card_random(struct ew_graph *g, bool random)
{
    return ew_graph_note_set(g, KEY_WEIGHTS, random ? "random" : "trained");
}

ew_err ew_image_card_put(struct ew_graph *g, const struct ew_image_card *c)
{
    char text[EW_NUM_CHARS];
    if (c->prep.normalised) {
        EW_TRY(put_numbers(g, KEY_MEAN, c->prep.mean));
        EW_TRY(put_numbers(g, KEY_STD, c->prep.std));
    }
    if (c->prep.resize != EW_RESIZE_DEFAULT) {
        snprintf(text, sizeof(text), "%lld", (long long)c->prep.resize);
        EW_TRY(ew_graph_note_set(g, KEY_RESIZE, c->prep.resize > 0 ? text : COVER));
    }
    return c->n_classes ? put_classes(g, c) : EW_OK;
}

/* ---- And back ---- */

static ew_err get_numbers(const char *key, const char *text, double *out)
{
    char buf[EW_SAMPLE_CHANNELS * (EW_NUM_CHARS + 1)];
    char *save = NULL;
    int n = 0;
    snprintf(buf, sizeof(buf), "%s", text);
    for (char *w = strtok_r(buf, ",", &save); w; w = strtok_r(NULL, ",", &save), n++)
        EW_CHECK(n < EW_SAMPLE_CHANNELS && ew_num_float(w, &out[n]) && isfinite(out[n]),
                 EW_ERR_FORMAT, "%s: \"%.60s\" is not a number a channel", key, text);
    EW_CHECK(n > 0, EW_ERR_FORMAT, "%s: has no number", key);
    for (int i = n; i < EW_SAMPLE_CHANNELS; i++)
        out[i] = out[n - 1];
    return EW_OK;
}

static ew_err get_classes(const char *text, struct ew_arena *a, struct ew_image_card *out)
{
    int n = 1;
    for (const char *p = text; *p; p++)
        n += *p == '\n';
    char *at = ew_arena_strdup(a, text);
    const char **names = ew_arena_array(a, (size_t)n, sizeof(*names));
    EW_CHECK(at && names, EW_ERR_MEMORY, "no memory for the names of %d classes", n);
    for (int i = 0; i < n; i++)
        names[i] = strsep(&at, "\n");
    out->classes = names;
    out->n_classes = n;
    return EW_OK;
}

static ew_err get_resize(const char *text, int64_t *out)
{
    if (strcmp(text, COVER) == 0) {
        *out = EW_RESIZE_COVER;
        return EW_OK;
    }
    EW_CHECK(ew_num_int(text, out) && *out >= 0 && *out <= EW_RESIZE_MAX, EW_ERR_FORMAT,
             KEY_RESIZE ": \"%.20s\" is neither a side in pixels nor \"" COVER "\"", text);
    return EW_OK;
}

ew_err ew_image_card_get(const struct ew_graph *g, struct ew_arena *a, struct ew_image_card *out)
{
    const char *mean = ew_graph_note(g, KEY_MEAN), *std = ew_graph_note(g, KEY_STD);
    const char *resize = ew_graph_note(g, KEY_RESIZE), *classes = ew_graph_note(g, KEY_CLASSES);
    const char *weights = ew_graph_note(g, KEY_WEIGHTS);
    *out = (struct ew_image_card){.prep.normalised = mean && std,
                                  .random = weights && strcmp(weights, "random") == 0};
    struct ew_preprocess *p = &out->prep;
    if (p->normalised) {
        EW_TRY(get_numbers(KEY_MEAN, mean, p->mean));
        EW_TRY(get_numbers(KEY_STD, std, p->std));
    }
    for (int i = 0; p->normalised && i < EW_SAMPLE_CHANNELS; i++)
        EW_CHECK(p->std[i] > 0, EW_ERR_FORMAT, KEY_STD ": %g is not over 0", p->std[i]);
    if (resize)
        EW_TRY(get_resize(resize, &p->resize));
    return classes ? get_classes(classes, a, out) : EW_OK;
}
