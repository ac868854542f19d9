/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels to a network's input: resize, take the middle, normalise, lay out. */
#include <math.h>

#include "format/image_input.h"

ew_err ew_image_input_size(const struct ew_tensor *in, bool channels_last, int64_t size[3])
{
    const struct ew_shape *s = &in->shape;
    char text[EW_SHAPE_TEXT];
    EW_CHECK((s->rank == 4 && s->dim[0] == 1) || s->rank == 3, EW_ERR_SHAPE,
             "an input of %s does not take one image", ew_shape_text(s, text));
    const int64_t *d = s->dim + s->rank - 3;
    size[0] = channels_last ? d[0] : d[1];
    size[1] = channels_last ? d[1] : d[2];
    size[2] = channels_last ? d[2] : d[0];
    EW_CHECK((size[2] == 1 || size[2] == 3) && size[0] > 0 && size[1] > 0, EW_ERR_SHAPE,
             "an input of %s is no image: %lld channels", ew_shape_text(s, text),
             (long long)size[2]);
    return EW_OK;
}

/* Where the window of the input lies on the image, and how far its pixels are apart there. */
struct window {
    double y0, x0, step;
};

static struct window place(const struct ew_tensor *image, const struct ew_image_prep *p,
                           const int64_t size[3])
{
    const double h = (double)image->shape.dim[0], w = (double)image->shape.dim[1];
    double grow = p->resize > 0 ? (double)p->resize / fmin(h, w) : 1;
    grow = fmax(grow, fmax((double)size[0] / h, (double)size[1] / w));
    struct window win = {.step = 1 / grow};
    /* The middle in whole pixels of the resized image, as other tools crop. */
    win.y0 = floor((round(h * grow) - (double)size[0]) / 2);
    win.x0 = floor((round(w * grow) - (double)size[1]) / 2);
    return win;
}

/* The image round (y, x) weighed by a triangle as wide as a pixel of the result, at least two of
 * the image: between pixels where the image grows, without aliasing where it shrinks. */
static double sample(const struct ew_tensor *image, double y, double x, double step, int64_t c)
{
    const uint8_t *pixel = image->data;
    const int64_t h = image->shape.dim[0], w = image->shape.dim[1], channels = image->shape.dim[2];
    const double reach = fmax(step, 1);
    const int64_t y0 = ew_max_i64((int64_t)ceil(y - reach), 0);
    const int64_t x0 = ew_max_i64((int64_t)ceil(x - reach), 0);
    double sum = 0, weight = 0;
    for (int64_t i = y0; i < h && (double)i <= y + reach; i++) {
        for (int64_t k = x0; k < w && (double)k <= x + reach; k++) {
            const double f = (1 - fabs((double)i - y) / reach) * (1 - fabs((double)k - x) / reach);
            sum += f * pixel[(i * w + k) * channels + c];
            weight += f;
        }
    }
    return weight > 0 ? sum / weight : 0;
}

ew_err ew_image_to_input(const struct ew_tensor *image, const struct ew_image_prep *p,
                         struct ew_tensor *in)
{
    int64_t size[3] = {0};
    EW_TRY(ew_image_input_size(in, p->channels_last, size));
    EW_CHECK(image->shape.dim[2] == size[2], EW_ERR_SHAPE, "the image has %lld channels, not %lld",
             (long long)image->shape.dim[2], (long long)size[2]);
    for (int64_t c = 0; c < size[2]; c++)
        EW_CHECK(p->std[c] > 0 || p->std[c] < 0, EW_ERR_ARG, "the deviation of channel %lld is %g",
                 (long long)c, p->std[c]);
    const struct window win = place(image, p, size);
    for (int64_t y = 0; y < size[0]; y++) {
        for (int64_t x = 0; x < size[1]; x++) {
            for (int64_t c = 0; c < size[2]; c++) {
                const double v = sample(image, (win.y0 + (double)y + 0.5) * win.step - 0.5,
                                        (win.x0 + (double)x + 0.5) * win.step - 0.5, win.step, c);
                const double e = (v * p->scale - p->mean[c]) / p->std[c];
                const int64_t at = p->channels_last ? (y * size[1] + x) * size[2] + c
                                                    : (c * size[0] + y) * size[1] + x;
                ew_tensor_store(in, at, 1, &e);
            }
        }
    }
    return EW_OK;
}
