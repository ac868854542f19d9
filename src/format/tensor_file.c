/* SPDX-License-Identifier: Apache-2.0 */
/* One tensor in a file. */
#include "format/tensor_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "format/onnx_file.h"

#define MAX_FILE ((size_t)1 << 36) /* memory follows the file's size, so this only stops folly */

/* ---- Reading ---- */

static ew_err read_pb(struct ew_onnx_file *f, const void *bytes, size_t size, struct ew_arena *a,
                      struct ew_tensor *out, const char **name)
{
    ProtobufCMessage *m;
    EW_TRY(ew_onnx_unpack(f, bytes, size, &ew__onnx_tensor__descriptor, &m));
    const Ew__OnnxTensor *t = (const Ew__OnnxTensor *)(const void *)m;
    struct ew_tensor in_file;
    EW_TRY(ew_onnx_tensor(f, t, ew_onnx_text(t->name), &f->arena, &in_file));
    *out = in_file;
    out->data = ew_arena_alloc(a, ew_tensor_bytes(out));
    char *copy = ew_arena_strdup(a, ew_onnx_text(t->name));
    EW_CHECK(out->data && copy, EW_ERR_MEMORY, "no memory for %zu bytes", ew_tensor_bytes(out));
    memcpy(out->data, in_file.data, ew_tensor_bytes(out));
    if (name)
        *name = copy;
    return EW_OK;
}

ew_err ew_tensor_file_read(const char *path, struct ew_arena *a, struct ew_tensor *out,
                           const char **name)
{
    EW_CLEANUP(ew_free_ptr) char *bytes = NULL;
    size_t size;
    EW_TRY(ew_file_read(path, MAX_FILE, &bytes, &size));
    if (name)
        *name = "";
    if (size > 0 && (unsigned char)bytes[0] == 0x93)
        return ew_npy_read(bytes, size, path, a, out);
    struct ew_onnx_file f;
    ew_onnx_file_init(&f, path, false);
    const ew_err e = read_pb(&f, bytes, size, a, out, name);
    const ew_err named = ew_fail_in(e, "%s", path);
    ew_onnx_file_fini(&f);
    return named;
}

/* ---- Writing ---- */

static ew_err write_npy(FILE *f, const char *path, const struct ew_tensor *t)
{
    char header[EW_NPY_HEADER];
    size_t size;
    EW_TRY(ew_npy_header(t, path, header, &size));
    const size_t bytes = ew_tensor_bytes(t);
    EW_CHECK(fwrite(header, 1, size, f) == size && fwrite(t->data, 1, bytes, f) == bytes, EW_ERR_IO,
             "%s: %s", path, strerror(errno));
    return EW_OK;
}

static ew_err write_pb(FILE *f, const char *path, const struct ew_tensor *t, const char *name)
{
    struct ew_arena arena EW_CLEANUP(ew_arena_fini);
    ew_arena_init(&arena);
    Ew__OnnxTensor m;
    EW_TRY(ew_onnx_put_tensor(&arena, t, name, &m));
    const size_t size = ew__onnx_tensor__get_packed_size(&m);
    EW_CHECK(size <= INT32_MAX, EW_ERR_LIMIT, "%s: a .pb file cannot have %zu bytes", path, size);
    EW_CLEANUP(ew_free_ptr) uint8_t *bytes = malloc(size + 1);
    EW_CHECK(bytes, EW_ERR_MEMORY, "%s: no memory for %zu bytes", path, size);
    ew__onnx_tensor__pack(&m, bytes);
    EW_CHECK(fwrite(bytes, 1, size, f) == size, EW_ERR_IO, "%s: %s", path, strerror(errno));
    return EW_OK;
}

ew_err ew_tensor_file_check(const char *path)
{
    EW_CHECK(ew_ends_with(path, ".npy") || ew_ends_with(path, ".pb"), EW_ERR_ARG,
             "%s: tensors are written as .npy or .pb", path);
    return EW_OK;
}

ew_err ew_tensor_file_write(const char *path, const struct ew_tensor *t, const char *name)
{
    EW_TRY(ew_tensor_file_check(path));
    const bool npy = ew_ends_with(path, ".npy");
    struct ew_file_out o;
    EW_TRY(ew_file_out_open(path, &o));
    const ew_err e = npy ? write_npy(o.f, path, t) : write_pb(o.f, path, t, name);
    if (e == EW_OK)
        return ew_file_out_commit(&o);
    ew_file_out_abort(&o);
    return e;
}
