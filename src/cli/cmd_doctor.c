/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise doctor: what disturbs measurements on this board, and how to fix it. */
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/board_text.h"
#include "cli/cmd.h"
#include "cli/docs.h"
#include "cli/doctor_checks.h"

#define LOOK_S 1.0 /* how long the CPU use of other programs is observed */

struct opts {
    const char *root;
};

static const struct ew_field fields[] = {
    EW_BOARD_ROOT_FIELD(struct opts),
    EW_FIELD_END,
};

static const char *mark(enum ew_finding_kind kind)
{
    static const char *const marks[] = {"ok", "change", "note"};
    return marks[kind];
}

static ew_err print_json(const struct ew_checkup *c)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    for (int i = 0; i < c->n; i++) {
        ew_json_object(&j, NULL);
        ew_json_str(&j, "what", c->v[i].what);
        ew_json_str(&j, "finding", mark(c->v[i].kind));
        ew_json_str(&j, "text", c->v[i].text);
        ew_json_str(&j, "command", c->v[i].command[0] ? c->v[i].command : NULL);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static void print_text(const struct ew_checkup *c)
{
    int changes = 0;
    for (int i = 0; i < c->n; i++) {
        const struct ew_finding *f = &c->v[i];
        const int at = printf("%-6s  %-16s ", mark(f->kind), f->what);
        if (isatty(STDOUT_FILENO))
            ew_help_wrapped(f->text, at, 25);
        else
            printf("%s\n", f->text);
        if (f->command[0])
            printf("%24s $ %s\n", "", f->command);
        changes += f->kind == EW_FINDING_CHANGE;
    }
    if (changes)
        printf("\n%d thing%s to change before measuring\n", changes, changes == 1 ? "" : "s");
    else
        printf("\nnothing to change before measuring\n");
}

static ew_err look(const struct opts *o, struct ew_board *b, struct ew_checkup *out)
{
    struct ew_machine_state g;
    ew_board_recover(b);
    EW_TRY(ew_machine_state_read(b, ".", o->root ? 0 : LOOK_S, &g));
    if (o->root)
        g.free_disk_bytes = EW_INT_ABSENT; /* a captured board: the free space is not the board's */
    return ew_checkup(b, &g, o->root != NULL, out);
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    struct ew_board *b;
    struct ew_checkup found;
    EW_TRY(ew_board_open(&(struct ew_board_opts){.root = o->root}, &b));
    const ew_err e = look(o, b, &found);
    ew_board_close(b);
    EW_TRY(e);
    if (c->json)
        return print_json(&found);
    print_text(&found);
    return EW_OK;
}

const struct ew_cmd ew_cmd_doctor = {
    .name = "doctor",
    .group = EW_CMD_MEASURE,
    .summary = "what disturbs measurements on this machine, and how to fix it",
    .about = "Checks governor, clocks, cores, load, temperature, memory, swap, sensors and "
             "permissions, and shows the command to fix each problem.\n"
             "It changes nothing itself.",
    .examples = "doctor\ndoctor --json",
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
