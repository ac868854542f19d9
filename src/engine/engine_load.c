/* SPDX-License-Identifier: Apache-2.0 */
/* Loading engines: checks that the file is for this architecture, and repacks weights for another
 * instruction set. */
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/sized.h"
#include "engine/engine.h"

const char *ew_engine_arch(void)
{
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return "little-endian";
#else
    return "big-endian";
#endif
}

void ew_engine_plan_opts(const struct ew_engine *e, int64_t batch, struct ew_plan_given *given,
                         struct ew_plan_opts *out)
{
    const int64_t row = (batch - e->file.card.batch_min) * e->file.graph->n_nodes;
    *given = (struct ew_plan_given){.kernels = e->file.choices + row,
                                    .packed = e->packed,
                                    .packed_of = e->packed_of,
                                    .absent = e->file.absent};
    *out = (struct ew_plan_opts){
        .mode = EW_PLAN_INFER, .given = given, .backend = {.threads = (int)e->file.card.threads}};
}

ew_err ew_engine_graph_at(const struct ew_engine *e, int64_t batch, struct ew_graph **out)
{
    EW_TRY(ew_graph_clone(e->file.graph, out));
    const ew_err err = ew_graph_set_batch(*out, batch);
    if (err != EW_OK)
        ew_graph_free(*out);
    return err;
}

/* ---- Packed weights ---- */

/* Allocates the list of packed weights, empty. */
static ew_err new_packed(struct ew_engine *e, int n)
{
    const int nodes = e->file.graph->n_nodes;
    e->packed = calloc((size_t)n + 1, sizeof(*e->packed));
    e->packed_of = calloc((size_t)nodes + 1, sizeof(*e->packed_of));
    EW_CHECK(e->packed && e->packed_of, EW_ERR_MEMORY, "engine %s: no memory", e->file.card.name);
    for (int k = 0; k < nodes; k++)
        e->packed_of[k] = -1;
    return EW_OK;
}

static void add_packed(struct ew_engine *e, const struct ew_plan_packed *p)
{
    e->packed[e->n_packed] = *p;
    e->packed[e->n_packed].next = e->packed_of[p->node];
    e->packed_of[p->node] = e->n_packed++;
}

static ew_err use_packed(struct ew_engine *e)
{
    EW_TRY(new_packed(e, e->file.n_packed));
    for (int i = 0; i < e->file.n_packed; i++) {
        const struct ew_engine_packed *p = &e->file.packed[i];
        add_packed(e,
                   &(struct ew_plan_packed){
                       .node = p->node, .kernel = p->kernel, .bytes = p->bytes, .data = p->data});
    }
    return EW_OK;
}

/* Records the packed weights of a plan. */
static ew_err take_packed(struct ew_engine *e, struct ew_plan *p)
{
    const int nodes = e->file.graph->n_nodes;
    EW_TRY(new_packed(e, nodes));
    for (int k = 0; k < nodes; k++) {
        struct ew_plan_packed to = {.node = k};
        to.kernel = ew_plan_node_kernel(p, k, &to.data, &to.bytes);
        if (to.kernel && to.data)
            add_packed(e, &to);
    }
    return EW_OK;
}

/* Repacks the plain weights for this machine, once for all contexts. */
static ew_err pack_again(struct ew_engine *e, const char *what, const struct ew_device_found *here)
{
    const struct ew_engine_card *c = &e->file.card;
    EW_CHECK(!e->file.absent || strcmp(c->isa, here->target) == 0, EW_ERR_UNSUPPORTED,
             "%s: has its weights only as packed for %s, and this machine runs %s: compile it here",
             what, c->isa, here->target);
    EW_CHECK(!e->file.absent, EW_ERR_UNSUPPORTED,
             "%s: has its weights only as packed by other kernels (%s %s, here %s %s): compile it "
             "again",
             what, c->program, c->kernels, EW_VERSION, here->kernels);
    EW_TRY(ew_engine_file_check_weights(&e->file, what));
    struct ew_plan_given given;
    struct ew_plan_opts o;
    struct ew_graph *g = e->file.graph;
    ew_engine_plan_opts(e, c->batch_min, &given, &o);
    EW_TRY(ew_plan_compile(g, &o, &e->packer));
    return take_packed(e, e->packer);
}

ew_err ew_engine_block(const struct ew_engine *e, struct ew_backend *be, size_t *bytes)
{
    struct ew_graph *g;
    struct ew_plan *p = NULL;
    struct ew_plan_given given;
    struct ew_plan_opts o;
    struct ew_plan_stats stats;
    ew_engine_plan_opts(e, e->file.card.batch_max, &given, &o);
    o.dry = true;
    given.backend = be;
    EW_TRY(ew_engine_graph_at(e, e->file.card.batch_max, &g));
    const ew_err err = ew_plan_compile(g, &o, &p);
    if (err == EW_OK) {
        ew_plan_stats(p, &stats);
        *bytes = stats.block_bytes;
    }
    ew_plan_free(p);
    ew_graph_free(g);
    return err;
}

/* ---- Life ---- */

static ew_err check_machine(const struct ew_engine *e, const char *what)
{
    const struct ew_engine_card *c = &e->file.card;
    EW_CHECK(strcmp(c->arch, ew_engine_arch()) == 0, EW_ERR_UNSUPPORTED,
             "%s: is for %s, this machine is %s: compile it here", what, c->arch, ew_engine_arch());
    int64_t batch = 0;
    EW_TRY(ew_graph_batch(e->file.graph, &batch));
    EW_CHECK(batch == c->batch_min || c->batch_max == c->batch_min, EW_ERR_FORMAT,
             "%s: is for batches from %lld, and its graph for %lld", what, (long long)c->batch_min,
             (long long)batch);
    return EW_OK;
}

/* Completes an engine after its file was read. */
static ew_err finish(struct ew_engine *e, const char *what)
{
    struct ew_device_found here;
    EW_TRY(check_machine(e, what));
    EW_TRY(ew_backend_probe(NULL, &here));
    const bool same = strcmp(e->file.card.isa, here.target) == 0 &&
                      strcmp(e->file.card.kernels, here.kernels) == 0;
    EW_TRY(same ? use_packed(e) : pack_again(e, what, &here));
    const ew_err err = ew_engine_block(e, NULL, &e->block_bytes);
    return err == EW_OK ? err : ew_fail_in(err, "%s", what);
}

ew_err ew_engine_take(struct ew_engine_file *file, const char *what, struct ew_engine **out)
{
    struct ew_engine *e = calloc(1, sizeof(*e));
    if (!e) {
        ew_engine_file_close(file);
        return ew_fail(EW_ERR_MEMORY, "%s: no memory for an engine", what);
    }
    e->file = *file;
    *file = (struct ew_engine_file){0};
    const ew_err err = finish(e, what);
    if (err != EW_OK)
        ew_engine_free(e);
    else
        *out = e;
    return err;
}

EW_API ew_err ew_engine_load(const char *path, struct ew_engine **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(path);
    struct ew_engine_file file;
    EW_TRY(ew_engine_file_open(path, &file));
    return ew_engine_take(&file, path, out);
}

EW_API ew_err ew_engine_load_memory(const void *bytes, size_t n_bytes, struct ew_engine **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(bytes);
    const char *what = "engine in memory";
    struct ew_engine_file file;
    EW_CHECK((uintptr_t)bytes % EW_ALIGN == 0, EW_ERR_ARG, "%s: is not at a multiple of %d bytes",
             what, EW_ALIGN);
    EW_TRY(ew_engine_file_parse(bytes, n_bytes, what, &file));
    return ew_engine_take(&file, what, out);
}

EW_API void ew_engine_free(struct ew_engine *e)
{
    if (!e)
        return;
    ew_plan_free(e->packer);
    free(e->packed);
    free(e->packed_of);
    ew_engine_file_close(&e->file);
    free(e);
}

/* ---- Information ---- */

EW_API ew_err ew_engine_info(const struct ew_engine *e, struct ew_engine_info *out)
{
    EW_C_LOCALE;
    EW_NEED(e);
    EW_NEED(out);
    EW_TRY(ew_sized_check(out));
    const struct ew_engine_card *c = &e->file.card;
    struct ew_engine_info info = {.name = c->name,
                                  .program = c->program,
                                  .arch = c->arch,
                                  .isa = c->isa,
                                  .precision = c->precision,
                                  .batch_min = c->batch_min,
                                  .batch_max = c->batch_max,
                                  .threads = c->threads,
                                  .params = c->facts.params,
                                  .macs = c->facts.macs,
                                  .flops = c->facts.flops,
                                  .cdl = c->facts.cdl,
                                  .file_bytes = (int64_t)e->file.size,
                                  .activation_bytes = (int64_t)e->block_bytes,
                                  .n_inputs = e->file.graph->n_inputs,
                                  .n_outputs = e->file.graph->n_outputs,
                                  .n_classes = c->n_classes,
                                  .repacked = e->packer != NULL};
    for (int i = 0; i < e->n_packed; i++)
        info.packed_bytes += (int64_t)e->packed[i].bytes;
    ew_sized_export(&info, sizeof(info), out);
    return EW_OK;
}

static ew_err describe(const struct ew_graph *g, const int *values, int n, int i,
                       struct ew_port *out)
{
    EW_CHECK(i >= 0 && i < n, EW_ERR_ARG, "%s %d of an engine with %d",
             values == g->inputs ? "input" : "output", i, n);
    const struct ew_value *v = &g->values[values[i]];
    *out = (struct ew_port){.name = v->name,
                            .dtype = ew_dtype_name(v->t.dtype),
                            .rank = v->t.shape.rank,
                            .channels_last = v->channels_last};
    for (int d = 0; d < out->rank; d++)
        out->dims[d] = v->t.shape.dim[d];
    return EW_OK;
}

ew_err ew_port_of_input(const struct ew_graph *g, int i, struct ew_port *out)
{
    return describe(g, g->inputs, g->n_inputs, i, out);
}

ew_err ew_port_of_output(const struct ew_graph *g, int i, struct ew_port *out)
{
    return describe(g, g->outputs, g->n_outputs, i, out);
}

EW_API ew_err ew_engine_input(const struct ew_engine *e, int i, struct ew_port *out)
{
    EW_C_LOCALE;
    EW_NEED(e);
    EW_NEED(out);
    return ew_port_of_input(e->file.graph, i, out);
}

EW_API ew_err ew_engine_output(const struct ew_engine *e, int i, struct ew_port *out)
{
    EW_C_LOCALE;
    EW_NEED(e);
    EW_NEED(out);
    return ew_port_of_output(e->file.graph, i, out);
}

EW_API const char *ew_engine_class(const struct ew_engine *e, int i)
{
    if (!e)
        return "";
    return i >= 0 && i < e->file.card.n_classes ? e->file.card.classes[i] : "";
}
