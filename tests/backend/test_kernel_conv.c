/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution kernels of every instruction set against the reference in double, between guard
 * pages, with all tiles in one range and in single ones. */
#include <float.h>
#include <string.h>

#include "base/mem.h"
#include "float_isa.h"
#include "kernel_test.h"
#include "ref_conv.h"

/* clang-format off */
#define A1 {1, 1, 1, 1, 1, 0}
static const struct {
    const char *name;
    struct ew_conv_shape s; /* batch, groups, cin, cout; axes {in, out, taps, stride, dilation,
                             * pad} */
} cases[] = {
    {"3x3",             {1, 1, 17, 33, {A1, {9, 9, 3, 1, 1, 1}, {11, 11, 3, 1, 1, 1}}}},
    {"3x3 wide",        {1, 1, 64, 64, {A1, {14, 14, 3, 1, 1, 1}, {14, 14, 3, 1, 1, 1}}}},
    {"3x3 deep",        {1, 1, 300, 70, {A1, {10, 10, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}}}},
    {"3x3 many tiles",  {3, 1, 20, 17, {A1, {21, 19, 3, 1, 1, 0}, {30, 31, 3, 1, 1, 2}}}},
    {"3x3 mosaic",      {9, 1, 33, 40, {A1, {13, 13, 3, 1, 1, 1}, {5, 5, 3, 1, 1, 1}}}},
    {"3x3 mosaic, pads",{17, 1, 16, 30, {A1, {5, 6, 3, 1, 1, 2}, {7, 5, 3, 1, 1, 0}}}},
    {"5x5 large",       {2, 1, 40, 36, {A1, {17, 17, 5, 1, 1, 2}, {20, 20, 5, 1, 1, 2}}}},
    {"5x5 mosaic",      {5, 1, 24, 18, {A1, {7, 7, 5, 1, 1, 2}, {5, 5, 5, 1, 1, 2}}}},
    {"3x3 two blocks",  {20, 1, 24, 30, {A1, {16, 16, 3, 1, 1, 1}, {16, 16, 3, 1, 1, 1}}}},
    {"3x3 stride 2",    {2, 1, 24, 40, {A1, {13, 7, 3, 2, 1, 1}, {12, 6, 3, 2, 1, 1}}}},
    {"1x1",             {1, 1, 70, 130, {A1, {7, 7, 1, 1, 1, 0}, {7, 7, 1, 1, 1, 0}}}},
    {"1x1 deep",        {1, 1, 700, 16, {A1, {5, 5, 1, 1, 1, 0}, {3, 3, 1, 1, 1, 0}}}},
    {"1x1 strips",      {2, 1, 300, 88, {A1, {11, 11, 1, 1, 1, 0}, {13, 13, 1, 1, 1, 0}}}},
    {"1x1 to 24",       {2, 1, 97, 24, {A1, {9, 9, 1, 1, 1, 0}, {7, 7, 1, 1, 1, 0}}}},
    {"1x1 to 40",       {1, 1, 33, 40, {A1, {9, 9, 1, 1, 1, 0}, {7, 7, 1, 1, 1, 0}}}},
    {"1x1 of 1024",     {1, 1, 1024, 41, {A1, {7, 7, 1, 1, 1, 0}, {7, 7, 1, 1, 1, 0}}}},
    {"1x1 stride 2",    {1, 1, 19, 5, {A1, {9, 5, 1, 2, 1, 0}, {8, 4, 1, 2, 1, 0}}}},
    {"3x3 to 3",        {2, 1, 64, 3, {A1, {9, 9, 3, 1, 1, 1}, {11, 11, 3, 1, 1, 1}}}},
    {"9x9 to 3",        {1, 1, 21, 3, {A1, {13, 13, 9, 1, 1, 4}, {12, 12, 9, 1, 1, 4}}}},
    {"5x3 to 7, s2",    {1, 1, 40, 7, {A1, {33, 17, 5, 2, 1, 2}, {29, 15, 3, 2, 1, 1}}}},
    {"3x3 to 1, dilated",{2, 1, 77, 1, {A1, {9, 9, 3, 1, 2, 2}, {20, 18, 3, 1, 1, 0}}}},
    {"1x1 to 2",        {1, 1, 200, 2, {A1, {6, 6, 1, 1, 1, 0}, {5, 5, 1, 1, 1, 0}}}},
    {"3x5 to 4, wide pads",{1, 1, 32, 4, {A1, {2, 6, 3, 1, 1, 3}, {3, 11, 5, 1, 1, 6}}}},
    {"7x7 of 3",        {1, 1, 3, 64, {A1, {30, 15, 7, 2, 1, 3}, {29, 15, 7, 2, 1, 3}}}},
    {"5x5 of 1",        {3, 1, 1, 6, {A1, {12, 12, 5, 1, 1, 2}, {12, 12, 5, 1, 1, 2}}}},
    {"5x5 wide",        {2, 1, 40, 72, {A1, {9, 9, 5, 1, 1, 2}, {11, 8, 5, 1, 1, 1}}}},
    {"3x3 small, wide", {1, 1, 80, 90, {A1, {7, 7, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}}}},
    {"11x11 stride 4",  {1, 1, 3, 20, {A1, {35, 8, 11, 4, 1, 2}, {35, 8, 11, 4, 1, 2}}}},
    {"11x11 stride 4, large",{1, 1, 3, 17, {A1, {67, 16, 11, 4, 1, 2}, {43, 12, 11, 4, 1, 4}}}},
    {"5x5 stride 2",    {2, 1, 11, 20, {A1, {23, 12, 5, 2, 1, 2}, {26, 11, 5, 2, 1, 0}}}},
    {"9x9 stride 2",    {1, 1, 5, 18, {A1, {30, 14, 9, 2, 1, 3}, {29, 16, 9, 2, 1, 5}}}},
    {"6x6 s2, cropping",{2, 1, 8, 20, {A1, {30, 11, 6, 2, 1, -2}, {33, 12, 6, 2, 1, -1}}}},
    {"3x3 of a pixel",  {5, 1, 40, 24, {A1, {1, 1, 3, 1, 1, 1}, {1, 1, 3, 1, 1, 1}}}},
    {"3x3 s2 to a pixel",{5, 1, 17, 40, {A1, {2, 1, 3, 2, 1, 1}, {2, 1, 3, 2, 1, 1}}}},
    {"5x3 of few pixels",{3, 2, 6, 10, {A1, {2, 2, 5, 1, 1, 2}, {1, 3, 3, 1, 1, 2}}}},
    {"dilated, few",    {2, 1, 20, 18, {A1, {3, 3, 3, 1, 4, 4}, {5, 3, 4, 2, 3, 4}}}},
    {"3-D of few",      {2, 1, 5, 9, {{1, 1, 3, 1, 1, 1}, {2, 2, 3, 1, 1, 1}, {1, 1, 5, 1, 1, 2}}}},
    {"asymmetric",      {1, 1, 6, 7, {A1, {8, 9, 3, 1, 1, 3}, {8, 8, 3, 1, 1, 0}}}},
    {"dilated",         {1, 1, 5, 18, {A1, {12, 12, 3, 1, 2, 2}, {13, 9, 3, 1, 3, 1}}}},
    {"dilated stride 2",{1, 1, 4, 9, {A1, {15, 6, 3, 2, 2, 0}, {16, 7, 3, 2, 3, 2}}}},
    {"stride over taps",{1, 1, 4, 9, {A1, {15, 5, 2, 3, 1, 0}, {16, 6, 1, 3, 1, 0}}}},
    {"groups",          {2, 4, 12, 20, {A1, {7, 7, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}}}},
    {"groups of 16",    {1, 2, 32, 32, {A1, {6, 3, 3, 2, 1, 1}, {6, 3, 3, 2, 1, 1}}}},
    {"groups of 4",     {1, 8, 32, 32, {A1, {6, 6, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}}}},
    {"groups of 8, s2", {2, 6, 48, 48, {A1, {9, 5, 3, 2, 1, 1}, {33, 17, 3, 2, 1, 1}}}},
    {"groups of 12",    {1, 3, 36, 45, {A1, {7, 7, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}}}},
    {"groups of 32",    {1, 2, 64, 64, {A1, {7, 7, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}}}},
    {"groups of 10, 37",{1, 2, 20, 74, {A1, {6, 6, 3, 1, 1, 1}, {10, 10, 3, 1, 1, 1}}}},
    {"groups of 2, many",{1, 11, 22, 22, {A1, {30, 30, 3, 1, 1, 1}, {70, 70, 3, 1, 1, 1}}}},
    {"multiplier 2",    {1, 19, 19, 38, {A1, {8, 4, 3, 2, 1, 1}, {9, 5, 3, 2, 1, 1}}}},
    {"multiplier 1/3",  {1, 5, 15, 5, {A1, {8, 8, 5, 1, 1, 2}, {9, 9, 3, 1, 1, 1}}}},
    {"groups 1x1",      {2, 3, 24, 12, {A1, {5, 5, 1, 1, 1, 0}, {9, 9, 1, 1, 1, 0}}}},
    {"groups dilated",  {1, 4, 16, 16, {A1, {9, 9, 3, 1, 2, 2}, {11, 4, 3, 3, 2, 1}}}},
    {"groups 1-D",      {1, 4, 16, 16, {A1, A1, {900, 898, 3, 1, 1, 0}}}},
    {"groups 3-D of 4", {1, 5, 20, 20, {{3, 3, 3, 1, 1, 1}, {4, 2, 3, 2, 1, 1}, {6, 6, 3, 1, 1, 1}}}},
    {"groups, cropping",{1, 2, 8, 8, {A1, {9, 5, 3, 1, 1, -1}, {9, 6, 2, 1, 1, -2}}}},
    {"depthwise 3x3",   {2, 17, 17, 17, {A1, {9, 9, 3, 1, 1, 1}, {11, 11, 3, 1, 1, 1}}}},
    {"depthwise 3x3 s2",{1, 40, 40, 40, {A1, {9, 5, 3, 2, 1, 1}, {12, 6, 3, 2, 1, 1}}}},
    {"depthwise 5x5",   {1, 33, 33, 33, {A1, {6, 6, 5, 1, 1, 2}, {7, 7, 5, 1, 1, 2}}}},
    {"depthwise 5x5 s2",{1, 16, 16, 16, {A1, {8, 4, 5, 2, 1, 2}, {7, 5, 5, 2, 1, 3}}}},
    {"depthwise 3x3 s2, wide",{1, 20, 20, 20, {A1, {5, 3, 3, 2, 1, 1}, {37, 18, 3, 2, 1, 0}}}},
    {"depthwise 5x5 s2, wide",{1, 20, 20, 20, {A1, {6, 3, 5, 2, 1, 2}, {40, 20, 5, 2, 1, 2}}}},
    {"depthwise 3x3, rows together",{2, 34, 34, 34, {A1, {11, 11, 3, 1, 1, 1}, {15, 15, 3, 1, 1, 1}}}},
    {"depthwise 5x5, rows together",{2, 33, 33, 33, {A1, {9, 9, 5, 1, 1, 2}, {10, 10, 5, 1, 1, 2}}}},
    {"depthwise 5x5 s2, rows together",{1, 20, 20, 20, {A1, {18, 9, 5, 2, 1, 2}, {40, 20, 5, 2, 1, 2}}}},
    {"depthwise 3x3 s2, rows together",{1, 48, 48, 48, {A1, {8, 4, 3, 2, 1, 1}, {8, 4, 3, 2, 1, 1}}}},
    {"depthwise dilated",{1, 19, 19, 19, {A1, {8, 8, 3, 1, 2, 2}, {9, 9, 3, 1, 2, 2}}}},
    {"depthwise 7x3",   {1, 5, 5, 5, {A1, {8, 8, 7, 1, 1, 3}, {9, 3, 3, 3, 1, 0}}}},
    {"depthwise 7x7",   {1, 40, 40, 40, {A1, {8, 8, 7, 1, 1, 3}, {16, 16, 7, 1, 1, 3}}}},
    {"depthwise 9x9",   {2, 19, 19, 19, {A1, {5, 5, 9, 1, 1, 4}, {14, 14, 9, 1, 1, 4}}}},
    {"depthwise 7x11 s2",{1, 33, 33, 33, {A1, {9, 5, 7, 2, 1, 3}, {21, 11, 11, 2, 1, 5}}}},
    {"depthwise 2x6",   {1, 18, 18, 18, {A1, {6, 5, 2, 1, 1, 0}, {9, 10, 6, 1, 1, 3}}}},
    {"depthwise 1x8",   {1, 17, 17, 17, {A1, {3, 3, 1, 1, 1, 0}, {12, 12, 8, 1, 1, 4}}}},
    {"depthwise 13x4",  {1, 21, 21, 21, {A1, {13, 3, 13, 1, 1, 1}, {12, 10, 4, 1, 1, 1}}}},
    {"depthwise dilated, wide",{1, 34, 34, 34, {A1, {9, 9, 3, 1, 3, 3}, {15, 15, 5, 1, 2, 4}}}},
    {"depthwise 3-D",   {1, 9, 9, 9, {{4, 4, 3, 1, 1, 1}, {5, 5, 3, 1, 1, 1}, {6, 3, 3, 2, 1, 1}}}},
    {"depthwise 1x3x3, time s2",{2, 18, 18, 18, {{5, 3, 1, 2, 1, 0}, {8, 8, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}}}},
    {"depthwise 1x3x3, pads",{2, 18, 18, 18, {{3, 5, 1, 1, 1, 1}, {8, 4, 3, 2, 1, 1}, {8, 4, 3, 2, 1, 1}}}},
    {"cropping",        {1, 1, 3, 4, {A1, {9, 5, 3, 1, 1, -1}, {9, 6, 2, 1, 1, -2}}}},
    {"all padding",     {1, 1, 3, 4, {A1, {2, 4, 1, 1, 1, 1}, {1, 5, 1, 1, 1, 2}}}},
    {"1-D",             {2, 1, 9, 10, {A1, A1, {33, 17, 5, 2, 1, 2}}}},
    {"3-D",             {1, 1, 3, 17, {{5, 5, 3, 1, 1, 1}, {6, 6, 3, 1, 1, 1}, {7, 4, 3, 2, 1, 1}}}},
    {"3-D 3x3x3",       {1, 1, 32, 40, {{5, 5, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}, {13, 13, 3, 1, 1, 1}}}},
    {"3-D 3x3x3, clips",{3, 1, 24, 33, {{4, 4, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}}}},
    {"3-D 3x3x3, deep", {1, 1, 112, 32, {{2, 2, 3, 1, 1, 1}, {8, 8, 3, 1, 1, 1}, {8, 8, 3, 1, 1, 1}}}},
    {"3-D 3x3x3, time s2",{2, 1, 17, 20, {{7, 4, 3, 2, 1, 1}, {8, 8, 3, 1, 1, 1}, {6, 6, 3, 1, 1, 1}}}},
    {"3-D 2x5x5, pads", {2, 1, 20, 16, {{3, 6, 2, 1, 1, 2}, {9, 7, 5, 1, 1, 1}, {8, 8, 5, 1, 1, 2}}}},
    {"3-D 3x3x3, one frame",{4, 1, 16, 24, {{1, 1, 3, 1, 1, 1}, {8, 8, 3, 1, 1, 1}, {8, 8, 3, 1, 1, 1}}}},
    {"3-D 3x3x3, cropping",{2, 1, 16, 24, {{6, 2, 3, 1, 1, -1}, {8, 8, 3, 1, 1, 1}, {8, 8, 3, 1, 1, 1}}}},
    {"3-D 3x7x7 s2",    {1, 1, 3, 20, {{4, 4, 3, 1, 1, 1}, {17, 9, 7, 2, 1, 3}, {20, 10, 7, 2, 1, 3}}}},
    {"3-D time s2",     {1, 1, 18, 20, {{7, 4, 1, 2, 1, 0}, {8, 8, 3, 1, 1, 1}, {6, 6, 3, 1, 1, 1}}}},
    {"3-D groups",      {1, 3, 6, 9, {{4, 2, 3, 2, 1, 1}, {5, 5, 1, 1, 1, 0}, {6, 4, 3, 1, 1, 0}}}},
    {"dense",           {5, 1, 300, 37, {A1, A1, A1}}},
    {"dense of one",    {1, 1, 515, 100, {A1, A1, A1}}},
    {"dense of one, 56",{1, 1, 40, 56, {A1, A1, A1}}},
    {"dense of one, 72",{1, 1, 37, 72, {A1, A1, A1}}},
    {"dense batch",     {64, 1, 84, 10, {A1, A1, A1}}},
    {"one channel",     {1, 1, 1, 1, {A1, {4, 4, 3, 1, 1, 1}, {4, 4, 3, 1, 1, 1}}}},
    {"5x5 of 1, images",{17, 1, 1, 6, {A1, {12, 12, 5, 1, 1, 2}, {14, 14, 5, 1, 1, 2}}}},
    {"5x5 of 6, images",{16, 1, 6, 16, {A1, {9, 5, 5, 1, 1, 0}, {10, 6, 5, 1, 1, 0}}}},
    {"3x3 s2, images",  {18, 1, 2, 3, {A1, {9, 5, 3, 2, 1, 1}, {8, 4, 3, 2, 1, 1}}}},
    {"6x2, images",     {35, 1, 3, 3, {A1, {7, 4, 6, 1, 1, 1}, {3, 5, 2, 1, 1, 2}}}},
    {"5x5 of 5, images",{33, 1, 5, 13, {A1, {10, 6, 5, 1, 1, 0}, {9, 7, 5, 1, 1, 1}}}},
    {"3x7 s2, images",  {34, 1, 4, 7, {A1, {15, 8, 3, 2, 1, 1}, {11, 5, 7, 2, 1, 3}}}},
    {"5x5 of 1, rows",  {2, 1, 1, 6, {A1, {28, 28, 5, 1, 1, 2}, {28, 28, 5, 1, 1, 2}}}},
    {"3x3 of 3, rows",  {1, 1, 3, 9, {A1, {9, 7, 3, 1, 1, 0}, {50, 48, 3, 1, 1, 0}}}},
    {"3x4 of 4, rows",  {2, 1, 4, 3, {A1, {6, 8, 3, 1, 1, 2}, {31, 30, 4, 1, 1, 1}}}},
    {"2x7 of 2, wide",  {1, 1, 2, 13, {A1, {5, 4, 2, 1, 1, 0}, {200, 207, 7, 1, 1, 6}}}},
    {"no image",        {0, 1, 3, 4, {A1, {4, 4, 3, 1, 1, 1}, {4, 4, 3, 1, 1, 1}}}},
};
#undef A1
#define CASES (sizeof(cases) / sizeof(cases[0]))

static const struct ew_epilogue ends[] = { /* pointers only tell whether the operand exists */
    {0},
    {.act = EW_ACT_RELU},
    {.act = EW_ACT_CLIP, .lo = -0.5f, .hi = 1.5f},
    {.act = EW_ACT_HARD_SWISH},
    {.act = EW_ACT_SILU, .add_after = true},
    {.act = EW_ACT_RELU, .add_after = true},
    {.act = EW_ACT_LEAKY, .lo = 0.1f},
    {.act = EW_ACT_TANH},
    {.act = EW_ACT_GELU},
    {.act = EW_ACT_HARD_SWISH, .add_after = true},
    {.act = EW_ACT_HARD_SWISH},
};
/* clang-format on */

/* Bound for sums of n products of numbers below 1: n roundings of at most half a unit of a partial
 * sum. With random signs the error is about sqrt(n) of these; 4 times that is safe. */
static double tolerance(double terms)
{
    return 4 * (double)FLT_EPSILON * (2 + sqrt(terms));
}

/* The functions of one convolution method. */
struct way {
    const char *name;
    bool (*fits)(const struct ew_conv_shape *);
    size_t (*pack_size)(const struct ew_conv_shape *);
    int64_t (*tiles)(const struct ew_conv_shape *);
    size_t (*scratch)(const struct ew_conv_shape *);
    void (*run)(const struct ew_conv *, int64_t, int64_t, void *);
    double tolerance; /* 0: that of a direct sum */
    bool late;        /* shape.late_transform */
};

typedef void pack_fn(const struct ew_conv_shape *, const float *, float *, int64_t, int64_t);

/* Packs all tiles at once, and again one by one in reverse order: the same bits. */
static void pack_twice(pack_fn *pack, const struct ew_conv_shape *s, int64_t tiles, size_t size,
                       const float *w, float *packed)
{
    float *again = test_scratch(size * sizeof(float));
    pack(s, w, packed, 0, tiles);
    for (int64_t t = tiles - 1; t >= 0; t--)
        pack(s, w, again, t, t + 1);
    EW_EXPECT(memcmp(again, packed, size * sizeof(float)) == 0);
    ew_guard_free(again);
}

/* Cache of the reference's results, since all kernels get the same inputs. */
static struct kept {
    double *y, *odd; /* without epilogue; of inputs that are not all finite */
    double *dx, *dw;
} forward_kept[CASES], gradients_kept[CASES];

typedef void ref_fn(const struct ew_conv_shape *s, const float *a, const float *b, double *out);

/* A copy of the cached result, n numbers. */
static double *reference(double **kept, ref_fn *ref, const struct ew_conv_shape *s, const float *a,
                         const float *b, int64_t n)
{
    if (!*kept) {
        *kept = test_zeros(n);
        ref(s, a, b, *kept);
    }
    double *copy = test_zeros(n);
    memcpy(copy, *kept, (size_t)n * sizeof(double));
    return copy;
}

struct conv_data {
    float *x, *w, *bias, *add, *y, *packed;
    void *scratch;
    struct kept *kept;
    int64_t n_x, n_w, n_y;
};

static void data_init(struct conv_data *d, const struct ew_conv_shape *s, struct kept *kept,
                      uint64_t seed)
{
    d->kept = kept;
    d->n_x = ref_conv_in_count(s);
    d->n_w = ref_conv_filter_count(s);
    d->n_y = ref_conv_out_count(s);
    d->x = test_array(d->n_x, seed);
    d->w = test_array(d->n_w, seed + 1);
    d->bias = test_array(s->cout, seed + 3);
    d->add = test_array(d->n_y, seed + 2);
    d->y = test_array(d->n_y, seed + 5);
}

static void data_fini(struct conv_data *d)
{
    ew_guard_free(d->x);
    ew_guard_free(d->w);
    ew_guard_free(d->bias);
    ew_guard_free(d->add);
    ew_guard_free(d->y);
}

/* F(4x4, 3x3) multiplies inputs by up to 5 and sums by up to 8, in both dimensions, before most of
 * it cancels: errors are some ten times those of direct convolution.  Measured on these cases:
 * below 1e-5 of the largest sum. */
#define WINOGRAD_TOLERANCE 3e-5

/* Forward with one epilogue: all tiles at once, then one by one in reverse order into a second
 * output. */
static void forward(const struct way *way, const struct ew_conv_shape *s, const struct conv_data *d,
                    int end)
{
    struct ew_conv c = {.shape = *s, .x = d->x, .w = d->packed, .y = d->y, .end = ends[end]};
    c.end.bias = end % 3 != 2 ? d->bias : NULL;
    c.end.add = end % 2 ? d->add : NULL;
    double *want = reference(&d->kept->y, ref_conv, s, d->x, d->w, d->n_y);
    const double scale = test_scale(want, d->n_y);
    ref_epilogue(&c.end, d->n_y, s->cout, want);
    const int64_t tiles = way->tiles(s);
    way->run(&c, 0, tiles, d->scratch);
    const double terms = ref_conv_macs(s) / (double)(d->n_y ? d->n_y : 1);
    const double tol = way->tolerance > 0 ? way->tolerance : tolerance(terms);
    test_close(d->y, want, d->n_y, tol * (1 + scale), "forward");
    float *again = test_array(d->n_y, 8);
    c.y = again;
    if (c.end.add && !c.end.add_after) { /* the addend may be y itself */
        memcpy(again, d->add, (size_t)d->n_y * sizeof(float));
        c.end.add = again;
    }
    for (int64_t t = tiles - 1; t >= 0; t--)
        way->run(&c, t, t + 1, d->scratch);
    EW_EXPECT(memcmp(again, d->y, (size_t)d->n_y * sizeof(float)) == 0);
    ew_guard_free(again);
    free(want);
}

/* The same with some inputs set to infinity or NaN, which remain in d->x: the outputs that depend
 * on them must be as in the reference.  Winograd may spread
 * them over the tile; SiLU and GELU of minus infinity are unspecified. */
static void odd_inputs(const struct way *way, const struct ew_conv_shape *s, struct conv_data *d,
                       int end)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (int64_t i = d->n_x / 5, n = 0; i < d->n_x; i += 1 + d->n_x / 4)
        d->x[i] = odd[n++ % 3];
    struct ew_conv c = {.shape = *s, .x = d->x, .w = d->packed, .y = d->y, .end = ends[end]};
    c.end.bias = d->bias;
    double *want = reference(&d->kept->odd, ref_conv, s, d->x, d->w, d->n_y);
    ref_epilogue(&c.end, d->n_y, s->cout, want);
    way->run(&c, 0, way->tiles(s), d->scratch);
    const bool open = c.end.act == EW_ACT_SILU || c.end.act == EW_ACT_GELU;
    for (int64_t i = 0; i < d->n_y; i++) {
        const double y = (double)d->y[i];
        const bool spread = way->tolerance > 0 && !isnan(want[i]);
        const bool same = isfinite(want[i]) ? fabs(y - want[i]) < 1e-3 * (1 + fabs(want[i]))
                          : isnan(want[i])  ? isnan(y)
                                            : isinf(y) && (y > 0) == (want[i] > 0);
        if (!same && !spread && !(open && isinf(d->kept->odd[i])))
            EW_FAIL("odd inputs, end %d: [%lld] is %g, not %g", end, (long long)i, y, want[i]);
    }
    free(want);
}

/* The functions of one method for gradients. */
struct gradients {
    const char *name;
    bool (*fits)(const struct ew_conv_shape *);
    size_t (*pack_size)(const struct ew_conv_shape *);
    int64_t (*pack_tiles)(const struct ew_conv_shape *); /* NULL: packed in one piece */
    pack_fn *pack;
    int64_t (*data_tiles)(const struct ew_conv_shape *); /* this and the next NULL: wgrad only */
    size_t (*data_scratch)(const struct ew_conv_shape *);
    void (*data_run)(const struct ew_conv *, int64_t, int64_t, void *);
    size_t (*partial)(const struct ew_conv_shape *);
    int64_t (*tiles)(const struct ew_conv_shape *);
    size_t (*scratch)(const struct ew_conv_shape *);
    void (*run)(const struct ew_conv_wgrad *, int64_t, int64_t, void *);
    int64_t (*sum_tiles)(const struct ew_conv_shape *);
    void (*sum)(const struct ew_conv_wgrad *, int64_t, int64_t);
    double tolerance; /* of wgrad, relative to the largest value; 0: that of a direct sum */
    bool bias;        /* wgrad also computes the bias gradient */
};

/* dgrad by one method, accumulated (`add`) or written; `scratch` and `packed` are set. */
static void data_gradient(const struct gradients *k, const struct ew_conv_shape *s,
                          const struct conv_data *d, bool add)
{
    /* `add` serves as dy */
    double *want = reference(&d->kept->dx, ref_conv_data, s, d->add, d->w, d->n_x);
    const double tol = tolerance(ref_conv_macs(s) / (double)(d->n_x ? d->n_x : 1)) *
                       (1 + test_scale(want, d->n_x));
    float *dx = test_array(d->n_x, 3), *again = test_array(d->n_x, 3);
    for (int64_t i = 0; add && i < d->n_x; i++)
        want[i] += (double)dx[i];
    struct ew_conv c = {
        .shape = *s, .x = d->add, .w = d->packed, .y = dx, .end = {.add = add ? dx : NULL}};
    const int64_t tiles = k->data_tiles(s);
    k->data_run(&c, 0, tiles, d->scratch);
    test_close(dx, want, d->n_x, tol, "data gradient");
    c.y = again;
    c.end.add = add ? again : NULL;
    for (int64_t t = tiles - 1; t >= 0; t--)
        k->data_run(&c, t, t + 1, d->scratch);
    EW_EXPECT(memcmp(again, dx, (size_t)d->n_x * sizeof(float)) == 0);
    ew_guard_free(dx);
    ew_guard_free(again);
    free(want);
}

/* All tiles at once, or one by one in reverse order. */
static void run_filter(const struct gradients *k, const struct ew_kernels *isa,
                       const struct ew_conv_wgrad *f, void *scratch, bool apart)
{
    const struct ew_conv_shape *s = &f->shape;
    const int64_t phases = k->run ? 2 : isa->winograd_wgrad_phases(s);
    for (int64_t phase = 0; phase < phases; phase++) {
        const int64_t tiles = !k->run ? isa->winograd_wgrad_tiles(s, phase)
                              : phase ? k->sum_tiles(s)
                                      : k->tiles(s);
        for (int64_t t = apart ? tiles - 1 : 0; t >= 0; t--) {
            const int64_t end = apart ? t + 1 : tiles;
            if (!k->run)
                isa->winograd_wgrad_run(f, phase, t, end, scratch);
            else if (phase)
                k->sum(f, t, end);
            else
                k->run(f, t, end, scratch);
        }
    }
}

static void filter_gradient(const struct gradients *k, const struct ew_kernels *isa,
                            const struct ew_conv_shape *s, const struct conv_data *d, bool add)
{
    double *want = reference(&d->kept->dw, ref_conv_filter, s, d->add, d->x, d->n_w);
    const double direct = tolerance(ref_conv_macs(s) / (double)d->n_w);
    const double tol = (k->tolerance > 0 ? k->tolerance : direct) * (1 + test_scale(want, d->n_w));
    float *dw = test_array(d->n_w, 3), *again = test_array(d->n_w, 3);
    for (int64_t i = 0; add && i < d->n_w; i++)
        want[i] += (double)dw[i];
    struct ew_conv_wgrad f = {.shape = *s, .x = d->x, .dy = d->add, .dw = dw, .add = add};
    f.partial = test_scratch(k->partial(s) * sizeof(float));
    run_filter(k, isa, &f, d->scratch, false);
    test_close(dw, want, d->n_w, tol, "filter gradient");
    f.dw = again;
    run_filter(k, isa, &f, d->scratch, true);
    EW_EXPECT(memcmp(again, dw, (size_t)d->n_w * sizeof(float)) == 0);
    ew_guard_free(f.partial);
    ew_guard_free(dw);
    ew_guard_free(again);
    free(want);
}

/* The bias gradient, the sum of dy per output channel; written, then accumulated. */
static void bias_gradient(const struct gradients *k, const struct ew_kernels *isa,
                          const struct ew_conv_shape *s, const struct conv_data *d)
{
    double *want = test_zeros(s->cout);
    const double tol =
        k->tolerance > 0 ? k->tolerance : tolerance((double)d->n_y / (double)s->cout);
    for (int64_t i = 0; i < d->n_y; i++)
        want[i % s->cout] += (double)d->add[i];
    float *db = test_array(s->cout, 3), *dw = test_array(d->n_w, 3);
    struct ew_conv_wgrad f = {.shape = *s, .x = d->x, .dy = d->add, .dw = dw, .db = db};
    f.partial = test_scratch(k->partial(s) * sizeof(float));
    for (int time = 1; time <= 2; time++) {
        run_filter(k, isa, &f, d->scratch, time == 2);
        test_close(db, want, s->cout, tol * (1 + test_scale(want, s->cout)), "bias gradient");
        for (int64_t o = 0; o < s->cout; o++)
            want[o] *= 2;
        f.add_db = true;
    }
    ew_guard_free(f.partial);
    ew_guard_free(db);
    ew_guard_free(dw);
    free(want);
}

static void walk_gradients(const struct ew_kernels *isa, const struct gradients *k)
{
    for (size_t i = 0; i < CASES; i++) {
        const struct ew_conv_shape *s = &cases[i].s;
        if (k->fits && !k->fits(s))
            continue;
        const size_t step = ew_test_quick() ? 2 : 1; /* written and accumulated, or only one of
                                                      * them */
        ew_test_begin("%s gradients %s: %s", k->name, isa->isa, cases[i].name);
        struct conv_data d = {0};
        data_init(&d, s, &gradients_kept[i], 10 * i + 2);
        if (k->data_run) {
            d.packed = test_scratch(k->pack_size(s) * sizeof(float));
            d.scratch = test_scratch(k->data_scratch(s));
            if (k->pack_tiles)
                pack_twice(k->pack, s, k->pack_tiles(s), k->pack_size(s), d.w, d.packed);
            else if (k->data_run == isa->grouped_dgrad_run)
                isa->grouped_dgrad_pack(s, d.w, d.packed);
            else
                isa->depthwise_dgrad_pack(s, d.w, d.packed);
            for (size_t add = i % step; add < 2; add += step)
                data_gradient(k, s, &d, add);
            ew_guard_free(d.packed);
            ew_guard_free(d.scratch);
        }
        d.scratch = test_scratch(k->scratch(s));
        for (size_t add = i % step; add < 2; add += step)
            filter_gradient(k, isa, s, &d, add);
        if (k->bias)
            bias_gradient(k, isa, s, &d);
        ew_guard_free(d.scratch);
        data_fini(&d);
        ew_test_end();
    }
}

static void winograd_pack_twice(const struct ew_kernels *k, const struct ew_conv_shape *s,
                                const float *w, bool flip, float *packed)
{
    const size_t bytes = k->winograd_pack_size(s) * sizeof(float);
    const int64_t tiles = k->winograd_pack_tiles(s);
    float *again = test_scratch(bytes);
    k->winograd_pack(s, w, flip, packed, 0, tiles);
    for (int64_t t = tiles - 1; t >= 0; t--)
        k->winograd_pack(s, w, flip, again, t, t + 1);
    EW_EXPECT(memcmp(again, packed, bytes) == 0);
    ew_guard_free(again);
}

/* Fills in the case's shape; true if the method supports it. */
static bool takes(const struct way *way, size_t i, struct ew_conv_shape *s)
{
    *s = cases[i].s;
    s->late_transform = way->late;
    return (!way->fits || way->fits(s)) && !(way->late && s->axis[1].stride > 1);
}

/* Step over the epilogues of a case: 1 for all, or larger if the method has enough cases to cover
 * them. */
static size_t end_step(const struct way *way)
{
    struct ew_conv_shape s;
    size_t n = 0;
    for (size_t i = 0; i < CASES; i++)
        n += takes(way, i, &s);
    return ew_test_quick() && n >= EW_COUNT(ends) ? EW_COUNT(ends) : 1;
}

static void walk_forward(const struct ew_kernels *k, const struct way *way)
{
    const size_t step = end_step(way);
    size_t turn = 0;
    for (size_t i = 0; i < CASES; i++) {
        struct ew_conv_shape shape;
        const struct ew_conv_shape *s = &shape;
        if (!takes(way, i, &shape))
            continue;
        ew_test_begin("%s %s: %s", way->name, k->isa, cases[i].name);
        struct conv_data d = {0};
        data_init(&d, s, &forward_kept[i], 10 * i + 1);
        d.packed = test_scratch(way->pack_size(s) * sizeof(float));
        d.scratch = test_scratch(way->scratch(s));
        if (way->run == k->winograd_run)
            winograd_pack_twice(k, s, d.w, false, d.packed);
        else if (way->run == k->depthwise_run)
            k->depthwise_pack(s, d.w, d.packed);
        else if (way->run == k->grouped_run)
            k->grouped_pack(s, d.w, d.packed);
        else if (way->run == k->batch_lanes_run)
            k->batch_lanes_pack(s, d.w, d.packed);
        else if (way->run == k->pixel_lanes_run)
            k->pixel_lanes_pack(s, d.w, d.packed);
        else if (way->run == k->input_lanes_run)
            k->input_lanes_pack(s, d.w, d.packed);
        else
            pack_twice(k->conv_pack, s, k->conv_pack_tiles(s), k->conv_pack_size(s), d.w, d.packed);
        for (size_t e = turn++ % step; e < EW_COUNT(ends); e += step)
            forward(way, s, &d, (int)e);
        for (size_t e = 0; e < EW_COUNT(ends); e++)
            odd_inputs(way, s, &d, (int)e);
        ew_guard_free(d.packed);
        ew_guard_free(d.scratch);
        data_fini(&d);
        ew_test_end();
    }
}

/* dgrad as a forward convolution of dy with the filter rotated by 180 degrees. */
static struct ew_conv_shape dgrad_shape(const struct ew_conv_shape *s)
{
    struct ew_conv_shape r = *s;
    r.cin = s->cout;
    r.cout = s->cin;
    for (int j = 0; j < 3; j++) {
        r.axis[j].in = s->axis[j].out;
        r.axis[j].out = s->axis[j].in;
        r.axis[j].pad = s->axis[j].taps - 1 - s->axis[j].pad;
    }
    return r;
}

static void mirrored_gradient(const struct ew_kernels *k, const struct way *way, size_t number)
{
    const struct ew_conv_shape *s = &cases[number].s, r = dgrad_shape(s);
    struct conv_data d = {0};
    data_init(&d, s, &gradients_kept[number], 10 * number + 2);
    double *want = reference(&d.kept->dx, ref_conv_data, s, d.add, d.w, d.n_x);
    d.packed = test_scratch(way->pack_size(&r) * sizeof(float));
    d.scratch = test_scratch(way->scratch(&r));
    if (way->run == k->winograd_run)
        winograd_pack_twice(k, &r, d.w, true, d.packed);
    else
        k->batch_lanes_dgrad_pack(&r, d.w, d.packed);
    const struct ew_conv c = {.shape = r, .x = d.add, .w = d.packed, .y = d.x};
    way->run(&c, 0, way->tiles(&r), d.scratch);
    test_close(d.x, want, d.n_x, WINOGRAD_TOLERANCE * (1 + test_scale(want, d.n_x)), "dx");
    ew_guard_free(d.packed);
    ew_guard_free(d.scratch);
    data_fini(&d);
    free(want);
}

static void walk_mirrored(const struct ew_kernels *k, const struct way *way)
{
    for (size_t i = 0; i < CASES; i++) {
        const struct ew_conv_shape *s = &cases[i].s, r = dgrad_shape(s);
        if (s->axis[0].stride * s->axis[1].stride * s->axis[2].stride != 1 || !way->fits(&r))
            continue;
        ew_test_begin("%s data gradient %s: %s", way->name, k->isa, cases[i].name);
        mirrored_gradient(k, way, i);
        ew_test_end();
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_float_isa_at(i); i++) {
        const struct ew_kernels *k = ew_float_isa_at(i);
        /* clang-format off */
        const struct way ways[] = {
            {"conv", NULL, k->conv_pack_size, k->conv_tiles, k->conv_scratch, k->conv_run, 0},
            {"winograd", k->winograd_fits, k->winograd_pack_size, k->winograd_tiles,
             k->winograd_scratch, k->winograd_run, WINOGRAD_TOLERANCE},
            {"winograd plain filters", k->winograd_fits, k->winograd_pack_size, k->winograd_tiles,
             k->winograd_scratch, k->winograd_run, WINOGRAD_TOLERANCE, true},
            {"depthwise", k->depthwise_fits, k->depthwise_pack_size, k->depthwise_tiles,
             k->depthwise_scratch, k->depthwise_run, 0},
            {"grouped", k->grouped_fits, k->grouped_pack_size, k->grouped_tiles,
             k->grouped_scratch, k->grouped_run, 0},
            {"batch lanes", k->batch_lanes_fits, k->batch_lanes_pack_size, k->batch_lanes_tiles, k->batch_lanes_scratch, k->batch_lanes_run, 0},
            {"pixel lanes", k->pixel_lanes_fits, k->pixel_lanes_pack_size, k->pixel_lanes_tiles, k->pixel_lanes_scratch, k->pixel_lanes_run, 0},
            {"input lanes", k->input_lanes_fits, k->input_lanes_pack_size, k->input_lanes_tiles, k->input_lanes_scratch, k->input_lanes_run, 0},
        };
        /* clang-format on */
        for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
            walk_forward(k, &ways[w]);
        const struct gradients gradients[] = {
            {"conv", NULL, k->conv_dgrad_pack_size, k->conv_dgrad_pack_tiles, k->conv_dgrad_pack,
             k->conv_dgrad_tiles, k->conv_dgrad_scratch, k->conv_dgrad_run, k->conv_wgrad_partial,
             k->conv_wgrad_tiles, k->conv_wgrad_scratch, k->conv_wgrad_run, k->conv_wgrad_sum_tiles,
             k->conv_wgrad_sum, 0, true},
            {"depthwise", k->depthwise_fits, k->depthwise_pack_size, NULL, NULL,
             k->depthwise_dgrad_tiles, k->depthwise_dgrad_scratch, k->depthwise_dgrad_run,
             k->depthwise_wgrad_partial, k->depthwise_wgrad_tiles, k->depthwise_wgrad_scratch,
             k->depthwise_wgrad_run, k->depthwise_wgrad_sum_tiles, k->depthwise_wgrad_sum},
            {"grouped", k->grouped_dgrad_fits, k->grouped_dgrad_pack_size, NULL, NULL,
             k->grouped_dgrad_tiles, k->grouped_dgrad_scratch, k->grouped_dgrad_run,
             k->grouped_wgrad_partial, k->grouped_wgrad_tiles, k->grouped_wgrad_scratch,
             k->grouped_wgrad_run, k->grouped_wgrad_sum_tiles, k->grouped_wgrad_sum},
            {"grouped", k->grouped_fits, NULL, NULL, NULL, NULL, NULL, NULL,
             k->grouped_wgrad_partial, k->grouped_wgrad_tiles, k->grouped_wgrad_scratch,
             k->grouped_wgrad_run, k->grouped_wgrad_sum_tiles,
             k->grouped_wgrad_sum}, /* strides too */
            {"batch lanes", k->batch_lanes_wgrad_fits, NULL, NULL, NULL, NULL, NULL, NULL,
             k->batch_lanes_wgrad_partial, k->batch_lanes_wgrad_tiles, k->batch_lanes_wgrad_scratch,
             k->batch_lanes_wgrad_run, k->batch_lanes_wgrad_sum_tiles, k->batch_lanes_wgrad_sum, 0,
             true},
            {"lanes", k->batch_lanes_large_wgrad_fits, NULL, NULL, NULL, NULL, NULL, NULL,
             k->batch_lanes_large_wgrad_partial, k->batch_lanes_large_wgrad_tiles,
             k->batch_lanes_large_wgrad_scratch, k->batch_lanes_large_wgrad_run,
             k->batch_lanes_large_wgrad_sum_tiles, k->batch_lanes_large_wgrad_sum, 0, true},
            {"winograd", k->winograd_wgrad_fits, NULL, NULL, NULL, NULL, NULL, NULL,
             k->winograd_wgrad_shared, NULL, k->winograd_wgrad_scratch, NULL, NULL, NULL,
             WINOGRAD_TOLERANCE, true}, /* by phases */
        };
        for (size_t g = 0; g < sizeof(gradients) / sizeof(gradients[0]); g++)
            walk_gradients(k, &gradients[g]);
        for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
            if (ways[w].run == k->winograd_run || ways[w].run == k->batch_lanes_run)
                walk_mirrored(k, &ways[w]);
    }
    return ew_test_status();
}
