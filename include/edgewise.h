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
 * result in the last parameter, NULL for a handle that could not be made; after a failure
 * ew_error_message() has one line that says what and where.  The library never prints, exits or
 * aborts on what a file, a user or a device can cause; what it has to say beside errors goes to the
 * program's log (ew_log_set).
 * NULL for a pointer that must be there is EW_ERR_ARG with the parameter's name; functions that
 * return no ew_err then return NULL, "", 0, -1 or nan and do nothing.  Numbers in texts and files
 * have points, whatever locale the program has set.
 *
 * Structs that begin with `size` may get more fields at their end in later releases.  A program
 * that sets `size` runs with a later library, where 0 in the new fields means what it meant before,
 * and with an earlier one, if it leaves fields that this one does not know at 0.
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
    X(MEMORY,      "out of memory, descriptors or processes")                                      \
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

/* ---- Log ------------------------------------------------------------------------------------- */

enum ew_log_level { EW_LOG_WARN, EW_LOG_INFO, EW_LOG_DEBUG };

struct ew_log_sink {
    /* Gets one line without its newline; may be called by several threads at once. */
    void (*write)(void *ctx, enum ew_log_level level, const char *text);
    void *ctx;
    enum ew_log_level level; /* most verbose level wanted */
};

/* Sends the library's warnings and remarks to `sink`, which is borrowed; NULL: to nobody, as in the
 * beginning.  One for the process; any thread. */
EW_API void ew_log_set(const struct ew_log_sink *sink);

/* ---- Graph ----------------------------------------------------------------------------------- */

/* A network: values and nodes.  One thread at a time. */
struct ew_graph;

/* Releases a graph and all that it owns; NULL is fine. */
EW_API void ew_graph_free(struct ew_graph *g);

/* ---- Models ---------------------------------------------------------------------------------- */

/* Options of ew_model_build.  Zero the struct, set `size` and the fields that you need. */
struct ew_model_opts {
    size_t size;                     /* sizeof(struct ew_model_opts) */
    int64_t height, width, channels; /* of the input; 0: the network's default */
    int64_t classes;                 /* 0: the network's default */
    int64_t batch;          /* 0: 1; can be changed later (the batch dimension is dynamic) */
    double scale;           /* every filter count becomes trunc(count x scale); 0: 1 */
    const int32_t *filters; /* filter counts, in the order of ew_model_filters; NULL: from
                             * `scale` */
    int n_filters;
};

/* Names of the zoo, in a fixed order; NULL outside [0, count).  Any thread. */
EW_API int ew_model_count(void);
EW_API const char *ew_model_name(int i);

/* Builds a network of the zoo (opts NULL: as published).  Parameters have shapes but no data yet.
 * Fails on an unknown name, options out of range, an input that is too small, or a layer left
 * without filters.  The caller frees *out with ew_graph_free.  Any thread. */
EW_API ew_err ew_model_build(const char *name, const struct ew_model_opts *opts,
                             struct ew_graph **out);

/* The filter counts that ew_model_build would use with these options, one for each free width in
 * forward order; *n is their number.  Fails as ew_model_build does, and where there are more than
 * `max` of them (256 is enough for the zoo). */
EW_API ew_err ew_model_filters(const char *name, const struct ew_model_opts *opts, int32_t *filters,
                               int max, int *n);

/* Allocates and randomly initialises the parameters that have no data yet, with the initialisers of
 * the network called `name`.  Same seed, same values. */
EW_API ew_err ew_model_init(const char *name, uint64_t seed, struct ew_graph *g);

/* ---- ONNX ------------------------------------------------------------------------------------ */

/* Overrides what the file says of one graph input. */
struct ew_onnx_input {
    const char *name;  /* name in the file; NULL or "": the input at this position */
    const char *dtype; /* "float32", ...; NULL: as in the file */
    int rank;          /* -1: shape as in the file */
    const int64_t *dims;
    const void *data; /* the input's value, or NULL; an input that shapes depend on becomes a
                       * constant */
};

/* Zero the struct, set `size` and the fields that you need. */
struct ew_onnx_opts {
    size_t size;                        /* sizeof(struct ew_onnx_opts) */
    const struct ew_onnx_input *inputs; /* borrowed during the call */
    int n_inputs;
};

/* Reads a network (opset up to 24, IR up to 13), with external data from the same folder.  A
 * symbolic batch dimension becomes 1 and stays dynamic; every other symbolic dimension must be
 * given in `opts`, which may be NULL.  The message of a failure names the file and the tensor or
 * node. */
EW_API ew_err ew_onnx_load(const char *path, const struct ew_onnx_opts *opts,
                           struct ew_graph **out);
/* The same from a file's contents in memory, which may be freed afterwards.  Refuses external data.
 */
EW_API ew_err ew_onnx_load_memory(const void *bytes, size_t n_bytes,
                                  const struct ew_onnx_opts *opts, struct ew_graph **out);

/* Zero the struct, set `size` and the fields that you need. */
struct ew_onnx_save_opts {
    size_t size;       /* sizeof(struct ew_onnx_save_opts) */
    int64_t batch;     /* 0: symbolic, if the network allows it */
    int64_t max_bytes; /* above this the weights go to an external-data file PATH.data; 0: 2 GiB */
};

/* Writes a network with its weights, at opset 13 or the first that has all its operators.  Inputs
 * that are channels-last in memory are written channels-first, as ONNX expects.  `opts` may be
 * NULL.  The file is replaced atomically. */
EW_API ew_err ew_onnx_save(const struct ew_graph *g, const char *path,
                           const struct ew_onnx_save_opts *opts);

/* ---- Engines --------------------------------------------------------------------------------- */

/* A compiled network, memory-mapped from its file.  Immutable once loaded, so any number of threads
 * may use it at once.  It must outlive its contexts. */
struct ew_engine;

/* An execution context: activations and threads of its own, weights shared through the engine.  One
 * thread at a time; several contexts run concurrently without locks between them. */
struct ew_context;

/* Options of ew_engine_compile.  Zero the struct, set `size` and the fields that you need. */
struct ew_compile_opts {
    size_t size;                  /* sizeof(struct ew_compile_opts) */
    int64_t batch_min, batch_max; /* range of batch sizes; 0: batch_min 1, batch_max = batch_min;
                                   * the range has at most 256 */
    int threads;                  /* default for contexts; 0: one for each CPU */
    int tune; /* 1: choose kernels by timing them on this machine, cached in tune_cache; 0: by
               * rules */
    const char *tune_cache; /* file; NULL: no cache */
    const char *precision;  /* "fp32", "int8" or "auto" (as the graph is); NULL: "auto" */
    int compact; /* 1: store only the packed weights: a smaller file, which loads only with the same
                  * instruction set and release */
    /* Preprocessing of images: resize so that the shorter side is `resize`, crop the centre, then
     * (pixel / 255 - mean) / std.  std all 0: the network's normalisation.  resize 0: the
     * network's; if it has none, the input's size / 0.875, or no resizing of images that have the
     * input's size; -1: the smallest size that covers the input. */
    double mean[4], std[4];
    int64_t resize;
    const char *const *classes; /* class names; NULL: the network's */
    int n_classes;
    int64_t memory_limit; /* bytes of a context at batch_min, weights included; 0: none.  To meet
                           * it, kernels that pack less are chosen, at a cost in time.  Not with
                           * `tune` */
};

/* Compiles a network with its weights into the file at `path`, which is replaced atomically; `opts`
 * may be NULL.  The graph is unchanged.  Deterministic: the same network, options and machine give
 * the same bytes.  Fails if weights are missing, the batch cannot vary, the memory limit cannot be
 * met (EW_ERR_LIMIT; the message says by how much) or the file cannot be written.  One thread at a
 * time for each graph. */
EW_API ew_err ew_engine_compile(struct ew_graph *g, const struct ew_compile_opts *opts,
                                const char *path);

/* Loads an engine.  Refuses a file that is damaged, truncated, not an engine, from a newer release
 * or for another architecture.  For another instruction set the weights are packed again, which a
 * compact engine cannot do.  The file must not change while it is loaded.  The caller frees *out
 * with ew_engine_free, after its contexts.  Any thread. */
EW_API ew_err ew_engine_load(const char *path, struct ew_engine **out);
/* The same from a file's contents in memory, which must be at a multiple of 64 (alignas(64) const
 * unsigned char[] embeds an engine in a program), stay as they are and outlive the engine. */
EW_API ew_err ew_engine_load_memory(const void *bytes, size_t n_bytes, struct ew_engine **out);
EW_API void ew_engine_free(struct ew_engine *e); /* NULL is fine */

/* Facts about an engine; strings live as long as it does. */
struct ew_engine_info {
    size_t size; /* sizeof(struct ew_engine_info), set before the call */
    const char *name, *program, *arch, *isa, *precision;
    int64_t batch_min, batch_max, threads;
    int64_t params, macs, flops, cdl; /* of the network before compilation, at batch 1 or at a
                                       * batch that the network fixes */
    int64_t file_bytes;               /* size of the file, or of its contents in memory */
    int64_t packed_bytes;             /* weights that inference reads */
    int64_t activation_bytes;         /* per context, at batch_max */
    int n_inputs, n_outputs, n_classes;
    int repacked; /* 1: weights were repacked for this machine's instruction set */
};

/* Fails on a wrong size.  Any thread. */
EW_API ew_err ew_engine_info(const struct ew_engine *e, struct ew_engine_info *out);

/* An input or output. */
struct ew_port {
    const char *name;
    const char *dtype; /* "float32", ... */
    int rank;
    int64_t dims[8];
    int channels_last; /* 1: an image as [N, H, W, C]; 0: the layout of the source network */
};

/* The shapes are those at batch_min.  EW_ERR_ARG if i is out of range.  Any thread. */
EW_API ew_err ew_engine_input(const struct ew_engine *e, int i, struct ew_port *out);
EW_API ew_err ew_engine_output(const struct ew_engine *e, int i, struct ew_port *out);

/* The name of class i, "" if it has none; lives as long as the engine.  Any thread. */
EW_API const char *ew_engine_class(const struct ew_engine *e, int i);

/* Creates a context at batch_min.  `threads` includes the calling thread; 0: the engine's default.
 * Allocates activations and starts threads: EW_ERR_MEMORY, EW_ERR_LIMIT.  The caller frees *out
 * with ew_context_free.  Any thread. */
EW_API ew_err ew_context_new(const struct ew_engine *e, int threads, struct ew_context **out);
EW_API void ew_context_free(struct ew_context *c); /* NULL is fine */

/* Changes the batch within the engine's range (EW_ERR_ARG outside it).  Nothing is recompiled; the
 * first use of a batch size takes a few milliseconds.  The inputs must be written anew. */
EW_API ew_err ew_context_set_batch(struct ew_context *c, int64_t batch);

/* Memory of input i (written before a run) and of output i (read after it) at the current batch,
 * row-major; *bytes, if not NULL, gets its size.  NULL if i is out of range.  Owned by the context,
 * valid until the batch changes. */
EW_API void *ew_context_input(struct ew_context *c, int i, size_t *bytes);
EW_API const void *ew_context_output(const struct ew_context *c, int i, size_t *bytes);

/* As ew_engine_input and ew_engine_output, with the shapes at the current batch.  EW_ERR_ARG if i
 * is out of range. */
EW_API ew_err ew_context_input_port(const struct ew_context *c, int i, struct ew_port *out);
EW_API ew_err ew_context_output_port(const struct ew_context *c, int i, struct ew_port *out);

/* Decodes a PNG or JPEG file into image `index` of the first input's batch, with the engine's
 * preprocessing.  Fails if the file is no image, the input takes no images or its normalisation is
 * not known. */
EW_API ew_err ew_context_read_image(struct ew_context *c, int64_t index, const char *path);

/* Runs the network once.  Allocates nothing. */
EW_API ew_err ew_context_run(struct ew_context *c);

/* Asynchronous ew_context_run.  On a GPU, start enqueues the copies of the inputs, the network and
 * the copies of the outputs, and returns at once; on the CPU it computes everything before it
 * returns.  Wait returns when the outputs are valid.  Between the two, inputs and outputs must not
 * be touched, and every other call but ew_context_free fails with EW_ERR_ARG.  Runs of several
 * contexts overlap on the device: start them all, then wait for each. */
EW_API ew_err ew_context_start(struct ew_context *c);
EW_API ew_err ew_context_wait(struct ew_context *c);

/* One step of a profile; strings live as long as the context. */
struct ew_step_time {
    const char *name, *op, *kernel;
    double us;    /* median over the runs */
    double flops; /* arithmetic of one run */
};

/* Runs the network `runs` times and gives the time of each step, in order: at most `max` of them;
 * *n is the number of steps, which may be larger.  EW_ERR_MEMORY. */
EW_API ew_err ew_context_profile(struct ew_context *c, int runs, struct ew_step_time *steps,
                                 int max, int *n);

#ifdef __cplusplus
}
#endif

#endif
