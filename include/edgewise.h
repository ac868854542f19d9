/* SPDX-License-Identifier: Apache-2.0 */
/* Edgewise: train, shrink, compile, run and characterise convolutional networks on edge boards.
 *
 * Networks, ONNX and engines; edgewise_pixels.h, edgewise_data.h, edgewise_train.h,
 * edgewise_shrink.h, edgewise_federate.h, edgewise_bench.h, edgewise_results.h and
 * edgewise_device.h add frames in memory, data sets, training with evaluation and quantising,
 * pruning and widths, federated learning, times, what studies measured, and devices with sensors
 * and energy.
 *
 * Handles are opaque; every fallible function returns ew_err and leaves its
 * result in the last parameter; after a failure ew_error_message() has one line that says what and
 * where.  The library never prints, exits or aborts on what a file, a user or a device can cause.
 * NULL for a pointer that must be there is EW_ERR_ARG with the parameter's name; functions that
 * return no ew_err then return NULL, "", 0, -1 or nan and do nothing.  Numbers in texts and files
 * have points, whatever locale the program has set.
 *
 *   struct ew_engine *engine = NULL;
 *   struct ew_context *context = NULL;
 *   ew_err err = ew_engine_load("net.ewe", &engine);
 *   if (!err)
 *       err = ew_context_new(engine, 0, &context);
 *   if (!err)
 *       err = ew_context_read_image(context, 0, "cat.jpg");
 *   if (!err)
 *       err = ew_context_run(context);
 *   const float *scores = ew_context_output(context, 0, NULL);
 *   if (err)
 *       fprintf(stderr, "%s\n", ew_error_message());
 *   ew_context_free(context);
 *   ew_engine_free(engine);
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

/* Reads a network (opset up to 24, IR up to 13), with its external data from the same folder.  A
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

/* ---- Engines --------------------------------------------------------------------------------- */

/* A compiled network, from a file that is mapped and used as it is.  Nothing changes it after it
 * was loaded: any number of threads may use it at once.  It outlives its contexts. */
struct ew_engine;

/* A stream of runs on an engine, with activations and threads of its own and the engine's weights.
 * One thread at a time; several contexts run at the same time without waiting for each other. */
struct ew_context;

/* What an engine is compiled for.  Zero it, set `size` and whatever is wanted. */
struct ew_compile_opts {
    size_t size;                  /* sizeof(struct ew_compile_opts) */
    int64_t batch_min, batch_max; /* images at a time: 0: 1, and batch_min; at most 256 batches */
    int threads;                  /* of contexts that do not say; 0: one for each CPU */
    int tune; /* 1: kernels by measurement here, remembered in tune_cache; 0: by rules */
    const char *tune_cache; /* file; NULL: nothing is remembered */
    const char *precision;  /* "fp32", "int8", "auto"; NULL: "auto", as the network is */
    int compact; /* 1: leave out weights that kernels have packed: smaller, and only for machines
                  * with the same instruction set and release */
    /* Images: (pixel / 255 - mean) / std; std all 0: as the network says.  Shorter side `resize`,
     * then the centre; 0: as the network says, else the input's / 0.875, or as it is if of the
     * input's size; -1: just covering it. */
    double mean[4], std[4];
    int64_t resize;
    const char *const *classes; /* names; NULL: as the network says */
    int n_classes;
    int64_t memory_limit; /* bytes of a context at batch_min, weights included: kernels that pack
                           * less are taken, at a cost in time; 0: none.  Not with tune */
};

/* Compiles a network with its weights into the file at `path`; `opts` may be NULL.  The graph is
 * left as it is.  The same network, options and machine give the same bytes.  Fails where weights
 * are missing, where the batch cannot vary, where the limit cannot be met (EW_ERR_LIMIT says by how
 * much), and where the file cannot be written; then an old one
 * is still there.  One thread at a time for each graph. */
EW_API ew_err ew_engine_compile(struct ew_graph *g, const struct ew_compile_opts *opts,
                                const char *path);

/* Loads an engine.  A file that is damaged, cut off, not an engine, from a newer release or for
 * another architecture is refused; one for another instruction set has its weights packed again,
 * unless they were left out.  The file must not change while it is loaded.  The caller frees *out
 * with ew_engine_free, after its contexts.  Any thread. */
EW_API ew_err ew_engine_load(const char *path, struct ew_engine **out);
EW_API void ew_engine_free(struct ew_engine *e); /* NULL is fine */

/* Texts live as long as the engine. */
struct ew_engine_info {
    size_t size; /* sizeof(struct ew_engine_info), set before the call */
    const char *name, *program, *arch, *isa, *precision;
    int64_t batch_min, batch_max, threads;
    int64_t params, macs, flops, cdl; /* of the network as it was, at batch 1 */
    int64_t file_bytes;               /* all of the file */
    int64_t packed_bytes;             /* weights that runs read */
    int64_t activation_bytes;         /* of a context, at batch_max */
    int n_inputs, n_outputs, n_classes;
    int repacked; /* 1: the weights were packed again for this machine */
};

/* Fails on a wrong size.  Any thread. */
EW_API ew_err ew_engine_info(const struct ew_engine *e, struct ew_engine_info *out);

/* An input or output; dims[0] is the batch where it may vary, as of batch_min. */
struct ew_port {
    const char *name;
    const char *dtype; /* "float32", ... */
    int rank;
    int64_t dims[8];
    int channels_last; /* 1: an image as [N, H, W, C]; 0: as the network was given it */
};

/* EW_ERR_ARG where there is no port i.  Any thread. */
EW_API ew_err ew_engine_input(const struct ew_engine *e, int i, struct ew_port *out);
EW_API ew_err ew_engine_output(const struct ew_engine *e, int i, struct ew_port *out);

/* The name of class i, "" where there is none; lives as long as the engine.  Any thread. */
EW_API const char *ew_engine_class(const struct ew_engine *e, int i);

/* A context at batch_min; `threads` counts the caller, 0: as the engine says.  It takes the memory
 * of activations and starts threads: EW_ERR_MEMORY, EW_ERR_LIMIT.  The caller frees *out with
 * ew_context_free.  Any thread. */
EW_API ew_err ew_context_new(const struct ew_engine *e, int threads, struct ew_context **out);
EW_API void ew_context_free(struct ew_context *c); /* NULL is fine */

/* Changes the batch within the engine's range; nothing is compiled again, and the first time of a
 * batch takes a few milliseconds.  Inputs must be written anew.  EW_ERR_ARG outside the range. */
EW_API ew_err ew_context_set_batch(struct ew_context *c, int64_t batch);

/* Memory of input i (to be written before a run) and of output i (to be read after it), both of the
 * present batch, row-major; *bytes, if not NULL, gets its size.  NULL where there is no such one.
 * Valid until the batch changes; the context owns it. */
EW_API void *ew_context_input(struct ew_context *c, int i, size_t *bytes);
EW_API const void *ew_context_output(const struct ew_context *c, int i, size_t *bytes);

/* Decodes a PNG or JPEG file into image `index` of the batch of the first input, preprocessed as
 * the engine says.  Fails where it is no image, the input takes none or is not normalised. */
EW_API ew_err ew_context_read_image(struct ew_context *c, int64_t index, const char *path);

/* Runs the network once.  Nothing is allocated. */
EW_API ew_err ew_context_run(struct ew_context *c);

/* The same in two halves.  Where the device runs by itself (a GPU) start hands the inputs over, has
 * them copied, run and the outputs copied back, and returns at once; on the CPU it computes all of
 * it.  Wait returns when the outputs are there.  Between the two nobody touches inputs and outputs,
 * and every other call but ew_context_free fails with EW_ERR_ARG.  Runs of several contexts overlap
 * on the device: start them all, then wait for each. */
EW_API ew_err ew_context_start(struct ew_context *c);
EW_API ew_err ew_context_wait(struct ew_context *c);

/* One step of a profile; texts live as long as the context. */
struct ew_step_time {
    const char *name, *op, *kernel;
    double us;    /* median of the runs */
    double flops; /* arithmetic of one run */
};

/* Runs the network `runs` times and tells where the time goes: up to `max` steps, in order; *n is
 * their number, which may be more.  EW_ERR_MEMORY. */
EW_API ew_err ew_context_profile(struct ew_context *c, int runs, struct ew_step_time *steps,
                                 int max, int *n);

#ifdef __cplusplus
}
#endif

#endif
