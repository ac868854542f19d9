/* SPDX-License-Identifier: Apache-2.0 */
/* Small parts of base: errors, arena, log, clock, progress; and the test framework's own guards. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena_move.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/progress.h"
#include "ew_test.h"

static void errors_name_the_way_up(void)
{
    EW_EXPECT_ERR(ew_fail(EW_ERR_SHAPE, "dim %d is %d", 2, -1), EW_ERR_SHAPE, "dim 2 is -1");
    EW_EXPECT_INT(ew_fail_in(EW_ERR_SHAPE, "node '%s'", "conv1"), EW_ERR_SHAPE);
    EW_EXPECT_STR(ew_error_message(), "node 'conv1': dim 2 is -1");
    EW_EXPECT_INT(ew_fail_in(EW_OK, "not said"), EW_OK);
    EW_EXPECT_STR(ew_error_message(), "node 'conv1': dim 2 is -1");
    char longer[3000];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    ew_fail(EW_ERR_IO, "%s", longer);
    ew_fail_in(EW_ERR_IO, "%s", longer);
    EW_EXPECT(strlen(ew_error_message()) < sizeof(longer));
    EW_EXPECT_STR(ew_error_text(EW_ERR_MEMORY), "out of memory, descriptors or processes");
    EW_EXPECT_STR(ew_error_text((ew_err)999), "unknown error");
}

static void arena_gives_zeroed_aligned_objects(void)
{
    struct ew_arena a;
    ew_arena_init(&a);
    static const size_t sizes[] = {0, 1, 24, 1024, 70000, 5, 1 << 20, 17};
    for (int round = 0; round < 50; round++)
        for (size_t i = 0; i < EW_COUNT(sizes); i++) {
            char *p = ew_arena_alloc(&a, sizes[i]);
            if (!p) {
                EW_FAIL("no object of %zu bytes", sizes[i]);
                return;
            }
            EW_EXPECT_INT((uintptr_t)p % (sizes[i] >= 1024 ? 64 : 16), 0);
            if (sizes[i]) {
                EW_EXPECT(p[0] == 0 && p[sizes[i] - 1] == 0);
                memset(p, 0xff, sizes[i]); /* later objects must still be cleared */
            }
        }
    EW_EXPECT_SAME(ew_arena_array(&a, SIZE_MAX / 2, 3), NULL);
    EW_EXPECT(a.failed);
    ew_arena_reset(&a);
    EW_EXPECT(!a.failed);
    EW_EXPECT_STR(ew_arena_printf(&a, "%s-%d", "conv", 7), "conv-7");
    EW_EXPECT_STR(ew_arena_strdup(&a, ""), "");
    ew_arena_fini(&a);
}

/* A small object in the rest of a large one's chunk is not alone there. */
static void arena_releases_objects_that_are_alone(void)
{
    const size_t large = (size_t)1 << 20;
    struct ew_arena a, from;
    ew_arena_init(&a);
    ew_arena_init(&from);
    char *first = ew_arena_alloc(&a, 1), *big = ew_arena_alloc(&from, large);
    char *beside = ew_arena_alloc(&from, 1);
    EW_EXPECT(first && big && beside);
    ew_arena_join(&a, &from);
    EW_EXPECT(!ew_arena_is_alone(&a, beside, 1) && !ew_arena_release(&a, beside, 1));
    EW_EXPECT(!ew_arena_is_alone(&a, big, large) && !ew_arena_release(&a, big, large));
    char *own = ew_arena_alloc(&a, large);
    EW_EXPECT(own && ew_arena_is_alone(&a, own, large) && ew_arena_release(&a, own, large));
    EW_EXPECT(!ew_arena_is_alone(&a, own, large));
    ew_arena_fini(&a);
}

static void lists_grow(void)
{
    EW_CLEANUP(ew_free_ptr) void *list = NULL;
    int cap = 0;
    for (int n = 0; n < 1000; n++) {
        EW_EXPECT_OK(ew_grow(&list, &cap, n + 1, sizeof(int)));
        ((int *)list)[n] = n;
    }
    EW_EXPECT(cap >= 1000);
    EW_EXPECT_INT(((int *)list)[999], 999);
    EW_EXPECT_ERR(ew_grow(&list, &cap, 1 << 29, 8), EW_ERR_LIMIT, "entries");
    void *p = NULL;
    EW_EXPECT_ERR(ew_aligned_new(SIZE_MAX - 5, &p), EW_ERR_MEMORY, "too large");
}

struct heard {
    int n;
    enum ew_log_level level;
    char text[64];
};

static void hear(void *ctx, enum ew_log_level level, const char *text)
{
    struct heard *h = ctx;
    h->n++;
    h->level = level;
    snprintf(h->text, sizeof(h->text), "%s", text);
}

static void log_goes_to_its_sink(void)
{
    struct heard h = {0};
    const struct ew_log_sink sink = {.write = hear, .ctx = &h, .level = EW_LOG_INFO};
    EW_WARN("nobody listens");
    ew_log_set(&sink);
    EW_DEBUG("too talkative");
    EW_EXPECT_INT(h.n, 0);
    EW_WARN("%d of %d", 2, 3);
    EW_EXPECT_INT(h.n, 1);
    EW_EXPECT_INT(h.level, EW_LOG_WARN);
    EW_EXPECT_STR(h.text, "2 of 3");
    ew_log_set(NULL);
    EW_INFO("silence again");
    EW_EXPECT_INT(h.n, 1);
}

static void clock_goes_forward(void)
{
    const int64_t a = ew_clock_ns();
    usleep(2000);
    const int64_t b = ew_clock_ns();
    EW_EXPECT(b - a >= 2000000 && b - a < 10 * EW_NS_PER_S);
}

static void progress_tells_time_left(void)
{
    struct ew_progress p;
    char text[80];
    FILE *file = tmpfile();
    ew_progress_begin(&p, file, "conformance", 1000);
    EW_EXPECT_SAME(p.out, NULL); /* no terminal: no progress line */
    ew_progress_update(&p, 10);
    ew_progress_end(&p);
    EW_EXPECT_INT(file ? ftell(file) : -1, 0);
    if (file)
        fclose(file);
    ew_progress_text(&p, 0, EW_NS_PER_S, text, sizeof(text));
    EW_EXPECT_STR(text, "conformance   0% 0/1000");
    ew_progress_text(&p, 250, 30 * EW_NS_PER_S, text, sizeof(text));
    EW_EXPECT_STR(text, "conformance  25% 250/1000, 1:30 left");
    ew_progress_text(&p, 1, 10 * EW_NS_PER_S, text, sizeof(text));
    EW_EXPECT_STR(text, "conformance   0% 1/1000, 2:46:30 left");
    ew_progress_text(&p, 1000, EW_NS_PER_S, text, sizeof(text));
    EW_EXPECT_STR(text, "conformance 100% 1000/1000, 0:00 left");
    ew_progress_text(&p, 250, EW_NS_PER_S, text, 8); /* truncated, no overrun */
    EW_EXPECT_STR(text, "conform");
}

/* ---- The test framework ---------------------------------------------------------------------- */

/* The signal that touching p[at] raises in a child process; 0: none. */
static int signal_of_touch(volatile unsigned char *p, ptrdiff_t at)
{
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would exit instead */
        const unsigned char c = p[at];
        _exit(c == 0xa5 ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void guards_fault(void)
{
    static const size_t sizes[] = {1, 63, 4096, 5000};
    for (size_t i = 0; i < EW_COUNT(sizes); i++) {
        const ptrdiff_t n = (ptrdiff_t)sizes[i];
        unsigned char *end = ew_guard_end(sizes[i], 1), *start = ew_guard_start(sizes[i]);
        EW_EXPECT_INT(signal_of_touch(end, 0), 0);
        EW_EXPECT_INT(signal_of_touch(end, n - 1), 0);
        EW_EXPECT_INT(signal_of_touch(end, n), SIGSEGV);
        EW_EXPECT_INT(signal_of_touch(start, n - 1), 0);
        EW_EXPECT_INT(signal_of_touch(start, -1), SIGSEGV);
        ew_guard_free(end);
        ew_guard_free(start);
    }
    unsigned char *aligned = ew_guard_end(100, 64);
    EW_EXPECT_INT((uintptr_t)aligned % 64, 0);
    EW_EXPECT_INT(signal_of_touch(aligned, 128), SIGSEGV);
    ew_guard_free(aligned);
    ew_guard_free(NULL);
}

EW_TEST_MAIN(EW_TEST(errors_name_the_way_up), EW_TEST(arena_gives_zeroed_aligned_objects),
             EW_TEST(arena_releases_objects_that_are_alone), EW_TEST(lists_grow),
             EW_TEST(log_goes_to_its_sink), EW_TEST(clock_goes_forward),
             EW_TEST(progress_tells_time_left), EW_TEST(guards_fault))
