/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of bench --device dpu. */
#include "cli/bench_dpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/dpu/dpu_model.h"
#include "base/json.h"
#include "cli/bench_sweep.h"
#include "cli/recorded.h"
#include "report/text_table.h"

const char *ew_dpu_device(void)
{
    const char *device = getenv("EW_DEVICE");
    return device && strncmp(device, "dpu", 3) == 0 && strchr(":,", device[3]) ? device : NULL;
}

const char *ew_dpu_arguments(const char *device)
{
    return device + 3 + (device[3] != '\0');
}

/* ---- One network ---- */

static const char *bound_text(const struct ew_dpu_net *n, const struct ew_dpu_layer *l)
{
    if (l->unit == EW_DPU_HOST)
        return l->reason;
    if (l->fused_into >= 0)
        return "";
    return l->ddr_bound ? "DDR" : "arithmetic";
}

static void print_layer(const struct ew_dpu_net *n, const struct ew_dpu_layer *l,
                        const struct ew_dpu_config *c, struct ew_table *t)
{
    const double peak =
        (double)c->arch->pp * c->arch->icp * c->arch->ocp * c->clock_mhz * 1e6 * l->seconds;
    ew_table_cell(t, "%s", l->name);
    ew_table_cell(t, "%s", l->op);
    ew_table_cell(t, "%s", ew_dpu_unit_names[l->unit]);
    ew_table_cell(t, "%lldx%lldx%lld", (long long)l->out_h, (long long)l->out_w,
                  (long long)l->out_c);
    if (l->fused_into >= 0) {
        ew_table_count(t, l->ticks);
        for (int i = 0; i < 3; i++)
            ew_table_cell(t, "%s", "");
        ew_table_cell(t, "with %s", n->layers[l->fused_into].name);
        return;
    }
    ew_table_count(t, l->ticks);
    ew_table_cell(t, "%.1f", (double)(l->load_bytes + l->store_bytes) / 1024);
    ew_table_cell(t, "%.1f", l->seconds * 1e6);
    if (l->macs && l->unit != EW_DPU_HOST)
        ew_table_cell(t, "%.0f%%", 100 * (double)l->macs / peak);
    else
        ew_table_cell(t, "%s", "");
    ew_table_cell(t, "%s", bound_text(n, l));
}

static ew_err print_layers(const struct ew_dpu_net *n, const struct ew_dpu_config *c)
{
    static const char *const head[] = {"layer",   "op", "unit",       "output",  "ticks",
                                       "DDR KiB", "us", "efficiency", "bound by"};
    struct ew_table t;
    ew_table_init(&t, "llllrrrrl");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int k = 0; k < n->n_layers; k++)
        print_layer(n, &n->layers[k], c, &t);
    return ew_table_print(&t, stdout);
}

static void print_sums(const char *what, const struct ew_dpu_config *c,
                       const struct ew_dpu_times *r)
{
    char text[96];
    ew_dpu_config_text(c, text, sizeof(text));
    printf("\n%s on %s, %g GB/s of DDR; all modelled, nothing was run\n", what, text, c->ddr_gb_s);
    printf("core:       %.3f ms, %.1f %% of the multipliers' peak; %d layers, %.3f GMAC\n",
           1e3 * r->core_s, 100 * r->efficiency, r->layers, (double)r->macs * 1e-9);
    printf("DDR:        %.2f MiB loaded (%.2f of weights), %.2f MiB stored\n",
           (double)r->load_bytes / 0x1p20, (double)r->weight_bytes / 0x1p20,
           (double)r->store_bytes / 0x1p20);
    if (r->host_layers)
        printf("host:       %d layers, %.3f ms (assumed: 5 GFLOP/s)\n", r->host_layers,
               1e3 * r->layers_host_s);
    printf("latency:    %.3f ms with one thread, of which %.2f are the host's pre- and "
           "post-processing: %.1f images/s\n",
           1e3 * r->latency_s, 1e3 * r->host_s, 1 / r->latency_s);
    printf("throughput: %.1f images/s with several threads, %.3f ms per core with %d busy\n",
           r->images_s, 1e3 * r->shared_s, c->cores);
    if (r->watts_one > 0)
        printf("power:      %.1f W with one thread, %.1f mJ an image; %.1f W with all cores, %.2f "
               "images/s/W\n",
               r->watts_one, 1e3 * r->watts_one * r->latency_s, r->watts_all,
               r->images_s / r->watts_all);
    else
        printf("power:      absent, no published figures for %s\n", c->board->title);
}

static void json_layer(struct ew_json *j, const struct ew_dpu_net *n, const struct ew_dpu_layer *l)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "name", l->name);
    ew_json_str(j, "op", l->op);
    ew_json_str(j, "unit", ew_dpu_unit_names[l->unit]);
    ew_json_str(j, "reason", l->reason);
    ew_json_str(j, "with", l->fused_into >= 0 ? n->layers[l->fused_into].name : NULL);
    ew_json_int(j, "macs", l->macs);
    ew_json_int(j, "ticks", l->ticks);
    ew_json_int(j, "load_bytes", l->load_bytes);
    ew_json_int(j, "store_bytes", l->store_bytes);
    ew_json_num(j, "us", 1e6 * l->seconds);
    ew_json_bool(j, "ddr_bound", l->ddr_bound);
    ew_json_end(j);
}

void ew_dpu_json_times(struct ew_json *j, const struct ew_dpu_config *c,
                       const struct ew_dpu_times *r)
{
    ew_json_str(j, "quality", "modelled");
    ew_json_str(j, "arch", c->arch->name);
    ew_json_str(j, "board", c->board->name);
    ew_json_int(j, "cores", c->cores);
    ew_json_num(j, "clock_mhz", c->clock_mhz);
    ew_json_num(j, "ddr_gb_s", c->ddr_gb_s);
    ew_json_num(j, "core_ms", 1e3 * r->core_s);
    ew_json_num(j, "latency_ms", 1e3 * r->latency_s);
    ew_json_num(j, "images_s_one_thread", 1 / r->latency_s);
    ew_json_num(j, "images_s", r->images_s);
    ew_json_num(j, "efficiency", r->efficiency);
    ew_json_int(j, "load_bytes", r->load_bytes);
    ew_json_int(j, "store_bytes", r->store_bytes);
    ew_json_int(j, "weight_bytes", r->weight_bytes);
    ew_json_int(j, "host_layers", r->host_layers);
    if (r->watts_all > 0)
        ew_json_num(j, "images_s_w", r->images_s / r->watts_all);
    else
        ew_json_null(j, "images_s_w");
}

static ew_err print_json(const char *what, const struct ew_dpu_net *n,
                         const struct ew_dpu_config *c, const struct ew_dpu_times *r)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "network", what);
    ew_dpu_json_times(&j, c, r);
    ew_json_array(&j, "layers");
    for (int k = 0; k < n->n_layers; k++)
        json_layer(&j, n, &n->layers[k]);
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* Records the run if `db` names a store. */
static ew_err keep(const struct ew_cmd_call *c, const char *db, const struct ew_graph *g,
                   const struct ew_dpu_config *config, const struct ew_dpu_times *t)
{
    struct ew_recording rec;
    struct ew_facts facts;
    EW_TRY(ew_cmd_record(c, db, &rec));
    ew_err e = ew_graph_facts(g, &facts);
    if (e == EW_OK)
        e = ew_dpu_record(&rec, &facts, config, t);
    return ew_recording_end(&rec, e);
}

static ew_err show(const struct ew_cmd_call *c, const char *what, struct ew_dpu_net *n,
                   const struct ew_dpu_config *config, const struct ew_dpu_times *t)
{
    if (c->json)
        return print_json(what, n, config, t);
    EW_TRY(print_layers(n, config));
    print_sums(what, config, t);
    return EW_OK;
}

/* ---- Several ---- */

static void print_line(const char *what, struct ew_dpu_net *n, const struct ew_dpu_config *config,
                       struct ew_table *t)
{
    struct ew_dpu_times r;
    ew_dpu_time(n, config, &r);
    ew_table_cell(t, "%s", what);
    ew_table_cell(t, "%.3f", (double)r.macs * 1e-9);
    ew_table_cell(t, "%.3f", 1e3 * r.core_s);
    ew_table_cell(t, "%.1f%%", 100 * r.efficiency);
    ew_table_cell(t, "%.3f", 1e3 * r.latency_s);
    ew_table_cell(t, "%.1f", r.images_s);
    ew_table_cell(t, "%d", r.host_layers);
}

static ew_err each(const struct ew_cmd_call *c, const struct ew_dpu_opts *o, int arg,
                   const struct ew_dpu_config *config, struct ew_table *t)
{
    const struct ew_network_open_opts how = {.opts = o->net, .seed = 1, .shapes = true};
    struct ew_network net;
    struct ew_dpu_net n = {0};
    struct ew_dpu_times times;
    ew_err e = ew_network_open(c->args[arg], &how, &net);
    if (e == EW_OK)
        e = ew_dpu_net_init(net.graph, &n);
    if (e == EW_OK && t)
        print_line(c->args[arg], &n, config, t);
    else if (e == EW_OK && o->sweep)
        e = ew_bench_sweep(c, &n, config, o->picture);
    else if (e == EW_OK) {
        ew_dpu_time(&n, config, &times);
        e = keep(c, o->db, net.graph, config, &times);
        if (e == EW_OK)
            e = show(c, c->args[arg], &n, config, &times);
    }
    ew_dpu_net_fini(&n);
    ew_network_close(&net);
    return e;
}

static ew_err several(const struct ew_cmd_call *c, const struct ew_dpu_opts *o,
                      const struct ew_dpu_config *config)
{
    static const char *const head[] = {"network",    "GMAC",     "core ms",    "efficiency",
                                       "latency ms", "images/s", "host layers"};
    struct ew_table t;
    char text[96];
    ew_table_init(&t, "lrrrrrr");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < c->n_args && t.err == EW_OK; i++)
        t.err = each(c, o, i, config, &t);
    EW_TRY(ew_table_print(&t, stdout));
    ew_dpu_config_text(config, text, sizeof(text));
    printf("%s; all modelled, nothing was run\n", text);
    return EW_OK;
}

ew_err ew_bench_dpu(const struct ew_cmd_call *c, const struct ew_dpu_opts *o)
{
    struct ew_dpu_config config;
    EW_TRY(ew_dpu_config_parse(ew_dpu_arguments(o->device), &config));
    EW_CHECK(o->net.batch <= 1, EW_ERR_USAGE, "a DPU takes one image at a time: --batch 1");
    EW_CHECK(c->n_args >= 1, EW_ERR_USAGE, "bench needs a network");
    EW_CHECK(c->n_args == 1 || (!o->sweep && !c->json && !o->db), EW_ERR_USAGE,
             "--sweep, --db and --json are for one network");
    EW_CHECK(!o->sweep || !o->db, EW_ERR_USAGE, "--db keeps one configuration, not a --sweep");
    return c->n_args == 1 ? each(c, o, 0, &config, NULL) : several(c, o, &config);
}
