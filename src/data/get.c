/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching public data sets: sources, decompression, checks, and installing the folder by one
 * rename. */
#include "data/get.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/owned.h"
#include "base/sha256.h"
#include "base/text.h"
#include "data/download.h"
#include "data/reader.h"
#include "data/staging.h"
#include "data/unpack.h"

#define MAX_WANTED 32

/* One fetch. */
struct get {
    const struct ew_known_set *set;
    char stage[EW_DATA_PATH]; /* becomes the data set's folder */
    char input[EW_DATA_PATH]; /* for downloaded files */
    struct ew_get_result *out;
};

/* ---- Decompression --------------------------------------------------------------------------- */

static const char *const sheet_files[] = {
    "data_batch_1.png", "data_batch_2.png", "data_batch_3.png",  "data_batch_4.png",
    "data_batch_5.png", "test_batch.png",   "train_lables.json", "test_lables.json"};

/* Finds a file in `dir` or in one of the folders that archives and tools create. */
static bool locate(const char *dir, const char *name, char path[EW_DATA_PATH])
{
    static const char *const below[] = {"",
                                        "data",
                                        "raw",
                                        "MNIST/raw",
                                        "FashionMNIST/raw",
                                        "cifar-10-batches-bin",
                                        "cifar-100-binary",
                                        "stl10_binary",
                                        NULL};
    char gz[128], folder[EW_DATA_PATH];
    if (ew_data_find_dir(dir, below, name, folder))
        return ew_data_join(path, folder, name);
    snprintf(gz, sizeof(gz), "%s.gz", name);
    return ew_data_find_dir(dir, below, gz, folder) && ew_data_join(path, folder, gz);
}

/* Takes the set's files from a folder. */
static ew_err from_files(struct get *g, const char *dir)
{
    char path[EW_DATA_PATH], to[EW_DATA_PATH];
    if (g->set->sheets && locate(dir, sheet_files[0], path)) {
        *strrchr(path, '/') = '\0';
        return ew_unpack_sheets(path, g->stage);
    }
    for (const struct ew_known_file *f = g->set->files; f->name; f++) {
        const bool there = locate(dir, f->name, path);
        EW_CHECK(there || f->optional, EW_ERR_NOT_FOUND, "%s: there is no %s", dir, f->name);
        EW_CHECK(ew_data_join(to, g->stage, f->name), EW_ERR_LIMIT, "%s: too long a path", dir);
        if (there)
            EW_TRY(ew_unpack_gzip(path, to));
    }
    return EW_OK;
}

static ew_err from_archive(struct get *g, const char *path)
{
    const char *wanted[MAX_WANTED] = {NULL};
    int n = 0, found = 0;
    for (const struct ew_known_file *f = g->set->files; f->name; f++)
        wanted[n++] = f->name;
    for (size_t i = 0; g->set->sheets && i < EW_COUNT(sheet_files); i++)
        wanted[n++] = sheet_files[i];
    EW_TRY(ew_unpack_tar(path, wanted, g->input, &found));
    EW_CHECK(found > 0, EW_ERR_FORMAT, "%s: has none of the files of %s", path, g->set->name);
    return from_files(g, g->input);
}

static ew_err from_folder(struct get *g, const char *dir)
{
    char path[EW_DATA_PATH], first[EW_DATA_PATH];
    if (g->set->archive && !locate(dir, g->set->files[0].name, first) &&
        ew_data_join(path, dir, g->set->archive) && access(path, F_OK) == 0)
        return from_archive(g, path);
    return from_files(g, dir);
}

/* ---- Sources --------------------------------------------------------------------------------- */

static bool is_archive(const char *name)
{
    static const char *const ends[] = {".tar.gz", ".tgz", ".tar"};
    for (size_t i = 0; i < EW_COUNT(ends); i++)
        if (ew_ends_with(name, ends[i]))
            return true;
    return false;
}

/* Limit of a download, which is compressed but may contain additional files. */
static int64_t most_bytes(const struct ew_known_set *set)
{
    int64_t most = INT64_C(64) << 20;
    for (const struct ew_known_file *f = set->files; f->name; f++)
        most += f->size;
    return most;
}

static ew_err download(struct get *g, const char *url, const char *name, char path[EW_DATA_PATH])
{
    EW_TRY(ew_staging_downloads(g->set->name, name, path));
    if (access(path, F_OK) == 0)
        return EW_OK; /* downloaded by an earlier attempt */
    EW_INFO("fetching %s", url);
    return ew_download(url, path, most_bytes(g->set));
}

/* Downloads from a URL of an archive, or of a folder with the archive or the files. */
static ew_err from_url(struct get *g, const char *url)
{
    char path[EW_DATA_PATH], full[EW_DATA_PATH];
    snprintf(g->out->from, EW_GET_TEXT, "%s", url);
    if (is_archive(url)) {
        EW_TRY(download(g, url, strrchr(url, '/') + 1, path));
        return from_archive(g, path);
    }
    const int slash = url[0] && url[strlen(url) - 1] == '/';
    if (g->set->archive) {
        snprintf(full, sizeof(full), "%s%s%s", url, slash ? "" : "/", g->set->archive);
        EW_TRY(download(g, full, g->set->archive, path));
        return from_archive(g, path);
    }
    for (const struct ew_known_file *f = g->set->files; f->name; f++) {
        char name[128];
        snprintf(name, sizeof(name), "%s.gz", f->name);
        snprintf(full, sizeof(full), "%s%s%s", url, slash ? "" : "/", name);
        EW_TRY(download(g, full, name, path));
    }
    *strrchr(path, '/') = '\0';
    return from_files(g, path);
}

/* Downloads the npm package. */
static ew_err from_npm(struct get *g)
{
    char path[EW_DATA_PATH];
    snprintf(g->out->from, EW_GET_TEXT, "npm's %s", g->set->npm);
    EW_INFO("fetching %s", g->out->from);
    const char *const argv[] = {"npm",       "pack", "--ignore-scripts", "--loglevel=error",
                                g->set->npm, NULL};
    EW_TRY(ew_staging_run(argv, g->input, NULL));
    EW_TRY(ew_staging_only(g->input, ".tgz", path));
    return from_archive(g, path);
}

static ew_err from_deb(struct get *g)
{
    char path[EW_DATA_PATH], tar[EW_DATA_PATH];
    snprintf(g->out->from, EW_GET_TEXT, "Debian's %s", g->set->deb);
    if (access(g->set->deb_dir, F_OK) == 0)
        return from_files(g, g->set->deb_dir);
    EW_INFO("fetching %s", g->out->from);
    const char *const fetch[] = {"apt-get", "download", "-q", g->set->deb, NULL};
    EW_TRY(ew_staging_run(fetch, g->input, NULL));
    EW_TRY(ew_staging_only(g->input, ".deb", path));
    EW_CHECK(ew_data_join(tar, g->input, "package.tar"), EW_ERR_LIMIT, "too long a path");
    const char *const open[] = {"dpkg-deb", "--fsys-tarfile", path, NULL};
    EW_TRY(ew_staging_run(open, g->input, tar));
    return from_archive(g, tar);
}

static ew_err from_package(struct get *g)
{
    EW_CHECK(g->set->npm || g->set->deb, EW_ERR_NOT_FOUND,
             "%s: no package has it; get %s by other means and give it with --from", g->set->name,
             g->set->archive);
    return g->set->npm ? from_npm(g) : from_deb(g);
}

static ew_err from_anywhere(struct get *g)
{
    ew_err err = EW_OK;
    for (const char *const *url = g->set->urls; *url; url++) {
        err = from_url(g, *url);
        if (err == EW_OK || (err != EW_ERR_IO && err != EW_ERR_UNSUPPORTED))
            return err;
        EW_INFO("%s", ew_error_message());
    }
    if (!g->set->npm && !g->set->deb)
        return ew_fail_in(err,
                          "%s cannot be fetched, and no package has it; get %s by other means "
                          "and give it with --from",
                          g->set->name, g->set->archive);
    return from_package(g);
}

static ew_err collect(struct get *g, const char *from)
{
    struct stat st;
    if (!from)
        return from_anywhere(g);
    if (strcmp(from, "package") == 0)
        return from_package(g);
    if (ew_download_is_url(from))
        return from_url(g, from);
    snprintf(g->out->from, EW_GET_TEXT, "%s", from);
    EW_CHECK(stat(from, &st) == 0, EW_ERR_NOT_FOUND, "%s: %s", from, strerror(errno));
    return S_ISDIR(st.st_mode) ? from_folder(g, from) : from_archive(g, from);
}

/* ---- Checking and putting in place ----------------------------------------------------------- */

static ew_err check_file(const struct get *g, const struct ew_known_file *f)
{
    char path[EW_DATA_PATH], sum[EW_SHA256_TEXT];
    struct stat st;
    EW_CHECK(ew_data_join(path, g->stage, f->name), EW_ERR_LIMIT, "too long a path");
    if (f->optional && access(path, F_OK) != 0)
        return EW_OK;
    EW_CHECK(stat(path, &st) == 0, EW_ERR_NOT_FOUND, "%s: %s is missing", g->set->name, f->name);
    EW_CHECK(!f->size || st.st_size == f->size, EW_ERR_FORMAT,
             "%s: %s has %lld bytes, the published file has %lld", g->set->name, f->name,
             (long long)st.st_size, (long long)f->size);
    if (!f->sha256) {
        g->out->checked = g->out->checked && f->optional;
        return EW_OK;
    }
    EW_TRY(ew_sha256_file(path, sum));
    EW_CHECK(strcmp(sum, f->sha256) == 0, EW_ERR_FORMAT,
             "%s: %s has the checksum %s, the published file has %s", g->set->name, f->name, sum,
             f->sha256);
    return EW_OK;
}

/* Checks that the files are the published ones, and that a reader opens them. */
static ew_err check(const struct get *g)
{
    g->out->checked = true;
    for (const struct ew_known_file *f = g->set->files; f->name; f++)
        EW_TRY(check_file(g, f));
    struct ew_dataset *d = NULL;
    EW_TRY(ew_dataset_open(g->stage, &d));
    const struct ew_dataset_info *i = ew_dataset_info(d);
    ew_err err = EW_OK;
    if (i->count[EW_SPLIT_TRAIN] != g->set->train || i->count[EW_SPLIT_TEST] != g->set->test ||
        i->classes != g->set->classes)
        err = ew_fail(EW_ERR_FORMAT, "%s: %lld and %lld samples of %lld classes are not all of it",
                      g->set->name, (long long)i->count[EW_SPLIT_TRAIN],
                      (long long)i->count[EW_SPLIT_TEST], (long long)i->classes);
    ew_dataset_close(d);
    return err;
}

static ew_err get_into(struct get *g, const char *from, const char *to)
{
    EW_TRY(ew_staging_new(to, "stage", g->stage));
    EW_TRY(ew_staging_new(to, "input", g->input));
    ew_err err = collect(g, from);
    if (err == EW_OK)
        err = check(g);
    /* keep partial downloads, to resume; remove complete ones that are wrong */
    if (err != EW_OK)
        ew_staging_end_downloads(g->set->name, err == EW_ERR_IO);
    EW_TRY(err);
    EW_TRY(ew_owned_publish(g->stage, to));
    ew_staging_end_downloads(g->set->name, false);
    return EW_OK;
}

/* *already: the set can be opened at `to`. */
static ew_err look(const char *to, bool *already)
{
    struct ew_dataset *d = NULL;
    *already = false;
    if (access(to, F_OK) != 0)
        return EW_OK;
    const ew_err err = ew_dataset_open(to, &d);
    ew_dataset_close(d);
    if (err != EW_OK)
        return ew_fail_in(err, "%s exists but is not a data set; remove it first", to);
    *already = true;
    return EW_OK;
}

ew_err ew_dataset_get(const char *name, const char *from, const char *to, struct ew_get_result *out)
{
    struct get g = {.set = ew_known_find(name), .out = out};
    *out = (struct ew_get_result){0};
    EW_CHECK(g.set, EW_ERR_NOT_FOUND,
             "%s: not one of mnist, fashion-mnist, cifar10, cifar100, stl10", name);
    EW_CLEANUP(ew_free_ptr) char *home = NULL;
    EW_TRY(ew_dataset_home(&home));
    char path[EW_DATA_PATH];
    const bool fits = to ? ew_data_join(path, to, "") : ew_data_join(path, home, name);
    EW_CHECK(fits && strlen(path) + 32 < sizeof(path), EW_ERR_LIMIT, "%s: too long a path", path);
    bool already;
    EW_TRY(look(path, &already));
    out->already = already;
    if (!already) {
        const ew_err err = get_into(&g, from, path);
        ew_staging_remove(g.stage);
        ew_staging_remove(g.input);
        if (err != EW_OK)
            return err;
    }
    out->path = strdup(path);
    EW_CHECK(out->path, EW_ERR_MEMORY, "no memory for a path");
    return EW_OK;
}
