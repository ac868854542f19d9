/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of TensorProto: raw bytes, typed lists, external files.  Sizes are checked against the
 * data present before memory is allocated. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "format/onnx_file.h"

#define SMALL ((size_t)4 << 10) /* bytes up to which data is copied to the graph at once */
/* Total bytes of external files, since a sparse file costs nothing on disk. */
#define MAX_EXTERNAL ((size_t)64 << 30)

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors in files are little-endian, and are used as they are"
#endif

const char *ew_onnx_dtype_text(int onnx)
{
    static const char *const names[] = {
        "undefined",      "float",      "uint8",          "int8",       "uint16",   "int16",
        "int32",          "int64",      "string",         "bool",       "float16",  "double",
        "uint32",         "uint64",     "complex64",      "complex128", "bfloat16", "float8e4m3fn",
        "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",     "float4e2m1"};
    return onnx >= 0 && onnx < (int)EW_COUNT(names) ? names[onnx] : "unknown";
}

static ew_err read_shape(const Ew__OnnxTensor *t, const char *what, struct ew_shape *out)
{
    EW_CHECK(t->n_dims <= EW_MAX_RANK, EW_ERR_LIMIT, "tensor %s has %zu dimensions, at most %d",
             what, t->n_dims, EW_MAX_RANK);
    out->rank = (int32_t)t->n_dims;
    for (int i = 0; i < out->rank; i++)
        out->dim[i] = t->dims[i];
    return ew_shape_check(out, what);
}

/* ---- Typed lists ---- */

/* Length of the typed list that holds elements of this type. */
static size_t typed_count(const Ew__OnnxTensor *t, enum ew_dtype dtype)
{
    switch (dtype) {
    case EW_F32:
        return t->n_float_data;
    case EW_F64:
        return t->n_double_data;
    case EW_S64:
        return t->n_int64_data;
    case EW_U32:
    case EW_U64:
        return t->n_uint64_data;
    default:
        return t->n_int32_data;
    }
}

static void copy_typed(const Ew__OnnxTensor *t, struct ew_tensor *out)
{
    const int64_t n = ew_tensor_count(out);
    const size_t bytes = ew_tensor_bytes(out);
    switch (out->dtype) {
    case EW_F32:
        memcpy(out->data, t->float_data, bytes);
        return;
    case EW_F64:
        memcpy(out->data, t->double_data, bytes);
        return;
    case EW_S64:
        memcpy(out->data, t->int64_data, bytes);
        return;
    case EW_U64:
        memcpy(out->data, t->uint64_data, bytes);
        return;
    case EW_S32:
        memcpy(out->data, t->int32_data, bytes);
        return;
    case EW_U32:
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)out->data)[i] = (uint32_t)t->uint64_data[i];
        return;
    case EW_F16: /* the bits, in the low half of an int32 */
    case EW_BF16:
    case EW_S16:
    case EW_U16:
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)out->data)[i] = (uint16_t)t->int32_data[i];
        return;
    case EW_BOOL:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)out->data)[i] = t->int32_data[i] != 0;
        return;
    case EW_S8:
    case EW_U8:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)out->data)[i] = (uint8_t)t->int32_data[i];
        return;
    case EW_DTYPE_COUNT:
        return;
    }
}

static ew_err read_typed(const Ew__OnnxTensor *t, const char *what, struct ew_arena *keep,
                         struct ew_tensor *out)
{
    const size_t have = typed_count(t, out->dtype);
    char shape[EW_SHAPE_TEXT];
    EW_CHECK((int64_t)have == ew_tensor_count(out), EW_ERR_FORMAT,
             "tensor %s is %s of %s, but has %zu values", what, ew_shape_text(&out->shape, shape),
             ew_dtype_name(out->dtype), have);
    out->data = ew_arena_alloc(keep, ew_tensor_bytes(out));
    EW_CHECK(out->data, EW_ERR_MEMORY, "tensor %s: no memory for %zu bytes", what,
             ew_tensor_bytes(out));
    if (have)
        copy_typed(t, out);
    return EW_OK;
}

/* ---- Bytes ---- */

/* Copies small data; records large data, which stays in the file's arena. */
static ew_err keep_or_note(struct ew_onnx_file *f, void *data, struct ew_arena *keep,
                           struct ew_tensor *out)
{
    const size_t bytes = ew_tensor_bytes(out);
    if (bytes < SMALL) {
        out->data = ew_arena_alloc(keep, bytes);
        EW_CHECK(out->data, EW_ERR_MEMORY, "no memory for %zu bytes", bytes);
        if (bytes)
            memcpy(out->data, data, bytes);
        return EW_OK;
    }
    EW_TRY(ew_grow((void **)&f->spans, &f->cap_spans, f->n_spans + 1, sizeof(*f->spans)));
    f->spans[f->n_spans++] = (struct ew_onnx_span){.start = data, .bytes = bytes};
    out->data = data;
    return EW_OK;
}

/* Normalises bools to 0 and 1. */
static void tidy_bools(struct ew_tensor *t)
{
    uint8_t *v = t->data;
    for (int64_t i = 0; t->dtype == EW_BOOL && i < ew_tensor_count(t); i++)
        v[i] = v[i] != 0;
}

static ew_err read_raw(struct ew_onnx_file *f, const Ew__OnnxTensor *t, const char *what,
                       struct ew_arena *keep, struct ew_tensor *out)
{
    char shape[EW_SHAPE_TEXT];
    EW_CHECK(t->raw_data.len == ew_tensor_bytes(out), EW_ERR_FORMAT,
             "tensor %s is %s of %s, but has %zu bytes", what, ew_shape_text(&out->shape, shape),
             ew_dtype_name(out->dtype), t->raw_data.len);
    return keep_or_note(f, t->raw_data.data, keep, out);
}

/* ---- External files ---- */

struct external {
    const char *location;
    int64_t offset, length; /* length -1: not given */
};

static ew_err parse_external(const Ew__OnnxTensor *t, const char *what, struct external *out)
{
    *out = (struct external){.length = -1};
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = ew_onnx_text(t->external_data[i]->key);
        const char *value = ew_onnx_text(t->external_data[i]->value);
        int64_t *number = NULL;
        if (strcmp(key, "location") == 0)
            out->location = value;
        else if (strcmp(key, "offset") == 0)
            number = &out->offset;
        else if (strcmp(key, "length") == 0)
            number = &out->length;
        EW_CHECK(!number || (ew_num_int(value, number) && *number >= 0), EW_ERR_FORMAT,
                 "tensor %s: external data has %s \"%.40s\"", what, key, value);
    }
    EW_CHECK(out->location && *out->location, EW_ERR_FORMAT,
             "tensor %s: external data without a location", what);
    return EW_OK;
}

/* True for an absolute path and one with "..". */
static bool leaves_folder(const char *location)
{
    if (location[0] == '/')
        return true;
    for (const char *p = location; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
            return true;
    return false;
}

/* The resolved path of a file, which must be in the model's folder; free with free(). */
static ew_err locate(const struct ew_onnx_file *f, const char *location, const char *what,
                     char **out)
{
    EW_CHECK(!f->in_memory, EW_ERR_UNSUPPORTED,
             "tensor %s: external data %.100s, but the model is not a file", what, location);
    const char *slash = strrchr(f->path, '/');
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof(path), "%.*s/", slash ? (int)(slash - f->path) : 1,
                           slash ? f->path : ".");
    EW_CHECK(n > 0 && (size_t)n + strlen(location) < sizeof(path), EW_ERR_LIMIT,
             "tensor %s: the path of its external data is too long", what);
    EW_CLEANUP(ew_free_ptr) char *dir = realpath(path, NULL);
    memcpy(path + n, location, strlen(location) + 1);
    const bool leaves = leaves_folder(location);
    EW_CLEANUP(ew_free_ptr) char *real = leaves ? NULL : realpath(path, NULL);
    EW_CHECK(leaves || (dir && real), EW_ERR_NOT_FOUND, "tensor %s: external data %.200s: %s", what,
             location, strerror(errno));
    const size_t prefix = dir ? strlen(dir) : 0;
    EW_CHECK(!leaves && strncmp(real, dir, prefix) == 0 && (real[prefix] == '/' || prefix == 1),
             EW_ERR_FORMAT, "tensor %s: external data %.200s is outside the model's folder", what,
             location);
    *out = real;
    real = NULL;
    return EW_OK;
}

static ew_err read_at(int fd, int64_t offset, char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const ssize_t n = pread(fd, data + at, bytes - at, offset + (int64_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        EW_CHECK(n > 0, EW_ERR_IO, "%s", n < 0 ? strerror(errno) : "the file ended");
        at += (size_t)n;
    }
    return EW_OK;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* Opens the file; *fd is the caller's. */
static ew_err open_external(const struct ew_onnx_file *f, const char *location, const char *what,
                            int *fd, struct stat *st)
{
    EW_CLEANUP(ew_free_ptr) char *path = NULL;
    EW_TRY(locate(f, location, what, &path));
    EW_ASSERT(path);
    EW_TRY(ew_fail_in(ew_file_open(path, fd), "tensor %s: external data", what));
    EW_CHECK(fstat(*fd, st) == 0, EW_ERR_IO, "tensor %s: external data %.200s: %s", what, location,
             strerror(errno));
    return EW_OK;
}

static ew_err read_range(struct ew_onnx_file *f, const struct external *x, const char *what,
                         struct ew_tensor *out)
{
    EW_CLEANUP(close_fd) int fd = -1;
    struct stat st;
    EW_TRY(open_external(f, x->location, what, &fd, &st));
    const size_t bytes = ew_tensor_bytes(out);
    EW_CHECK(x->offset <= st.st_size && bytes <= (size_t)(st.st_size - x->offset), EW_ERR_FORMAT,
             "tensor %s: external data %.200s has %lld bytes, %zu at %lld are needed", what,
             x->location, (long long)st.st_size, bytes, (long long)x->offset);
    out->data = ew_arena_alloc(&f->arena, bytes);
    EW_CHECK(out->data, EW_ERR_MEMORY, "tensor %s: no memory for %zu bytes", what, bytes);
    const ew_err e = read_at(fd, x->offset, out->data, bytes);
    return ew_fail_in(e, "tensor %s: external data %.200s", what, x->location);
}

/* Finds or inserts the entry of `key`; *fresh: inserted. */
static ew_err enter(struct ew_onnx_file *f, const char *key, bool *fresh, int *out)
{
    EW_CHECK(key, EW_ERR_MEMORY, "no memory for external data");
    *out = ew_names_find(&f->externs, key);
    *fresh = *out < 0;
    if (!*fresh)
        return EW_OK;
    EW_TRY(ew_grow((void **)&f->extern_list, &f->cap_externs, f->n_externs + 1,
                   sizeof(*f->extern_list)));
    f->extern_list[f->n_externs] = (struct ew_onnx_extern){0};
    *out = f->n_externs++;
    return ew_names_add(&f->externs, key, *out);
}

/* The entry of a location's file, by device and inode, so that "w", "./w" and a link to it are one
 * file. */
static ew_err find_file(struct ew_onnx_file *f, const char *location, const char *what, int *out)
{
    bool fresh = false;
    int at;
    EW_TRY(enter(f, ew_arena_printf(&f->arena, "@%s", location), &fresh, &at));
    if (fresh) {
        EW_CLEANUP(close_fd) int fd = -1;
        struct stat st;
        int file;
        EW_TRY(open_external(f, location, what, &fd, &st));
        EW_TRY(enter(f,
                     ew_arena_printf(&f->arena, "=%llx:%llx", (unsigned long long)st.st_dev,
                                     (unsigned long long)st.st_ino),
                     &fresh, &file));
        if (fresh)
            f->extern_list[file].left = st.st_size;
        f->extern_list[at].file = file;
    }
    *out = f->extern_list[at].file;
    return EW_OK;
}

/* Reads the tensor's range; tensors with equal ranges share the data.  All distinct ranges together
 * must fit the file, so that a crafted model cannot make it be read a million times. */
static ew_err read_external(struct ew_onnx_file *f, const Ew__OnnxTensor *t, const char *what,
                            struct ew_arena *keep, struct ew_tensor *out)
{
    struct external x;
    EW_TRY(parse_external(t, what, &x));
    const size_t bytes = ew_tensor_bytes(out);
    char shape[EW_SHAPE_TEXT];
    EW_CHECK(x.length < 0 || (size_t)x.length == bytes, EW_ERR_FORMAT,
             "tensor %s is %s of %s, but its external data has length %lld", what,
             ew_shape_text(&out->shape, shape), ew_dtype_name(out->dtype), (long long)x.length);
    int range = 0, file = 0;
    bool new_range = false;
    EW_TRY(find_file(f, x.location, what, &file));
    EW_TRY(enter(f, ew_arena_printf(&f->arena, "%lld %zu %d", (long long)x.offset, bytes, file),
                 &new_range, &range));
    if (!new_range) {
        out->data = f->extern_list[range].data;
        return bytes < SMALL ? keep_or_note(f, out->data, keep, out) : EW_OK;
    }
    EW_CHECK(f->extern_list[file].left >= (int64_t)bytes, EW_ERR_FORMAT,
             "tensor %s: more is taken from external data %.200s than it has", what, x.location);
    EW_CHECK(bytes <= MAX_EXTERNAL - f->external_bytes, EW_ERR_LIMIT,
             "tensor %s: more than %zu GiB of external data", what, MAX_EXTERNAL >> 30);
    EW_TRY(read_range(f, &x, what, out));
    f->extern_list[range].data = out->data;
    f->extern_list[file].left -= (int64_t)bytes;
    f->external_bytes += bytes;
    return keep_or_note(f, out->data, keep, out);
}

ew_err ew_onnx_tensor(struct ew_onnx_file *f, const Ew__OnnxTensor *t, const char *what,
                      struct ew_arena *keep, struct ew_tensor *out)
{
    EW_CHECK(ew_dtype_from_onnx(t->data_type, &out->dtype), EW_ERR_UNSUPPORTED,
             "tensor %s has elements of type %s (%d)", what, ew_onnx_dtype_text(t->data_type),
             t->data_type);
    EW_TRY(read_shape(t, what, &out->shape));
    const bool external = t->data_location == 1 || (t->n_external_data && !t->has_raw_data);
    if (external)
        EW_TRY(read_external(f, t, what, keep, out));
    else if (t->has_raw_data)
        EW_TRY(read_raw(f, t, what, keep, out));
    else
        EW_TRY(read_typed(t, what, keep, out));
    tidy_bools(out);
    return EW_OK;
}

/* ---- Writing ---- */

ew_err ew_onnx_put_tensor(struct ew_arena *a, const struct ew_tensor *t, const char *name,
                          Ew__OnnxTensor *out)
{
    ew__onnx_tensor__init(out);
    out->name = ew_arena_strdup(a, name);
    out->dims = ew_arena_array(a, (size_t)t->shape.rank, sizeof(*out->dims));
    EW_CHECK(out->name && out->dims, EW_ERR_MEMORY, "tensor %s: no memory", name);
    out->n_dims = (size_t)t->shape.rank;
    for (int i = 0; i < t->shape.rank; i++)
        out->dims[i] = t->shape.dim[i];
    out->has_data_type = true;
    out->data_type = ew_dtype_onnx(t->dtype);
    out->has_raw_data = true;
    out->raw_data = (ProtobufCBinaryData){ew_tensor_bytes(t), t->data};
    return EW_OK;
}
