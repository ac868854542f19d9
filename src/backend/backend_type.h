/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend implements.  Included by backends, and by nobody who only uses them.
 *
 * A backend defines structs of its own that begin with the ones below, fills a table of functions,
 * and adds it: cpu/ is listed in backend.c, others call ew_backend_register or are modules.
 *
 * Recording.  The plan loads a list of commands once and runs it many times with the same addresses
 * and shapes, so a device may record it (capture it into a graph of launches) the first time and
 * repeat that afterwards: kernels' `run` is then called while recording only.  What differs between
 * runs comes with `run`: contents of memory that was written before, and ew_run_params.  The
 * backend copies those to a place in its memory that its kernels read (or patches what it has
 * recorded); a node's seed is ew_run_seed(key, command.node), which can be computed there too.
 *
 * Host steps.  Where `offer` or `task` has nothing, the plan runs the node on the CPU: it reads
 * what the node reads, and writes back what it writes.  Such a step ends one program and begins the
 * next.  A backend that offers nothing at all is complete. */
#ifndef EW_BACKEND_TYPE_H
#define EW_BACKEND_TYPE_H

#include "backend/backend.h"

struct ew_kernel_candidate;
struct ew_fuse_query;
struct ew_group_list;

struct ew_backend_type {
    const char *name; /* before the ':' of a device */
    const char *help; /* one line: what it runs on */

    /* Fills *out for device i of this kind: `device`, or `why` there is none (for i 0 only); false
     * beyond the last.  Does not open anything for long. */
    bool (*find)(int i, struct ew_device_found *out);
    /* `arguments`: what follows "NAME:", else "". */
    ew_err (*open)(const char *arguments, const struct ew_backend_opts *o, struct ew_backend **out);
    void (*close)(struct ew_backend *be);
    struct ew_pool *(*pool)(const struct ew_backend *be);         /* NULL: it has none */
    ew_err (*peaks)(struct ew_backend *be, struct ew_peaks *out); /* NULL: not known */

    /* Memory.  Blocks begin at multiples of EW_ALIGN at least.  write: synchronous for the caller,
     * or through pinned memory of the backend's own. */
    ew_err (*alloc)(struct ew_backend *be, size_t bytes, struct ew_memory **out);
    void (*free)(struct ew_memory *m);
    ew_err (*write)(struct ew_memory *m, size_t offset, const void *from, size_t bytes);
    ew_err (*read)(struct ew_memory *m, size_t offset, void *to, size_t bytes);
    ew_err (*fill)(struct ew_memory *m, size_t offset, int byte, size_t bytes);
    /* Only of devices whose info.storage is not float32. */
    ew_err (*write_floats)(struct ew_memory *m, size_t offset, const float *from, size_t n);
    ew_err (*read_floats)(struct ew_memory *m, size_t offset, float *to, size_t n);
    /* Memory of the host that the device copies from by itself: writes from it may return before
     * they are done.  NULL: plain memory. */
    ew_err (*host_alloc)(struct ew_backend *be, size_t bytes, void **out);
    void (*host_free)(struct ew_backend *be, void *p);
    void *(*address)(struct ew_memory *m, size_t offset);

    /* Kernels, best first; returns how many, up to EW_OFFERS. */
    int (*offer)(const struct ew_kernel_query *query, struct ew_kernel *out);
    /* For ew_backend_candidates (candidates.h); NULL: it does not say. */
    int (*candidates)(const struct ew_kernel_query *query, struct ew_kernel_candidate *out,
                      int most);
    ew_err (*rewrite)(const struct ew_backend *be,
                      struct ew_graph *g); /* NULL: it changes nothing */
    /* Fused groups (group.h), whose roles its kernels can play; NULL: it fuses nothing. */
    ew_err (*fuse)(const struct ew_fuse_query *query, struct ew_group_list *out);
    bool (*task)(const struct ew_backend *be, enum ew_task task, const struct ew_optimizer *o,
                 struct ew_kernel *out);

    ew_err (*load)(struct ew_backend *be, const struct ew_command *commands, int n,
                   struct ew_program **out);
    void (*unload)(struct ew_program *p);
    ew_err (*run)(struct ew_program *p, const struct ew_run_params *params, int64_t *ns);
    /* Reads the loss scale, or sets it; NULL: losses are not scaled. */
    ew_err (*loss_scale)(struct ew_backend *be, struct ew_loss_scale *v, bool set);
    ew_err (*sync)(struct ew_backend *be); /* NULL: run returns when all is done */
    /* Moments, all or none of the three; NULL: nothing runs ahead. */
    ew_err (*mark)(struct ew_backend *be, int moment);
    ew_err (*reach)(struct ew_backend *be, int moment);
    ew_err (*between)(struct ew_backend *be, int from, int to, int64_t *ns);
};

/* These stand first in the backend's own structs, and the backend fills them. */
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

/* Joins the texts of be->info into its identity. */
void ew_backend_identify(struct ew_backend *be);

/* Adds a kind of devices to those that can be opened, once for the whole program and before any is;
 * the table must stay.  Fails where the name is taken or there is no place left. */
ew_err ew_backend_register(const struct ew_backend_type *type);

#endif
