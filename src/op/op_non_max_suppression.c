/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression: the best boxes of each image and class that do not overlap too much.
 *
 * Their number depends on the data, but plans have fixed shapes: the output has the maximum number
 * of rows, [images x classes x most, 3] of (image, class, box), and rows after the last selected
 * box are -1.  (Requiring known boxes, as NonZero does, would exclude all detectors.) */
#include <math.h>
#include <stdlib.h>

#include "graph/onnx.h"
#include "op/types.h"

enum { BOXES, SCORES, MOST, OVERLAP, SCORE };

struct attr {
    int64_t center_point_box;
};

static const struct ew_field attrs[] = {
    {.name = "center_point_box",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct attr, center_point_box),
     .min = 0,
     .max = 1,
     .help = "boxes are centre x, y, width, height; else two corners, y before x"},
    EW_FIELD_END,
};

/* Most boxes of one class. */
static int64_t most(const struct ew_call *c)
{
    const struct ew_tensor *t = ew_call_in(c, MOST);
    const int64_t n = t ? ew_tensor_get_int(t, 0) : 0;
    return ew_max_i64(0, ew_min_i64(n, c->in[BOXES]->shape.dim[1]));
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_shape *boxes = &c->in[BOXES]->shape, *scores = &c->in[SCORES]->shape;
    EW_TRY(ew_types_check(c, BOXES, EW_TYPES_FLOAT));
    EW_TRY(ew_types_check(c, SCORES, EW_TYPES_FLOAT));
    EW_TRY(ew_types_check(c, MOST, EW_TYPES_INDEX));
    for (int i = MOST; i <= SCORE; i++)
        EW_CHECK(!ew_call_in(c, i) || ew_tensor_count(c->in[i]) == 1, EW_ERR_SHAPE,
                 "input %d is not a single number", i);
    EW_CHECK(boxes->rank == 3 && boxes->dim[2] == 4, EW_ERR_SHAPE, "boxes are not [N, boxes, 4]");
    EW_CHECK(scores->rank == 3 && scores->dim[0] == boxes->dim[0] &&
                 scores->dim[2] == boxes->dim[1],
             EW_ERR_SHAPE, "scores are not [N, classes, boxes] for %lld boxes of %lld images",
             (long long)boxes->dim[1], (long long)boxes->dim[0]);
    EW_CHECK(scores->dim[0] * scores->dim[1] <= INT32_MAX, EW_ERR_LIMIT, "too many classes");
    c->out[0]->dtype = EW_S64;
    c->out[0]->shape = (struct ew_shape){2, {scores->dim[0] * scores->dim[1] * most(c), 3}};
    return ew_shape_check(&c->out[0]->shape, c->name);
}

/* ---- Boxes ---- */

struct box {
    double y0, x0, y1, x1;
};

static struct box load_box(const struct ew_call *c, int64_t image, int64_t k)
{
    const struct attr *a = c->attr;
    double v[4];
    ew_tensor_load(c->in[BOXES], (image * c->in[BOXES]->shape.dim[1] + k) * 4, 4, v);
    if (a->center_point_box)
        return (struct box){v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
    return (struct box){fmin(v[0], v[2]), fmin(v[1], v[3]), fmax(v[0], v[2]), fmax(v[1], v[3])};
}

/* Intersection over union; 0 where a box is empty. */
static double overlap(const struct box *a, const struct box *b)
{
    const double high = fmin(a->y1, b->y1) - fmax(a->y0, b->y0);
    const double wide = fmin(a->x1, b->x1) - fmax(a->x0, b->x0);
    const double area_a = (a->y1 - a->y0) * (a->x1 - a->x0);
    const double area_b = (b->y1 - b->y0) * (b->x1 - b->x0);
    if (!(high > 0) || !(wide > 0) || !(area_a > 0) || !(area_b > 0))
        return 0;
    const double both = high * wide;
    return both / (area_a + area_b - both);
}

/* ---- Selection ---- */

struct candidate {
    double score;
    int64_t box;
};

/* By decreasing score; ties by index. */
static int by_score(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->score < y->score || x->score > y->score)
        return x->score < y->score ? 1 : -1;
    return (x->box > y->box) - (x->box < y->box);
}

/* Candidates, then the boxes that have been selected. */
static size_t scratch(const struct ew_call *c)
{
    const size_t n = (size_t)c->in[BOXES]->shape.dim[1];
    return n * (sizeof(struct candidate) + sizeof(struct box));
}

static double number(const struct ew_call *c, int slot, double none)
{
    const struct ew_tensor *t = ew_call_in(c, slot);
    return t ? ew_tensor_get(t, 0) : none;
}

static int64_t find_candidates(const struct ew_call *c, int64_t pair, struct candidate *list)
{
    const int64_t boxes = c->in[BOXES]->shape.dim[1];
    const double least = number(c, SCORE, -INFINITY);
    int64_t n = 0;
    for (int64_t k = 0; k < boxes; k++) {
        const double score = ew_tensor_get(c->in[SCORES], pair * boxes + k);
        if (score > least)
            list[n++] = (struct candidate){score, k};
    }
    qsort(list, (size_t)n, sizeof(*list), by_score);
    return n;
}

/* Selects the boxes of one (image, class) pair; returns the number of rows written. */
static int64_t select_boxes(const struct ew_call *c, int64_t pair, int64_t *rows)
{
    const int64_t classes = c->in[SCORES]->shape.dim[1], room = most(c);
    struct candidate *list = c->scratch;
    struct box *taken = (struct box *)(void *)(list + c->in[BOXES]->shape.dim[1]);
    const double limit = number(c, OVERLAP, 0);
    const int64_t n = room ? find_candidates(c, pair, list) : 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n && count < room; i++) {
        const struct box b = load_box(c, pair / classes, list[i].box);
        bool free = true;
        for (int64_t k = 0; k < count && free; k++)
            free = !(overlap(&b, &taken[k]) > limit);
        if (!free)
            continue;
        taken[count] = b;
        rows[3 * count] = pair / classes;
        rows[3 * count + 1] = pair % classes;
        rows[3 * count + 2] = list[i].box;
        count++;
    }
    return count;
}

static ew_err forward(const struct ew_call *c)
{
    int64_t *rows = c->out[0]->data, used = 0;
    const int64_t pairs = c->in[SCORES]->shape.dim[0] * c->in[SCORES]->shape.dim[1];
    for (int64_t p = 0; p < pairs; p++)
        used += select_boxes(c, p, rows + 3 * used);
    for (int64_t i = 3 * used; i < ew_tensor_count(c->out[0]); i++)
        rows[i] = -1;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    /* one comparison each; the rest depends on the data */
    out->flops += ew_tensor_count(c->in[SCORES]);
}

/* clang-format off */
#define CORNERS {"1x6x4", .fill = EW_FILL_VALUES, .values =                                        \
    "0,0,1,1,0,0.1,1,1.1,0,-0.1,1,0.9,0,10,1,11,0,10.1,1,11.1,0,100,1,101"}
static const struct ew_op_case cases[] = {
    {.name = "padded", .in = {CORNERS,
     {"1x1x6", .fill = EW_FILL_VALUES, .values = "0.9,0.75,0.6,0.95,0.5,0.3"},
     {"1", EW_S64, EW_FILL_VALUES, .values = "3", .constant = true},
     {"1", .fill = EW_FILL_VALUES, .values = "0.5"}, {"1", .fill = EW_FILL_VALUES, .values = "0.4"}},
     .n_in = 5, .out_shape = "3x3"},
    {.name = "two classes", .in = {CORNERS, {"1x2x6"},
     {"", EW_S64, EW_FILL_VALUES, .values = "9", .constant = true}}, .n_in = 3,
     .out_shape = "12x3"},
    {.name = "by centre", .attrs = "center_point_box=1",
     .in = {{"2x5x4", .fill = EW_FILL_POSITIVE}, {"2x3x5"},
            {"", EW_S64, EW_FILL_VALUES, .values = "2", .constant = true},
            {"", .fill = EW_FILL_VALUES, .values = "0.3"}}, .n_in = 4, .out_shape = "12x3"},
    {.name = "no number", .in = {CORNERS, {"1x2x6"}}, .n_in = 2, .out_shape = "0x3"},
};
/* clang-format on */

const struct ew_op ew_op_non_max_suppression = {
    .name = "non_max_suppression",
    .help = "the best boxes that do not overlap too much, then rows of -1",
    .min_in = 2,
    .max_in = 5,
    .known_in = 1 << MOST,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    .onnx = {.type = "NonMaxSuppression", .since = 10},
    EW_OP_CASES(cases),
};
