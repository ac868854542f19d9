/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a network: the picture of graph_svg.c, figures of each box as JSON, and the script
 * that colours, zooms and lists them (share/report/graph.js). */
#include "report/graph_page.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "record/record.h"
#include "report/graph_boxes.h"
#include "report/html.h"
#include "report/page.h"

/* Figures of one box: sums over the nodes drawn in it. */
struct box_facts {
    int64_t params, macs, flops, weight_bytes, out_bytes;
    const char *precision; /* of what enters its first node */
    const char *kernel;
    double us;
    bool timed;
    int nodes;
};

/* ---- Facts ---- */

static int64_t value_bytes(const struct ew_value *v)
{
    return ew_tensor_count(&v->t) * (int64_t)ew_dtype_size(v->t.dtype);
}

static void add_node(const struct ew_graph *g, const struct ew_node *n, const struct ew_cost *c,
                     struct box_facts *f)
{
    f->params += c->params;
    f->macs += c->macs;
    f->flops += c->flops;
    for (int i = 0; i < n->n_in; i++) {
        const struct ew_value *v = n->in[i] >= 0 ? &g->values[n->in[i]] : NULL;
        if (v && v->kind == EW_VALUE_PARAM)
            f->weight_bytes += value_bytes(v);
    }
    if (f->nodes++ == 0 && n->n_in && n->in[0] >= 0)
        f->precision = ew_dtype_name(g->values[n->in[0]].t.dtype);
    f->out_bytes = n->n_out && n->out[0] >= 0 ? value_bytes(&g->values[n->out[0]]) : 0;
}

static int by_name(const void *a, const void *b)
{
    const struct ew_graph_time *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Adds the time of every step of this name; false: there is none. */
static bool add_times(const struct ew_graph_time *sorted, int n, const char *name,
                      struct box_facts *f)
{
    const struct ew_graph_time key = {.name = name};
    const struct ew_graph_time *at =
        n ? bsearch(&key, sorted, (size_t)n, sizeof(*sorted), by_name) : NULL;
    if (!at)
        return false;
    while (at > sorted && strcmp(at[-1].name, name) == 0)
        at--;
    for (; at < sorted + n && strcmp(at->name, name) == 0; at++) {
        f->us += at->us;
        f->kernel = f->kernel ? f->kernel : at->kernel;
    }
    f->timed = true;
    return true;
}

static ew_err collect(const struct ew_graph *g, const struct ew_drawing *d,
                      const struct ew_graph_times *t, struct box_facts *out)
{
    const int n = t ? t->n : 0;
    struct ew_cost total;
    EW_CLEANUP(ew_free_ptr) struct ew_cost *each = calloc((size_t)g->n_nodes + 1, sizeof(*each));
    EW_CLEANUP(ew_free_ptr)
    struct ew_graph_time *sorted = calloc((size_t)n + 1, sizeof(*sorted));
    EW_CHECK(each && sorted, EW_ERR_MEMORY, "no memory for the page of %s", g->name);
    if (n)
        memcpy(sorted, t->steps, (size_t)n * sizeof(*sorted));
    qsort(sorted, (size_t)n, sizeof(*sorted), by_name);
    EW_TRY(ew_graph_cost(g, &total, each));
    for (int k = 0; k < g->n_nodes; k++) {
        if (d->node_box[k] < 0)
            continue;
        struct box_facts *f = &out[d->node_box[k]];
        add_node(g, &g->nodes[k], &each[k], f);
        add_times(sorted, n, g->nodes[k].name, f);
    }
    return EW_OK;
}

/* ---- Writing ---- */

static void json_box(struct ew_json *j, const struct ew_box *b, const struct box_facts *f)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "title", b->title);
    ew_json_str(j, "name", b->name);
    ew_json_str(j, "shape", b->shape);
    if (b->kind != EW_BOX_END) {
        ew_json_int(j, "params", f->params);
        ew_json_int(j, "macs", f->macs);
        ew_json_int(j, "flops", f->flops);
        ew_json_int(j, "weights", f->weight_bytes);
        ew_json_int(j, "output", f->out_bytes);
        ew_json_str(j, "precision", f->precision);
    }
    if (f->timed) {
        ew_json_num(j, "us", f->us);
        ew_json_str(j, "kernel", f->kernel);
    }
    ew_json_end(j);
}

static ew_err write_data(const struct ew_drawing *d, const struct box_facts *facts,
                         const struct ew_graph_times *t, FILE *out)
{
    struct ew_json j;
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    ew_json_init_text(&j, &text);
    j.compact = true;
    ew_json_object(&j, NULL);
    double all = 0;
    for (int i = 0; t && i < t->n; i++)
        all += t->steps[i].us;
    if (t && t->n)
        ew_json_num(&j, "us", all);
    ew_json_array(&j, "boxes");
    for (int i = 0; i < d->n_boxes; i++)
        json_box(&j, &d->boxes[i], &facts[i]);
    ew_json_end(&j);
    ew_json_end(&j);
    EW_TRY(ew_json_finish(&j));
    fputs("<script type=\"application/json\" id=\"graph\">", out);
    ew_html_json(out, text);
    fputs("</script>", out);
    return EW_OK;
}

static void asset(const char *file, FILE *out)
{
    size_t size = 0;
    const unsigned char *bytes = ew_asset(file, &size);
    if (bytes)
        fwrite(bytes, 1, size, out);
}

static ew_err write_page(const struct ew_graph *g, const struct ew_drawing *d,
                         const struct ew_graph_times *t, FILE *out)
{
    char nonce[EW_RUN_UID_CHARS], now[EW_RUN_TIME_CHARS];
    EW_CLEANUP(ew_free_ptr)
    struct box_facts *facts = calloc((size_t)d->n_boxes + 1, sizeof(*facts));
    EW_CHECK(facts, EW_ERR_MEMORY, "no memory for the page of %s", g->name);
    EW_TRY(collect(g, d, t, facts));
    EW_TRY(ew_run_new_uid(nonce));
    ew_run_time_text(now);
    ew_page_head(g->name, nonce, out);
    fputs("<style>", out);
    asset("graph_style.css", out);
    fputs("</style><div id=\"app\"><aside><h1>", out);
    ew_html_text(out, g->name);
    fputs("</h1><p id=\"where\">", out);
    if (t && t->where)
        ew_html_text(out, t->where);
    else
        fputs("Sizes and arithmetic; <code>edgewise bench NET --html FILE</code> adds times.", out);
    fputs("</p><div id=\"controls\"></div><div id=\"scale\"></div><div id=\"detail\"></div>"
          "<ol id=\"list\"></ol>",
          out);
    fprintf(out, "<footer>Made by Edgewise %s at %s.</footer></aside><div id=\"view\">",
            ew_version(), now);
    EW_TRY(ew_drawing_svg(g, d, true, out));
    fputs("</div></div>", out);
    EW_TRY(write_data(d, facts, t, out));
    fprintf(out, "<script nonce=\"%s\">", nonce);
    asset("graph.js", out);
    fputs("</script></body></html>\n", out);
    return EW_OK;
}

ew_err ew_graph_page(const struct ew_graph *g, const struct ew_graph_times *times, FILE *out)
{
    EW_C_LOCALE;
    struct ew_drawing d;
    ew_err e = ew_drawing_make(g, &d);
    if (e == EW_OK)
        e = write_page(g, &d, times, out);
    ew_drawing_fini(&d);
    return e;
}

ew_err ew_graph_page_save(const struct ew_graph *g, const struct ew_graph_times *times,
                          const char *path)
{
    struct ew_file_out o;
    EW_TRY(ew_file_out_open(path, &o));
    const ew_err e = ew_graph_page(g, times, o.f);
    if (e == EW_OK)
        return ew_file_out_commit(&o);
    ew_file_out_abort(&o);
    return ew_fail_in(e, "%s", path);
}
