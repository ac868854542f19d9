/* SPDX-License-Identifier: Apache-2.0 */
/* The module's table, devices, memory, queues, events and graphs. */
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/module/cuda_status.h"

/* cublasLtGetStatusString, which came with an update of CUDA 11.4. */
static const char *blas_text(int code)
{
    switch ((cublasStatus_t)code) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "cuBLASLt cannot be initialised";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "cuBLASLt is out of memory";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "invalid value for cuBLASLt";
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "not supported by cuBLASLt";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "cuBLASLt failed to execute";
    default:
        return "internal error of cuBLASLt";
    }
}

const char *ew_cu_error_text(int code)
{
    if (code >= EW_CU_BLAS)
        return blas_text(code - EW_CU_BLAS);
    if (code >= EW_CU_CUDNN)
        return cudnnGetErrorString((cudnnStatus_t)(code - EW_CU_CUDNN));
    if (code == cudaErrorInsufficientDriver)
        return "there is no NVIDIA driver, or one that is too old for this build's CUDA";
    return cudaGetErrorString((cudaError_t)code);
}

static cudaStream_t stream_of(const struct ew_cuda_queue *q)
{
    return (cudaStream_t)q->stream;
}

/* ---- Devices ---- */

int ew_cu_device_count(int *n)
{
    *n = 0;
    return cudaGetDeviceCount(n);
}

static int attribute(enum cudaDeviceAttr a, int device)
{
    int v = 0;
    cudaDeviceGetAttribute(&v, a, device);
    return v;
}

int ew_cu_device_info(int device, struct ew_cuda_device *out)
{
    struct cudaDeviceProp p;
    EW_CU_TRY(cudaGetDeviceProperties(&p, device));
    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "%.127s", p.name);
    out->major = p.major;
    out->minor = p.minor;
    out->processors = p.multiProcessorCount;
    out->integrated = p.integrated;
    out->clock_khz = attribute(cudaDevAttrClockRate, device);
    out->memory_clock_khz = attribute(cudaDevAttrMemoryClockRate, device);
    out->bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, device);
    out->memory = p.totalGlobalMem;
    out->l2_bytes = (size_t)p.l2CacheSize;
    const unsigned char *u = (const unsigned char *)p.uuid.bytes;
    for (int i = 0, at = 0; i < 16; i++)
        at += snprintf(out->uuid + at, sizeof(out->uuid) - (size_t)at, "%s%02x",
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
    cudaDriverGetVersion(&out->driver);
    cudaRuntimeGetVersion(&out->runtime);
    out->cudnn = (int)cudnnGetVersion();
    out->blas = (int)cublasLtGetVersion();
    return 0;
}

int ew_cu_device_use(int device)
{
    return cudaSetDevice(device);
}

int ew_cu_device_memory(size_t *free_bytes, size_t *total)
{
    return cudaMemGetInfo(free_bytes, total);
}

/* ---- Memory ---- */

/* Clears an error that the caller can go on after, or the next launch would report it. */
static int cleared(cudaError_t e)
{
    if (e)
        cudaGetLastError();
    return e;
}

int ew_cu_alloc(size_t bytes, void **out)
{
    return cleared(cudaMalloc(out, bytes ? bytes : 1));
}

int ew_cu_release(void *p)
{
    return cudaFree(p);
}

int ew_cu_alloc_host(size_t bytes, void **out)
{
    return cleared(cudaHostAlloc(out, bytes ? bytes : 1, cudaHostAllocPortable));
}

int ew_cu_release_host(void *p)
{
    return cudaFreeHost(p);
}

int ew_cu_copy(struct ew_cuda_queue *q, void *to, const void *from, size_t bytes, int kind)
{
    static const enum cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                                cudaMemcpyDeviceToDevice};
    return cudaMemcpyAsync(to, from, bytes, kinds[kind], stream_of(q));
}

int ew_cu_fill(struct ew_cuda_queue *q, void *p, int byte, size_t bytes)
{
    return cudaMemsetAsync(p, byte, bytes, stream_of(q));
}

/* ---- Queues ---- */

static atomic_int captures; /* graphs that were captured, on any queue */

/* Keeps the workspace until the queue is closed, if a graph may use it. */
static int outgrow(struct ew_cuda_queue *q)
{
    if (!q->workspace || atomic_load(&captures) == 0)
        return cudaFree(q->workspace);
    void **more = realloc(q->outgrown, ((size_t)q->n_outgrown + 1) * sizeof(*more));
    if (!more)
        return cudaErrorMemoryAllocation;
    q->outgrown = more;
    q->outgrown[q->n_outgrown++] = q->workspace;
    return 0;
}

int ew_cu_workspace(struct ew_cuda_queue *q, size_t bytes)
{
    if (bytes <= q->workspace_bytes)
        return 0;
    EW_CU_TRY(outgrow(q));
    q->workspace = NULL;
    q->workspace_bytes = 0;
    EW_CU_TRY(cleared(cudaMalloc(&q->workspace, bytes)));
    q->workspace_bytes = bytes;
    return 0;
}

int ew_cu_queue_close(struct ew_cuda_queue *q)
{
    if (!q)
        return 0;
    if (q->cudnn)
        cudnnDestroy((cudnnHandle_t)q->cudnn);
    if (q->blas)
        cublasLtDestroy((cublasLtHandle_t)q->blas);
    cudaFree(q->workspace);
    for (int i = 0; i < q->n_outgrown; i++)
        cudaFree(q->outgrown[i]);
    free(q->outgrown);
    cudaFree(q->counters);
    free(q->found);
    const int e = q->stream ? cudaStreamDestroy(stream_of(q)) : 0;
    free(q);
    return e;
}

static int queue_fill(struct ew_cuda_queue *q)
{
    int device;
    cudaStream_t stream;
    EW_CU_TRY(cudaGetDevice(&device));
    q->processors = attribute(cudaDevAttrMultiProcessorCount, device);
    EW_CU_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    q->stream = stream;
    EW_CU_TRY(cudaMalloc((void **)&q->counters, EW_CUDA_COUNTERS * sizeof(unsigned)));
    /* Asynchronous, on this stream: kernels on it do not synchronise with other streams. */
    EW_CU_TRY(cudaMemsetAsync(q->counters, 0, EW_CUDA_COUNTERS * sizeof(unsigned), stream));
    if (!q->workspace_limit)
        return 0; /* a stream for copies only */
    EW_CU_CUDNN_TRY(cudnnCreate((cudnnHandle_t *)&q->cudnn));
    EW_CU_CUDNN_TRY(cudnnSetStream((cudnnHandle_t)q->cudnn, stream));
    EW_CU_BLAS_TRY(cublasLtCreate((cublasLtHandle_t *)&q->blas));
    return 0;
}

int ew_cu_queue_open(int deterministic, size_t workspace, size_t planned,
                     struct ew_cuda_queue **out)
{
    struct ew_cuda_queue *q = calloc(1, sizeof(*q));
    if (!q)
        return cudaErrorMemoryAllocation;
    q->deterministic = deterministic;
    q->workspace_limit = workspace;
    q->planned_bytes = planned;
    const int e = queue_fill(q);
    if (e)
        ew_cu_queue_close(q);
    else
        *out = q;
    return e;
}

int ew_cu_queue_wait(struct ew_cuda_queue *q)
{
    return cudaStreamSynchronize(stream_of(q));
}

/* ---- Events ---- */

int ew_cu_event_new(int timing, void **out)
{
    return cudaEventCreateWithFlags((cudaEvent_t *)out, timing ? 0 : cudaEventDisableTiming);
}

int ew_cu_event_free(void *event)
{
    return event ? cudaEventDestroy((cudaEvent_t)event) : 0;
}

int ew_cu_event_record(struct ew_cuda_queue *q, void *event)
{
    return cudaEventRecord((cudaEvent_t)event, stream_of(q));
}

int ew_cu_event_wait(void *event)
{
    return cudaEventSynchronize((cudaEvent_t)event);
}

int ew_cu_event_hold(struct ew_cuda_queue *q, void *event)
{
    return cudaStreamWaitEvent(stream_of(q), (cudaEvent_t)event, 0);
}

int ew_cu_event_ms(void *from, void *to, float *out)
{
    return cudaEventElapsedTime(out, (cudaEvent_t)from, (cudaEvent_t)to);
}

/* ---- Graphs ---- */

int ew_cu_capture_begin(struct ew_cuda_queue *q)
{
    atomic_fetch_add(&captures, 1);
    return cudaStreamBeginCapture(stream_of(q), cudaStreamCaptureModeThreadLocal);
}

int ew_cu_capture_end(struct ew_cuda_queue *q, void **graph)
{
    cudaGraph_t g = NULL;
    const int ended = cudaStreamEndCapture(stream_of(q), &g);
    cudaGetLastError(); /* of what was captured */
    if (ended)
        return ended;
    const int e = cudaGraphInstantiateWithFlags((cudaGraphExec_t *)graph, g, 0);
    cudaGraphDestroy(g);
    return e;
}

int ew_cu_graph_launch(struct ew_cuda_queue *q, void *graph)
{
    return cudaGraphLaunch((cudaGraphExec_t)graph, stream_of(q));
}

int ew_cu_graph_free(void *graph)
{
    return graph ? cudaGraphExecDestroy((cudaGraphExec_t)graph) : 0;
}

/* ---- The table ---- */

__attribute__((visibility("default"))) const struct ew_cuda_api *ew_cuda_module(void)
{
    static const struct ew_cuda_api api = {.version = EW_CUDA_MODULE_VERSION,
                                           .error_text = ew_cu_error_text,
#define EW_CUDA_ENTRY(name, parameters) .name = ew_cu_##name,
                                           EW_CUDA_MAP(EW_CUDA_ENTRY)
#undef EW_CUDA_ENTRY
    };
    return &api;
}
