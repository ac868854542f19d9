/* SPDX-License-Identifier: Apache-2.0 */
/* Report of `edgewise monitor -- COMMAND`: text, JSON, metrics of the recording. */
#include <string.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/board_text.h"
#include "cli/monitor.h"

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
    const char *after = known ? note : "not reported by the kernel";
    fprintf(f, "  %-18s %14s%s%s\n", what, text, after[0] ? "   " : "", after);
}

/* Whether the peak memory is only an upper bound: ru_maxrss includes the copy of this process from
 * which the command was forked. */
static bool memory_is_bound(const struct ew_command_cost *o)
{
    return o->use.ru_maxrss <= o->own_kb;
}

static void print_absent(FILE *f, const char *what, const char *why)
{
    fprintf(f, "  %-18s %14s   %s\n", what, "-", why);
}

static void print_energy(FILE *f, const struct ew_monitor_run *r, const struct ew_command_cost *o)
{
    const struct ew_board *b = r->run.board;
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
    fprintf(f, "  %-18s %12.3f W   highest sample; lowest %.3f W\n", "peak power", e->peak_w,
            e->min_w);
    if (e->resolution_w > 0)
        fprintf(f, "  %-18s %12.3f W\n", "sensor step", e->resolution_w);
    else if (!e->counted)
        print_absent(f, "sensor step", "not known; not part of the stated error");
    if (o->baseline_w >= 0)
        fprintf(f, "  %-18s %12.3f J   above the %.3f W of the baseline\n", "dynamic energy",
                e->joules - o->baseline_w * e->seconds, o->baseline_w);
    else if (r->run.baseline_s > 0)
        print_absent(f, "dynamic energy", "no power was read before the command");
    if (e->integrated_j >= 0)
        fprintf(f, "  %-18s %12.3f J   %s\n", "integrated", e->integrated_j,
                e->disagree ? "DISAGREES with the counter" : "agrees with the counter");
    fprintf(f, "  %-18s %14s   %s\n", "covers", "", b->total.covers);
}

static void print_text(FILE *f, const struct ew_monitor_run *r, const struct ew_command_cost *o)
{
    fprintf(f, "\n  %s", r->run.argv[0]);
    for (int i = 1; r->run.argv[i]; i++)
        fprintf(f, " %s", r->run.argv[i]);
    fprintf(f, "\n\n  %-18s %12.3f s\n", "wall time", o->wall_s);
    fprintf(f, "  %-18s %12.3f s   %.3f user + %.3f system\n", "CPU time",
            seconds_of(o->use.ru_utime) + seconds_of(o->use.ru_stime), seconds_of(o->use.ru_utime),
            seconds_of(o->use.ru_stime));
    print_bytes(f, "peak memory", 1024.0 * (double)o->use.ru_maxrss,
                memory_is_bound(o) ? "upper bound; resident, of its largest process"
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

static void json_energy(struct ew_json *j, const struct ew_board *b,
                        const struct ew_command_cost *o)
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

static ew_err print_json(FILE *f, const struct ew_monitor_run *r, const struct ew_command_cost *o)
{
    struct ew_json j;
    ew_json_init(&j, f);
    ew_json_object(&j, NULL);
    ew_json_array(&j, "command");
    for (int i = 0; r->run.argv[i]; i++)
        ew_json_str(&j, NULL, r->run.argv[i]);
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
    json_energy(&j, r->run.board, o);
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

static ew_err report(const struct ew_monitor_run *r, const struct ew_command_cost *o)
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

static ew_err record(const struct ew_monitor_run *r, const struct ew_command_cost *o)
{
    const struct ew_energy *e = &o->energy;
    struct ew_metric_row m;
    if (e->absent != EW_ABSENT_NOT)
        return EW_OK;
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = "power_w";
    m.value = e->mean_w;
    m.unit = "W";
    m.source = r->run.board->total.rails;
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
    m.source = r->run.board->total.rails;
    m.quality = e->counted ? EW_QUALITY_MEASURED : EW_QUALITY_DERIVED;
    m.n = e->samples;
    m.spread = e->error_j;
    m.better = EW_BETTER_LOWER;
    return ew_recording_put(r->rec, EW_RECORD_METRIC, &m);
}

ew_err ew_monitor_command(const struct ew_monitor_run *r)
{
    const char *name = r->run.argv[0];
    struct ew_command_cost out;
    EW_TRY(ew_command_cost(&r->run, &out));
    EW_TRY(report(r, &out));
    EW_TRY(record(r, &out));
    if (WIFSIGNALED(out.status))
        return ew_fail(EW_ERR_IO, "%s: ended by signal %d (%s)", name, WTERMSIG(out.status),
                       strsignal(WTERMSIG(out.status)));
    EW_CHECK(WEXITSTATUS(out.status) == 0, EW_ERR_IO, "%s: exit status %d", name,
             WEXITSTATUS(out.status));
    return EW_OK;
}
