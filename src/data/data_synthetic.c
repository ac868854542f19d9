/* SPDX-License-Identifier: Apache-2.0 */
/* Reader "synthetic": images drawn on demand.  Digits as pen strokes, or coloured shapes on a
 * textured background; position, size, slant, thickness and noise depend on (seed, split, index).
 * A small network learns them.
 *
 * Motion: clips of a shape that moves, turns or grows.  The class is the direction; each pair of
 * classes is the same clip forwards and backwards, so that neither single frames nor their
 * unordered set determine it. */
#include <math.h>
#include <string.h>

#include "base/field.h"
#include "base/rng.h"
#include "data/reader.h"

#define MAX_SIZE  1024
#define MAX_COUNT 100000000

enum kind { DIGITS, SHAPES, MOTION };
static const char *const kinds[] = {"digits", "shapes", "motion", NULL};

struct spec {
    int kind;
    int64_t size, channels, classes, train, test, seed, frames;
    double noise;
};

#define INT_FIELD(member, value, low, high)                                                        \
    {                                                                                              \
        .name = #member, .type = EW_FIELD_INT, .offset = offsetof(struct spec, member),            \
        .def = value, .min = low, .max = high                                                      \
    }

static const struct ew_field fields[] = {
    {.name = "kind",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct spec, kind),
     .choices = kinds,
     .def = "digits"},
    INT_FIELD(size, "0", 0, MAX_SIZE), /* 0: 32 for shapes, else 28 */
    INT_FIELD(channels, "0", 0, 3),    /* 0: 1 for digits, else 3 */
    INT_FIELD(classes, "0", 0, 100),   /* 0: 8 for motion, else 10 */
    INT_FIELD(frames, "16", 2, 256),   /* of motion */
    INT_FIELD(train, "6000", 1, MAX_COUNT),
    INT_FIELD(test, "1000", 1, MAX_COUNT),
    INT_FIELD(seed, "1", 0, 1e15),
    {.name = "noise",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct spec, noise),
     .def = "0.1",
     .min = 0,
     .max = 1},
    EW_FIELD_END,
};

/* ---- Outlines -------------------------------------------------------------------------------- */

#define MAX_POINTS 12

/* A polyline in the unit square: x, y pairs, y downwards. */
struct stroke {
    int n;
    float p[MAX_POINTS][2];
};

/* Each digit as one pen stroke. */
static const struct stroke digits[10] = {
    {9,
     {{.5f, .1f},
      {.3f, .2f},
      {.22f, .5f},
      {.3f, .8f},
      {.5f, .9f},
      {.7f, .8f},
      {.78f, .5f},
      {.7f, .2f},
      {.5f, .1f}}},
    {3, {{.35f, .25f}, {.55f, .1f}, {.55f, .9f}}},
    {6, {{.25f, .3f}, {.4f, .12f}, {.65f, .15f}, {.7f, .38f}, {.25f, .88f}, {.78f, .88f}}},
    {8,
     {{.27f, .15f},
      {.6f, .12f},
      {.72f, .3f},
      {.45f, .48f},
      {.74f, .65f},
      {.65f, .85f},
      {.4f, .9f},
      {.24f, .8f}}},
    {4, {{.62f, .9f}, {.62f, .1f}, {.22f, .65f}, {.82f, .65f}}},
    {8,
     {{.72f, .12f},
      {.32f, .12f},
      {.28f, .48f},
      {.55f, .42f},
      {.76f, .62f},
      {.68f, .84f},
      {.45f, .9f},
      {.25f, .82f}}},
    {8,
     {{.65f, .1f},
      {.4f, .3f},
      {.27f, .6f},
      {.38f, .87f},
      {.65f, .87f},
      {.75f, .66f},
      {.55f, .5f},
      {.29f, .62f}}},
    {3, {{.22f, .12f}, {.76f, .12f}, {.42f, .9f}}},
    {9,
     {{.5f, .48f},
      {.28f, .3f},
      {.5f, .1f},
      {.72f, .3f},
      {.5f, .48f},
      {.24f, .72f},
      {.5f, .92f},
      {.76f, .72f},
      {.5f, .48f}}},
    {8,
     {{.72f, .36f},
      {.5f, .5f},
      {.28f, .36f},
      {.42f, .12f},
      {.66f, .14f},
      {.72f, .36f},
      {.66f, .7f},
      {.5f, .92f}}},
};

/* The same as segments from (ax, ay) by (dx, dy), with 1 / length^2. */
struct pen {
    int n;
    float ax[MAX_POINTS], ay[MAX_POINTS], dx[MAX_POINTS], dy[MAX_POINTS], inverse[MAX_POINTS];
};

static void take_pen(const struct stroke *s, struct pen *p)
{
    p->n = s->n - 1;
    for (int i = 0; i < p->n; i++) {
        p->ax[i] = s->p[i][0];
        p->ay[i] = s->p[i][1];
        p->dx[i] = s->p[i + 1][0] - s->p[i][0];
        p->dy[i] = s->p[i + 1][1] - s->p[i][1];
        p->inverse[i] = 1 / (p->dx[i] * p->dx[i] + p->dy[i] * p->dy[i]);
    }
}

/* Distance from a point to the nearest segment. */
static double line_distance(const struct pen *p, float x, float y)
{
    float best = 1e9f;
    for (int i = 0; i < p->n; i++) {
        const float px = x - p->ax[i], py = y - p->ay[i];
        float t = (px * p->dx[i] + py * p->dy[i]) * p->inverse[i];
        t = t < 0 ? 0 : t > 1 ? 1 : t;
        const float ex = px - t * p->dx[i], ey = py - t * p->dy[i];
        const float d = ex * ex + ey * ey;
        best = d < best ? d : best;
    }
    return (double)sqrtf(best);
}

/* Signed distance (negative inside) of ten shapes around the origin, about 0.35 in size: exact, or
 * a bound that is tight near the outline. */
static double shape_distance(int shape, double x, double y)
{
    const double r = hypot(x, y), ax = fabs(x), ay = fabs(y);
    switch (shape) {
    case 0: /* disc */
        return r - 0.32;
    case 1: /* ring */
        return fabs(r - 0.28) - 0.07;
    case 2: /* square */
        return fmax(ax, ay) - 0.28;
    case 3: /* frame */
        return fabs(fmax(ax, ay) - 0.26) - 0.06;
    case 4: /* lozenge */
        return (ax + ay - 0.4) * 0.7071;
    case 5: /* triangle */
        return fmax(y - 0.24, ax * 0.866 - y * 0.5 - 0.2);
    case 6: /* plus */
        return fmin(fmax(ax - 0.36, ay - 0.1), fmax(ax - 0.1, ay - 0.36));
    case 7: /* bar */
        return fmax(ax - 0.38, ay - 0.12);
    case 8: /* star of five */
        return r * (1 - 0.35 * cos(5 * atan2(x, -y))) - 0.24;
    default: /* crescent */
        return fmax(r - 0.34, 0.28 - hypot(x - 0.16, y - 0.06));
    }
}

/* ---- Drawing --------------------------------------------------------------------------------- */

/* Random parameters of a sample. */
struct pose {
    double cx, cy, cos, sin, shear, size, width;
    double ink[3], ground[3], slope[3];
    struct pen pen; /* of digits */
};

static double between(struct ew_rng *r, double low, double high)
{
    return low + (high - low) * ew_rng_next_uniform(r);
}

/* Colours of a style: its hue, with random saturation and brightness. */
static void pick_colours(struct ew_rng *r, const struct spec *s, int64_t style, struct pose *p)
{
    /* Up to ten classes differ in shape alone, so any colour will do. */
    const double hue = s->classes <= 10 ? ew_rng_next_uniform(r)
                                        : (double)style / 10 + between(r, -0.03, 0.03) + 0.05;
    const double light = between(r, 0.75, 1), pale = between(r, 0, 0.35),
                 dark = between(r, 0, 0.35);
    for (int c = 0; c < 3; c++) {
        const double wave = fabs(fmod(hue + c / 3.0, 1) * 6 - 3) - 1;
        const double pure = wave < 0 ? 0 : wave > 1 ? 1 : wave;
        p->ink[c] = light * (pale + (1 - pale) * pure);
        p->ground[c] = dark * ew_rng_next_uniform(r);
        p->slope[c] = between(r, -0.15, 0.15);
    }
    if (s->channels == 1 || s->kind == DIGITS)
        for (int c = 0; c < 3; c++) {
            p->ink[c] = light;
            p->ground[c] = s->kind == DIGITS ? 0 : dark;
            p->slope[c] = s->kind == DIGITS ? 0 : p->slope[0];
        }
}

static struct pose pick_pose(struct ew_rng *r, const struct spec *s, int64_t style)
{
    struct pose p = {0};
    const double turn = between(r, -0.26, 0.26); /* radians: 15 degrees either way */
    p.cx = 0.5 + between(r, -0.1, 0.1);
    p.cy = 0.5 + between(r, -0.1, 0.1);
    p.cos = cos(turn);
    p.sin = sin(turn);
    p.shear = between(r, -0.25, 0.25);
    p.size = between(r, 0.65, 0.95);
    p.width = between(r, 0.035, 0.075);
    pick_colours(r, s, style, &p);
    return p;
}

/* Antialiased coverage of pixel (x, y) in the unit square, 0 to 1. */
static double coverage(const struct spec *s, const struct pose *p, int64_t figure,
                       const double at[2])
{
    const double dx = at[0] - p->cx, dy = at[1] - p->cy;
    const double y = (-p->sin * dx + p->cos * dy) / p->size;
    const double x = (p->cos * dx + p->sin * dy) / p->size + p->shear * y;
    const double d = s->kind == DIGITS ? line_distance(&p->pen, (float)x + 0.5f, (float)y + 0.5f) -
                                             p->width / p->size
                                       : shape_distance((int)figure, x, y);
    const double edge = 0.5 - d * p->size * (double)s->size;
    return edge < 0 ? 0 : edge > 1 ? 1 : edge;
}

static void draw_noise(const struct spec *s, struct ew_rng *r, uint8_t *pixels)
{
    const int64_t n = s->frames * s->size * s->size * s->channels;
    const int amount = (int)(s->noise * 255);
    for (int64_t i = 0; i < n && amount > 0; i += 8) {
        uint64_t bits = ew_rng_next(r);
        for (int64_t k = i; k < n && k < i + 8; k++, bits >>= 8) {
            const int v = pixels[k] + ((int)(bits & 255) - 128) * amount / 128;
            pixels[k] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
    }
}

/* A shape for motion: not round, since its rotation must be visible, and smaller. */
static struct pose pick_mover(struct ew_rng *r, const struct spec *s, int64_t *figure)
{
    struct pose p = pick_pose(r, s, 0);
    p.size *= 0.7;
    *figure = 2 + (int64_t)ew_rng_next_below(r, 8);
    return p;
}

/* The pose in frame f of a clip of this class. */
static struct pose pose_at(const struct pose *from, const struct spec *s, int64_t label, int64_t f)
{
    struct pose p = *from;
    const double way = label % 2 ? -1 : 1;
    const double u = way * ((double)f / (double)(s->frames - 1) - 0.5);
    const double turn = atan2(p.sin, p.cos) + (label / 2 == 2 ? 3 * u : 0);
    p.cx += label / 2 == 0 ? 0.5 * u : 0;
    p.cy += label / 2 == 1 ? 0.5 * u : 0;
    p.cos = cos(turn);
    p.sin = sin(turn);
    p.size *= label / 2 == 3 ? exp(1.2 * u) : 1;
    return p;
}

/* Stored in s->raw between fetch and decode: label and pose. */
struct sample_seed {
    uint64_t stream, index;
};

static ew_err fetch(const struct ew_dataset *d, enum ew_split split, int64_t i, struct ew_sample *s)
{
    const struct spec *spec = d->state;
    const struct sample_seed t = {.stream = (uint64_t)split, .index = (uint64_t)i << 16};
    EW_TRY(ew_bytes_need(&s->raw, sizeof(t)));
    memcpy(s->raw.at, &t, sizeof(t));
    s->label = i % spec->classes;
    return EW_OK;
}

static void draw(const struct spec *spec, const struct pose *p, int64_t figure, uint8_t *to)
{
    const int64_t n = spec->size, c = spec->channels;
    for (int64_t y = 0; y < n; y++)
        for (int64_t x = 0; x < n; x++, to += c) {
            const double at[2] = {((double)x + 0.5) / (double)n, ((double)y + 0.5) / (double)n};
            const double ink = coverage(spec, p, figure, at);
            for (int64_t k = 0; k < c; k++) {
                const double ground = p->ground[k] + p->slope[k] * at[1];
                const double v = ground + ink * (p->ink[k] - ground);
                to[k] = (uint8_t)(fmin(fmax(v, 0), 1) * 255 + 0.5);
            }
        }
}

static ew_err decode(const struct ew_dataset *d, struct ew_sample *s)
{
    const struct spec *spec = d->state;
    struct sample_seed t;
    memcpy(&t, s->raw.at, sizeof(t));
    struct ew_rng r = {.seed = (uint64_t)spec->seed, .stream = t.stream, .index = t.index};
    const int64_t n = spec->size, c = spec->channels;
    const int64_t frame = n * n * c;
    EW_TRY(ew_bytes_need(&s->image, (size_t)(spec->frames * frame)));
    int64_t figure = s->label % 10;
    struct pose p =
        spec->kind == MOTION ? pick_mover(&r, spec, &figure) : pick_pose(&r, spec, s->label / 10);
    if (spec->kind == DIGITS)
        take_pen(&digits[s->label], &p.pen);
    for (int64_t f = 0; f < spec->frames; f++) {
        const struct pose now = spec->kind == MOTION ? pose_at(&p, spec, s->label, f) : p;
        draw(spec, &now, figure, s->image.at + f * frame);
    }
    draw_noise(spec, &r, s->image.at);
    s->pixels = s->image.at;
    s->h = spec->frames * n;
    s->w = n;
    s->c = c;
    s->sy = n * c;
    s->sx = c;
    s->sc = 1;
    return EW_OK;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static ew_err name_classes(struct ew_dataset *d, const struct spec *s)
{
    static const char *const shapes[10] = {"disc",     "ring", "square", "frame", "lozenge",
                                           "triangle", "plus", "bar",    "star",  "crescent"};
    static const char *const ways[8] = {
        "right", "left", "down", "up", "clockwise", "counterclockwise", "growing", "shrinking"};
    const char *names[100];
    if (s->kind == MOTION)
        return ew_dataset_name_classes(d, ways, s->classes);
    for (int64_t k = 0; k < s->classes; k++) {
        names[k] = shapes[k % 10];
        if (s->classes > 10)
            names[k] = ew_arena_printf(&d->arena, "%s-%lld", shapes[k % 10], (long long)(k / 10));
        EW_CHECK(names[k], EW_ERR_MEMORY, "no memory for class names");
    }
    return ew_dataset_name_classes(d, names, s->classes);
}

static ew_err open_synthetic(struct ew_dataset *d)
{
    struct spec *s = ew_arena_alloc(&d->arena, sizeof(*s));
    char *line = ew_arena_strdup(&d->arena, d->spec);
    EW_CHECK(s && line, EW_ERR_MEMORY, "no memory for a data set");
    ew_fields_default(fields, s, sizeof(*s));
    for (char *p = line; *p; p++)
        if (*p == ',')
            *p = ' ';
    EW_TRY(ew_fail_in(ew_fields_parse(fields, line, s), "synthetic"));
    const bool digit = s->kind == DIGITS;
    const bool motion = s->kind == MOTION;
    s->size = s->size ? s->size : s->kind == SHAPES ? 32 : 28;
    s->classes = s->classes ? s->classes : motion ? 8 : 10;
    s->frames = motion ? s->frames : 1;
    s->channels = s->channels ? s->channels : digit ? 1 : 3;
    EW_CHECK(s->channels != 2, EW_ERR_USAGE, "synthetic: channels is 1 or 3, not 2");
    EW_CHECK(!digit || s->classes <= 10, EW_ERR_USAGE, "synthetic: there are 10 digits, not %lld",
             (long long)s->classes);
    EW_CHECK(s->classes >= 2, EW_ERR_USAGE, "synthetic: classes is 2 or more");
    EW_CHECK(!motion || s->classes <= 8, EW_ERR_USAGE, "synthetic: there are 8 motions, not %lld",
             (long long)s->classes);
    d->state = s;
    d->info.classes = s->classes;
    d->info.h = s->frames * s->size;
    d->info.w = s->size;
    d->info.frames = motion ? s->frames : 0;
    d->info.c = s->channels;
    d->info.count[EW_SPLIT_TRAIN] = s->train;
    d->info.count[EW_SPLIT_TEST] = s->test;
    return digit ? EW_OK : name_classes(d, s);
}

const struct ew_reader ew_data_synthetic = {
    .name = "synthetic",
    .layout = "digits, shapes or clips of moving shapes, drawn when they are read: "
              "synthetic:kind=shapes,size=32,classes=10,train=6000,test=1000",
    .open = open_synthetic,
    .fetch = fetch,
    .decode = decode,
};
