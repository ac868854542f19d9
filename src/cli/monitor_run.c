/* SPDX-License-Identifier: Apache-2.0 */
/* What a command costs: wall time, CPU time, memory, disk, power, energy, throttling. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/spawn.h"
#include "cli/board_text.h"
#include "cli/monitor.h"
#include "device/energy.h"

/* Everything that is known when the command is over. */
struct outcome {
    int status; /* of waitpid */
    struct rusage use;
    long own_kb; /* our own peak: the kernel counts it as the command's from before its exec */
    double wall_s;
    double read_bytes, write_bytes; /* -1: the kernel does not tell */
    struct ew_energy energy;
    double baseline_w; /* -1: not measured */
    struct ew_sampler_stats sampler;
    int64_t frames, throttled;
    bool throttle_known;
    double hottest_c; /* -1000: no thermometer */
    const char *hottest;
};

/* The run while it goes on. */
struct watch {
    const struct ew_monitor_run *run;
    struct ew_sampler *sampler;
    struct ew_sample_value *values, *before;
    bool have_before;
    int64_t before_ns;
    struct ew_energy_sum energy;
    struct outcome *out;
    ew_err err; /* of the log */
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
            w->err = ew_monitor_log_row(w->run->log, b, t, w->values);
        memcpy(w->before, w->values, (size_t)b->n_channels * sizeof(*w->values));
        w->have_before = true;
        w->before_ns = t;
    }
}

/* The frame before counts too: the interval's beginning is then interpolated, and a counter has a
 * reading on either side of it. */
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

/* The machine at rest, before the command. */
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

/* Bytes that reached the disks, its finished children included.  Read while it is still there as a
 * zombie; the kernel adds up what was waited for. */
static void read_io(pid_t pid, struct outcome *out)
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
    while (ew_spawn_tend(p, EW_SAMPLER_DRAIN_NS))
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
    measure_baseline(w); /* Ctrl-C ends us as long as there is no command that it could be for */
    ew_signals_hold(&before); /* they are for the command: we go on and report */
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

/* ---- Report ---------------------------------------------------------------------------------- */

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static void print_bytes(FILE *f, const char *what, double bytes, const char *note)
{
    char text[EW_VALUE_CHARS];
    const bool known = bytes >= 0;
    ew_value_text(EW_QUANTITY_BYTES,
                  known ? ew_sample_value_of(bytes) : ew_sample_value_absent(EW_ABSENT_UNSUPPORTED),
                  text);
    const char *after = known ? note : "the kernel does not tell";
    fprintf(f, "  %-18s %14s%s%s\n", what, text, after[0] ? "   " : "", after);
}

/* A command smaller than ourselves cannot be told from what it was forked from. */
static bool memory_is_bound(const struct outcome *o)
{
    return o->use.ru_maxrss <= o->own_kb;
}

static void print_absent(FILE *f, const char *what, const char *why)
{
    fprintf(f, "  %-18s %14s   %s\n", what, "-", why);
}

static void print_energy(FILE *f, const struct ew_monitor_run *r, const struct outcome *o)
{
    const struct ew_board *b = r->board;
    const struct ew_energy *e = &o->energy;
    if (e->absent != EW_ABSENT_NOT) {
        fprintf(f, "  %-18s %14s   %s: %s\n", "energy", "-", ew_absent_text(e->absent),
                b->total.rails);
        return;
    }
    fprintf(f, "  %-18s %12.3f J   +- %.3f J, %s %s\n", "energy", e->joules, e->error_j,
            e->counted ? "counter of" : "power of", b->total.rails);
    fprintf(f, "  %-18s %12.3f W   %lld samples, %lld absent, longest gap %.2f s\n",
            "average power", e->mean_w, (long long)e->samples, (long long)e->missing,
            e->longest_gap_s);
    fprintf(f, "  %-18s %12.3f W   of a sample; lowest %.3f W\n", "peak power", e->peak_w,
            e->min_w);
    if (e->resolution_w > 0)
        fprintf(f, "  %-18s %12.3f W\n", "sensor step", e->resolution_w);
    else if (!e->counted)
        print_absent(f, "sensor step", "not known, and not in the error");
    if (o->baseline_w >= 0)
        fprintf(f, "  %-18s %12.3f J   above the %.3f W of the baseline\n", "dynamic energy",
                e->joules - o->baseline_w * e->seconds, o->baseline_w);
    else if (r->baseline_s > 0)
        print_absent(f, "dynamic energy", "no power was read before the command");
    if (e->integrated_j >= 0)
        fprintf(f, "  %-18s %12.3f J   %s\n", "integrated", e->integrated_j,
                e->disagree ? "DISAGREES with the counter" : "agrees with the counter");
    fprintf(f, "  %-18s %14s   %s\n", "covers", "", b->total.covers);
}

static void print_text(FILE *f, const struct ew_monitor_run *r, const struct outcome *o)
{
    fprintf(f, "\n  %s", r->argv[0]);
    for (int i = 1; r->argv[i]; i++)
        fprintf(f, " %s", r->argv[i]);
    fprintf(f, "\n\n  %-18s %12.3f s\n", "wall time", o->wall_s);
    fprintf(f, "  %-18s %12.3f s   %.3f user + %.3f system\n", "CPU time",
            seconds_of(o->use.ru_utime) + seconds_of(o->use.ru_stime), seconds_of(o->use.ru_utime),
            seconds_of(o->use.ru_stime));
    print_bytes(f, "peak memory", 1024.0 * (double)o->use.ru_maxrss,
                memory_is_bound(o) ? "at most; resident, of its largest process"
                                   : "resident, of its largest process");
    print_bytes(f, "read from disk", o->read_bytes, "");
    print_bytes(f, "written to disk", o->write_bytes, "");
    print_energy(f, r, o);
    if (o->hottest)
        fprintf(f, "  %-18s %12.1f C   %s\n", "hottest", o->hottest_c, o->hottest);
    else
        print_absent(f, "hottest", "no sensor");
    if (o->throttle_known)
        fprintf(f, "  %-18s %8lld of %lld samples\n", "throttled", (long long)o->throttled,
                (long long)o->frames);
    else
        print_absent(f, "throttled", "no sensor");
    fprintf(f, "  %-18s %12.3f %%   of a core; %lld deadlines missed, %lld frames dropped\n",
            "sampler", o->sampler.wall_s > 0 ? 100 * o->sampler.cpu_s / o->sampler.wall_s : 0,
            (long long)o->sampler.missed, (long long)o->sampler.dropped);
}

static void json_known(struct ew_json *j, const char *key, bool known, double v)
{
    ew_value_json(j, key,
                  known ? ew_sample_value_of(v) : ew_sample_value_absent(EW_ABSENT_NO_SENSOR));
}

static void json_energy(struct ew_json *j, const struct ew_board *b, const struct outcome *o)
{
    const struct ew_energy *e = &o->energy;
    const bool known = e->absent == EW_ABSENT_NOT, base = known && o->baseline_w >= 0;
    const bool sampled = known && e->samples > 0;
    json_known(j, "energy_j", known, e->joules);
    json_known(j, "energy_error_j", known, e->error_j);
    json_known(j, "power_mean_w", known, e->mean_w);
    json_known(j, "power_peak_w", sampled, e->peak_w);
    json_known(j, "power_min_w", sampled, e->min_w);
    ew_json_str(j, "energy_absent", known ? NULL : ew_absent_text(e->absent));
    ew_json_str(j, "energy_source", !known ? NULL : e->counted ? "counter" : "integrated");
    ew_json_str(j, "energy_rails", known ? b->total.rails : NULL);
    ew_json_str(j, "energy_covers", known ? b->total.covers : NULL);
    ew_json_str(j, "energy_quality",
                known ? ew_quality_name(e->counted ? EW_QUALITY_MEASURED : EW_QUALITY_DERIVED)
                      : NULL);
    ew_json_int(j, "samples", e->samples);
    ew_json_int(j, "samples_absent", e->missing);
    json_known(j, "longest_gap_s", sampled, e->longest_gap_s);
    json_known(j, "resolution_w", known && e->resolution_w > 0, e->resolution_w);
    json_known(j, "integrated_j", known && e->integrated_j >= 0, e->integrated_j);
    ew_json_bool(j, "counter_disagrees", e->disagree);
    json_known(j, "baseline_w", base, o->baseline_w);
    json_known(j, "dynamic_j", base, e->joules - o->baseline_w * e->seconds);
}

static ew_err print_json(FILE *f, const struct ew_monitor_run *r, const struct outcome *o)
{
    struct ew_json j;
    ew_json_init(&j, f);
    ew_json_object(&j, NULL);
    ew_json_array(&j, "command");
    for (int i = 0; r->argv[i]; i++)
        ew_json_str(&j, NULL, r->argv[i]);
    ew_json_end(&j);
    const bool exited = WIFEXITED(o->status);
    ew_json_int(&j, "exit_status", exited ? WEXITSTATUS(o->status) : 128 + WTERMSIG(o->status));
    ew_json_num(&j, "wall_s", o->wall_s);
    ew_json_num(&j, "user_s", seconds_of(o->use.ru_utime));
    ew_json_num(&j, "system_s", seconds_of(o->use.ru_stime));
    ew_json_int(&j, "peak_rss_bytes", 1024LL * o->use.ru_maxrss);
    ew_json_bool(&j, "peak_rss_is_upper_bound", memory_is_bound(o));
    json_known(&j, "read_bytes", o->read_bytes >= 0, o->read_bytes);
    json_known(&j, "write_bytes", o->write_bytes >= 0, o->write_bytes);
    json_energy(&j, r->board, o);
    json_known(&j, "hottest_c", o->hottest != NULL, o->hottest_c);
    ew_json_str(&j, "hottest", o->hottest);
    ew_json_str(&j, "hottest_absent", o->hottest ? NULL : "no sensor");
    json_known(&j, "throttled_samples", o->throttle_known, (double)o->throttled);
    ew_json_str(&j, "throttled_absent", o->throttle_known ? NULL : "no sensor");
    ew_json_int(&j, "frames", o->frames);
    json_known(&j, "sampler_cpu_percent", o->sampler.wall_s > 0,
               100 * o->sampler.cpu_s / o->sampler.wall_s);
    ew_json_int(&j, "sampler_missed", o->sampler.missed);
    ew_json_int(&j, "sampler_dropped", o->sampler.dropped);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err report(const struct ew_monitor_run *r, const struct outcome *o)
{
    if (!r->output) {
        if (r->json)
            return print_json(stdout, r, o);
        print_text(stdout, r, o);
        return EW_OK;
    }
    struct ew_file_out file;
    EW_TRY(ew_file_out_open(r->output, &file));
    ew_err err = EW_OK;
    if (r->json)
        err = print_json(file.f, r, o);
    else
        print_text(file.f, r, o);
    if (err == EW_OK)
        return ew_file_out_commit(&file);
    ew_file_out_abort(&file);
    return err;
}

static ew_err record(const struct ew_monitor_run *r, const struct outcome *o)
{
    const struct ew_energy *e = &o->energy;
    struct ew_metric_row m;
    if (e->absent != EW_ABSENT_NOT)
        return EW_OK;
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = "power_w";
    m.value = e->mean_w;
    m.unit = "W";
    m.source = r->board->total.rails;
    m.quality = e->counted ? EW_QUALITY_MEASURED : EW_QUALITY_DERIVED;
    m.n = e->samples;
    if (e->samples > 0) {
        m.lowest = e->min_w;
        m.highest = e->peak_w;
    }
    m.better = EW_BETTER_LOWER;
    EW_TRY(ew_recording_put(r->rec, EW_RECORD_METRIC, &m));
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = "energy_j";
    m.value = e->joules;
    m.unit = "J";
    m.source = r->board->total.rails;
    m.quality = e->counted ? EW_QUALITY_MEASURED : EW_QUALITY_DERIVED;
    m.n = e->samples;
    m.spread = e->error_j;
    m.better = EW_BETTER_LOWER;
    return ew_recording_put(r->rec, EW_RECORD_METRIC, &m);
}

ew_err ew_monitor_command(const struct ew_monitor_run *r)
{
    struct outcome out = {.hottest_c = -1000, .baseline_w = -1};
    struct watch w = {.run = r, .out = &out};
    struct ew_board *b = r->board;
    w.values = ew_arena_array(&b->arena, (size_t)b->n_channels + 1, sizeof(*w.values));
    w.before = ew_arena_array(&b->arena, (size_t)b->n_channels + 1, sizeof(*w.before));
    EW_CHECK(w.values && w.before, EW_ERR_MEMORY, "no memory");
    EW_TRY(ew_sampler_start(b, r->interval_ns, ew_sampler_frames(r->interval_ns), &w.sampler));
    ew_err err = run_command(&w);
    ew_sampler_free(w.sampler);
    EW_TRY(err);
    EW_TRY(report(r, &out));
    EW_TRY(record(r, &out));
    if (WIFSIGNALED(out.status))
        return ew_fail(EW_ERR_IO, "%s: ended by signal %d (%s)", r->argv[0], WTERMSIG(out.status),
                       strsignal(WTERMSIG(out.status)));
    EW_CHECK(WEXITSTATUS(out.status) == 0, EW_ERR_IO, "%s: exit status %d", r->argv[0],
             WEXITSTATUS(out.status));
    return EW_OK;
}
