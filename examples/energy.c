/* SPDX-License-Identifier: Apache-2.0 */
/* What does an image cost?  Times an engine, runs it for a while under the board's power sensors
 * and prints milliseconds, watts and joules; or the reason why the board cannot measure its power.
 *
 *   cc energy.c $(pkg-config --cflags --libs edgewise) -o energy
 *   ./energy net.ewe 5                   five seconds, with the board's sensors
 *   ./energy net.ewe 5 'meter --watts'   a command that prints watts, line by line */
#include <edgewise.h>
#include <edgewise_bench.h>
#include <edgewise_device.h>
#include <stdio.h>
#include <stdlib.h>

static void print_devices(void)
{
    struct ew_device d = {.size = sizeof(d)};
    for (int i = 0; ew_device_at(i, &d) == EW_OK; i++)
        printf("device %s: %s\n", d.id[0] ? d.id : d.backend, d.id[0] ? d.name : d.why);
}

/* Runs the network back to back for this many seconds. */
static ew_err run_for(struct ew_context *c, struct ew_meter *m, double seconds, int64_t *runs)
{
    const struct ew_timing_opts o = {
        .size = sizeof(o), .runs = 1, .seconds = seconds < 10 ? seconds : 10};
    struct ew_timing t = {.size = sizeof(t)};
    ew_err err = EW_OK;
    for (double left = seconds; !err && left > 0; left -= o.seconds) {
        err = ew_context_bench(c, &o, &t);
        *runs += t.runs;
        ew_meter_poll(m);
    }
    return err;
}

static ew_err measure(struct ew_context *c, struct ew_meter *m, double seconds)
{
    struct ew_timing t = {.size = sizeof(t)};
    struct ew_meter_energy e = {.size = sizeof(e)};
    int64_t runs = 0;
    ew_err err = ew_context_bench(c, NULL, &t);
    if (!err)
        printf("time: median %.3f ms, p99 %.3f ms of %lld runs\n", t.median_ms, t.p99_ms,
               (long long)t.runs);
    ew_meter_begin(m);
    if (!err)
        err = run_for(c, m, seconds, &runs);
    if (!err)
        err = ew_meter_end(m, &e);
    if (err)
        return err;
    if (e.absent)
        printf("energy: not known, %s\n", e.absent);
    else
        printf("energy: %.2f J +- %.2f in %.1f s, %.2f W of %s, %.3g J an image\n", e.joules,
               e.error_j, e.seconds, e.mean_w, e.rails, e.joules / (double)runs);
    return EW_OK;
}

int main(int argc, char **argv)
{
    struct ew_engine *e = NULL;
    struct ew_context *c = NULL;
    struct ew_meter *m = NULL;
    if (argc < 3 || argc > 4)
        return fprintf(stderr, "usage: energy ENGINE.ewe SECONDS [METER]\n"), 2;
    const struct ew_meter_opts o = {.size = sizeof(o), .power_from = argc == 4 ? argv[3] : NULL};
    print_devices();
    ew_err err = ew_engine_load(argv[1], &e);
    if (!err)
        err = ew_context_new(e, 0, &c);
    if (!err)
        err = ew_meter_open(&o, &m);
    if (!err)
        err = measure(c, m, atof(argv[2]));
    if (err)
        fprintf(stderr, "energy: %s\n", ew_error_message());
    ew_meter_close(m);
    ew_context_free(c);
    ew_engine_free(e);
    return err ? 1 : 0;
}
