/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a placed drawing as SVG. */
#include "report/graph_svg.h"

#include <string.h>

#include "graph/facts.h"
#include "report/graph_boxes.h"
#include "report/html.h"
#include "report/text_table.h"

#define MARGIN  24
#define HEADING 52 /* above the first layer */
#define GUTTER  56 /* between pages */
#define SIDE    22 /* how far from the middle of a box an edge to the side leaves it */

/* Estimated: about what sans-serif fonts need at 12 and 10 pixels. */
#define TITLE_WIDTH(chars) (int)((chars)*70 / 10)
#define NAME_WIDTH(chars)  (int)((chars)*54 / 10)

struct sheet {
    const struct ew_drawing *d;
    FILE *out;
    int origin[EW_MAX_PAGES]; /* x of each page's own 0 */
    int width, height;
    bool numbered; /* boxes carry their number, for a script */
};

static const struct {
    const char *fill, *line;
} colours[] = {
    [EW_BOX_END] = {"#f3f4f6", "#6b7280"},   [EW_BOX_FILTER] = {"#dbeafe", "#2563eb"},
    [EW_BOX_DENSE] = {"#ede9fe", "#7c3aed"}, [EW_BOX_POOL] = {"#dcfce7", "#16a34a"},
    [EW_BOX_JOIN] = {"#ffedd5", "#ea580c"},  [EW_BOX_OTHER] = {"#fef9c3", "#ca8a04"},
};

/* ---- Coordinates ---- */

static int box_x(const struct sheet *s, const struct ew_box *b)
{
    return s->origin[b->page] + b->x;
}

static int layer_y(const struct sheet *s, int page, int layer)
{
    const struct ew_page *p = &s->d->pages[page];
    return MARGIN + HEADING + (layer - p->first + (p->again >= 0)) * EW_LAYER_PITCH;
}

static int box_y(const struct sheet *s, const struct ew_box *b)
{
    return layer_y(s, b->page, b->layer);
}

/* ---- Texts ---- */

/* Cuts long names at their beginning, since the end distinguishes them; at a whole UTF-8
 * character. */
static void put_name(FILE *out, const char *name, int chars)
{
    const int len = (int)strlen(name);
    if (len > chars) {
        fputs("…", out);
        name += len - chars;
        while (((unsigned char)*name & 0xc0) == 0x80)
            name++;
    }
    ew_html_text(out, name);
}

/* Width of all boxes: titles fit, names may be cut. */
static int choose_width(const struct ew_drawing *d)
{
    int width = 150;
    for (int i = 0; i < d->n_boxes; i++) {
        const struct ew_box *b = &d->boxes[i];
        const int title = TITLE_WIDTH(strlen(b->title)) + 20;
        const int under = NAME_WIDTH(strlen(b->name) + strlen(b->shape) + 3) + 20;
        const int want = title > under ? title : under;
        width = width > want ? width : want;
    }
    return width < 320 ? width : 320;
}

/* At (x, y); `style` is more of the frame's style. */
static void draw_box_at(const struct sheet *s, const struct ew_box *b, int x, int y,
                        const char *style)
{
    const int w = s->d->box_width, shape_chars = (int)strlen(b->shape);
    x -= w / 2;
    if (s->numbered)
        fprintf(s->out, "<g data-i=\"%d\"%s>", (int)(b - s->d->boxes), style);
    else
        fprintf(s->out, "<g%s>", style);
    fprintf(s->out,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"%s\" "
            "stroke=\"%s\"/>",
            x, y, w, EW_BOX_HEIGHT, colours[b->kind].fill, colours[b->kind].line);
    fprintf(s->out, "<text class=\"t\" x=\"%d\" y=\"%d\">", x + 10, y + 15);
    ew_html_text(s->out, b->title);
    fprintf(s->out, "</text><text class=\"n\" x=\"%d\" y=\"%d\">", x + 10, y + 29);
    put_name(s->out, b->name, (w - 20) * 10 / 54 - shape_chars - 2);
    fprintf(s->out, "</text><text class=\"n e\" x=\"%d\" y=\"%d\">%s</text></g>\n", x + w - 10,
            y + 29, b->shape);
}

static void draw_box(const struct sheet *s, const struct ew_box *b)
{
    draw_box_at(s, b, box_x(s, b), box_y(s, b), "");
}

/* ---- Edges ---- */

/* From (x0, y0) down to (x1, y1), bending where they are not above each other. */
static void bend(FILE *out, int x0, int y0, int x1, int y1)
{
    if (x0 == x1)
        fprintf(out, "L%d %d", x1, y1);
    else
        fprintf(out, "C%d %d %d %d %d %d", x0, (y0 + 3 * y1) / 4, x1, (3 * y0 + y1) / 4, x1, y1);
}

/* Where an edge meets a box: in the middle, or to the side that it goes to. */
static int meet(int box, int other)
{
    return other == box ? box : other > box ? box + SIDE : box - SIDE;
}

/* From the end of a page to its repetition above the next: round the bottom, up between the pages.
 */
static void draw_turn(const struct sheet *s, int page)
{
    const struct ew_box *b = &s->d->boxes[s->d->pages[page].again];
    const int x0 = box_x(s, b), y0 = box_y(s, b) + EW_BOX_HEIGHT;
    const int x1 = s->origin[page] + b->x, y1 = MARGIN + HEADING;
    const int up = s->origin[page] + s->d->pages[page].left - GUTTER / 2;
    const int low = y0 + 14, top = y1 - 18, r = 8;
    fprintf(s->out,
            "<path class=\"p\" stroke-dasharray=\"4 3\" d=\"M%d %dV%dq0 %d %d %dH%dq%d 0 %d -%dV%d"
            "q0 -%d %d -%dH%dq%d 0 %d %dV%d\"/>\n",
            x0, y0, low - r, r, r, r, up - r, r, r, r, top + r, r, r, r, x1 - r, r, r, r, y1);
    draw_box_at(s, b, x1, y1, " opacity=\"0.5\"");
}

/* Where an edge starts: on its box, or where that is shown again. */
static void start_of(const struct sheet *s, const struct ew_edge *e, int *x, int *y)
{
    const struct ew_box *from = &s->d->boxes[e->from];
    const int page = s->d->boxes[e->to].page;
    *x = s->origin[page] + from->x;
    *y = (from->page == page ? box_y(s, from) : MARGIN + HEADING) + EW_BOX_HEIGHT;
}

static void draw_edge(const struct sheet *s, const struct ew_edge *e)
{
    const struct ew_box *from = &s->d->boxes[e->from], *to = &s->d->boxes[e->to];
    const int tx = box_x(s, to), ty = box_y(s, to);
    int fx, fy;
    start_of(s, e, &fx, &fy);
    if (!ew_edge_is_long(s->d, e)) {
        fprintf(s->out, "<path class=\"p\" d=\"M%d %d", meet(fx, tx), fy);
        bend(s->out, meet(fx, tx), fy, meet(tx, fx), ty);
    } else {
        const int x = s->origin[to->page] + e->track;
        const int top = layer_y(s, to->page, from->layer + 1);
        const int end = layer_y(s, to->page, to->layer - 1) + EW_BOX_HEIGHT;
        fprintf(s->out, "<path class=\"p\" d=\"M%d %d", meet(fx, x), fy);
        bend(s->out, meet(fx, x), fy, x, top);
        fprintf(s->out, "V%d", end);
        bend(s->out, x, end, meet(tx, x), ty);
    }
    fputs("\"/>\n", s->out);
}

/* ---- The sheet ---- */

static void measure(struct sheet *s)
{
    int x = MARGIN, layers = 0;
    for (int p = 0; p < s->d->n_pages; p++) {
        const struct ew_page *page = &s->d->pages[p];
        s->origin[p] = x - page->left;
        x += page->right - page->left + GUTTER;
        const int n = page->last - page->first + 1 + (page->again >= 0);
        layers = n > layers ? n : layers;
    }
    s->width = x - GUTTER + MARGIN;
    s->height = 2 * MARGIN + HEADING + layers * EW_LAYER_PITCH;
}

static ew_err draw_heading(const struct sheet *s, const struct ew_graph *g)
{
    struct ew_facts f;
    char params[EW_TEXT_CHARS], macs[EW_TEXT_CHARS];
    EW_TRY(ew_graph_facts(g, &f));
    fprintf(s->out, "<text x=\"%d\" y=\"%d\" style=\"font-size:18px;font-weight:600\">", MARGIN,
            MARGIN + 8);
    ew_html_text(s->out, g->name);
    fprintf(s->out, "</text><text class=\"n\" x=\"%d\" y=\"%d\">%s parameters, %s MACs</text>\n",
            MARGIN, MARGIN + 24, ew_text_count(f.params, params), ew_text_count(f.macs, macs));
    return EW_OK;
}

ew_err ew_drawing_svg(const struct ew_graph *g, const struct ew_drawing *d, bool numbered,
                      FILE *out)
{
    struct sheet s = {.d = d, .out = out, .numbered = numbered};
    measure(&s);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n",
            s.width, s.height, s.width, s.height);
    fputs("<style>text{font-family:system-ui,\"DejaVu Sans\",sans-serif;fill:#111827}"
          ".t{font-size:12px}.n{font-size:10px;fill:#6b7280}.e{text-anchor:end}"
          ".p{fill:none;stroke:#6b7280;stroke-width:1.2;marker-end:url(#a)}</style>\n"
          "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"7\" "
          "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0.8 8 4 0 7.2z\" fill=\"#6b7280\"/>"
          "</marker></defs>\n",
          out);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", s.width, s.height);
    EW_TRY(draw_heading(&s, g));
    for (int p = 1; p < d->n_pages; p++)
        if (d->pages[p].again >= 0)
            draw_turn(&s, p);
    for (int i = 0; i < d->n_edges; i++)
        draw_edge(&s, &d->edges[i]);
    for (int i = 0; i < d->n_boxes; i++)
        draw_box(&s, &d->boxes[i]);
    fputs("</svg>\n", out);
    return EW_OK;
}

ew_err ew_drawing_make(const struct ew_graph *g, struct ew_drawing *d)
{
    EW_TRY(ew_drawing_boxes(g, d));
    d->box_width = choose_width(d);
    return ew_drawing_place(d);
}

ew_err ew_graph_svg(const struct ew_graph *g, FILE *out)
{
    struct ew_drawing d;
    ew_err e = ew_drawing_make(g, &d);
    if (e == EW_OK)
        e = ew_drawing_svg(g, &d, false, out);
    ew_drawing_fini(&d);
    return e;
}
