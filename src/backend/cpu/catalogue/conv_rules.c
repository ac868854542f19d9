/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of the kernels for convolutions and dense layers. */
#include "backend/cpu/catalogue/conv_rules.h"

#include <math.h>

#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/step/conv_step.h"
#include "backend/cpu/step/fused_grads_step.h"
#include "backend/cpu/step/sparse_step.h"

bool ew_if_training(const struct ew_kernel_case *c)
{
    return c->c->train;
}

bool ew_if_inference(const struct ew_kernel_case *c)
{
    return !c->c->train;
}

bool ew_if_relu_at_most(const struct ew_kernel_case *c)
{
    return ew_conv_trains(c->c);
}

bool ew_if_contiguous(const struct ew_kernel_case *c)
{
    return c->shape.y_step == 0;
}

bool ew_if_no_input_norm(const struct ew_kernel_case *c)
{
    return !c->shape.input_norm;
}

bool ew_if_no_fused_norm(const struct ew_kernel_case *c)
{
    return !(c->c->roles & (EW_ROLE_INPUT_NORM | EW_ROLE_OUTPUT_NORM_GRAD));
}

bool ew_if_depthwise(const struct ew_kernel_case *c)
{
    return ew_conv_fits(c->k, EW_CONV_DEPTHWISE, &c->shape);
}

bool ew_if_grouped(const struct ew_kernel_case *c)
{
    return ew_conv_fits(c->k, EW_CONV_GROUPED, &c->shape) &&
           (!c->c->train || ew_conv_trains_grouped(&c->shape));
}

bool ew_if_batch_lanes(const struct ew_kernel_case *c)
{
    return ew_conv_fits(c->k, EW_CONV_BATCH_LANES, &c->shape);
}

bool ew_if_pixel_lanes(const struct ew_kernel_case *c)
{
    return ew_conv_fits(c->k, EW_CONV_PIXEL_LANES, &c->shape);
}

bool ew_if_input_lanes(const struct ew_kernel_case *c)
{
    return ew_conv_fits(c->k, EW_CONV_INPUT_LANES, &c->shape);
}

bool ew_if_winograd(const struct ew_kernel_case *c)
{
    return ew_conv_fits(c->k, EW_CONV_WINOGRAD, &c->shape);
}

/* winograd_pays also requires enough channels: false only if that is why it does not pay. */
bool ew_if_winograd_wide(const struct ew_kernel_case *c)
{
    return ew_if_winograd_wins(c) || ew_conv_winograd_cycles(c) >= ew_conv_gemm_cycles(c);
}

bool ew_if_winograd_wins(const struct ew_kernel_case *c)
{
    return c->k->winograd_pays(&c->shape, c->c->train);
}

bool ew_if_plain_filters(const struct ew_kernel_case *c)
{
    return !c->c->train && c->shape.axis[1].stride == 1;
}

/* Transformed filters are used if they take less than WORTH_BYTES more than plain ones, or if fewer
 * than WORTH_TILES image tiles share a filter's transform and plain filters take less than
 * FAR_BYTES. Beyond that, filters come from memory, and reading fewer bytes is faster. */
#define WORTH_BYTES ((size_t)3 << 20)
#define WORTH_TILES 64
#define FAR_BYTES   ((size_t)16 << 20)

/* Transformed Winograd filters take up to four times the bytes of plain ones.  Transforming plain
 * filters at each run costs 10 to 25 % of a layer's time if many image tiles share each filter,
 * more if few do.  Tiles are counted for one sample, so that all batch sizes choose the same
 * kernel. */
bool ew_if_worth_the_bytes(const struct ew_kernel_case *c)
{
    struct ew_conv_shape plain = c->shape;
    const int64_t samples = c->c->in[0]->shape.rank ? c->c->in[0]->shape.dim[0] : 1;
    if (!ew_if_plain_filters(c) || !ew_if_winograd(c))
        return true;
    plain.late_transform = true;
    const size_t transformed = ew_conv_packed_bytes(c->k, EW_CONV_WINOGRAD, &c->shape);
    const size_t bytes = ew_conv_packed_bytes(c->k, EW_CONV_WINOGRAD, &plain);
    const struct ew_conv_axis *a = c->shape.axis;
    const int64_t images = (int64_t)c->shape.batch * a[0].out / ew_max_i64(samples, 1);
    const int64_t tiles = images * ((a[1].out + 3) / 4) * ((a[2].out + 3) / 4); /* 4x4 each */
    return transformed < bytes + WORTH_BYTES || (tiles < WORTH_TILES && bytes < FAR_BYTES);
}

bool ew_if_winograd_5x5(const struct ew_kernel_case *c)
{
    return c->k->winograd_5x5_pays(&c->shape);
}

bool ew_if_tap_pairs(const struct ew_kernel_case *c)
{
    return c->k->tap_pairs_pays(&c->shape);
}

bool ew_if_gemm_input(const struct ew_kernel_case *c)
{
    return ew_if_no_input_norm(c) || (ew_if_contiguous(c) && !ew_if_depthwise(c));
}

bool ew_if_wide_product(const struct ew_kernel_case *c)
{
    return c->k->sparse_fits(&c->shape);
}

bool ew_if_sparse_grads(const struct ew_kernel_case *c)
{
    return ew_if_wide_product(c) || ew_scatter_grad_worth(c->query, &c->shape);
}

bool ew_if_not_tap_pairs(const struct ew_kernel_case *c)
{
    return !ew_if_no_fused_norm(c) || !ew_if_tap_pairs(c);
}

bool ew_if_fused_1x1(const struct ew_kernel_case *c)
{
    return c->shape.groups == 1 && ew_fused_grads_pays(c->c, &c->shape, c->relu);
}

bool ew_if_fused_depthwise(const struct ew_kernel_case *c)
{
    return c->shape.groups > 1 && ew_fused_grads_pays(c->c, &c->shape, c->relu);
}

/* ---- The data gradients of ew_conv_backward_kernel ---- */

static bool has_dgrad(const struct ew_kernel_case *c, enum ew_conv_method m)
{
    struct ew_conv_shape shape;
    return ew_conv_dgrad_method(c->k, &c->shape, &shape) == m;
}

bool ew_if_grouped_dgrad(const struct ew_kernel_case *c)
{
    return has_dgrad(c, EW_CONV_GROUPED_DGRAD);
}

bool ew_if_batch_lanes_dgrad(const struct ew_kernel_case *c)
{
    return has_dgrad(c, EW_CONV_BATCH_LANES_DGRAD);
}

bool ew_if_winograd_dgrad(const struct ew_kernel_case *c)
{
    return has_dgrad(c, EW_CONV_WINOGRAD_DGRAD);
}

/* ---- Estimates ---- */

double ew_conv_gemm_cycles(const struct ew_kernel_case *c)
{
    return c->k->conv_cycles(&c->shape, c->c->train);
}

double ew_conv_winograd_cycles(const struct ew_kernel_case *c)
{
    return c->k->winograd_cycles(&c->shape, c->c->train);
}

double ew_conv_winograd_plain_cycles(const struct ew_kernel_case *c)
{
    struct ew_conv_shape plain = c->shape;
    plain.late_transform = true;
    return c->k->winograd_cycles(&plain, c->c->train);
}

static bool wants(const struct ew_kernel_case *c, int gradient)
{
    return c->c->din && c->c->din[gradient];
}

static double with_wgrad(const struct ew_kernel_case *c, double dgrad)
{
    return (wants(c, 0) ? dgrad : 0) + (wants(c, 1) ? ew_conv_wgrad_cycles(c->k, &c->shape) : 0);
}

double ew_conv_gemm_grads_cycles(const struct ew_kernel_case *c)
{
    return with_wgrad(c, c->k->conv_cycles(&c->shape, true));
}

double ew_conv_winograd_grads_cycles(const struct ew_kernel_case *c)
{
    struct ew_conv_shape mirrored;
    ew_conv_dgrad_method(c->k, &c->shape, &mirrored);
    return with_wgrad(c, c->k->winograd_cycles(&mirrored, true));
}

/* Winograd packs (m + r - 1)^2 values for each filter, implicit GEMM r^2, and both pad output
 * channels alike, so the ratio of the packed sizes gives the form.  With a stride, taps are blocks
 * of stride x stride pixels (kernel/winograd/winograd.h). */
const char *ew_conv_winograd_form(const struct ew_kernel_case *c)
{
    static const char *const forms[][3] = {{"F(2x2,3x3)", "F(2x2,4x4)", "F(2x2,5x5)"},
                                           {"F(4x4,3x3)", "F(4x4,4x4)", "F(4x4,5x5)"}};
    struct ew_conv_shape s = c->shape;
    const struct ew_conv_axis *y = &s.axis[1], *x = &s.axis[2];
    s.unpacked = false;
    const double gemm = (double)c->k->conv_pack_size(&s) / (y->taps * x->taps);
    const double products = (double)c->k->winograd_pack_size(&s) / (gemm * (y->stride * x->stride));
    const int taps = (y->taps + y->stride - 1) / y->stride;
    /* With taps in time, channels are padded to whole vectors: the ratio is too large, but by less
     * than a factor of 2. */
    const bool in_time = s.axis[0].taps > 1;
    const long outputs = in_time ? 2 + 2 * (products >= (taps + 3) * (taps + 3) - 0.5)
                                 : lround(sqrt(products)) - taps + 1;
    const bool known = taps >= 3 && taps <= 5 && (outputs == 2 || outputs == 4);
    return known ? forms[outputs == 4][taps - 3] : NULL;
}
