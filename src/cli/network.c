/* SPDX-License-Identifier: Apache-2.0 */
/* The network that a command works on, from the zoo or from a file. */
#include "cli/network.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/checkpoint.h"
#include "format/engine_file.h"

static bool ends_in(const char *what, const char *end)
{
    const size_t n = strlen(what), k = strlen(end);
    return n > k && strcmp(what + n - k, end) == 0;
}

bool ew_network_is_file(const char *what)
{
    struct stat st;
    return strchr(what, '/') || ends_in(what, ".onnx") || ends_in(what, ".ckpt") ||
           ends_in(what, ".ewe") ||
           (stat(what, &st) == 0 && !S_ISDIR(st.st_mode)); /* folders are often named so */
}

static struct ew_model_opts model_opts(const struct ew_network_opts *o)
{
    return (struct ew_model_opts){.size = sizeof(struct ew_model_opts),
                                  .height = o->input.v[0],
                                  .width = o->input.n > 1 ? o->input.v[1] : o->input.v[0],
                                  .channels = o->input.n > 2 ? o->input.v[2] : 0,
                                  .classes = o->classes,
                                  .batch = o->batch,
                                  .scale = o->width};
}

static ew_err from_zoo(const char *name, const struct ew_network_opts *o, struct ew_graph **out)
{
    const struct ew_model_opts m = model_opts(o);
    return ew_model_build(name, &m, out);
}

ew_err ew_network_filters(const char *name, const struct ew_network_opts *o, int32_t *filters,
                          int max, int *n)
{
    const struct ew_model_opts m = model_opts(o);
    return ew_model_filters(name, &m, filters, max, n);
}

/* Files name their graphs "torch_jit", "main_graph" and the like: the file's own name says more. */
static ew_err name_after(const char *path, struct ew_graph *g)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    const int n = dot > base ? (int)(dot - base) : (int)strlen(base);
    const char *name = ew_arena_printf(&g->arena, "%.*s", n, base);
    EW_CHECK(name, EW_ERR_MEMORY, "%s: no memory", path);
    g->name = name;
    return EW_OK;
}

static ew_err from_onnx(const char *path, const struct ew_network_opts *o, struct ew_graph **out)
{
    /* A file's images are [N, C, H, W]. */
    const int64_t dims[] = {o->batch, o->input.v[2], o->input.v[0], o->input.v[1]};
    const struct ew_onnx_input input = {.rank = 4, .dims = dims};
    const struct ew_onnx_opts opts = {.inputs = &input, .n_inputs = o->input.n ? 1 : 0};
    return ew_onnx_load(path, &opts, out);
}

static ew_err from_checkpoint(const char *path, const struct ew_network_opts *o,
                              struct ew_graph **out)
{
    struct ew_checkpoint c;
    EW_CHECK(o->input.n == 0, EW_ERR_USAGE, "%s: --input is not for checkpoints", path);
    EW_TRY(ew_checkpoint_read(path, &c));
    *out = c.graph;
    c.graph = NULL;
    ew_checkpoint_fini(&c);
    return EW_OK;
}

/* A name that promises something else is not looked at as ONNX. */
static ew_err check_kind(const char *path, bool checkpoint)
{
    EW_CHECK(access(path, F_OK) == 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    EW_CHECK(!ends_in(path, ".ewe"), EW_ERR_FORMAT, "%s: is no engine", path);
    EW_CHECK(checkpoint || !ends_in(path, ".ckpt"), EW_ERR_FORMAT, "%s: is no checkpoint", path);
    return EW_OK;
}

/* A file has its own classes and widths. */
static ew_err from_file(const char *path, const struct ew_network_opts *o, struct ew_graph **out)
{
    EW_CHECK(o->classes == 0, EW_ERR_USAGE, "%s: --classes is for networks of the zoo", path);
    EW_CHECK(o->width >= 1 && o->width <= 1, EW_ERR_USAGE, "%s: --width is for networks of the zoo",
             path);
    EW_CHECK(o->input.n == 0 || o->input.n == 3, EW_ERR_USAGE,
             "%s: --input of a file needs all of HxWxC", path);
    EW_CHECK(!ew_engine_file_is(path), EW_ERR_USAGE,
             "%s: is an engine, which info, run and bench take", path);
    const bool checkpoint = ew_checkpoint_is(path);
    EW_TRY(check_kind(path, checkpoint));
    EW_TRY(checkpoint ? from_checkpoint(path, o, out) : from_onnx(path, o, out));
    ew_err e = checkpoint ? EW_OK : name_after(path, *out);
    if (e == EW_OK)
        e = ew_graph_set_batch(*out, o->batch);
    const struct ew_shape *s = (*out)->n_inputs ? &(*out)->values[(*out)->inputs[0]].t.shape : NULL;
    if (e == EW_OK && o->batch != 1 && s && s->rank && s->dim[0] != o->batch)
        e = ew_fail(EW_ERR_ARG, "its batch is fixed at %lld", (long long)s->dim[0]);
    if (e != EW_OK)
        ew_graph_free(*out);
    return e == EW_OK ? e : ew_fail_in(e, "%s", path);
}

ew_err ew_network_check_file(const char *path)
{
    return check_kind(path, ew_checkpoint_is(path));
}

ew_err ew_network_load(const char *what, const struct ew_network_opts *o, struct ew_graph **out)
{
    EW_CHECK(o->input.n <= 3, EW_ERR_USAGE, "--input: takes H, HxW or HxWxC, got %d numbers",
             (int)o->input.n);
    return ew_network_is_file(what) ? from_file(what, o, out) : from_zoo(what, o, out);
}
