/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a launch, one after another in random order.  A fiber executes the threads of a block
 * as a plain loop, in random order, until one must wait at a barrier: it then keeps its fiber, and
 * another fiber goes on with the remaining threads.  What a card leaves undefined (a barrier that
 * some threads do not reach, an exchange with a lane that has ended) ends the program. */
#include "host_block.h"

#include <algorithm>
#include <new>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define EW_HOST_ASAN 1
#else
#define EW_HOST_ASAN 0
#endif

#define MOST_THREADS 1024
#define LANES        32
#define STACK_BYTES  ((size_t)256 << 10)

ew_host_index threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace ew_host
{

uint64_t block_number;
void *dynamic_shared;
size_t shared_limit = (size_t)48 << 10;

unsigned any_below(unsigned n)
{
    static uint64_t state;
    if (!state) {
        const char *text = getenv("EW_CUDA_HOST_SEED");
        state = (text ? strtoull(text, NULL, 10) : 1) * 0x9e3779b97f4a7c15u + 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 32) * n >> 32);
}

namespace
{

struct fiber {
    void *at; /* stack pointer while it does not run */
    ucontext_t context;
    char *stack;
    size_t stack_bytes;
    void *fake_stack; /* of the address sanitizer */
    unsigned thread;
};

struct warp {
    unsigned here, mask, ended, turn; /* lanes that wait, for which; lanes that are done */
    const char *where;
    size_t bytes;
    fiber *waiting[LANES];
    char given[2][LANES][EW_HOST_PAYLOAD]; /* of this and of the last exchange */
};

/* The running launch. */
struct {
    const launch *l;
    const std::function<void()> *body;
    unsigned threads, next, ended;
    unsigned order[MOST_THREADS];
    ew_host_index index[MOST_THREADS]; /* of each thread */
    const char *where;                 /* barrier at which `held` wait */
    std::vector<fiber *> held, ready, idle;
    warp warps[MOST_THREADS / LANES];
    fiber main, *now;
} b;

[[noreturn]] void __attribute__((format(printf, 1, 2))) fail(const char *format, ...)
{
    va_list args;
    fprintf(stderr, "cuda_host: %s, block (%u, %u, %u), thread (%u, %u, %u): ", b.l->kernel,
            blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    abort();
}

/* ---- Fibers ---- */

#if defined(__x86_64__)
/* Saves the registers that a call preserves, and the stack pointer at *from; continues at `to`. */
extern "C" void ew_host_switch(void **from, void *to);
__asm__(".text\n"
        ".type ew_host_switch, @function\n"
        "ew_host_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n"
        "    pushq %r15\n    movq %rsp, (%rdi)\n    movq %rsi, %rsp\n    popq %r15\n"
        "    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n    ret\n"
        ".size ew_host_switch, . - ew_host_switch\n");
#endif

void fiber_main();

void begin_fiber(fiber *f)
{
#if defined(__x86_64__)
    void **top = reinterpret_cast<void **>(f->stack + STACK_BYTES);
    *--top = NULL; /* the return address of fiber_main, which has none: aligns the stack */
    *--top = reinterpret_cast<void *>(fiber_main);
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    f->at = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&f->context, fiber_main, 0);
#endif
}

void switch_to(fiber *to)
{
    fiber *from = b.now;
    if (to == from)
        return;
    b.now = to;
#if EW_HOST_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#endif
#if defined(__x86_64__)
    ew_host_switch(&from->at, to->at);
#else
    swapcontext(&from->context, &to->context);
#endif
#if EW_HOST_ASAN
    __sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}

fiber *idle_fiber()
{
    if (b.idle.empty()) {
        void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED)
            fail("no memory for a stack");
        fiber *f = new (stack) fiber(); /* kept for later blocks */
        f->stack = static_cast<char *>(stack);
        f->stack_bytes = STACK_BYTES;
        begin_fiber(f);
        return f;
    }
    fiber *f = b.idle.back();
    b.idle.pop_back();
    return f;
}

/* The fiber to go on with: one that may continue, or another for threads that have not begun.
 * Mostly the last of those that may continue, whose warp is in the cache. */
fiber *next_fiber()
{
    const unsigned ready = (unsigned)b.ready.size(), rest = b.threads - b.next;
    if (ready && (!rest || any_below(2))) {
        const unsigned i = any_below(8) ? ready - 1 : any_below(ready);
        fiber *f = b.ready[i];
        b.ready[i] = b.ready.back();
        b.ready.pop_back();
        return f;
    }
    if (rest)
        return idle_fiber();
    if (b.ended == b.threads)
        return &b.main;
    for (const warp &w : b.warps)
        if (w.here)
            fail("deadlock: lanes %08x wait at %s for lanes %08x", w.here, w.where, w.mask);
    fail("deadlock: %zu of %u threads wait at %s", b.held.size(), b.threads, b.where);
}

void set_thread(unsigned t)
{
    b.now->thread = t;
    threadIdx = b.index[t];
}

void wait_here()
{
    fiber *self = b.now;
    switch_to(next_fiber());
    set_thread(self->thread);
}

void end_thread()
{
    warp &w = b.warps[b.now->thread / LANES];
    const unsigned lane = 1u << b.now->thread % LANES;
    b.ended++;
    w.ended |= lane;
    if (!b.held.empty())
        fail("divergent barrier: the thread has ended, others wait at %s", b.where);
    if (w.here && (w.mask & lane))
        fail("the thread has ended, lanes %08x of its warp wait for it at %s", w.here, w.where);
}

void fiber_main()
{
#if EW_HOST_ASAN
    __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
    for (;;) {
        while (b.next < b.threads) {
            set_thread(b.order[b.next++]);
            (*b.body)();
            end_thread();
        }
        b.idle.push_back(b.now);
        switch_to(next_fiber());
    }
}

/* The calling thread's own stack. */
void know_main()
{
#if EW_HOST_ASAN
    pthread_attr_t a;
    void *stack;
    pthread_getattr_np(pthread_self(), &a);
    pthread_attr_getstack(&a, &stack, &b.main.stack_bytes);
    pthread_attr_destroy(&a);
    b.main.stack = static_cast<char *>(stack);
#endif
}

/* ---- Order ---- */

void shuffle(unsigned *v, unsigned n)
{
    for (unsigned i = n; i > 1; i--)
        std::swap(v[i - 1], v[any_below(i)]);
}

/* Warps in random order, and the lanes of each. */
void shuffle_threads()
{
    const unsigned warps = (b.threads + LANES - 1) / LANES;
    unsigned warp_at[MOST_THREADS / LANES], lanes[LANES], n = 0;
    for (unsigned i = 0; i < warps; i++)
        warp_at[i] = i;
    for (unsigned i = 0; i < LANES; i++)
        lanes[i] = i;
    shuffle(warp_at, warps);
    for (unsigned i = 0; i < warps; i++) {
        shuffle(lanes, LANES);
        for (unsigned k : lanes)
            if (warp_at[i] * LANES + k < b.threads)
                b.order[n++] = warp_at[i] * LANES + k;
    }
}

void know_threads()
{
    for (unsigned t = 0; t < b.threads; t++)
        b.index[t] = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
}

unsigned common_divisor(unsigned x, unsigned y)
{
    return y ? common_divisor(y, x % y) : x;
}

} // namespace

/* ---- Barriers and exchanges ---- */

void block_barrier(const char *where)
{
    if (b.ended)
        fail("divergent barrier at %s: %u of %u threads have ended", where, b.ended, b.threads);
    if (!b.held.empty() && b.where != where && strcmp(b.where, where) != 0)
        fail("divergent barrier at %s: others wait at %s", where, b.where);
    b.where = where;
    if (b.held.size() + 1 < b.threads) {
        b.held.push_back(b.now);
        wait_here();
        return;
    }
    const unsigned held = (unsigned)b.held.size();
    if (held)
        std::rotate(b.held.begin(), b.held.begin() + any_below(held), b.held.end());
    if (any_below(2))
        std::reverse(b.held.begin(), b.held.end());
    b.ready.insert(b.ready.end(), b.held.begin(), b.held.end());
    b.held.clear();
    if (any_below(2) &&
        !b.ready.empty()) { /* the last to arrive is not always the first to go on */
        b.ready.push_back(b.now);
        wait_here();
    }
}

const char (*exchange(unsigned mask, const void *mine, size_t bytes,
                      const char *where))[EW_HOST_PAYLOAD]
{
    const unsigned t = b.now->thread, self = t % LANES, left = b.threads - t / LANES * LANES;
    const unsigned exist = left >= LANES ? ~0u : (1u << left) - 1;
    warp &w = b.warps[t / LANES];
    char(*given)[EW_HOST_PAYLOAD] = w.given[w.turn & 1];
    if (!(mask >> self & 1) || (mask & ~exist) || (mask & w.ended))
        fail("lanes %08x are to meet at %s; %08x exist, %08x have ended", mask, where, exist,
             w.ended);
    if (w.here &&
        (w.mask != mask || w.bytes != bytes || (w.where != where && strcmp(w.where, where) != 0)))
        fail("divergent warp at %s: lanes %08x wait at %s", where, w.here, w.where);
    w.mask = mask;
    w.where = where;
    w.bytes = bytes;
    if (bytes)
        memcpy(given[self], mine, bytes);
    w.here |= 1u << self;
    if (w.here != mask) {
        w.waiting[self] = b.now;
        wait_here();
        return given;
    }
    for (unsigned i = 0; i < LANES; i++)
        if (i != self && mask >> i & 1)
            b.ready.push_back(w.waiting[i]);
    w.here = 0;
    w.turn++;
    return given;
}

void warp_barrier(unsigned mask, const char *where)
{
    exchange(mask, NULL, 0, where);
}

int lane()
{
    return (int)(b.now->thread % LANES);
}

/* ---- Launches ---- */

cudaError_t check_launch(const launch &l)
{
    const dim3 &g = l.grid, &k = l.block;
    if (!g.x || !g.y || !g.z || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535 || !k.x || !k.y ||
        !k.z || k.z > 64 || k.x * k.y * k.z > MOST_THREADS)
        return cudaErrorInvalidConfiguration;
    return l.shared > shared_limit ? cudaErrorInvalidValue : cudaSuccess;
}

void run(const launch &l, const std::function<void()> &thread)
{
    const uint64_t blocks = (uint64_t)l.grid.x * l.grid.y * l.grid.z;
    const unsigned count = (unsigned)blocks;
    unsigned step = count > 1 ? 1 + any_below(count - 1) : 1, at = any_below(count);
    while (common_divisor(count, step) != 1)
        step--;
    b.l = &l;
    b.body = &thread;
    b.threads = l.block.x * l.block.y * l.block.z;
    b.now = &b.main;
    know_main();
    blockDim = l.block;
    gridDim = l.grid;
    dynamic_shared = l.shared ? aligned_alloc(16, (l.shared + 15) / 16 * 16) : NULL;
    know_threads();
    shuffle_threads();
    for (unsigned i = 0; i < count; i++) {
        blockIdx = {at % l.grid.x, at / l.grid.x % l.grid.y, at / l.grid.x / l.grid.y};
        at = (unsigned)(((uint64_t)at + step) % count);
        block_number++;
        b.next = b.ended = 0;
        if (l.shared)
            memset(dynamic_shared, 0xff, l.shared);
        for (unsigned w = 0; w * LANES < b.threads; w++)
            b.warps[w].here = b.warps[w].ended = 0;
        if (i % 16 == 15)
            shuffle_threads();
        switch_to(next_fiber());
    }
    free(dynamic_shared);
    dynamic_shared = NULL;
}

/* ---- Matrix instructions, from the fragments of all lanes ---- */

namespace
{

struct fragments_8 {
    unsigned a[2], b;
};

float half_of(unsigned pair, int i, bool brain)
{
    const uint16_t bits = (uint16_t)(pair >> 16 * i);
    return brain ? from_bf16(bits) : from_f16(bits);
}

void multiply_halves(float *c, const unsigned *a, unsigned b_pair, bool brain)
{
    const fragments_8 mine = {{a[0], a[1]}, b_pair};
    fragments_8 of[LANES];
    const char(*all)[EW_HOST_PAYLOAD] =
        exchange(~0u, &mine, sizeof(mine), brain ? "mma of bfloat16" : "mma of float16");
    for (int i = 0; i < LANES; i++)
        memcpy(&of[i], all[i], sizeof(mine));
    const int row = lane() / 4;
    for (int i = 0; i < 4; i++) {
        const int column = lane() % 4 * 2 + i % 2;
        float sum = c[i];
        for (int k = 0; k < 8; k++)
            sum += half_of(of[row * 4 + k / 2].a[i / 2], k % 2, brain) *
                   half_of(of[column * 4 + k / 2].b, k % 2, brain);
        c[i] = sum;
    }
}

struct fragments_32 {
    unsigned a[4], b[2];
};

} // namespace

} // namespace ew_host

void ptx_mma_f16(float *c, const unsigned *a, unsigned b)
{
    ew_host::multiply_halves(c, a, b, false);
}

void ptx_mma_bf16(float *c, const unsigned *a, unsigned b)
{
    ew_host::multiply_halves(c, a, b, true);
}

template <bool SIGNED> void ptx_mma_int8(int *c, const unsigned *a, const unsigned *b)
{
    using ew_host::fragments_32;
    const fragments_32 mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
    fragments_32 of[LANES];
    const char(*all)[EW_HOST_PAYLOAD] =
        ew_host::exchange(~0u, &mine, sizeof(mine), "mma of 8 bits");
    for (int i = 0; i < LANES; i++)
        memcpy(&of[i], all[i], sizeof(mine));
    const int row = ew_host::lane() / 4;
    for (int i = 0; i < 4; i++) {
        const int column = ew_host::lane() % 4 * 2 + i % 2;
        for (int k = 0; k < 8; k++) /* four bytes each */
            c[i] = ptx_dp4a<SIGNED>(of[row * 4 + k % 4].a[k / 4 * 2 + i / 2],
                                    of[column * 4 + k % 4].b[k / 4], c[i]);
    }
}

template void ptx_mma_int8<true>(int *c, const unsigned *a, const unsigned *b);
template void ptx_mma_int8<false>(int *c, const unsigned *a, const unsigned *b);
