/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of `edgewise run`: tensors, images, or random numbers. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "cli/run_io.h"
#include "data/clip_file.h"
#include "format/tensor_file.h"
#include "graph/layout.h"

/* ---- Files ---- */

static ew_err looks_like_image(const char *path, bool *out)
{
    unsigned char head[8] = {0};
    int fd;
    EW_TRY(ew_file_open(path, &fd)); /* reports why it cannot be read */
    close(fd);
    *out = ew_image_is(head, ew_file_head(path, head, sizeof(head))) || ew_clip_is(path);
    return EW_OK;
}

ew_err ew_run_check_order(const char *network)
{
    unsigned char head[8] = {0};
    const size_t n = ew_file_head(network, head, sizeof(head));
    EW_CHECK(!ew_image_is(head, n), EW_ERR_USAGE,
             "%s is an image; the network comes first: edgewise run NETWORK %s", network, network);
    return EW_OK;
}

/* Parses "NAME=FILE" or "FILE"; a '=' after a '/' belongs to the file name. */
static ew_err add_input(struct ew_run_inputs *in, char *word)
{
    EW_CHECK(in->n < EW_RUN_INPUTS, EW_ERR_LIMIT, "more than %d inputs", EW_RUN_INPUTS);
    struct ew_run_input *it = &in->list[in->n++];
    char *eq = strchr(word, '='), *slash = strchr(word, '/');
    const bool named = eq && (!slash || eq < slash);
    if (named)
        *eq = '\0';
    it->name = named ? word : "";
    it->path = named ? eq + 1 : word;
    EW_TRY(looks_like_image(it->path, &it->is_image));
    if (it->is_image)
        return EW_OK;
    const char *inner;
    const ew_err e = ew_tensor_file_read(it->path, &in->arena, &it->t, &inner);
    EW_CHECK(e != EW_ERR_FORMAT, e, "%s: not a PNG, JPEG, video, .npy or .pb file, or damaged",
             it->path);
    return e;
}

ew_err ew_run_inputs_read(const char *const *words, int n, struct ew_run_inputs *out)
{
    out->n = 0;
    ew_arena_init(&out->arena);
    for (int i = 0; i < n; i++) {
        char *list = ew_arena_strdup(&out->arena, words[i]), *save = NULL;
        EW_CHECK(list, EW_ERR_MEMORY, "no memory");
        for (char *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save))
            EW_TRY(add_input(out, w));
    }
    return EW_OK;
}

void ew_run_inputs_fini(struct ew_run_inputs *in)
{
    ew_arena_fini(&in->arena);
}

/* ---- Networks for them ---- */

int ew_run_known(const struct ew_run_inputs *in, const int64_t *image,
                 struct ew_onnx_input out[EW_RUN_INPUTS])
{
    const struct ew_onnx_input open = {.rank = image ? 4 : -1, .dims = image};
    bool tensors = false;
    for (int i = 0; i < in->n; i++) {
        const struct ew_run_input *it = &in->list[i];
        out[i] = open;
        out[i].name = it->name;
        tensors = tensors || !it->is_image;
        if (!it->is_image)
            out[i] = (struct ew_onnx_input){.name = it->name,
                                            .dtype = ew_dtype_name(it->t.dtype),
                                            .rank = it->t.shape.rank,
                                            .dims = it->t.shape.dim,
                                            .data = it->t.data};
    }
    return tensors ? in->n : 0;
}

int64_t ew_run_batch(const struct ew_run_inputs *in)
{
    const bool tensor = in->n > 0 && !in->list[0].is_image && in->list[0].t.shape.rank > 0;
    return tensor ? in->list[0].t.shape.dim[0] : 1;
}

/* ---- Filling ---- */

/* The file for the graph's input i, or NULL. */
static struct ew_run_input *find(const struct ew_graph *g, int i, struct ew_run_inputs *in)
{
    for (int k = 0; k < in->n; k++)
        if (strcmp(in->list[k].name, g->values[g->inputs[i]].name) == 0)
            return &in->list[k];
    return i < in->n && !*in->list[i].name ? &in->list[i] : NULL;
}

/* Copies a tensor; NCHW tensors, made for the network's ONNX file, are transposed for our
 * channels-last networks. */
static ew_err copy_tensor(const struct ew_value *v, const struct ew_run_input *it,
                          struct ew_tensor *to)
{
    const struct ew_tensor *t = &it->t;
    char a[EW_SHAPE_TEXT], b[EW_SHAPE_TEXT];
    EW_CHECK(t->dtype == to->dtype, EW_ERR_TYPE, "%s: is %s, input %s takes %s", it->path,
             ew_dtype_name(t->dtype), v->name, ew_dtype_name(to->dtype));
    if (ew_shape_equal(&t->shape, &to->shape)) {
        memcpy(to->data, t->data, ew_tensor_bytes(t));
        return EW_OK;
    }
    static const int to_last[] = {0, 2, 3, 1};
    struct ew_tensor turned = *t;
    bool fits = v->channels_last && t->shape.rank == 4;
    for (int i = 0; fits && i < 4; i++)
        turned.shape.dim[i] = t->shape.dim[to_last[i]];
    EW_CHECK(fits && ew_shape_equal(&turned.shape, &to->shape), EW_ERR_SHAPE,
             "%s: is %s, input %s takes %s", it->path, ew_shape_text(&t->shape, a), v->name,
             ew_shape_text(&to->shape, b));
    ew_tensor_permute(t, to_last, to);
    return EW_OK;
}

static ew_err copy_image(const struct ew_network *net, const struct ew_value *v,
                         const struct ew_run_input *it, struct ew_tensor *to)
{
    struct ew_image_input *in;
    char text[EW_IMAGE_INPUT_CHARS];
    EW_TRY(ew_image_input_new(v, &net->card.prep, net->graph->name, &in));
    const ew_err e = ew_image_input_read(in, it->path, 0, to);
    if (e == EW_OK)
        EW_INFO("%s: %s", it->path, ew_image_input_text(in, text));
    ew_image_input_free(in);
    return e;
}

ew_err ew_run_fill(const struct ew_network *net, struct ew_plan *p, struct ew_run_inputs *in)
{
    const struct ew_graph *g = net->graph;
    for (int i = 0; i < g->n_inputs; i++) {
        const struct ew_value *v = &g->values[g->inputs[i]];
        struct ew_run_input *it = find(g, i, in);
        EW_CHECK(it, EW_ERR_USAGE, "no file for input %s", v->name);
        if (it->is_image)
            EW_TRY(copy_image(net, v, it, ew_plan_input(p, i)));
        else
            EW_TRY(copy_tensor(v, it, ew_plan_input(p, i)));
    }
    return EW_OK;
}

/* Standard normal numbers for floats; 0 or 1 for integers, which are mostly indices. */
ew_err ew_run_fill_random(const struct ew_graph *g, struct ew_plan *p, uint64_t seed)
{
    for (int i = 0; i < g->n_inputs; i++) {
        struct ew_tensor *t = ew_plan_input(p, i);
        const int64_t n = ew_tensor_count(t);
        for (int64_t k = 0; k < n; k++) {
            const double v = ew_dtype_is_float(t->dtype)
                                 ? ew_rng_normal(seed, (uint64_t)i, (uint64_t)k)
                                 : (double)(ew_rng_u64(seed, (uint64_t)i, (uint64_t)k) & 1);
            ew_tensor_store(t, k, 1, &v);
        }
    }
    return EW_OK;
}
