/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command while sampling the board's sensors. */
#include "measure/command_cost.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/spawn.h"

/* State of the measurement. */
struct watch {
    const struct ew_command_run *run;
    struct ew_sampler *sampler;
    struct ew_sample_value *values, *before;
    bool have_before;
    int64_t before_ns;
    struct ew_energy_sum energy;
    struct ew_command_cost *out;
    ew_err err; /* first failure of writing the log */
};

/* ---- Frames ---------------------------------------------------------------------------------- */

static struct ew_sample_value channel_value(const struct ew_sample_value *values, int channel)
{
    return channel >= 0 ? values[channel] : ew_sample_value_absent(EW_ABSENT_NO_SENSOR);
}

static void watch_heat(struct watch *w)
{
    const struct ew_board *b = w->run->board;
    bool held_back = false;
    for (int i = 0; i < b->n_channels; i++) {
        const struct ew_channel *c = &b->channels[i];
        if (!ew_sample_value_is(w->values[i]))
            continue;
        if (strncmp(c->name, "throttle.", 9) == 0) {
            const bool counter = c->quantity == EW_QUANTITY_COUNT;
            const double from = counter && w->have_before ? w->before[i].v : 0;
            w->out->throttle_known = true;
            held_back = held_back || (w->values[i].v > from && (!counter || w->have_before));
        }
        if (c->quantity == EW_QUANTITY_TEMP && w->values[i].v > w->out->hottest_c) {
            w->out->hottest_c = w->values[i].v;
            w->out->hottest = c->name;
        }
    }
    w->out->throttled += held_back;
    w->out->frames++;
}

static void drain(struct watch *w)
{
    const struct ew_board *b = w->run->board;
    int64_t t;
    while (ew_sampler_next(w->sampler, &t, w->values)) {
        ew_energy_add(&w->energy, t, channel_value(w->values, b->total.power),
                      channel_value(w->values, b->total.energy));
        watch_heat(w);
        if (w->err == EW_OK)
            w->err = ew_frame_log_row(w->run->log, b, t, w->values);
        memcpy(w->before, w->values, (size_t)b->n_channels * sizeof(*w->values));
        w->have_before = true;
        w->before_ns = t;
    }
}

/* Starts an interval.  The previous frame is added so that power at the start is interpolated and
 * counters have a reading before it. */
static void begin_energy(struct watch *w, int64_t now)
{
    const struct ew_board *b = w->run->board;
    const double step = b->total.power >= 0 ? b->channels[b->total.power].resolution : 0;
    ew_energy_begin(&w->energy, now, w->run->interval_ns, step);
    if (w->have_before)
        ew_energy_add(&w->energy, w->before_ns, channel_value(w->before, b->total.power),
                      channel_value(w->before, b->total.energy));
}

static void wait_for_frame(struct watch *w)
{
    begin_energy(w, ew_clock_ns());
    for (int i = 0; i < 200 && !w->have_before; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        drain(w);
    }
    w->out->frames = w->out->throttled = 0;
}

/* Measures idle power before the command. */
static void measure_baseline(struct watch *w)
{
    w->out->baseline_w = -1;
    if (w->run->baseline_s <= 0)
        return;
    const int64_t begin = ew_clock_ns(), end = begin + (int64_t)(w->run->baseline_s * 1e9);
    begin_energy(w, begin);
    while (ew_clock_ns() < end) {
        nanosleep(&(struct timespec){.tv_nsec = EW_SAMPLER_DRAIN_NS}, NULL);
        drain(w);
    }
    ew_energy_stop(&w->energy, ew_clock_ns());
    const struct ew_energy e = ew_energy_result(&w->energy);
    if (e.absent == EW_ABSENT_NOT)
        w->out->baseline_w = e.mean_w;
    w->out->frames = w->out->throttled = 0;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Bytes read from and written to storage, with those of children it has waited for.  Read while the
 * process is a zombie. */
static void read_io(pid_t pid, struct ew_command_cost *out)
{
    char path[64], *text = NULL;
    size_t size;
    long long in = -1, written = -1;
    snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
    if (ew_file_read(path, 4096, &text, &size) == EW_OK) {
        const char *r = strstr(text, "\nread_bytes:"), *w = strstr(text, "\nwrite_bytes:");
        if (r && w) {
            in = strtoll(r + strlen("\nread_bytes:"), NULL, 10);
            written = strtoll(w + strlen("\nwrite_bytes:"), NULL, 10);
        }
    }
    free(text);
    out->read_bytes = (double)in;
    out->write_bytes = (double)written;
}

static ew_err wait_for(struct watch *w, struct ew_spawned *p, const sigset_t *before)
{
    while (ew_spawn_supervise(p, EW_SAMPLER_DRAIN_NS))
        drain(w);
    ew_energy_stop(&w->energy, ew_clock_ns());
    read_io(p->pid, w->out);
    const ew_err err = ew_spawn_wait(p, &w->out->status, &w->out->use);
    ew_signals_release(before);
    return err;
}

static ew_err run_command(struct watch *w)
{
    sigset_t before;
    wait_for_frame(w);
    measure_baseline(w);      /* before signals are blocked: Ctrl-C ends this process */
    ew_signals_hold(&before); /* signals go to the command; this process continues and reports */
    const int64_t begin = ew_clock_ns();
    begin_energy(w, begin);
    struct ew_spawned command;
    const ew_err err = ew_spawn(w->run->argv, &(struct ew_spawn_opts){.mask = &before}, &command);
    if (err != EW_OK) {
        ew_signals_release(&before);
        return err;
    }
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    w->out->own_kb = own.ru_maxrss;
    EW_TRY(wait_for(w, &command, &before));
    w->out->wall_s = (double)(w->energy.end_ns - begin) * 1e-9;
    ew_sampler_stop(w->sampler);
    drain(w);
    w->out->energy = ew_energy_result(&w->energy);
    w->out->sampler = ew_sampler_stats(w->sampler);
    return w->err;
}

ew_err ew_command_cost(const struct ew_command_run *r, struct ew_command_cost *out)
{
    struct ew_board *b = r->board;
    struct watch w = {.run = r, .out = out};
    *out = (struct ew_command_cost){.hottest_c = -1000, .baseline_w = -1};
    w.values = ew_arena_array(&b->arena, (size_t)b->n_channels + 1, sizeof(*w.values));
    w.before = ew_arena_array(&b->arena, (size_t)b->n_channels + 1, sizeof(*w.before));
    EW_CHECK(w.values && w.before, EW_ERR_MEMORY, "no memory");
    EW_TRY(ew_sampler_start(b, r->interval_ns, ew_sampler_frames(r->interval_ns), &w.sampler));
    const ew_err err = run_command(&w);
    ew_sampler_free(w.sampler);
    return err;
}
