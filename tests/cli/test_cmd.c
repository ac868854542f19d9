/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line parsing: options in all spellings, arguments, errors; and every command's option
 * table is complete. */
#include "cli/cmd.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ew_test.h"

static const char *const modes[] = {"fast", "small", NULL};

struct opts {
    bool train, tune;
    int64_t batch;
    const char *output;
    int mode;
    struct ew_ints input;
};

static const struct ew_field fields[] = {
    {.name = "train", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, train), .letter = 't'},
    {.name = "tune", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, tune), .def = "true"},
    {.name = "batch",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct opts, batch),
     .def = "1",
     .min = 1,
     .max = 64,
     .letter = 'b'},
    {.name = "output",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, output),
     .metavar = "FILE",
     .letter = 'o'},
    {.name = "mode",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct opts, mode),
     .choices = modes},
    {.name = "input", .type = EW_FIELD_INTS, .offset = offsetof(struct opts, input)},
    EW_FIELD_END,
};

static const struct ew_cmd cmd = {.name = "try",
                                  .summary = "try things",
                                  .args = "FILE [FILE]",
                                  .min_args = 1,
                                  .max_args = 2,
                                  .opts_size = sizeof(struct opts),
                                  .opts = fields};

struct parsed {
    struct opts o;
    const char *args[16];
    struct ew_cmd_line line;
};

/* Parses a line of space-separated words. */
static ew_err parse(struct parsed *p, const char *text)
{
    static char buf[256];
    char *words[16];
    int n = 0;
    snprintf(buf, sizeof(buf), "%s", text);
    for (char *w = strtok(buf, " "); w; w = strtok(NULL, " "))
        words[n++] = w;
    ew_fields_default(fields, &p->o, sizeof(p->o));
    p->line = (struct ew_cmd_line){.cmd = &cmd, .opts = &p->o, .args = p->args};
    return ew_cmd_parse(n, words, &p->line);
}

static void spellings(void)
{
    static const char *const lines[] = {
        "--batch 8 --output a.onnx --train --no-tune --mode small --input 1x2 file",
        "file --batch=8 --output=a.onnx --train=true --tune=false --mode=small --input=1,2",
        "-b 8 -o a.onnx -t --tune=no file --mode small --input 1x2",
        "-b8 -oa.onnx file -t --no-tune --mode=small --input=1x2 --batch 8"};
    for (size_t i = 0; i < EW_COUNT(lines); i++) {
        struct parsed p;
        if (!EW_EXPECT_OK(parse(&p, lines[i])))
            continue;
        EW_EXPECT_INT(p.o.batch, 8);
        EW_EXPECT_STR(p.o.output, "a.onnx");
        EW_EXPECT(p.o.train && !p.o.tune);
        EW_EXPECT_INT(p.o.mode, 1);
        EW_EXPECT_INT(p.o.input.v[1], 2);
        EW_EXPECT_INT(p.line.n_args, 1);
        EW_EXPECT_STR(p.args[0], "file");
        EW_EXPECT(!p.line.json && !p.line.help);
    }
}

static void arguments(void)
{
    struct parsed p;
    EW_EXPECT_OK(parse(&p, "- --json"));
    EW_EXPECT_STR(p.args[0], "-");
    EW_EXPECT(p.line.json);
    EW_EXPECT_OK(parse(&p, "--train -- --batch -t"));
    EW_EXPECT_INT(p.line.n_args, 2);
    EW_EXPECT_STR(p.args[0], "--batch");
    EW_EXPECT_STR(p.args[1], "-t");
    EW_EXPECT_OK(parse(&p, "--output --train a")); /* a value may look like an option */
    EW_EXPECT_STR(p.o.output, "--train");
    EW_EXPECT_ERR(parse(&p, ""), EW_ERR_USAGE, "try: needs FILE [FILE]");
    EW_EXPECT_ERR(parse(&p, "a b c"), EW_ERR_USAGE, "try: unexpected 'c'");
    EW_EXPECT_OK(parse(&p, "a b c -h"));
    EW_EXPECT(p.line.help);
}

static void mistakes(void)
{
    static const char *const cases[][2] = {
        {"a --bathc 3", "try: no option --bathc; did you mean --batch?"},
        {"a --jason", "did you mean --json?"},
        {"a --something-else", "try: no option --something-else"},
        {"a --no-batch", "no option --no-batch"},
        {"a --no-train=1", "no option --no-train"},
        {"a -q", "try: no option -q"},
        {"a -tx", "-t takes no value"},
        {"a --batch", "try: --batch needs a value"},
        {"a -o", "try: --output needs a value"},
        {"a --batch 65", "try: --batch: '65' is not between 1 and 64"},
        {"a -b x", "try: --batch: 'x' is not a whole number"},
        {"a --mode tiny", "try: --mode: 'tiny' is not one of fast, small"},
        {"a --train=perhaps", "try: --train: 'perhaps' is not true or false"},
        {"a --=", "no option --"},
        {"a --xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         "no option --xxxxx"},
    };
    struct parsed p;
    for (size_t i = 0; i < EW_COUNT(cases); i++)
        EW_EXPECT_ERR(parse(&p, cases[i][0]), EW_ERR_USAGE, cases[i][1]);
}

static void check_options(const struct ew_cmd *c)
{
    for (const struct ew_field *f = c->opts; f && f->name; f++) {
        if (!f->help || !f->help[0])
            EW_FAIL("%s: --%s has no help", c->name, f->name);
        if (f->offset >= c->opts_size)
            EW_FAIL("%s: --%s lies outside its struct", c->name, f->name);
        if (f->type == EW_FIELD_ENUM && !f->choices)
            EW_FAIL("%s: --%s has no choices", c->name, f->name);
        if (ew_field_find(ew_cmd_common, f->name))
            EW_FAIL("%s: --%s is everyone's", c->name, f->name);
        for (const struct ew_field *g = f + 1; g->name; g++)
            if (strcmp(f->name, g->name) == 0 || (f->letter && f->letter == g->letter))
                EW_FAIL("%s: --%s is there twice", c->name, g->name);
    }
}

static void every_command_is_whole(void)
{
    for (int i = 0; i < ew_cmd_count(); i++) {
        const struct ew_cmd *c = ew_cmd_at(i);
        EW_EXPECT_SAME(ew_cmd_find(c->name), c);
        EW_EXPECT(c->run && c->summary && c->summary[0]);
        EW_EXPECT(c->group < EW_CMD_GROUP_COUNT);
        if (c->max_args != 0 && !c->args)
            EW_FAIL("%s takes arguments but does not name them", c->name);
        if (strlen(c->name) > 10 || strlen(c->summary) > 66)
            EW_FAIL("%s: the line in 'edgewise help' is over 80 columns", c->name);
        check_options(c);
        void *opts = NULL;
        if (c->opts && EW_EXPECT_OK(ew_aligned_new(c->opts_size, &opts)))
            ew_fields_default(c->opts, opts, c->opts_size); /* asserts on a bad default */
        ew_free_ptr(&opts);
    }
    EW_EXPECT_STR(ew_cmd_nearest("hlep"), "help");
    EW_EXPECT_SAME(ew_cmd_nearest("qqqqqq"), NULL);
}

EW_TEST_MAIN(EW_TEST(spellings), EW_TEST(arguments), EW_TEST(mistakes),
             EW_TEST(every_command_is_whole))
