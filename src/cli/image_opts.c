/* SPDX-License-Identifier: Apache-2.0 */
/* Options for images and classes. */
#include "cli/image_opts.h"

#include <string.h>

#include "base/file.h"

#define MAX_LABELS_BYTES ((size_t)16 << 20)

/* The lines of a file. */
static ew_err read_labels(const char *path, struct ew_arena *a, const char *const **out, int *n)
{
    *out = NULL;
    *n = 0;
    EW_CLEANUP(ew_free_ptr) char *bytes = NULL;
    size_t size;
    EW_TRY(ew_file_read(path, MAX_LABELS_BYTES, &bytes, &size));
    int lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == '\n';
    char *copy = ew_arena_strdup(a, bytes), *save = NULL;
    const char **list = ew_arena_array(a, (size_t)lines, sizeof(*list));
    EW_CHECK(copy && list, EW_ERR_MEMORY, "%s: no memory", path);
    for (char *w = strtok_r(copy, "\n", &save); w && *n < lines; w = strtok_r(NULL, "\n", &save))
        list[(*n)++] = w;
    *out = list;
    return EW_OK;
}

ew_err ew_image_opts_apply(const struct ew_image_opts *o, struct ew_arena *a,
                           struct ew_image_card *card)
{
    EW_TRY(ew_preprocess_parse(o->mean, o->std, &card->prep));
    if (o->resize)
        card->prep.resize = o->resize;
    return o->labels ? read_labels(o->labels, a, &card->classes, &card->n_classes) : EW_OK;
}
