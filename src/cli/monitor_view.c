/* SPDX-License-Identifier: Apache-2.0 */
/* The live view of edgewise monitor: formats one frame as lines of text.  The terminal and waiting
 * are handled in cmd_monitor.c. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli/board_text.h"
#include "cli/monitor.h"
#include "device/cpu_facts.h"
#include "device/nvpmodel.h"

#define LINE_BYTES 2048
#define NARROW     70 /* narrower terminals get short bars and labels */
#define PROCESSES  8  /* listed if the number of rows is unlimited */

#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define CYAN   "\033[36m"
#define DIM    "\033[2m"
#define BOLD   "\033[1m"
#define PLAIN  "\033[0m"

/* The line being formatted. */
struct pen {
    const struct ew_view *view;
    const struct ew_sample_value *values;
    FILE *out;
    const char *end_of_line;
    int row;
    int name, bar; /* columns of a label, and inside of a bar */
    char line[LINE_BYTES];
    size_t used;
};

static void put(struct pen *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct pen *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(p->line + p->used, sizeof(p->line) - p->used, fmt, ap);
    va_end(ap);
    if (n > 0)
        p->used += (size_t)n;
    if (p->used >= sizeof(p->line))
        p->used = sizeof(p->line) - 1;
}

static void colour(struct pen *p, const char *escape)
{
    if (p->view->colour)
        put(p, "%s", escape);
}

/* The number of bytes that fill so many columns; escape sequences and UTF-8 continuation bytes take
 * none. */
static size_t fitting(const char *line, int columns)
{
    size_t i = 0;
    for (int at = 0; line[i]; i++) {
        if (line[i] == '\033') {
            i += strcspn(line + i, "m");
            if (!line[i])
                break;
        } else if (((unsigned char)line[i] & 0xc0) != 0x80 && ++at > columns) {
            break;
        }
    }
    return i;
}

static void end_line(struct pen *p)
{
    p->line[p->used] = '\0';
    const bool room = p->view->rows == 0 || p->row < p->view->rows - 1;
    if (room) {
        size_t n = fitting(p->line, p->view->columns);
        while (n > 0 && p->line[n - 1] == ' ')
            n--;
        fprintf(p->out, "%.*s%s%s", (int)n, p->line, p->view->colour ? PLAIN : "", p->end_of_line);
    }
    p->row++;
    p->used = 0;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static struct ew_sample_value value_of(const struct pen *p, const char *name)
{
    const int i = ew_board_channel(p->view->board, name);
    return i < 0 ? ew_sample_value_absent(EW_ABSENT_NO_SENSOR) : p->values[i];
}

/* "[||||||        ]", red from 90 % on. */
static void bar(struct pen *p, struct ew_sample_value share, int width)
{
    const double s = ew_sample_value_is(share) ? fmin(fmax(share.v / 100, 0), 1) : 0;
    const int full = (int)lround(s * width);
    put(p, "[");
    colour(p, s >= 0.9 ? RED : s >= 0.6 ? YELLOW : GREEN);
    for (int i = 0; i < width; i++)
        put(p, "%c", i < full ? '|' : ' ');
    colour(p, PLAIN);
    put(p, "]");
}

/* A value with its unit, or the reason for its absence, right-aligned. */
static void figure(struct pen *p, enum ew_quantity q, struct ew_sample_value v, int width)
{
    char text[EW_VALUE_CHARS];
    ew_value_text(q, v, text);
    if (!ew_sample_value_is(v))
        colour(p, DIM);
    put(p, "%*s", width, ew_sample_value_is(v) ? text : ew_absent_text(v.absent));
    if (!ew_sample_value_is(v))
        colour(p, PLAIN);
}

/* Columns used so far. */
static int taken(const struct pen *p)
{
    int columns = 0;
    while (fitting(p->line, columns) < p->used && columns < LINE_BYTES)
        columns++;
    return columns;
}

/* Sparkline of a channel's last readings, scaled to `top`; 0: to their maximum. */
static void history(struct pen *p, int channel, int width, float top)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char ascii[] = "_.-=+*#@";
    const struct ew_view *v = p->view;
    const float *past = v->past + (size_t)channel * EW_VIEW_HISTORY;
    const int n = v->n_past < width ? v->n_past : width;
    const bool load = top > 0;
    for (int i = 0; !load && i < v->n_past; i++)
        top = fmaxf(top, past[i]);
    top = fmaxf(top, 1e-9f);
    colour(p, CYAN);
    for (int i = n; i > 0; i--) {
        const float x = past[(v->past_at - i + EW_VIEW_HISTORY) % EW_VIEW_HISTORY];
        const int level = x < 0 ? -1 : (int)(7.0f * fminf(x / top, 1) + 0.5f);
        if (level < 0)
            put(p, " ");
        else if (v->utf8)
            put(p, "%s", blocks[level]);
        else
            put(p, "%c", ascii[level]);
    }
    colour(p, PLAIN);
}

/* Fills the rest of the line with the channel's history if there is any and it fits. */
static void past_of(struct pen *p, int channel, float top)
{
    const int room = p->view->columns - taken(p) - 3;
    if (channel < 0 || p->view->n_past < 2 || room < 8)
        return;
    put(p, "  ");
    history(p, channel, room, top);
}

static void title(struct pen *p, const char *text)
{
    colour(p, BOLD);
    put(p, "%-*.*s", p->name, p->name - 1, text);
    colour(p, PLAIN);
}

/* ---- Sections -------------------------------------------------------------------------------- */

static void head(struct pen *p, const struct ew_sampler_stats *stats)
{
    const struct ew_board *b = p->view->board;
    title(p, "edgewise");
    put(p, "%s", b->id.model ? b->id.model : b->id.cpu ? b->id.cpu : "unknown board");
    if (b->id.release)
        put(p, ", L4T %s", b->id.release);
    put(p, ", sampler %.2f %% of a core",
        stats->wall_s > 0 ? 100 * stats->cpu_s / stats->wall_s : 0);
    if (stats->missed || stats->dropped)
        put(p, ", %lld missed, %lld dropped", (long long)stats->missed, (long long)stats->dropped);
    end_line(p);
    if (p->view->mode[0]) {
        title(p, "mode");
        put(p, "%s", p->view->mode);
        end_line(p);
    }
}

/* The load of the cores side by side, as many as fit. */
static void cores(struct pen *p)
{
    enum { WIDTH = 44, INSIDE = 12 };
    const struct ew_board *b = p->view->board;
    title(p, "CPU");
    bar(p, value_of(p, "cpu.load"), p->bar);
    put(p, " ");
    figure(p, EW_QUANTITY_LOAD, value_of(p, "cpu.load"), 7);
    put(p, "   %d of %d cores on", b->id.online, b->id.cores);
    past_of(p, ew_board_channel(b, "cpu.load"), 100);
    end_line(p);
    const int per_line = p->view->columns / WIDTH > 0 ? p->view->columns / WIDTH : 1;
    int on_line = 0;
    for (int i = 0; i < b->n_channels; i++) {
        int cpu = 0, end = 0;
        if (sscanf(b->channels[i].name, "cpu%d.load%n", &cpu, &end) != 1 || end == 0)
            continue;
        char name[32];
        snprintf(name, sizeof(name), "cpu%d.freq", cpu);
        const struct ew_sample_value freq = value_of(p, name);
        put(p, "  %3d ", cpu);
        bar(p, p->values[i], INSIDE);
        if (ew_sample_value_is(p->values[i]))
            figure(p, EW_QUANTITY_LOAD, p->values[i], 6);
        else
            put(p, "%6s", p->values[i].absent == EW_ABSENT_OFF ? "off" : "-");
        if (ew_sample_value_is(freq))
            figure(p, EW_QUANTITY_FREQ, freq, 10);
        if (++on_line == per_line) {
            end_line(p);
            on_line = 0;
        } else {
            while (fitting(p->line, WIDTH * on_line) == p->used && p->used < LINE_BYTES - 2)
                put(p, " ");
        }
    }
    if (on_line)
        end_line(p);
}

static void gpus(struct pen *p)
{
    const struct ew_board *b = p->view->board;
    int shown = 0;
    for (int i = 0; i < b->n_channels; i++) {
        const char *name = b->channels[i].name;
        const char *dot = strchr(name, '.');
        if (strncmp(name, "gpu", 3) != 0 || !dot || strcmp(dot, ".load") != 0)
            continue;
        char freq[64];
        snprintf(freq, sizeof(freq), "%.*s.freq", (int)(dot - name), name);
        title(p, shown ? "" : "GPU");
        bar(p, p->values[i], p->bar);
        figure(p, EW_QUANTITY_LOAD, p->values[i], 8);
        figure(p, EW_QUANTITY_FREQ, value_of(p, freq), 11);
        past_of(p, i, 100);
        end_line(p);
        shown++;
    }
    if (shown)
        return;
    title(p, "GPU");
    put(p, "none seen");
    end_line(p);
}

static void memory(struct pen *p)
{
    const struct ew_sample_value used = value_of(p, "mem.used"), total = value_of(p, "mem.total");
    title(p, "memory");
    const bool known = ew_sample_value_is(used) && ew_sample_value_is(total) && total.v > 0;
    bar(p,
        known ? ew_sample_value_of(100 * used.v / total.v) : ew_sample_value_absent(EW_ABSENT_BAD),
        p->bar);
    figure(p, EW_QUANTITY_BYTES, used, 11);
    put(p, " of ");
    figure(p, EW_QUANTITY_BYTES, total, 8);
    put(p, ", swap ");
    figure(p, EW_QUANTITY_BYTES, value_of(p, "mem.swap_used"), 9);
    const struct ew_sample_value emc = value_of(p, "emc.freq");
    if (ew_sample_value_is(emc)) {
        put(p, ", clock");
        figure(p, EW_QUANTITY_FREQ, emc, 9);
    }
    if (known)
        past_of(p, ew_board_channel(p->view->board, "mem.used"), (float)total.v);
    end_line(p);
}

static void rails(struct pen *p)
{
    const struct ew_board *b = p->view->board;
    const int width = p->view->columns - p->name - 16;
    title(p, "power");
    if (b->total.power < 0) {
        put(p, "%s", b->total.rails);
        end_line(p);
    } else {
        figure(p, EW_QUANTITY_POWER, p->values[b->total.power], 12);
        put(p, "  ");
        history(p, b->total.power, width, 0);
        end_line(p);
        put(p, "%*s = %s", p->name, "", b->total.rails);
        end_line(p);
    }
    for (int i = 0; i < b->n_channels; i++) {
        if (b->channels[i].quantity != EW_QUANTITY_POWER || i == b->total.power)
            continue;
        put(p, "  %-*.*s", p->name - 2, p->name - 3, b->channels[i].name + strlen("power."));
        figure(p, EW_QUANTITY_POWER, p->values[i], 12);
        put(p, "  ");
        history(p, i, width, 0);
        end_line(p);
    }
}

/* Lists the channels of one quantity, in as many lines as needed.  False: there are none. */
static bool listing(struct pen *p, const char *name, enum ew_quantity q, const char *prefix)
{
    const struct ew_board *b = p->view->board;
    const size_t skip = strlen(prefix);
    int column = 0, shown = 0;
    for (int i = 0; i < b->n_channels; i++) {
        const struct ew_channel *c = &b->channels[i];
        if (c->quantity != q || strncmp(c->name, prefix, skip) != 0)
            continue;
        char text[EW_VALUE_CHARS], item[128];
        ew_value_text(q, p->values[i], text);
        const int n =
            snprintf(item, sizeof(item), "%.40s %s", c->name + skip,
                     ew_sample_value_is(p->values[i]) ? text : ew_absent_text(p->values[i].absent));
        if (shown == 0 || column + n + 3 > p->view->columns) {
            if (shown)
                end_line(p);
            title(p, shown ? "" : name);
            column = p->name;
        }
        put(p, "%s   ", item);
        column += n + 3;
        shown++;
    }
    if (shown)
        end_line(p);
    return shown > 0;
}

static void temperatures(struct pen *p)
{
    if (listing(p, "temperature", EW_QUANTITY_TEMP, "temp."))
        return;
    title(p, "temperature");
    put(p, "no sensor");
    end_line(p);
}

static void held_back(struct pen *p)
{
    const struct ew_board *b = p->view->board;
    bool any = false, known = false;
    for (int i = 0; i < b->n_channels; i++) {
        const struct ew_channel *c = &b->channels[i];
        if (strncmp(c->name, "throttle.", 9) != 0 || c->quantity != EW_QUANTITY_STATE ||
            !ew_sample_value_is(p->values[i]))
            continue;
        known = true;
        if (p->values[i].v <= 0)
            continue;
        if (!any)
            title(p, "throttled");
        colour(p, RED);
        put(p, "%s ", c->name + 9);
        any = true;
    }
    if (!any) {
        title(p, "throttled");
        put(p, "%s", known ? "no" : "no sensor");
    }
    end_line(p);
}

/* The top processes in the remaining lines; the keys are listed below. */
static void processes(struct pen *p)
{
    const struct ew_processes *all = p->view->processes;
    const bool by_memory = p->view->by_memory, narrow = p->view->columns < NARROW;
    const int room = p->view->rows ? p->view->rows - p->row - 3 : PROCESSES;
    const int indent = narrow ? 0 : p->name;
    if (!all || all->n_order == 0 || all->before_ns == 0 || room < 1)
        return;
    if (!narrow)
        title(p, "processes");
    put(p, "%7s %8s %9s  program", "PID", by_memory ? "CPU" : "CPU v",
        by_memory ? "memory v" : "memory");
    end_line(p);
    for (int i = 0; i < room && i < all->n_order; i++) {
        const struct ew_process *x = &all->now[all->order[i]];
        if (!by_memory && x->load <= 0 && i > 0)
            break;
        put(p, "%*s%7d ", indent, "", x->pid);
        figure(p, EW_QUANTITY_LOAD,
               x->load < 0 ? ew_sample_value_absent(EW_ABSENT_NOT) : ew_sample_value_of(x->load),
               8);
        figure(p, EW_QUANTITY_BYTES, ew_sample_value_of((double)x->rss), 10);
        put(p, "  %s", x->name);
        end_line(p);
    }
    if (!p->view->rows)
        return;
    colour(p, DIM);
    put(p, "%*sq quit   c by CPU   m by memory", indent, "");
    end_line(p);
}

void ew_view_read_mode(struct ew_view *v, struct ew_board *b)
{
    struct ew_nvpmodel modes;
    struct ew_cpu_facts cpu = {0};
    const int64_t active = ew_nvpmodel_active(&b->root);
    int n = 0;
    if (active >= 0 && ew_nvpmodel_read(&b->root, &b->arena, &modes) == EW_OK)
        for (int i = 0; i < modes.n_modes; i++)
            if (modes.modes[i].id == active)
                n = snprintf(v->mode, sizeof(v->mode), "%.40s", modes.modes[i].name);
    if (ew_cpu_facts_read(b, &cpu) == EW_OK && cpu.governor)
        snprintf(v->mode + n, sizeof(v->mode) - (size_t)n, "%sgovernor %.30s", n ? ", " : "",
                 cpu.governor);
}

void ew_view_remember(struct ew_view *v, const struct ew_sample_value *values)
{
    for (int i = 0; i < v->board->n_channels; i++)
        v->past[(size_t)i * EW_VIEW_HISTORY + (size_t)v->past_at] =
            ew_sample_value_is(values[i]) ? (float)values[i].v : -1.0f;
    v->past_at = (v->past_at + 1) % EW_VIEW_HISTORY;
    v->n_past += v->n_past < EW_VIEW_HISTORY;
}

void ew_view_draw(const struct ew_view *v, const struct ew_sample_value *values,
                  const struct ew_sampler_stats *stats, const char *end_of_line, FILE *out)
{
    const bool narrow = v->columns < NARROW;
    struct pen p = {.view = v,
                    .values = values,
                    .out = out,
                    .end_of_line = end_of_line,
                    .name = narrow ? 12 : 18,
                    .bar = narrow ? 10 : 20};
    head(&p, stats);
    cores(&p);
    gpus(&p);
    memory(&p);
    rails(&p);
    temperatures(&p);
    listing(&p, "fan", EW_QUANTITY_FAN, "fan.");
    listing(&p, "fan drive", EW_QUANTITY_SHARE, "fan.");
    listing(&p, "disk", EW_QUANTITY_RATE, "disk.");
    listing(&p, "queue", EW_QUANTITY_COUNT, "disk.");
    listing(&p, "page cache", EW_QUANTITY_SHARE, "cache.");
    held_back(&p);
    processes(&p);
}
