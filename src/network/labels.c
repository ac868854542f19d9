/* SPDX-License-Identifier: Apache-2.0 */
/* Names of classes. */
#include "network/labels.h"

#include <string.h>

#define EW_EMBED_LIST "labels_embed.h"
#include "base/embed_table.h"

ew_err ew_labels_parse(const char *text, const char *what, struct ew_arena *a,
                       struct ew_image_card *card)
{
    int lines = 1, n = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    char *copy = ew_arena_strdup(a, text), *save = NULL;
    const char **list = ew_arena_array(a, (size_t)lines, sizeof(*list));
    EW_CHECK(copy && list, EW_ERR_MEMORY, "%s: no memory", what);
    for (char *w = strtok_r(copy, "\r\n", &save); w; w = strtok_r(NULL, "\r\n", &save))
        list[n++] = w;
    card->classes = list;
    card->n_classes = n;
    return EW_OK;
}

ew_err ew_labels_builtin(const char *name, struct ew_arena *a, struct ew_image_card *card,
                         bool *found)
{
    *found = false;
    for (size_t i = 0; i < EW_COUNT(embedded) && !*found; i++) {
        const size_t n = strlen(name);
        *found =
            strncmp(embedded[i].file, name, n) == 0 && strcmp(embedded[i].file + n, ".txt") == 0;
        if (*found)
            EW_TRY(ew_labels_parse(embedded[i].text, name, a, card));
    }
    return EW_OK;
}
