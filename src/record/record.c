/* SPDX-License-Identifier: Apache-2.0 */
/* The field tables of all records.  The names are columns of existing files: they never change; new
 * ones may be added anywhere. */
#include "record/record.h"

#include "base/mem.h"

static const char *const status_names[] = {
#define EW_RUN_STATUS_NAME(id, name) name,
    EW_RUN_STATUS_MAP(EW_RUN_STATUS_NAME)
#undef EW_RUN_STATUS_NAME
        NULL};

static const char *const better_names[] = {"neither", "lower", "higher", NULL};

/* clang-format off */
#define ROW(kind, member, t, u, b, text) \
    {.name = #member, .type = t, .offset = offsetof(struct ew_##kind##_row, member), .unit = u, \
     .better = b, .help = text}
#define TEXT(kind, member, text)          ROW(kind, member, EW_FIELD_STR, NULL, EW_BETTER_NEITHER, text)
#define BOOL(kind, member, text)          ROW(kind, member, EW_FIELD_BOOL, NULL, EW_BETTER_NEITHER, text)
#define INT(kind, member, u, text)        ROW(kind, member, EW_FIELD_INT, u, EW_BETTER_NEITHER, text)
#define NUM(kind, member, u, better, text) ROW(kind, member, EW_FIELD_FLOAT, u, EW_BETTER_##better, text)
#define ENUM(kind, member, words, text) \
    {.name = #member, .type = EW_FIELD_ENUM, .offset = offsetof(struct ew_##kind##_row, member), \
     .choices = words, .help = text}

static const struct ew_field machine_fields[] = {
    TEXT(machine, id, "hash of all other fields"),
    TEXT(machine, unit, "name or hash of the device"),
    TEXT(machine, board, "board"),
    TEXT(machine, profile, "board profile"),
    TEXT(machine, cpu, "CPU"),
    TEXT(machine, kernel, "kernel"),
    TEXT(machine, system, "release of the board's system"),
    INT(machine, cores, NULL, "cores present"),
    INT(machine, cores_online, NULL, "cores on"),
    INT(machine, memory_bytes, "B", "memory"),
    BOOL(machine, virtual_machine, "virtual machine"),
    TEXT(machine, governor, "governor of the CPU clock"),
    NUM(machine, cpu_mhz_min, "MHz", NEITHER, "lowest CPU clock"),
    NUM(machine, cpu_mhz_max, "MHz", NEITHER, "highest CPU clock"),
    NUM(machine, gpu_mhz_max, "MHz", NEITHER, "highest GPU clock"),
    NUM(machine, mem_mhz_max, "MHz", NEITHER, "highest memory clock"),
    TEXT(machine, power_mode, "power mode"),
    TEXT(machine, sensors, "sensor channels"),
    TEXT(machine, power_covers, "what its power total covers"),
    TEXT(machine, isa, "instruction set of the kernels, or the card that they run on"),
    TEXT(machine, version, "version of Edgewise"),
    TEXT(machine, compiler, "compiler that built it"),
    EW_FIELD_END,
};

static const struct ew_field job_fields[] = {
    TEXT(job, id, "hash of the options"),
    TEXT(job, command, "command"),
    TEXT(job, network, "network"),
    TEXT(job, dataset, "data set"),
    TEXT(job, options, "every option with its value"),
    EW_FIELD_END,
};

static const struct ew_field run_fields[] = {
    TEXT(run, uid, "unique id of the run"),
    TEXT(run, job, "hash of its job"),
    TEXT(run, machine, "hash of its machine"),
    TEXT(run, study, "study"),
    TEXT(run, label, "section of the study"),
    INT(run, repeat, NULL, "repetition"),
    ENUM(run, status, status_names, "status"),
    TEXT(run, reason, "why it failed or was skipped"),
    TEXT(run, started, "when it began"),
    NUM(run, wall_s, "s", LOWER, "time of the whole run"),
    INT(run, pid, NULL, "process"),
    TEXT(run, stamp, "boot and beginning of the process"),
    ENUM(run, quality, ew_quality_names, "where its figures come from"),
    TEXT(run, noise, "why its figures are not to be trusted"),
    NUM(run, load, NULL, LOWER, "share of the CPU in use before it"),
    NUM(run, temp_c, "C", LOWER, "hottest sensor before it"),
    NUM(run, cpu_mhz, "MHz", HIGHER, "mean CPU clock before it"),
    INT(run, free_memory_bytes, "B", "free memory before it"),
    INT(run, free_disk_bytes, "B", "free disk before it"),
    EW_FIELD_END,
};

static const struct ew_field epoch_fields[] = {
    INT(epoch, epoch, NULL, "epoch, from 1"),
    NUM(epoch, start_s, "s", NEITHER, "start of the epoch, since the run began"),
    NUM(epoch, wall_s, "s", LOWER, "time of the epoch"),
    NUM(epoch, compute_s, "s", LOWER, "computing"),
    NUM(epoch, stall_s, "s", LOWER, "waiting for data"),
    NUM(epoch, overhead_s, "s", LOWER, "the rest of the time"),
    NUM(epoch, comm_s, "s", LOWER, "waiting for other ranks"),
    NUM(epoch, fetch_s, "s", LOWER, "reading, over all workers"),
    NUM(epoch, decode_s, "s", LOWER, "decoding, over all workers"),
    NUM(epoch, augment_s, "s", LOWER, "augmenting, over all workers"),
    NUM(epoch, eval_s, "s", LOWER, "validation after the epoch"),
    INT(epoch, images, NULL, "images trained on"),
    INT(epoch, batches, NULL, "batches"),
    NUM(epoch, images_per_s, "1/s", HIGHER, "training speed"),
    NUM(epoch, learning_rate, NULL, NEITHER, "learning rate"),
    NUM(epoch, train_loss, NULL, LOWER, "loss in training"),
    NUM(epoch, train_accuracy, NULL, HIGHER, "accuracy in training"),
    NUM(epoch, loss, NULL, LOWER, "loss in validation"),
    NUM(epoch, accuracy, NULL, HIGHER, "accuracy in validation"),
    NUM(epoch, precision, NULL, HIGHER, "precision, mean of classes"),
    NUM(epoch, recall, NULL, HIGHER, "recall, mean of classes"),
    NUM(epoch, f1, NULL, HIGHER, "F1, mean of classes"),
    INT(epoch, read_bytes, "B", "bytes read from storage"),
    INT(epoch, read_ops, NULL, "reads from storage"),
    NUM(epoch, cache_before, NULL, NEITHER, "share of the data in the page cache before"),
    NUM(epoch, cache_after, NULL, NEITHER, "share of the data in the page cache after"),
    NUM(epoch, energy_j, "J", LOWER, "energy"),
    NUM(epoch, energy_error_j, "J", LOWER, "bound on the error of the energy"),
    NUM(epoch, power_w, "W", LOWER, "mean power"),
    NUM(epoch, base_power_w, "W", LOWER, "power when idle"),
    NUM(epoch, cpu_load, "%", NEITHER, "CPU load"),
    NUM(epoch, gpu_load, "%", NEITHER, "GPU load"),
    NUM(epoch, temp_c, "C", LOWER, "hottest sensor, mean"),
    INT(epoch, rss_bytes, "B", "memory of the process"),
    INT(epoch, rss_peak_bytes, "B", "most memory of the process"),
    ENUM(epoch, quality, ew_quality_names, "where the times come from"),
    EW_FIELD_END,
};

static const struct ew_field batch_fields[] = {
    INT(batch, epoch, NULL, "epoch, from 1"),
    INT(batch, batch, NULL, "batch of the epoch, from 0"),
    INT(batch, images, NULL, "images"),
    NUM(batch, wall_s, "s", LOWER, "time of the batch"),
    NUM(batch, compute_s, "s", LOWER, "computing"),
    NUM(batch, stall_s, "s", LOWER, "waiting for data"),
    NUM(batch, overhead_s, "s", LOWER, "the rest of the time"),
    NUM(batch, comm_s, "s", LOWER, "waiting for other ranks"),
    NUM(batch, fetch_s, "s", LOWER, "reading"),
    NUM(batch, decode_s, "s", LOWER, "decoding"),
    NUM(batch, augment_s, "s", LOWER, "augmenting"),
    NUM(batch, loss, NULL, LOWER, "loss"),
    NUM(batch, accuracy, NULL, HIGHER, "accuracy"),
    INT(batch, read_bytes, "B", "bytes read from storage"),
    EW_FIELD_END,
};

static const struct ew_field sample_fields[] = {
    NUM(sample, t_s, "s", NEITHER, "time since the run began"),
    TEXT(sample, channel, "channel"),
    NUM(sample, value, NULL, NEITHER, "value"),
    TEXT(sample, unit, "unit"),
    ENUM(sample, quality, ew_quality_names, "where it comes from"),
    EW_FIELD_END,
};

static const struct ew_field metric_fields[] = {
    TEXT(metric, name, "name"),
    NUM(metric, value, NULL, NEITHER, "value"),
    TEXT(metric, unit, "unit"),
    TEXT(metric, source, "what measured it"),
    ENUM(metric, quality, ew_quality_names, "where it comes from"),
    INT(metric, n, NULL, "number of measurements"),
    NUM(metric, spread, NULL, LOWER, "standard deviation of the measurements"),
    NUM(metric, lowest, NULL, NEITHER, "lowest measurement"),
    NUM(metric, highest, NULL, NEITHER, "highest measurement"),
    ENUM(metric, better, better_names, "which direction is better"),
    EW_FIELD_END,
};

static const struct ew_field study_fields[] = {
    TEXT(study, name, "name"),
    TEXT(study, title, "title"),
    TEXT(study, about, "question of the study"),
    TEXT(study, differs, "differences from the published study"),
    BOOL(study, quick, "reduced size"),
    INT(study, jobs, NULL, "runs asked for"),
    INT(study, done, NULL, "runs that are done"),
    INT(study, failed, NULL, "runs that failed"),
    INT(study, skipped, NULL, "runs that this machine cannot do"),
    NUM(study, left_s, "s", LOWER, "estimated time left"),
    TEXT(study, now, "job that runs now"),
    TEXT(study, started, "when it began"),
    TEXT(study, updated, "when this was written"),
    INT(study, pid, NULL, "process"),
    TEXT(study, stamp, "boot and beginning of the process"),
    EW_FIELD_END,
};

static const struct ew_field published_fields[] = {
    TEXT(published, study, "study"),
    TEXT(published, metric, "name of the figure"),
    NUM(published, value, NULL, NEITHER, "value"),
    TEXT(published, unit, "unit"),
    TEXT(published, settings, "settings of the jobs that it is compared with"),
    TEXT(published, board, "board on which it was measured"),
    TEXT(published, cite, "publication that has it"),
    TEXT(published, place, "table, figure or section"),
    TEXT(published, kind, "how exactly it is stated there"),
    TEXT(published, note, "remark"),
    TEXT(published, wrong, "why the printed value is wrong"),
    EW_FIELD_END,
};
/* clang-format on */

const struct ew_record_kind *ew_record_kind(enum ew_record r)
{
    static const struct ew_record_kind kinds[] = {
#define EW_RECORD_KIND(id, name) {#name, name##_fields, sizeof(struct ew_##name##_row)},
        EW_RECORD_MAP(EW_RECORD_KIND)
#undef EW_RECORD_KIND
    };
    EW_ASSERT((size_t)r < EW_COUNT(kinds));
    return &kinds[r];
}

void ew_record_clear(enum ew_record r, void *row)
{
    const struct ew_record_kind *k = ew_record_kind(r);
    ew_fields_clear(k->fields, row, k->size);
}
