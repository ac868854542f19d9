/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime's side: times one network, or runs it once on one input.
 *
 *   ort_bench LIBRARY FILE.onnx SHAPE THREADS time WARMUP ITERS     prints JSON
 *   ort_bench LIBRARY FILE.onnx SHAPE THREADS run INPUT OUTPUT      raw float32 files
 *
 * SHAPE is 1,3,224,224.  The library comes in an npm package that has no header, so it is opened at
 * run time and called by position: the table that it hands out only ever grows at its end, and what
 * is used here was in it from version 1 of the interface on.  Calling it straight from C leaves
 * Node out of the times.  Rounds and ratios are left to peers.py. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/onnxruntime_table.h"

#define MAX_RANK 8

/* ---- The library ---- */

static void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("ort_bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

struct ort {
    any_fn *const *slot;
    const char *version;
};

static void check(const struct ort *o, const char *what, const void *status)
{
    if (status)
        fail("%s: %s", what, ((message_fn *)o->slot[ORT_ERROR_MESSAGE])(status));
}

static struct ort library_open(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fail("%s", dlerror());
    /* A function from an object pointer, as POSIX has it. */
    const struct ort_base *(*base)(void);
    *(void **)&base = dlsym(handle, "OrtGetApiBase");
    if (!base)
        fail("%s: no OrtGetApiBase", path);
    const struct ort o = {.slot = base()->table(1), .version = base()->version()};
    if (!o.slot)
        fail("%s: no interface of version 1", path);
    return o;
}

/* ---- One network ---- */

struct network {
    void *session, *memory;
    char *input_name, *output_name;
    void *input, *output; /* output: NULL before the first run, then reused */
    float *values;        /* of the input */
    int64_t dims[MAX_RANK];
    size_t rank, count;
};

static void parse_shape(const char *text, struct network *n)
{
    n->count = 1;
    for (char *end; *text; text = *end ? end + 1 : end) {
        const long long d = strtoll(text, &end, 10);
        if (end == text || (*end && *end != ',') || d < 1 || d > 1 << 20 || n->rank == MAX_RANK)
            fail("shape: cannot read '%s'", text);
        n->dims[n->rank++] = d;
        n->count *= (size_t)d;
    }
}

/* All that its documentation advises for a latency of one model: every rewriting of the graph, one
 * operator at a time, all threads inside it. */
static void *options_new(const struct ort *o, int threads)
{
    void *options;
    check(o, "options", ((new_fn *)o->slot[ORT_OPTIONS_NEW])(&options));
    const struct {
        enum ort_slot slot;
        int value;
    } set[] = {{ORT_OPTIONS_OPTIMIZATION, ORT_OPTIMIZE_ALL},
               {ORT_OPTIONS_INTRA_THREADS, threads},
               {ORT_OPTIONS_INTER_THREADS, 1},
               {ORT_OPTIONS_EXECUTION_MODE, ORT_SEQUENTIAL}};
    for (size_t i = 0; i < sizeof(set) / sizeof(*set); i++)
        check(o, "options", ((set_fn *)o->slot[set[i].slot])(options, set[i].value));
    return options;
}

static void network_open(const struct ort *o, const char *path, int threads, struct network *n)
{
    void *env, *allocator;
    check(o, "environment", ((env_new_fn *)o->slot[ORT_ENV_NEW])(ORT_LOG_ERROR, "peer", &env));
    check(o, path,
          ((session_open_fn *)o->slot[ORT_SESSION_OPEN])(env, path, options_new(o, threads),
                                                         &n->session));
    check(o, "allocator", ((new_fn *)o->slot[ORT_DEFAULT_ALLOCATOR])(&allocator));
    check(o, path,
          ((name_fn *)o->slot[ORT_SESSION_INPUT_NAME])(n->session, 0, allocator, &n->input_name));
    check(o, path,
          ((name_fn *)o->slot[ORT_SESSION_OUTPUT_NAME])(n->session, 0, allocator, &n->output_name));
    check(o, "memory",
          ((memory_fn *)o->slot[ORT_MEMORY_INFO_NEW])(ORT_ARENA, ORT_MEMORY_DEFAULT, &n->memory));
    n->values = aligned_alloc(64, (n->count * sizeof(float) + 63) / 64 * 64);
    if (!n->values)
        fail("no memory for the input");
    check(o, "input",
          ((wrap_fn *)o->slot[ORT_TENSOR_WRAP])(n->memory, n->values, n->count * sizeof(float),
                                                n->dims, n->rank, ORT_FLOAT32, &n->input));
}

static void network_run(const struct ort *o, struct network *n)
{
    const void *const input = n->input;
    const char *const input_name = n->input_name, *const output_name = n->output_name;
    check(o, "run",
          ((run_fn *)o->slot[ORT_SESSION_RUN])(n->session, NULL, &input_name, &input, 1,
                                               &output_name, 1, &n->output));
}

/* ---- The two modes ---- */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The most that this process has had in memory.  getrusage would count what its parent had before
 * exec. */
static long long resident_peak(void)
{
    char line[256];
    long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmHWM: %lld kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib * 1024;
}

static void time_runs(const struct ort *o, struct network *n, int warmup, int iters)
{
    int64_t *ns = calloc((size_t)iters, sizeof(*ns));
    if (!ns)
        fail("no memory for %d times", iters);
    uint32_t state = 1;
    for (size_t i = 0; i < n->count; i++) {
        state = state * 1664525u + 1013904223u;
        n->values[i] = (float)(state >> 8) * 0x1p-23f - 1; /* [-1, 1) */
    }
    for (int i = 0; i < warmup; i++)
        network_run(o, n);
    for (int i = 0; i < iters; i++) {
        const int64_t start = now_ns();
        network_run(o, n);
        ns[i] = now_ns() - start;
    }
    qsort(ns, (size_t)iters, sizeof(*ns), by_value);
    const double median = (double)(ns[(iters - 1) / 2] + ns[iters / 2]) * 0.5e-6;
    printf("{\"version\": \"%s\", \"runs\": %d, \"median_ms\": %.9g, \"min_ms\": %.9g, "
           "\"rss_peak_bytes\": %lld}\n",
           o->version, iters, median, (double)ns[0] * 1e-6, resident_peak());
    free(ns);
}

static void run_once(const struct ort *o, struct network *n, const char *in, const char *out)
{
    FILE *f = fopen(in, "rb");
    if (!f || fread(n->values, sizeof(float), n->count, f) != n->count || fgetc(f) != EOF)
        fail("%s: not %zu floats: %s", in, n->count, f ? "wrong size" : strerror(errno));
    fclose(f);
    network_run(o, n);

    void *info, *data;
    size_t count;
    check(o, "output", ((info_fn *)o->slot[ORT_TENSOR_INFO])(n->output, &info));
    check(o, "output", ((elements_fn *)o->slot[ORT_INFO_ELEMENTS])(info, &count));
    check(o, "output", ((data_fn *)o->slot[ORT_TENSOR_DATA])(n->output, &data));
    f = fopen(out, "wb");
    if (!f)
        fail("%s: %s", out, strerror(errno));
    const bool whole = fwrite(data, sizeof(float), count, f) == count;
    if (fclose(f) != 0 || !whole)
        fail("%s: cannot write %zu floats", out, count);
}

int main(int argc, char **argv)
{
    if (argc != 8)
        fail("takes LIBRARY FILE.onnx SHAPE THREADS, then time WARMUP ITERS or run INPUT OUTPUT");
    struct network n = {0};
    parse_shape(argv[3], &n);
    const struct ort o = library_open(argv[1]);
    network_open(&o, argv[2], atoi(argv[4]), &n);
    if (strcmp(argv[5], "time") == 0 && atoi(argv[7]) > 0)
        time_runs(&o, &n, atoi(argv[6]), atoi(argv[7]));
    else if (strcmp(argv[5], "run") == 0)
        run_once(&o, &n, argv[6], argv[7]);
    else
        fail("'%s %s %s' is neither time WARMUP ITERS nor run INPUT OUTPUT", argv[5], argv[6],
             argv[7]);
    /* No teardown: the process ends here. */
    return 0;
}
