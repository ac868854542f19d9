/* SPDX-License-Identifier: Apache-2.0 */
/* Options for images and classes. */
#include "network/image_opts.h"

#include "base/file.h"
#include "graph/graph.h"
#include "network/labels.h"

#define MAX_NAMES_BYTES ((size_t)16 << 20)

/* Built-in names, or the lines of a file. */
static ew_err read_names(const char *what, struct ew_arena *a, struct ew_image_card *card)
{
    bool found;
    EW_TRY(ew_labels_builtin(what, a, card, &found));
    if (found)
        return EW_OK;
    EW_CLEANUP(ew_free_ptr) char *bytes = NULL;
    size_t size;
    EW_TRY(ew_file_read(what, MAX_NAMES_BYTES, &bytes, &size));
    return ew_labels_parse(bytes, what, a, card);
}

int64_t ew_image_opts_classes(const struct ew_graph *g)
{
    const struct ew_shape *s = g->n_outputs ? &g->values[g->outputs[0]].t.shape : NULL;
    int64_t most = 0;
    for (int i = 1; s && i < s->rank; i++)
        most = ew_max_i64(most, s->dim[i]);
    return s && s->rank >= 2 && ew_shape_span(s, 1, s->rank) == most ? most : 0;
}

/* Another number of names is shifted, or of another network. */
static ew_err check_names(const char *what, const struct ew_graph *g,
                          const struct ew_image_card *card)
{
    const int64_t classes = ew_image_opts_classes(g);
    EW_CHECK(!classes || card->n_classes == classes, EW_ERR_USAGE,
             "--class-names %s: has %d names, the network has %lld classes", what, card->n_classes,
             (long long)classes);
    return EW_OK;
}

/* (pixel x scale - mean) / std, as (pixel / 255 - mean') / std'. */
static void apply_scale(double scale, struct ew_preprocess *p)
{
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++) {
        p->mean[i] = (p->normalised ? p->mean[i] : 0) / (255 * scale);
        p->std[i] = (p->normalised && p->std[i] > 0 ? p->std[i] : 1) / (255 * scale);
    }
    p->normalised = true;
}

ew_err ew_image_opts_preprocess(const struct ew_image_opts *o, struct ew_preprocess *p)
{
    EW_TRY(ew_preprocess_parse(o->mean, o->std, p));
    if (o->resize)
        p->resize = o->resize;
    if (o->scale > 0)
        apply_scale(o->scale, p);
    return EW_OK;
}

ew_err ew_image_opts_apply(const struct ew_image_opts *o, const struct ew_graph *g,
                           struct ew_arena *a, struct ew_image_card *card)
{
    EW_TRY(ew_image_opts_preprocess(o, &card->prep));
    if (!o->names)
        return EW_OK;
    EW_TRY(read_names(o->names, a, card));
    return g ? check_names(o->names, g, card) : EW_OK;
}
