/* SPDX-License-Identifier: Apache-2.0 */
/* A log of a board's frames: CSV, JSON lines, Prometheus. */
#include "device/frame_log.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "base/text.h"

ew_err ew_frame_log_open(const char *path, const struct ew_board *b, struct ew_frame_log *log)
{
    *log = (struct ew_frame_log){0};
    if (!path)
        return EW_OK;
    if (ew_ends_with(path, ".prom")) {
        log->metrics = path;
        return EW_OK;
    }
    log->lines = ew_ends_with(path, ".jsonl");
    EW_CHECK(log->lines || ew_ends_with(path, ".csv"), EW_ERR_USAGE,
             "log: '%s' ends neither in .csv nor in .jsonl or .prom", path);
    log->f = fopen(path, "we");
    EW_CHECK(log->f, EW_ERR_IO, "%s: %s", path, strerror(errno));
    if (log->lines)
        return EW_OK;
    fprintf(log->f, "time_s");
    for (int i = 0; i < b->n_channels; i++) {
        const char *unit = ew_quantity_unit(b->channels[i].quantity);
        fprintf(log->f, unit[0] ? ",%s [%s]" : ",%s", b->channels[i].name, unit);
    }
    putc('\n', log->f);
    return EW_OK;
}

void ew_frame_log_stdout(struct ew_frame_log *log)
{
    *log = (struct ew_frame_log){.f = stdout, .lines = true};
}

static void csv_row(struct ew_frame_log *log, const struct ew_board *b,
                    const struct ew_sample_value *values)
{
    for (int i = 0; i < b->n_channels; i++) {
        char text[EW_NUM_CHARS] = "";
        if (ew_sample_value_is(values[i]))
            ew_num_text(values[i].v, text);
        fprintf(log->f, ",%s", text);
    }
    putc('\n', log->f);
}

static ew_err json_row(struct ew_frame_log *log, const struct ew_board *b, double time_s,
                       const struct ew_sample_value *values)
{
    struct ew_json j;
    ew_json_init(&j, log->f);
    j.compact = true;
    ew_json_object(&j, NULL);
    ew_json_num(&j, "time_s", time_s);
    ew_json_object(&j, "values");
    for (int i = 0; i < b->n_channels; i++)
        if (ew_sample_value_is(values[i]))
            ew_json_num(&j, b->channels[i].name, values[i].v);
    ew_json_end(&j);
    ew_json_object(&j, "absent");
    for (int i = 0; i < b->n_channels; i++)
        if (!ew_sample_value_is(values[i]))
            ew_json_str(&j, b->channels[i].name, ew_absent_text(values[i].absent));
    if (b->total.power < 0)
        ew_json_str(&j, "power.total", ew_absent_text(EW_ABSENT_NO_SENSOR));
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- Prometheus ---- */

/* Base units, as its naming conventions ask for: `scale` x our value. */
static const struct metric {
    const char *name, *help;
    double scale;
} metrics[EW_QUANTITY_N] = {
    [EW_QUANTITY_LOAD] = {"edgewise_load_ratio", "Share of the time that a unit was busy.", 0.01},
    [EW_QUANTITY_FREQ] = {"edgewise_frequency_hertz", "Clock of a unit.", 1e6},
    [EW_QUANTITY_POWER] = {"edgewise_power_watts", "Power of a rail; total stands for the board.",
                           1},
    [EW_QUANTITY_VOLTAGE] = {"edgewise_voltage_volts", "Voltage of a rail.", 1},
    [EW_QUANTITY_CURRENT] = {"edgewise_current_amperes", "Current of a rail.", 1},
    [EW_QUANTITY_ENERGY] = {"edgewise_energy_joules", "Energy by one of the board's counters.", 1},
    [EW_QUANTITY_TEMP] = {"edgewise_temperature_celsius", "Temperature of a sensor.", 1},
    [EW_QUANTITY_FAN] = {"edgewise_fan_rpm", "Speed of a fan.", 1},
    [EW_QUANTITY_SHARE] = {"edgewise_share_ratio",
                           "Drive of a fan; share of files in the page cache.", 0.01},
    [EW_QUANTITY_BYTES] = {"edgewise_memory_bytes", "Memory.", 1},
    [EW_QUANTITY_RATE] = {"edgewise_disk_bytes_per_second", "Bytes that a disk read or wrote.", 1},
    [EW_QUANTITY_OPS] = {"edgewise_operations_per_second", "Requests that a disk served.", 1},
    [EW_QUANTITY_COUNT] = {"edgewise_count", "Requests in a queue; cores that are on.", 1},
    [EW_QUANTITY_STATE] = {"edgewise_state", "1 if the state holds, e.g. throttled by heat.", 1},
};

static void metric_values(FILE *out, const struct ew_board *b, enum ew_quantity q,
                          const struct ew_sample_value *values)
{
    bool begun = false;
    for (int i = 0; i < b->n_channels; i++) {
        if (b->channels[i].quantity != q || !ew_sample_value_is(values[i]))
            continue;
        if (!begun)
            fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", metrics[q].name, metrics[q].help,
                    metrics[q].name);
        begun = true;
        fprintf(out, "%s{channel=\"", metrics[q].name);
        for (const char *c = b->channels[i].name; *c; c++) { /* as names of sensors go */
            if (*c == '\\' || *c == '"')
                putc('\\', out);
            putc(*c == '\n' ? ' ' : *c, out);
        }
        char text[EW_NUM_CHARS];
        ew_num_text(values[i].v * metrics[q].scale, text);
        fprintf(out, "\"} %s\n", text);
    }
}

/* Absent values have no line: zeros would be drawn as measurements. */
static ew_err write_metrics(const char *path, const struct ew_board *b,
                            const struct ew_sample_value *values)
{
    struct ew_file_out out;
    EW_TRY(ew_file_out_open(path, &out));
    for (int q = 0; q < EW_QUANTITY_N; q++)
        if (metrics[q].name)
            metric_values(out.f, b, (enum ew_quantity)q, values);
    return ew_file_out_commit(&out);
}

ew_err ew_frame_log_row(struct ew_frame_log *log, const struct ew_board *b, int64_t t_ns,
                        const struct ew_sample_value *values)
{
    if (log->metrics)
        return write_metrics(log->metrics, b, values);
    if (!log->f)
        return EW_OK;
    if (log->start_ns == 0)
        log->start_ns = t_ns;
    const double time_s = (double)(t_ns - log->start_ns) * 1e-9;
    if (log->lines)
        EW_TRY(json_row(log, b, time_s, values));
    else {
        fprintf(log->f, "%.6f", time_s);
        csv_row(log, b, values);
    }
    EW_CHECK(fflush(log->f) == 0, EW_ERR_IO, "writing the log: %s", strerror(errno));
    return EW_OK;
}

ew_err ew_frame_log_close(struct ew_frame_log *log)
{
    if (!log->f)
        return EW_OK;
    const bool ok = (log->f == stdout ? fflush(stdout) : fclose(log->f)) == 0;
    log->f = NULL;
    EW_CHECK(ok, EW_ERR_IO, "writing the log: %s", strerror(errno));
    return EW_OK;
}
