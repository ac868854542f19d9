/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise info` for an engine: source, target, sizes. */
#include "cli/info_engine.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "engine/engine.h"
#include "report/text_table.h"

/* ---- Kernels: each name once, with how many nodes it runs ---- */

#define MAX_KERNELS 64

struct kernels {
    const char *name[MAX_KERNELS];
    int count[MAX_KERNELS], n;
};

static void count_kernels(const struct ew_engine *e, struct kernels *k)
{
    *k = (struct kernels){.n = 0};
    for (int i = 0; i < e->file.graph->n_nodes; i++) {
        const char *name = e->file.choices[i];
        int at = 0;
        while (name && at < k->n && strcmp(k->name[at], name) != 0)
            at++;
        if (!name || at == MAX_KERNELS)
            continue;
        k->name[at] = name;
        k->count[at]++;
        k->n = at == k->n ? k->n + 1 : k->n;
    }
}

/* ---- Ports ---- */

static const char *port_text(const struct ew_port *p, char *buf, size_t size)
{
    struct ew_shape s = {.rank = p->rank};
    char shape[EW_SHAPE_TEXT];
    for (int i = 0; i < p->rank; i++)
        s.dim[i] = p->dims[i];
    snprintf(buf, size, "%s, %s of %s", p->name, ew_shape_text(&s, shape), p->dtype);
    return buf;
}

static void json_port(struct ew_json *j, const struct ew_port *p)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "name", p->name);
    ew_json_str(j, "dtype", p->dtype);
    ew_json_array(j, "shape");
    for (int i = 0; i < p->rank; i++)
        ew_json_int(j, NULL, p->dims[i]);
    ew_json_end(j);
    ew_json_bool(j, "channels_last", p->channels_last);
    ew_json_end(j);
}

/* ---- All of it ---- */

static ew_err print_text(const struct ew_engine *e, const struct ew_engine_info *i)
{
    char a[EW_TEXT_CHARS], text[512];
    struct ew_port port;
    struct kernels k;
    printf("%s, engine, %s, for %s %s, by edgewise %s\n", i->name, i->precision, i->arch, i->isa,
           i->program);
    for (int n = 0; n < i->n_inputs; n++) {
        EW_TRY(ew_engine_input(e, n, &port));
        printf("input        %s\n", port_text(&port, text, sizeof(text)));
    }
    for (int n = 0; n < i->n_outputs; n++) {
        EW_TRY(ew_engine_output(e, n, &port));
        printf("output       %s\n", port_text(&port, text, sizeof(text)));
    }
    printf("batch        %lld", (long long)i->batch_min);
    if (i->batch_max > i->batch_min)
        printf(" to %lld", (long long)i->batch_max);
    printf("\n");
    printf("parameters   %s\n", ew_text_count(i->params, a));
    printf("FLOPs        %s, one image\n", ew_text_count(i->flops, a));
    printf("CDL          %lld\n", (long long)i->cdl);
    if (i->n_classes)
        printf("classes      %d named: %s ...\n", i->n_classes, ew_engine_class(e, 0));
    else
        printf("classes      without names\n");
    printf("file         %s\n", ew_text_bytes(i->file_bytes, a));
    printf("packed       %s, read by inference%s\n", ew_text_bytes(i->packed_bytes, a),
           i->repacked ? "; packed again for this machine" : ", from the file itself");
    printf("activations  %s per context, at batch %lld\n", ew_text_bytes(i->activation_bytes, a),
           (long long)i->batch_max);
    count_kernels(e, &k);
    printf("kernels     ");
    for (int n = 0; n < k.n; n++)
        printf("%s %d %s", n ? "," : "", k.count[n], k.name[n]);
    printf("\n");
    return EW_OK;
}

static ew_err print_json(const struct ew_engine *e, const struct ew_engine_info *i)
{
    struct ew_json j;
    struct ew_port port;
    struct kernels k;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", i->name);
    ew_json_str(&j, "form", "engine");
    ew_json_str(&j, "precision", i->precision);
    ew_json_str(&j, "program", i->program);
    ew_json_str(&j, "arch", i->arch);
    ew_json_str(&j, "isa", i->isa);
    ew_json_int(&j, "batch_min", i->batch_min);
    ew_json_int(&j, "batch_max", i->batch_max);
    ew_json_int(&j, "threads", i->threads);
    ew_json_int(&j, "params", i->params);
    ew_json_int(&j, "macs", i->macs);
    ew_json_int(&j, "flops", i->flops);
    ew_json_int(&j, "cdl", i->cdl);
    ew_json_int(&j, "classes", i->n_classes);
    ew_json_int(&j, "file_bytes", i->file_bytes);
    ew_json_int(&j, "packed_bytes", i->packed_bytes);
    ew_json_int(&j, "activation_bytes", i->activation_bytes);
    ew_json_bool(&j, "repacked", i->repacked);
    ew_json_array(&j, "inputs");
    for (int n = 0; n < i->n_inputs && ew_engine_input(e, n, &port) == EW_OK; n++)
        json_port(&j, &port);
    ew_json_end(&j);
    ew_json_array(&j, "outputs");
    for (int n = 0; n < i->n_outputs && ew_engine_output(e, n, &port) == EW_OK; n++)
        json_port(&j, &port);
    ew_json_end(&j);
    count_kernels(e, &k);
    ew_json_object(&j, "kernels");
    for (int n = 0; n < k.n; n++)
        ew_json_int(&j, k.name[n], k.count[n]);
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_info_engine(const struct ew_cmd_call *c, const char *path,
                      const struct ew_info_files *files)
{
    struct ew_engine *e;
    struct ew_engine_info info = {.size = sizeof(info)};
    EW_TRY(ew_engine_load(path, &e));
    ew_err err = ew_engine_info(e, &info);
    if (err == EW_OK)
        err = ew_info_write(e->file.graph, files);
    if (err == EW_OK)
        err = c->json ? print_json(e, &info) : print_text(e, &info);
    ew_engine_free(e);
    return err;
}
