/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target without libFuzzer: its corpus, then deterministic mutations of it.
 *
 *   fuzz_x CORPUS_DIR [COUNT]      the corpus, then COUNT mutated inputs; default: as many, at most
 *                                  20,000, as take BUDGET_S of CPU time
 *   fuzz_x --at N CORPUS_DIR       writes mutated input N to ./crash-input and runs only that
 *   fuzz_x FILE...                 these files
 *
 * Inputs run in a child process, so that a crash is attributed to its number; one that takes longer
 * than LIMIT_S counts as a hang. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/rootfs.h"
#include "ew_test.h"
#include "fuzz/fuzz_main.h"

#define LIMIT_S 20
#ifdef __SANITIZE_ADDRESS__ /* it detects more per input */
#define BUDGET_S 4
#else
#define BUDGET_S 1
#endif
#define MAX_BYTES ((size_t)1 << 20)

static ew_fuzz_target *target;

struct input {
    uint8_t *data;
    size_t size;
    const char *name;
};

struct corpus {
    struct ew_arena arena;
    struct input *files;
    int n;
    int64_t *at; /* shared with the parent: index of the running input; below n the corpus, then
                  * mutations */
};

static void stop(const char *why)
{
    printf("FAIL %s\n", why);
    exit(1);
}

static struct input load(const char *path)
{
    char *data = NULL;
    size_t size = 0;
    if (ew_file_read(path, MAX_BYTES, &data, &size) != EW_OK)
        stop(ew_error_message());
    return (struct input){(uint8_t *)data, size, path};
}

static void load_corpus(struct corpus *c, const char *dir)
{
    ew_arena_init(&c->arena);
    struct ew_root root;
    const char *const *names = NULL;
    if (ew_root_open(dir, &root) != EW_OK ||
        ew_root_list(&root, "/", &c->arena, &names, &c->n) != EW_OK)
        stop(ew_error_message());
    ew_root_close(&root);
    c->files = ew_arena_array(&c->arena, (size_t)c->n, sizeof(*c->files));
    for (int i = 0; i < c->n; i++)
        c->files[i] = load(ew_arena_printf(&c->arena, "%s/%s", dir, names[i]));
    if (c->n == 0)
        stop("the corpus is empty");
}

/* ---- Mutation -------------------------------------------------------------------------------- */

struct edit {
    struct ew_rng r;
    uint8_t *data;
    size_t size;
};

static size_t pick(struct edit *e, size_t n)
{
    return n ? (size_t)ew_rng_next_below(&e->r, n) : 0;
}

static void flip_bit(struct edit *e)
{
    e->data[pick(e, e->size)] ^= (uint8_t)(1u << pick(e, 8));
}

/* Boundary values. */
static void set_bytes(struct edit *e)
{
    static const uint8_t edge[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '0', '-', '"', '\n', ' '};
    const size_t n = 1 + pick(e, 8), at = pick(e, e->size);
    const uint8_t v = edge[pick(e, sizeof(edge))];
    for (size_t i = at; i < at + n && i < e->size; i++)
        e->data[i] = v;
}

static void random_byte(struct edit *e)
{
    e->data[pick(e, e->size)] = (uint8_t)pick(e, 256);
}

static void cut(struct edit *e)
{
    const size_t at = pick(e, e->size), n = pick(e, e->size - at) + 1;
    memmove(e->data + at, e->data + at + n, e->size - at - n);
    e->size -= n;
}

static void truncate_tail(struct edit *e)
{
    e->size = pick(e, e->size);
}

static void repeat(struct edit *e)
{
    const size_t from = pick(e, e->size),
                 n = pick(e, ew_min_i64(64, (int64_t)(e->size - from))) + 1;
    const size_t to = pick(e, e->size);
    if (e->size + n > MAX_BYTES)
        return;
    uint8_t piece[64];
    memcpy(piece, e->data + from, n);
    memmove(e->data + to + n, e->data + to, e->size - to);
    memcpy(e->data + to, piece, n);
    e->size += n;
}

/* Writes mutation k of the corpus to `data` of MAX_BYTES; depends only on k. */
static size_t mutate(const struct corpus *c, int64_t k, uint8_t *data)
{
    static void (*const edits[])(struct edit *) = {flip_bit, set_bytes,     random_byte,
                                                   cut,      truncate_tail, repeat};
    struct edit e = {.r = {.seed = 1, .stream = (uint64_t)k}, .data = data};
    const struct input *a = &c->files[pick(&e, (size_t)c->n)];
    memcpy(data, a->data, a->size);
    e.size = a->size;
    if (pick(&e, 8) == 0) { /* the head of one input and the tail of another */
        const struct input *b = &c->files[pick(&e, (size_t)c->n)];
        const size_t head = pick(&e, a->size + 1), tail = pick(&e, b->size + 1);
        if (head + tail <= MAX_BYTES) {
            memcpy(data + head, b->data + b->size - tail, tail);
            e.size = head + tail;
        }
    }
    for (size_t n = 1 + pick(&e, 6); n > 0 && e.size > 0; n--)
        edits[pick(&e, EW_COUNT(edits))](&e);
    return e.size;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Runs the target on a block of exactly this size, so that over-reads are detected. */
static void run_one(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        stop("no memory");
    if (size)
        memcpy(copy, data, size);
    alarm(LIMIT_S);
    target(copy, size);
    alarm(0);
    free(copy);
}

static void run_all(struct corpus *c, int64_t count, double budget_s)
{
    uint8_t *data = malloc(MAX_BYTES);
    if (!data)
        stop("no memory");
    for (*c->at = 0; *c->at < c->n + count; ++*c->at) {
        if (*c->at > c->n && ew_test_used_s() > budget_s)
            break;
        if (*c->at < c->n)
            run_one(c->files[*c->at].data, c->files[*c->at].size);
        else
            run_one(data, mutate(c, *c->at - c->n, data));
    }
    free(data);
}

static int watch(struct corpus *c, const char *name, int64_t count, double budget_s)
{
    c->at = mmap(NULL, sizeof(*c->at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c->at == MAP_FAILED)
        stop("no shared memory");
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        run_all(c, count, budget_s);
        exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        printf("ok %s: %d files and %lld mutations\n", name, c->n, (long long)(*c->at - c->n));
        return 0;
    }
    const char *how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "stopped by a sanitizer";
    if (*c->at < c->n)
        printf("FAIL %s: %s on %s\n", name, how, c->files[*c->at].name);
    else
        printf("FAIL %s: %s on mutation %lld (see it with --at)\n", name, how,
               (long long)(*c->at - c->n));
    return 1;
}

static int replay(struct corpus *c, const char *number)
{
    int64_t k = 0;
    uint8_t *data = malloc(MAX_BYTES);
    if (!data || !ew_num_int(number, &k))
        stop("--at needs the number of a mutation");
    const size_t size = mutate(c, k, data);
    if (ew_file_write("crash-input", data, size) != EW_OK)
        stop(ew_error_message());
    run_one(data, size);
    free(data);
    return 0;
}

int ew_fuzz_main(int argc, char **argv, ew_fuzz_target *the_target)
{
    target = the_target;
    struct corpus c = {.n = 0};
    struct stat st;
    if (argc == 4 && strcmp(argv[1], "--at") == 0) {
        load_corpus(&c, argv[3]);
        return replay(&c, argv[2]);
    }
    if (argc > 1 && stat(argv[1], &st) == 0 && S_ISDIR(st.st_mode)) {
        int64_t count = 20000;
        if (argc > 2 && !ew_num_int(argv[2], &count))
            stop("COUNT must be a number");
        load_corpus(&c, argv[1]);
        const char *slash = strrchr(argv[0], '/');
        const int status =
            watch(&c, slash ? slash + 1 : argv[0], count, argc > 2 ? INFINITY : BUDGET_S);
        for (int i = 0; i < c.n; i++)
            free(c.files[i].data);
        ew_arena_fini(&c.arena);
        return status;
    }
    for (int i = 1; i < argc; i++) {
        const struct input in = load(argv[i]);
        run_one(in.data, in.size);
        free(in.data);
    }
    return 0;
}
