/* SPDX-License-Identifier: Apache-2.0 */
/* Options for images and classes. */
#include "cli/image_opts.h"

#include <string.h>

#include "base/file.h"
#include "train/options.h"

#define MAX_LABELS_BYTES ((size_t)16 << 20)

_Static_assert(EW_IMAGE_CHANNELS == EW_SAMPLE_CHANNELS, "images have as many channels as samples");

ew_err ew_image_opts_read(const struct ew_image_opts *o, struct ew_image_prep *out)
{
    const bool imagenet = o->mean && strcmp(o->mean, "imagenet") == 0;
    if (o->resize)
        out->resize = o->resize;
    if (o->mean)
        EW_TRY(ew_channels_parse("mean", imagenet ? "0.485,0.456,0.406" : o->mean, out->mean));
    const char *std = o->std ? o->std : imagenet ? "0.229,0.224,0.225" : NULL;
    return std ? ew_channels_parse("std", std, out->std) : EW_OK;
}

ew_err ew_labels_read(const char *path, struct ew_arena *a, const char *const **out, int *n)
{
    *out = NULL;
    *n = 0;
    if (!path)
        return EW_OK;
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
