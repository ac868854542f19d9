/* SPDX-License-Identifier: Apache-2.0 */
/* Plot of widths over depth: the network's own widths, uniform ones of the same size, and those
 * found. */
#include <stdio.h>

#include "base/file.h"
#include "cli/scale_cmd.h"

enum { WIDTH = 640, HEIGHT = 360, LEFT = 56, RIGHT = 16, TOP = 40, BOTTOM = 44 };

/* Coordinates of gate l of n, and of a number of filters of at most `most`. */
static double x_of(int l, int n)
{
    return LEFT + (n > 1 ? (double)(WIDTH - LEFT - RIGHT) * l / (n - 1) : 0);
}

static double y_of(double filters, double most)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * filters / most;
}

/* The distance of ticks: a round number of filters, at most five below `most`. */
static double step_of(double most)
{
    double step = 1;
    while (step * 5 < most)
        step *= step * 2 * 5 >= most ? 2 : 10;
    return step;
}

static void axes(FILE *f, int n, double most)
{
    const double step = step_of(most);
    fprintf(f, "<g stroke=\"#bbb\" fill=\"#555\" font-size=\"12\">\n");
    for (double v = 0; v <= most; v += step)
        fprintf(f,
                "<path d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" stroke=\"none\" "
                "text-anchor=\"end\">%.0f</text>\n",
                LEFT, y_of(v, most), WIDTH - RIGHT, LEFT - 6, y_of(v, most) + 4, v);
    for (int l = 0; l<n; l += n> 24 ? 4 : 1)
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" stroke=\"none\" text-anchor=\"middle\">%d</text>\n",
                x_of(l, n), HEIGHT - BOTTOM + 18, l);
    fprintf(f,
            "<text x=\"%d\" y=\"%d\" stroke=\"none\" text-anchor=\"middle\">layer</text>\n</g>\n",
            (WIDTH + LEFT) / 2, HEIGHT - 6);
}

static void line(FILE *f, const struct ew_width_line *w, int n, double most)
{
    fprintf(f, "<g stroke=\"%s\" fill=\"%s\"><polyline fill=\"none\" stroke-width=\"2\" points=\"",
            w->colour, w->colour);
    for (int l = 0; l < n; l++)
        fprintf(f, "%.1f,%.1f ", x_of(l, n), y_of(w->widths[l], most));
    fprintf(f, "\"/>\n");
    for (int l = 0; l < n; l++)
        fprintf(
            f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%s, layer %d: %d</title></circle>\n",
            x_of(l, n), y_of(w->widths[l], most), w->name, l, (int)w->widths[l]);
    fprintf(f, "</g>\n");
}

ew_err ew_scale_picture(const char *path, const struct ew_scaling *s,
                        const struct ew_width_line *lines, int n)
{
    struct ew_file_out o;
    double most = 1;
    for (int i = 0; i < n; i++)
        for (int l = 0; l < s->n; l++)
            most = lines[i].widths[l] > most ? lines[i].widths[l] : most;
    EW_TRY(ew_file_out_open(path, &o));
    fprintf(o.f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\">\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    axes(o.f, s->n, most);
    for (int i = 0; i < n; i++) {
        line(o.f, &lines[i], s->n, most);
        fprintf(o.f, "<text x=\"%d\" y=\"24\" font-size=\"13\" fill=\"%s\">%s</text>\n",
                LEFT + 190 * i, lines[i].colour, lines[i].name);
    }
    fprintf(o.f, "</svg>\n");
    return ew_file_out_commit(&o);
}
