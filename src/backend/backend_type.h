/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend implements.  Included by backends only; their users include backend.h.
 *
 * A backend defines structs that begin with the ones below, and a table of functions, which is
 * listed in backend.c or passed to ew_backend_register.
 *
 * Recording.  The plan loads a list of commands once and runs it many times with the same addresses
 * and shapes.  So a device may capture the first run (a CUDA graph) and replay it afterwards;
 * kernels' `run` is then called during capture only.  Only two things change between runs: the
 * contents of memory, and ew_run_params.  The backend copies the latter to device memory that its
 * kernels read, or patches the recording; a node's seed, ew_run_seed(key, command.node), can be
 * computed on the device.
 *
 * Host steps.  Where `offer` or `task` returns no kernel, the plan runs the node on the CPU: it
 * reads the node's inputs from the device and writes its outputs back.  Such a step ends one
 * program and begins the next.  A backend that offers no kernels at all is complete. */
#ifndef EW_BACKEND_TYPE_H
#define EW_BACKEND_TYPE_H

#include "backend/backend.h"

struct ew_kernel_candidate;
struct ew_fuse_query;
struct ew_group_list;

struct ew_backend_type {
    const char *name; /* the part of a device's name before ':' */
    const char *help; /* one line: what it runs on */

    /* Fills *out for device i of this backend: `device`, or for i = 0 `why` there is none; false
     * beyond the last.  Keeps nothing open. */
    bool (*find)(int i, struct ew_device_found *out);
    /* `arguments`: the part of the device's name after "NAME:", or "". */
    ew_err (*open)(const char *arguments, const struct ew_backend_opts *o, struct ew_backend **out);
    void (*close)(struct ew_backend *be);
    struct ew_pool *(*pool)(const struct ew_backend *be);         /* NULL: no threads */
    ew_err (*peaks)(struct ew_backend *be, struct ew_peaks *out); /* NULL: unknown */

    /* Memory.  Blocks are aligned to EW_ALIGN at least.  `write` returns when `from` may be reused:
     * it copies synchronously or through a pinned staging buffer. */
    ew_err (*alloc)(struct ew_backend *be, size_t bytes, struct ew_memory **out);
    void (*free)(struct ew_memory *m);
    ew_err (*write)(struct ew_memory *m, size_t offset, const void *from, size_t bytes);
    ew_err (*read)(struct ew_memory *m, size_t offset, void *to, size_t bytes);
    ew_err (*fill)(struct ew_memory *m, size_t offset, int byte, size_t bytes);
    /* Only for devices whose info.storage is not float32. */
    ew_err (*write_floats)(struct ew_memory *m, size_t offset, const float *from, size_t n);
    ew_err (*read_floats)(struct ew_memory *m, size_t offset, float *to, size_t n);
    /* Pinned host memory: writes from it may return before the copy is done.  NULL: ordinary
     * memory. */
    ew_err (*host_alloc)(struct ew_backend *be, size_t bytes, void **out);
    void (*host_free)(struct ew_backend *be, void *p);
    void *(*address)(struct ew_memory *m, size_t offset);

    /* Writes up to EW_OFFERS kernels, best first; returns how many. */
    int (*offer)(const struct ew_kernel_query *query, struct ew_kernel *out);
    /* For ew_backend_candidates (candidates.h); NULL: unknown. */
    int (*candidates)(const struct ew_kernel_query *query, struct ew_kernel_candidate *out,
                      int most);
    ew_err (*rewrite)(const struct ew_backend *be, struct ew_graph *g); /* NULL: no rewrites */
    /* Finds fused groups (group.h) whose roles its kernels support; NULL: no fusion. */
    ew_err (*fuse)(const struct ew_fuse_query *query, struct ew_group_list *out);
    bool (*task)(const struct ew_backend *be, enum ew_task task, const struct ew_optimizer *o,
                 struct ew_kernel *out);

    ew_err (*load)(struct ew_backend *be, const struct ew_command *commands, int n,
                   struct ew_program **out);
    void (*unload)(struct ew_program *p);
    ew_err (*run)(struct ew_program *p, const struct ew_run_params *params, int64_t *ns);
    /* Reads the loss scale, or with `set` writes it; NULL: no loss scaling. */
    ew_err (*loss_scale)(struct ew_backend *be, struct ew_loss_scale *v, bool set);
    ew_err (*sync)(struct ew_backend *be); /* NULL: `run` is synchronous */
    /* Events: all three, or none where `run` is synchronous. */
    ew_err (*event_record)(struct ew_backend *be, int event);
    ew_err (*event_wait)(struct ew_backend *be, int event);
    ew_err (*event_elapsed)(struct ew_backend *be, int from, int to, int64_t *ns);
};

/* The first members of the backend's own structs; the backend fills them. */
struct ew_backend {
    const struct ew_backend_type *type;
    struct ew_device_info info;
};

struct ew_memory {
    struct ew_backend *be;
    size_t bytes;
};

struct ew_program {
    struct ew_backend *be;
};

/* Fills be->info.identity from the other strings of be->info. */
void ew_backend_identify(struct ew_backend *be);

/* Adds a backend, once in the program and before any device is opened.  The table is borrowed for
 * good.  Fails if the name is taken or the list of backends is full. */
ew_err ew_backend_register(const struct ew_backend_type *type);

#endif
