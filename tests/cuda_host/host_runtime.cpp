/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime: memory, streams, events, graphs.
 *
 * Nothing runs before it is waited for.  Then work runs in a random order that the streams, events
 * and edges of graphs allow.  Device memory is the heap's, filled with nan; copies from and to
 * pinned memory take place when the stream reaches them, others as a card makes them. */
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vector>

#include "host_block.h"
#include "host_faults.h"
#include "host_work.h"

using ew_host::any_below;

namespace
{

/* A mark in a stream that was recorded in an event. */
struct mark {
    bool reached = false;
    int64_t ns = 0;
};

struct node;

/* A piece of work of a stream; one of: */
struct piece {
    std::function<void()> work;
    std::shared_ptr<mark> reach, wait; /* an event's record; an event that is waited for */
};

/* A piece of work of a graph, and those before it. */
struct node {
    std::function<void()> work;
    std::vector<int> before;
};

struct recording;

} // namespace

struct ew_host_stream {
    std::deque<piece> pieces;
    std::shared_ptr<recording> into; /* captured into; NULL: not */
    std::vector<int> last;           /* capture: nodes that the next one follows */
};

struct ew_host_event {
    std::shared_ptr<mark> at;        /* NULL: not recorded */
    std::shared_ptr<recording> into; /* recorded during a capture, */
    std::vector<int> last;           /* behind these nodes */
};

struct ew_host_graph {
    std::vector<node> nodes;
};

struct ew_host_exec {
    std::shared_ptr<std::vector<node>> nodes;
};

namespace
{

struct recording {
    std::vector<node> nodes;
    cudaStream_t origin;
    std::vector<cudaStream_t> joined; /* streams that became part of it */
    bool broken = false;
};

std::recursive_mutex lock;
std::vector<cudaStream_t> streams;
std::map<char *, size_t> device_blocks, pinned_blocks;
size_t device_bytes;
thread_local cudaError_t last_error;
thread_local std::shared_ptr<recording> own_capture; /* of the calling thread */

cudaError_t fails(cudaError_t e)
{
    if (e)
        last_error = e;
    return e;
}

/* What may not be called by a thread that captures: the capture fails. */
bool disturbs()
{
    if (own_capture)
        own_capture->broken = true;
    return own_capture != NULL;
}

/* At the start of calls that may fail. */
#define MAY_FAIL(...)                                                                              \
    if (const cudaError_t fault = ew_host::fault(__VA_ARGS__))                                     \
    return fails(fault)

/* ---- Execution ---- */

bool runnable(cudaStream_t s)
{
    return !s->pieces.empty() && (!s->pieces.front().wait || s->pieces.front().wait->reached);
}

void step(cudaStream_t s)
{
    const piece p = s->pieces.front();
    s->pieces.pop_front();
    if (p.work)
        p.work();
    if (p.reach) {
        timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        p.reach->reached = true;
        p.reach->ns = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
    }
}

/* Runs streams, in any order, until `done`. */
void run_until(const std::function<bool()> &done)
{
    while (!done()) {
        std::vector<cudaStream_t> able;
        for (cudaStream_t s : streams)
            if (runnable(s))
                able.push_back(s);
        if (able.empty()) {
            fprintf(stderr, "cuda_host: streams wait for each other\n");
            abort();
        }
        step(able[any_below((unsigned)able.size())]);
    }
}

void run_stream(cudaStream_t s)
{
    run_until([s] { return s->pieces.empty(); });
}

void run_all()
{
    for (cudaStream_t s : streams)
        run_stream(s);
}

void run_graph(const std::vector<node> &nodes)
{
    std::vector<char> done(nodes.size(), 0);
    std::vector<int> able;
    for (size_t left = nodes.size(); left; left--) {
        able.clear();
        for (size_t i = 0; i < nodes.size() && able.size() < 4; i++) {
            bool ready = !done[i];
            for (int k : nodes[i].before)
                ready = ready && done[(size_t)k];
            if (ready)
                able.push_back((int)i);
        }
        const size_t i = (size_t)able[any_below((unsigned)able.size())];
        nodes[i].work();
        done[i] = 1;
    }
}

/* Adds work to a stream, or to the graph that captures it. */
cudaError_t add(cudaStream_t s, const std::function<void()> &work)
{
    if (!s)
        return fails(cudaErrorInvalidResourceHandle);
    if (!s->into) {
        s->pieces.push_back({work, NULL, NULL});
        return cudaSuccess;
    }
    s->into->nodes.push_back({work, s->last});
    s->last = {(int)s->into->nodes.size() - 1};
    return cudaSuccess;
}

bool is_within(const std::map<char *, size_t> &blocks, const void *p, size_t bytes)
{
    char *at = static_cast<char *>(const_cast<void *>(p));
    auto i = blocks.upper_bound(at);
    if (i == blocks.begin())
        return false;
    --i;
    return at + bytes <= i->first + i->second;
}

cudaError_t take(size_t bytes, void **p, std::map<char *, size_t> *blocks)
{
    void *memory;
    if (posix_memalign(&memory, 256, bytes))
        return fails(cudaErrorMemoryAllocation);
    memset(memory, 0xff, bytes);
    (*blocks)[static_cast<char *>(memory)] = bytes;
    *p = memory;
    return cudaSuccess;
}

cudaError_t give(void *p, std::map<char *, size_t> *blocks)
{
    if (!p)
        return cudaSuccess;
    const auto i = blocks->find(static_cast<char *>(p));
    if (i == blocks->end())
        return fails(cudaErrorInvalidValue);
    if (disturbs())
        return fails(cudaErrorStreamCaptureUnsupported);
    run_all();
    blocks->erase(i);
    free(p);
    return cudaSuccess;
}

} // namespace

#define LOCKED const std::lock_guard<std::recursive_mutex> hold(lock)

namespace ew_host
{

cudaError_t enqueue_work(cudaStream_t s, const std::function<void()> &work)
{
    LOCKED;
    MAY_FAIL("library");
    return add(s, work);
}

void enqueue(const launch &l, const std::function<void()> &thread)
{
    LOCKED;
    if (fails(ew_host::fault(l.kernel)))
        return;
    const cudaError_t e = check_launch(l);
    if (e) {
        fprintf(stderr, "cuda_host: %s refused: grid (%u, %u, %u), block (%u, %u, %u), %zu bytes\n",
                l.kernel, l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z, l.shared);
        fails(e);
        return;
    }
    add(l.stream, [l, thread] { run(l, thread); });
}

} // namespace ew_host

/* ---- Errors and the device ---- */

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    case cudaErrorNotSupported:
        return "operation not supported";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
        return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnjoined:
        return "capturing stream has unjoined work";
    default:
        return "invalid argument";
    }
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    const cudaError_t e = ew_host::card();
    *n = e ? 0 : 1;
    return fails(e);
}

cudaError_t cudaGetDevice(int *device)
{
    MAY_FAIL(__func__);
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    MAY_FAIL(__func__);
    return device ? fails(cudaErrorInvalidDevice) : cudaSuccess;
}

/* Few processors, so that small tensors take several waves of blocks too.  There are no clock
 * rates: nobody must take a figure of speed from here. */
static int processors(void)
{
    const char *text = getenv("EW_CUDA_HOST_PROCESSORS");
    const int n = text ? atoi(text) : 0;
    return n > 0 ? n : 4;
}

cudaError_t cudaDeviceGetAttribute(int *v, enum cudaDeviceAttr a, int)
{
    *v = a == cudaDevAttrMultiProcessorCount ? processors() : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    MAY_FAIL(__func__);
    if (device)
        return fails(cudaErrorInvalidDevice);
    memset(p, 0, sizeof(*p));
    strcpy(p->name, "host emulation");
    p->totalGlobalMem = ew_host::memory();
    p->major = 9;
    p->multiProcessorCount = processors();
    p->l2CacheSize = 4 << 20;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *v)
{
    *v = EW_HOST_CUDA;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *v)
{
    *v = EW_HOST_CUDA;
    return cudaSuccess;
}

/* ---- Memory ---- */

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    LOCKED;
    MAY_FAIL(__func__);
    *total = ew_host::memory();
    *free_bytes = ew_host::memory() - device_bytes;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    LOCKED;
    *p = NULL;
    MAY_FAIL(__func__, cudaErrorMemoryAllocation);
    if (disturbs())
        return fails(cudaErrorStreamCaptureUnsupported);
    if (bytes > ew_host::memory() - device_bytes)
        return fails(cudaErrorMemoryAllocation);
    const cudaError_t e = take(bytes, p, &device_blocks);
    device_bytes += e ? 0 : bytes;
    return e;
}

cudaError_t cudaFree(void *p)
{
    LOCKED;
    const auto i = device_blocks.find(static_cast<char *>(p));
    const size_t bytes = p && i != device_blocks.end() ? i->second : 0;
    const cudaError_t e = give(p, &device_blocks);
    device_bytes -= e ? 0 : bytes;
    return e;
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned)
{
    LOCKED;
    *p = NULL;
    MAY_FAIL(__func__, cudaErrorMemoryAllocation);
    if (disturbs())
        return fails(cudaErrorStreamCaptureUnsupported);
    return take(bytes, p, &pinned_blocks);
}

cudaError_t cudaFreeHost(void *p)
{
    LOCKED;
    return give(p, &pinned_blocks);
}

/* Pageable memory is read before the call returns, and written before it returns. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    LOCKED;
    MAY_FAIL(__func__);
    const bool reads = kind == cudaMemcpyHostToDevice, writes = kind == cudaMemcpyDeviceToHost;
    const void *host = reads ? from : to;
    if (!bytes)
        return cudaSuccess;
    if ((!reads && !is_within(device_blocks, from, bytes)) ||
        (!writes && !is_within(device_blocks, to, bytes)))
        return fails(cudaErrorInvalidValue);
    const bool pinned = is_within(pinned_blocks, host, bytes);
    if ((reads || writes) && !pinned && s && s->into) {
        s->into->broken = true;
        return fails(cudaErrorStreamCaptureUnsupported);
    }
    if (reads && !pinned) {
        const char *data = static_cast<const char *>(from);
        auto kept = std::make_shared<std::vector<char>>(data, data + bytes);
        return add(s, [to, kept] { memcpy(to, kept->data(), kept->size()); });
    }
    const cudaError_t e = add(s, [to, from, bytes] { memmove(to, from, bytes); });
    if (!e && writes && !pinned)
        run_stream(s);
    return e;
}

cudaError_t cudaMemsetAsync(void *p, int byte, size_t bytes, cudaStream_t s)
{
    LOCKED;
    MAY_FAIL(__func__);
    if (bytes && !is_within(device_blocks, p, bytes))
        return fails(cudaErrorInvalidValue);
    return add(s, [p, byte, bytes] { memset(p, byte, bytes); });
}

/* ---- Streams ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    LOCKED;
    MAY_FAIL(__func__);
    *s = new ew_host_stream();
    streams.push_back(*s);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    LOCKED;
    run_stream(s);
    for (size_t i = 0; i < streams.size(); i++)
        if (streams[i] == s) {
            streams.erase(streams.begin() + (long)i);
            break;
        }
    delete s;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    LOCKED;
    MAY_FAIL(__func__);
    if (s->into) {
        s->into->broken = true;
        return fails(cudaErrorStreamCaptureUnsupported);
    }
    run_stream(s);
    return cudaSuccess;
}

/* ---- Events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    MAY_FAIL(__func__);
    *e = new ew_host_event();
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    LOCKED;
    delete e;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    LOCKED;
    MAY_FAIL(__func__);
    e->into = s->into;
    e->at = NULL;
    if (s->into) {
        e->last = s->last;
        return cudaSuccess;
    }
    e->at = std::make_shared<mark>();
    s->pieces.push_back({NULL, e->at, NULL});
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    LOCKED;
    MAY_FAIL(__func__);
    if (e->into && e->into == own_capture)
        return fails(cudaErrorStreamCaptureUnsupported);
    const std::shared_ptr<mark> at = e->at;
    if (at)
        run_until([at] { return at->reached; });
    return cudaSuccess;
}

/* An event of a capture makes the waiting stream part of it. */
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    LOCKED;
    MAY_FAIL(__func__);
    if (e->into && e->into->origin) {
        if (s->into && s->into != e->into)
            return fails(cudaErrorStreamCaptureInvalidated);
        if (!s->into) {
            s->into = e->into;
            s->last.clear();
            e->into->joined.push_back(s);
        }
        s->last.insert(s->last.end(), e->last.begin(), e->last.end());
        return cudaSuccess;
    }
    if (s->into) { /* an event from outside of the capture */
        s->into->broken = true;
        return fails(cudaErrorStreamCaptureUnsupported);
    }
    if (e->at)
        s->pieces.push_back({NULL, NULL, e->at});
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    LOCKED;
    MAY_FAIL(__func__);
    if (!from->at || !to->at)
        return fails(cudaErrorInvalidResourceHandle);
    if (!from->at->reached || !to->at->reached)
        return fails(cudaErrorNotReady);
    *ms = (float)((double)(to->at->ns - from->at->ns) * 1e-6);
    return cudaSuccess;
}

/* ---- Graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode)
{
    LOCKED;
    MAY_FAIL(__func__);
    if (s->into)
        return fails(cudaErrorInvalidValue);
    s->into = own_capture = std::make_shared<recording>();
    s->into->origin = s;
    s->last.clear();
    return cudaSuccess;
}

/* Work that nothing on the origin's stream follows was not joined. */
static bool is_joined(const recording &r, const std::vector<int> &last)
{
    std::vector<char> seen(r.nodes.size(), 0);
    std::vector<int> left = last;
    while (!left.empty()) {
        const int i = left.back();
        left.pop_back();
        if (seen[(size_t)i])
            continue;
        seen[(size_t)i] = 1;
        left.insert(left.end(), r.nodes[(size_t)i].before.begin(), r.nodes[(size_t)i].before.end());
    }
    for (char one : seen)
        if (!one)
            return false;
    return true;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    LOCKED;
    const std::shared_ptr<recording> r = s->into;
    *g = NULL;
    if (!r)
        return fails(cudaErrorInvalidValue);
    if (r->origin != s)
        return fails(cudaErrorStreamCaptureUnmatched);
    const bool whole = is_joined(*r, s->last);
    s->into = NULL;
    for (cudaStream_t other : r->joined)
        other->into = NULL;
    r->origin = NULL;
    own_capture = NULL;
    MAY_FAIL(__func__);
    if (r->broken)
        return fails(cudaErrorStreamCaptureInvalidated);
    if (!whole)
        return fails(cudaErrorStreamCaptureUnjoined);
    *g = new ew_host_graph{r->nodes};
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long)
{
    MAY_FAIL(__func__);
    *x = new ew_host_exec{std::make_shared<std::vector<node>>(g->nodes)};
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    delete g;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s)
{
    LOCKED;
    MAY_FAIL(__func__);
    const auto nodes = x->nodes;
    return add(s, [nodes] { run_graph(*nodes); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x)
{
    delete x;
    return cudaSuccess;
}
