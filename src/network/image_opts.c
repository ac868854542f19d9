/* SPDX-License-Identifier: Apache-2.0 */
/* Options for images and classes. */
#include "network/image_opts.h"

#include "base/file.h"
#include "network/labels.h"

#define MAX_LABELS_BYTES ((size_t)16 << 20)

/* Built-in names, or the lines of a file. */
static ew_err read_labels(const char *what, struct ew_arena *a, struct ew_image_card *card)
{
    bool found;
    EW_TRY(ew_labels_builtin(what, a, card, &found));
    if (found)
        return EW_OK;
    EW_CLEANUP(ew_free_ptr) char *bytes = NULL;
    size_t size;
    EW_TRY(ew_file_read(what, MAX_LABELS_BYTES, &bytes, &size));
    return ew_labels_parse(bytes, what, a, card);
}

ew_err ew_image_opts_apply(const struct ew_image_opts *o, struct ew_arena *a,
                           struct ew_image_card *card)
{
    EW_TRY(ew_preprocess_parse(o->mean, o->std, &card->prep));
    if (o->resize)
        card->prep.resize = o->resize;
    return o->labels ? read_labels(o->labels, a, card) : EW_OK;
}
