/* SPDX-License-Identifier: Apache-2.0 */
/* Downloading, with libcurl. */
#include "data/download.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/library.h"
#include "base/progress.h"
#include "data/reader.h"

bool ew_download_is_url(const char *text)
{
    return strstr(text, "://") != NULL;
}

#if EW_HAVE_CURL
#include <curl/curl.h>

#define CONNECT_S 15L /* connection timeout in seconds */
#define SLOW_S    30L /* aborts after this many seconds below SLOW_RATE; the next attempt resumes */
#define SLOW_RATE 1000L
#define REDIRECTS 10L

/* libcurl is opened on demand, since its dependencies would double the start-up time of every
 * command. */
struct library {
    void *handle;
    CURL *(*init)(void);
    CURLcode (*set)(CURL *, CURLoption, ...);
    CURLcode (*perform)(CURL *);
    void (*cleanup)(CURL *);
    const char *(*error)(CURLcode);
};

static ew_err open_curl(struct library *l)
{
    const struct ew_symbol symbols[] = {
        {"curl_easy_init", &l->init},       {"curl_easy_setopt", &l->set},
        {"curl_easy_perform", &l->perform}, {"curl_easy_cleanup", &l->cleanup},
        {"curl_easy_strerror", &l->error},  {NULL, NULL}};
    return ew_library_open(EW_CURL_FILE, symbols, &l->handle);
}

struct transfer {
    struct ew_progress progress;
    curl_off_t before; /* bytes of earlier attempts */
    curl_off_t most;   /* limit, including them */
    bool begun;
};

static int show(void *ctx, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up)
{
    struct transfer *t = ctx;
    if (t->before + now > t->most || t->before + total > t->most)
        return 1; /* aborts a server that sends more than the limit */
    if (total <= 0)
        return 0;
    if (!t->begun) {
        ew_progress_begin(&t->progress, stderr, "downloading", t->before + total);
        t->begun = true;
    }
    ew_progress_update(&t->progress, t->before + now);
    return 0;
}

static void set_options(const struct library *l, CURL *c, const char *url, FILE *f,
                        struct transfer *t)
{
    l->set(c, CURLOPT_URL, url);
    l->set(c, CURLOPT_WRITEDATA, f);
    l->set(c, CURLOPT_FOLLOWLOCATION, 1L);
    l->set(c, CURLOPT_MAXREDIRS, REDIRECTS);
    l->set(c, CURLOPT_FAILONERROR, 1L);
    l->set(c, CURLOPT_NOSIGNAL, 1L);
    l->set(c, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    l->set(c, CURLOPT_LOW_SPEED_TIME, SLOW_S);
    l->set(c, CURLOPT_LOW_SPEED_LIMIT, SLOW_RATE);
    l->set(c, CURLOPT_RESUME_FROM_LARGE, t->before);
    l->set(c, CURLOPT_NOPROGRESS, 0L);
    l->set(c, CURLOPT_XFERINFOFUNCTION, show);
    l->set(c, CURLOPT_XFERINFODATA, t);
}

/* Downloads the missing part, appending to the open file. */
static CURLcode transfer(const struct library *l, const char *url, FILE *f, int64_t most,
                         char why[CURL_ERROR_SIZE])
{
    CURL *c = l->init();
    if (!c)
        return CURLE_OUT_OF_MEMORY;
    struct stat st;
    struct transfer t = {.before = fstat(fileno(f), &st) == 0 ? st.st_size : 0, .most = most};
    l->set(c, CURLOPT_ERRORBUFFER, why);
    set_options(l, c, url, f, &t);
    const CURLcode code = l->perform(c);
    if (t.begun)
        ew_progress_end(&t.progress);
    l->cleanup(c);
    return code;
}

static ew_err fetch(const struct library *l, const char *url, const char *path, int64_t most)
{
    char part[EW_DATA_PATH], why[CURL_ERROR_SIZE] = "";
    EW_CHECK(strlen(path) + 6 < sizeof(part), EW_ERR_LIMIT, "%s: too long a path", path);
    snprintf(part, sizeof(part), "%s.part", path);
    FILE *f = fopen(part, "abe");
    EW_CHECK(f, EW_ERR_IO, "%s: %s", part, strerror(errno));
    CURLcode code = transfer(l, url, f, most, why);
    if (code == CURLE_RANGE_ERROR || code == CURLE_BAD_DOWNLOAD_RESUME ||
        (code == CURLE_HTTP_RETURNED_ERROR && strstr(why, "416"))) {
        /* the server cannot resume, or the file has changed: restart */
        if (ftruncate(fileno(f), 0) == 0)
            code = transfer(l, url, f, most, why);
    }
    struct stat st;
    const bool too_large = code == CURLE_ABORTED_BY_CALLBACK;
    /* nothing to resume */
    if (code != CURLE_OK && fstat(fileno(f), &st) == 0 && (st.st_size == 0 || too_large))
        unlink(part);
    const bool written = fflush(f) == 0 && !ferror(f) && fsync(fileno(f)) == 0;
    fclose(f);
    EW_CHECK(!too_large, EW_ERR_FORMAT, "%s: sends more than the %lld bytes that are expected", url,
             (long long)most);
    EW_CHECK(code == CURLE_OK, EW_ERR_IO, "%s: %s", url, *why ? why : l->error(code));
    EW_CHECK(written, EW_ERR_IO, "%s: cannot be written", part);
    EW_CHECK(rename(part, path) == 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    return EW_OK;
}

ew_err ew_download(const char *url, const char *path, int64_t most)
{
    struct library l;
    EW_TRY(open_curl(&l));
    const ew_err e = fetch(&l, url, path, most);
    dlclose(l.handle);
    return e;
}
#else
ew_err ew_download(const char *url, const char *path, int64_t most)
{
    return ew_fail(EW_ERR_UNSUPPORTED, "%s: this build downloads nothing (EW_CURL)", url);
}
#endif
