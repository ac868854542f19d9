/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an open CUDA device, shared by cuda_backend.c, cuda_memory.c and cuda_program.c. */
#ifndef EW_BACKEND_CUDA_CUDA_STATE_H
#define EW_BACKEND_CUDA_CUDA_STATE_H

#include "backend/cuda/cuda_backend.h"

#define EW_CUDA_SLOTS        4
#define EW_CUDA_SLOT_BYTES   ((size_t)4 << 20)
#define EW_CUDA_STAGES       8
#define EW_CUDA_DEVICE_CHARS 64

/* Pinned staging memory for transfers. */
struct ew_cuda_slot {
    void *host, *event;
    void *device; /* float32 values on the device before conversion; NULL: float32 storage */
};

/* Device memory for prefetched inputs of the next run. */
struct ew_cuda_stage {
    void *device, *event;
};

/* Pinned memory of ew_backend_host_alloc. */
struct ew_cuda_pinned {
    char *data;
    size_t bytes;
};

struct ew_cuda_state {
    struct ew_cuda cuda;
    struct ew_cuda_pinned *pinned;
    int n_pinned, cap_pinned;
    struct ew_cuda_cast_weights casts;
    struct ew_cuda_slot slots[EW_CUDA_SLOTS];
    int next;                    /* next slot */
    struct ew_cuda_queue *ahead; /* copy stream of prefetches; NULL: not opened */
    struct ew_cuda_stage stages[EW_CUDA_STAGES];
    int next_stage;
    bool running; /* runs were started since the last wait */
    void *events[EW_EVENTS];
    int last;  /* event that was recorded last */
    bool fast; /* sums need no fixed order (nondeterministic algorithms allowed) */
    struct ew_cuda_side_stream side;
    char name[128], target[32], device[EW_CUDA_DEVICE_CHARS];
};

/* cuda_memory.c: functions of struct ew_backend_type. */
ew_err ew_cuda_alloc(struct ew_backend *be, size_t bytes, struct ew_memory **out);
void ew_cuda_release(struct ew_memory *m);
ew_err ew_cuda_alloc_pinned(struct ew_backend *be, size_t bytes, void **out);
void ew_cuda_free_pinned(struct ew_backend *be, void *p);
ew_err ew_cuda_put(struct ew_memory *m, size_t offset, const void *from, size_t bytes);
ew_err ew_cuda_get(struct ew_memory *m, size_t offset, void *to, size_t bytes);
ew_err ew_cuda_put_floats(struct ew_memory *m, size_t offset, const float *from, size_t n);
ew_err ew_cuda_get_floats(struct ew_memory *m, size_t offset, float *to, size_t n);
ew_err ew_cuda_fill(struct ew_memory *m, size_t offset, int byte, size_t bytes);
void *ew_cuda_address(struct ew_memory *m, size_t offset);

/* cuda_program.c: functions of struct ew_backend_type. */
void ew_cuda_unload(struct ew_program *p);
ew_err ew_cuda_load(struct ew_backend *be, const struct ew_command *commands, int n,
                    struct ew_program **out);
ew_err ew_cuda_run(struct ew_program *p, const struct ew_run_params *params, int64_t *ns);
ew_err ew_cuda_loss_scale(struct ew_backend *b, struct ew_loss_scale *v, bool set);

#endif
