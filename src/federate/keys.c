/* SPDX-License-Identifier: Apache-2.0 */
/* Reading files of keys. */
#include "federate/keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

#define MOST_BYTES ((size_t)1 << 30)

struct line {
    const char *key;
    int64_t at;
};

static int by_key(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    const int c = strcmp(x->key, y->key);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* Cuts the text into its first n lines. */
static ew_err cut(const char *path, char *text, int64_t n, struct line *out)
{
    for (int64_t i = 0; i < n; i++) {
        EW_CHECK(*text, EW_ERR_FORMAT,
                 "%s: has %lld lines, and there are %lld samples for training: it needs one for "
                 "each",
                 path, (long long)i, (long long)n);
        char *end = text + strcspn(text, "\n");
        const bool last = !*end;
        *end = '\0';
        text[strcspn(text, "\r")] = '\0';
        EW_CHECK(*text, EW_ERR_FORMAT, "%s: line %lld is empty", path, (long long)i + 1);
        out[i] = (struct line){text, i};
        text = last ? end : end + 1;
    }
    return EW_OK;
}

/* Equal keys are adjacent: each sample gets the index of the first sample with its key; then those
 * indices are numbered. */
static int64_t number(const struct line *sorted, int64_t n, int64_t *first, int32_t *keys)
{
    for (int64_t i = 0, lead = 0; i < n; i++) {
        if (strcmp(sorted[i].key, sorted[lead].key) != 0)
            lead = i;
        first[sorted[i].at] = sorted[lead].at;
    }
    int64_t clients = 0;
    for (int64_t i = 0; i < n; i++)
        keys[i] = first[i] == i ? (int32_t)clients++ : keys[first[i]];
    return clients;
}

ew_err ew_keys_read(const char *path, int64_t n, int32_t **keys, int64_t *clients)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    EW_CLEANUP(ew_free_ptr) struct line *lines = calloc((size_t)n + 1, sizeof(*lines));
    EW_CLEANUP(ew_free_ptr) int64_t *first = calloc((size_t)n + 1, sizeof(*first));
    size_t size;
    EW_CHECK(lines && first && n < INT32_MAX, EW_ERR_MEMORY, "no memory for %lld keys",
             (long long)n);
    EW_TRY(ew_file_read(path, MOST_BYTES, &text, &size));
    EW_TRY(cut(path, text, n, lines));
    qsort(lines, (size_t)n, sizeof(*lines), by_key);
    *keys = calloc((size_t)n + 1, sizeof(**keys));
    EW_CHECK(*keys, EW_ERR_MEMORY, "no memory for %lld keys", (long long)n);
    *clients = number(lines, n, first, *keys);
    return EW_OK;
}
