/* SPDX-License-Identifier: Apache-2.0 */
/* Backends: the devices that run networks.  A backend owns memory, offers kernels for operators and
 * runs lists of them.  The rest of the program uses devices through this file only.  What a backend
 * implements is in backend_type.h; docs/adding-a-backend.md walks through it.
 *
 *   open -> offer (kernels of each node) -> memory -> load (a list of commands, once)
 *        -> write inputs, run, read outputs (each time) -> unload -> close
 *
 * Not thread-safe: one thread at a time uses a backend, unless a function says otherwise. */
#ifndef EW_BACKEND_BACKEND_H
#define EW_BACKEND_BACKEND_H

#include "base/pool.h"
#include "graph/op.h"

struct ew_backend; /* an open device */
struct ew_memory;  /* a block of its memory */
struct ew_program; /* a list of commands that it has loaded */
struct ew_optimizer;

/* ---- Devices --------------------------------------------------------------------------------- */

struct ew_backend_opts {
    const char *device; /* "cpu", "cuda:0", "NAME:ARGUMENTS"; NULL: the environment variable
                         * EW_DEVICE, else "cpu" */
    int threads;        /* host threads; 0: one for each CPU */
    bool reference;     /* run only the reference implementations of operators */
};

/* Fails with EW_ERR_USAGE for an unknown backend (the message lists the known ones), and with
 * EW_ERR_UNSUPPORTED where this build or machine lacks the device (the message says why). */
ew_err ew_backend_open(const struct ew_backend_opts *o, struct ew_backend **out);
void ew_backend_close(struct ew_backend *be); /* NULL is fine */

/* Graph fusions for training that the device has kernels for (compress/). */
enum ew_fused {
    EW_FUSED_NORM_ACT = 1 << 0,  /* batch norm, activation */
    EW_FUSED_CONV_RELU = 1 << 1, /* convolution, relu */
    EW_FUSED_SINK_ACT = 1 << 2,  /* move an activation behind the max pool that reads it */
    EW_FUSED_NORM_ADD = 1 << 3,  /* batch norm, addition; with NORM_ACT also a ReLU behind them */
};

#define EW_IDENTITY_CHARS 256

/* What passes a device wants over graphs for inference, after those for all devices. */
struct ew_device_passes {
    bool lowers_pow2; /* lower int8 networks with power-of-two scales to operators that shift
                       * (op/dpu.h) */
    /* Multiply-accumulates that take as long as a few kernel launches: parallel convolutions are
     * joined into one where that adds at most so many; 0: never join. */
    int64_t launch_macs;
    /* Bytes of an image that a core keeps in its cache: depthwise convolutions with larger values
     * around them are fused with their neighbours; 0: never fuse. */
    int64_t cache_bytes;
};

/* Properties of a device.  Strings are never NULL and live as long as the backend. */
struct ew_device_info {
    const char *backend; /* "cpu" */
    const char *device;  /* name for ew_backend_open: "cpu", "cuda:0" */
    const char *name;    /* "Intel(R) Xeon(R) Platinum 8488C" */
    const char *target;  /* instruction set or architecture of packed weights: "avx512", "cuda
                          * sm_90", "reference" */
    const char *kernels; /* hash of the kernels' source code */
    int threads;         /* host threads that its kernels use */
    size_t memory_bytes; /* memory of the device; 0: unknown */
    /* Kernels access host memory: addresses are ordinary pointers, and weights are read from the
     * graph without a copy. */
    bool shares_host;
    unsigned fused; /* enum ew_fused */
    bool emulated;  /* simulated on the host; times come from a model of the device */
    struct ew_device_passes passes;
    /* Storage type of float32 activations and their gradients: plans give kernels tensors of this
     * type.  Weights, their gradients and the training loss stay float32. */
    enum ew_dtype storage;
    /* Machine balance: multiply-accumulates in the time of one byte of memory traffic.  Training
     * plans then weigh what to recompute by its traffic; 0: by rules for caches. */
    double macs_per_byte;
    bool updates_last; /* run all optimiser updates together at the end of a step */
    /* backend, name, target and kernels joined: devices with equal identity run the same kernels in
     * about the same time.  Prefix of the keys of the tuner's cache. */
    char identity[EW_IDENTITY_CHARS];
    /* What measurements are labelled with: the target, and of a card also its name. */
    char label[EW_IDENTITY_CHARS];
};

const struct ew_device_info *ew_backend_info(const struct ew_backend *be);

/* The host threads of the backend, which others may use between runs; NULL: it has none. */
struct ew_pool *ew_backend_pool(const struct ew_backend *be);

/* Peak throughput, measured by the call (a fraction of a second); 0: unknown. */
struct ew_peaks {
    double flops;   /* float32 operations a second, all threads */
    double bytes_s; /* memory bandwidth, bytes a second */
};

ew_err ew_backend_peaks(struct ew_backend *be, struct ew_peaks *out);

/* ---- Memory ----------------------------------------------------------------------------------
 * Writes, fills, runs and reads of one backend take effect in the order of the calls. */

/* Contents are undefined.  Pages that are never touched may take no physical memory. */
ew_err ew_backend_alloc(struct ew_backend *be, size_t bytes, struct ew_memory **out);
void ew_backend_free(struct ew_memory *m); /* NULL is fine */
size_t ew_backend_bytes(const struct ew_memory *m);

/* Host memory that is fast to copy from and to (pinned, where the device supports it), aligned for
 * kernels.  Must be freed before the backend is closed. */
ew_err ew_backend_host_alloc(struct ew_backend *be, size_t bytes, void **out);
void ew_backend_host_free(struct ew_backend *be, void *p); /* NULL is fine */

/* Copies into the block.  `from` may be reused on return; if it is memory of ew_backend_host_alloc,
 * only after the next sync. */
ew_err ew_backend_write(struct ew_memory *m, size_t offset, const void *from, size_t bytes);
/* Copies out of the block, after all work that was started before.  If `to` is memory of
 * ew_backend_host_alloc, the data is there only after the next sync. */
ew_err ew_backend_read(struct ew_memory *m, size_t offset, void *to, size_t bytes);
ew_err ew_backend_fill(struct ew_memory *m, size_t offset, int byte, size_t bytes);
/* Write and read n float32 values that the block holds as info.storage. */
ew_err ew_backend_write_floats(struct ew_memory *m, size_t offset, const float *from, size_t n);
ew_err ew_backend_read_floats(struct ew_memory *m, size_t offset, float *to, size_t n);

/* The address for kernels of this backend (ew_tensor.data and the pointers of calls).  The host
 * must not dereference it unless info.shares_host is set. */
void *ew_backend_address(struct ew_memory *m, size_t offset);

/* ---- Kernels --------------------------------------------------------------------------------- */

enum ew_phase { EW_PHASE_FORWARD, EW_PHASE_BACKWARD, EW_PHASE_UPDATE };

struct ew_kernel {
    const char *name; /* shown in profiles: "reference", "implicit gemm" */
    /* Executes the kernel, or launches it on the device: called at each run, or once where the
     * device records a program and replays it (backend_type.h). */
    ew_err (*run)(const struct ew_call *c);
    size_t scratch; /* bytes, contents undefined at each run */
    size_t state;   /* bytes of c->state: host memory, kept from run to run */
    size_t packed;  /* bytes of c->packed: weights in the kernel's layout, see `pack` */
    unsigned packs; /* bit i: `run` reads in[i] only from c->packed */
    unsigned roles; /* roles that it supports in fused groups: bits that the backend defines
                     * (group.h) */
    bool fresh;     /* backward: supports c->fresh, so gradients need not be cleared before it */
    bool in_place;  /* backward: din[0] may alias dout[0] if it is fresh; forward: out[0] may alias
                     * the residual in[3] */
    /* Batch norm in training, split for statistics over several devices (SyncBatchNorm): `reduce`
     * writes statistics to c->aux, the caller may then combine them with those of other ranks, and
     * `apply` finishes.  Forward, aux is [2][channels]: mean, 1 / std.  Backward, two more rows
     * follow: the reductions of the gradient, divided by the rows of this call.  NULL: `run` cannot
     * be split. */
    ew_err (*reduce)(const struct ew_call *c);
    ew_err (*apply)(const struct ew_call *c);
    /* Fills c->state; called once, when weights and memory are bound.  NULL: nothing to do. */
    ew_err (*prepare)(const struct ew_call *c);
    /* Fills all of c->packed: after prepare, and again when weights have changed outside of
     * training.  Runs only read it; plans share it and engine files store it.  So it holds no
     * pointers and depends on weights, attributes and the device's target alone: at another batch
     * size the kernel of the same name and `packed` size packs the same bytes. */
    ew_err (*pack)(const struct ew_call *c);
    /* The same in pieces, so that weights can be freed while they are packed: packs piece *next
     * (from 0), sets *next to the following piece, or to -1 after the last, and returns how many
     * leading bytes of in[1] no later piece reads.  NULL: only as a whole. */
    size_t (*pack_piece)(const struct ew_call *c, int64_t *next);
};

#define EW_OFFERS 6

/* The node for which kernels are asked.  Weights and constants have data in host memory, which an
 * offer may inspect; activations have shapes but no memory yet. */
struct ew_kernel_query {
    const struct ew_backend *be;
    const struct ew_op *op;
    enum ew_phase phase;
    const struct ew_call *c;
};

/* The kernels that support the query, the one that heuristics prefer first; *n = 0: none, and the
 * plan runs the node on the host. */
ew_err ew_backend_offer(const struct ew_kernel_query *query, struct ew_kernel out[EW_OFFERS],
                        int *n);

/* A kernel family of the CPU: optimised kernels for some operators.  `offer` writes up to EW_OFFERS
 * - 1 kernels, best first, and returns how many; 0: none supports the query. */
struct ew_kernel_family {
    const struct ew_op *const *ops; /* NULL-terminated */
    int (*offer)(const struct ew_kernel_query *query, struct ew_kernel *out);
};

#define EW_FAMILY_OPS(...) ((const struct ew_op *const[]){__VA_ARGS__, NULL})

/* Replaces nodes of a training graph by fused operators of this device, such as `conv_pool`.  Runs
 * after the passes that info.fused asks for, at the batch size of the plan.  Nodes and values keep
 * their numbers. */
ew_err ew_backend_rewrite(const struct ew_backend *be, struct ew_graph *g);

/* Kernels that plans need beside those of operators. */
enum ew_task {
    EW_TASK_CLEAR,   /* out[0] becomes zero */
    EW_TASK_SEED,    /* out[0], the gradient of the loss, becomes 1 / *(const int *)attr */
    EW_TASK_UPDATE,  /* optimiser update of one parameter; op/optimizer.h has the call */
    EW_TASK_ROUND,   /* weights become dequantised values of their integers (op/quant_weights.h) */
    EW_TASK_RESTORE, /* the float32 weights again, with the updates since then */
};

/* False: the device has no kernel for it, and the host does it. */
bool ew_backend_task(const struct ew_backend *be, enum ew_task task, const struct ew_optimizer *o,
                     struct ew_kernel *out);

/* Dynamic loss scaling of float16 training.  The device adapts the scale; checkpoints store it. */
struct ew_loss_scale {
    double scale; /* 0: no loss scaling */
    int64_t good; /* steps since the scale changed */
};
ew_err ew_backend_loss_scale(struct ew_backend *be, struct ew_loss_scale *out);
ew_err ew_backend_set_loss_scale(struct ew_backend *be, const struct ew_loss_scale *v);

/* ---- Running --------------------------------------------------------------------------------- */

/* One kernel and its call.  Both must outlive the program that they are loaded into. */
struct ew_command {
    const struct ew_kernel *kernel;
    const struct ew_call *call;
    int node; /* of the graph, for seeds; -1: none */
    enum ew_phase phase;
    /* Its result is an output of the graph, or other programs may read it. */
    bool is_read_later;
};

/* Parameters that change from run to run, beside the contents of memory.  Kernels that run on the
 * host read them through their calls (ew_call.attr of updates, ew_call.seed).  A device that
 * records programs takes them from here at each run: they must not be baked into the recording. */
struct ew_run_params {
    const struct ew_optimizer *optimizer; /* rate, step count, moments; NULL: nothing is updated */
    uint64_t key;                         /* a node's seed is ew_run_seed(key, node) */
};

/* The finaliser of splitmix64: each input bit affects all output bits. */
static inline uint64_t ew_run_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t ew_run_seed(uint64_t key, int node)
{
    return ew_run_mix(key ^ (uint64_t)node);
}

/* Makes a program of n commands, which run in this order, each after the ones before it.  Memory
 * must be bound and kernels prepared.  The list is copied. */
ew_err ew_backend_load(struct ew_backend *be, const struct ew_command *commands, int n,
                       struct ew_program **out);
void ew_backend_unload(struct ew_program *p); /* NULL is fine */

/* Runs the program; may return before the device is done.  A later failure is reported by the next
 * read or sync. */
ew_err ew_backend_run(struct ew_program *p, const struct ew_run_params *params);
/* Runs it, waits, and writes the duration of every command in nanoseconds. */
ew_err ew_backend_run_timed(struct ew_program *p, const struct ew_run_params *params, int64_t *ns);
/* Waits for all work that was started. */
ew_err ew_backend_sync(struct ew_backend *be);

/* Asynchronous runs.  An event is a point in the order of started work, as cudaEvent_t is in a
 * stream; a device has EW_EVENTS of them, which are reused. */
#define EW_EVENTS 4
/* True if runs are asynchronous, so that events can be recorded. */
bool ew_backend_is_async(const struct ew_backend *be);
ew_err ew_backend_event_record(struct ew_backend *be, int event);
/* Waits until all work that was started before the event was recorded is done: data read into
 * memory of ew_backend_host_alloc is then there, and memory that was written from may be reused. */
ew_err ew_backend_event_wait(struct ew_backend *be, int event);
/* Device time between two events, both of which have been waited for. */
ew_err ew_backend_event_elapsed(struct ew_backend *be, int from, int to, int64_t *ns);

/* ---- What there is --------------------------------------------------------------------------- */

/* A device that can be opened, or a backend that has no device on this machine. */
struct ew_device_found {
    const char *backend, *help; /* "cuda", "NVIDIA GPUs" */
    char device[64];            /* name for ew_backend_open; empty: no device, and `why` has the
                                 * reason */
    char name[128];
    char target[64], kernels[64];  /* as in ew_device_info */
    char label[EW_IDENTITY_CHARS]; /* of ew_backend_probe only */
    bool emulated;
    struct ew_device_passes passes; /* of ew_backend_probe only */
    char why[256];
    size_t memory_bytes; /* 0: unknown */
};

/* Device i of this build and machine, in a fixed order, the CPU first; false beyond the last. */
bool ew_backend_find(int i, struct ew_device_found *out);
/* The device of that name, which may be NULL as in ew_backend_opts.  Fails as ew_backend_open
 * does. */
ew_err ew_backend_probe(const char *device, struct ew_device_found *out);

#endif
