/* SPDX-License-Identifier: Apache-2.0 */
/* Options for images and classes. */
#include "cli/image_opts.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"

#define MAX_LABELS_BYTES ((size_t)16 << 20)

/* "0.5" for all channels, or one number for each. */
static ew_err parse_channels(const char *option, const char *text, double *out)
{
    char buf[256];
    snprintf(buf, sizeof(buf), "%s", text);
    char *save = NULL;
    int n = 0;
    for (char *w = strtok_r(buf, ",x", &save); w; w = strtok_r(NULL, ",x", &save)) {
        EW_CHECK(n < EW_IMAGE_CHANNELS && ew_num_float(w, &out[n]), EW_ERR_USAGE,
                 "--%s: \"%s\" is not a list of at most %d numbers", option, text,
                 EW_IMAGE_CHANNELS);
        n++;
    }
    EW_CHECK(n > 0, EW_ERR_USAGE, "--%s needs a number", option);
    for (int i = n; i < EW_IMAGE_CHANNELS; i++)
        out[i] = out[n == 1 ? 0 : n - 1];
    return EW_OK;
}

ew_err ew_image_opts_read(const struct ew_image_opts *o, struct ew_image_prep *out)
{
    const bool imagenet = o->mean && strcmp(o->mean, "imagenet") == 0;
    if (o->resize)
        out->resize = o->resize;
    if (o->mean)
        EW_TRY(parse_channels("mean", imagenet ? "0.485,0.456,0.406" : o->mean, out->mean));
    const char *std = o->std ? o->std : imagenet ? "0.229,0.224,0.225" : NULL;
    return std ? parse_channels("std", std, out->std) : EW_OK;
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
