/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks in two launches: layouts of activations and filters in shared and global memory,
 * and constants that the kernels need per layer. */
#include "backend/cuda/cuda_net.h"

static int rounded(int n)
{
    return (n + 3) / 4 * 4;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static struct ew_cuda_layout flat(int w, int c)
{
    return (struct ew_cuda_layout){.row = w * c, .column = c, .channel = 1};
}

/* A padded layout: pixel pitch and row pitch are chosen to reduce bank conflicts. */
static struct ew_cuda_layout spread(int w, int c, int left, int right)
{
    const int pitch = ew_cuda_pitch(c);
    return (struct ew_cuda_layout){.start = left * pitch,
                                   .row = (w + left + right) * pitch | 1,
                                   .column = pitch,
                                   .channel = 1,
                                   .left = left,
                                   .right = right};
}

/* Layout of a layer's input in shared memory. */
static struct ew_cuda_layout input_of(const struct ew_cuda_layer *l)
{
    if (ew_cuda_reads_flat(l))
        return flat(l->w, l->c);
    return l->slides ? spread(l->w, l->c, l->pw, larger(l->ow + l->kw - 1 - l->pw - l->w, 0))
                     : spread(l->w, l->c, 0, 0);
}

/* Row pitch of filters.  Threads read four filters at a time; sliding ones read two, with a pitch
 * that is not a multiple of 4, which reduces bank conflicts. */
static int filter_step(bool slides, int filters)
{
    const int even = (filters + 1) / 2 * 2;
    return !slides ? rounded(filters) : even % 4 ? even : even + 2;
}

static void plan_conv(struct ew_cuda_layer *l, bool is_flat)
{
    l->slides = l->sh == 1 && l->sw == 1 && (l->kw == 3 || l->kw == 5);
    l->slides_dy = l->slides && l->pw < l->kw && !is_flat;
    l->step = filter_step(l->slides, l->k);
    l->step_dy = filter_step(l->slides_dy, l->c);
}

/* Whether the consumer of layer i - 1 reads a flat vector. */
static bool is_flat_before(const struct ew_cuda_net *net, int i)
{
    return i == net->n || ew_cuda_reads_flat(&net->layers[i]);
}

/* Chooses the layout of a layer's output. */
static void place_output(struct ew_cuda_net *net, int i)
{
    struct ew_cuda_layer *l = &net->layers[i];
    if (is_flat_before(net, i + 1)) {
        l->kept = ew_cuda_is_turned(l) ? l->kept : flat(l->ow, l->k);
        l->y = l->dy = l->kept;
        return;
    }
    l->kept = (struct ew_cuda_layout){.row = l->ow, .column = 1, .channel = l->oh * l->ow};
    l->y = input_of(l + 1);
    l->dy = l->slides_dy ? spread(l->ow, l->k, l->kw - 1 - l->pw, larger(l->w - l->ow + l->pw, 0))
                         : spread(l->ow, l->k, 0, 0);
}

/* Whether a layer's output is needed later: as input of wgrad, or for the activation's derivative.
 * For a max pool without activation after an activated layer, the pool's output has the values that
 * determine the derivative below it, so that one is kept instead. */
static bool is_kept(const struct ew_cuda_net *net, int i)
{
    const struct ew_cuda_layer *l = &net->layers[i], *next = l + 1;
    const bool last = i + 1 == net->n;
    const bool plain_max = l->kind == EW_CUDA_LAYER_MAX && l->act.kind == EW_CUDA_ACT_NONE;
    const bool told =
        !last && next->kind == EW_CUDA_LAYER_MAX && next->act.kind == EW_CUDA_ACT_NONE;
    return (!last && next->weights) || (l->act.kind != EW_CUDA_ACT_NONE && !told) ||
           (plain_max && i > 0 && l[-1].act.kind != EW_CUDA_ACT_NONE);
}

static void plan_layer(struct ew_cuda_net *net, int i)
{
    struct ew_cuda_layer *l = &net->layers[i];
    l->over_c = ew_cuda_over(l->c);
    l->over_w = ew_cuda_over(l->w);
    l->over_in = ew_cuda_over(l->h * l->w);
    l->over_ow = ew_cuda_over(l->ow);
    l->over_out = ew_cuda_over(l->oh * l->ow);
    l->over_taps = ew_cuda_over(larger(l->kh * l->kw, 1));
    l->tiles = l->sh == l->kh && l->sw == l->kw && l->oh * l->sh - l->ph >= l->h &&
               l->ow * l->sw - l->pw >= l->w;
    l->keeps = is_kept(net, i);
    if (l->kind == EW_CUDA_LAYER_CONV)
        plan_conv(l, is_flat_before(net, i + 1));
}

/* Floats for the activation before layer i.  Sliding convolutions read up to EW_CUDA_NET_SPAN
 * pixels beyond the last row. */
static int room_before(const struct ew_cuda_net *net, int i, const struct ew_cuda_layout *at)
{
    const struct ew_cuda_layer *l = &net->layers[i ? i - 1 : 0];
    const int h = i ? l->oh : l->h, count = i ? l->oh * l->ow * l->k : l->h * l->w * l->c;
    return is_flat_before(net, i) ? count : h * at->row + EW_CUDA_NET_SPAN * at->column;
}

bool ew_cuda_lay_out(struct ew_cuda_net *net, bool back)
{
    int filters = 0, most;
    for (int i = 0; i < net->n; i++)
        plan_layer(net, i);
    net->x_layout = input_of(&net->layers[0]);
    most = room_before(net, 0, &net->x_layout);
    for (int i = 0; i < net->n; i++) {
        struct ew_cuda_layer *l = &net->layers[i];
        place_output(net, i);
        most = larger(most, room_before(net, i + 1, &l->y));
        most = larger(most, back ? room_before(net, i + 1, &l->dy) : 0);
        if (l->kind == EW_CUDA_LAYER_CONV) {
            filters = larger(filters, l->kh * l->kw * l->c * l->step + l->k);
            filters = larger(filters, back ? l->kh * l->kw * l->k * l->step_dy : 0);
        } else if (l->kind == EW_CUDA_LAYER_DENSE && (back || l->w_turned)) {
            filters = larger(filters, EW_CUDA_NET_PARTS);
        }
    }
    net->value_room = rounded(most);
    net->filter_floats = rounded(filters);
    net->place_bytes = back ? net->place_bytes : 0;
    return ew_cuda_net_bytes(net) <= EW_CUDA_NET_BYTES;
}
