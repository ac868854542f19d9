/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise scale: layer widths of a network for a target size.  Choosing the ratio from
 * measurements is in scale_select.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/scale_cmd.h"
#include "network/width_list.h"
#include "report/text_table.h"
#include "scale/power_law.h"

#define FIELD_OF(member) offsetof(struct ew_scale_opts, member)

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "from", .type = EW_FIELD_STR, .offset = FIELD_OF(from), .metavar = "FILE",
     .verbs = "fit, generate, select", .help = "pruning records (CSV) for fit and generate; for select a results database, or a CSV with the columns parameters and the metric"},
    {.name = "ratio", .type = EW_FIELD_FLOAT, .offset = FIELD_OF(ratio), .min = 0.001, .max = 1000,
     .metavar = "R", .verbs = "generate", .help = "as many parameters as with uniform widths at ratio R"},
    {.name = "params", .type = EW_FIELD_FLOAT, .offset = FIELD_OF(params), .min = 1, .max = 1e12,
     .metavar = "N", .verbs = "generate", .help = "about this many parameters; with uniform widths at most this many"},
    {.name = "macs", .type = EW_FIELD_FLOAT, .offset = FIELD_OF(macs), .min = 1, .max = 1e15,
     .metavar = "N", .verbs = "generate", .help = "at most this many multiply-accumulates"},
    {.name = "iteration", .type = EW_FIELD_INT, .offset = FIELD_OF(iteration), .def = "1",
     .min = 0, .max = 1000, .metavar = "I", .verbs = "generate", .help = "descent iteration of the records; for PreAct ResNet-18 the search is coarser after iteration 0"},
    {.name = "latency", .type = EW_FIELD_STR, .offset = FIELD_OF(latency), .metavar = "TIME",
     .verbs = "select", .help = "limit of median_ms, as in 16.7ms"},
    {.name = "memory", .type = EW_FIELD_SIZE, .offset = FIELD_OF(memory), .min = 1, .max = 1e15,
     .metavar = "BYTES", .verbs = "select", .help = "limit of planned_bytes"},
    {.name = "energy", .type = EW_FIELD_FLOAT, .offset = FIELD_OF(energy), .min = 1e-12,
     .max = 1e12, .metavar = "J", .verbs = "select", .help = "limit of energy_j"},
    {.name = "limit", .type = EW_FIELD_FLOAT, .offset = FIELD_OF(limit), .min = 1e-12, .max = 1e15,
     .metavar = "X", .verbs = "select", .help = "limit of the metric that --metric names"},
    {.name = "metric", .type = EW_FIELD_STR, .offset = FIELD_OF(metric), .metavar = "NAME",
     .verbs = "select", .help = "--limit: column of the results that it applies to"},
    {.name = "where", .type = EW_FIELD_STR, .offset = FIELD_OF(where), .metavar = "EXPR",
     .verbs = "select", .help = "only these runs, as in `edgewise results`"},
    {.name = "published", .type = EW_FIELD_BOOL, .offset = FIELD_OF(published),
     .verbs = "generate, select", .help = "use the law of the records that NeuralScale's authors published; select: the lines that the SCALE study published"},
    {.name = "input", .type = EW_FIELD_INTS, .offset = FIELD_OF(input), .min = 1, .max = 65536,
     .metavar = "HxWxC", .help = "size of the input; default: the network's own"},
    {.name = "classes", .type = EW_FIELD_INT, .offset = FIELD_OF(classes), .min = 1,
     .max = 1048576, .metavar = "K", .help = "number of classes; default: the network's own"},
    {.name = "output", .type = EW_FIELD_STR, .offset = FIELD_OF(output), .metavar = "FILE",
     .verbs = "generate, select, search", .help = "list of widths, for --width-list; search: folder of the records",
     .letter = 'o'},
    {.name = "svg", .type = EW_FIELD_STR, .offset = FIELD_OF(svg), .metavar = "FILE.svg",
     .verbs = "generate", .help = "plot of widths over depth, with uniform widths of the same size"},
    {.name = "data", .type = EW_FIELD_STR, .offset = FIELD_OF(data), .metavar = "DIR|NAME",
     .verbs = "search", .help = "data set to train on", .letter = 'd'},
    {.name = "iterations", .type = EW_FIELD_INT, .offset = FIELD_OF(iterations), .def = "15",
     .min = 1, .max = 99, .metavar = "N", .verbs = "search", .help = "iterations of the descent"},
    {.name = "warmup", .type = EW_FIELD_INT, .offset = FIELD_OF(warmup), .def = "10", .min = 0,
     .max = 100000, .metavar = "EPOCHS", .verbs = "search", .help = "epochs before pruning begins"},
    {.name = "max-epochs", .type = EW_FIELD_INT, .offset = FIELD_OF(max_epochs), .def = "300",
     .min = 1, .max = 1000000, .metavar = "N", .verbs = "search", .help = "largest number of epochs of an iteration"},
    {.name = "prune-every", .type = EW_FIELD_INT, .offset = FIELD_OF(prune_every), .def = "50",
     .min = 1, .max = 1000000, .metavar = "N", .verbs = "search", .help = "minibatches between pruning steps"},
    {.name = "prune-units", .type = EW_FIELD_INT, .offset = FIELD_OF(prune_units), .def = "10",
     .min = 1, .max = 1000000, .metavar = "N", .verbs = "search", .help = "filters closed in a pruning step"},
    {.name = "fraction", .type = EW_FIELD_FLOAT, .offset = FIELD_OF(fraction), .def = "0.95",
     .min = 0.01, .max = 0.999, .metavar = "SHARE", .verbs = "search", .help = "fraction of all filters that is closed"},
    {.name = "batch", .type = EW_FIELD_INT, .offset = FIELD_OF(batch), .def = "256", .min = 1,
     .max = 65536, .metavar = "B", .verbs = "search", .help = "batch size", .letter = 'b'},
    {.name = "lr", .type = EW_FIELD_FLOAT, .offset = FIELD_OF(lr), .def = "0.1", .min = 0,
     .max = 1000, .metavar = "R", .verbs = "search", .help = "learning rate; a tenth while pruning"},
    {.name = "momentum", .type = EW_FIELD_FLOAT, .offset = FIELD_OF(momentum), .def = "0.5",
     .min = 0.001, .max = 1, .metavar = "M", .verbs = "search", .help = "momentum of SGD"},
    {.name = "weight-decay", .type = EW_FIELD_FLOAT, .offset = FIELD_OF(weight_decay),
     .def = "0.0005", .min = 0, .max = 100, .metavar = "D", .verbs = "search", .help = "weight decay"},
    {.name = "augment", .type = EW_FIELD_STR, .offset = FIELD_OF(augment), .def = "standard",
     .metavar = "LIST", .verbs = "search", .help = "as in `train`"},
    {.name = "mean", .type = EW_FIELD_STR, .offset = FIELD_OF(mean), .metavar = "M,M,M",
     .verbs = "search", .help = "mean that is subtracted from pixels in [0, 1]; default: measured"},
    {.name = "std", .type = EW_FIELD_STR, .offset = FIELD_OF(std), .metavar = "D,D,D",
     .verbs = "search", .help = "standard deviation that pixels are divided by"},
    {.name = "samples", .type = EW_FIELD_INT, .offset = FIELD_OF(samples), .def = "0", .min = 0,
     .max = 1e15, .metavar = "N", .verbs = "search", .help = "train on N samples, spread evenly; 0: all"},
    {.name = "seed", .type = EW_FIELD_INT, .offset = FIELD_OF(seed), .def = "1", .min = 0,
     .max = 9e15, .metavar = "N", .verbs = "search", .help = "random seed of weights, order and augmentation"},
    {.name = "threads", .type = EW_FIELD_INT, .offset = FIELD_OF(threads), .def = "0", .min = 0,
     .max = 256, .metavar = "N", .verbs = "search", .help = "number of threads; 0: one per CPU"},
    {.name = "db", .type = EW_FIELD_STR, .offset = FIELD_OF(db), .metavar = "FILE",
     .verbs = "search", .help = "record the time of the descent in this database"},
    EW_FIELD_END};
/* clang-format on */

static ew_err read_law(const struct ew_scale_opts *o, const struct ew_scaling *s,
                       struct ew_power_law *law)
{
    EW_TRY(ew_power_law_read(s, o->from ? o->from : "published", law));
    law->first = o->iteration == 0;
    return EW_OK;
}

/* ---- fit ---- */

static ew_err fit_json(const struct ew_power_law *law)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_int(&j, "rows", law->rows);
    ew_json_num(&j, "tau_least", law->tau_least);
    ew_json_num(&j, "tau_most", law->tau_most);
    ew_json_array(&j, "gates");
    for (int l = 0; l < law->n; l++) {
        ew_json_object(&j, NULL);
        ew_json_num(&j, "alpha", law->alpha[l]);
        ew_json_num(&j, "beta", law->beta[l]);
        ew_json_num(&j, "r2", law->r2[l]);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err fit(const struct ew_cmd_call *c, const struct ew_scaling *s)
{
    const struct ew_scale_opts *o = c->opts;
    struct ew_power_law law;
    struct ew_table t;
    EW_CHECK(o->from, EW_ERR_USAGE, "scale fit: no records: --from FILE");
    EW_TRY(read_law(o, s, &law));
    if (c->json)
        return fit_json(&law);
    if (law.rows < EW_LAW_ROWS)
        EW_WARN("%s: %d rows are too few for a law; the first one stands for it", o->from,
                law.rows);
    printf("%d rows, %.0f to %.0f parameters; filters = alpha * parameters^beta\n", law.rows,
           law.tau_least, law.tau_most);
    ew_table_init(&t, "rrrrr");
    for (int i = 0; i < 5; i++)
        ew_table_cell(&t, "%s", (const char *[]){"gate", "filters", "alpha", "beta", "R2"}[i]);
    for (int l = 0; l < law.n; l++) {
        ew_table_cell(&t, "%d", l);
        ew_table_cell(&t, "%d", (int)s->base[l]);
        ew_table_cell(&t, "%.6g", law.alpha[l]);
        ew_table_cell(&t, "%.6f", law.beta[l]);
        if (isnan(law.r2[l]))
            ew_table_cell(&t, "%s", "");
        else
            ew_table_cell(&t, "%.4f", law.r2[l]);
    }
    return ew_table_print(&t, stdout);
}

/* ---- generate ---- */

/* Prints the widths beside uniform ones with the same number of parameters. */
static ew_err print_text(const struct ew_scaling *s, const struct ew_widths_found *found,
                         const struct ew_scaling_facts *f, bool uniform)
{
    char params[EW_TEXT_CHARS], macs[EW_TEXT_CHARS];
    struct ew_widths_found plain;
    struct ew_table t;
    EW_TRY(ew_widths_within(s, NULL, (double)f->params, false, &plain));
    printf("%s parameters, %s MACs, %.2f MFLOPs by thop\n", ew_text_count(f->params, params),
           ew_text_count(f->macs, macs), 2e-6 * (double)f->thop_macs);
    ew_table_init(&t, uniform ? "rrr" : "rrrr");
    ew_table_cell(&t, "gate");
    ew_table_cell(&t, "base");
    ew_table_cell(&t, uniform ? "uniform" : "filters");
    if (!uniform)
        ew_table_cell(&t, "uniform %.3f", plain.tau);
    for (int l = 0; l < s->n; l++) {
        ew_table_cell(&t, "%d", l);
        ew_table_cell(&t, "%d", (int)s->base[l]);
        ew_table_cell(&t, "%d", (int)found->widths[l]);
        if (!uniform)
            ew_table_cell(&t, "%d", (int)plain.widths[l]);
    }
    return ew_table_print(&t, stdout);
}

static ew_err print_json(const struct ew_scaling *s, const struct ew_widths_found *found,
                         const struct ew_scaling_facts *f, bool uniform)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "network", s->network);
    ew_json_str(&j, "method", uniform ? "uniform" : "neuralscale");
    ew_json_num(&j, "target", found->target);
    ew_json_num(&j, uniform ? "ratio" : "tau", found->tau);
    ew_json_int(&j, "steps", found->steps);
    ew_json_int(&j, "params", f->params);
    ew_json_int(&j, "macs", f->macs);
    ew_json_num(&j, "flops_thop", 2 * (double)f->thop_macs);
    ew_json_array(&j, "widths");
    for (int l = 0; l < s->n; l++)
        ew_json_int(&j, NULL, found->widths[l]);
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err draw(const char *path, const struct ew_scaling *s,
                   const struct ew_widths_found *found, const struct ew_scaling_facts *f,
                   bool uniform)
{
    struct ew_widths_found plain;
    EW_TRY(ew_widths_within(s, NULL, (double)f->params, false, &plain));
    const struct ew_width_line lines[] = {{"its own widths", "#999", s->base},
                                          {"uniform, same size", "#1f77b4", plain.widths},
                                          {"by the law", "#d62728", found->widths}};
    return ew_scale_picture(path, s, lines, uniform ? 2 : 3);
}

static ew_err generate(const struct ew_cmd_call *c, const struct ew_scaling *s)
{
    const struct ew_scale_opts *o = c->opts;
    const bool uniform = !o->from && !o->published;
    struct ew_power_law law;
    const struct ew_widths_wanted wanted = {o->ratio, o->params, o->macs};
    struct ew_widths_found found;
    struct ew_scaling_facts f;
    char about[512];
    EW_CHECK((o->ratio > 0) + (o->params > 0) + (o->macs > 0) == 1, EW_ERR_USAGE,
             "scale generate: no target: give one of --ratio, --params and --macs");
    EW_CHECK(!o->from || !o->published, EW_ERR_USAGE,
             "scale generate: give either --from or --published");
    if (!uniform)
        EW_TRY(read_law(o, s, &law));
    EW_TRY(ew_widths_find(s, uniform ? NULL : &law, &wanted, &found));
    EW_TRY(ew_scaling_facts(s, found.widths, &f));
    if (o->output) {
        snprintf(about, sizeof(about), "%s, %lld classes, %s: %lld parameters, %lld MACs",
                 s->network, (long long)s->opts.classes,
                 uniform   ? "uniform widths"
                 : o->from ? o->from
                           : "published law",
                 (long long)f.params, (long long)f.macs);
        EW_TRY(ew_width_list_write(o->output, about, found.widths, s->n));
    }
    if (o->svg)
        EW_TRY(draw(o->svg, s, &found, &f, uniform));
    return c->json ? print_json(s, &found, &f, uniform) : print_text(s, &found, &f, uniform);
}

/* ---- The command ---- */

static ew_err run(struct ew_cmd_call *c)
{
    const struct ew_scale_opts *o = c->opts;
    const struct ew_model_opts m = {.size = sizeof(m),
                                    .height = o->input.v[0],
                                    .width = o->input.n > 1 ? o->input.v[1] : o->input.v[0],
                                    .channels = o->input.n > 2 ? o->input.v[2] : 0,
                                    .classes = o->classes};
    struct ew_scaling s;
    const char *verb = c->args[0];
    const bool fits = strcmp(verb, "fit") == 0, makes = strcmp(verb, "generate") == 0;
    const bool searches = strcmp(verb, "search") == 0;
    EW_CHECK(fits || makes || searches || strcmp(verb, "select") == 0, EW_ERR_USAGE,
             "scale: '%s' is not one of search, fit, generate, select", verb);
    EW_CHECK(c->n_args == 2, EW_ERR_USAGE, "scale: %s needs a network of the zoo", verb);
    const ew_err e = ew_scaling_open(c->args[1], &m, &s);
    if (e == EW_ERR_NOT_FOUND)
        ew_cmd_hint(c, "edgewise models lists the networks");
    EW_TRY(e);
    if (searches)
        return ew_scale_search(c, &s);
    return fits ? fit(c, &s) : makes ? generate(c, &s) : ew_scale_select(c, &s);
}

const struct ew_cmd ew_cmd_scale = {
    .name = "scale",
    .group = EW_CMD_SHRINK,
    .summary = "layer widths for a target size (NeuralScale)",
    .args = "search NAME|fit NAME|generate NAME|select NAME",
    .about = "search: trains and prunes filters step by step, and records the widths for fit.\n"
             "fit: fits a power law of each layer's width over the network's size to such "
             "records, as NeuralScale does.\n"
             "generate: filter counts for a ratio, a number of parameters or of "
             "multiply-accumulates, by that law or, without --from and --published, uniformly "
             "scaled.\n"
             "Pass the file of --output to any command as --width-list.\n"
             "select: fits a line to measured runs over their number of parameters and gives the "
             "ratio that meets a limit, or the reason why none does.",
    .examples =
        "scale search vgg11_cifar --data cifar10 -o descent\n"
        "scale fit vgg11_cifar --from records.csv\n"
        "scale generate vgg11_cifar --from records.csv --ratio 0.5 -o half.widths\n"
        "info vgg11_cifar --width-list half.widths\n"
        "scale generate mobilenet_v2_cifar --published --ratio 0.5 -o half.widths\n"
        "scale generate mobilenet_v2_cifar --macs 10e6 -o small.widths\n"
        "scale select mobilenet_v2_cifar --classes 100 --latency 16.7ms --from edgewise.db\n"
        "scale select mobilenet_v2_cifar --classes 100 --latency 16.67ms --published",
    .min_args = 1,
    .max_args = 2,
    .opts_size = sizeof(struct ew_scale_opts),
    .opts = fields,
    .run = run,
};
