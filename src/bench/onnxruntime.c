/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime through its C API.  Distribution packages come without the header, so functions are
 * called by index in the API table (onnxruntime_table.h). */
#include "bench/onnxruntime.h"

#include <stdlib.h>

#include "base/library.h"
#include "base/mem.h"
#include "bench/onnxruntime_table.h"

struct ew_ort {
    any_fn *const *slots;
    const char *version;
    void *session, *memory, *input, *output; /* output: NULL before the first run, then reused */
    char *input_name, *output_name;
};

static ew_err check(const struct ew_ort *o, const char *what, const void *status)
{
    EW_CHECK(!status, EW_ERR_UNSUPPORTED, "onnxruntime %s: %s: %s", o->version, what,
             ((message_fn *)o->slots[ORT_ERROR_MESSAGE])(status));
    return EW_OK;
}

static ew_err open_library(struct ew_ort *o)
{
    static const char *const names[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
    const char *own = getenv("EW_ONNXRUNTIME"), *why = "";
    void *library = own && *own ? ew_library_load(own, &why) : NULL;
    for (size_t i = 0; !(own && *own) && !library && i < EW_COUNT(names); i++)
        library = ew_library_load(names[i], &why);
    EW_CHECK(library, EW_ERR_UNSUPPORTED,
             "no onnxruntime: %s; EW_ONNXRUNTIME names the file of its library (libonnxruntime.so)",
             why);
    const struct ort_base *(*get)(void);
    EW_CHECK(ew_library_find(library, "OrtGetApiBase", &get), EW_ERR_UNSUPPORTED,
             "no onnxruntime: the library has no OrtGetApiBase");
    o->slots = get()->table(1);
    o->version = get()->version();
    EW_CHECK(o->slots, EW_ERR_UNSUPPORTED, "onnxruntime %s has no interface of version 1",
             o->version);
    return EW_OK;
}

static ew_err make_options(const struct ew_ort *o, int threads, void **out)
{
    const struct {
        enum ort_slot slot;
        int value;
    } set[] = {{ORT_OPTIONS_OPTIMIZATION, ORT_OPTIMIZE_ALL},
               {ORT_OPTIONS_INTRA_THREADS, threads},
               {ORT_OPTIONS_INTER_THREADS, 1},
               {ORT_OPTIONS_EXECUTION_MODE, ORT_SEQUENTIAL}};
    EW_TRY(check(o, "options", ((new_fn *)o->slots[ORT_OPTIONS_NEW])(out)));
    for (size_t i = 0; i < EW_COUNT(set); i++)
        EW_TRY(check(o, "options", ((set_fn *)o->slots[set[i].slot])(*out, set[i].value)));
    return EW_OK;
}

static ew_err open_session(struct ew_ort *o, const char *path, int threads)
{
    any_fn *const *s = o->slots;
    void *env, *options, *allocator;
    EW_TRY(
        check(o, "environment", ((env_new_fn *)s[ORT_ENV_NEW])(ORT_LOG_ERROR, "edgewise", &env)));
    EW_TRY(make_options(o, threads, &options));
    EW_TRY(
        check(o, path, ((session_open_fn *)s[ORT_SESSION_OPEN])(env, path, options, &o->session)));
    EW_TRY(check(o, "allocator", ((new_fn *)s[ORT_DEFAULT_ALLOCATOR])(&allocator)));
    EW_TRY(check(o, path,
                 ((name_fn *)s[ORT_SESSION_INPUT_NAME])(o->session, 0, allocator, &o->input_name)));
    EW_TRY(
        check(o, path,
              ((name_fn *)s[ORT_SESSION_OUTPUT_NAME])(o->session, 0, allocator, &o->output_name)));
    return check(o, "memory",
                 ((memory_fn *)s[ORT_MEMORY_INFO_NEW])(ORT_ARENA, ORT_MEMORY_DEFAULT, &o->memory));
}

ew_err ew_ort_open(const char *path, int threads, struct ew_ort **out)
{
    struct ew_ort *o = calloc(1, sizeof(*o));
    EW_CHECK(o, EW_ERR_MEMORY, "no memory");
    ew_err e = open_library(o);
    if (e == EW_OK)
        e = open_session(o, path, threads);
    if (e != EW_OK) {
        free(o);
        return e;
    }
    *out = o;
    return EW_OK;
}

void ew_ort_close(struct ew_ort *o)
{
    free(o);
}

const char *ew_ort_version(const struct ew_ort *o)
{
    return o->version;
}

ew_err ew_ort_bind(struct ew_ort *o, const struct ew_tensor *input)
{
    const size_t bytes = (size_t)ew_tensor_count(input) * sizeof(float);
    EW_CHECK(input->dtype == EW_F32, EW_ERR_TYPE, "onnxruntime: the input is %s, not float32",
             ew_dtype_name(input->dtype));
    return check(o, "input",
                 ((wrap_fn *)o->slots[ORT_TENSOR_WRAP])(o->memory, input->data, bytes,
                                                        input->shape.dim, (size_t)input->shape.rank,
                                                        ORT_FLOAT32, &o->input));
}

ew_err ew_ort_run(struct ew_ort *o)
{
    const void *const input = o->input;
    const char *const in = o->input_name, *const out = o->output_name;
    return check(o, "run",
                 ((run_fn *)o->slots[ORT_SESSION_RUN])(o->session, NULL, &in, &input, 1, &out, 1,
                                                       &o->output));
}

ew_err ew_ort_output(struct ew_ort *o, const float **data, size_t *n)
{
    void *info, *values;
    EW_TRY(check(o, "output", ((info_fn *)o->slots[ORT_TENSOR_INFO])(o->output, &info)));
    EW_TRY(check(o, "output", ((elements_fn *)o->slots[ORT_INFO_ELEMENTS])(info, n)));
    EW_TRY(check(o, "output", ((data_fn *)o->slots[ORT_TENSOR_DATA])(o->output, &values)));
    *data = values;
    return EW_OK;
}
