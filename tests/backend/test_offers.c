/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel offered for the operators' test cases, forward and backward, against the operator's
 * reference: every instruction set, one thread and two (the same bits), guarded buffers, gradients
 * accumulated and written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "base/mem.h"
#include "ew_test.h"
#include "graph/graph.h"
#include "op_case.h"

#define SLOTS 24
/* Relative to a tensor's largest value: Winograd, exp, other orders of sums. */
#define TOLERANCE 1e-4

/* The call of a case, with memory of its own. */
struct set {
    struct ew_tensor in[SLOTS], out[SLOTS], din[SLOTS], dout[SLOTS];
    struct ew_tensor *in_p[SLOTS], *out_p[SLOTS], *din_p[SLOTS], *dout_p[SLOTS];
    struct ew_call call;
};

/* One comparison: a case, a phase, a kernel. */
struct job {
    const struct ew_op *op;
    const struct ew_op_case *k;
    struct ew_graph *g;
    enum ew_phase phase;
    bool fresh; /* backward: gradients are written, not accumulated */
    bool seen;  /* offers see the data of all inputs, as for host steps */
    int kernel; /* index in the offers */
};

static void fill(struct ew_tensor *t, uint64_t state, double scale, double shift)
{
    for (int64_t i = 0; i < ew_tensor_count(t); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double v = ((double)(state >> 40) * 0x1p-24 - 0.4) * scale + shift;
        ew_tensor_store(t, i, 1, &v);
    }
}

static struct ew_tensor *place(struct ew_tensor *t, const struct ew_tensor *like)
{
    *t = *like;
    t->data = ew_guard_end(ew_tensor_bytes(t), ew_dtype_size(t->dtype));
    return t;
}

static bool wants_gradient(const struct job *j, const struct set *s, int i)
{
    return s->in_p[i] && s->in[i].dtype == EW_F32 && !j->k->in[i].constant &&
           !j->k->in[i].no_grad && !(j->op->state_in >> i & 1);
}

static void set_init(struct set *s, const struct job *j)
{
    const struct ew_node *n = &j->g->nodes[0];
    *s = (struct set){.call = {.name = "node",
                               .op = j->op,
                               .attr = n->attr,
                               .n_in = n->n_in,
                               .n_out = n->n_out,
                               .train = j->phase == EW_PHASE_BACKWARD || j->k->train,
                               .seed = 12345}};
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0)
            continue;
        s->in_p[i] = place(&s->in[i], &j->g->values[n->in[i]].t);
        ew_case_fill(j->k, i, &s->in[i]);
        if (j->phase != EW_PHASE_BACKWARD || !wants_gradient(j, s, i))
            continue;
        s->din_p[i] = place(&s->din[i], &s->in[i]);
        fill(&s->din[i], 1, 0, j->fresh ? 0 : 0.75);
    }
    for (int i = 0; i < n->n_out; i++) {
        s->out_p[i] = place(&s->out[i], &j->g->values[n->out[i]].t);
        if (j->phase != EW_PHASE_BACKWARD || s->out[i].dtype != EW_F32)
            continue;
        s->dout_p[i] = place(&s->dout[i], &s->out[i]);
        fill(&s->dout[i], 4242, 1, 0);
    }
    s->call.in = s->in_p;
    s->call.out = s->out_p;
    s->call.din = s->din_p;
    s->call.dout = s->dout_p;
    s->call.aux = j->op->aux ? ew_guard_end(j->op->aux(&s->call), 64) : NULL;
}

static void set_fini(struct set *s)
{
    for (int i = 0; i < SLOTS; i++) {
        ew_guard_free(s->in[i].data);
        ew_guard_free(s->out[i].data);
        ew_guard_free(s->din[i].data);
        ew_guard_free(s->dout[i].data);
    }
    ew_guard_free(s->call.aux);
}

/* Runs the reference; also forward, since backward may read what it saves. */
static bool run_reference(const struct job *j, struct set *s)
{
    s->call.scratch = j->op->scratch ? ew_guard_end(j->op->scratch(&s->call), 64) : NULL;
    bool ok = EW_EXPECT_OK(j->op->forward(&s->call));
    if (ok && j->phase == EW_PHASE_BACKWARD)
        ok = EW_EXPECT_OK(j->op->backward(&s->call));
    ew_guard_free(s->call.scratch);
    s->call.scratch = NULL;
    return ok;
}

/* Offers are made before activations have memory; weights and constants have theirs. */
static int offers(const struct job *j, const struct set *s, const struct ew_backend *be,
                  struct ew_kernel out[EW_OFFERS])
{
    struct set bare = *s;
    bare.call.in = bare.in_p;
    bare.call.out = bare.out_p;
    bare.call.be = be;
    int n = 0;
    for (int i = 0; i < s->call.n_in; i++) {
        const bool known = j->k->in[i].constant ||
                           ((j->op->param_in | j->op->state_in | j->op->known_in) >> i & 1);
        if (!bare.in_p[i])
            continue;
        bare.in_p[i] = &bare.in[i];
        if (!known && !j->seen)
            bare.in[i].data = NULL;
    }
    for (int i = 0; i < s->call.n_out; i++) {
        bare.out_p[i] = &bare.out[i];
        bare.out[i].data = NULL;
    }
    const struct ew_kernel_query query = {
        .be = be, .op = j->op, .phase = j->phase, .c = &bare.call};
    return EW_EXPECT_OK(ew_backend_offer(&query, out, &n)) ? n : 0;
}

static void poison(struct ew_tensor *t)
{
    memset(t->data, 0x7f, ew_tensor_bytes(t)); /* 3.4e38 */
}

static void run_kernel(const struct job *j, struct set *s, const struct ew_kernel *k)
{
    struct ew_call *c = &s->call;
    c->scratch = ew_guard_end(ew_align_up(k->scratch), 64);
    c->state = ew_guard_end(ew_align_up(k->state), 64);
    c->packed = ew_guard_end(ew_align_up(k->packed), 64);
    for (int i = 0; j->fresh && i < c->n_in; i++) {
        if (!s->din_p[i])
            continue;
        poison(&s->din[i]);
        c->fresh |= 1u << i;
    }
    if (k->prepare)
        EW_EXPECT_OK(k->prepare(c));
    if (k->pack)
        EW_EXPECT_OK(k->pack(c));
    EW_EXPECT_OK(k->run(c));
    ew_guard_free(c->scratch);
    ew_guard_free(c->state);
    ew_guard_free(c->packed);
}

static void expect_near(const struct ew_tensor *got, const struct ew_tensor *want, const char *what)
{
    double most = 1;
    for (int64_t i = 0; i < ew_tensor_count(want); i++)
        if (isfinite(ew_tensor_get(want, i)))
            most = fmax(most, fabs(ew_tensor_get(want, i)));
    for (int64_t i = 0; i < ew_tensor_count(want); i++) {
        const double x = ew_tensor_get(got, i), y = ew_tensor_get(want, i);
        if (fabs(x - y) <= TOLERANCE * most || (isnan(x) && isnan(y)) || memcmp(&x, &y, 8) == 0)
            continue;
        EW_FAIL("%s: element %lld is %g, not %g", what, (long long)i, x, y);
        return;
    }
}

static void compare(const struct job *j, const struct set *got, const struct set *want)
{
    const struct ew_call *c = &got->call;
    for (int i = 0; j->phase == EW_PHASE_FORWARD && i < c->n_out; i++)
        expect_near(&got->out[i], &want->out[i], "output");
    for (int i = 0; i < c->n_in; i++)
        if (got->din_p[i])
            expect_near(&got->din[i], &want->din[i], "gradient");
}

static void expect_same_bits(const struct set *a, const struct set *b)
{
    for (int i = 0; i < SLOTS; i++) {
        if (a->out_p[i] && EW_EXPECT(b->out[i].data))
            EW_EXPECT(memcmp(a->out[i].data, b->out[i].data, ew_tensor_bytes(&a->out[i])) == 0);
        if (a->din_p[i] && EW_EXPECT(b->din[i].data))
            EW_EXPECT(memcmp(a->din[i].data, b->din[i].data, ew_tensor_bytes(&a->din[i])) == 0);
    }
}

static bool wants_any(const struct job *j, const struct set *s)
{
    bool any = j->phase == EW_PHASE_FORWARD;
    for (int i = 0; i < s->call.n_in; i++)
        any |= s->din_p[i] != NULL;
    return any;
}

/* Runs the kernel on its own set; false if it was not offered, or has nothing to do. */
static bool attempt(const struct job *j, const struct ew_backend *be, struct set *s)
{
    struct ew_kernel kernels[EW_OFFERS];
    set_init(s, j);
    s->call.be = be;
    if (!wants_any(j, s))
        return false;
    if (j->phase == EW_PHASE_BACKWARD) { /* what forward saves */
        struct job forward = *j;
        forward.phase = EW_PHASE_FORWARD;
        run_reference(&forward, s);
    }
    const int n = offers(j, s, be, kernels);
    if (j->kernel >= n - 1) /* the last is the reference */
        return false;
    run_kernel(j, s, &kernels[j->kernel]);
    return true;
}

static bool check_kernel(const struct job *j, const struct ew_kernels *isa, struct ew_pool *pool)
{
    const struct ew_backend base = {.type = &ew_cpu_type};
    const struct ew_cpu one = {.base = base, .isa = isa}, two = {base, pool, isa};
    struct set got, again, want;
    const bool offered = attempt(j, &one.base, &got);
    if (offered) {
        set_init(&want, j);
        if (run_reference(j, &want))
            compare(j, &got, &want);
        if (EW_EXPECT(attempt(j, &two.base, &again)))
            expect_same_bits(&got, &again);
        set_fini(&again);
        set_fini(&want);
    }
    set_fini(&got);
    return offered;
}

static int check_case(const struct ew_op *op, const struct ew_op_case *k, struct ew_pool *pool)
{
    struct job j = {.op = op, .k = k};
    int done = 0;
    if (!EW_EXPECT_OK(ew_case_graph(op, k, false, &j.g)))
        return 0;
    for (int i = 0; ew_isa_at(i); i++) {
        for (int what = 0; what < 4; what++) { /* forward; backward accumulating, writing, and with
                                                * visible data */
            j.phase = what ? EW_PHASE_BACKWARD : EW_PHASE_FORWARD;
            j.fresh = what == 2;
            j.seen = what == 3;
            if (what && !op->backward)
                continue;
            for (j.kernel = 0; check_kernel(&j, ew_isa_at(i), pool); j.kernel++)
                done++;
        }
    }
    ew_graph_free(j.g);
    return done;
}

int main(int argc, char **argv)
{
    struct ew_pool *pool = NULL;
    int done = 0;
    if (!EW_EXPECT_OK(ew_pool_new(2, &pool)))
        return ew_test_status();
    for (int i = 0; i < ew_op_count(); i++) {
        const struct ew_op *op = ew_op_at(i);
        if (argc > 1 && strcmp(argv[1], op->name) != 0)
            continue;
        for (int k = 0; k < op->n_cases; k++) {
            ew_test_begin("%s/%s", op->name, op->cases[k].name);
            done += check_case(op, &op->cases[k], pool);
            ew_test_end();
        }
    }
    ew_test_begin("kernels were offered: %d", done);
    EW_EXPECT(argc > 1 || done > 100);
    ew_test_end();
    ew_pool_free(pool);
    return ew_test_status();
}
