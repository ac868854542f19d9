/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA module without CUDA: memory is the host's, copies are made, launches only record their
 * names.  It shows what plans launch on a card without having one. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/kernels.h"

#define SAID 8192

static char said[SAID];

/* Names recorded since the last call, each followed by a space. */
__attribute__((visibility("default"))) const char *ew_cuda_stub_said(void);
const char *ew_cuda_stub_said(void)
{
    static char last[SAID];
    memcpy(last, said, sizeof(last));
    said[0] = 0;
    return last;
}

static int say(const char *name)
{
    const size_t at = strlen(said), n = strlen(name);
    if (at + n + 2 <= sizeof(said)) {
        memcpy(said + at, name, n);
        memcpy(said + at + n, " ", 2);
    }
    return 0;
}

#define STUB(name, parameters)                                                                     \
    static int stub_##name parameters                                                              \
    {                                                                                              \
        return say(#name);                                                                         \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
EW_CUDA_MAP(STUB)
#pragma GCC diagnostic pop

static int count(int *n)
{
    *n = 1;
    return 0;
}

static int info(int device, struct ew_cuda_device *out)
{
    (void)device;
    *out = (struct ew_cuda_device){
        .name = "stub", .major = 9, .processors = 132, .memory = (size_t)4 << 30};
    return 0;
}

static int quiet(void)
{
    return 0;
}

static int wait_queue(struct ew_cuda_queue *q)
{
    (void)q;
    return quiet();
}

static int use(int device)
{
    (void)device;
    return quiet();
}

static int take(size_t bytes, void **out)
{
    *out = aligned_alloc(256, (bytes + 256) / 256 * 256);
    if (*out)
        memset(*out, 0, bytes);
    return *out ? 0 : 2;
}

static int give(void *p)
{
    free(p);
    return 0;
}

static int copy(struct ew_cuda_queue *q, void *to, const void *from, size_t bytes, int kind)
{
    (void)q;
    memcpy(to, from, bytes);
    return kind == EW_CUDA_ON_DEVICE ? say("copy") : 0;
}

static int fill(struct ew_cuda_queue *q, void *p, int byte, size_t bytes)
{
    (void)q;
    memset(p, byte, bytes);
    return 0;
}

static int open_queue(int deterministic, size_t workspace, size_t planned,
                      struct ew_cuda_queue **out)
{
    (void)workspace;
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return 2;
    (*out)->processors = 132;
    (*out)->deterministic = deterministic;
    (*out)->planned_bytes = planned;
    return 0;
}

static int close_queue(struct ew_cuda_queue *q)
{
    free(q);
    return 0;
}

static int new_event(int timing, void **out)
{
    (void)timing;
    *out = NULL;
    return 0;
}

static int use_event(void *event)
{
    (void)event;
    return 0;
}

static int record(struct ew_cuda_queue *q, void *event)
{
    (void)q;
    return use_event(event);
}

static int end_capture(struct ew_cuda_queue *q, void **graph)
{
    *graph = q;
    return say("capture_end");
}

/* conv_find: no algorithm that needs planned workspace. */
static int find(struct ew_cuda_queue *q, int pass, const struct ew_cuda_conv *p, int measure,
                struct ew_cuda_algo *out, int *n)
{
    (void)q, (void)pass, (void)p, (void)measure, (void)out;
    *n = 0;
    return 0;
}

static const char *text(int code)
{
    return code == 2 ? "out of memory" : "the stub's";
}

const struct ew_cuda_api *ew_cuda_module(void)
{
    static struct ew_cuda_api api = {.version = EW_CUDA_MODULE_VERSION,
                                     .error_text = text,
#define ENTRY(name, parameters) .name = stub_##name,
                                     EW_CUDA_MAP(ENTRY)
#undef ENTRY
    };
    api.device_count = count;
    api.device_info = info;
    api.device_use = use;
    api.alloc = api.alloc_host = take;
    api.release = api.release_host = give;
    api.copy = copy;
    api.fill = fill;
    api.queue_open = open_queue;
    api.queue_close = close_queue;
    api.queue_wait = wait_queue;
    api.event_new = new_event;
    api.event_free = api.event_wait = use_event;
    api.event_record = record;
    api.capture_end = end_capture;
    api.graph_free = use_event;
    api.conv_find = find;
    return &api;
}
