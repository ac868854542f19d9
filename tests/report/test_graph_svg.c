/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of graphs: every network can be drawn, boxes do not overlap, texts are escaped. */
#include "report/graph_svg.h"

#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "report/graph_boxes.h"
#include "report/graph_page.h"

static char *draw(const struct ew_graph *g)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    EW_EXPECT_OK(ew_graph_svg(g, f));
    fclose(f);
    return text;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p++)
        n++;
    return n;
}

/* input, conv, pool, conv, pool, 3 dense layers, output; a path for each except the first, and the
 * background. */
static void lenet(void)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_model_build("lenet5", NULL, &g));
    char *text = draw(g);
    EW_EXPECT_INT(count(text, "<rect"), 9 + 1);
    EW_EXPECT_INT(count(text, "<path class=\"p\""), 8);
    EW_EXPECT_HAS(text, "conv 5x5, 16, relu");
    EW_EXPECT_HAS(text, "max pool 2x2/2, flatten");
    EW_EXPECT_HAS(text, "61,706 parameters");
    EW_EXPECT_HAS(text, "</svg>\n");
    free(text);
    ew_graph_free(g);
}

/* No two boxes of a layer overlap, and no connection crosses a box. */
static void check_room(const struct ew_drawing *d, const char *name)
{
    const int half = d->box_width / 2;
    for (int i = 0; i < d->n_boxes; i++)
        for (int j = 0; j < i; j++)
            if (d->boxes[i].layer == d->boxes[j].layer &&
                abs(d->boxes[i].x - d->boxes[j].x) < d->box_width)
                EW_FAIL("%s: boxes %s and %s overlap", name, d->boxes[i].name, d->boxes[j].name);
    for (int e = 0; e < d->n_edges; e++) {
        const struct ew_box *from = &d->boxes[d->edges[e].from], *to = &d->boxes[d->edges[e].to];
        EW_EXPECT(from->layer < to->layer);
        for (int i = 0; ew_edge_is_long(d, &d->edges[e]) && i < d->n_boxes; i++)
            if (d->boxes[i].layer > from->layer && d->boxes[i].layer < to->layer &&
                abs(d->boxes[i].x - d->edges[e].track) <= half)
                EW_FAIL("%s: an edge runs through box %s", name, d->boxes[i].name);
    }
}

static void every_network(void)
{
    for (int i = 0; i < ew_model_count(); i++) {
        struct ew_graph *g = NULL;
        struct ew_drawing d;
        EW_EXPECT_OK(ew_model_build(ew_model_name(i), NULL, &g));
        EW_EXPECT_OK(ew_drawing_boxes(g, &d));
        d.box_width = 200;
        EW_EXPECT_OK(ew_drawing_place(&d));
        check_room(&d, g->name);
        EW_EXPECT(d.n_pages >= 1 && d.pages[d.n_pages - 1].last == d.n_layers - 1);
        ew_drawing_fini(&d);
        char *text = draw(g);
        EW_EXPECT_INT(count(text, "<g"), count(text, "</g>"));
        free(text);
        ew_graph_free(g);
    }
}

/* A file may have any node names, or no nodes. */
static void odd_graphs(void)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_graph_new("<script>&\"", &g));
    const struct ew_shape s = {2, {2, 3}};
    int x = -1, y = -1;
    EW_EXPECT_OK(ew_graph_input(g, "a<b\x01", EW_F32, &s, &x));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("relu"), "x]]>&", NULL, EW_INPUTS(x), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_output(g, x)); /* an input that is an output as well */
    EW_EXPECT_OK(ew_graph_infer(g));
    char *text = draw(g);
    EW_EXPECT_INT(count(text, "<script"), 0);
    EW_EXPECT_HAS(text, "x]]&gt;&amp;");
    EW_EXPECT_SAME(strchr(text, '\x01'), NULL);
    free(text);
    ew_graph_free(g);
    EW_EXPECT_OK(ew_graph_new("empty", &g));
    text = draw(g);
    EW_EXPECT_HAS(text, "</svg>");
    free(text);
    ew_graph_free(g);
}

/* Arithmetic with sizes, as exporters write it before a Reshape, is known before a run: it has no
 * boxes, and does not keep a ReLU out of the box before it. */
static void sizes_are_not_drawn(void)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_graph_new("sizes", &g));
    const struct ew_shape s = {2, {2, 3}};
    int x = -1, y = -1, size = -1;
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &s, &x));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("softmax"), "first", NULL, EW_INPUTS(x), &y));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("shape"), "size", NULL, EW_INPUTS(y), &size));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("relu"), "second", NULL, EW_INPUTS(y), &y));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("reshape"), "third", NULL, EW_INPUTS(y, size), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_infer(g));
    char *text = draw(g);
    EW_EXPECT_INT(count(text, "<rect"), 3 + 1);
    EW_EXPECT_HAS(text, "softmax, relu, reshape");
    free(text);
    ew_graph_free(g);
}

/* Steps are assigned to boxes by the names of nodes: a box has the time of all nodes drawn in it, a
 * repeated name counts each time, and steps without a box count only in the sum. */
static void page_times(void)
{
    static const struct ew_graph_time steps[] = {
        {"conv1", "k<1>", 10}, {"relu1", "k2", 5}, {"conv1", "k<1>", 1}, {"nowhere", "k3", 100}};
    const struct ew_graph_times times = {steps, EW_COUNT(steps), "here & now"};
    struct ew_graph *g = NULL;
    char *text = NULL;
    size_t size = 0;
    EW_EXPECT_OK(ew_model_build("lenet5", NULL, &g));
    g->nodes[0].name = "conv1"; /* with its activation, in one box */
    g->nodes[1].name = "relu1";
    FILE *f = open_memstream(&text, &size);
    EW_EXPECT_OK(ew_graph_page(g, &times, f));
    fclose(f);
    EW_EXPECT_HAS(text, "here &amp; now");
    EW_EXPECT_HAS(text, "{\"us\":116,\"boxes\":[");
    EW_EXPECT_HAS(text, "\"name\":\"conv1\"");
    EW_EXPECT_HAS(text, "\"us\":16,\"kernel\":\"k\\u003c1>\"");
    EW_EXPECT_INT(count(text, "\"kernel\":"), 1);
    EW_EXPECT_INT(count(text, "<g data-i="), 9);
    EW_EXPECT_HAS(text, "colour by"); /* contains the script */
    EW_EXPECT_INT(count(text, "src="), 0);
    free(text);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(lenet), EW_TEST(every_network), EW_TEST(odd_graphs),
             EW_TEST(sizes_are_not_drawn), EW_TEST(page_times))
