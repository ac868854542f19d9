/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as still pictures. */
#include "report/figure_svg.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "report/figure_json.h"
#include "report/html.h"

#define WIDTH  680.0
#define HEIGHT 340.0
#define LEFT   62.0 /* of the plot, unless names of rows need more */
#define TOP    14.0

#define LINE_HEIGHT   13.0
#define CHAR_WIDTH    5.6
#define SLANTED_CHARS 20 /* of a slanted label: longer ones would take the plot's height */
#define ROW_CHARS     20 /* of a row's name */
#define MOST_NAMES    24 /* of more categories only some are labelled */

struct scale {
    double min, max, step;
};

#define MOST_LABELS 200 /* of points, in one picture */

/* Labels of points, none over another. */
struct labels {
    int n;
    double x[MOST_LABELS], y[MOST_LABELS], width[MOST_LABELS];
};

struct canvas {
    const struct ew_figure *f;
    struct labels *labels;
    FILE *out;
    bool tips;                  /* values to hover over */
    bool log;                   /* the left axis */
    double left, right, bottom; /* edges of the plot */
    struct scale x, y[2];
    int n_bars, n_boxes; /* series that stand side by side */
};

/* ---- Scales ---- */

static void widen(struct scale *s, double v)
{
    if (isfinite(v)) {
        s->min = fmin(s->min, v);
        s->max = fmax(s->max, v);
    }
}

/* Rounds the ends of the scale so that about `ticks` ticks have round values. */
static void rounded(struct scale *s, int ticks)
{
    if (!(s->max > s->min))
        s->max = s->min + 1;
    const double raw = (s->max - s->min) / ticks, power = pow(10, floor(log10(raw)));
    const double lead = raw / power;
    s->step = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
    s->min = floor(s->min / s->step) * s->step;
    s->max = ceil(s->max / s->step) * s->step;
}

static double px(const struct canvas *c, double value)
{
    const double v = c->f->desc->log_x ? log10(fmax(value, 1e-300)) : value;
    return c->left + (v - c->x.min) / (c->x.max - c->x.min) * (c->right - c->left);
}

/* Position on the axis; logarithmic axes hold exponents, with values that are not positive at
 * their lower end. */
static double on_axis(const struct canvas *c, int axis, double v)
{
    if (!c->log || axis)
        return v;
    return v > 0 ? fmax(log10(v), c->y[0].min) : c->y[0].min;
}

static double py(const struct canvas *c, int axis, double value)
{
    const struct scale *s = &c->y[axis];
    const double v = on_axis(c, axis, value);
    return c->bottom - (v - s->min) / (s->max - s->min) * (c->bottom - TOP);
}

/* The height of a stack at category i, up to series n. */
static double stacked(const struct ew_figure *f, int n, double x)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < f->series[i].n_points; j++)
            if (fabs(f->series[i].points[j].x - x) < 0.5)
                sum += f->series[i].points[j].y;
    return sum;
}

static bool by_category(const struct ew_figure *f)
{
    return f->desc->kind != EW_FIGURE_POINTS && f->desc->kind != EW_FIGURE_TRACE;
}

/* Scale from one power of ten to another, with the least value above the lower end so that its
 * bar is visible. */
static void exponents(struct scale *s, const struct ew_figure *f, bool of_x)
{
    *s = (struct scale){INFINITY, -INFINITY, 1};
    for (int i = 0; i < f->n_series; i++)
        for (int j = 0; j < f->series[i].n_points; j++) {
            const struct ew_point *p = &f->series[i].points[j];
            if ((of_x ? p->x : p->y) > 0)
                widen(s, log10(of_x ? p->x : p->y));
        }
    s->min = isfinite(s->min) ? floor(s->min - (of_x ? 0 : 0.1)) : 0;
    s->max = isfinite(s->max) && s->max > s->min ? ceil(s->max) : s->min + 1;
}

static void find_scales(struct canvas *c)
{
    const struct ew_figure *f = c->f;
    const bool from_zero = f->desc->kind != EW_FIGURE_POINTS && f->desc->kind != EW_FIGURE_BOXES;
    double top = 0; /* highest bar: a whisker many times as high would flatten all bars */
    c->x = (struct scale){INFINITY, -INFINITY, 0};
    c->y[0] = c->y[1] = (struct scale){from_zero ? 0 : INFINITY, from_zero ? 0 : -INFINITY, 0};
    for (int i = 0; i < f->n_series; i++) {
        const struct ew_series *s = &f->series[i];
        c->n_bars += s->shape == EW_SHAPE_BAR && !s->stacked;
        c->n_boxes += s->shape == EW_SHAPE_BOX;
        for (int j = 0; j < s->n_points; j++) {
            const struct ew_point *p = &s->points[j];
            widen(&c->x, p->x);
            top = s->right ? top : fmax(top, p->y);
            widen(&c->y[s->right], s->stacked ? stacked(f, f->n_series, p->x) : p->y);
            if (s->shape == EW_SHAPE_BOX) {
                widen(&c->y[0], p->group->y[s->measure].low);
                widen(&c->y[0], p->group->y[s->measure].high);
            } else if (!s->stacked) {
                widen(&c->y[s->right], p->low);
                widen(&c->y[s->right], p->high);
            }
        }
    }
    if (f->desc->kind == EW_FIGURE_BARS && top > 0 && c->y[0].max > 4 * top)
        c->y[0].max = 2 * top;
    if (by_category(f))
        c->x = (struct scale){-0.5, f->n_categories - 0.5, 1};
    else if (f->desc->log_x)
        exponents(&c->x, f, true);
    else
        rounded(&c->x, 6);
    if (c->log)
        exponents(&c->y[0], f, false);
    else
        rounded(&c->y[0], 5);
    rounded(&c->y[1], 5);
}

/* ---- Axes ---- */

/* With the digits that all ticks of the axis need. */
static const char *tick_text(const struct scale *s, double v, char buf[EW_VALUE_CHARS])
{
    const int digits = (int)ceil(-log10(s->step) - 1e-9);
    if (digits <= 0 || digits > 9)
        return ew_text_value(v + 0.0, buf);
    snprintf(buf, EW_VALUE_CHARS, "%.*f", digits, fabs(v) < s->step / 2 ? 0.0 : v);
    return buf;
}

/* "1000", "10⁹" */
static const char *power_text(int exponent, char buf[EW_VALUE_CHARS])
{
    static const char *const digits[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                         "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
    if (exponent < 5 || exponent > 99)
        return ew_text_value(pow(10, exponent), buf);
    snprintf(buf, EW_VALUE_CHARS, "10%s%s", exponent > 9 ? digits[exponent / 10] : "",
             digits[exponent % 10]);
    return buf;
}

/* Text with the anchor of the enclosing group. */
static void text_at(const struct canvas *c, double x, double y, const char *text)
{
    fprintf(c->out, "<text x=\"%.1f\" y=\"%.1f\">", x, y);
    ew_html_text(c->out, text);
    fputs("</text>", c->out);
}

static void label_of(const struct ew_axis *a, char *buf, size_t size)
{
    snprintf(buf, size, *a->unit ? "%s [%s]" : "%s", a->label, a->unit);
}

static void draw_y_name(const struct canvas *c, double x, const char *name)
{
    fprintf(c->out,
            "<text class=\"name\" text-anchor=\"middle\" transform=\"translate(%.1f %.1f) "
            "rotate(-90)\">",
            x, (TOP + c->bottom) / 2);
    ew_html_text(c->out, name);
    fputs("</text>", c->out);
}

static void draw_y(const struct canvas *c, int axis)
{
    char buf[128];
    const struct scale *s = &c->y[axis];
    const double x = axis ? c->right + 6 : c->left - 6;
    const bool log = c->log && !axis;
    const int n = (int)floor((s->max - s->min) / s->step + 0.5) + 1;
    if (!axis) {
        fputs("<path class=\"grid\" d=\"", c->out);
        for (int i = 0; i < n; i++) {
            const double at = s->min + i * s->step;
            fprintf(c->out, "M%.1f %.1fH%.1f", c->left, py(c, axis, log ? pow(10, at) : at),
                    c->right);
        }
        fputs("\"/>", c->out);
    }
    fprintf(c->out, "<g text-anchor=\"%s\">", axis ? "start" : "end");
    for (int i = 0; i < n; i++) {
        const double at = s->min + i * s->step, v = log ? pow(10, at) : at;
        if (log) /* powers of ten need no further digits */
            snprintf(buf, sizeof(buf), "%.*f", at < 0 ? (int)-at : 0, v);
        text_at(c, x, py(c, axis, v) + 4, log ? buf : tick_text(s, v, buf));
    }
    fputs("</g>", c->out);
    label_of(&c->f->y[axis], buf, sizeof(buf));
    draw_y_name(c, axis ? WIDTH - 6 : 12, buf);
}

/* The most lines that a category has. */
static int category_lines(const struct ew_figure *f)
{
    int most = 1;
    for (int i = 0; by_category(f) && i < f->n_categories; i++) {
        int n = 1;
        for (const char *p = f->categories[i]; *p; p++)
            n += *p == '\n';
        most = n > most ? n : most;
    }
    return most < 4 ? most : 4;
}

/* Width of one category; labels that are wider are slanted. */
static double category_room(const struct canvas *c)
{
    return (c->right - c->left) / (c->f->n_categories ? c->f->n_categories : 1);
}

static int longest_line(const struct ew_figure *f)
{
    int most = 0;
    for (int i = 0; i < f->n_categories; i++)
        for (const char *p = f->categories[i]; *p;) {
            const int len = (int)strcspn(p, "\n");
            most = len > most ? len : most;
            p += len + (p[len] == '\n');
        }
    return most;
}

static bool slanted(const struct canvas *c)
{
    return by_category(c->f) && c->f->n_categories <= MOST_NAMES &&
           longest_line(c->f) * CHAR_WIDTH > category_room(c);
}

/* Height of the labels below the plot. */
static double names_height(const struct canvas *c)
{
    const struct ew_figure *f = c->f;
    if (!slanted(c))
        return LINE_HEIGHT * category_lines(f);
    const int chars = longest_line(f) < SLANTED_CHARS ? longest_line(f) : SLANTED_CHARS;
    return 12 + chars * CHAR_WIDTH * 0.64 + LINE_HEIGHT * (category_lines(f) - 1); /* sin 40 */
}

/* Copies a name, cut to `fit` columns. */
static void cut(const char *name, int fit, char *buf, size_t size)
{
    snprintf(buf, size, "%s", name);
    if (ew_utf8_width(buf) > fit)
        memcpy(buf + ew_utf8_fit(buf, fit - 1), "\u2026", sizeof("\u2026"));
}

/* Label of category i, line by line, each cut to the width of the category. */
static void draw_category(const struct canvas *c, int i)
{
    const double room = category_room(c);
    const bool slant = slanted(c);
    const int fit = slant ? SLANTED_CHARS : room < 30 ? 5 : room > 360 ? 60 : (int)(room / 5.6);
    const char *p = c->f->categories[i];
    if (c->f->n_categories > MOST_NAMES && i % (c->f->n_categories / 12))
        return;
    for (int line = 0; line < 4 && p; line++) {
        char text[256], whole[256];
        const int len = (int)strcspn(p, "\n");
        snprintf(whole, sizeof(whole), "%.*s", len, p);
        cut(whole, fit, text, sizeof(text));
        if (slant)
            fprintf(c->out, "<g text-anchor=\"end\" transform=\"rotate(-40 %.1f %.1f)\">",
                    px(c, i) + 4, c->bottom + 12 + line * LINE_HEIGHT);
        text_at(c, px(c, i) + (slant ? 4 : 0), c->bottom + (slant ? 12 : 15) + line * LINE_HEIGHT,
                text);
        fputs(slant ? "</g>" : "", c->out);
        p = p[len] ? p + len + 1 : NULL;
    }
}

static void draw_x(const struct canvas *c)
{
    char buf[128];
    fputs("<g text-anchor=\"middle\">", c->out);
    if (by_category(c->f)) {
        for (int i = 0; i < c->f->n_categories; i++)
            draw_category(c, i);
    } else {
        for (int i = 0; c->x.min + i * c->x.step <= c->x.max + c->x.step / 2; i++) {
            const double at = c->x.min + i * c->x.step, v = c->f->desc->log_x ? pow(10, at) : at;
            text_at(c, px(c, v), c->bottom + 16,
                    c->f->desc->log_x ? power_text((int)lround(at), buf)
                                      : tick_text(&c->x, v, buf));
        }
    }
    label_of(&c->f->x, buf, sizeof(buf));
    fputs("<g class=\"name\">", c->out);
    text_at(c, (c->left + c->right) / 2, HEIGHT - 6, buf);
    fputs("</g></g>", c->out);
    fprintf(c->out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>", c->left, c->bottom, c->right);
}

/* ---- Marks ---- */

/* CSS classes of a series: colour, and a mark if it was not measured here. */
static const char *look(const struct ew_series *s, char buf[64])
{
    const bool real = s->quality == EW_QUALITY_MEASURED || s->quality == EW_QUALITY_DERIVED;
    char turn[8] = ""; /* beyond the eighth series: a darker or lighter shade */
    if (!s->front && s->colour / 8 % 5)
        snprintf(turn, sizeof(turn), " t%d", s->colour / 8 % 5);
    snprintf(buf, 64, "c%d%s%s%s", s->front ? 8 : s->colour % 8, turn,
             s->published ? " published"
             : real       ? ""
                          : " unreal",
             s->front || s->trend ? " front" : "");
    return buf;
}

/* Closes the start tag of a mark, adds the tooltip, and closes the mark. */
static void end_mark(const struct canvas *c, const char *tag, const struct ew_series *s,
                     const struct ew_point *p)
{
    char v[EW_VALUE_CHARS];
    if (!c->tips) {
        fputs("/>", c->out);
        return;
    }
    fputs("><title>", c->out);
    ew_html_text(c->out, s->name);
    if (p->label) {
        fputs(", ", c->out);
        ew_html_text(c->out, p->label);
    }
    fprintf(c->out, ": %s ", ew_text_value(p->y, v));
    ew_html_text(c->out, c->f->y[s->right].unit);
    fprintf(c->out, "</title></%s>", tag);
}

static void whisker(const struct canvas *c, const struct ew_series *s, const struct ew_point *p,
                    double x)
{
    if (isfinite(p->low) && isfinite(p->high) && p->high > p->low)
        fprintf(c->out, "<path class=\"whisker\" d=\"M%.1f %.1fh6m-3 0V%.1fm-3 0h6\"/>", x - 3,
                py(c, s->right, p->low), fmax(py(c, s->right, p->high), TOP));
}

static void draw_bars(const struct canvas *c, int n, int place)
{
    const struct ew_series *s = &c->f->series[n];
    const double slot = (c->right - c->left) / c->f->n_categories * 0.76;
    const double width = s->stacked ? fmin(slot, 60) : fmin(slot / c->n_bars, 48);
    char buf[64];
    for (int i = 0; i < s->n_points; i++) {
        const struct ew_point *p = &s->points[i];
        const double base = s->stacked ? stacked(c->f, n, p->x) : 0;
        const double x =
            px(c, p->x) + (s->stacked ? -width / 2 : (place - c->n_bars / 2.0) * width);
        const double y = py(c, 0, base + p->y);
        fprintf(c->out,
                "<rect class=\"mark bar %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\"",
                look(s, buf), x, y, width - (s->stacked ? 0 : 1), fmax(py(c, 0, base) - y, 0));
        end_mark(c, "rect", s, p);
        if (!s->stacked)
            whisker(c, s, p, x + width / 2);
    }
}

/* Appends a corner of a path; those of long paths are rounded to whole pixels. */
static void corner(const struct canvas *c, const struct ew_series *s, char command, double x,
                   double y)
{
    const int digits = s->n_points > 100 ? 0 : 1;
    fprintf(c->out, "%c%.*f %.*f", command, digits, px(c, x), digits, py(c, s->right, y));
}

/* Area from the lowest to the highest value of each stretch of a thinned trace. */
static void draw_range(const struct canvas *c, const struct ew_series *s)
{
    char buf[64];
    if (c->f->desc->kind != EW_FIGURE_TRACE || !s->n_points || !isfinite(s->points[0].low))
        return;
    fprintf(c->out, "<path class=\"range %s\" d=\"", look(s, buf));
    for (int i = 0; i < 2 * s->n_points; i++) {
        const bool back = i >= s->n_points;
        const struct ew_point *p = &s->points[back ? 2 * s->n_points - 1 - i : i];
        corner(c, s, i ? 'L' : 'M', p->x, back ? p->low : p->high);
    }
    fputs("Z\"/>", c->out);
}

/* Begins a point, whose shape differs between series as its colour does; returns the tag. */
static const char *draw_point(const struct canvas *c, const struct ew_series *s, const char *names,
                              double x, double y, double r)
{
    const double w = r * 0.9;
    switch (s->colour % 4) {
    case 1: /* square */
        fprintf(c->out, "<path class=\"%s\" d=\"M%.1f %.1fh%.1fv%.1fh%.1fz\"", names, x - w, y - w,
                2 * w, 2 * w, -2 * w);
        return "path";
    case 2: /* triangle */
        fprintf(c->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1fH%.1fz\"", names, x, y - r,
                x + r, y + w, x - r);
        return "path";
    case 3: /* diamond */
        fprintf(c->out, "<path class=\"%s\" d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz\"", names,
                x, y - r, r, r, -r, r, -r, -r);
        return "path";
    default:
        fprintf(c->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.0f\"", names, x, y, r);
        return "circle";
    }
}

static void draw_line(const struct canvas *c, const struct ew_series *s)
{
    char buf[64], names[80];
    draw_range(c, s);
    fprintf(c->out, "<path class=\"mark line %s\" d=\"", look(s, buf));
    for (int i = 0; i < s->n_points; i++)
        corner(c, s, i ? 'L' : 'M', s->points[i].x, s->points[i].y);
    fputs("\"/>", c->out);
    for (int i = 0; !s->front && !s->trend && s->n_points <= 60 && i < s->n_points; i++) {
        const struct ew_point *p = &s->points[i];
        whisker(c, s, p, px(c, p->x));
        snprintf(names, sizeof(names), "dot %s", look(s, buf));
        end_mark(c, draw_point(c, s, names, px(c, p->x), py(c, s->right, p->y), 3), s, p);
    }
}

/* Reserves the place of a label; false: another one is there. */
static bool place_label(struct labels *l, double x, double y, double width)
{
    for (int i = 0; i < l->n; i++)
        if (fabs(l->y[i] - y) < LINE_HEIGHT - 2 && x < l->x[i] + l->width[i] && l->x[i] < x + width)
            return false;
    if (l->n == MOST_LABELS)
        return false;
    l->x[l->n] = x;
    l->y[l->n] = y;
    l->width[l->n++] = width;
    return true;
}

static void draw_dots(const struct canvas *c, const struct ew_series *s)
{
    char buf[64], names[80];
    for (int i = 0; i < s->n_points; i++) {
        const struct ew_point *p = &s->points[i];
        const double x = px(c, p->x), y = py(c, 0, p->y);
        whisker(c, s, p, x);
        snprintf(names, sizeof(names), "mark dot %s", look(s, buf));
        end_mark(c, draw_point(c, s, names, x, y, 5), s, p);
        if (!p->label)
            continue;
        const double width = ew_utf8_width(p->label) * CHAR_WIDTH;
        const bool left = x + 8 + width > WIDTH; /* it would extend beyond the right edge */
        if (!place_label(c->labels, left ? x - 8 - width : x + 8, y - 6, width))
            continue;
        fputs(left ? "<g text-anchor=\"end\">" : "", c->out);
        text_at(c, left ? x - 8 : x + 8, y - 6, p->label);
        fputs(left ? "</g>" : "", c->out);
    }
}

static void draw_boxes(const struct canvas *c, const struct ew_series *s, int place)
{
    const double slot = (c->right - c->left) / c->f->n_categories * 0.7;
    const double width = fmin(slot / c->n_boxes, 56);
    char buf[64];
    for (int i = 0; i < s->n_points; i++) {
        const struct ew_point *p = &s->points[i];
        const struct ew_stat *y = &p->group->y[s->measure];
        const double x = px(c, p->x) + (place + 0.5 - c->n_boxes / 2.0) * width;
        const double w = width * 0.4, q1 = py(c, 0, y->q1), q3 = py(c, 0, y->q3);
        fprintf(c->out, "<path class=\"whisker\" d=\"M%.1f %.1fV%.1fM%.1f %.1fV%.1f\"/>", x,
                py(c, 0, y->low), q1, x, q3, py(c, 0, y->high));
        fprintf(c->out,
                "<rect class=\"mark box %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\"/><path class=\"median\" d=\"M%.1f %.1fh%.1f\"/>",
                look(s, buf), x - w, q3, 2 * w, fmax(q1 - q3, 1), x - w, py(c, 0, y->median),
                2 * w);
        for (int k = 0; k < y->n && k < EW_FIGURE_DOTS; k++)
            fprintf(c->out, "<circle class=\"value\" cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/>",
                    x + w * 0.5 * (k % 5 - 2) / 2, py(c, 0, y->v[k]));
    }
}

/* Left edge of the plot: names of rows and the axis' name are before it. */
static double left_edge(const struct ew_figure *f)
{
    int most = 0;
    for (int i = 0; f->desc->kind == EW_FIGURE_MATRIX && i < f->n_rows; i++)
        most = ew_utf8_width(f->rows[i]) > most ? ew_utf8_width(f->rows[i]) : most;
    return fmax(LEFT, 28 + CHAR_WIDTH * (most < ROW_CHARS ? most : ROW_CHARS));
}

static void draw_matrix(const struct canvas *c, const struct ew_series *s)
{
    const int n = c->f->n_rows;
    const double w = (c->right - c->left) / n, h = (c->bottom - TOP) / n;
    double most = 1;
    for (int i = 0; i < s->n_points; i++)
        most = fmax(most, s->points[i].y);
    for (int i = 0; i < s->n_points; i++) {
        const struct ew_point *p = &s->points[i];
        const double x = c->left + p->x * w, y = TOP + p->low * h;
        if (!(p->y > 0)) /* most cells of a large matrix are 0 */
            continue;
        fprintf(c->out,
                "<rect class=\"mark cell\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "fill-opacity=\"%.2f\"/>",
                x, y, w - 1, h - 1, 0.08 + 0.92 * p->y / most);
        if (n <= 20)
            fprintf(c->out,
                    "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.0f"
                    "</text>",
                    p->y > most / 2 ? "on" : "off", x + w / 2, y + h / 2 + 4, p->y);
    }
    fputs("<g text-anchor=\"end\">", c->out);
    for (int i = 0; i < n; i++) {
        char name[256];
        if (n > MOST_NAMES && i % (n / 12))
            continue;
        cut(c->f->rows[i], ROW_CHARS, name, sizeof(name));
        text_at(c, c->left - 6, TOP + (i + 0.5) * h + 4, name);
    }
    fputs("</g>", c->out);
    draw_y_name(c, 12, c->f->y[0].label);
}

static void draw_bands(const struct canvas *c)
{
    for (int i = 0; i < c->f->n_bands; i++) {
        const double from = px(c, c->f->bands[i].from), to = px(c, c->f->bands[i].to);
        fprintf(c->out,
                "<rect class=\"band%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\"><title>",
                i % 2, from, TOP, fmax(to - from, 0), c->bottom - TOP);
        ew_html_text(c->out, c->f->bands[i].name);
        fputs("</title></rect>", c->out);
    }
}

/* ---- All ---- */

static void draw_marks(const struct canvas *c)
{
    int bars = 0, boxes = 0;
    for (int i = 0; i < c->f->n_series; i++) {
        const struct ew_series *s = &c->f->series[i];
        switch (s->shape) {
        case EW_SHAPE_BAR:
            draw_bars(c, i, bars++);
            break;
        case EW_SHAPE_LINE:
            draw_line(c, s);
            break;
        case EW_SHAPE_DOT:
            draw_dots(c, s);
            break;
        case EW_SHAPE_BOX:
            draw_boxes(c, s, boxes++);
            break;
        case EW_SHAPE_CELL:
            draw_matrix(c, s);
            break;
        }
    }
}

/* Legend as HTML elements, which wrap on narrow screens. */
static void legend(const struct ew_figure *f, FILE *out)
{
    char buf[64];
    if (f->desc->kind == EW_FIGURE_MATRIX || f->n_series < 2)
        return;
    fputs("<ul class=\"legend\">", out);
    for (int i = 0; i < f->n_series; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++)
            seen |= strcmp(f->series[j].name, f->series[i].name) == 0;
        if (seen)
            continue;
        fprintf(out, "<li><i class=\"%s\"></i>", look(&f->series[i], buf));
        ew_html_text(out, f->series[i].name);
    }
    fputs("</ul>", out);
}

/* Within tags "62.0" becomes "62"; text stays as it is, and has no '<' or '>' of its own. */
static void put_short(const char *svg, FILE *out)
{
    bool in_tag = false;
    for (const char *p = svg; *p; p++) {
        if (*p == '<' || *p == '>')
            in_tag = *p == '<';
        if (in_tag && p[0] == '.' && p[1] == '0' && !(p[2] >= '0' && p[2] <= '9'))
            p++;
        else
            putc(*p, out);
    }
}

static void draw(struct canvas *c)
{
    const struct ew_figure *f = c->f;
    draw_bands(c);
    if (f->desc->kind != EW_FIGURE_MATRIX)
        draw_y(c, 0);
    if (f->y[1].label)
        draw_y(c, 1);
    draw_marks(c);
    draw_x(c);
}

ew_err ew_figure_svg(const struct ew_figure *f, bool tips, FILE *out)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size = 0;
    struct labels labels = {0};
    struct canvas c = {
        .f = f, .labels = &labels, .tips = tips, .log = ew_figure_log(f), .right = WIDTH - 14};
    if (f->missing)
        return EW_OK;
    c.out = open_memstream(&text, &size);
    EW_CHECK(c.out, EW_ERR_MEMORY, "no memory for a picture");
    if (f->y[1].label)
        c.right = WIDTH - 66;
    c.left = left_edge(f);
    c.bottom = HEIGHT - 28 - names_height(&c);
    find_scales(&c);
    draw(&c);
    EW_CHECK(ew_memstream_close(c.out, &text), EW_ERR_MEMORY, "no memory for a picture");
    fprintf(out, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    ew_html_text(out, f->title);
    fputs("\">", out);
    put_short(text, out);
    fputs("</svg>", out);
    legend(f, out);
    return EW_OK;
}
