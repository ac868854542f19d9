/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation and preprocessing.  Normalisation is a lookup table by byte value and channel, which
 * is exact and the same on every machine.  Resizing is in image_resize.c. */
#include "data/augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/field.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/image_resize.h"
#include "data/streams.h"

#define MOST_PIXELS ((int64_t)64 << 20) /* of a resized image, as of a read one */

/* ---- Text ------------------------------------------------------------------------------------ */

static const struct ew_field fields[] = {
    {.name = "crop",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_augment, crop),
     .min = 0,
     .max = 1024},
    {.name = "flip", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_augment, flip)},
    {.name = "time", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_augment, time)},
    {.name = "rotate",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_augment, rotate),
     .min = 0,
     .max = 180},
    {.name = "erase",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_augment, erase),
     .min = 0,
     .max = 1},
    {.name = "zoom",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_augment, zoom),
     .min = 0,
     .max = 1},
    EW_FIELD_END,
};

static ew_err parse_word(char *word, struct ew_augment *out)
{
    if (strcmp(word, "none") == 0)
        return EW_OK;
    char *value = strchr(word, '=');
    if (value)
        *value++ = '\0';
    const struct ew_field *f = ew_field_find(fields, word);
    EW_CHECK(f, EW_ERR_USAGE,
             "augment: '%.60s' is not one of none, standard, crop=N, flip, "
             "rotate=DEGREES, erase=P, zoom=SHARE, time",
             word);
    EW_CHECK(value || f->type == EW_FIELD_BOOL, EW_ERR_USAGE, "augment: %s needs a value", word);
    return ew_fail_in(ew_field_parse(f, value ? value : "true", out), "augment");
}

ew_err ew_augment_parse(const char *text, struct ew_augment *out)
{
    *out = (struct ew_augment){0};
    if (strcmp(text, "standard") == 0)
        text = "crop=4,flip";
    char line[256];
    EW_CHECK(strlen(text) < sizeof(line), EW_ERR_USAGE, "augment: '%.60s...' is too long", text);
    strcpy(line, text);
    char *save = NULL;
    for (char *word = strtok_r(line, ",", &save); word; word = strtok_r(NULL, ",", &save))
        EW_TRY(parse_word(word, out));
    return EW_OK;
}

/* ---- Draws ----------------------------------------------------------------------------------- */

/* Each sample has 64 blocks of the epoch's random stream. */
enum {
    DRAW_PLACE,
    DRAW_ERASE,
    DRAW_TIME,
    DRAW_ERASE_BOX = 16,
    DRAW_ZOOM = 32,
    DRAWS = 64,
    TRIES = 10
};

struct rng_counter {
    uint64_t seed, stream, index;
};

static struct ew_rng_block roll(const struct rng_counter *d, int which)
{
    return ew_rng_block(d->seed, d->stream, d->index + (uint64_t)which);
}

static double unit(uint32_t v)
{
    return v * 0x1p-32;
}

static int64_t below(uint32_t v, int64_t n)
{
    return (int64_t)(((uint64_t)v * (uint64_t)n) >> 32);
}

double ew_augment_place(uint64_t seed, int64_t epoch, int64_t index)
{
    const struct rng_counter d = {ew_data_seed(seed), ew_data_stream(EW_STREAM_AUGMENT, epoch),
                                  (uint64_t)index * DRAWS};
    return unit(roll(&d, DRAW_TIME).v[0]) - 0.5;
}

/* ---- The augmenter --------------------------------------------------------------------------- */

struct ew_augmenter {
    struct ew_image_spec spec;
    uint64_t seed;
    float lut[EW_SAMPLE_CHANNELS][256];
    struct ew_bytes grey, sized, turned;
    struct ew_resizer resizer;
};

ew_err ew_augmenter_new(const struct ew_image_spec *spec, struct ew_augmenter **out)
{
    EW_CHECK(spec->h > 0 && spec->w > 0 && spec->h <= 1 << 14 && spec->w <= 1 << 14 &&
                 (spec->c == 1 || spec->c == 3),
             EW_ERR_SHAPE, "images of %lldx%lldx%lld cannot be made", (long long)spec->h,
             (long long)spec->w, (long long)spec->c);
    struct ew_augmenter *a = calloc(1, sizeof(*a));
    EW_CHECK(a, EW_ERR_MEMORY, "no memory for augmentation");
    a->spec = *spec;
    a->seed = ew_data_seed(spec->seed);
    for (int c = 0; c < spec->c; c++) {
        const double mean = spec->prep.mean[c], std = spec->prep.std[c];
        for (int v = 0; v < 256; v++)
            a->lut[c][v] = (float)((v / 255.0 - mean) / (std > 0 ? std : 1));
    }
    *out = a;
    return EW_OK;
}

void ew_augmenter_free(struct ew_augmenter *a)
{
    if (!a)
        return;
    free(a->grey.at);
    free(a->sized.at);
    free(a->turned.at);
    ew_resizer_fini(&a->resizer);
    free(a);
}

/* ---- Placing --------------------------------------------------------------------------------- */

/* Pixels in memory: pixel (y, x) of channel c is at[y * sy + x * sx + c * sc]. */
struct view {
    const uint8_t *at;
    int64_t h, w, sy, sx, sc;
};

/* One output row: columns [from, to) are from the view, the others black. */
struct span {
    int64_t from, to, w;
};

static void black(float *out, int64_t n, int64_t c, const float lut[][256])
{
    for (int64_t x = 0; x < n; x++)
        for (int64_t k = 0; k < c; k++)
            *out++ = lut[k][0];
}

static void row1(float *restrict out, const uint8_t *restrict in, int64_t n, int64_t sx,
                 const float lut[256])
{
    for (int64_t x = 0; x < n; x++)
        out[x] = lut[in[x * sx]];
}

static void row3(float *restrict out, const uint8_t *restrict in, int64_t n, const struct view *v,
                 const float lut[][256])
{
    const uint8_t *g = in + v->sc, *b = in + 2 * v->sc;
    for (int64_t x = 0; x < n; x++) {
        out[3 * x] = lut[0][in[x * v->sx]];
        out[3 * x + 1] = lut[1][g[x * v->sx]];
        out[3 * x + 2] = lut[2][b[x * v->sx]];
    }
}

/* Copies the window of the spec's size at (y0, x0) of the view, black beyond its edges. */
static void place(const struct ew_augmenter *a, const struct view *v, int64_t y0, int64_t x0,
                  float *out)
{
    const int64_t h = a->spec.h, w = a->spec.w, c = a->spec.c;
    const int64_t from = ew_min_i64(ew_max_i64(-x0, 0), w);
    const int64_t to = ew_max_i64(ew_min_i64(v->w - x0, w), from);
    for (int64_t y = 0; y < h; y++, out += w * c) {
        if (y + y0 < 0 || y + y0 >= v->h || to == from) {
            black(out, w, c, a->lut);
            continue;
        }
        const uint8_t *in = v->at + (y + y0) * v->sy + (from + x0) * v->sx;
        black(out, from, c, a->lut);
        if (c == 1)
            row1(out + from, in, to - from, v->sx, a->lut[0]);
        else
            row3(out + 3 * from, in, to - from, v, a->lut);
        black(out + to * c, w - to, c, a->lut);
    }
}

/* Horizontal flip. */
static void mirror(struct view *v)
{
    v->at += (v->w - 1) * v->sx;
    v->sx = -v->sx;
}

/* ---- Colour, size, angle --------------------------------------------------------------------- */

/* Converts the number of channels: grey is read three times, colour becomes luma. */
static ew_err match_channels(struct ew_augmenter *a, const struct ew_sample *s, struct view *v)
{
    *v = (struct view){s->pixels, s->h, s->w, s->sy, s->sx, s->sc};
    if (s->c == a->spec.c)
        return EW_OK;
    if (s->c == 1) {
        v->sc = 0;
        return EW_OK;
    }
    EW_TRY(ew_bytes_need(&a->grey, (size_t)(s->h * s->w)));
    uint8_t *to = a->grey.at;
    for (int64_t y = 0; y < s->h; y++)
        for (int64_t x = 0; x < s->w; x++) { /* ITU-R BT.601 luma, as JPEG's own grey */
            const uint8_t *p = s->pixels + y * s->sy + x * s->sx;
            *to++ = (uint8_t)((299 * p[0] + 587 * p[s->sc] + 114 * p[2 * s->sc] + 500) / 1000);
        }
    *v = (struct view){a->grey.at, s->h, s->w, s->w, 1, 0};
    return EW_OK;
}

/* Resizing of the whole image. */
static struct ew_resize whole(const struct ew_augmenter *a, const struct view *v)
{
    const double grow = ew_preprocess_grow(&a->spec.prep, (const int64_t[]){v->h, v->w},
                                           (const int64_t[]){a->spec.h, a->spec.w});
    struct ew_resize r = {.y = {0, (double)v->h}, .x = {0, (double)v->w}};
    r.h = ew_max_i64((int64_t)llround((double)v->h * grow), a->spec.h);
    r.w = ew_max_i64((int64_t)llround((double)v->w * grow), a->spec.w);
    return r;
}

/* Random resized crop (Szegedy et al., CVPR 2015): area uniform between `zoom` and 1, aspect ratio
 * between 3/4 and 4/3. */
static struct ew_resize zoomed(const struct ew_augmenter *a, const struct view *v,
                               const struct rng_counter *d)
{
    struct ew_resize r = {.h = a->spec.h, .w = a->spec.w};
    for (int t = 0; t < TRIES; t++) {
        const struct ew_rng_block b = roll(d, DRAW_ZOOM + t);
        const double share = a->spec.augment.zoom + (1 - a->spec.augment.zoom) * unit(b.v[0]);
        const double ratio = exp((2 * unit(b.v[1]) - 1) * log(4.0 / 3));
        const double area = share * (double)(v->h * v->w);
        const int64_t w = llround(sqrt(area * ratio)), h = llround(sqrt(area / ratio));
        if (w < 1 || h < 1 || w > v->w || h > v->h)
            continue;
        r.y[0] = (double)below(b.v[2], v->h - h + 1);
        r.x[0] = (double)below(b.v[3], v->w - w + 1);
        r.y[1] = (double)h;
        r.x[1] = (double)w;
        return r;
    }
    struct ew_resize all = whole(a, v); /* the middle */
    const double gy = (double)all.h / (double)v->h, gx = (double)all.w / (double)v->w;
    r.y[1] = (double)a->spec.h / gy;
    r.x[1] = (double)a->spec.w / gx;
    r.y[0] = ((double)v->h - r.y[1]) / 2;
    r.x[0] = ((double)v->w - r.x[1]) / 2;
    return r;
}

static ew_err match_size(struct ew_augmenter *a, const struct rng_counter *d, struct view *v)
{
    const bool zoom = a->spec.augment.zoom > 0;
    struct ew_resize r = zoom ? zoomed(a, v, d) : whole(a, v);
    if (!zoom && r.h == v->h && r.w == v->w)
        return EW_OK;
    EW_CHECK(r.h <= MOST_PIXELS / r.w, EW_ERR_LIMIT,
             "%lld x %lld pixels, resized to %lld x %lld: at most %lld are made", (long long)v->w,
             (long long)v->h, (long long)r.w, (long long)r.h, (long long)MOST_PIXELS);
    r.in = v->at;
    r.in_h = v->h;
    r.in_w = v->w;
    r.sy = v->sy;
    r.sx = v->sx;
    r.sc = v->sc;
    r.c = v->sc == 0 ? 1 : a->spec.c;
    EW_TRY(ew_bytes_need(&a->sized, (size_t)(r.h * r.w * r.c)));
    EW_TRY(ew_resizer_run(&a->resizer, &r, a->sized.at));
    *v = (struct view){a->sized.at, r.h, r.w, r.w * r.c, r.c, r.c == 1 ? 0 : 1};
    return EW_OK;
}

static double pixel(const struct view *v, int64_t y, int64_t x, int64_t c)
{
    if (y < 0 || x < 0 || y >= v->h || x >= v->w)
        return 0;
    return v->at[y * v->sy + x * v->sx + c * v->sc];
}

/* Rotates the view about its centre, with bilinear interpolation. */
static ew_err turn(struct ew_augmenter *a, double degrees, struct view *v)
{
    const int64_t c = v->sc == 0 ? 1 : a->spec.c;
    EW_TRY(ew_bytes_need(&a->turned, (size_t)(v->h * v->w * c)));
    const double angle = degrees * (3.14159265358979323846 / 180), cs = cos(angle), sn = sin(angle);
    const double my = (double)(v->h - 1) / 2, mx = (double)(v->w - 1) / 2;
    uint8_t *to = a->turned.at;
    for (int64_t y = 0; y < v->h; y++)
        for (int64_t x = 0; x < v->w; x++) {
            const double dy = (double)y - my, dx = (double)x - mx;
            const double sy = my + cs * dy - sn * dx, sx = mx + sn * dy + cs * dx;
            const int64_t iy = (int64_t)floor(sy), ix = (int64_t)floor(sx);
            const double fy = sy - (double)iy, fx = sx - (double)ix;
            for (int64_t k = 0; k < c; k++) {
                const double top = (1 - fx) * pixel(v, iy, ix, k) + fx * pixel(v, iy, ix + 1, k);
                const double low =
                    (1 - fx) * pixel(v, iy + 1, ix, k) + fx * pixel(v, iy + 1, ix + 1, k);
                *to++ = (uint8_t)((1 - fy) * top + fy * low + 0.5);
            }
        }
    *v = (struct view){a->turned.at, v->h, v->w, v->w * c, c, c == 1 ? 0 : 1};
    return EW_OK;
}

/* ---- Erasing --------------------------------------------------------------------------------- */

/* Random erasing (Zhong et al., AAAI 2020): sets a rectangle of 2 to 33 % of the area to the mean.
 */
static void erase(const struct ew_augmenter *a, const struct rng_counter *d, float *out)
{
    const int64_t h = a->spec.h, w = a->spec.w, c = a->spec.c;
    if (unit(roll(d, DRAW_ERASE).v[0]) >= a->spec.augment.erase)
        return;
    for (int t = 0; t < TRIES; t++) {
        const struct ew_rng_block b = roll(d, DRAW_ERASE_BOX + t);
        const double area = (0.02 + 0.31 * unit(b.v[0])) * (double)(h * w);
        const double ratio = exp((2 * unit(b.v[1]) - 1) * log(3.3));
        const int64_t eh = llround(sqrt(area * ratio)), ew = llround(sqrt(area / ratio));
        if (eh < 1 || ew < 1 || eh >= h || ew >= w)
            continue;
        const int64_t y0 = below(b.v[2], h - eh + 1), x0 = below(b.v[3], w - ew + 1);
        for (int64_t y = y0; y < y0 + eh; y++)
            memset(out + (y * w + x0) * c, 0, (size_t)(ew * c) * sizeof(*out));
        return;
    }
}

ew_err ew_augmenter_run(struct ew_augmenter *a, const struct ew_sample *s, int64_t epoch,
                        int64_t index, float *out)
{
    const struct ew_augment *g = &a->spec.augment;
    const struct rng_counter d = {a->seed, ew_data_stream(EW_STREAM_AUGMENT, epoch),
                                  (uint64_t)index * DRAWS};
    const bool draws = g->crop > 0 || g->flip || g->rotate > 0;
    const struct ew_rng_block b = draws ? roll(&d, DRAW_PLACE) : (struct ew_rng_block){{0}};
    struct view v;
    EW_TRY(match_channels(a, s, &v));
    EW_TRY(match_size(a, &d, &v));
    if (g->rotate > 0)
        EW_TRY(turn(a, (2 * unit(b.v[3]) - 1) * g->rotate, &v));
    if (g->flip && b.v[2] >> 31)
        mirror(&v);
    int64_t y0 = (v.h - a->spec.h) / 2, x0 = (v.w - a->spec.w) / 2;
    if (g->crop > 0) {
        y0 = below(b.v[0], v.h - a->spec.h + 2 * g->crop + 1) - g->crop;
        x0 = below(b.v[1], v.w - a->spec.w + 2 * g->crop + 1) - g->crop;
    }
    place(a, &v, y0, x0, out);
    if (g->erase > 0)
        erase(a, &d, out);
    return EW_OK;
}
