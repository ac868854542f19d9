/* SPDX-License-Identifier: Apache-2.0 */
/* Trained networks by name. */
#include "network/trained.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/field.h"
#include "base/file.h"
#include "base/ini.h"
#include "base/library.h"
#include "base/sha256.h"
#include "data/download.h"
#include "network/labels.h"

#define EW_EMBED(id, file, ...) static const char text_##id[] = {__VA_ARGS__};
#include "models_embed.h"
#undef EW_EMBED

#define TEXT_FIELD(member)                                                                         \
    {                                                                                              \
        .name = #member, .type = EW_FIELD_STR, .offset = offsetof(struct ew_trained, member)       \
    }

static const struct ew_field fields[] = {
    TEXT_FIELD(what),
    TEXT_FIELD(input),
    TEXT_FIELD(url),
    TEXT_FIELD(sha256),
    TEXT_FIELD(images),
    TEXT_FIELD(labels),
    {.name = "bytes",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_trained, bytes),
     .min = 1,
     .max = 1e12},
    EW_FIELD_END,
};

#define MAX_LISTED 64

ew_err ew_trained_list(struct ew_arena *a, const struct ew_trained **list, int *n)
{
    char *text = ew_arena_strdup(a, text_models);
    struct ew_trained *all = ew_arena_array(a, MAX_LISTED, sizeof(*all));
    EW_CHECK(text && all, EW_ERR_MEMORY, "no memory for the list of networks");
    struct ew_ini ini;
    *n = 0;
    ew_ini_init(&ini, text, "models.ini");
    while (ew_ini_next(&ini)) {
        if (!ini.key) {
            EW_ASSERT(*n < MAX_LISTED);
            all[(*n)++] = (struct ew_trained){.name = ini.section};
            continue;
        }
        const struct ew_field *f = ew_field_find(fields, ini.key);
        EW_CHECK(f && *n > 0, EW_ERR_FORMAT, "models.ini:%d: no key '%s'", ini.line, ini.key);
        EW_TRY(ew_field_parse(f, ini.value, &all[*n - 1]));
    }
    *list = all;
    return ini.err;
}

/* ---- Places ---- */

static bool is_there(const char *folder, const char *name, const char *end,
                     char path[EW_TRAINED_PATH])
{
    struct stat st;
    const int n = snprintf(path, EW_TRAINED_PATH, "%s/%s%s", folder, name, end);
    return n > 0 && n < EW_TRAINED_PATH && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static ew_err cache_folder(char out[EW_TRAINED_PATH])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool set = cache && *cache == '/';
    EW_CHECK(set || (home && *home), EW_ERR_NOT_FOUND, "neither XDG_CACHE_HOME nor HOME is set");
    snprintf(out, EW_TRAINED_PATH, "%s%s/edgewise/models", set ? cache : home,
             set ? "" : "/.cache");
    return EW_OK;
}

/* An installation has them in share/edgewise/models beside bin/, where the program is, and lib/ or
 * lib/<architecture>/, where the library is; a build has the same folder beside src/. */
static bool is_installed(const char *name, char path[EW_TRAINED_PATH])
{
    static const char *const above[] = {"..", "../.."};
    char own[EW_TRAINED_PATH - 64], folder[EW_TRAINED_PATH];
    ew_library_own_folder(own, sizeof(own));
    for (size_t i = 0; *own && i < EW_COUNT(above); i++) {
        snprintf(folder, sizeof(folder), "%s/%s/share/edgewise/models", own, above[i]);
        if (is_there(folder, name, ".onnx", path))
            return true;
    }
    return false;
}

bool ew_trained_find(const char *name, char path[EW_TRAINED_PATH])
{
    static const char *const ends[] = {".onnx", ".ckpt", ".ewe"};
    const char *own = getenv("EW_MODELS");
    char folder[EW_TRAINED_PATH];
    if (strchr(name, '/'))
        return false;
    for (size_t i = 0; own && *own && i < EW_COUNT(ends); i++)
        if (is_there(own, name, ends[i], path))
            return true;
    if (cache_folder(folder) == EW_OK && is_there(folder, name, ".onnx", path))
        return true;
    return is_installed(name, path);
}

/* ---- What is known of one ---- */

ew_err ew_trained_card(const char *name, struct ew_arena *a, struct ew_image_card *card)
{
    const struct ew_trained *list;
    int n;
    EW_TRY(ew_trained_list(a, &list, &n));
    for (int i = 0; i < n; i++) {
        bool found;
        if (strcmp(list[i].name, name) != 0)
            continue;
        if (list[i].labels && !card->n_classes)
            EW_TRY(ew_labels_builtin(list[i].labels, a, card, &found));
        if (list[i].images && !card->prep.normalised)
            EW_TRY(ew_preprocess_parse(list[i].images, NULL, &card->prep));
    }
    return EW_OK;
}

/* ---- Fetching ---- */

static ew_err make_folders(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        const bool ok = mkdir(path, 0777) == 0 || errno == EEXIST;
        *p = '/';
        EW_CHECK(ok, EW_ERR_IO, "%s: %s", path, strerror(errno));
    }
    return EW_OK;
}

static ew_err check_file(const struct ew_trained *t, const char *path)
{
    char sum[EW_SHA256_TEXT];
    struct stat st;
    EW_CHECK(stat(path, &st) == 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    EW_CHECK((int64_t)st.st_size == t->bytes, EW_ERR_FORMAT,
             "%s: has %lld bytes, the published file %lld", t->name, (long long)st.st_size,
             (long long)t->bytes);
    EW_TRY(ew_sha256_file(path, sum));
    EW_CHECK(strcmp(sum, t->sha256) == 0, EW_ERR_FORMAT,
             "%s: its SHA-256 is %s, the published file's %s", t->name, sum, t->sha256);
    return EW_OK;
}

static ew_err copy_file(const char *from, const char *to)
{
    char *data = NULL;
    size_t size = 0;
    EW_TRY(ew_file_read(from, (size_t)1 << 31, &data, &size));
    const ew_err e = ew_file_write(to, data, size);
    free(data);
    return e;
}

ew_err ew_trained_get(const struct ew_trained *t, const char *from, char path[EW_TRAINED_PATH],
                      bool *already)
{
    char arriving[EW_TRAINED_PATH + 16];
    *already = ew_trained_find(t->name, path);
    if (*already)
        return EW_OK;
    from = from ? from : t->url;
    EW_CHECK(from, EW_ERR_NOT_FOUND,
             "%s: is part of Edgewise, but was found neither beside this program nor in $EW_MODELS",
             t->name);
    EW_TRY(cache_folder(path));
    const size_t used = strlen(path);
    EW_CHECK(used + strlen(t->name) + 32 < EW_TRAINED_PATH, EW_ERR_LIMIT, "%s: too long a path",
             path);
    snprintf(path + used, EW_TRAINED_PATH - used, "/%s.onnx", t->name);
    EW_TRY(make_folders(path));
    snprintf(arriving, sizeof(arriving), "%s.new", path);
    EW_TRY(ew_download_is_url(from) ? ew_download(from, arriving, t->bytes)
                                    : copy_file(from, arriving));
    const ew_err e = check_file(t, arriving);
    if (e != EW_OK) {
        unlink(arriving);
        return e;
    }
    EW_CHECK(rename(arriving, path) == 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    return EW_OK;
}
