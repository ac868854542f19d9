/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise monitor: time, memory and energy of a command, or a live view of the board.  Drawing is
 * in monitor_view.c, running a command in monitor_run.c. */
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/board_text.h"
#include "cli/monitor.h"
#include "cli/on_machines.h"
#include "cli/printable.h"

#define RUN_INTERVAL_S  0.1
#define VIEW_INTERVAL_S 1.0
#define PLAIN_COLUMNS   100 /* without a terminal */

struct opts {
    const char *root, *power_from, *tegrastats, *watch, *log, *output, *db, *on;
    double interval, baseline;
    int64_t count;
};

static const struct ew_field fields[] = {
    EW_BOARD_ROOT_FIELD(struct opts),
    EW_BOARD_POWER_FIELD(struct opts),
    EW_BOARD_TEGRA_FIELD(struct opts),
    EW_BOARD_WATCH_FIELD(struct opts),
    {.name = "interval",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct opts, interval),
     .min = 0,
     .max = 3600,
     .metavar = "SECONDS",
     .help = "time between readings; 0: 0.1 with a command, 1 without",
     .letter = 'i'},
    {.name = "baseline",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct opts, baseline),
     .min = 0,
     .max = 86400,
     .metavar = "SECONDS",
     .help = "measure idle power for this long before the command"},
    {.name = "count",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct opts, count),
     .min = 0,
     .max = 1e9,
     .metavar = "N",
     .help = "end the live view after N readings",
     .letter = 'n'},
    {.name = "log",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, log),
     .metavar = "FILE.csv|FILE.jsonl|FILE.prom",
     .help = "write every reading to a file; .prom: only the latest, for Prometheus (textfile "
             "collector of node_exporter)"},
    {.name = "output",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, output),
     .metavar = "FILE",
     .help = "write a command's figures to this file instead of standard output",
     .letter = 'o'},
    EW_RECORDING_FIELD(struct opts),
    EW_ON_FIELD(struct opts),
    EW_FIELD_END,
};

/* ---- The terminal ---------------------------------------------------------------------------- */

struct terminal {
    bool screen; /* output is a terminal */
    bool keys;   /* input is, too: keys are read */
    struct termios before;
    sigset_t signals, mask_before;
};

static void terminal_begin(struct terminal *t, bool draw)
{
    *t = (struct terminal){.screen = draw && isatty(STDOUT_FILENO) != 0};
    static const int caught[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
    sigemptyset(&t->signals);
    for (size_t i = 0; i < EW_COUNT(caught); i++)
        sigaddset(&t->signals, caught[i]);
    sigprocmask(SIG_BLOCK, &t->signals, &t->mask_before);
    if (!t->screen)
        return;
    t->keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &t->before) == 0;
    if (t->keys) {
        struct termios raw = t->before;
        raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    ew_printable_raw(true);
    fputs("\033[?1049h\033[?25l", stdout); /* alternate screen, cursor hidden */
}

static void terminal_end(struct terminal *t)
{
    if (t->screen) {
        fputs("\033[?25h\033[?1049l", stdout);
        ew_printable_raw(false);
    }
    if (t->keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
    sigprocmask(SIG_SETMASK, &t->mask_before, NULL);
}

static void measure(const struct terminal *t, struct ew_view *v)
{
    struct winsize size;
    v->columns = PLAIN_COLUMNS;
    v->rows = 0;
    if (!t->screen || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return;
    v->columns = size.ws_col;
    v->rows = size.ws_row;
}

/* The next key; 0: none. */
static char next_key(const struct terminal *t)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    char key;
    return t->keys && poll(&p, 1, 0) > 0 && read(STDIN_FILENO, &key, 1) == 1 ? key : '\0';
}

/* ---- The view -------------------------------------------------------------------------------- */

struct live {
    struct ew_board *board;
    struct ew_sampler *sampler;
    struct ew_sample_value *values;
    struct ew_view view;
    struct ew_processes processes;
    struct terminal terminal;
    struct ew_frame_log log, lines; /* `lines`: CSV on standard output instead of the view */
    int64_t frames, count;
};

static void draw(struct live *l)
{
    if (l->lines.f)
        return;
    measure(&l->terminal, &l->view);
    const struct ew_sampler_stats stats = ew_sampler_stats(l->sampler);
    if (l->terminal.screen) {
        fputs("\033[H", stdout);
        ew_view_draw(&l->view, l->values, &stats, "\033[K\n", stdout);
        fputs("\033[J", stdout); /* clears what a taller frame left below */
    } else {
        if (l->frames > 1)
            putchar('\n');
        ew_view_draw(&l->view, l->values, &stats, "\n", stdout);
    }
    fflush(stdout);
}

/* Takes one frame if the sampler has one; frames may come faster than they are drawn. */
static ew_err take_frame(struct live *l, bool *taken)
{
    int64_t t;
    *taken = ew_sampler_next(l->sampler, &t, l->values);
    if (!*taken)
        return EW_OK;
    l->frames++;
    ew_view_remember(&l->view, l->values);
    if (!l->lines.f)
        EW_TRY(ew_processes_read(&l->processes, &l->board->root));
    EW_TRY(ew_processes_sort(&l->processes, l->view.by_memory));
    EW_TRY(ew_frame_log_row(&l->log, l->board, t, l->values));
    EW_TRY(ew_frame_log_row(&l->lines, l->board, t, l->values));
    draw(l);
    return EW_OK;
}

/* Handles keys; true: quit. */
static bool obey_keys(struct live *l)
{
    for (char key; (key = next_key(&l->terminal)) != '\0';) {
        if (key == 'q' || key == 'Q' || key == 3)
            return true;
        if (key != 'm' && key != 'c')
            continue;
        l->view.by_memory = key == 'm';
        if (l->frames && ew_processes_sort(&l->processes, l->view.by_memory) == EW_OK)
            draw(l);
    }
    return false;
}

/* Ctrl-Z: the shell gets its terminal as it was; the view is drawn anew when it continues. */
static void pause_view(struct live *l)
{
    terminal_end(&l->terminal);
    fflush(stdout);
    raise(SIGTSTP);
    terminal_begin(&l->terminal, !l->lines.f);
    if (l->frames)
        draw(l);
}

static ew_err follow(struct live *l)
{
    const struct timespec pause = {.tv_nsec = EW_SAMPLER_DRAIN_NS / 2}, none = {0};
    for (;;) {
        bool taken;
        EW_TRY(take_frame(l, &taken));
        if ((l->count && l->frames >= l->count) || obey_keys(l))
            return EW_OK;
        const int signal = sigtimedwait(&l->terminal.signals, NULL, taken ? &none : &pause);
        if (signal == SIGWINCH && l->frames && l->terminal.screen) {
            fputs("\033[2J", stdout);
            draw(l);
        } else if (signal == SIGTSTP) {
            pause_view(l);
        } else if (signal > 0 && signal != SIGWINCH) {
            return EW_OK;
        }
    }
}

static ew_err live_view(const struct ew_cmd_call *c, struct ew_board *b, int64_t interval_ns)
{
    const struct opts *o = c->opts;
    struct live l = {.board = b, .count = o->count};
    const size_t n = (size_t)b->n_channels + 1;
    l.values = ew_arena_array(&b->arena, n, sizeof(*l.values));
    l.view.past = ew_arena_array(&b->arena, n * EW_VIEW_HISTORY, sizeof(*l.view.past));
    EW_CHECK(l.values && l.view.past, EW_ERR_MEMORY, "no memory for the view");
    setlocale(LC_CTYPE, "");
    l.view.board = b;
    l.view.processes = &l.processes;
    ew_view_read_mode(&l.view, b);
    l.view.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    l.view.colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    EW_TRY(ew_frame_log_open(o->log, b, &l.log));
    if (c->json)
        ew_frame_log_stdout(&l.lines);
    EW_TRY(ew_sampler_start(b, interval_ns, ew_sampler_frames(interval_ns), &l.sampler));
    terminal_begin(&l.terminal, !c->json);
    ew_err err = follow(&l);
    terminal_end(&l.terminal);
    ew_sampler_free(l.sampler);
    ew_processes_fini(&l.processes);
    const ew_err closed = ew_frame_log_close(&l.log);
    return err != EW_OK ? err : closed;
}

static ew_err run_command(struct ew_cmd_call *c, struct ew_board *b, int64_t interval_ns)
{
    const struct opts *o = c->opts;
    struct ew_frame_log log;
    struct ew_recording rec;
    EW_TRY(ew_frame_log_open(o->log, b, &log));
    const struct ew_monitor_run r = {.run = {.board = b,
                                             .interval_ns = interval_ns,
                                             .baseline_s = o->baseline,
                                             .argv = c->args,
                                             .log = &log},
                                     .output = o->output,
                                     .rec = &rec,
                                     .json = c->json};
    ew_err err = ew_cmd_record(c, o->db, &rec);
    if (err == EW_OK)
        err = ew_recording_end(&rec, ew_monitor_command(&r));
    const ew_err closed = ew_frame_log_close(&log);
    return err != EW_OK ? err : closed;
}

static void close_board(struct ew_board **b)
{
    ew_board_close(*b);
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    const bool command = c->n_args > 0;
    if (o->on)
        return ew_on_machines(c, o->on, true);
    EW_CHECK(command || (o->baseline <= 0 && !o->output && !o->db), EW_ERR_USAGE,
             "monitor: --baseline, --output and --db go with a command");
    const bool live = !o->tegrastats || strcmp(o->tegrastats, "live") == 0;
    EW_CHECK(!command || live, EW_ERR_USAGE,
             "monitor: a recorded log cannot tell what a command costs now; use --tegrastats live");
    const struct ew_board_opts board = {.root = o->root,
                                        .power_from = o->power_from,
                                        .tegrastats = o->tegrastats,
                                        .watch = o->watch};
    EW_CLEANUP(close_board) struct ew_board *b = NULL;
    EW_TRY(ew_board_open(&board, &b));
    ew_board_recover(b);
    const double usual = command ? RUN_INTERVAL_S : VIEW_INTERVAL_S;
    const double interval = o->interval > 0 ? o->interval : usual;
    const int64_t interval_ns = (int64_t)(interval * 1e9);
    return command ? run_command(c, b, interval_ns) : live_view(c, b, interval_ns);
}

const struct ew_cmd ew_cmd_monitor = {
    .name = "monitor",
    .group = EW_CMD_MEASURE,
    .summary = "live view of the board, or time, memory and energy of a command",
    .args = "[-- COMMAND [ARGUMENT...]]",
    .about = "With a command: runs it and prints wall and CPU time, peak memory, disk I/O, "
             "average and peak power, energy with its uncertainty, and throttling.\n"
             "Without: a live view of mode, load, clocks, memory, power by rail, temperatures, "
             "disks and top processes (keys c and m sort them) with their history, until q or "
             "Ctrl-C; plain text if standard output is not a terminal, with --json one line per "
             "reading.\n"
             "If the command fails, edgewise exits with 1; the command's own status is part of "
             "the output.\n"
             "Quantities that the board cannot measure are shown as absent, with the reason.",
    .examples = "monitor\nmonitor -- sleep 10\nmonitor --json --baseline 5 -- ./train.sh\n"
                "monitor --log run.csv --interval 0.5\nmonitor --json --on boards.ini\n"
                "monitor --power-from 'ssh meter cat /dev/ttyUSB0' -- ./train.sh",
    .max_args = -1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
    .samples = true,
};
