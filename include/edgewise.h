/* SPDX-License-Identifier: Apache-2.0 */
/* Edgewise: train, shrink, compile, run and characterise convolutional networks on edge boards.
 *
 * The one public header.  Handles are opaque; every fallible function returns ew_err and leaves its
 * result in the last parameter; after a failure ew_error_message() has one line that says what and
 * where.  The library never prints, exits or aborts on what a file, a user or a device can cause.
 */
#ifndef EDGEWISE_H
#define EDGEWISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EW_VERSION "0.1.0"

#if defined(__GNUC__)
#define EW_API __attribute__((visibility("default")))
#else
#define EW_API
#endif

/* ---- Errors ---------------------------------------------------------------------------------- */

/* clang-format off */
#define EW_ERR_MAP(X)                                                                              \
    X(OK,          "done")                                                                         \
    X(ARG,         "invalid argument")                                                             \
    X(USAGE,       "wrong usage")                                                                  \
    X(IO,          "input or output failed")                                                       \
    X(FORMAT,      "malformed file")                                                               \
    X(SHAPE,       "shapes do not fit")                                                            \
    X(TYPE,        "element types do not fit")                                                     \
    X(UNSUPPORTED, "not supported")                                                                \
    X(MEMORY,      "out of memory")                                                                \
    X(LIMIT,       "over a limit")                                                                 \
    X(NOT_FOUND,   "not found")                                                                    \
    X(SKIPPED,     "some work was skipped")                                                        \
    X(INTERNAL,    "internal error")
/* clang-format on */

typedef enum ew_err {
#define EW_ERR_ENUM(name, text) EW_ERR_##name,
    EW_ERR_MAP(EW_ERR_ENUM)
#undef EW_ERR_ENUM
        EW_ERR_COUNT,
    EW_OK = EW_ERR_OK
} ew_err;

/* The text of a code.  Never fails; any thread. */
EW_API const char *ew_error_text(ew_err code);

/* The message of the calling thread's last failure; "" before the first.  Valid until that thread's
 * next failure. */
EW_API const char *ew_error_message(void);

/* "0.1.0"; any thread. */
EW_API const char *ew_version(void);

/* ---- Graph ----------------------------------------------------------------------------------- */

/* A network: values and nodes.  One thread at a time. */
struct ew_graph;

/* Releases a graph and all that it owns; NULL is fine. */
EW_API void ew_graph_free(struct ew_graph *g);

/* ---- Models ---------------------------------------------------------------------------------- */

/* What a network of the zoo is built for.  Zero it, set `size` and whatever is wanted. */
struct ew_model_opts {
    size_t size;                     /* sizeof(struct ew_model_opts) */
    int64_t height, width, channels; /* of the input; 0: the network's own */
    int64_t classes;                 /* 0: the network's own */
    int64_t batch;                   /* 0: 1; it can be changed later */
    double scale;                    /* every filter count becomes trunc(count x scale); 0: 1 */
    const int32_t *filters; /* filter counts in the order of ew_model_filters; NULL: by scale */
    int n_filters;
};

/* The zoo: names in a fixed order; NULL outside [0, count).  Any thread. */
EW_API int ew_model_count(void);
EW_API const char *ew_model_name(int i);

/* Builds a network (opts NULL: as it is published).  Parameters have shapes and no memory yet.
 * Fails on an unknown name, options out of range, an input too small and a layer that is left
 * without filters.  The caller frees *out with ew_graph_free.  Any thread. */
EW_API ew_err ew_model_build(const char *name, const struct ew_model_opts *opts,
                             struct ew_graph **out);

/* The filter counts that these options lead to, one for each free width in forward order; *n is
 * their number.  Fails as ew_model_build does, and where they are more than `max` (256 is enough).
 */
EW_API ew_err ew_model_filters(const char *name, const struct ew_model_opts *opts, int32_t *filters,
                               int max, int *n);

/* Gives the parameters that have no values yet memory and random first values, by the rules of the
 * network called `name`.  The same seed gives the same values. */
EW_API ew_err ew_model_init(const char *name, uint64_t seed, struct ew_graph *g);

/* ---- ONNX ------------------------------------------------------------------------------------ */

/* What is known of an input beside what the file says. */
struct ew_onnx_input {
    const char *name;  /* as in the file; NULL or empty: the input at this position */
    const char *dtype; /* "float32", ...; NULL: as in the file */
    int rank;          /* -1: nothing is known of this one */
    const int64_t *dims;
    const void *data; /* NULL, or the value: it becomes a constant where a shape depends on it */
};

struct ew_onnx_opts {
    const struct ew_onnx_input *inputs; /* borrowed during the call */
    int n_inputs;
};

/* Reads a network (opset up to 21, IR up to 10), with its external data from the same folder.  A
 * batch that the file leaves open is 1 and may be changed later; other open dimensions must be
 * given.  `opts` may be NULL.  The message of a failure names the file and the tensor or node. */
EW_API ew_err ew_onnx_load(const char *path, const struct ew_onnx_opts *opts,
                           struct ew_graph **out);

struct ew_onnx_save_opts {
    int64_t batch;     /* 0: left open, as far as the network allows it */
    int64_t max_bytes; /* a larger file gets its weights in a second one beside it, PATH.data; 0: 2
                          GiB */
};

/* Writes a network with its weights: opset 13, or the first that has all its operators.  Inputs of
 * our own networks, which are channels-last, are channels-first in the file.  `opts` may be NULL.
 * A reader sees the old file or the whole new one. */
EW_API ew_err ew_onnx_save(const struct ew_graph *g, const char *path,
                           const struct ew_onnx_save_opts *opts);

#ifdef __cplusplus
}
#endif

#endif
