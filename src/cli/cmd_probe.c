/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise probe: sensors and features of this board, one reading of each, and why others are
 * missing. */
#include <stdio.h>
#include <time.h>

#include "backend/backend.h"
#include "base/json.h"
#include "bench/bench.h"
#include "cli/board_text.h"
#include "cli/cmd.h"
#include "cli/on_machines.h"
#include "device/board.h"
#include "device/capture.h"
#include "device/cpu_facts.h"
#include "report/text_table.h"

#define BETWEEN_NS 200000000L /* between the two readings that rates need */

struct opts {
    const char *root, *power_from, *tegrastats, *watch, *capture, *on;
    int64_t pid;
    bool peaks;
};

static const struct ew_field fields[] = {
    EW_BOARD_ROOT_FIELD(struct opts),
    EW_BOARD_POWER_FIELD(struct opts),
    EW_BOARD_TEGRA_FIELD(struct opts),
    EW_BOARD_WATCH_FIELD(struct opts),
    {.name = "pid",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct opts, pid),
     .min = 0,
     .max = 1 << 30,
     .metavar = "PID",
     .help = "also read this process"},
    {.name = "peaks",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct opts, peaks),
     .help = "measure peak arithmetic and memory throughput of the CPU"},
    {.name = "capture",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, capture),
     .metavar = "DIR",
     .help = "copy the sysfs and procfs files that Edgewise reads, to replay them with --root"},
    EW_ON_FIELD(struct opts),
    EW_FIELD_END,
};

/* ---- The CPU ---- */

/* Measured peaks; both 0: not requested. */
struct peaks {
    struct ew_peaks reached;
    const char *kernels; /* instruction set of the kernels */
    int threads;
};

static ew_err measure_peaks(struct ew_board *b, struct peaks *out)
{
    struct ew_backend *be;
    EW_TRY(ew_backend_open(&(struct ew_backend_opts){.device = "cpu"}, &be));
    const ew_err e = ew_backend_peaks(be, &out->reached);
    out->kernels = ew_arena_strdup(&b->arena, ew_backend_info(be)->target);
    out->threads = ew_backend_info(be)->threads;
    ew_backend_close(be);
    EW_TRY(e);
    EW_CHECK(out->kernels, EW_ERR_MEMORY, "no memory");
    return ew_bench_bandwidth(out->threads, &out->reached.bytes_s);
}

static void print_caches(const struct ew_cpu_facts *f)
{
    char bytes[EW_TEXT_CHARS];
    for (int i = 0; i < f->n_caches; i++) {
        const struct ew_cache_fact *c = &f->caches[i];
        printf("%sL%d%s %s", i ? ", " : "cache   ", c->level,
               c->type == 'd'   ? "d"
               : c->type == 'i' ? "i"
                                : "",
               ew_text_bytes(c->bytes, bytes));
        if (c->shared > 1)
            printf(" for %d CPUs", c->shared);
    }
    if (f->n_caches)
        printf("\n");
}

static void print_cpu(const struct ew_cpu_facts *f, const struct peaks *p)
{
    if (*f->sets)
        printf("isa     %s\n        bytes are multiplied by %s\n", f->sets,
               f->dot ? f->dot : "ordinary instructions: int8 gains less here");
    print_caches(f);
    if (f->governor)
        printf("clocks  governor %s\n", f->governor);
    if (p->reached.flops > 0)
        printf("peak    %.1f GFLOP/s in float32, %.1f GB/s of memory, measured with %s on %d "
               "thread%s\n",
               p->reached.flops * 1e-9, p->reached.bytes_s * 1e-9, p->kernels, p->threads,
               p->threads == 1 ? "" : "s");
}

static void json_cpu(struct ew_json *j, const struct ew_cpu_facts *f, const struct peaks *p)
{
    ew_json_object(j, "cpu");
    ew_json_str(j, "instruction_sets", f->sets);
    ew_json_str(j, "byte_products", f->dot);
    ew_json_str(j, "governor", f->governor);
    ew_json_array(j, "caches");
    for (int i = 0; i < f->n_caches; i++) {
        ew_json_object(j, NULL);
        ew_json_int(j, "level", f->caches[i].level);
        ew_json_str(j, "type", (const char[]){f->caches[i].type, 0});
        ew_json_int(j, "bytes", f->caches[i].bytes);
        ew_json_int(j, "cpus", f->caches[i].shared);
        ew_json_end(j);
    }
    ew_json_end(j);
    if (p->reached.flops > 0) {
        ew_json_num(j, "peak_flops", p->reached.flops);
        ew_json_num(j, "peak_bytes_s", p->reached.bytes_s);
    }
    ew_json_end(j);
}

/* ---- Channels ---- */

static void print_channels(const struct ew_board *b, const struct ew_sample_value *values)
{
    printf("\n%-30s %-26s %-10s %s\n", "channel", "value", "quality", "source");
    for (int i = 0; i < b->n_channels; i++) {
        const struct ew_channel *c = &b->channels[i];
        char text[EW_VALUE_CHARS];
        ew_value_text(c->quantity, values[i], text);
        if (!ew_sample_value_is(values[i]))
            snprintf(text, sizeof(text), "- (%s)", ew_absent_text(values[i].absent));
        printf("%-30s %-26s %-10s %s\n", c->name, text, ew_quality_name(c->quality), c->source);
    }
    if (b->n_missing)
        printf("\nnot here\n");
    for (int i = 0; i < b->n_missing; i++) {
        const struct ew_missing *m = &b->missing[i];
        printf("  %-22s %s: %s\n", m->what, ew_absent_text(m->absent), m->reason);
    }
}

static ew_err print_json(const struct ew_board *b, const struct ew_sample_value *values,
                         const struct ew_cpu_facts *facts, const struct peaks *p)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_board_json_head(&j, b);
    json_cpu(&j, facts, p);
    ew_json_array(&j, "channels");
    for (int i = 0; i < b->n_channels; i++)
        ew_channel_json(&j, &b->channels[i], values[i]);
    ew_json_end(&j);
    ew_json_array(&j, "missing");
    for (int i = 0; i < b->n_missing; i++) {
        const struct ew_missing *m = &b->missing[i];
        ew_json_object(&j, NULL);
        ew_json_str(&j, "sensor", m->sensor);
        ew_json_str(&j, "what", m->what);
        ew_json_str(&j, "absent", ew_absent_text(m->absent));
        ew_json_str(&j, "reason", m->reason);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static void close_board(struct ew_board **b)
{
    ew_board_close(*b);
}

static ew_err capture(const struct ew_cmd_call *c, struct ew_board *b, const char *folder)
{
    int files;
    struct ew_json j;
    EW_TRY(ew_capture(b, folder, &files));
    if (!c->json) {
        printf("%d files in %s\n", files, folder);
        return EW_OK;
    }
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "folder", folder);
    ew_json_int(&j, "files", files);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    const struct ew_board_opts board = {.root = o->root,
                                        .power_from = o->power_from,
                                        .tegrastats = o->tegrastats,
                                        .watch = o->watch,
                                        .pid = (int)o->pid};
    EW_CLEANUP(close_board) struct ew_board *b = NULL;
    if (o->on)
        return ew_on_machines(c, o->on, false);
    EW_CHECK(!o->peaks || !o->root, EW_ERR_USAGE,
             "--peaks measures this machine, not a captured one");
    EW_TRY(ew_board_open(&board, &b));
    ew_board_recover(b);
    if (o->capture)
        return capture(c, b, o->capture);
    struct ew_sample_value *values =
        ew_arena_array(&b->arena, (size_t)b->n_channels + 1, sizeof(*values));
    EW_CHECK(values, EW_ERR_MEMORY, "no memory for %d values", b->n_channels);
    ew_board_read(b, values);
    if (!o->root) { /* the files of a captured board do not change: rates would be 0 */
        nanosleep(&(struct timespec){.tv_nsec = BETWEEN_NS}, NULL);
        ew_board_read(b, values);
    }
    struct ew_cpu_facts facts;
    struct peaks peaks = {0};
    EW_TRY(ew_cpu_facts_read(b, &facts));
    if (o->peaks)
        EW_TRY(measure_peaks(b, &peaks));
    if (c->json)
        return print_json(b, values, &facts, &peaks);
    ew_board_print_head(b);
    print_cpu(&facts, &peaks);
    print_channels(b, values);
    return EW_OK;
}

const struct ew_cmd ew_cmd_probe = {
    .name = "probe",
    .group = EW_CMD_MEASURE,
    .summary = "sensors and features of this board, and why others are missing",
    .about = "Shows the CPU's instruction sets, caches and governor, looks for every sensor, reads "
             "each once and says what is missing and why.\n"
             "Rates need two readings, which are taken 0.2 s apart.\n"
             "A capture holds no serial numbers, names or addresses.",
    .examples = "probe\nprobe --peaks\nprobe --json\nprobe --on boards.ini\nprobe --capture "
                "my-board\nprobe --root "
                "tests/fixtures/boards/agx-orin-jp6",
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
