/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime's C API by table index, since distribution packages come without the header.  The
 * table only grows at its end, and all entries used here exist since API version 1. */
#ifndef EW_BENCH_ONNXRUNTIME_TABLE_H
#define EW_BENCH_ONNXRUNTIME_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef void any_fn(void);

/* The result of the exported function: gets the API table by version, and the library's version. */
struct ort_base {
    any_fn *const *(*table)(uint32_t version);
    const char *(*version)(void);
};

/* Indices in the API table. */
enum ort_slot {
    ORT_ERROR_MESSAGE = 2,
    ORT_ENV_NEW = 3,
    ORT_SESSION_OPEN = 7,
    ORT_SESSION_RUN = 9,
    ORT_OPTIONS_NEW = 10,
    ORT_OPTIONS_EXECUTION_MODE = 13,
    ORT_OPTIONS_OPTIMIZATION = 23,
    ORT_OPTIONS_INTRA_THREADS = 24,
    ORT_OPTIONS_INTER_THREADS = 25,
    ORT_SESSION_INPUT_NAME = 36,
    ORT_SESSION_OUTPUT_NAME = 37,
    ORT_TENSOR_WRAP = 49,
    ORT_TENSOR_DATA = 51,
    ORT_INFO_ELEMENTS = 64,
    ORT_TENSOR_INFO = 65,
    ORT_MEMORY_INFO_NEW = 69,
    ORT_DEFAULT_ALLOCATOR = 78,
};

enum {
    ORT_LOG_ERROR = 3,
    ORT_SEQUENTIAL = 0,
    ORT_OPTIMIZE_ALL = 99,
    ORT_FLOAT32 = 1,
    ORT_ARENA = 1,
    ORT_MEMORY_DEFAULT = 0,
};

/* Types of these functions.  A status is NULL on success. */
typedef const char *message_fn(const void *status);
typedef void *env_new_fn(int log_level, const char *name, void **env);
typedef void *session_open_fn(const void *env, const char *path, const void *options, void **out);
typedef void *run_fn(void *session, const void *run_options, const char *const *input_names,
                     const void *const *inputs, size_t n_inputs, const char *const *output_names,
                     size_t n_outputs, void **outputs);
typedef void *new_fn(void **out);
typedef void *set_fn(void *options, int value);
typedef void *name_fn(const void *session, size_t i, void *allocator, char **out);
typedef void *wrap_fn(const void *memory, void *data, size_t bytes, const int64_t *dims,
                      size_t rank, int type, void **out);
typedef void *data_fn(void *value, void **out);
typedef void *info_fn(const void *value, void **out);
typedef void *elements_fn(const void *info, size_t *out);
typedef void *memory_fn(int allocator, int kind, void **out);

#endif
