#!/usr/bin/env bash
# bench --compare-with onnxruntime: a stub library stands for it, whose network returns ten zeros.
cat >ort.c <<'C'
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static float zeros[10];
static char input[] = "input", output[] = "output";
static const char *message(const void *s) { return s; }
static void *env_new(int level, const char *name, void **out) { return *out = zeros, NULL; }
static void *new(void **out) { return *out = zeros, NULL; }
static void *set(void *o, int v) { return NULL; }
static void *open(const void *env, const char *path, const void *options, void **out)
{
    return *out = zeros, strstr(path, "refused") ? "no such operator" : NULL;
}
static void *input_name(const void *s, size_t i, void *a, char **out) { return *out = input, NULL; }
static void *output_name(const void *s, size_t i, void *a, char **out) { return *out = output, NULL; }
static void *memory(int a, int kind, void **out) { return *out = zeros, NULL; }
static void *wrap(const void *m, void *data, size_t bytes, const int64_t *dims, size_t rank, int type, void **out)
{
    const int right = rank == 4 && dims[1] == 1 && dims[2] == 28 && bytes == 28 * 28 * 4 && type == 1;
    return *out = data, right ? NULL : "not 1x1x28x28 of float32";
}
static void *run(void *s, const void *o, const char *const *in, const void *const *x, size_t n,
                 const char *const *out, size_t m, void **y)
{
    return *y = zeros, strcmp(*in, input) || strcmp(*out, output) ? "other names" : NULL;
}
static void *data(void *value, void **out) { return *out = value, NULL; }
static void *info(const void *value, void **out) { return *out = zeros, NULL; }
static void *elements(const void *info, size_t *out) { return *out = 10, NULL; }
static void *const table[80] = {[2] = message, [3] = env_new, [7] = open, [9] = run, [10] = new, [13] = set,
    [23] = set, [24] = set, [25] = set, [36] = input_name, [37] = output_name, [49] = wrap, [51] = data,
    [64] = elements, [65] = info, [69] = memory, [78] = new};
static const void *get_table(uint32_t version) { return version == 1 ? table : NULL; }
static const char *get_version(void) { return "0.0-made-up"; }
static const struct { const void *(*table)(uint32_t); const char *(*version)(void); } base = {get_table, get_version};
const void *OrtGetApiBase(void) { return &base; }
C
${CC:-cc} -w -shared -fPIC ort.c -o ort.so || { echo "no compiler" >&2; exit 77; }
# An exported network has the names input and output.
EW_ONNXRUNTIME=./ort.so edgewise bench lenet5-mnist --compare-with onnxruntime --iters 16 --json 2>/dev/null >found.json
grep -E '"(name|peer|peer_version|runs)"' found.json
grep -cE '"(median_ms|peer_median_ms|speed_up|speed_up_min|output_difference)": [0-9.e+-]+' found.json
edgewise export lenet5-mnist -o refused.onnx >/dev/null 2>&1
EW_ONNXRUNTIME=./ort.so edgewise bench refused.onnx --compare-with onnxruntime 2>&1 || echo "exit $?"
EW_ONNXRUNTIME=./nothing.so edgewise bench lenet5 --compare-with onnxruntime 2>&1 || echo "exit $?"
EW_ONNXRUNTIME=./ort.so edgewise bench lenet5 --compare-with onnxruntime --profile 2>&1 | head -n 1
edgewise bench lenet5 alexnet --compare-with onnxruntime 2>&1 | head -n 1
