/* SPDX-License-Identifier: Apache-2.0 */
/* The test framework. */
#include "ew_test.h"

#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "poison_backend.h"

#define CANARY 0xa5

struct guard {
    struct guard *next;
    char *map, *data;
    size_t map_bytes, bytes;
};

static struct {
    char name[256];
    bool skipped;
    int checks_failed; /* in the current case */
    double start_s;
    int passed, failed, skips;
    struct guard *guards;
    char dir[64];
} state;

/* ---- Cases ----------------------------------------------------------------------------------- */

/* Registers the test-only device that EW_DEVICE names. */
static void add_devices(void)
{
    const char *device = getenv("EW_DEVICE");
    if (device && strncmp(device, "poison", 6) == 0)
        ew_poison_register();
}

bool ew_test_quick(void)
{
    return getenv("EW_TEST_QUICK") != NULL;
}

double ew_test_used_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ew_test_begin(const char *fmt, ...)
{
    add_devices();
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(state.name, sizeof(state.name), fmt, ap);
    va_end(ap);
    state.skipped = false;
    state.checks_failed = 0;
    state.start_s = ew_test_used_s();
}

void ew_test_end(void)
{
    if (state.checks_failed) {
        state.failed++;
        printf("FAIL %s\n", state.name);
    } else if (!state.skipped) {
        state.passed++;
        printf("ok %s", state.name);
        if (getenv("EW_TEST_TIMES"))
            printf("  %.2f s", ew_test_used_s() - state.start_s);
        putchar('\n');
    }
    fflush(stdout);
}

void ew_test_skip(const char *fmt, ...)
{
    va_list ap;
    state.skipped = true;
    state.skips++;
    printf("skip %s: ", state.name);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int ew_test_status(void)
{
    if (state.dir[0])
        nftw(state.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    state.dir[0] = '\0';
    if (state.passed + state.failed + state.skips == 0) {
        printf("FAIL no case was run\n");
        return 1;
    }
    if (state.failed)
        return 1;
    return state.passed ? 0 : 77;
}

/* True if a case's name contains the word: a renamed case must not silently drop out of a
 * selection. */
static bool is_known(const char *word, const struct ew_test *tests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(tests[i].name, word))
            return true;
    printf("FAIL no case is called %s\n", word);
    return false;
}

int ew_test_main(int argc, char **argv, const struct ew_test *tests, size_t n)
{
    for (int a = 1; a < argc; a++)
        if (!is_known(argv[a], tests, n))
            return 1;
    for (size_t i = 0; i < n; i++) {
        bool wanted = argc < 2;
        for (int a = 1; a < argc; a++)
            wanted = wanted || strstr(tests[i].name, argv[a]);
        if (!wanted)
            continue;
        ew_test_begin("%s", tests[i].name);
        tests[i].run();
        ew_test_end();
    }
    return ew_test_status();
}

/* ---- Checks ---------------------------------------------------------------------------------- */

void ew_test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    state.checks_failed++;
    printf("%s:%d: in %s: ", file, line, state.name);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
}

bool ew_expect(bool ok, const char *what, const char *file, int line)
{
    if (!ok)
        ew_test_fail(file, line, "%s is false", what);
    return ok;
}

bool ew_expect_int(int64_t a, int64_t b, const char *what, const char *file, int line)
{
    if (a != b)
        ew_test_fail(file, line, "%s: %lld, %lld", what, (long long)a, (long long)b);
    return a == b;
}

bool ew_expect_str(const char *a, const char *b, const char *what, const char *file, int line)
{
    const bool ok = a && b ? strcmp(a, b) == 0 : a == b;
    if (!ok)
        ew_test_fail(file, line, "%s:\n  \"%s\"\n  \"%s\"", what, a ? a : "(null)",
                     b ? b : "(null)");
    return ok;
}

bool ew_expect_has(const char *a, const char *b, const char *what, const char *file, int line)
{
    const bool ok = a && b && strstr(a, b);
    if (!ok)
        ew_test_fail(file, line, "%s:\n  \"%s\"\n  \"%s\"", what, a ? a : "(null)",
                     b ? b : "(null)");
    return ok;
}

bool ew_expect_same(const void *a, const void *b, const char *what, const char *file, int line)
{
    if (a != b)
        ew_test_fail(file, line, "%s: %p, %p", what, a, b);
    return a == b;
}

bool ew_expect_near(double a, double b, double tol, const char *what, const char *file, int line)
{
    const bool ok = fabs(a - b) <= tol; /* false for nan */
    if (!ok)
        ew_test_fail(file, line, "%s: %.17g, %.17g, apart %g > %g", what, a, b, fabs(a - b), tol);
    return ok;
}

bool ew_expect_err(ew_err got, ew_err want, const char *text, const char *what, const char *file,
                   int line)
{
    if (got != want)
        ew_test_fail(file, line, "%s: \"%s\" (%s), expected \"%s\"", what, ew_error_text(got),
                     got == EW_OK ? "" : ew_error_message(), ew_error_text(want));
    else if (text && !strstr(ew_error_message(), text))
        ew_test_fail(file, line, "%s: message\n  \"%s\"\nlacks\n  \"%s\"", what, ew_error_message(),
                     text);
    else
        return true;
    return false;
}

/* Error relative to the tolerance; at most 1 passes. */
static double excess(double a, double b, const double tol[2])
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? 0 : HUGE_VAL;
    if (isinf(a) || isinf(b))
        return isinf(a) && isinf(b) && (a > 0) == (b > 0) ? 0 : HUGE_VAL;
    const double diff = fabs(a - b), allowed = tol[1] + tol[0] * fabs(b);
    if (diff <= allowed)
        return 0;
    return allowed > 0 ? diff / allowed : HUGE_VAL;
}

struct worst {
    size_t index, count;
    double by;
};

static void note(struct worst *w, size_t i, double by)
{
    if (by <= 1)
        return;
    if (w->count == 0 || by > w->by) {
        w->by = by;
        w->index = i;
    }
    w->count++;
}

static bool report_worst(const struct worst *w, size_t n, const double pair[2], const double tol[2],
                         const struct ew_where *at)
{
    if (w->count)
        ew_test_fail(at->file, at->line,
                     "%s: %zu of %zu off; worst at [%zu]: %.9g, %.9g (rtol %g, atol %g)", at->what,
                     w->count, n, w->index, pair[0], pair[1], tol[0], tol[1]);
    return w->count == 0;
}

bool ew_expect_close_f32(const float *a, const float *b, size_t n, const double tol[2],
                         const struct ew_where *at)
{
    struct worst w = {0};
    for (size_t i = 0; i < n; i++)
        note(&w, i, excess((double)a[i], (double)b[i], tol));
    const double pair[2] = {w.count ? (double)a[w.index] : 0, w.count ? (double)b[w.index] : 0};
    return report_worst(&w, n, pair, tol, at);
}

bool ew_expect_close_f64(const double *a, const double *b, size_t n, const double tol[2],
                         const struct ew_where *at)
{
    struct worst w = {0};
    for (size_t i = 0; i < n; i++)
        note(&w, i, excess(a[i], b[i], tol));
    const double pair[2] = {w.count ? a[w.index] : 0, w.count ? b[w.index] : 0};
    return report_worst(&w, n, pair, tol, at);
}

/* ---- The log --------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock; /* guards the text */
    char text[16384];     /* lines */
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void hear(void *ctx, enum ew_log_level level, const char *text)
{
    pthread_mutex_lock(&heard.lock);
    ew_text_add(heard.text, sizeof(heard.text), "%s\n", text);
    pthread_mutex_unlock(&heard.lock);
}

void ew_test_listen(void)
{
    static const struct ew_log_sink sink = {.write = hear, .level = EW_LOG_DEBUG};
    ew_log_set(&sink);
    pthread_mutex_lock(&heard.lock);
    heard.text[0] = '\0';
    pthread_mutex_unlock(&heard.lock);
}

int ew_test_heard(const char *text)
{
    int n = 0;
    pthread_mutex_lock(&heard.lock);
    for (const char *p = heard.text; (p = strstr(p, text)); p += strcspn(p, "\n"))
        n++;
    pthread_mutex_unlock(&heard.lock);
    return n;
}

/* ---- Guarded buffers ------------------------------------------------------------------------- */

/* Ends the program if the test cannot allocate memory. */
static void need(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static struct guard *guard_new(size_t bytes, size_t *inner)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    need(bytes < SIZE_MAX / 2, "guarded buffer");
    *inner = (bytes / page + 1) * page; /* an empty buffer still gets a byte of canary or a page */
    if (bytes && bytes % page == 0)
        *inner = bytes;
    struct guard *g = calloc(1, sizeof(*g));
    need(g, "guarded buffer");
    g->map_bytes = *inner + 2 * page;
    g->map = mmap(NULL, g->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(g->map != MAP_FAILED, "mmap");
    need(mprotect(g->map + page, *inner, PROT_READ | PROT_WRITE) == 0, "mprotect");
    memset(g->map + page, CANARY, *inner);
    g->data = g->map + page;
    g->bytes = bytes;
    g->next = state.guards;
    state.guards = g;
    return g;
}

void *ew_guard_end(size_t bytes, size_t align)
{
    size_t inner;
    struct guard *g = guard_new(bytes, &inner);
    const size_t at = inner - bytes;
    g->data += align ? at & ~(align - 1) : at;
    return g->data;
}

void *ew_guard_start(size_t bytes)
{
    size_t inner;
    return guard_new(bytes, &inner)->data;
}

static bool canary_whole(const char *from, const char *to)
{
    for (; from < to; from++)
        if (*(const unsigned char *)from != CANARY)
            return false;
    return true;
}

void ew_guard_free(void *p)
{
    if (!p)
        return;
    struct guard **link = &state.guards;
    while (*link && (*link)->data != p)
        link = &(*link)->next;
    struct guard *g = *link;
    if (!g) {
        EW_FAIL("%p is no guarded buffer", p);
        return;
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!canary_whole(g->map + page, g->data))
        EW_FAIL("bytes before a guarded buffer of %zu were written", g->bytes);
    if (!canary_whole(g->data + g->bytes, g->map + g->map_bytes - page))
        EW_FAIL("bytes after a guarded buffer of %zu were written", g->bytes);
    *link = g->next;
    munmap(g->map, g->map_bytes);
    free(g);
}

/* ---- Files ----------------------------------------------------------------------------------- */

const char *ew_test_dir(void)
{
    if (!state.dir[0]) {
        const char *tmp = getenv("TMPDIR");
        if (!tmp || strlen(tmp) > sizeof(state.dir) - 24)
            tmp = "/tmp";
        snprintf(state.dir, sizeof(state.dir), "%s/ew_test.XXXXXX", tmp);
        need(mkdtemp(state.dir), state.dir);
    }
    return state.dir;
}

const char *ew_test_path(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof(paths[0]), "%s/%s", ew_test_dir(), name);
    return p;
}

const char *ew_test_file(const char *name, const void *data, size_t size)
{
    const char *path = ew_test_path(name);
    FILE *f = fopen(path, "wb");
    need(f, path);
    need(size == 0 || fwrite(data, 1, size, f) == size, path);
    need(fclose(f) == 0, path);
    return path;
}
