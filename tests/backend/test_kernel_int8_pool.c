/* SPDX-License-Identifier: Apache-2.0 */
/* Max and average pools of bytes against plain loops: every instruction set, channel counts around
 * vector lengths, guarded buffers.  Rows are computed in reverse order: one that wrote beyond its
 * end would overwrite the next. */
#include <string.h>

#include "base/mem.h"
#include "kernel_test.h"
#include "ref_conv.h"

/* clang-format off */
#define A1 {1, 1, 1, 1, 1, 0}
static const struct {
    const char *name;
    struct ew_conv_axis axis[3];
} windows[] = {
    {"2x2 stride 2",        {A1, {8, 4, 2, 2, 1, 0}, {10, 5, 2, 2, 1, 0}}},
    {"3x3 stride 2, pad 1", {A1, {9, 5, 3, 2, 1, 1}, {11, 6, 3, 2, 1, 1}}},
    {"3x3 stride 1, pad 1", {A1, {5, 5, 3, 1, 1, 1}, {4, 4, 3, 1, 1, 1}}},
    {"3x3 beyond the end",  {A1, {6, 3, 3, 2, 1, 0}, {6, 3, 3, 2, 1, 0}}},
    {"2x2 dilated",         {A1, {7, 5, 2, 1, 2, 0}, {7, 5, 2, 1, 2, 0}}},
    {"2x2 of one column",   {A1, {4, 3, 2, 1, 1, 0}, {1, 2, 2, 1, 1, 1}}},
    {"5x5 stride 1, pad 2", {A1, {6, 6, 5, 1, 1, 2}, {7, 7, 5, 1, 1, 2}}},
    {"2x3x3 in time",       {{4, 3, 2, 1, 1, 0}, {5, 3, 3, 2, 1, 1}, {5, 3, 3, 2, 1, 1}}},
};
/* clang-format on */

static const int channel_counts[] = {1, 3, 6, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 70};

/* Output byte `at`, as PyTorch and ONNX define both pools. */
static uint8_t want_at(const struct ew_qpool *p, int64_t at)
{
    const struct ew_conv_axis *a = p->shape->axis;
    const int64_t channels = p->shape->cin, c = at % channels;
    int64_t rest = at / channels, o[3], inside = 0, sum = 0;
    for (int i = 2; i >= 0; i--, rest /= a[i + 1].out)
        o[i] = rest % a[i].out;
    int most = 0;
    for (int64_t t = 0; t < (int64_t)a[0].taps * a[1].taps * a[2].taps; t++) {
        const int64_t tap[3] = {t / a[2].taps / a[1].taps, t / a[2].taps % a[1].taps,
                                t % a[2].taps};
        int64_t from = rest;
        bool in = true;
        for (int i = 0; i < 3; i++) {
            const int64_t q = o[i] * a[i].stride - a[i].pad + tap[i] * a[i].dilation;
            in = in && q >= 0 && q < a[i].in;
            from = from * a[i].in + q;
        }
        if (!in)
            continue;
        const int x = p->x[from * channels + c] ^ p->of_x.flip;
        most = x > most ? x : most;
        sum += x - p->of_x.zero;
        inside++;
    }
    if (p->max)
        return (uint8_t)(most ^ p->of_x.flip);
    const float ratio = inside > 0 ? p->scale_x / (p->scale_y * (float)inside) : 0;
    const float lo = (float)-p->of_y.zero, hi = (float)(255 - p->of_y.zero);
    return (uint8_t)((int)rintf(fminf(fmaxf((float)sum * ratio, lo), hi)) + p->of_y.zero) ^
           p->of_y.flip;
}

static void check(const struct ew_kernels *k, const struct ew_conv_shape *s, bool max, uint8_t flip)
{
    const int64_t n_x = ref_conv_in_count(s), n_y = ref_conv_out_count(s);
    uint8_t *x = ew_guard_end((size_t)n_x, 1), *y = ew_guard_end((size_t)n_y, 1);
    test_bytes(ANY, x, n_x, NULL, 0);
    const struct ew_qpool p = {.shape = s,
                               .max = max,
                               .x = x,
                               .y = y,
                               .of_x = {.flip = flip, .zero = 3},
                               .of_y = {.flip = flip, .zero = 3},
                               .scale_x = 0.02f,
                               .scale_y = 0.017f};
    memset(y, 0xa5, (size_t)n_y);
    for (int64_t row = k->int8_pool_tiles(s) - 1; row >= 0; row--)
        k->int8_pool_run(&p, row, row + 1);
    for (int64_t i = 0; i < n_y; i++)
        if (y[i] != want_at(&p, i)) {
            EW_FAIL("%d channels, flip %d: [%lld] is %d, not %d", s->cin, flip, (long long)i, y[i],
                    want_at(&p, i));
            break;
        }
    ew_guard_free(x);
    ew_guard_free(y);
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_isa_at(i); i++)
        for (size_t w = 0; w < EW_COUNT(windows); w++) {
            ew_test_begin("%s: %s", ew_isa_at(i)->isa, windows[w].name);
            for (size_t c = 0; c < EW_COUNT(channel_counts); c++) {
                const int channels = channel_counts[c];
                struct ew_conv_shape s = {
                    .batch = 2, .groups = channels, .cin = channels, .cout = channels};
                memcpy(s.axis, windows[w].axis, sizeof(s.axis));
                for (int form = 0; form < 4; form++)
                    check(ew_isa_at(i), &s, form & 1, (uint8_t)(form & 2 ? 0x80 : 0));
            }
            ew_test_end();
        }
    return ew_test_status();
}
