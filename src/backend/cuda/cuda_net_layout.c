/* SPDX-License-Identifier: Apache-2.0 */
/* Whole small networks: where the values of a chain of layers lie, in a block's shared memory and
 * in that of the device, and what kernels want to know about its layers beforehand. */
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

/* Pixels, and rows, begin where their neighbours are in other banks. */
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

/* The input of a layer in shared memory. */
static struct ew_cuda_layout input_of(const struct ew_cuda_layer *l)
{
    if (ew_cuda_reads_flat(l))
        return flat(l->w, l->c);
    return l->slides ? spread(l->w, l->c, l->pw, larger(l->ow + l->kw - 1 - l->pw - l->w, 0))
                     : spread(l->w, l->c, 0, 0);
}

/* Threads read filters by fours; by twos where they slide, and then their positions lie in other
 * banks. */
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

/* Whether what stands before layer i is read one element after the other. */
static bool is_flat_before(const struct ew_cuda_net *net, int i)
{
    return i == net->n || ew_cuda_reads_flat(&net->layers[i]);
}

/* Where the output of a layer lies. */
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

/* Outputs that are read later: as inputs of weights, or for slopes.  A max pool without activation
 * has those of the layer below it that count. */
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

/* Floats of an activation before layer i; where filters slide, threads read beyond the end of its
 * last row. */
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
