/* SPDX-License-Identifier: Apache-2.0 */
/* Backends: the devices that run networks.  A backend has memory of its own, kernels, and a way to
 * run lists of them; everything else in the program knows a device by this file alone.  How one is
 * made is backend_type.h's; docs/adding-a-backend.md walks through it.
 *
 *   open -> offer (kernels of each node) -> memory -> load (a list of commands, once)
 *        -> write inputs, run, read outputs (each time) -> unload -> close
 *
 * One thread at a time, unless a function says otherwise. */
#ifndef EW_BACKEND_BACKEND_H
#define EW_BACKEND_BACKEND_H

#include "base/pool.h"
#include "graph/op.h"

struct ew_backend; /* a device that was opened */
struct ew_memory;  /* a block of its memory */
struct ew_program; /* a list of commands that it has loaded */
struct ew_optimizer;

/* ---- Devices --------------------------------------------------------------------------------- */

struct ew_backend_opts {
    const char *device; /* "cpu", "cuda:0", "NAME:ARGUMENTS"; NULL: what EW_DEVICE names, and
                         * without it the CPU */
    int threads;        /* of the host; 0: as many as there are CPUs */
    bool reference;     /* the operators' references only: slow, obvious */
};

/* Fails with EW_ERR_USAGE where there is no such backend (the message names those that there are),
 * and with EW_ERR_UNSUPPORTED, saying why, where this build or this machine has no such device. */
ew_err ew_backend_open(const struct ew_backend_opts *o, struct ew_backend **out);
void ew_backend_close(struct ew_backend *be); /* NULL is fine */

/* Nodes of training graphs that become one, where a device has kernels for the result. */
enum ew_fused {
    EW_FUSED_NORM_ACT = 1 << 0,  /* batch norm, activation */
    EW_FUSED_CONV_RELU = 1 << 1, /* convolution, relu */
    EW_FUSED_SINK_ACT = 1 << 2,  /* an activation before a max pool goes after it */
    EW_FUSED_NORM_ADD = 1 << 3,  /* batch norm, addition; with NORM_ACT a relu after it too */
};

#define EW_IDENTITY_CHARS 256

/* What a device is.  Texts are never NULL and live as long as the backend. */
struct ew_device_info {
    const char *backend; /* "cpu" */
    const char *device;  /* what opens it: "cpu", "cuda:0" */
    const char *name;    /* "Intel(R) Xeon(R) Platinum 8488C" */
    const char *target;  /* what packed weights are for: "avx512", "cuda sm_90", "reference" */
    const char *kernels; /* hash of the kernels' sources: two builds of the same have the same */
    int threads;         /* of the host that its kernels use */
    size_t memory_bytes; /* of the device; 0: not known */
    /* Kernels read and write any memory of the host: addresses are ordinary pointers, and weights
     * are used where the graph has them. */
    bool shares_host;
    unsigned fused;   /* enum ew_fused */
    bool lowers_pow2; /* int8 networks of power-of-two scales become operators that shift (op/dpu.h)
                       */
    bool emulated;    /* it runs on the host; how long the device would take, a model says */
    /* What float32 activations and their gradients are stored as: plans give kernels tensors of
     * this type for them.  Weights, their gradients and the training loss stay float32. */
    enum ew_dtype storage;
    /* Multiply-accumulates in the time of a few launches: convolutions side by side become one that
     * has up to so many more. */
    int64_t launch_macs;
    bool updates_last; /* parameters are best updated one after the other, at the end of a step */
    /* backend, name, target and kernels: two devices with the same one run the same kernels in
     * about the same time.  Keys of measurements (the tuner's cache) begin with it. */
    char identity[EW_IDENTITY_CHARS];
};

const struct ew_device_info *ew_backend_info(const struct ew_backend *be);

/* Threads of the host that are idle between runs, for others to use then; NULL: the caller alone.
 */
struct ew_pool *ew_backend_pool(const struct ew_backend *be);

/* What the device does at best, measured now (a fraction of a second); 0: not known. */
struct ew_peaks {
    double flops;   /* float32 a second, all threads */
    double bytes_s; /* of its memory */
};

ew_err ew_backend_peaks(struct ew_backend *be, struct ew_peaks *out);

/* ---- Memory ----------------------------------------------------------------------------------
 * Writes, fills, runs and reads of one backend take effect in the order of the calls. */

/* Contents are undefined.  Pages that nothing touches may take no memory. */
ew_err ew_backend_alloc(struct ew_backend *be, size_t bytes, struct ew_memory **out);
void ew_backend_free(struct ew_memory *m); /* NULL is fine */
size_t ew_backend_bytes(const struct ew_memory *m);

/* Memory of the host that is fast to copy from (pinned, where the device has such), aligned as
 * kernels want it.  Freed before the backend is closed. */
ew_err ew_backend_host_alloc(struct ew_backend *be, size_t bytes, void **out);
void ew_backend_host_free(struct ew_backend *be, void *p); /* NULL is fine */

/* Copies into the block; `from` may be used again as soon as it returns, but memory of
 * ew_backend_host_alloc only after the next sync. */
ew_err ew_backend_write(struct ew_memory *m, size_t offset, const void *from, size_t bytes);
/* Copies out of it, after all that was started before; memory of ew_backend_host_alloc has it only
 * after the next sync. */
ew_err ew_backend_read(struct ew_memory *m, size_t offset, void *to, size_t bytes);
ew_err ew_backend_fill(struct ew_memory *m, size_t offset, int byte, size_t bytes);
/* The same as write and read of n float32, which lie in the block as info.storage. */
ew_err ew_backend_write_floats(struct ew_memory *m, size_t offset, const float *from, size_t n);
ew_err ew_backend_read_floats(struct ew_memory *m, size_t offset, float *to, size_t n);

/* The place as kernels of this backend see it, for ew_tensor.data and pointers of calls.  Only they
 * may look there. */
void *ew_backend_address(struct ew_memory *m, size_t offset);

/* ---- Kernels --------------------------------------------------------------------------------- */

enum ew_phase { EW_PHASE_FORWARD, EW_PHASE_BACKWARD, EW_PHASE_UPDATE };

struct ew_kernel {
    const char *name; /* shown in profiles: "reference", "conv gemm" */
    /* Does it, or starts it on the device: called once for each run, or once to record what later
     * runs repeat (backend_type.h). */
    ew_err (*run)(const struct ew_call *c);
    size_t scratch; /* bytes, contents undefined at each run */
    size_t state;   /* bytes in c->state, which is the host's memory; kept with the step */
    size_t packed;  /* bytes in c->packed: its own copy of weights, see `pack` */
    unsigned packs; /* bit i: `run` knows in[i] only by what is packed of it */
    unsigned roles; /* that it can play in fused groups: the backend's own bits (group.h) */
    bool fresh;     /* backward: it heeds c->fresh, so gradients need not be cleared before it */
    bool in_place;  /* backward: din[0] may be dout[0] where it is fresh; forward: out[0] may be the
                       residual in[3] */
    /* Batch norms in training: `run` in two halves, between which others may change what the first
     * has left in c->aux.  Forward that is mean and 1 / std, a number a channel each; backward,
     * after those, two numbers a channel that are means over the rows of this call and sums over
     * rows in all but the factor.  NULL: only as a whole. */
    ew_err (*take)(const struct ew_call *c);
    ew_err (*use)(const struct ew_call *c);
    /* Fills c->state; called once, when weights and memory are there.  NULL: nothing to prepare. */
    ew_err (*prepare)(const struct ew_call *c);
    /* Fills all of c->packed, after prepare, and again when weights have changed outside of
     * training.  Runs only read it: plans share it, and engine files hold it.  So it has no
     * pointers, and it follows from weights, attributes and the device's target; at another batch
     * the kernel of this name and size packs the same bytes. */
    ew_err (*pack)(const struct ew_call *c);
    /* The same a piece at a time, for weights that nobody needs afterwards: packs piece *next,
     * counted from 0, moves *next on, to -1 where that was the last, and returns how many bytes of
     * in[1] no later piece reads.  NULL: as a whole only. */
    size_t (*pack_piece)(const struct ew_call *c, int64_t *next);
};

#define EW_OFFERS 6

/* What a kernel is wanted for.  Weights and constants have the host's data, which an offer may
 * look at; activations have shapes but no memory yet. */
struct ew_kernel_query {
    const struct ew_backend *be;
    const struct ew_op *op;
    enum ew_phase phase;
    const struct ew_call *c;
};

/* The kernels that can do it, the one that rules prefer first; *n 0: the device has none, and the
 * plan runs the node on the host. */
ew_err ew_backend_offer(const struct ew_kernel_query *query, struct ew_kernel out[EW_OFFERS],
                        int *n);

/* A family of the CPU: fast kernels for a few operators.  `offer` writes up to EW_OFFERS - 1
 * kernels, best first, and returns how many; 0 where none fits. */
struct ew_kernel_family {
    const struct ew_op *const *ops; /* NULL-terminated */
    int (*offer)(const struct ew_kernel_query *query, struct ew_kernel *out);
};

#define EW_FAMILY_OPS(...) ((const struct ew_op *const[]){__VA_ARGS__, NULL})

/* A training graph with nodes made into others that this device has kernels for, such as
 * `conv_pool`: after the passes that `fused` asks for, at the batch that is run.  Nodes and values
 * keep their numbers. */
ew_err ew_backend_rewrite(const struct ew_backend *be, struct ew_graph *g);

/* What plans need beside operators. */
enum ew_task {
    EW_TASK_CLEAR,   /* out[0] becomes zero */
    EW_TASK_SEED,    /* out[0], the gradient of the loss, becomes 1 / *(int *)attr */
    EW_TASK_UPDATE,  /* a parameter's update: op/optimizer.h says what its call is */
    EW_TASK_ROUND,   /* weights become what their integers stand for (op/quant_weights.h) */
    EW_TASK_RESTORE, /* and float32 again, with what has changed since */
};

/* False where the device has none, and the host does it. */
bool ew_backend_task(const struct ew_backend *be, enum ew_task task, const struct ew_optimizer *o,
                     struct ew_kernel *out);

/* Loss scaling of float16 training.  A device that does it changes the scale by itself; checkpoints
 * keep it. */
struct ew_loss_scale {
    double scale; /* 0: the device scales no losses */
    int64_t good; /* steps since it changed */
};
ew_err ew_backend_loss_scale(struct ew_backend *be, struct ew_loss_scale *out);
ew_err ew_backend_set_loss_scale(struct ew_backend *be, const struct ew_loss_scale *v);

/* ---- Running --------------------------------------------------------------------------------- */

/* One kernel and what it works on.  Both live as long as the program that they are loaded into. */
struct ew_command {
    const struct ew_kernel *kernel;
    const struct ew_call *call;
    int node; /* of the graph, for seeds; -1: none */
    enum ew_phase phase;
    /* What it makes is an output of the graph, or other programs may read it. */
    bool is_read_later;
};

/* What changes from run to run beside the contents of memory.  The calls point to the same values
 * in the host's memory (ew_call.attr of updates, ew_call.seed), which kernels that run on the host
 * read.  A device that records a program takes them from here at each run: they must not be part
 * of what is recorded. */
struct ew_run_params {
    const struct ew_optimizer *optimizer; /* rate, step count, moments; NULL: nothing is updated */
    uint64_t key;                         /* a node's seed is ew_run_seed(key, node) */
};

/* splitmix64: spreads its argument over all bits. */
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

/* Makes a program of n commands, which run in this order, each seeing what the ones before it have
 * written.  Memory must be bound and kernels prepared.  The list is copied. */
ew_err ew_backend_load(struct ew_backend *be, const struct ew_command *commands, int n,
                       struct ew_program **out);
void ew_backend_unload(struct ew_program *p); /* NULL is fine */

/* Runs all of it; may return before the device is done.  A failure that shows later is reported by
 * the next read or sync. */
ew_err ew_backend_run(struct ew_program *p, const struct ew_run_params *params);
/* The same with the duration of every command in nanoseconds, when all are done. */
ew_err ew_backend_run_timed(struct ew_program *p, const struct ew_run_params *params, int64_t *ns);
/* Waits for everything that was started. */
ew_err ew_backend_sync(struct ew_backend *be);

/* Runs that are not waited for.  A moment is a place in the order of what was started; a device has
 * EW_MOMENTS of them, which are marked again and again. */
#define EW_MOMENTS 4
/* True where runs return before the device is done, and moments can be marked. */
bool ew_backend_overlaps(const struct ew_backend *be);
ew_err ew_backend_mark(struct ew_backend *be, int moment);
/* Waits until all is done that was started before the mark: memory of ew_backend_host_alloc then
 * has what was read into it, and what was written from it may change. */
ew_err ew_backend_reach(struct ew_backend *be, int moment);
/* The device's time from one moment to a later one, both of which have been reached. */
ew_err ew_backend_between(struct ew_backend *be, int from, int to, int64_t *ns);

/* ---- What there is --------------------------------------------------------------------------- */

/* A device that could be opened, or a kind of which there is none here. */
struct ew_device_found {
    const char *backend, *help; /* "cuda", "NVIDIA GPUs" */
    char device[64];            /* what opens it; empty: there is none, and `why` says why */
    char name[128];
    char target[64], kernels[64]; /* as ew_device_info */
    bool lowers_pow2, emulated;
    char why[256];
    size_t memory_bytes; /* 0: not known */
};

/* Device i of all that this build and this machine have, in a fixed order, the CPU first; false
 * beyond the last. */
bool ew_backend_find(int i, struct ew_device_found *out);
/* The one that `device` opens, NULL as in ew_backend_opts.  Fails as ew_backend_open does. */
ew_err ew_backend_probe(const char *device, struct ew_device_found *out);

#endif
